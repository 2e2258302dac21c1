//! An HTTP/1.1 server (RFC 9110, 9112) for one connection: GET and HEAD, one request after the other.
//!
//! Each reply states its length, so the connection stays open unless the client asks to close it; the client then closes
//! first and has the TIME-WAIT. Request bodies are not read: such a request is answered, and the connection closed.

use core::fmt::Write;

use super::bulk::octet;
use super::site::{BULK_LEN, Facts, PAGE_MAX, Page, Text};
use crate::tcp::{Congestion, Socket};

/// The longest request, header fields included. A browser's takes half of it.
const REQUEST_MAX: usize = 1024;
/// Room for a reply's header: the longest has 120 octets.
const HEAD_MAX: usize = 160;

/// The state of one HTTP connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connection {
    reply: Option<Reply>,
    /// The present reply is the last one.
    ends: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reply {
    head: Text<HEAD_MAX>,
    body: Text<PAGE_MAX>,
    /// The body is `/50k`.
    bulk: bool,
    /// HEAD: the length is stated, the body is not sent.
    head_only: bool,
    /// Octets written, of header and body together.
    sent: usize,
}

/// A parsed request: its page or error, and how to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    answer: Result<Page, Status>,
    head_only: bool,
    close: bool,
}

/// Why a request gets no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    BadRequest,
    NotFound,
    NotAllowed,
    TimedOut,
    TooLarge,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::NotAllowed => "405 Method Not Allowed\r\nAllow: GET, HEAD",
            Status::TimedOut => "408 Request Timeout",
            Status::TooLarge => "431 Request Header Fields Too Large",
        }
    }
}

impl Connection {
    /// Reads requests and writes replies as far as the socket allows. Returns the number of requests read.
    pub fn serve<C: Congestion>(
        &mut self,
        socket: &mut Socket<'_, C>,
        facts: impl Fn(&Socket<'_, C>) -> Facts,
    ) -> u32 {
        let mut taken = 0;
        loop {
            if let Some(reply) = &mut self.reply {
                if !reply.send(socket) {
                    return taken;
                }
                self.reply = None;
                if self.ends {
                    socket.shutdown();
                }
            }
            if self.ends {
                let (front, back) = socket.readable();
                let rest = front.len() + back.len();
                socket.consume(rest);
                return taken;
            }
            let Some((request, octets)) = next_request(socket) else {
                return taken;
            };
            socket.consume(octets);
            taken += 1;
            self.ends = request.close;
            self.reply = Some(Reply::to(&request, &facts(socket)));
        }
    }

    /// The rest of a request did not come in time: answers 408 (RFC 9110 15.5.9), and reads nothing more.
    pub fn give_up<C: Congestion>(&mut self, socket: &Socket<'_, C>, facts: &Facts) {
        let (front, back) = socket.readable();
        if self.reply.is_none() && front.len() + back.len() > 0 {
            self.reply = Some(Reply::to(&Request::refused(Status::TimedOut), facts));
            self.ends = true;
        }
    }

    /// Whether a reply is being sent.
    pub fn is_busy(&self) -> bool {
        self.reply.is_some()
    }
}

impl Reply {
    fn to(request: &Request, facts: &Facts) -> Reply {
        let mut reply = Reply {
            head: Text::EMPTY,
            body: Text::EMPTY,
            bulk: request.answer == Ok(Page::Bulk),
            head_only: request.head_only,
            sent: 0,
        };
        let (status, media) = match request.answer {
            Ok(page) => {
                let written = page.write(facts, &mut reply.body);
                debug_assert!(written.is_ok(), "{page:?} is longer than its room");
                ("200 OK", page.media())
            }
            Err(status) => {
                let written = writeln!(reply.body, "{}", status.line());
                debug_assert!(written.is_ok());
                (status.line(), "text/plain")
            }
        };
        let connection = if request.close { "close" } else { "keep-alive" };
        let written = write!(
            reply.head,
            "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            reply.body_len()
        );
        debug_assert!(written.is_ok(), "a longer header than any");
        reply
    }

    fn body_len(&self) -> usize {
        match self.bulk {
            true => BULK_LEN as usize,
            false => self.body.as_bytes().len(),
        }
    }

