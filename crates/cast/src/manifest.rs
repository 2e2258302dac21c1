//! What a sender promises: the ticket, which it signs, and the manifest, which the ticket names by its digest.
//!
//! The files of one transfer stand one after the other and are cut into batches of `k` packets of `payload` octets,
//! whatever file they belong to. The manifest has a digest (BLAKE3) for each batch, so that a receiver throws away a
//! batch that somebody has polluted and keeps the rest, and one for each file. Nothing of it is believed before the
//! ticket's signature and the manifest's digest hold.
//!
//! ```text
//! ticket     "ChppTkt1" source 2, serial 1, protocol 1, room 1, k 1, payload 2, octets 8, manifest's length 4 and digest 32, signature 64
//! manifest   "ChppMan1" files 2, for each: length of name 2, name, octets 8, digest 32; for each batch: digest 32
//! ```

use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{SignKey, VerifyKey, hex};

/// Octets of a ticket.
pub const TICKET: usize = 8 + 2 + 1 + 2 + 1 + 2 + 8 + 4 + 32 + 64;
/// The largest manifest: the digests of 500,000 batches, some 20 GB. A receiver reserves no more memory than this for
/// what a signed ticket announces.
pub const MANIFEST_MAX: u32 = 16 << 20;
/// Most files in one transfer.
pub const FILES_MAX: usize = 10_000;
/// The folder of incomplete transfers inside the receiver's folder. No received file may have a name that begins so.
pub const FOLDER: &str = ".chappe-cast";
/// Longest name, in octets: what Linux file systems allow (NAME_MAX).
pub const NAME_MAX: usize = 255;

const TICKET_MAGIC: &[u8; 8] = b"ChppTkt1";
const MANIFEST_MAGIC: &[u8; 8] = b"ChppMan1";
/// Separates these signatures from all others that the key may ever make.
const SIGNED: &[u8] = b"chappe cast ticket v1\0";

/// BLAKE3 of something.
pub type Digest = [u8; 32];

/// How the octets of a transfer are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Octets of all files.
    pub len: u64,
    /// Packets in a batch.
    pub k: u8,
    /// Octets in a packet.
    pub payload: u16,
}

/// How batches are coded and forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// As the paper has it: a tree, credits, acknowledgements.
    Pacifier,
    /// Our improved variant: every frame says what its sender has.
    Improved,
}

/// One transfer, as its sender announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The sender's number.
    pub source: u16,
    /// What names the transfer in data frames.
    pub serial: u8,
    /// How it is coded and forwarded.
    pub protocol: Protocol,
    /// Numbers of members below this, in eights, have room in data frames.
    pub room: u8,
    /// How it is cut.
    pub cut: Cut,
    /// Octets of the manifest.
    pub manifest_len: u32,
    /// Its digest, which names the transfer.
    pub manifest: Digest,
    /// The signature.
    pub signature: [u8; 64],
}

/// One file of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without folders.
    pub name: String,
    /// Octets.
    pub size: u64,
    /// Its digest.
    pub digest: Digest,
}

/// What is in a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The files in the order in which they stand in the transfer.
    pub files: Vec<Entry>,
    /// The digest of each batch.
    pub batches: Vec<Digest>,
}

impl Cut {
    /// Octets of a batch.
    pub fn batch_len(&self) -> u64 {
        u64::from(self.k) * u64::from(self.payload)
    }

    /// The number of batches.
    pub fn batches(&self) -> u32 {
        let batches = self.len.div_ceil(self.batch_len().max(1));
        batches.try_into().unwrap_or(u32::MAX)
    }

    /// Where a batch stands.
    pub fn range(&self, batch: u32) -> Range<u64> {
        let start = (u64::from(batch) * self.batch_len()).min(self.len);
        start..(start + self.batch_len()).min(self.len)
    }
}

