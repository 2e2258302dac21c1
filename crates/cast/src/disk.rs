//! Files on disk: files being sent, and files being received.
//!
//! A receiver keeps a transfer in `DIR/.chappe-cast/NAME/`: the files under temporary names at their final size, and a map
//! of the batches written. After a crash it reads every batch in the map again and compares its digest. Batches that the
//! disk has lost, or never had, are fetched again. So the order in which data reach the disk does not matter. A file gets
//! its final name, by an atomic rename, after its digest has been checked and it is on the disk.

mod shelf;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use chappe_pacifier::Object;

use crate::error::{Error, Result};
use crate::manifest::{Cut, Digest, Entry, FOLDER, Manifest, Ticket, check_name};
use crate::reason::Reason;
use shelf::Shelf;

/// The map of batches, in the folder of a transfer.
const MAP: &str = "batches";

/// The files of a transfer that this host sends.
#[derive(Debug)]
pub struct Sent {
    manifest: Manifest,
    cut: Cut,
    /// Only the link's thread reads; the lock satisfies `Sync`, which [`Object`] needs.
    files: Mutex<Shelf>,
    changed: AtomicBool,
}

impl Sent {
    /// Opens the files and builds their manifest, which reads all of them once. `k` is packets per batch, `payload` octets per
    /// packet. Fails if a file cannot be read, or if two have the same name.
    pub fn open(paths: &[PathBuf], k: u8, payload: u16) -> Result<Sent> {
        let mut files = Shelf::new(|path| File::open(path));
        let mut entries: Vec<Entry> = Vec::new();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| {
                let what = format!("the name of {} is not valid UTF-8", path.display());
                Error::input(what, "rename the file")
            })?;
            check_name(name)?;
            if entries.iter().any(|entry| entry.name == name) {
                let what = format!("two of the files have the name {name:?}");
                return Err(Error::input(
                    what,
                    "rename one of them: receivers put all files into one folder",
                ));
            }
            let (file, about) = Sent::open_one(path)?;
            entries.push(Entry {
                name: name.into(),
                size: about.len(),
                digest: [0; 32],
            });
            files.push(path.clone(), file);
        }
        let len = entries.iter().map(|entry| entry.size).sum();
        let mut sent = Sent {
            manifest: Manifest {
                files: entries,
                batches: Vec::new(),
            },
            cut: Cut { len, k, payload },
            files: Mutex::new(files),
            changed: AtomicBool::new(false),
        };
        sent.digest()?;
        Ok(sent)
    }

    /// Opens one file. Fails if it is not a regular file or cannot be read.
    pub fn open_one(path: &Path) -> Result<(File, fs::Metadata)> {
        let unreadable =
            |error: io::Error| Error::input(format!("cannot read {}: {error}", path.display()), "");
        let no_file = |about: &fs::Metadata| {
            let what = format!("{} is not a file", path.display());
            let todo = match about.is_dir() {
                true => "pack the folder into an archive (`tar`) and send that",
                false => "send regular files only",
            };
            Error::input(what, todo)
        };
        // Checked before opening: opening a pipe would block until something writes into it.
        let about = fs::metadata(path).map_err(unreadable)?;
        if !about.is_file() {
            return Err(no_file(&about));
        }
        let file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        match about.is_file() {
            true => Ok((file, about)),
            false => Err(no_file(&about)),
        }
    }

    fn digest(&mut self) -> Result<()> {
        let mut wholes = vec![blake3::Hasher::new(); self.manifest.files.len()];
        let mut buffer = vec![0; self.cut.batch_len() as usize];
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        for batch in 0..self.cut.batches() {
            let range = self.cut.range(batch);
            let octets = &mut buffer[..(range.end - range.start) as usize];
            for place in self.manifest.places(range) {
                let part = &mut octets[place.within];
                let read = files
                    .file(place.file)
                    .and_then(|file| file.read_exact_at(part, place.offset));
                read.map_err(|error| {
                    let path = files.path(place.file).display();
                    Error::input(format!("cannot read {path}: {error}"), "")
                })?;
                wholes[place.file].update(part);
            }
            self.manifest.batches.push(*blake3::hash(octets).as_bytes());
        }
        for (entry, whole) in self.manifest.files.iter_mut().zip(wholes) {
            entry.digest = *whole.finalize().as_bytes();
        }
        Ok(())
    }

    /// The manifest of the files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How the files are cut into batches.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Whether a file has changed since its digest was computed. Then the transfer must end.
    pub fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Object for Sent {
    fn size(&self) -> usize {
        self.cut.len as usize
    }

    fn read(&self, start: usize, into: &mut [u8]) -> bool {
        let range = start as u64..(start + into.len()) as u64;
        let batch = (range.start / self.cut.batch_len()) as usize;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self.manifest.places(range).all(|place| {
            let part = &mut into[place.within];
            let file = files.file(place.file);
            file.and_then(|file| file.read_exact_at(part, place.offset))
                .is_ok()
        });
        let right = read
            && self
                .manifest
                .batches
                .get(batch)
                .is_some_and(|digest| blake3::hash(into) == *digest);
        if !right {
            self.changed.store(true, Ordering::Relaxed);
        }
        right
    }
}

