//! `chappe view --live`: the daemons that run on this machine, asked while a page is open.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chappe_mesh::answers;
use chappe_view::live::frames::Frames;
use chappe_view::live::{DAEMONS, History, Sighting};
use chappe_view::{Contents, Source};

use crate::door;

/// Daemons are asked this often at most, however many pages are open.
const EVERY: Duration = Duration::from_millis(900);

/// Daemons and what they have said so far.
struct Watcher {
    paths: Vec<PathBuf>,
    begun: Instant,
    asked: Option<Instant>,
    history: History,
    packed: Arc<Vec<u8>>,
}

/// The daemons at `paths`, which are sockets and folders of sockets; without any, those in the usual folders. Daemons are asked when a
/// page asks, so none is asked while no page is open.
pub fn source(paths: &[PathBuf]) -> Source {
    let watcher = Mutex::new(Watcher {
        paths: match paths {
            [] => door::folders(),
            paths => paths.to_vec(),
        },
        begun: Instant::now(),
        asked: None,
        history: History::default(),
        packed: Arc::default(),
    });
    Arc::new(move || {
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.look();
        watcher.packed.clone()
    })
}

impl Watcher {
    fn look(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() < EVERY) {
            return;
        }
        self.asked = Some(Instant::now());
        let (seen, notes) = ask_all(&sockets(&self.paths));
        let at = self.begun.elapsed();
        self.history
            .add(chappe_core::Duration::from_secs_f64(at.as_secs_f64()), seen);
        let contents = Contents {
            title: "Running daemons".into(),
            runs: self.history.runs(),
            live: true,
            notes,
            ..Contents::default()
        };
        self.packed = Arc::new(contents.pack());
    }
}

/// Sockets among the paths and in the folders among them, sorted.
fn sockets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => {
                let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
                let sockets = entries
                    .map(|entry| entry.path())
                    .filter(|path| is_socket(path));
                // A client of a mesh makes a socket too, with another ending.
                found.extend(
                    sockets.filter(|path| path.extension().is_some_and(|end| end == "sock")),
                );
            }
            false => found.push(path.clone()),
        }
    }
    found.sort();
    found.dedup();
    found
}

fn is_socket(path: &Path) -> bool {
    let data = path.symlink_metadata();
    data.is_ok_and(|data| data.file_type().is_socket())
}

/// What the daemons say, all at once: one that is stuck must not hold up the others.
fn ask_all(sockets: &[PathBuf]) -> (Vec<(String, Sighting)>, Vec<String>) {
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    // Daemons that were killed leave their sockets behind.
    let sockets: Vec<&PathBuf> = sockets.iter().filter(|path| is_served(path)).collect();
    if sockets.len() > DAEMONS {
        notes.push(format!(
            "{} sockets; the first {DAEMONS} are asked",
            sockets.len()
        ));
    }
    std::thread::scope(|scope| {
        let asked = sockets.into_iter().take(DAEMONS);
        let threads: Vec<_> = asked
            .map(|path| (path, scope.spawn(move || ask(path))))
            .collect();
        for (path, thread) in threads {
            let path = path.display().to_string();
            match thread.join() {
                Ok(Ok(sighting)) => seen.push((path, sighting)),
                // Its process has gone and could not remove it.
                Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {}
                Ok(Err(error)) => notes.push(format!("{path}: {error}")),
                Err(_) => notes.push(format!("{path}: its answer could not be read")),
            }
        }
    });
    (seen, notes)
}

/// Whether a process has the socket open, as far as can be known.
fn is_served(path: &Path) -> bool {
    let tried = UnixStream::connect(path);
    !tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Asks one daemon. A mesh answers on a datagram socket, all others on a stream.
fn ask(path: &Path) -> io::Result<Sighting> {
    let answer = match door::ask(path, "status json") {
        Err(error) if is_of_another_type(&error) => answers::ask(path, "status json")?,
        answer => answer?,
    };
    let mut seen = Sighting::read(&answer).ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidData, "no daemon of Chappe answers there")
    })?;
    // Their air is simulated.
    if matches!(seen.daemon, "border" | "emu") {
        // One of a version before says that it knows no such question.
        let answer = door::ask(path, "frames json").ok();
        seen.frames = answer.and_then(|answer| Frames::read(&answer));
    }
    Ok(seen)
}

/// Whether a socket is there that takes datagrams (EPROTOTYPE, which has no kind of its own).
fn is_of_another_type(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, TimedOut, WouldBlock};
    ![
        ConnectionRefused,
        NotFound,
        PermissionDenied,
        TimedOut,
        WouldBlock,
    ]
    .contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    /// Goal: daemons of both kinds are found and asked, what cannot be asked is named, and what has gone is left out.
    #[test]
    fn daemons_of_both_kinds_are_asked() {
        let folder = std::env::temp_dir().join(format!("chappe-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let door = door::bind(&folder.join("cast-1.sock"))
            .unwrap()
            .open()
            .unwrap();
        let strange = door::bind(&folder.join("strange.sock"))
            .unwrap()
            .open()
            .unwrap();
        let mesh = UnixDatagram::bind(folder.join("mesh.sock")).unwrap();
        // More than are asked, and before the others.
        for gone in 0..2 * DAEMONS {
            drop(UnixListener::bind(folder.join(format!("a-gone-{gone}.sock"))).unwrap());
        }
        std::fs::write(folder.join("file.sock"), "x").unwrap();
        let sockets = sockets(std::slice::from_ref(&folder));
        assert_eq!(sockets.len(), 3 + 2 * DAEMONS, "{sockets:?}");
        let (seen, notes) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask_all(&sockets));
            let mut question = [0; 64];
            let (len, from) = mesh.recv_from(&mut question).unwrap();
            assert_eq!(&question[..len], b"status json");
            mesh.send_to_addr(br#"{"node":3,"routes":[]}"#, &from)
                .unwrap();
            mesh.send_to_addr(&[], &from).unwrap();
            let mut left = 2;
            while left > 0 {
                for (door, text) in [(&door, r#"{"daemon":"cast","node":1}"#), (&strange, "{}")] {
                    if let Some(request) = door.request() {
                        request.answer.send(text.into()).unwrap();
                        left -= 1;
                    }
                }
                std::thread::yield_now();
            }
            asked.join().unwrap()
        });
        let kinds: Vec<&str> = seen.iter().map(|(_, sighting)| sighting.daemon).collect();
        assert_eq!(kinds, ["cast", "mesh"]);
        assert!(
            notes.len() == 1 && notes[0].contains("strange.sock"),
            "{notes:?}"
        );
        drop((door, strange));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