impl Ticket {
    /// The transfer's name: the beginning of its manifest's digest.
    pub fn id(&self) -> u64 {
        let (first, _) = self.manifest.split_at(8);
        first.try_into().map_or(0, u64::from_be_bytes)
    }

    /// The transfer's name in hexadecimal digits.
    pub fn name(&self) -> String {
        hex(&self.manifest[..8])
    }

    /// A ticket for `manifest`, signed.
    pub fn sign(
        source: u16,
        (protocol, room): (Protocol, u8),
        cut: Cut,
        manifest: &[u8],
        key: &SignKey,
    ) -> Ticket {
        let digest = *blake3::hash(manifest).as_bytes();
        let mut ticket = Ticket {
            source,
            // The same files get the same number after a restart, other files most likely another one.
            serial: digest[31],
            protocol,
            room,
            cut,
            manifest_len: manifest.len() as u32,
            manifest: digest,
            signature: [0; 64],
        };
        ticket.signature = key.sign(&ticket.signed());
        ticket
    }

    /// Numbers of members below this have room in data frames.
    pub fn nodes_max(&self) -> u16 {
        u16::from(self.room) * 8
    }

    /// Whether `key` has signed it.
    pub fn is_signed_by(&self, key: &VerifyKey) -> bool {
        key.verifies(&self.signed(), &self.signature)
    }

    /// Whether `manifest` is the one that it names.
    pub fn names(&self, manifest: &[u8]) -> bool {
        blake3::hash(manifest) == self.manifest
    }

    fn signed(&self) -> Vec<u8> {
        let whole = self.encode();
        let (body, _) = whole.split_at(TICKET - 64);
        [SIGNED, body].concat()
    }

    /// The ticket as octets.
    pub fn encode(&self) -> [u8; TICKET] {
        let mut octets = Vec::with_capacity(TICKET);
        octets.extend_from_slice(TICKET_MAGIC);
        octets.extend_from_slice(&self.source.to_be_bytes());
        octets.extend_from_slice(&[self.serial, self.protocol as u8, self.room, self.cut.k]);
        octets.extend_from_slice(&self.cut.payload.to_be_bytes());
        octets.extend_from_slice(&self.cut.len.to_be_bytes());
        octets.extend_from_slice(&self.manifest_len.to_be_bytes());
        octets.extend_from_slice(&self.manifest);
        octets.extend_from_slice(&self.signature);
        let mut ticket = [0; TICKET];
        ticket.copy_from_slice(&octets);
        ticket
    }

    /// Reads a ticket; `None` if it is none, or asks for what cannot be.
    pub fn decode(octets: &[u8]) -> Option<Ticket> {
        let mut rest = Reader(octets.get(..TICKET)?);
        (rest.take::<8>()? == *TICKET_MAGIC).then_some(())?;
        let source = u16::from_be_bytes(rest.take()?);
        let [serial, protocol, room, k] = rest.take()?;
        let protocol = match protocol {
            0 => Protocol::Pacifier,
            1 => Protocol::Improved,
            _ => return None,
        };
        let payload = u16::from_be_bytes(rest.take()?);
        let len = u64::from_be_bytes(rest.take()?);
        let ticket = Ticket {
            source,
            serial,
            protocol,
            room,
            cut: Cut { len, k, payload },
            manifest_len: u32::from_be_bytes(rest.take()?),
            manifest: rest.take()?,
            signature: rest.take()?,
        };
        let digests = u64::from(ticket.cut.batches()) * 32;
        let possible = (1..=chappe_pacifier::K_MAX).contains(&usize::from(k))
            && payload > 0
            && (1..=32).contains(&room)
            && ticket.manifest_len <= MANIFEST_MAX
            && digests < u64::from(ticket.manifest_len);
        possible.then_some(ticket)
    }
}

