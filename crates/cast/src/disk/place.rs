//! The place of an unfinished transfer in `DIR/.chappe-cast/`, and when it is removed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chappe_sys::Folder;

use super::failure;
use crate::error::{Error, Result};
use crate::key::VerifyKey;
use crate::manifest::{FOLDER, Kind, Manifest, TICKET, Ticket};
use crate::reason::Reason;

/// The map of batches.
pub(super) const MAP: &str = "batches";
/// What is received: ticket and manifest.
const OFFER: &str = "offer";

/// The place of a transfer. Its map is locked while a receiver writes to it.
#[derive(Debug)]
pub(super) struct Place {
    pub folder: Folder,
    pub path: PathBuf,
    pub map: File,
}

impl Place {
    /// Opens or creates the place of a transfer below the receiver's folder `root` at `path`. A symbolic link in its place is
    /// not followed. Fails if another process uses it.
    pub fn open(root: &Folder, path: &Path, ticket: &Ticket, manifest: &Manifest) -> Result<Place> {
        let ours = make(root, FOLDER, &path.join(FOLDER))?;
        let path = path.join(FOLDER).join(ticket.name());
        let folder = make(&ours, &ticket.name(), &path)?;
        let failed =
            |error: io::Error| failure(format!("cannot write in {}", path.display()), &error);
        let map = folder.write(MAP).map_err(failed)?;
        match map.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let what = format!(
                    "another process receives these files into {}",
                    path.display()
                );
                let error = Error::environment(what, "stop it, or receive into another folder");
                return Err(error.because(Reason::Disk));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        if !path.join(OFFER).exists() {
            let offer = [&ticket.encode()[..], &manifest.encode()?].concat();
            fs::write(path.join("offer.new"), offer)
                .and_then(|()| fs::rename(path.join("offer.new"), path.join(OFFER)))
                .map_err(failed)?;
        }
        Ok(Place { folder, path, map })
    }

    /// Removes the place and everything in it.
    pub fn remove(self) {
        // What cannot be removed now goes with the unfinished transfers later.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes our folder in the receiver's folder at `path`.
pub(super) fn make_ours(root: &Folder, path: &Path) -> Result<Folder> {
    make(root, FOLDER, &path.join(FOLDER))
}

fn make(above: &Folder, name: &str, path: &Path) -> Result<Folder> {
    match above.make(name, 0o700) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failure(format!("cannot create {}", path.display()), &error));
        }
        _ => {}
    }
    above.enter(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => {
            let what = format!("{} is not a folder", path.display());
            Error::input(what, "rename or remove it").because(Reason::Disk)
        }
        _ => failure(format!("cannot open {}", path.display()), &error),
    })
}

/// Removes the places of transfers that have got no data for `age`. Returns their number.
pub fn remove_abandoned(folder: &Path, age: Duration) -> usize {
    let old = |path: &Path| {
        let changed = fs::metadata(path.join(MAP)).and_then(|about| about.modified());
        let since = changed.map(|changed| SystemTime::now().duration_since(changed));
        since.is_ok_and(|since| since.is_ok_and(|since| since > age))
    };
    let old: Vec<PathBuf> = places(folder).filter(|path| old(path)).collect();
    old.iter().filter(|path| remove_unused(path)).count()
}

/// Removes the places of earlier versions of `manifest`: of the same signer, signed before, and with no other files.
pub(super) fn remove_superseded(
    folder: &Path,
    ticket: &Ticket,
    manifest: &Manifest,
    key: Option<&VerifyKey>,
) {
    let names = |manifest: &Manifest| -> BTreeSet<String> {
        let files = manifest
            .files()
            .iter()
            .filter(|entry| entry.kind == Kind::File);
        files.map(|entry| entry.name.clone()).collect()
    };
    let new = names(manifest);
    for path in places(folder) {
        let Some((of, old)) = offer(&path) else {
            continue;
        };
        let same_signer = key.is_some_and(|key| of.is_signed_by(key));
        let before = of.validity.signed < ticket.validity.signed && !of.is_alike(ticket);
        if same_signer && before && names(&old).is_subset(&new) {
            remove_unused(&path);
        }
    }
}

/// Removes the place of a transfer of which nothing is lacking.
pub(super) fn remove_finished(folder: &Path, ticket: &Ticket) {
    let path = folder.join(FOLDER).join(ticket.name());
    if path.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        remove_unused(&path);
    }
}

/// What is received at a place.
fn offer(place: &Path) -> Option<(Ticket, Manifest)> {
    let octets = fs::read(place.join(OFFER)).ok()?;
    let (ticket, manifest) = octets.split_at_checked(TICKET)?;
    let ticket = Ticket::decode(ticket)?;
    let manifest = Manifest::decode(manifest, &ticket.cut).ok()?;
    Some((ticket, manifest))
}

/// All places in a receiver's folder.
fn places(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let inside = fs::read_dir(folder.join(FOLDER));
    let inside = inside.into_iter().flatten().flatten();
    let is_place = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let named = name.len() == 16
            && name
                .to_string_lossy()
                .chars()
                .all(|c| c.is_ascii_hexdigit());
        named && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    inside.filter(is_place).map(|entry| entry.path())
}

/// Removes a place unless a receiver writes to it. Returns whether it did.
fn remove_unused(place: &Path) -> bool {
    let map = File::open(place.join(MAP));
    let locked = map.as_ref().map(File::try_lock);
    if let Ok(Err(TryLockError::WouldBlock)) = locked {
        return false;
    }
    let removed = fs::remove_dir_all(place).is_ok();
    // Until now, no receiver could begin to use it.
    drop(map);
    removed
}
