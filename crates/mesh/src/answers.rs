//! Questions about the running router, over a Unix datagram socket: `status json`, `why 10.77.0.3`.
//!
//! An answer is a number of datagrams, the last of which is empty. The socket can be reached by its owner only.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration as Span;

use chappe_core::Instant;
use chappe_live::Statistics;
use chappe_sys::Error;

use crate::node::Node;
use crate::status::Status;

/// Octets of a part of an answer: ten of them fit the kernel's queue (net.unix.max_dgram_qlen).
const PART: usize = 1 << 16;
/// How long the command waits for a part.
const PATIENCE: Span = Span::from_secs(2);

/// The router's end of the socket.
#[derive(Debug)]
pub struct Answers {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Answers {
    /// Listens at `path`. A socket left there by a process that has gone is replaced.
    pub fn listen(path: &Path) -> chappe_sys::Result<Answers> {
        let failed =
            |error: io::Error| Error::unusable(&format!("listen at {}", path.display()), &error);
        if UnixDatagram::unbound()
            .and_then(|socket| socket.connect(path))
            .is_ok()
        {
            let taken = io::Error::new(io::ErrorKind::AddrInUse, "another router answers there");
            return Err(failed(taken));
        }
        if path
            .symlink_metadata()
            .is_ok_and(|data| std::os::unix::fs::FileTypeExt::is_socket(&data.file_type()))
        {
            std::fs::remove_file(path).map_err(failed)?;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let socket = UnixDatagram::bind(path).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, owner).map_err(failed)?;
        Ok(Answers {
            socket,
            path: path.to_owned(),
        })
    }

    /// Answers what was asked since the last call.
    pub fn answer(&self, node: &mut Node, now: Instant, statistics: &Statistics) {
        let mut question = [0; 256];
        // A few at a time: the network goes on.
        for _ in 0..4 {
            let Ok((len, from)) = self.socket.recv_from(&mut question) else {
                return;
            };
            let text = String::from_utf8_lossy(question.get(..len).unwrap_or_default());
            let answer = reply(text.trim(), node, now, statistics);
            for part in answer.as_bytes().chunks(PART) {
                // One that does not read its answer loses it.
                if self.socket.send_to_addr(part, &from).is_err() {
                    break;
                }
            }
            let _ = self.socket.send_to_addr(&[], &from);
        }
    }
}

impl AsFd for Answers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn reply(question: &str, node: &mut Node, now: Instant, statistics: &Statistics) -> String {
    if let Some(address) = question.strip_prefix("why ") {
        return match address.trim().parse() {
            Ok(address) => crate::status::explain(&node.why(now, address), node.config(), address),
            Err(_) => format!("error: {address} is no address\n"),
        };
    }
    let status = Status::of(node, now, statistics);
    match question {
        "status" => status.text(),
        "status json" => status.json(),
        "status prometheus" => status.prometheus(),
        "status netjson" => status.netjson(),
        other => format!("error: unknown question {other:?}\n"),
    }
}

/// Asks the router that listens at `path`; its answer.
pub fn ask(path: &Path, question: &str) -> io::Result<String> {
    // A file beside the router's: an abstract name could not be reached from another network namespace.
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(own);
    // What a process with this number has left there.
    let _ = std::fs::remove_file(&own);
    let socket = UnixDatagram::bind(&own)?;
    let answer = receive(&socket, path, question);
    let _ = std::fs::remove_file(&own);
    answer
}

fn receive(socket: &UnixDatagram, path: &Path, question: &str) -> io::Result<String> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(path)?;
    socket.send(question.as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), vec![0; PART]);
    loop {
        match socket.recv(&mut part)? {
            0 => break,
            len => answer.extend_from_slice(part.get(..len).unwrap_or_default()),
        }
    }
    String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData.into())
}
