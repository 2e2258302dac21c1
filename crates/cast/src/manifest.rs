//! Tickets and manifests. The sender signs the ticket, and the ticket names the manifest by its digest.
//!
//! The files of a transfer are concatenated and cut into batches of `k` packets of `payload` octets, across file
//! boundaries. The manifest has a BLAKE3 digest for each batch and each file. So a receiver discards a polluted batch and
//! keeps the others. A receiver trusts a manifest only after checking the ticket's signature and the manifest's digest.
//!
//! ```text
//! ticket     "ChppTkt2" source 2, serial 1, protocol 1, room 1, k 1, payload 2, octets 8, manifest's length 4 and digest 32,
//!            signed at 8, valid until 8, withdrawn 1, signature 64
//! manifest   "ChppMan2" entries 4, for each: kind and mode 2, modified 8, length of name 2, name, and of a file: octets 8,
//!            digest 32; for each batch: digest 32; for each batch: rolling checksum 4
//! ```
//!
//! An entry is a file or a folder. Its name is a path of plain names with `/` between them, and a folder stands before what
//! is in it. The highest bit of its mode marks a folder, the lowest nine are the permissions.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{SignKey, VerifyKey, hex};
use crate::reason::Withdrawal;

/// Length of a ticket in octets.
pub const TICKET: usize = 8 + 2 + 1 + 2 + 1 + 2 + 8 + 4 + 32 + 8 + 8 + 1 + 64;
/// Largest manifest in octets: the digests of 500,000 batches, some 20 GB of files. It bounds the memory that a receiver
/// reserves for a signed ticket.
pub const MANIFEST_MAX: u32 = 16 << 20;
/// Largest number of files and folders in one transfer. With names of 30 octets their entries fill the largest manifest.
pub const FILES_MAX: usize = 200_000;
/// The folder of incomplete transfers inside the receiver's folder. No received file may have a name that begins so.
pub const FOLDER: &str = ".chappe-cast";
/// Longest path of a file in a transfer in octets: what Linux takes in one call (PATH_MAX), with its final zero.
pub const PATH_MAX: usize = 4095;
/// Longest file name in octets, as on Linux (NAME_MAX).
pub const NAME_MAX: usize = 255;

const TICKET_MAGIC: &[u8; 8] = b"ChppTkt2";
const MANIFEST_MAGIC: &[u8; 8] = b"ChppMan2";
/// Domain separation: the key's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast ticket v2\0";
/// The same for the digest that identifies an offer.
const NAMED: &[u8] = b"chappe cast offer v5\0";

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
    /// Digest of the manifest. Its first octets identify the contents of the transfer.
    pub manifest: Digest,
    /// When it is valid.
    pub validity: Validity,
    /// Why the sender has taken the offer back, if it has.
    pub withdrawn: Option<Withdrawal>,
    /// Ed25519 signature of all other fields.
    pub signature: [u8; 64],
    /// [`Ticket::id`], which is asked for at each wake-up.
    id: u64,
}

/// From when until when a ticket is valid, in milliseconds since 1970 by the sender's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// When it was signed. It orders the tickets of one signer: a later one replaces an earlier one.
    pub signed: u64,
    /// When it expires; 0 if it does not.
    pub until: u64,
}

/// What an entry of a manifest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file, with contents.
    File,
    /// A folder; what is in it has entries of its own.
    Folder,
}

/// A file or folder in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the receiver's folder.
    pub name: String,
    /// Whether it is a file or a folder.
    pub kind: Kind,
    /// Its permissions: the lowest nine bits of a mode. No other bit is ever sent.
    pub mode: u16,
    /// When it was modified, in nanoseconds since 1970.
    pub modified: i64,
    /// The file's size in octets; 0 for a folder.
    pub size: u64,
    /// The digest of the whole file; zeros for a folder.
    pub digest: Digest,
}

/// The contents of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The files and folders, in the order in which the files are concatenated.
    files: Vec<Entry>,
    /// Where each of them begins among the octets of the transfer.
    starts: Vec<u64>,
    /// The digest of each batch.
    batches: Vec<Digest>,
    /// The rolling checksum of each batch, by which receivers find it in old versions.
    sums: Vec<u32>,
}

/// Octets of a batch in a manifest: its digest and checksum.
const BATCH: usize = 32 + 4;

