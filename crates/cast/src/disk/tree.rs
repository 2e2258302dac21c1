//! What a sender sends: the files and folders that the user names, with everything in them.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::manifest::{Entry, FILES_MAX, FOLDER, Kind, check_name, check_path};

/// A file or folder to be sent.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Where it is on this host.
    pub path: PathBuf,
    /// Its entry in the manifest, without a digest.
    pub entry: Entry,
}

/// The files and folders at these paths and below, in the order of the manifest: each folder before what is in it, and
/// names in the order of their octets, so that the same tree always gives the same manifest.
pub(super) fn list(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut tops = BTreeSet::new();
    for path in paths {
        let name = name_of(path)?;
        if !tops.insert(name.clone()) {
            let what = format!("two of the files have the name {name:?}");
            let todo = "rename one of them: receivers put all files into one folder";
            return Err(Error::input(what, todo));
        }
        let about = check(path)?;
        add(path.clone(), name, &about, &mut found)?;
    }
    Ok(found)
}

/// Looks at a file or folder to be sent. Fails if it is anything else, or cannot be read.
pub(super) fn check(path: &Path) -> Result<Metadata> {
    // Before it is opened: opening a pipe would block until something writes into it.
    let about = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_dir() {
        fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    } else if about.is_file() {
        fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    } else {
        return Err(no_file(path));
    }
    Ok(about)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::input(format!("cannot read {}: {error}", path.display()), "")
}

fn no_file(path: &Path) -> Error {
    let what = format!("{} is neither a file nor a folder", path.display());
    Error::input(what, "send regular files and folders only")
}

/// The name that receivers give to what is at `path`; of `.`, that of the folder.
fn name_of(path: &Path) -> Result<String> {
    let whole = match path.file_name() {
        Some(_) => path.to_owned(),
        None => fs::canonicalize(path).map_err(|error| unreadable(path, &error))?,
    };
    let name = whole.file_name().ok_or_else(|| {
        let what = format!("{} has no name", path.display());
        Error::input(what, "name the folders in it")
    })?;
    let name = text(name, path)?;
    check_name(name)?;
    Ok(name.into())
}

fn text<'a>(name: &'a std::ffi::OsStr, path: &Path) -> Result<&'a str> {
    name.to_str().ok_or_else(|| {
        let what = format!("the name of {} is not valid UTF-8", path.display());
        Error::input(what, "rename the file")
    })
}

/// Adds a file, or a folder with everything in it.
fn add(path: PathBuf, name: String, about: &Metadata, found: &mut Vec<Source>) -> Result<()> {
    check_path(&name)?;
    if found.len() >= FILES_MAX {
        let what = format!("more than {FILES_MAX} files and folders for one transfer");
        return Err(Error::input(what, "send it in several transfers"));
    }
    let kind = match about.is_dir() {
        true => Kind::Folder,
        false => Kind::File,
    };
    let seconds = about.mtime().saturating_mul(1_000_000_000);
    let entry = Entry {
        name: name.clone(),
        kind,
        mode: (about.mode() & 0o777) as u16,
        modified: seconds.saturating_add(about.mtime_nsec()),
        size: if kind == Kind::File { about.len() } else { 0 },
        digest: [0; 32],
    };
    found.push(Source {
        path: path.clone(),
        entry,
    });
    match kind {
        Kind::File => Ok(()),
        Kind::Folder => add_all_in(&path, &name, found),
    }
}

fn add_all_in(folder: &Path, name: &str, found: &mut Vec<Source>) -> Result<()> {
    let failed = |error: io::Error| unreadable(folder, &error);
    let inside = fs::read_dir(folder).map_err(failed)?;
    let inside: io::Result<Vec<_>> = inside.map(|inside| Ok(inside?.file_name())).collect();
    let mut inside = inside.map_err(failed)?;
    inside.sort_unstable();
    for inner in inside {
        let path = folder.join(&inner);
        let about = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
        // A receiver's own folder is not the user's.
        if inner == FOLDER && about.is_dir() {
            continue;
        }
        if about.is_symlink() {
            let what = format!("{} is a symbolic link", path.display());
            let todo = "receivers create no links: replace it by what it points to, or send an archive (`tar`)";
            return Err(Error::input(what, todo));
        }
        if !about.is_file() && !about.is_dir() {
            return Err(no_file(&path));
        }
        let inner = format!("{name}/{}", text(&inner, &path)?);
        add(path, inner, &about, found)?;
    }
    Ok(())
}
