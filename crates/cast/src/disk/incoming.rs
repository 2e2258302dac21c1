//! The files of a transfer that this host receives, until all have arrived.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::digests::{Digests, STRETCH, Stretch};
use super::part::{part_name, read_padded};
use super::place::{self, MAP, Place};
use super::shelf::Shelf;
use super::target::{Fate, Taken, Target};
use super::versions::{Versions, check_expiry, unix_ms};
use super::{Policy, failure, sync};
use crate::error::{Error, Result};
use crate::manifest::{Cut, Digest, Entry, Kind, Manifest, Ticket};
use crate::reason::Reason;

/// The files of a transfer that this host receives.
#[derive(Debug)]
pub struct Incoming {
    pub(super) ticket: Ticket,
    pub(super) manifest: Manifest,
    pub(super) policy: Policy,
    pub(super) target: Target,
    /// What becomes of each entry of the manifest.
    pub(super) fates: Vec<Fate>,
    /// Where data are collected; `None` if nothing is lacking.
    pub(super) store: Option<Store>,
    pub(super) cut: Cut,
    held: Vec<bool>,
    octets: u64,
    /// The first batch that is lacking, as far as was looked, and the octets before it that are being digested.
    front: (usize, u64),
}

/// Where the data of a transfer are collected.
#[derive(Debug)]
pub(super) struct Store {
    pub place: Place,
    pub parts: Shelf,
    /// Computes the digests of long files meanwhile, once there is something to read.
    pub digests: Option<Digests>,
    /// Files written to since the last flush.
    dirty: BTreeSet<usize>,
}

/// The result of [`Incoming::put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The batch is right and was written.
    Kept,
    /// The digest is wrong: a member has polluted the batch.
    Polluted,
}

/// A run of zeros of this length is not written, since new parts of files read as zeros: the usual block of a file system,
/// below which nothing would be saved.
const HOLE: usize = 4096;

impl Incoming {
    /// Looks which files of a transfer are in `folder` already, opens or creates the place of those that are not, and checks
    /// which of their batches are there. Fails if nothing can be received, because all that is lacking has names that are taken,
    /// if the ticket is too old, or if there is no room.
    pub fn open(
        folder: &Path,
        ticket: &Ticket,
        manifest: Manifest,
        policy: &Policy,
    ) -> Result<Incoming> {
        let unreadable = |error| failure(format!("cannot open {}", folder.display()), &error);
        let mut target = Target::open(folder).map_err(unreadable)?;
        let mut fates = target.survey(&manifest, policy.overwrite);
        if policy.whole {
            target.refuse_parts(&manifest, &mut fates, policy.overwrite);
        }
        let mut incoming = Incoming {
            cut: ticket.cut,
            held: vec![false; manifest.batches().len()],
            octets: 0,
            front: (0, 0),
            store: None,
            ticket: *ticket,
            policy: policy.clone(),
            target,
            manifest,
            fates,
        };
        if !incoming.fates.contains(&Fate::Wanted) {
            incoming.mark_unwanted();
            if let Some(error) = incoming.refused() {
                return Err(error);
            }
            // A crash may have left it after the last name was given.
            place::remove_finished(folder, ticket);
            return Ok(incoming);
        }
        check_expiry(ticket, unix_ms())?;
        place::make_ours(&incoming.target.root, folder)?;
        Versions::lock(folder)?.check(ticket, &incoming.manifest, policy)?;
        incoming.prepare(folder)?;
        let failed = |error| failure("cannot read the data received before".into(), &error);
        incoming.resume().map_err(failed)?;
        incoming.reuse()?;
        place::remove_superseded(folder, ticket, &incoming.manifest, policy.key.as_ref());
        Ok(incoming)
    }

