//! The local socket of a running link: `chappe link status` and `chappe link reload`, and what answers them.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration as Span;

use super::options::{Control, Status};
use crate::failure::{FAILED, Failure};
use crate::terminal;

/// How long either side waits for the other.
const PATIENCE: Span = Span::from_secs(5);
/// Longest request in octets.
const REQUEST: u64 = 64;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The table of peers.
    Table,
    /// The status as JSON.
    Json,
    /// To read the files again.
    Reload,
}

/// A client that waits for a text.
pub struct Request {
    pub wish: Wish,
    pub answer: Sender<String>,
}

/// The socket that clients connect to. It vanishes with the value.
pub struct Door {
    path: PathBuf,
    pub requests: Receiver<Request>,
}

/// The usual socket of the link with a device.
pub fn usual(device: &str) -> PathBuf {
    Path::new("/run/chappe").join(format!("{device}.sock"))
}

impl Door {
    /// Opens the socket. An old one without a server is replaced.
    pub fn open(path: &Path) -> std::io::Result<Door> {
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
        // The endpoints of peers are private, and a reload is the owner's.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let (ask, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &ask);
            }
        });
        Ok(Door {
            path: path.to_owned(),
            requests,
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers one client.
fn serve(mut stream: UnixStream, ask: &Sender<Request>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(std::io::Read::take(&stream, REQUEST)).read_line(&mut line)?;
    let wish = match line.trim() {
        "status" => Wish::Table,
        "status json" => Wish::Json,
        "reload" => Wish::Reload,
        _ => return stream.write_all(b"unknown request: write status, status json or reload\n"),
    };
    let (answer, answered) = channel();
    if ask.send(Request { wish, answer }).is_ok()
        && let Ok(text) = answered.recv_timeout(PATIENCE)
    {
        stream.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Runs `chappe link status`: prints what the link answers.
pub fn status(options: &Status) -> Result<u8, Failure> {
    let wish = if options.json {
        "status json\n"
    } else {
        "status\n"
    };
    terminal::print(&talk(&options.control, wish)?)?;
    Ok(0)
}

/// Runs `chappe link reload`: prints what changed, or the mistake.
pub fn reload(options: &Control) -> Result<u8, Failure> {
    let said = talk(options, "reload\n")?;
    terminal::print(&said)?;
    Ok(if said.ends_with(UNCHANGED) { FAILED } else { 0 })
}

/// How the answer to a reload ends that changed nothing because of a mistake.
pub const UNCHANGED: &str = "the running link is unchanged\n";

fn talk(control: &Control, wish: &str) -> Result<String, Failure> {
    let path = control
        .socket
        .clone()
        .unwrap_or_else(|| usual(&control.device));
    let failed = |error: std::io::Error| {
        let what = format!("cannot ask the link at {}: {error}", path.display());
        let todo = match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                "start it with `chappe link run FILE`, or name its socket: --socket PATH"
            }
            ErrorKind::PermissionDenied => "ask as the user who runs the link, usually root",
            _ => "is it a link's socket?",
        };
        Failure::Environment(what, todo.into())
    };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(wish.as_bytes()).map_err(failed)?;
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stream, &mut said).map_err(failed)?;
    if said.is_empty() {
        return Err(failed(ErrorKind::TimedOut.into()));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a client gets its answer, an unknown request a hint; a left-over socket is replaced, one that is served is not; only
    /// the owner may connect; the socket goes with its link.
    #[test]
    fn clients_are_answered() {
        let folder = std::env::temp_dir().join(format!("chappe-door-{}", std::process::id()));
        let path = folder.join("link.sock");
        std::fs::create_dir_all(&folder).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let door = Door::open(&path).unwrap();
        assert!(Door::open(&path).is_err());
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let control = Control {
            device: "chappe0".into(),
            socket: Some(path.clone()),
        };
        std::thread::scope(|scope| {
            let client = scope.spawn(|| talk(&control, "status json\n").unwrap());
            let request = door.requests.recv().unwrap();
            assert_eq!(request.wish, Wish::Json);
            request.answer.send("{}\n".into()).unwrap();
            assert_eq!(client.join().unwrap(), "{}\n");
        });
        assert!(
            talk(&control, "dance\n")
                .unwrap()
                .contains("unknown request")
        );
        drop(door);
        assert!(!path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
