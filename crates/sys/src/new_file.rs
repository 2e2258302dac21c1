//! New files that are whole or absent, such as keys: no user finds one half written.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::folder::Folder;

/// Writes a new file completely or not at all, and waits until it is on the disk. Fails with
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is one of that name, and leaves it alone. `mode` holds its permission
/// bits, which the process's umask restricts.
///
/// The octets are written under a temporary name beside the file (`.NAME.PID.part`). A full disk leaves nothing behind; a
/// process that is killed leaves at most that temporary file, and never a part of it under its name.
pub fn write_new(path: &Path, mode: u32, octets: &[u8]) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "names no file"));
    };
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = Folder::open(parent)?;
    let mut part = OsString::from(".");
    part.push(name);
    part.push(format!(".{}.part", std::process::id()));
    let beside = parent.join(&part);
    let written = fill(&beside, mode, octets);
    let named =
        written.and_then(|()| folder.adopt_path(&folder, Path::new(&part), Path::new(name)));
    if let Err(error) = named {
        // The first error is the one to report, whether or not the remains can be removed.
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    folder.sync()
}

fn fill(path: &Path, mode: u32, octets: &[u8]) -> io::Result<()> {
    // A process of the same number may have been killed here.
    let _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(octets)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("chappe-new-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// A new file has its mode, replaces nothing, and leaves no temporary file.
    #[test]
    fn a_new_file_replaces_nothing() {
        let folder = scratch("mode");
        let path = folder.join("key");
        write_new(&path, 0o600, b"first").unwrap();
        let error = write_new(&path, 0o600, b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "remains");
        assert!(write_new(&folder.join("none/key"), 0o600, b"x").is_err());
        assert!(write_new(Path::new("/"), 0o600, b"x").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    /// Goal: whenever the file has its name, it is whole, so that a kill at any time leaves no half of it. Method: one thread
    /// looks at the file while another writes it.
    #[test]
    fn a_file_with_its_name_is_whole() {
        let folder = scratch("whole");
        let octets = vec![7; 4 << 20];
        for round in 0..8 {
            let path = folder.join(format!("key{round}"));
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| write_new(&path, 0o600, &octets));
                let seen = loop {
                    if let Ok(about) = fs::metadata(&path) {
                        break about.len();
                    }
                    if writer.is_finished() {
                        break fs::metadata(&path).map_or(0, |about| about.len());
                    }
                };
                assert_eq!(seen, octets.len() as u64);
                writer.join().unwrap().unwrap();
            });
        }
        fs::remove_dir_all(folder).unwrap();
    }

    /// What a killed process of the same number left does not stop the next one.
    #[test]
    fn remains_of_a_killed_process_are_replaced() {
        let folder = scratch("killed");
        let part = folder.join(format!(".key.{}.part", std::process::id()));
        fs::write(&part, "ha").unwrap();
        write_new(&folder.join("key"), 0o644, b"whole").unwrap();
        assert_eq!(fs::read(folder.join("key")).unwrap(), b"whole");
        assert!(!part.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