impl Manifest {
    /// The manifest as octets.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let too_much = |what: &str| Error::input(what, "send it in several transfers");
        let count = u16::try_from(self.files.len()).ok();
        let count = count.filter(|&count| usize::from(count) <= FILES_MAX);
        let count = count.ok_or_else(|| too_much("too many files for one transfer"))?;
        let mut octets = MANIFEST_MAGIC.to_vec();
        octets.extend_from_slice(&count.to_be_bytes());
        for file in &self.files {
            check_name(&file.name)?;
            octets.extend_from_slice(&(file.name.len() as u16).to_be_bytes());
            octets.extend_from_slice(file.name.as_bytes());
            octets.extend_from_slice(&file.size.to_be_bytes());
            octets.extend_from_slice(&file.digest);
        }
        octets.extend(self.batches.iter().flatten());
        if octets.len() > MANIFEST_MAX as usize {
            return Err(too_much("too many octets for one transfer"));
        }
        Ok(octets)
    }

    /// Reads the manifest of a transfer that is cut so. Names that lead anywhere else than into the folder, a name
    /// twice, or sizes that do not add up are errors.
    pub fn decode(octets: &[u8], cut: &Cut) -> Result<Manifest> {
        let torn = || Error::failed("the manifest is not one of this version", "update chappe");
        let mut rest = Reader(octets);
        if rest.take() != Some(*MANIFEST_MAGIC) {
            return Err(torn());
        }
        let count = u16::from_be_bytes(rest.take().ok_or_else(torn)?);
        if usize::from(count) > FILES_MAX {
            let what = format!("the manifest has {count} files, {FILES_MAX} at most are taken");
            return Err(Error::failed(what, ""));
        }
        let mut files: Vec<Entry> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        let mut sum = 0u64;
        for _ in 0..count {
            let entry = rest.entry().ok_or_else(torn)?;
            check_name(&entry.name)?;
            if !names.insert(entry.name.clone()) {
                let what = format!("the manifest has the name {:?} twice", entry.name);
                return Err(Error::failed(what, ""));
            }
            sum = sum.saturating_add(entry.size);
            files.push(entry);
        }
        let batches: Vec<Digest> = rest
            .0
            .chunks(32)
            .map(|digest| digest.try_into())
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| torn())?;
        if sum != cut.len || batches.len() != cut.batches() as usize {
            let what = "the manifest's sizes do not add up to the transfer's";
            return Err(Error::failed(what, ""));
        }
        Ok(Manifest { files, batches })
    }

    /// Where the octets of `range` of the transfer stand: file, place in it, and place in the range.
    pub fn places(&self, range: Range<u64>) -> impl Iterator<Item = Place> + '_ {
        let mut start = 0u64;
        self.files
            .iter()
            .enumerate()
            .filter_map(move |(file, entry)| {
                let here = start..start + entry.size;
                start = here.end;
                let from = range.start.max(here.start);
                let to = range.end.min(here.end);
                (from < to).then(|| Place {
                    file,
                    offset: from - here.start,
                    within: (from - range.start) as usize..(to - range.start) as usize,
                })
            })
    }
}

/// A part of a batch in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which file.
    pub file: usize,
    /// Where in it.
    pub offset: u64,
    /// Where in the batch.
    pub within: Range<usize>,
}

/// Refuses names that are not plain names of a file in a folder.
pub fn check_name(name: &str) -> Result<()> {
    let why = match name {
        "" => "is empty",
        "." | ".." => "is a folder",
        _ if name.len() > NAME_MAX => "is too long",
        _ if name.contains('/') => "has a folder in it",
        _ if name.contains(char::is_control) => "has control characters",
        _ if name.starts_with(FOLDER) => "belongs to chappe",
        _ => return Ok(()),
    };
    let short: String = name.chars().take(60).collect();
    let what = format!("{short:?} is no name for a received file: it {why}");
    Err(Error::input(what, "rename the file"))
}

