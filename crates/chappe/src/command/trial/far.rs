//! The host at the other end: a web server that serves as many octets as the path of the URL says, and takes uploads.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use chappe_scenario::quantity::Size;

/// The port of HTTP.
pub const PORT: u16 = 80;
/// Connections at a time; further ones are closed.
const CONNECTIONS: usize = 64;
/// Octets of a request's head.
const HEAD_MAX: u64 = 16 << 10;
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves in this thread's namespace until the program ends. `usual` octets are behind `/`.
pub fn serve(usual: u64) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", PORT))?;
    let open = Arc::new(AtomicUsize::new(0));
    thread::Builder::new().spawn(move || {
        for client in listener.incoming().flatten() {
            if open.load(Ordering::Relaxed) >= CONNECTIONS {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let open = Arc::clone(&open);
            thread::spawn(move || {
                // A client that goes away is its own affair.
                let _ = answer(&client, usual);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    })?;
    Ok(())
}

fn answer(mut client: &TcpStream, usual: u64) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(client);
    let Some(request) = Request::read(&mut reader)? else {
        return refuse(client, "400 Bad Request");
    };
    match &*request.method {
        "GET" | "HEAD" => {
            let wanted = match request.target.trim_start_matches('/') {
                "" => Some(usual),
                name => size(name),
            };
            // A browser asks for its icon on its own.
            let Some(size) = wanted else {
                return refuse(client, "404 Not Found");
            };
            client.write_all(head("200 OK", size).as_bytes())?;
            if request.method == "GET" {
                send(client, size)?;
            }
        }
        "PUT" | "POST" => {
            if request.expects {
                client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let taken = io::copy(&mut reader.take(request.length), &mut io::sink())?;
            let body = format!("{taken} octets\n");
            write!(client, "{}{body}", head("200 OK", body.len() as u64))?;
        }
        _ => return refuse(client, "405 Method Not Allowed"),
    }
    client.shutdown(std::net::Shutdown::Write)
}

/// Octets that a file's name asks for: `5MB`, `300 kB`, `12345`.
pub fn size(name: &str) -> Option<u64> {
    let name = name.replace("%20", " ");
    let plain = name.parse().ok();
    plain.or_else(|| Some(Size::parse(&name).ok()?.value() as u64))
}

fn send(mut client: &TcpStream, size: u64) -> io::Result<()> {
    // Octets that no card compresses, the same in both runs.
    let block: Vec<u8> = (0..1u32 << 14)
        .map(|place| (place.wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect();
    let mut left = size;
    while left > 0 {
        let now = left.min(block.len() as u64);
        client.write_all(&block[..now as usize])?;
        left -= now;
    }
    Ok(())
}

fn head(status: &str, length: u64) -> String {
    format!(
        "HTTP/1.1 {status}\r\nServer: chappe try\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

fn refuse(mut client: &TcpStream, status: &str) -> io::Result<()> {
    client.write_all(head(status, 0).as_bytes())
}

struct Request {
    method: String,
    target: String,
    length: u64,
    expects: bool,
}

impl Request {
    /// `None` if what came is no request.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
        let mut reader = reader.take(HEAD_MAX);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_ascii_whitespace();
        let (Some(method), Some(target), Some(version)) =
            (words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        if !version.starts_with("HTTP/1.") {
            return Ok(None);
        }
        let mut request = Request {
            method: method.to_owned(),
            target: target.to_owned(),
            length: 0,
            expects: false,
        };
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return Ok(line.trim_end().is_empty().then_some(request));
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let Ok(length) = value.parse() else {
                    return Ok(None);
                };
                request.length = length;
            }
            request.expects |=
                name.eq_ignore_ascii_case("expect") && value.eq_ignore_ascii_case("100-continue");
        }
    }
}

/// Downloads `http://far/` from `host`; returns the octets of the file. It must have all that were announced.
pub fn download(host: std::net::Ipv4Addr) -> io::Result<u64> {
    let mut server = TcpStream::connect_timeout(&(host, PORT).into(), PATIENCE)?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.write_all(b"GET / HTTP/1.1\r\nHost: far\r\nConnection: close\r\n\r\n")?;
    let mut reader = BufReader::new(server);
    let mut line = String::new();
    let mut length: Option<u64> = None;
    while line.trim_end() != "" || length.is_none() {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(value) = line.strip_prefix("Content-Length:") {
            length = value.trim().parse().ok();
        }
    }
    let taken = io::copy(&mut reader, &mut io::sink())?;
    match Some(taken) == length {
        true => Ok(taken),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let _ = answer(&client, 70);
        });
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        server.join().unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }

    #[test]
    fn downloads_and_uploads_are_served() {
        let said = ask("GET / HTTP/1.1\r\nHost: far\r\n\r\n");
        assert!(said.contains("Content-Length: 70\r\n"), "{said}");
        let said = ask("HEAD /5MB HTTP/1.0\r\n\r\n");
        assert!(said.contains("Content-Length: 5000000\r\n") && said.ends_with("\r\n\r\n"));
        let said = ask("PUT /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd");
        assert!(said.ends_with("4 octets\n"), "{said}");
    }

    #[test]
    fn other_requests_are_refused() {
        for (request, says) in [
            ("\r\n", "400"),
            ("GET /\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"),
            ("DELETE / HTTP/1.1\r\n\r\n", "405"),
            ("GET /favicon.ico HTTP/1.1\r\n\r\n", "404"),
            ("GET /5parsecs HTTP/1.1\r\n\r\n", "404"),
        ] {
            assert!(ask(request).contains(says), "{request}");
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("5MB"), Some(5_000_000));
        assert_eq!(size("300%20kB"), Some(300_000));
        assert_eq!(size("12345"), Some(12_345));
        assert_eq!(size("x"), None);
    }
}