/// The files of a transfer that this host receives.
#[derive(Debug)]
pub struct Incoming {
    folder: PathBuf,
    place: PathBuf,
    manifest: Manifest,
    cut: Cut,
    parts: Shelf,
    map: File,
    held: Vec<bool>,
    octets: u64,
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

impl Incoming {
    /// Opens or creates the place of a transfer in `folder`, reserves disk space, and checks which batches are there. Fails if
    /// a file of the same name exists (unless `overwrite`), or if there is no room.
    pub fn open(
        folder: &Path,
        ticket: &Ticket,
        manifest: Manifest,
        overwrite: bool,
    ) -> Result<Incoming> {
        for entry in &manifest.files {
            check_name(&entry.name)?;
            check_target(folder, entry, overwrite)?;
        }
        let place = folder.join(FOLDER).join(ticket.name());
        make_place(folder, &place)?;
        let failed = |what: &str| {
            let what = format!("cannot {what} in {}", place.display());
            move |error: io::Error| failure(what, &error)
        };
        let mut parts = Shelf::new(reopen_part);
        for (number, entry) in manifest.files.iter().enumerate() {
            let path = place.join(format!("{number}.part"));
            let part = open_part(&path).map_err(failed("make a file"))?;
            let len = part.metadata().map_err(failed("read"))?.len();
            if len != entry.size {
                part.set_len(entry.size).map_err(failed("make a file"))?;
            }
            chappe_sys::reserve(&part, entry.size).map_err(|error| {
                let what = format!(
                    "no room for {:?} ({} bytes) in {}: {error}",
                    entry.name,
                    entry.size,
                    folder.display()
                );
                let todo = "free some space and start again; received data are kept";
                Error::environment(what, todo).because(Reason::NoRoom)
            })?;
            parts.push(path, part);
        }
        let map = open_part(&place.join(MAP)).map_err(failed("make a file"))?;
        let octets = manifest.batches.len().div_ceil(8) as u64;
        chappe_sys::reserve(&map, octets).map_err(failed("make a file"))?;
        let cut = ticket.cut;
        let mut incoming = Incoming {
            folder: folder.to_owned(),
            place,
            held: vec![false; manifest.batches.len()],
            manifest,
            cut,
            parts,
            map,
            octets: 0,
            dirty: BTreeSet::new(),
        };
        incoming
            .resume()
            .map_err(|error| failure("cannot read the data received before".into(), &error))?;
        Ok(incoming)
    }

