//! The end of a transfer: digests are checked, everything is on the disk, and then the files get their names.
//!
//! A crash at any moment loses nothing. What has its name by then is found there, with its digest, by the next attempt;
//! the rest is still among the parts. No name ever stands for anything but a whole file, since all are given by renaming.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chappe_sys::Folder;

use super::digests::{Begun, Digests};
use super::incoming::{Incoming, Store};
use super::part::part_name;
use super::place::MAP;
use super::target::{Fate, Taken, Target};
use super::versions::Versions;
use super::{failure, sync};
use crate::error::{Error, Result};
use crate::manifest::{Entry, Kind, Manifest};
use crate::reason::Reason;

/// The result of [`Incoming::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The paths of the files that have got their names now.
    pub installed: Vec<PathBuf>,
    /// Why some files have not, because their names are taken. Their data are kept.
    pub refused: Option<Error>,
}

impl Incoming {
    /// Checks the digest of every received file, syncs all to the disk, and gives the files their final names. A name that
    /// something else has got meanwhile is left alone unless files may be overwritten. Removes the place of the transfer,
    /// unless files were refused.
    pub fn finish(mut self) -> Result<Finished> {
        let Some(mut store) = self.store.take() else {
            let (installed, refused) = (Vec::new(), self.refused());
            return Ok(Finished { installed, refused });
        };
        self.seal_parts(&mut store)?;
        self.look_again();
        // Until the end, no other transfer gives names in this folder.
        let mut versions = Versions::lock(&self.target.path)?;
        if let Err(error) = versions.check(&self.ticket, &self.manifest, &self.policy) {
            return self.finish_older(store, error);
        }
        versions.record(&self.ticket, &self.manifest, &self.policy)?;
        let given = match self.policy.whole {
            true => self.give_names_at_once(&store),
            false => self.give_names(&store),
        };
        let what = format!(
            "cannot give the files in {} their names",
            self.target.path.display()
        );
        let installed = given.map_err(|error| naming_failed(what, &error))?;
        drop(versions);
        let refused = self.refused();
        if refused.is_none() {
            store.place.remove();
        }
        Ok(Finished { installed, refused })
    }

    /// Ends a transfer that was signed before one that has been installed meanwhile. It is complete all the same if that one had the
    /// same files, cut otherwise; if not, `error` says that it is older.
    fn finish_older(mut self, store: Store, error: Error) -> Result<Finished> {
        let fates = self.target.survey(&self.manifest, self.policy.overwrite);
        if fates.iter().any(|fate| *fate != Fate::Present) {
            return Err(error);
        }
        store.place.remove();
        let (installed, refused) = (Vec::new(), None);
        Ok(Finished { installed, refused })
    }

    /// Checks the parts, gives them their modes and times, and waits until they are on the disk.
    fn seal_parts(&self, store: &mut Store) -> Result<()> {
        let umask = umask();
        let mut begun = store.digests.take().map(Digests::end).unwrap_or_default();
        let mut sealed = Vec::new();
        for (number, entry) in self.manifest.files().iter().enumerate() {
            if self.fates[number] != Fate::Wanted || entry.kind == Kind::Folder {
                continue;
            }
            let what = format!(
                "cannot store {:?} in {}",
                entry.name,
                self.target.path.display()
            );
            let right = seal(store, number, (entry, &mut begun), umask);
            let right = right.map_err(|error| failure(what, &error))?;
            if !right {
                // Every batch was right when it was written, so the disk or another program has changed it.
                let what = format!("{:?} changed on the disk while it was received", entry.name);
                let _ = fs::remove_file(store.place.path.join(part_name(number)));
                let _ = fs::remove_file(store.place.path.join(MAP));
                let error = Error::failed(what, "start again to receive it anew");
                return Err(error.because(Reason::Changed));
            }
            sealed.push(number);
        }
        // Before the names are given, so that a crash never leaves a final name on incomplete data.
        let folder = &store.place.folder;
        let synced = sync::all(&sealed, |number| {
            folder.read(&part_name(*number))?.sync_all()
        });
        let what = "cannot write received data to the disk".into();
        synced.map_err(|error| failure(what, &error))
    }

    /// Finds out which folders have been moved or removed since the transfer began. If something is to come into them, they are made again,
    /// and what was moved is left alone.
    fn look_again(&mut self) {
        self.target.forget();
        let entries = || self.manifest.files().iter();
        let wanted: BTreeSet<&str> = (entries().zip(&self.fates))
            .filter(|(_, fate)| **fate == Fate::Wanted)
            .map(|(entry, _)| entry.top())
            .collect();
        for (entry, fate) in entries().zip(&mut self.fates) {
            let folder = entry.kind == Kind::Folder && *fate == Fate::Present;
            if folder && wanted.contains(entry.top()) {
                *fate = self.target.fate(entry, self.policy.overwrite);
            }
        }
    }

