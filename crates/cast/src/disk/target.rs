//! The receiver's folder: where files get their names. No link below it is followed, and no name leads out of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use chappe_sys::{Folder, Named};

use crate::manifest::{Digest, Entry, Kind, Manifest};

/// The folder of a receiver, in which entries of manifests are made.
#[derive(Debug)]
pub(super) struct Target {
    pub root: Folder,
    pub path: PathBuf,
    /// The folder looked up last, by its path below the root: entries of one folder stand together.
    last: Option<(String, Folder)>,
}

/// What becomes of an entry of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is to be received.
    Wanted,
    /// It is there already, with the same contents.
    Present,
    /// Its name is taken, and what has the name may not be replaced.
    Refused(Taken),
}

/// What has the name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A file with other contents.
    File,
    /// A folder, and the entry is a file.
    Folder,
    /// Something else than a folder, and the entry is a folder.
    NoFolder,
    /// Something else than a folder has the name of a folder above.
    Above,
}

impl Target {
    pub fn open(path: &Path) -> io::Result<Target> {
        Ok(Target {
            root: Folder::open(path)?,
            path: path.to_owned(),
            last: None,
        })
    }

    /// Looks folders up anew: one that was looked up long ago may have been moved since.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// The folder with the path `above` below the root; `None` if it is missing. Fails with `NotADirectory` if something else,
    /// such as a link, has a name on the way.
    pub fn within(&mut self, above: &str) -> io::Result<Option<&Folder>> {
        if above.is_empty() {
            return Ok(Some(&self.root));
        }
        if self.last.as_ref().is_none_or(|(path, _)| path != above) {
            let mut inner: Option<Folder> = None;
            for name in above.split('/') {
                match inner.as_ref().unwrap_or(&self.root).enter(name) {
                    Ok(folder) => inner = Some(folder),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            self.last = inner.map(|folder| (above.to_owned(), folder));
        }
        Ok(self.last.as_ref().map(|(_, folder)| folder))
    }

    /// The folder with the path `above`, which must be there.
    pub fn inside(&mut self, above: &str) -> io::Result<&Folder> {
        self.within(above)?
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What becomes of each entry. Reads every file that could be the right one.
    pub fn survey(&mut self, manifest: &Manifest, overwrite: bool) -> Vec<Fate> {
        let files = manifest.files().iter();
        files.map(|entry| self.fate(entry, overwrite)).collect()
    }

    /// What becomes of one entry.
    pub fn fate(&mut self, entry: &Entry, overwrite: bool) -> Fate {
        let (above, name) = entry.split();
        let folder = match self.within(above) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Fate::Wanted,
            Err(_) => return Fate::Refused(Taken::Above),
        };
        // What cannot be looked at is not known to be free.
        let named = folder.look(name).unwrap_or(Some(Named::Other));
        match (entry.kind, named) {
            (_, None) => Fate::Wanted,
            (Kind::Folder, Some(Named::Folder)) => Fate::Present,
            (Kind::Folder, Some(_)) => Fate::Refused(Taken::NoFolder),
            (Kind::File, Some(Named::Folder)) => Fate::Refused(Taken::Folder),
            (Kind::File, Some(named)) => {
                let same = named == Named::File(entry.size)
                    && folder.read(name).is_ok_and(|file| has(&file, entry));
                match (same, overwrite) {
                    (true, _) => Fate::Present,
                    (false, true) => Fate::Wanted,
                    (false, false) => Fate::Refused(Taken::File),
                }
            }
        }
    }

    /// Opens a file of a manifest under its final name.
    pub fn read(&mut self, entry: &Entry) -> io::Result<File> {
        let (above, name) = entry.split();
        self.inside(above)?.read(name)
    }
}

/// Whether a file has the contents of an entry.
fn has(file: &File, entry: &Entry) -> bool {
    let mut file = file;
    let mut hasher = blake3::Hasher::new();
    let read = io::copy(&mut file, &mut hasher);
    let digest: Digest = *hasher.finalize().as_bytes();
    read.is_ok_and(|len| len == entry.size) && digest == entry.digest
}