    /// Writes what fits. True when all is written, or nothing more can be.
    fn send<C: Congestion>(&mut self, socket: &mut Socket<'_, C>) -> bool {
        let head = self.head.as_bytes();
        let body = if self.head_only { 0 } else { self.body_len() };
        let all = head.len() + body;
        let (front, back) = socket.vacant();
        let mut written = 0;
        for (place, at) in front.iter_mut().chain(back).zip(self.sent..all) {
            let in_body = at.saturating_sub(head.len());
            *place = match (head.get(at), self.bulk) {
                (Some(&octet), _) => octet,
                (None, true) => octet(in_body as u64),
                (None, false) => self
                    .body
                    .as_bytes()
                    .get(in_body)
                    .copied()
                    .unwrap_or_default(),
            };
            written += 1;
        }
        socket.commit(written);
        self.sent += written;
        self.sent >= all || !socket.may_write()
    }
}

/// The next complete request, and its length in octets.
fn next_request<C: Congestion>(socket: &Socket<'_, C>) -> Option<(Request, usize)> {
    let (front, back) = socket.readable();
    let ready = front.len() + back.len();
    if ready == 0 {
        return None;
    }
    let mut text = [0; REQUEST_MAX];
    let arrived = front.iter().chain(back);
    text.iter_mut()
        .zip(arrived)
        .for_each(|(to, &from)| *to = from);
    let text = text.get(..ready.min(REQUEST_MAX)).unwrap_or_default();
    // An empty line before the request is ignored (RFC 9112 2.2).
    let skipped = text
        .iter()
        .take_while(|octet| b"\r\n".contains(octet))
        .count();
    let text = text.get(skipped..).unwrap_or_default();
    match empty_line(text) {
        Some((end, rest)) => {
            let request = Request::parse(text.get(..end).unwrap_or_default());
            Some((request, skipped + rest))
        }
        None if ready >= REQUEST_MAX => Some((Request::refused(Status::TooLarge), ready)),
        None => None,
    }
}

/// Where the header section ends and where its empty line does. A line may end with a bare LF (RFC 9112 2.2).
fn empty_line(text: &[u8]) -> Option<(usize, usize)> {
    text.iter().enumerate().find_map(|(at, &octet)| {
        let rest = match text.get(at + 1..)? {
            _ if octet != b'\n' => return None,
            [b'\n', ..] => at + 2,
            [b'\r', b'\n', ..] => at + 3,
            _ => return None,
        };
        Some((at, rest))
    })
}

impl Request {
    fn refused(status: Status) -> Request {
        Request {
            answer: Err(status),
            head_only: false,
            close: true,
        }
    }

    /// Parses a request without the empty line at its end.
    fn parse(text: &[u8]) -> Request {
        let mut lines = text
            .split(|&octet| octet == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut words = lines
            .next()
            .unwrap_or_default()
            .split(|&octet| octet == b' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some(version), None) =
            (method, target, version, words.next())
        else {
            return Request::refused(Status::BadRequest);
        };
        let minor = match version {
            b"HTTP/1.1" => 1,
            b"HTTP/1.0" => 0,
            _ => return Request::refused(Status::BadRequest),
        };
        // HTTP/1.0 connections do not persist (RFC 9112, 9.3).
        let (mut close, mut body, mut hosts) = (minor == 0, false, 0);
        for line in lines {
            let mut parts = line.splitn(2, |&octet| octet == b':');
            let name = parts.next().unwrap_or_default();
            let value = parts.next().unwrap_or_default().trim_ascii();
            close |=
                name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close");
            body |= name.eq_ignore_ascii_case(b"content-length") && value != b"0"
                || name.eq_ignore_ascii_case(b"transfer-encoding");
            hosts += usize::from(name.eq_ignore_ascii_case(b"host"));
        }
        // RFC 9112 3.2: exactly one in HTTP/1.1, at most one in any request.
        if hosts > 1 || hosts < minor {
            return Request::refused(Status::BadRequest);
        }
        let path = target.split(|&octet| octet == b'?').next();
        let answer = match method {
            b"GET" | b"HEAD" => Page::find(path.unwrap_or_default()).ok_or(Status::NotFound),
            _ => Err(Status::NotAllowed),
        };
        Request {
            answer,
            head_only: method == b"HEAD",
            close: close || body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, answer: Result<Page, Status>, head_only: bool, close: bool) {
        let wanted = Request {
            answer,
            head_only,
            close,
        };
        assert_eq!(Request::parse(text.as_bytes()), wanted, "{text:?}");
    }

    #[test]
    fn requests_are_read() {
        check("GET / HTTP/1.1\r\nHost: a", Ok(Page::Index), false, false);
        check("GET /50k HTTP/1.0", Ok(Page::Bulk), false, true);
        check(
            "HEAD /info?x=1 HTTP/1.1\r\nCONNECTION:  Close\r\nhost:",
            Ok(Page::Info),
            true,
            true,
        );
        check(
            "GET /nothing HTTP/1.1\nHost: a",
            Err(Status::NotFound),
            false,
            false,
        );
        check(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7",
            Err(Status::NotAllowed),
            false,
            true,
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
            Ok(Page::Index),
            false,
            true,
        );
        for bad in [
            "",
            "GET /",
            "GET / HT",
            "GET / HTTP/2",
            "GET  / HTTP/1.1",
            "\u{1}\u{2}",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: a",
        ] {
            check(bad, Err(Status::BadRequest), false, true);
        }
    }

    #[test]
    fn the_longest_header_fits() {
        for answer in [
            Ok(Page::Bulk),
            Err(Status::NotAllowed),
            Err(Status::TooLarge),
        ] {
            let request = Request {
                answer,
                ..Request::refused(Status::TooLarge)
            };
            let facts = Facts {
                node: 1,
                now: chappe_core::Instant::ZERO,
                radio: (chappe_core::Duration::ZERO, chappe_core::Instant::ZERO),
                requests: 0,
                sunk: 0,
                tcp: None,
            };
            let reply = Reply::to(&request, &facts);
            assert!(reply.head.as_bytes().ends_with(b"\r\n\r\n"));
        }
    }
}