/// Reads from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn entry(&mut self) -> Option<Entry> {
        let length = usize::from(u16::from_be_bytes(self.take()?));
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        let (size, digest) = (u64::from_be_bytes(self.take()?), self.take()?);
        Some(Entry { name, size, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn example() -> (Manifest, Cut) {
        let file = |name: &str, size| Entry {
            name: name.into(),
            size,
            digest: [size as u8; 32],
        };
        let cut = Cut {
            len: 1000,
            k: 4,
            payload: 50,
        };
        let files = vec![file("a.bin", 150), file("empty", 0), file("ünïcode", 850)];
        let batches = vec![[9; 32]; 5];
        (Manifest { files, batches }, cut)
    }

    #[test]
    fn manifests_and_tickets_round_trip() {
        let (manifest, cut) = example();
        let octets = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&octets, &cut), Ok(manifest));
        let key = SignKey::new(&[3; 32]);
        let ticket = Ticket::sign(7, (Protocol::Improved, 4), cut, &octets, &key);
        assert_eq!(Ticket::decode(&ticket.encode()), Some(ticket));
        assert!(ticket.is_signed_by(&key.verify_key()) && ticket.names(&octets));
        assert!(!ticket.is_signed_by(&SignKey::new(&[4; 32]).verify_key()));
        for octet in 0..TICKET {
            let mut bent = ticket.encode();
            bent[octet] ^= 1;
            let taken = Ticket::decode(&bent);
            assert!(!taken.is_some_and(|ticket| ticket.is_signed_by(&key.verify_key())));
        }
    }

    #[test]
    fn a_batch_may_span_several_files() {
        let (manifest, cut) = example();
        let place = |file, offset, within| Place {
            file,
            offset,
            within,
        };
        let places = |batch| manifest.places(cut.range(batch)).collect::<Vec<_>>();
        assert_eq!(places(0), [place(0, 0, 0..150), place(2, 0, 150..200)]);
        assert_eq!(places(4), [place(2, 650, 0..200)]);
        assert_eq!((cut.batches(), places(5)), (5, vec![]));
    }

    #[test]
    fn names_outside_the_folder_are_rejected() {
        let long = "x".repeat(256);
        let wrong = [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../x",
            "a/b",
            "a\nb",
            "a\0b",
            ".chappe-cast",
            &long,
        ];
        for name in wrong {
            let (mut manifest, cut) = example();
            assert!(check_name(name).is_err(), "{name:?}");
            // Also when the sender does not check.
            manifest.files[0].name = "12345".into();
            let octets = manifest.encode().unwrap();
            let mut forged = octets[..10].to_vec();
            forged.extend_from_slice(&(name.len() as u16).to_be_bytes());
            forged.extend_from_slice(name.as_bytes());
            forged.extend_from_slice(&octets[12 + 5..]);
            assert!(Manifest::decode(&forged, &cut).is_err(), "{name:?}");
        }
        for name in ["a", "..a", "a b", "ünïcode", "-rf"] {
            assert_eq!(check_name(name), Ok(()));
        }
    }

    /// Cut, bent and random octets are errors; whatever they claim, they reserve no memory.
    #[test]
    fn damaged_manifests_are_rejected() {
        let (manifest, cut) = example();
        let octets = manifest.encode().unwrap();
        for len in 0..octets.len() {
            assert!(Manifest::decode(&octets[..len], &cut).is_err());
        }
        let mut twice = manifest.clone();
        twice.files[1].name = "a.bin".into();
        let error = Manifest::decode(&twice.encode().unwrap(), &cut).unwrap_err();
        assert!(error.what.contains("twice"));
        let mut random = Seed(1).stream(Purpose::Trial(0));
        for _ in 0..2000 {
            let mut noise = [0; 300];
            random.fill(&mut noise);
            noise[..8].copy_from_slice(MANIFEST_MAGIC);
            assert!(Manifest::decode(&noise, &cut).is_err());
            noise[..8].copy_from_slice(TICKET_MAGIC);
            if let Some(ticket) = Ticket::decode(&noise) {
                assert!(ticket.manifest_len <= MANIFEST_MAX);
            }
        }
    }
}
