//! Serves one page and its data, and nothing else.
//!
//! Two fixed answers to GET need no HTTP library: no file is ever opened for a request, connections are closed after one
//! answer, and heads are bounded. The smallest kept library would be larger than this file.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::page::PAGE;
use crate::request::{Answer, answer};

/// Octets of a request's head at most.
const HEAD_MAX: usize = 8 * 1024;
/// A head must be there after this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// A browser must take some of the answer within this time.
const STALL: Duration = Duration::from_secs(30);
/// Connections at a time; more are closed at once.
const CONNECTIONS: usize = 32;

/// Where the packed data come from, each time that a page asks.
pub type Source = Arc<dyn Fn() -> Arc<Vec<u8>> + Send + Sync>;

/// A page that is ready to be served.
pub struct Server {
    listener: TcpListener,
    own: SocketAddr,
    token: Option<String>,
    data: Source,
}

impl Server {
    /// Listens on `address`. `token` must be given for addresses that others can reach.
    pub fn bind(address: SocketAddr, token: Option<String>, data: Source) -> io::Result<Server> {
        if !address.ip().is_loopback() && token.is_none() {
            let why = "an address that others can reach needs a token";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(address)?;
        Ok(Server {
            own: listener.local_addr()?,
            listener,
            token,
            data,
        })
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        let query = self.token.as_ref().map(|token| format!("?token={token}"));
        format!("http://{}/{}", self.own, query.unwrap_or_default())
    }

    /// Answers requests until `stopped` says true; asked every 20 ms.
    pub fn run(&self, stopped: impl Fn() -> bool) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let open = Arc::new(AtomicUsize::new(0));
        while !stopped() {
            match self.listener.accept() {
                Ok((stream, _)) => self.take(stream, &open),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(20));
                }
                // The peer has gone, or descriptors are short: neither ends the server.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
        Ok(())
    }

    fn take(&self, stream: TcpStream, open: &Arc<AtomicUsize>) {
        if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let (own, token) = (self.own, self.token.clone());
        let (data, open) = (self.data.clone(), open.clone());
        thread::spawn(move || {
            // A peer that goes away in between is its own affair.
            let _ = serve(stream, own, token.as_deref(), &data);
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

fn serve(
    mut stream: TcpStream,
    own: SocketAddr,
    token: Option<&str>,
    data: &Source,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(STALL))?;
    let head = head(&mut stream)?;
    let packed;
    let (status, kind, body) = match answer(&head, own, token) {
        Answer::Page => ("200 OK", "text/html; charset=utf-8", PAGE.as_bytes()),
        Answer::Data => {
            packed = data();
            ("200 OK", "application/octet-stream", packed.as_slice())
        }
        Answer::Refused(status) => (status, "text/plain", status.as_bytes()),
    };
    // The page's own policy stands in the page, so that it also holds in a file.
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)?;
    stream.flush()
}

/// A request up to its empty line.
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let mut octets = Vec::new();
    let mut part = [0; 1024];
    while !octets.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || octets.len() > HEAD_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => octets.extend_from_slice(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn fixed(data: &[u8]) -> Source {
        let data = Arc::new(data.to_vec());
        Arc::new(move || data.clone())
    }

    fn ask(own: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(own).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // The server may close before everything was sent.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn the_server_gives_page_and_data_and_nothing_else() {
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(address, None, fixed(b"the data")).unwrap();
        let (own, stop) = (server.own, AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| server.run(|| stop.load(Ordering::SeqCst)).unwrap());
            let get = |path: &str| {
                ask(
                    own,
                    format!("GET {path} HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes(),
                )
            };
            assert!(get("/").contains("<!doctype html>"));
            assert!(get("/data").ends_with("\r\n\r\nthe data"));
            assert!(get("/../../etc/passwd").starts_with("HTTP/1.1 404 "));
            let foreign = ask(own, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
            assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
            // A head without end is cut off, random octets are refused, and the server goes on.
            assert_eq!(ask(own, &vec![b'a'; 64 * 1024]), "");
            assert!(ask(own, b"\xff\xfe\r\n\r\n").starts_with("HTTP/1.1 400 "));
            assert!(get("/data").ends_with("the data"));
            stop.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn others_need_a_token() {
        let all = "0.0.0.0:0".parse().unwrap();
        assert!(Server::bind(all, None, fixed(b"")).is_err());
        let server = Server::bind(all, Some("abc".into()), fixed(b"")).unwrap();
        assert!(server.url().ends_with("/?token=abc"));
    }
}