    /// Gives each file its name, one after the other.
    fn give_names(&mut self, store: &Store) -> io::Result<Vec<PathBuf>> {
        let umask = umask();
        let (mut installed, mut touched, mut made) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (number, entry) in self.manifest.files().iter().enumerate() {
            if self.fates[number] != Fate::Wanted {
                continue;
            }
            let fate = match entry.kind {
                Kind::Folder => make_folder(&mut self.target, entry, umask)?,
                Kind::File => {
                    let name = part_name(number);
                    let from = (&store.place.folder, &name[..]);
                    give_name(&mut self.target, entry, from, self.policy.overwrite)?
                }
            };
            self.fates[number] = fate.unwrap_or(Fate::Present);
            if fate.is_some() {
                continue;
            }
            touched.insert(entry.split().0);
            match entry.kind {
                Kind::Folder => made.push(entry),
                Kind::File => installed.push(self.target.path.join(&entry.name)),
            }
        }
        date_folders(&mut self.target, &made)?;
        sync_folders(&self.target, &touched)?;
        Ok(installed)
    }

    /// Builds the new folders beside the old ones, and gives each its name when everything is in it.
    fn give_names_at_once(&mut self, store: &Store) -> io::Result<Vec<PathBuf>> {
        const STAGE: &str = "whole";
        let path = store.place.path.join(STAGE);
        // What a crash has left. The parts are still there, since the files below are links to them.
        let _ = fs::remove_dir_all(&path);
        store.place.folder.make(STAGE, 0o700)?;
        let mut stage = Target::open(&path)?;
        let tops: BTreeSet<&str> = (self.manifest.files().iter().zip(&self.fates))
            .filter(|(_, fate)| **fate == Fate::Wanted)
            .map(|(entry, _)| entry.top())
            .collect();
        let entries = (&self.manifest, &self.fates[..]);
        build(entries, &tops, (&mut self.target, &mut stage), store)?;
        let mut given = BTreeSet::new();
        for &top in &tops {
            let wins = match self.target.root.adopt(&stage.root, top, top) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if self.policy.overwrite => {
                    self.target.root.exchange(&stage.root, top, top)?;
                    true
                }
                free => free.is_ok(),
            };
            if wins {
                given.insert(top);
            }
        }
        self.target.root.sync()?;
        let mut installed = Vec::new();
        for (number, entry) in self.manifest.files().iter().enumerate() {
            if self.fates[number] != Fate::Wanted {
                continue;
            }
            self.fates[number] = match given.contains(entry.top()) {
                true => Fate::Present,
                false => Fate::Refused(Taken::File),
            };
            if entry.kind == Kind::File && given.contains(entry.top()) {
                installed.push(self.target.path.join(&entry.name));
            }
        }
        let _ = fs::remove_dir_all(&path);
        Ok(installed)
    }
}

impl Target {
    /// With `whole`, what has a name of the transfer is replaced as a whole or not at all.
    pub fn refuse_parts(&self, manifest: &Manifest, fates: &mut [Fate], overwrite: bool) {
        let entries = || manifest.files().iter();
        let mut lacking = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for (entry, fate) in entries().zip(fates.iter()) {
            match fate {
                Fate::Wanted => drop(lacking.insert(entry.top())),
                Fate::Refused(_) => drop(taken.insert(entry.top())),
                Fate::Present => {}
            }
        }
        let there = |top: &str| self.root.look(top).map_or(true, |named| named.is_some());
        for (entry, fate) in entries().zip(fates) {
            let top = entry.top();
            let kept = lacking.contains(top) && !overwrite && there(top);
            if !matches!(fate, Fate::Refused(_)) && (taken.contains(top) || kept) {
                *fate = Fate::Refused(Taken::File);
            }
        }
    }
}

/// Checks the digest of a part, which may have begun, and gives it its size, mode and time. Returns whether the digest is right.
fn seal(
    store: &mut Store,
    number: usize,
    (entry, begun): (&Entry, &mut Begun),
    umask: u32,
) -> io::Result<bool> {
    let part = store.parts.file(number)?;
    let digest = match begun.whole(number) {
        Some(digest) => digest,
        None => {
            let mut front = begun.front(number);
            let mut buffer = vec![0; entry.size.min(1 << 16) as usize];
            front.read(part, entry.size, &mut buffer)?;
            *front.hasher.finalize().as_bytes()
        }
    };
    if digest != entry.digest {
        return Ok(false);
    }
    if part.metadata()?.len() != entry.size {
        part.set_len(entry.size)?;
    }
    // The owner must be able to read it, or it would be received again and again.
    let mode = (u32::from(entry.mode) | 0o400) & !umask;
    part.set_permissions(Permissions::from_mode(mode))?;
    part.set_modified(time(entry.modified))?;
    Ok(true)
}