    /// Marks the batches of the map whose digests are right.
    fn resume(&mut self) -> io::Result<()> {
        let mut map = Vec::new();
        self.map.read_to_end(&mut map)?;
        self.map.set_len(self.held.len().div_ceil(8) as u64)?;
        let mut buffer = vec![0; self.cut.batch_len() as usize];
        for batch in 0..self.held.len() {
            let marked = map
                .get(batch / 8)
                .is_some_and(|octet| octet >> (batch % 8) & 1 == 1);
            if !marked {
                continue;
            }
            let range = self.cut.range(batch as u32);
            let octets = &mut buffer[..(range.end - range.start) as usize];
            let mut read = true;
            for place in self.manifest.places(range) {
                let part = &mut octets[place.within];
                let file = self.parts.file(place.file)?;
                read &= file.read_exact_at(part, place.offset).is_ok();
            }
            if read && blake3::hash(octets) == self.manifest.batches[batch] {
                self.held[batch] = true;
                self.octets += octets.len() as u64;
            }
        }
        Ok(())
    }

    /// Writes a batch if its digest is the one in the manifest.
    pub fn put(&mut self, batch: u32, octets: &[u8]) -> Result<Put> {
        let index = batch as usize;
        let digest: Option<&Digest> = self.manifest.batches.get(index);
        if digest.is_none_or(|digest| blake3::hash(octets) != *digest) {
            return Ok(Put::Polluted);
        }
        if self.held[index] {
            return Ok(Put::Kept);
        }
        let failed = |error: io::Error| failure("cannot write received data".into(), &error);
        for place in self.manifest.places(self.cut.range(batch)) {
            let part = &octets[place.within];
            let file = self.parts.file(place.file).map_err(failed)?;
            file.write_all_at(part, place.offset).map_err(failed)?;
            self.dirty.insert(place.file);
        }
        // The order of data and map is free: `resume` checks the digest of every marked batch.
        self.held[index] = true;
        self.octets += octets.len() as u64;
        let first = index / 8 * 8;
        let eight = self.held[first..].iter().take(8).enumerate();
        let octet = eight.fold(0u8, |octet, (bit, held)| octet | u8::from(*held) << bit);
        self.map
            .write_all_at(&[octet], (index / 8) as u64)
            .map_err(failed)?;
        Ok(Put::Kept)
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

    /// Whether every batch has been received.
    pub fn is_whole(&self) -> bool {
        self.held.iter().all(|held| *held)
    }

    /// The files in the manifest.
    pub fn files(&self) -> &[Entry] {
        &self.manifest.files
    }

    /// Starts syncing changed data to the disk on a separate thread.
    pub fn flush(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        if dirty.is_empty() {
            return;
        }
        let path = |number: usize| self.parts.path(number).to_owned();
        let mut paths: Vec<PathBuf> = dirty.into_iter().map(path).collect();
        paths.push(self.place.join(MAP));
        // An error shows again in `finish`, which reports it.
        let sync = |path: PathBuf| reopen_part(&path).and_then(|file| file.sync_data());
        std::thread::spawn(move || paths.into_iter().for_each(|path| drop(sync(path))));
    }

    /// Checks the digest of every file, syncs it to the disk and gives it its final name. Removes the transfer's folder.
    /// Returns the paths of the files.
    pub fn finish(mut self) -> Result<Vec<PathBuf>> {
        let folder = self.folder.display().to_string();
        let failed = |what: &str, name: &str| {
            let what = format!("cannot {what} {name:?} in {folder}");
            move |error: io::Error| failure(what, &error)
        };
        for (number, entry) in self.manifest.files.iter().enumerate() {
            let part = self.parts.file(number);
            let part = part.map_err(failed("read", &entry.name))?;
            let mut hasher = blake3::Hasher::new();
            let mut buffer = vec![0; 1 << 16];
            let mut at = 0;
            while at < entry.size {
                let len = (entry.size - at).min(buffer.len() as u64) as usize;
                part.read_exact_at(&mut buffer[..len], at)
                    .map_err(failed("read", &entry.name))?;
                hasher.update(&buffer[..len]);
                at += len as u64;
            }
            if hasher.finalize() != entry.digest {
                // Every batch was right when it was written, so the disk or another program has changed it.
                let what = format!("{:?} changed on the disk while it was received", entry.name);
                let _ = fs::remove_file(self.place.join(MAP));
                let error = Error::failed(what, "start again to receive it anew");
                return Err(error.because(Reason::Changed));
            }
            // Before the rename, so that a crash never leaves a final name on incomplete data.
            part.sync_all().map_err(failed("write", &entry.name))?;
        }
        let mut paths = Vec::new();
        for (number, entry) in self.manifest.files.iter().enumerate() {
            let path = self.folder.join(&entry.name);
            fs::rename(self.parts.path(number), &path).map_err(failed("name", &entry.name))?;
            paths.push(path);
        }
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed("write", "."))?;
        let _ = fs::remove_dir_all(&self.place);
        // Fails, as intended, if another transfer is in it.
        let _ = fs::remove_dir(self.folder.join(FOLDER));
        Ok(paths)
    }
}

/// Whether `folder` already has all files of a manifest, with the right digests.
pub fn is_there(folder: &Path, manifest: &Manifest) -> bool {
    let same = |entry: &Entry| -> io::Result<bool> {
        let path = folder.join(&entry.name);
        let about = path.symlink_metadata()?;
        if !about.is_file() || about.len() != entry.size {
            return Ok(false);
        }
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut File::open(path)?, &mut hasher)?;
        Ok(hasher.finalize() == entry.digest)
    };
    manifest
        .files
        .iter()
        .all(|entry| same(entry).unwrap_or(false))
}

