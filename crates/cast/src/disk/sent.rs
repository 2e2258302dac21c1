//! The files of a transfer that this host sends.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chappe_pacifier::Object;

use super::shelf::Shelf;
use super::tree::{self, Source};
use crate::error::Result;
use crate::manifest::{Cut, Digest, Entry, Kind, Manifest};
use crate::reason::Withdrawal;
use crate::rolling::Rolling;

/// The files of a transfer that this host sends.
#[derive(Debug)]
pub struct Sent {
    manifest: Manifest,
    cut: Cut,
    paths: Arc<Vec<PathBuf>>,
    /// Only the link's thread reads; the lock satisfies `Sync`, which [`Object`] needs.
    files: Mutex<Shelf>,
    fault: Mutex<Option<Fault>>,
}

/// Why files can no longer be sent as they were announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason that receivers get.
    pub why: Withdrawal,
    /// The problem, as a sentence.
    pub what: String,
}

impl Sent {
    /// Opens the files, and the folders with everything in them, and builds their manifest, which reads all of them once. `k`
    /// is packets per batch, `payload` octets per packet. Fails if something cannot be read, is no regular file or folder, or if
    /// two have the same name.
    pub fn open(paths: &[PathBuf], k: u8, payload: u16) -> Result<Sent> {
        let sources = tree::list(paths)?;
        let len = sources.iter().map(|source| source.entry.size).sum();
        let cut = Cut { len, k, payload };
        let split = |Source { path, entry }| (path, entry);
        let (paths, mut entries): (Vec<PathBuf>, Vec<Entry>) =
            sources.into_iter().map(split).unzip();
        let paths = Arc::new(paths);
        let shelved = paths.clone();
        let mut files = Shelf::new(move |number| File::open(&shelved[number]));
        let batches = digest(&mut entries, &cut, &paths, &mut files)?;
        Ok(Sent {
            manifest: Manifest::new(entries, batches),
            cut,
            paths,
            files: Mutex::new(files),
            fault: Mutex::new(None),
        })
    }

    /// Looks at a file or folder to be sent, before anything else is begun. Fails if it is neither, or cannot be read.
    pub fn check(path: &Path) -> Result<()> {
        tree::check(path).map(drop)
    }

    /// The manifest of the files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How the files are cut into batches.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// What has happened to a file since its digest was computed, if anything. Then the transfer must end.
    pub fn fault(&self) -> Option<Fault> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.clone()
    }

    /// Reads octets of the transfer, or says which file has failed.
    fn fill(&self, start: u64, into: &mut [u8]) -> std::result::Result<(), Fault> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for place in self.manifest.places(start..start + into.len() as u64) {
            let part = &mut into[place.within];
            let file = files.file(place.file);
            let read = file.and_then(|file| file.read_exact_at(part, place.offset));
            read.map_err(|error| self.fault_of(place.file, Some(&error)))?;
        }
        let batch = (start / self.cut.batch_len().max(1)) as usize;
        let expected = self.manifest.batches().get(batch);
        if expected.is_some_and(|digest| blake3::hash(into) == *digest) {
            return Ok(());
        }
        let mut places = self.manifest.places(start..start + into.len() as u64);
        let first = places.next().map_or(0, |place| place.file);
        let other = |file: &usize| {
            let about = files.file(*file).and_then(File::metadata);
            let entry = &self.manifest.files()[*file];
            about.is_ok_and(|about| {
                let seconds = entry.modified.div_euclid(1_000_000_000);
                (about.len(), about.mtime()) != (entry.size, seconds)
            })
        };
        let changed = [first]
            .into_iter()
            .chain(places.map(|place| place.file))
            .find(other);
        Err(self.fault_of(changed.unwrap_or(first), None))
    }

    /// The fault of a file that has other contents, or cannot be read.
    fn fault_of(&self, file: usize, error: Option<&io::Error>) -> Fault {
        let path = self.paths[file].display();
        match error {
            Some(error) if error.kind() != io::ErrorKind::UnexpectedEof => Fault {
                why: Withdrawal::Unreadable,
                what: format!("{path} can no longer be read: {error}"),
            },
            _ => Fault {
                why: Withdrawal::Changed,
                what: format!("{path} changed while it was being sent"),
            },
        }
    }
}

/// Computes the digests of the files, which it enters, and the digests and rolling checksums of the batches.
fn digest(
    entries: &mut [Entry],
    cut: &Cut,
    paths: &[PathBuf],
    files: &mut Shelf,
) -> Result<Vec<(Digest, u32)>> {
    let mut batches = Vec::new();
    let mut batch = blake3::Hasher::new();
    let mut rolling = Rolling::new(cut.batch_len() as usize);
    let mut room = cut.batch_len();
    let mut buffer = vec![0; 1 << 16];
    for (number, entry) in entries.iter_mut().enumerate() {
        if entry.kind == Kind::Folder {
            continue;
        }
        let mut whole = blake3::Hasher::new();
        let mut at = 0;
        while at < entry.size {
            let len = room.min(entry.size - at).min(buffer.len() as u64);
            let octets = &mut buffer[..len as usize];
            let file = files.file(number);
            let read = file.and_then(|file| file.read_exact_at(octets, at));
            read.map_err(|error| tree::unreadable(&paths[number], &error))?;
            whole.update(octets);
            batch.update(octets);
            rolling.extend(octets);
            (at, room) = (at + len, room - len);
            if room == 0 {
                batches.push((*batch.finalize().as_bytes(), rolling.value()));
                (batch, room) = (blake3::Hasher::new(), cut.batch_len());
                rolling.clear();
            }
        }
        entry.digest = *whole.finalize().as_bytes();
    }
    if room < cut.batch_len() {
        batches.push((*batch.finalize().as_bytes(), rolling.value()));
    }
    Ok(batches)
}

impl Object for Sent {
    fn size(&self) -> usize {
        self.cut.len as usize
    }

    fn read(&self, start: usize, into: &mut [u8]) -> bool {
        let Err(fault) = self.fill(start as u64, into) else {
            return true;
        };
        let mut known = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert(fault);
        false
    }
}