/// Makes a folder of the transfer; returns its fate if it was not made.
fn make_folder(target: &mut Target, entry: &Entry, umask: u32) -> io::Result<Option<Fate>> {
    let (above, name) = entry.split();
    let Ok(Some(folder)) = target.within(above) else {
        return Ok(Some(Fate::Refused(Taken::Above)));
    };
    // The owner must be able to put files into it.
    let mode = (u32::from(entry.mode) | 0o700) & !umask;
    match folder.make(name, mode) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(Some(target.fate(entry, false)))
        }
        Err(error) => Err(error),
    }
}

/// Gives a part its name; returns its fate if it has not got it.
fn give_name(
    target: &mut Target,
    entry: &Entry,
    (from, part): (&Folder, &str),
    overwrite: bool,
) -> io::Result<Option<Fate>> {
    let (above, name) = entry.split();
    let Ok(Some(folder)) = target.within(above) else {
        return Ok(Some(Fate::Refused(Taken::Above)));
    };
    let given = match overwrite {
        true => folder.replace(from, part, name),
        false => folder.adopt(from, part, name),
    };
    match given.as_ref().map_err(io::Error::kind) {
        Ok(()) => Ok(None),
        Err(io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory) => {
            // Somebody else has given the name meanwhile, perhaps to the same contents.
            Ok(Some(target.fate(entry, false)))
        }
        Err(_) => given.map(|()| None),
    }
}

/// Builds the folders `tops` in `stage`: new files are links to the parts, the others links to the files that are there.
fn build(
    (manifest, fates): (&Manifest, &[Fate]),
    tops: &BTreeSet<&str>,
    (target, stage): (&mut Target, &mut Target),
    store: &Store,
) -> io::Result<()> {
    let umask = umask();
    let mut made = Vec::new();
    for (number, entry) in manifest.files().iter().enumerate() {
        if !tops.contains(entry.top()) {
            continue;
        }
        if entry.kind == Kind::Folder {
            make_folder(stage, entry, umask)?;
            made.push(entry);
            continue;
        }
        let (above, name) = entry.split();
        if fates[number] == Fate::Wanted {
            let part = part_name(number);
            let folder = stage.inside(above)?;
            // Without links, a crash from here on costs fetching the file again.
            let linked = folder.link(&store.place.folder, &part, name);
            linked.or_else(|_| folder.adopt(&store.place.folder, &part, name))?;
        } else {
            let linked = stage.inside(above)?.link(target.inside(above)?, name, name);
            if linked.is_err() {
                let (mut from, mut to) = (target.read(entry)?, stage.inside(above)?.write(name)?);
                io::copy(&mut from, &mut to)?;
                to.set_permissions(from.metadata()?.permissions())?;
                to.set_modified(time(entry.modified))?;
                to.sync_all()?;
            }
        }
    }
    date_folders(stage, &made)?;
    let touched = made.iter().map(|entry| &entry.name[..]).chain([""]);
    sync_folders(stage, &touched.collect())
}

/// Gives folders their times, when nothing more is put into them.
fn date_folders(target: &mut Target, made: &[&Entry]) -> io::Result<()> {
    for entry in made.iter().rev() {
        target
            .inside(&entry.name)?
            .set_modified(time(entry.modified))?;
    }
    Ok(())
}

/// Waits until the names in these folders are on the disk.
fn sync_folders(target: &Target, touched: &BTreeSet<&str>) -> io::Result<()> {
    let touched: Vec<&str> = touched.iter().copied().collect();
    sync::all(&touched, |above| match above.is_empty() {
        true => target.root.sync(),
        false => Folder::open(&target.path.join(above))?.sync(),
    })
}

fn naming_failed(what: String, error: &io::Error) -> Error {
    match error.kind() {
        // Neither a rename that replaces nothing nor a link, or no exchange of folders.
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::Unsupported => {
            let what = format!("{what}: {error}");
            let todo = "check who may write there; if the file system cannot rename without replacing, use --overwrite, and do without --whole";
            Error::environment(what, todo).because(Reason::Disk)
        }
        _ => failure(what, error),
    }
}

/// A time in nanoseconds since 1970.
fn time(nanos: i64) -> SystemTime {
    let span = Duration::from_nanos(nanos.unsigned_abs());
    let time = match nanos < 0 {
        true => UNIX_EPOCH.checked_sub(span),
        false => UNIX_EPOCH.checked_add(span),
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// The permissions that this process gives to no file. Only the owner's are given if it cannot be found out.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    umask.unwrap_or(0o077) & 0o777
}
