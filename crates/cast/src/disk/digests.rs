//! Digests of long files, computed and synced to the disk while the files arrive: then little is left to do at the end.
//!
//! A digest is computed from the front, so the octets before the first lacking batch count. They are read back from the parts,
//! on a thread beside the link's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use chappe_sys::Folder;

use super::part::{part_name, read_padded};
use crate::manifest::Digest;

/// Octets that are worth a turn of the thread, and a sync. Shorter files are read at the end.
pub(super) const STRETCH: u64 = 8 << 20;

/// The thread that computes digests.
#[derive(Debug)]
pub(super) struct Digests {
    stretches: Sender<Stretch>,
    ended: JoinHandle<Begun>,
}

/// Octets of a file that have arrived: up to `end`, behind those of the stretch before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub file: usize,
    pub end: u64,
    /// The size of the file.
    pub size: u64,
}

/// What was computed before the end.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Digests of whole files.
    whole: BTreeMap<usize, Digest>,
    /// The file whose front was read.
    front: Option<(usize, Front)>,
}

/// The front of a file: its hasher, and how far it has come.
#[derive(Debug, Default)]
pub(super) struct Front {
    pub hasher: blake3::Hasher,
    pub at: u64,
}

impl Digests {
    /// Starts the thread for the parts in the folder at `path`. Fails if the folder cannot be opened.
    pub fn start(path: &Path) -> io::Result<Digests> {
        let folder = Folder::open(path)?;
        let (stretches, due) = mpsc::channel();
        let ended = thread::spawn(move || compute(&folder, &due));
        Ok(Digests { stretches, ended })
    }

    /// Says that more octets have arrived.
    pub fn add(&self, stretch: Stretch) {
        // If the thread has crashed, the file is read at the end.
        let _ = self.stretches.send(stretch);
    }

    /// Waits until the thread has read all stretches.
    pub fn end(self) -> Begun {
        drop(self.stretches);
        self.ended.join().unwrap_or_default()
    }
}

impl Begun {
    /// The digest of a file, if all of it was read.
    pub fn whole(&self, file: usize) -> Option<Digest> {
        self.whole.get(&file).copied()
    }

    /// The front of a file, empty if nothing was read.
    pub fn front(&mut self, file: usize) -> Front {
        let front = self.front.take_if(|(of, _)| *of == file);
        front.map_or_else(Front::default, |(_, front)| front)
    }
}

impl Front {
    /// Reads the file up to `end`.
    pub fn read(&mut self, part: &File, end: u64, buffer: &mut [u8]) -> io::Result<()> {
        while self.at < end {
            let len = (end - self.at).min(buffer.len() as u64) as usize;
            read_padded(part, &mut buffer[..len], self.at)?;
            self.hasher.update(&buffer[..len]);
            self.at += len as u64;
        }
        Ok(())
    }
}

/// Reads each stretch when it has arrived, and waits until it is on the disk.
fn compute(folder: &Folder, due: &Receiver<Stretch>) -> Begun {
    let mut begun = Begun::default();
    let mut buffer = vec![0; 1 << 16];
    for Stretch { file, end, size } in due {
        // Files come one after the other.
        let mut front = begun.front(file);
        let read = folder.read(&part_name(file)).and_then(|part| {
            front.read(&part, end, &mut buffer)?;
            part.sync_data()
        });
        match read {
            Ok(()) if front.at == size => {
                begun
                    .whole
                    .insert(file, *front.hasher.finalize().as_bytes());
            }
            Ok(()) => begun.front = Some((file, front)),
            // It is read again at the end, which reports the error if it stays.
            Err(_) => {}
        }
    }
    begun
}
