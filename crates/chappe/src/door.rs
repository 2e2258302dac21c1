//! The local socket of a running daemon: a client connects, writes one line, and gets an answer.
//!
//! `chappe link status` and `chappe view --live` ask there. A daemon that is not asked does nothing for it.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request in octets.
const REQUEST: u64 = 64;
/// Longest answer in octets that a client reads.
const ANSWER: u64 = 16 << 20;
/// Where daemons of root have their sockets.
const SYSTEM: &str = "/run/chappe";

/// A client that waits for a text.
pub struct Request {
    /// What it wrote, without the line's end.
    pub question: String,
    pub answer: Sender<String>,
}

/// A socket that does not answer yet.
pub struct Bound {
    path: PathBuf,
    listener: UnixListener,
}

/// The socket that clients connect to. It vanishes with the value.
pub struct Door {
    path: PathBuf,
    requests: Receiver<Request>,
    /// Readable when there may be a request.
    bell: UnixStream,
}

/// The folders in which daemons of this machine have their sockets, as far as this user can know.
pub fn folders() -> Vec<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(|run| PathBuf::from(run).join("chappe"));
    let own = std::env::temp_dir().join(format!("chappe-{}", user()));
    [Some(SYSTEM.into()), run, Some(own)]
        .into_iter()
        .flatten()
        .collect()
}

/// The number of the user who runs this process.
fn user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |data| data.uid())
}

/// A socket called `name` in the first of the [`folders`] that this user may write to.
pub fn bind_usual(name: &str) -> io::Result<Bound> {
    let mut failed = io::Error::from(ErrorKind::NotFound);
    for folder in folders() {
        match private(&folder).and_then(|()| bind(&folder.join(name))) {
            Ok(bound) => return Ok(bound),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Makes a folder that only its owner can enter, and checks one that is there: `/tmp` is everybody's.
fn private(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let data = std::fs::symlink_metadata(folder)?;
    match data.is_dir() && data.uid() == user() {
        true => Ok(()),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Binds a socket. An old one without a server is replaced.
pub fn bind(path: &Path) -> io::Result<Bound> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            if UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        other => other?,
    };
    // What a daemon tells is private, and to change it is its owner's.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Bound {
        path: path.to_owned(),
        listener,
    })
}

impl Bound {
    /// Answers from now on, by a thread: a process that enters a user namespace must not have one yet.
    pub fn open(self) -> io::Result<Door> {
        let (bell, mut ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        let (ask, requests) = channel();
        let Bound { path, listener } = self;
        std::thread::Builder::new()
            .name("status".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _ = serve(stream, &ask, &mut ringer);
                }
            })?;
        Ok(Door {
            path,
            requests,
            bell,
        })
    }
}

impl Door {
    /// The next request, if there is one.
    pub fn request(&self) -> Option<Request> {
        let request = self.requests.try_recv().ok()?;
        let _ = (&self.bell).read(&mut [0; 64]);
        Some(request)
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers one client: reads a line, has the daemon answer it, writes that back.
fn serve(mut stream: UnixStream, ask: &Sender<Request>, ringer: &mut UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(Read::take(&stream, REQUEST)).read_line(&mut line)?;
    let (answer, answered) = channel();
    let question = line.trim().to_owned();
    // One that only tries whether a daemon is there.
    if question.is_empty() {
        return Ok(());
    }
    if ask.send(Request { question, answer }).is_ok() {
        // A full bell rings already.
        let _ = ringer.write(&[1]);
        if let Ok(text) = answered.recv_timeout(PATIENCE) {
            stream.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Asks the daemon that listens at `path`.
pub fn ask(path: &Path, question: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question.as_bytes())?;
    stream.write_all(b"\n")?;
    let mut said = String::new();
    Read::take(&stream, ANSWER).read_to_string(&mut said)?;
    match said.is_empty() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a client gets its answer; the bell rings for it and is silent after; a left-over socket is replaced, one that is served is
    /// not; only the owner may connect; the socket goes with its daemon.
    #[test]
    fn clients_are_answered() {
        let folder = std::env::temp_dir().join(format!("chappe-door-{}", std::process::id()));
        let path = folder.join("link.sock");
        std::fs::create_dir_all(&folder).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let door = bind(&path).unwrap().open().unwrap();
        assert!(bind(&path).is_err());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| ask(&path, "status json").unwrap());
            let request = door.requests.recv().unwrap();
            assert_eq!(request.question, "status json");
            request.answer.send("{}\n".into()).unwrap();
            assert_eq!(client.join().unwrap(), "{}\n");
        });
        assert!(door.request().is_none());
        drop(door);
        assert!(!path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// `/tmp` is everybody's: a link that another user left there must not lead elsewhere.
    #[test]
    fn a_link_is_no_private_folder() {
        let folder = std::env::temp_dir().join(format!("chappe-private-{}", std::process::id()));
        std::os::unix::fs::symlink("/usr", &folder).unwrap();
        assert!(private(&folder).is_err());
        std::fs::remove_file(&folder).unwrap();
        private(&folder).unwrap();
        private(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
    }
}