/// The bit of an encoded mode that marks a folder.
const IS_FOLDER: u16 = 1 << 15;
/// The permissions in a mode. The bits above them (set-user-ID, set-group-ID, sticky) give rights, and are not sent.
const PERMISSIONS: u16 = 0o777;

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
    /// The identifier of this offer: the first 8 octets of a digest of all that its sender has signed, except that it has taken the
    /// offer back. So the same files that another member offers, or the same one later, have another identifier: members say by it
    /// in whose transfer they take part, and who has received files may have received others since. No sender can sign an offer
    /// with the identifier of another one.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn digest(&self) -> u64 {
        let offer = Ticket {
            withdrawn: None,
            ..*self
        };
        let digest = blake3::hash(&[NAMED, &offer.body()].concat());
        let (first, _) = digest.as_bytes().split_at(8);
        first.try_into().map_or(0, u64::from_be_bytes)
    }

    /// Whether both offer the same files in the same frames, so that data of one are data of the other.
    pub fn is_alike(&self, other: &Ticket) -> bool {
        let carried = |ticket: &Ticket| {
            let terms = (ticket.source, ticket.serial, ticket.protocol, ticket.room);
            (terms, ticket.cut, ticket.manifest)
        };
        carried(self) == carried(other)
    }

    /// The identifier of the files in hexadecimal digits: the first 8 octets of the manifest's digest.
    pub fn name(&self) -> String {
        hex(&self.manifest[..8])
    }

    /// Makes and signs a ticket for the encoded `manifest`.
    pub fn sign(
        source: u16,
        (protocol, room): (Protocol, u8),
        cut: Cut,
        manifest: &[u8],
        validity: Validity,
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
            validity,
            withdrawn: None,
            signature: [0; 64],
            id: 0,
        };
        ticket.id = ticket.digest();
        ticket.signature = key.sign(&ticket.signed());
        ticket
    }

    /// The same ticket, taken back: receivers end the transfer and say why.
    pub fn withdraw(&self, why: Withdrawal, key: &SignKey) -> Ticket {
        let mut ticket = *self;
        ticket.withdrawn = Some(why);
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
        [SIGNED, &self.body()].concat()
    }

    /// The encoded ticket without its signature.
    fn body(&self) -> Vec<u8> {
        let mut body = self.encode().to_vec();
        body.truncate(TICKET - 64);
        body
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
        octets.extend_from_slice(&self.validity.signed.to_be_bytes());
        octets.extend_from_slice(&self.validity.until.to_be_bytes());
        octets.push(self.withdrawn.map_or(0, Withdrawal::code));
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
        let mut ticket = Ticket {
            source,
            serial,
            protocol,
            room,
            cut: Cut { len, k, payload },
            manifest_len: u32::from_be_bytes(rest.take()?),
            manifest: rest.take()?,
            validity: Validity {
                signed: u64::from_be_bytes(rest.take()?),
                until: u64::from_be_bytes(rest.take()?),
            },
            withdrawn: Withdrawal::of(rest.take::<1>()?[0]),
            signature: rest.take()?,
            id: 0,
        };
        ticket.id = ticket.digest();
        let digests = u64::from(ticket.cut.batches()) * BATCH as u64;
        let possible = (1..=chappe_pacifier::K_MAX).contains(&usize::from(k))
            && payload > 0
            && (1..=32).contains(&room)
            && ticket.manifest_len <= MANIFEST_MAX
            && digests < u64::from(ticket.manifest_len);
        possible.then_some(ticket)
    }
}

impl Manifest {
    /// A manifest of these files and folders, cut into batches with these digests and rolling checksums.
    pub(crate) fn new(files: Vec<Entry>, batches: Vec<(Digest, u32)>) -> Manifest {
        let (batches, sums) = batches.into_iter().unzip();
        let starts = files.iter().scan(0u64, |sum, entry| {
            let start = *sum;
            *sum = sum.saturating_add(entry.size);
            Some(start)
        });
        Manifest {
            starts: starts.collect(),
            files,
            batches,
            sums,
        }
    }

    /// The rolling checksum of a batch.
    pub(crate) fn sum(&self, batch: u32) -> u32 {
        self.sums.get(batch as usize).copied().unwrap_or_default()
    }

    /// The files and folders, in the order in which the files are concatenated.
    pub fn files(&self) -> &[Entry] {
        &self.files
    }

    /// The digest of each batch.
    pub fn batches(&self) -> &[Digest] {
        &self.batches
    }

    /// The octets of file number `file` among those of the transfer.
    pub fn range(&self, file: usize) -> Range<u64> {
        let (start, size) = (self.starts[file], self.files[file].size);
        start..start.saturating_add(size)
    }