    /// Opens the place of the data, and checks that there is room for the rest of them.
    fn prepare(&mut self, folder: &Path) -> Result<()> {
        let place = Place::open(&self.target.root, folder, &self.ticket, &self.manifest)?;
        let mut lacking = 0u64;
        for (number, entry) in self.manifest.files().iter().enumerate() {
            if self.fates[number] == Fate::Wanted && entry.size > 0 {
                let part = place.path.join(part_name(number));
                // Parts have holes where data are lacking.
                let there = part
                    .symlink_metadata()
                    .map_or(0, |about| about.blocks() * 512);
                lacking = lacking.saturating_add(entry.size.saturating_sub(there));
            }
        }
        let free = place.folder.free().unwrap_or(u64::MAX);
        if lacking > free {
            let what = format!(
                "no room for {lacking} more bytes in {}: {free} are free",
                folder.display()
            );
            let todo = "free some space and start again; received data are kept";
            return Err(Error::environment(what, todo).because(Reason::NoRoom));
        }
        let inside = chappe_sys::Folder::open(&place.path);
        let inside = inside.map_err(|error| failure("cannot open the parts".into(), &error))?;
        // Not when data arrive: to make a file waits for the disk's journal, and meanwhile the member would hear nothing.
        let failed = |error| failure("cannot write received data".into(), &error);
        for (number, entry) in self.manifest.files().iter().enumerate() {
            if self.fates[number] != Fate::Present && entry.size > 0 {
                inside.write(&part_name(number)).map_err(failed)?;
            }
        }
        self.store = Some(Store {
            parts: Shelf::new(move |number| inside.write(&part_name(number))),
            place,
            digests: None,
            dirty: BTreeSet::new(),
        });
        Ok(())
    }

    /// Counts the batches as received that have no octet of a wanted file.
    fn mark_unwanted(&mut self) {
        for batch in 0..self.held.len() {
            let range = self.cut.range(batch as u32);
            let mut places = self.manifest.places(range.clone());
            if places.all(|place| self.fates[place.file] != Fate::Wanted) {
                self.held[batch] = true;
                self.octets += range.end - range.start;
            }
        }
    }

    /// Marks the batches that need not be received: those of files that are there, and those of the map whose digests are
    /// right.
    fn resume(&mut self) -> io::Result<()> {
        self.mark_unwanted();
        let mut map = Vec::new();
        if let Some(store) = &mut self.store {
            store.place.map.read_to_end(&mut map)?;
        }
        let mut buffer = vec![0; self.cut.batch_len() as usize];
        for batch in 0..self.held.len() {
            let marked = map
                .get(batch / 8)
                .is_some_and(|octet| octet >> (batch % 8) & 1 == 1);
            if !marked || self.held[batch] {
                continue;
            }
            let range = self.cut.range(batch as u32);
            let octets = &mut buffer[..(range.end - range.start) as usize];
            let read = self.read_back(batch as u32, octets).is_ok();
            if read && blake3::hash(octets) == self.manifest.batches()[batch] {
                self.held[batch] = true;
                self.octets += octets.len() as u64;
            }
        }
        Ok(())
    }

