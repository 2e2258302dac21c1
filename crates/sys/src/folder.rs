//! Folders as open handles: names are looked up in them without following links, and given without replacing files.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// An open folder. It stays the same folder when it is renamed or another one takes its place.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A regular file of this many octets.
    File(u64),
    /// A folder, in which names can be looked up.
    Folder,
    /// A symbolic link, a device, a socket or a pipe.
    Other,
}

impl Folder {
    /// Opens a folder by its path, which may contain links: the user has named it.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Folder(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the folder `name` in this folder. Fails with `NotADirectory` if it is anything else, such as a link.
    pub fn enter(&self, name: &str) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.0, name, flags, Mode::empty());
        // Of a link, Linux says ENOTDIR or ELOOP, depending on the order of its checks.
        let opened = opened.map_err(|error| match error {
            Errno::LOOP => Errno::NOTDIR,
            error => error,
        });
        Ok(Folder(opened?))
    }

    /// Makes the folder `name`. The process's umask restricts `mode`.
    pub fn make(&self, name: &str, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(
            &self.0,
            name,
            Mode::from_raw_mode(mode),
        )?)
    }

    /// What `name` stands for; `None` if there is no such name. Links are not followed.
    pub fn look(&self, name: &str) -> io::Result<Option<Named>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(named(&about))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the regular file `name` to read it. Fails if it is anything else; a link is not followed.
    pub fn read(&self, name: &str) -> io::Result<File> {
        // Without NONBLOCK, opening a pipe would wait for a writer.
        self.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Opens the regular file `name` to read and write it, and creates it with mode 0600 if it is missing. Fails if the name
    /// stands for anything else; a link is not followed.
    pub fn write(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?;
        match named(&rustix::fs::fstat(&file)?) {
            Named::File(_) => Ok(file.into()),
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Moves the file or folder `old` of the folder `from` here under the name `new`, which must be free: fails with
    /// `AlreadyExists` otherwise, and then changes nothing. Atomic, also beside other processes. Where the file system cannot
    /// rename so (NFS), a file gets its new name by a link before it loses the old one.
    pub fn adopt(&self, from: &Folder, old: &str, new: &str) -> io::Result<()> {
        self.adopt_path(from, Path::new(old), Path::new(new))
    }

    /// The same for names that need not be text.
    pub(crate) fn adopt_path(&self, from: &Folder, old: &Path, new: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(&from.0, old, &self.0, new, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.adopt_by_link(from, old, new)
            }
            result => Ok(result?),
        }
    }

    fn adopt_by_link(&self, from: &Folder, old: &Path, new: &Path) -> io::Result<()> {
        rustix::fs::linkat(&from.0, old, &self.0, new, AtFlags::empty())?;
        Ok(rustix::fs::unlinkat(&from.0, old, AtFlags::empty())?)
    }

    /// Moves the file `old` of the folder `from` here under the name `new`, and replaces a file of that name. Atomic.
    pub fn replace(&self, from: &Folder, old: &str, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&from.0, old, &self.0, new)?)
    }

    /// Exchanges `new` in this folder and `old` in the folder `from`, both of which must exist. Atomic. Fails with
    /// `InvalidInput` if the file system cannot.
    pub fn exchange(&self, from: &Folder, old: &str, new: &str) -> io::Result<()> {
        let exchange = RenameFlags::EXCHANGE;
        Ok(rustix::fs::renameat_with(
            &from.0, old, &self.0, new, exchange,
        )?)
    }

    /// Gives the file `old` of the folder `from` the additional name `new` here. Fails if the file system has no such links,
    /// or lies elsewhere.
    pub fn link(&self, from: &Folder, old: &str, new: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(
            &from.0,
            old,
            &self.0,
            new,
            AtFlags::empty(),
        )?)
    }

    /// Sets when the folder was modified.
    pub fn set_modified(&self, time: std::time::SystemTime) -> io::Result<()> {
        let folder = File::from(self.0.try_clone()?);
        folder.set_modified(time)
    }

    /// Waits until the names in this folder are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Octets that this user may still write to the folder's file system. Quotas are not known to it.
    pub fn free(&self) -> io::Result<u64> {
        let about = rustix::fs::fstatvfs(&self.0)?;
        Ok(about.f_bavail.saturating_mul(about.f_frsize))
    }
}

fn named(about: &Stat) -> Named {
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => Named::File(about.st_size.max(0) as u64),
        FileType::Directory => Named::Folder,
        _ => Named::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A folder for one test.
    fn scratch(name: &str) -> (PathBuf, Folder) {
        let path = std::env::temp_dir().join(format!("chappe-sys-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("from")).unwrap();
        let folder = Folder::open(&path).unwrap();
        (path, folder)
    }

    /// Both ways of giving a name leave a file of that name alone, and the file that has no name yet as well.
    #[test]
    fn a_name_is_given_once() {
        let (path, folder) = scratch("once");
        let from = folder.enter("from").unwrap();
        for by_link in [false, true] {
            let give = match by_link {
                false => Folder::adopt_path,
                true => Folder::adopt_by_link,
            };
            let name = format!("name{by_link}");
            fs::write(path.join("from/new"), "new").unwrap();
            fs::write(path.join(&name), "mine").unwrap();
            let (old, new) = (Path::new("new"), Path::new(&name));
            let error = give(&folder, &from, old, new).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(fs::read(path.join(&name)).unwrap(), b"mine");
            fs::remove_file(path.join(&name)).unwrap();
            give(&folder, &from, old, new).unwrap();
            assert_eq!(fs::read(path.join(&name)).unwrap(), b"new");
            assert!(!path.join("from/new").exists());
        }
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn links_are_not_followed() {
        let (path, folder) = scratch("links");
        fs::write(path.join("from/file"), "1234").unwrap();
        std::os::unix::fs::symlink("from", path.join("way")).unwrap();
        std::os::unix::fs::symlink("from/file", path.join("pointer")).unwrap();
        let error = folder.enter("way").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        assert!(folder.read("pointer").is_err() && folder.write("pointer").is_err());
        assert!(folder.read("from").is_err());
        let from = folder.enter("from").unwrap();
        assert!(from.read("file").is_ok());
        let seen = |name| folder.look(name).unwrap();
        assert_eq!((seen("way"), seen("none")), (Some(Named::Other), None));
        assert_eq!(seen("from"), Some(Named::Folder));
        assert_eq!(from.look("file").unwrap(), Some(Named::File(4)));
        fs::remove_dir_all(path).unwrap();
    }
}