    /// Encodes the manifest. Fails if there are too many files or batches, or a name is not allowed.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let too_much = |what: &str| Error::input(what, "send it in several transfers");
        if self.files.len() > FILES_MAX {
            let what = format!("more than {FILES_MAX} files and folders for one transfer");
            return Err(too_much(&what));
        }
        let mut octets = MANIFEST_MAGIC.to_vec();
        octets.extend_from_slice(&(self.files.len() as u32).to_be_bytes());
        for entry in &self.files {
            check_path(&entry.name)?;
            entry.encode(&mut octets);
        }
        octets.extend(self.batches.iter().flatten());
        octets.extend(self.sums.iter().flat_map(|sum| sum.to_be_bytes()));
        if octets.len() > MANIFEST_MAX as usize {
            return Err(too_much("too many octets for one transfer"));
        }
        Ok(octets)
    }

    /// Decodes the manifest of a transfer that is cut as `cut`. Fails if a name leads outside the folder or occurs twice, if
    /// something is in no folder of the manifest, or if the sizes do not add up.
    pub fn decode(octets: &[u8], cut: &Cut) -> Result<Manifest> {
        let torn = || Error::failed("the manifest is of another version", "update chappe");
        let mut rest = Reader(octets);
        if rest.take() != Some(*MANIFEST_MAGIC) {
            return Err(torn());
        }
        let count = u32::from_be_bytes(rest.take().ok_or_else(torn)?);
        if count as usize > FILES_MAX {
            let what =
                format!("the manifest has {count} entries, more than the limit of {FILES_MAX}");
            return Err(Error::failed(what, ""));
        }
        let mut files: Vec<Entry> = Vec::new();
        let mut sum = 0u64;
        for _ in 0..count {
            let entry = rest.entry().ok_or_else(torn)?;
            sum = sum.saturating_add(entry.size);
            files.push(entry);
        }
        check_tree(&files)?;
        let count = cut.batches() as usize;
        let (digests, sums) = rest.0.split_at_checked(count * 32).ok_or_else(torn)?;
        let (digests, more) = digests.as_chunks::<32>();
        let (sums, torn_sums) = sums.as_chunks::<4>();
        if !more.is_empty() || !torn_sums.is_empty() || sums.len() != count {
            return Err(torn());
        }
        let sums = sums.iter().map(|sum| u32::from_be_bytes(*sum));
        let batches: Vec<(Digest, u32)> = digests.iter().copied().zip(sums).collect();
        if sum != cut.len || batches.len() != cut.batches() as usize {
            let what = "the sizes in the manifest do not add up to the size of the transfer";
            return Err(Error::failed(what, ""));
        }
        Ok(Manifest::new(files, batches))
    }

    /// The files that contain the octets `range` of the transfer, with the offset in each.
    pub fn places(&self, range: Range<u64>) -> impl Iterator<Item = Place> + '_ {
        // The last entry that begins at the start or before it: those of size 0 before it contain nothing.
        let first = self.starts.partition_point(|start| *start <= range.start);
        let first = first.saturating_sub(1);
        let end = range.end;
        let reached = (first..self.files.len()).take_while(move |file| self.starts[*file] < end);
        reached.filter_map(move |file| {
            let here = self.range(file);
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

impl Entry {
    fn encode(&self, octets: &mut Vec<u8>) {
        let folder = match self.kind {
            Kind::File => 0,
            Kind::Folder => IS_FOLDER,
        };
        let mode = self.mode & PERMISSIONS | folder;
        octets.extend_from_slice(&mode.to_be_bytes());
        octets.extend_from_slice(&self.modified.to_be_bytes());
        octets.extend_from_slice(&(self.name.len() as u16).to_be_bytes());
        octets.extend_from_slice(self.name.as_bytes());
        if self.kind == Kind::File {
            octets.extend_from_slice(&self.size.to_be_bytes());
            octets.extend_from_slice(&self.digest);
        }
    }

    /// The path of the folder that it is in, and its name there.
    pub fn split(&self) -> (&str, &str) {
        self.name.rsplit_once('/').unwrap_or(("", &self.name))
    }

    /// The first name of its path.
    pub fn top(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
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

/// Rejects paths that could lead outside the receiver's folder: every part must be a plain name.
pub fn check_path(path: &str) -> Result<()> {
    if path.len() > PATH_MAX {
        let short: String = path.chars().take(60).collect();
        let what = format!("the path {short:?}... has more than {PATH_MAX} octets");
        return Err(Error::input(what, "send a folder further down"));
    }
    path.split('/').try_for_each(check_name)
}

/// Rejects entries with one name, and entries in something that is not a folder of the manifest before them.
fn check_tree(files: &[Entry]) -> Result<()> {
    let mut names = BTreeSet::new();
    let mut folders = BTreeSet::from([""]);
    for entry in files {
        check_path(&entry.name)?;
        let (above, _) = entry.split();
        if !folders.contains(above) {
            let what = format!("{:?} is in no folder of the manifest", entry.name);
            return Err(Error::failed(what, ""));
        }
        if !names.insert(entry.name.as_str()) {
            let what = format!("the manifest contains the name {:?} twice", entry.name);
            return Err(Error::failed(what, ""));
        }
        if entry.kind == Kind::Folder {
            folders.insert(&entry.name);
        }
    }
    Ok(())
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
        let mode = u16::from_be_bytes(self.take()?);
        let modified = i64::from_be_bytes(self.take()?);
        let length = usize::from(u16::from_be_bytes(self.take()?));
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        let (kind, size, digest) = match mode & IS_FOLDER {
            0 => (Kind::File, u64::from_be_bytes(self.take()?), self.take()?),
            _ => (Kind::Folder, 0, [0; 32]),
        };
        let mode = mode & PERMISSIONS;
        Some(Entry {
            name,
            kind,
            mode,
            modified,
            size,
            digest,
        })
    }
}