    /// Reads a batch from the parts and from the files that are there.
    fn read_back(&mut self, batch: u32, octets: &mut [u8]) -> io::Result<()> {
        let Some(store) = &mut self.store else {
            return Err(io::ErrorKind::NotFound.into());
        };
        for place in self.manifest.places(self.cut.range(batch)) {
            let part = &mut octets[place.within];
            match self.fates[place.file] {
                Fate::Wanted | Fate::Refused(_) => {
                    read_padded(store.parts.file(place.file)?, part, place.offset)?;
                }
                Fate::Present => {
                    let file = self.target.read(&self.manifest.files()[place.file])?;
                    file.read_exact_at(part, place.offset)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a batch if its digest is the one in the manifest.
    pub fn put(&mut self, batch: u32, octets: &[u8]) -> Result<Put> {
        let index = batch as usize;
        let digest: Option<&Digest> = self.manifest.batches().get(index);
        if digest.is_none_or(|digest| blake3::hash(octets) != *digest) {
            return Ok(Put::Polluted);
        }
        let Some(store) = self.store.as_mut().filter(|_| !self.held[index]) else {
            return Ok(Put::Kept);
        };
        let failed = |error: io::Error| failure("cannot write received data".into(), &error);
        for place in self.manifest.places(self.cut.range(batch)) {
            let part = &octets[place.within];
            let hole = part.len() >= HOLE && part.iter().all(|octet| *octet == 0);
            // Those of refused files are stored as well, or the batch would be lost with the next start.
            if self.fates[place.file] == Fate::Present || hole {
                continue;
            }
            let file = store.parts.file(place.file).map_err(failed)?;
            file.write_all_at(part, place.offset).map_err(failed)?;
            store.dirty.insert(place.file);
        }
        // The order of data and map is free: `resume` checks the digest of every marked batch.
        self.held[index] = true;
        self.octets += octets.len() as u64;
        let first = index / 8 * 8;
        let eight = self.held[first..].iter().take(8).enumerate();
        let octet = eight.fold(0u8, |octet, (bit, held)| octet | u8::from(*held) << bit);
        let map = &store.place.map;
        map.write_all_at(&[octet], (index / 8) as u64)
            .map_err(failed)?;
        self.digest_front();
        Ok(Put::Kept)
    }

    /// Lets the digests of long files go on when a further stretch has arrived from the front.
    fn digest_front(&mut self) {
        let (batch, told) = &mut self.front;
        *batch += self.held[*batch..].iter().take_while(|held| **held).count();
        let end = (*batch as u64 * self.cut.batch_len()).min(self.cut.len);
        let Some(store) = self.store.as_mut().filter(|_| end >= *told + STRETCH) else {
            return;
        };
        for place in self.manifest.places(*told..end) {
            let size = self.manifest.files()[place.file].size;
            if self.fates[place.file] != Fate::Wanted || size < STRETCH {
                continue;
            }
            if store.digests.is_none() {
                // Without it everything is read at the end.
                store.digests = Digests::start(&store.place.path).ok();
            }
            if let Some(digests) = &store.digests {
                digests.add(Stretch {
                    file: place.file,
                    end: place.offset + place.within.len() as u64,
                    size,
                });
            }
        }
        *told = end;
    }

    /// Whether a batch has been received.
    pub fn holds(&self, batch: u32) -> bool {
        self.held.get(batch as usize).copied().unwrap_or(false)
    }

    /// For each batch, whether it has been received.
    pub fn held(&self) -> &[bool] {
        &self.held
    }

    /// Octets of the batches received so far.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Octets from the front whose digests are computed, or will be before the end.
    #[cfg(test)]
    pub(super) fn digested(&self) -> u64 {
        self.front.1
    }

    /// Whether every batch has been received.
    pub fn is_whole(&self) -> bool {
        // Asked at each wake-up, so nothing is counted here.
        self.octets == self.cut.len
    }

    /// Whether all files were there before.
    pub fn was_present(&self) -> bool {
        self.store.is_none()
    }

    /// The files and folders in the manifest.
    pub fn files(&self) -> &[Entry] {
        self.manifest.files()
    }

    /// The problem with the names that are taken, if any are.
    pub fn refused(&self) -> Option<Error> {
        let taken = self.manifest.files().iter().zip(&self.fates);
        let mut taken = taken.filter_map(|(entry, fate)| match fate {
            Fate::Refused(taken) => Some((entry, *taken)),
            _ => None,
        });
        let (entry, first) = taken.next()?;
        Some(self.taken(entry, first, taken.count()))
    }

    /// The error for an entry whose name is taken, and `more` others.
    fn taken(&self, entry: &Entry, taken: Taken, more: usize) -> Error {
        let path = self.target.path.join(&entry.name);
        let path = path.display();
        let what = match (taken, entry.kind) {
            (Taken::File, Kind::File) => {
                format!("{path} exists with other contents than the file to be received")
            }
            (Taken::File, Kind::Folder) => {
                format!("{path} exists with other contents than the folder to be received")
            }
            (Taken::Folder, _) => {
                format!("{path} is a folder, but a file of this name is to be received")
            }
            (Taken::NoFolder, _) => {
                format!("{path} is not a folder, but a folder of this name is to be received")
            }
            (Taken::Above, _) => format!("{path} cannot be received: it is not in a folder there"),
        };
        let what = match more {
            0 => what,
            more => format!("{what} (and {more} more names are taken)"),
        };
        let todo = match taken {
            Taken::File => "use --overwrite to replace it",
            _ => "rename it, or receive into another folder",
        };
        Error::input(what, todo).because(Reason::NameTaken)
    }

    /// Starts syncing changed data to the disk on a separate thread.
    pub fn flush(&mut self) {
        let Some(store) = &mut self.store else { return };
        let dirty = std::mem::take(&mut store.dirty);
        let Ok(folder) = chappe_sys::Folder::open(&store.place.path) else {
            return;
        };
        let mut names: Vec<String> = dirty.into_iter().map(part_name).collect();
        if names.is_empty() {
            return;
        }
        names.push(MAP.into());
        // An error shows again in `finish`, which reports it.
        let sync = move || sync::all(&names, |name| folder.read(name)?.sync_data());
        std::thread::spawn(move || drop(sync()));
    }
}
