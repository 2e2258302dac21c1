//! Tickets and manifests. The sender signs the ticket, and the ticket names the manifest by its digest.
//!
//! The files of a transfer are concatenated and cut into batches of `k` packets of `payload` octets, across file
//! boundaries. The manifest has a BLAKE3 digest for each batch and each file. So a receiver discards a polluted batch and
//! keeps the others. A receiver trusts a manifest only after checking the ticket's signature and the manifest's digest.
//!
//! ```text
//! ticket     "ChppTkt1" source 2, serial 1, protocol 1, room 1, k 1, payload 2, octets 8, manifest's length 4 and digest 32, signature 64
//! manifest   "ChppMan1" files 2, for each: length of name 2, name, octets 8, digest 32; for each batch: digest 32
//! ```

use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{SignKey, VerifyKey, hex};

/// Length of a ticket in octets.
pub const TICKET: usize = 8 + 2 + 1 + 2 + 1 + 2 + 8 + 4 + 32 + 64;
/// Largest manifest in octets: the digests of 500,000 batches, some 20 GB of files. It bounds the memory that a receiver
/// reserves for a signed ticket.
pub const MANIFEST_MAX: u32 = 16 << 20;
/// Largest number of files in one transfer.
pub const FILES_MAX: usize = 10_000;
/// The folder of incomplete transfers inside the receiver's folder. No received file may have a name that begins so.
pub const FOLDER: &str = ".chappe-cast";
/// Longest file name in octets, as on Linux (NAME_MAX).
pub const NAME_MAX: usize = 255;

const TICKET_MAGIC: &[u8; 8] = b"ChppTkt1";
const MANIFEST_MAGIC: &[u8; 8] = b"ChppMan1";
/// Domain separation: the key's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast ticket v1\0";

/// A BLAKE3 digest of 32 octets.
pub type Digest = [u8; 32];

/// How the octets of a transfer are cut into batches and packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Octets of all files together.
    pub len: u64,
    /// Packets per batch, at most [`chappe_pacifier::K_MAX`].
    pub k: u8,
    /// Octets per packet, at least 1.
    pub payload: u16,
}

/// The protocol that codes and forwards batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Pacifier as in its paper: a tree, credits, acknowledgements.
    Pacifier,
    /// The improved variant: every frame reports what its sender has.
    Improved,
}

/// The announcement of a transfer, signed by its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The sender's member number.
    pub source: u16,
    /// The number of the transfer in data frames.
    pub serial: u8,
    /// The protocol that carries it.
    pub protocol: Protocol,
    /// Data frames have room for member numbers below eight times this.
    pub room: u8,
    /// How the files are cut into batches.
    pub cut: Cut,
    /// Length of the manifest in octets.
    pub manifest_len: u32,
    /// Digest of the manifest. Its first octets identify the transfer.
    pub manifest: Digest,
    /// Ed25519 signature of all other fields.
    pub signature: [u8; 64],
}

/// A file in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file's name, without folders.
    pub name: String,
    /// The file's size in octets.
    pub size: u64,
    /// The digest of the whole file.
    pub digest: Digest,
}

/// The contents of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The files, in the order in which they are concatenated.
    pub files: Vec<Entry>,
    /// The digest of each batch.
    pub batches: Vec<Digest>,
}

impl Cut {
    /// Octets of a full batch.
    pub fn batch_len(&self) -> u64 {
        u64::from(self.k) * u64::from(self.payload)
    }

    /// The number of batches.
    pub fn batches(&self) -> u32 {
        let batches = self.len.div_ceil(self.batch_len().max(1));
        batches.try_into().unwrap_or(u32::MAX)
    }

    /// The octets of the transfer that are in a batch; the last batch may be shorter.
    pub fn range(&self, batch: u32) -> Range<u64> {
        let start = (u64::from(batch) * self.batch_len()).min(self.len);
        start..(start + self.batch_len()).min(self.len)
    }
}

impl Ticket {
    /// The transfer's identifier: the first 8 octets of its manifest's digest.
    pub fn id(&self) -> u64 {
        let (first, _) = self.manifest.split_at(8);
        first.try_into().map_or(0, u64::from_be_bytes)
    }

    /// The identifier in hexadecimal digits.
    pub fn name(&self) -> String {
        hex(&self.manifest[..8])
    }

    /// Makes and signs a ticket for the encoded `manifest`.
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
            // The same files get the same number after a restart. Other files most likely get another one.
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

    /// Data frames have room for member numbers below this.
    pub fn nodes_max(&self) -> u16 {
        u16::from(self.room) * 8
    }

    /// Whether the signature is that of `key`.
    pub fn is_signed_by(&self, key: &VerifyKey) -> bool {
        key.verifies(&self.signed(), &self.signature)
    }

    /// Whether `manifest` has the digest in the ticket.
    pub fn names(&self, manifest: &[u8]) -> bool {
        blake3::hash(manifest) == self.manifest
    }

    fn signed(&self) -> Vec<u8> {
        let whole = self.encode();
        let (body, _) = whole.split_at(TICKET - 64);
        [SIGNED, body].concat()
    }

    /// Encodes the ticket with its signature.
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

    /// Decodes a ticket without checking its signature; `None` if it is malformed or inconsistent.
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
    /// Encodes the manifest. Fails if there are too many files or batches, or a name is not allowed.
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

    /// Decodes the manifest of a transfer that is cut as `cut`. Fails if a name leads outside the folder or occurs twice, or
    /// if the sizes do not add up.
    pub fn decode(octets: &[u8], cut: &Cut) -> Result<Manifest> {
        let torn = || Error::failed("the manifest is of another version", "update chappe");
        let mut rest = Reader(octets);
        if rest.take() != Some(*MANIFEST_MAGIC) {
            return Err(torn());
        }
        let count = u16::from_be_bytes(rest.take().ok_or_else(torn)?);
        if usize::from(count) > FILES_MAX {
            let what =
                format!("the manifest has {count} files, more than the limit of {FILES_MAX}");
            return Err(Error::failed(what, ""));
        }
        let mut files: Vec<Entry> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        let mut sum = 0u64;
        for _ in 0..count {
            let entry = rest.entry().ok_or_else(torn)?;
            check_name(&entry.name)?;
            if !names.insert(entry.name.clone()) {
                let what = format!("the manifest contains the name {:?} twice", entry.name);
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
            let what = "the sizes in the manifest do not add up to the size of the transfer";
            return Err(Error::failed(what, ""));
        }
        Ok(Manifest { files, batches })
    }

    /// The files that contain the octets `range` of the transfer, with the offset in each.
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

/// A part of a range that lies in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the file in the manifest.
    pub file: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Position in the range.
    pub within: Range<usize>,
}

/// Rejects names that are not plain file names, such as those with a folder.
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
    let what = format!("{short:?} is not allowed as the name of a file: it {why}");
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