/// Rejects a name that exists already: a folder always, a file unless `overwrite` is set.
fn check_target(folder: &Path, entry: &Entry, overwrite: bool) -> Result<()> {
    let path = folder.join(&entry.name);
    let Ok(about) = path.symlink_metadata() else {
        return Ok(());
    };
    if about.is_dir() {
        let what = format!(
            "{} is a folder, but a file of this name is to be received",
            path.display()
        );
        let error = Error::input(what, "rename it, or receive into another folder");
        return Err(error.because(Reason::NameTaken));
    }
    if overwrite {
        return Ok(());
    }
    let what = format!(
        "{} exists with other contents than the file to be received",
        path.display()
    );
    Err(Error::input(what, "use --overwrite to replace it").because(Reason::NameTaken))
}

/// Creates the folder of a transfer. A symbolic link in its place is not followed.
fn make_place(folder: &Path, place: &Path) -> Result<()> {
    for path in [folder.join(FOLDER), place.to_owned()] {
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        match made {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let real = path.symlink_metadata().is_ok_and(|about| about.is_dir());
                if !real {
                    let what = format!("{} is not a folder", path.display());
                    return Err(Error::input(what, "rename or remove it").because(Reason::Disk));
                }
            }
            Err(error) => {
                return Err(failure(format!("cannot create {}", path.display()), &error));
            }
        }
    }
    Ok(())
}

/// Opens or creates a file of a transfer.
fn open_part(path: &Path) -> io::Result<File> {
    open_for_both(path, true)
}

/// Opens an existing file of a transfer. A new one would be empty although its batches count as received.
fn reopen_part(path: &Path) -> io::Result<File> {
    open_for_both(path, false)
}

fn open_for_both(path: &Path, create: bool) -> io::Result<File> {
    if path.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn failure(what: String, error: &io::Error) -> Error {
    let (todo, reason) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "free some space and start again; received data are kept",
            Reason::NoRoom,
        ),
        io::ErrorKind::PermissionDenied => ("give this user write permission there", Reason::Disk),
        io::ErrorKind::ReadOnlyFilesystem => ("choose a writable folder", Reason::Disk),
        _ => ("", Reason::Disk),
    };
    Error::environment(format!("{what}: {error}"), todo).because(reason)
}
