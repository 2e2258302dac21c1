//! A page on a mote, and its visitor (TCPlp 8.1): HTTP over TCP, or CoAP.
//!
//! The minimum of HTTP/1.1 (RFC 9112) for a response of fixed length. A request ends at its first empty line, whatever it
//! asks for. The response states its length. The client closes first, so that the mote has no TIME-WAIT.

use core::fmt::{self, Write};
use core::net::Ipv6Addr;

use chappe_core::{Duration, Expect, Instant, Wake};

use super::bulk::{fill, octet};
use super::{Application, Datagram, Outgoing};
use crate::coap;
use crate::tcp::{Congestion, Socket, State};

/// Connections that a page serves at a time.
const VISITORS: usize = 4;
/// The end of a header section.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";
/// The request of a visitor.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: mote\r\n\r\n";

/// How long a CoAP server expects the request for the next block: RFC 7252's ACK_TIMEOUT, after which a client that
/// lost the answer asks for the same one again, with its random factor of 1.5.
const NEXT_BLOCK: Duration = Duration::from_secs(3);

/// Serves a page of test octets: by HTTP on every socket, by CoAP on its port.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    octets: usize,
    /// Size exponent of CoAP's blocks.
    szx: u8,
    visits: [Visitor; VISITORS],
    request: Option<Request>,
    /// The request for the next CoAP block is expected until then.
    expects_until: Option<Instant>,
    /// Pages sent completely by HTTP.
    pub served: u32,
}

/// A CoAP request for a block, kept until it is answered.
#[derive(Clone, Copy, Debug)]
struct Request {
    from: (Ipv6Addr, u16),
    len: usize,
    datagram: [u8; 64],
    at: Instant,
}

/// The progress of one HTTP connection.
#[derive(Clone, Copy, Debug, Default)]
struct Visitor {
    /// Octets of [`EMPTY_LINE`] matched at the end of what was received.
    matched: usize,
    /// Octets of the response written, if a response is due.
    written: Option<usize>,
}

/// The status line and header section of a response.
struct Head {
    text: [u8; 64],
    len: usize,
}

impl Write for Head {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        let room = self.text.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// The octets of [`EMPTY_LINE`] matched after one more octet.
fn matched(so_far: usize, octet: u8) -> usize {
    match EMPTY_LINE.get(so_far) {
        Some(&expected) if expected == octet => so_far + 1,
        // Of the prefixes of CR LF CR LF only the first octet can restart a match here.
        _ => usize::from(EMPTY_LINE.first() == Some(&octet)),
    }
}

impl Page {
    /// A page of `octets`, in CoAP blocks of `2^(szx + 4)`.
    pub const fn new(octets: usize, szx: u8) -> Page {
        Page {
            octets,
            szx,
            visits: [Visitor {
                matched: 0,
                written: None,
            }; VISITORS],
            request: None,
            expects_until: None,
            served: 0,
        }
    }

    fn head(&self) -> Head {
        let mut head = Head {
            text: [0; 64],
            len: 0,
        };
        // It fits: 39 octets and at most 20 digits.
        let _ = write!(
            head,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            self.octets
        );
        head
    }

    fn answer<C: Congestion>(&mut self, number: usize, socket: &mut Socket<'_, C>) {
        let head = self.head();
        let all = head.len + self.octets;
        let Some(visit) = self.visits.get_mut(number) else {
            return;
        };
        let Some(written) = visit.written else { return };
        let (front, back) = socket.vacant();
        let mut at = written;
        for place in front.iter_mut().chain(back) {
            if at == all {
                break;
            }
            *place = match head.text.get(at).filter(|_| at < head.len) {
                Some(&octet) => octet,
                None => octet((at - head.len) as u64),
            };
            at += 1;
        }
        socket.commit(at - written);
        visit.written = Some(at);
        if at == all {
            *visit = Visitor::default();
            self.served = self.served.saturating_add(1);
        }
    }
}

impl<'a, C: Congestion> Application<'a, C> for Page {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        for (number, socket) in sockets.iter_mut().enumerate().take(VISITORS) {
            if socket.state() == State::Closed {
                if let Some(visit) = self.visits.get_mut(number) {
                    *visit = Visitor::default();
                }
                continue;
            }
            if let Some(visit) = self.visits.get_mut(number) {
                let (front, back) = socket.readable();
                let read = front.len() + back.len();
                for &octet in front.iter().chain(back) {
                    visit.matched = matched(visit.matched, octet);
                    if visit.matched == EMPTY_LINE.len() {
                        *visit = Visitor {
                            matched: 0,
                            written: visit.written.or(Some(0)),
                        };
                    }
                }
                socket.consume(read);
            }
            self.answer(number, socket);
            if socket.at_end() {
                socket.close(now);
            }
        }
    }

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let mut kept = [0; 64];
        let len = datagram.payload.len();
        if datagram.port == coap::PORT
            && let Some(room) = kept.get_mut(..len)
        {
            room.copy_from_slice(datagram.payload);
            self.request = Some(Request {
                from: datagram.from,
                len,
                datagram: kept,
                at: now,
            });
        }
    }

    fn poll_datagram(&mut self, _: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        let request = self.request.take()?;
        let read = |start: usize, part: &mut [u8]| {
            fill(start as u64, part);
        };
        let datagram = request.datagram.get(..request.len)?;
        let (len, more) = coap::content(datagram, self.octets, self.szx, read, payload)?;
        //= tcplp 8.1.1: during a transfer the radio polls often
        self.expects_until = more.then(|| request.at + NEXT_BLOCK);
        Some(Outgoing {
            to: request.from,
            port: coap::PORT,
            len,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expects_until.take_if(|until| *until <= now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let at = self.expects_until?;
        Some(Wake {
            at,
            why: "no request for the next block",
        })
    }

    fn expects(&self) -> Expect {
        match self.expects_until {
            Some(_) => Expect::Request,
            None => Expect::Nothing,
        }
    }
}

/// Visits a page by HTTP, once: sends the request as soon as the first socket is connected, reads the response, closes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visit {
    asked: bool,
    matched: usize,
    /// The content length, as far as its digits have arrived.
    length: usize,
    digits: Digits,
    body: bool,
    /// Octets of the page received.
    pub received: usize,
    /// Of these, the octets that were not the expected ones.
    pub wrong: usize,
    /// When the page was complete.
    pub done: Option<Instant>,
}

/// The position relative to the number behind the first colon of the header section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Digits {
    #[default]
    Before,
    At,
    Behind,
}

impl Visit {
    fn read(&mut self, now: Instant, octet_read: u8) {
        if self.body {
            let expected = octet(self.received as u64);
            self.wrong += usize::from(octet_read != expected);
            self.received += 1;
        } else {
            self.read_head(octet_read);
        }
        if self.body && self.received == self.length && self.done.is_none() {
            self.done = Some(now);
        }
    }

    /// Reads the header section, whose only field is the content length.
    fn read_head(&mut self, octet: u8) {
        self.matched = matched(self.matched, octet);
        self.body = self.matched == EMPTY_LINE.len();
        match (self.digits, octet) {
            (Digits::Before, b':') => self.digits = Digits::At,
            (Digits::At, b'0'..=b'9') => {
                let digit = usize::from(octet - b'0');
                self.length = self.length.saturating_mul(10).saturating_add(digit);
            }
            (Digits::At, b'\r') => self.digits = Digits::Behind,
            _ => {}
        }
    }
}

impl<'a, C: Congestion> Application<'a, C> for Visit {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a, C>]) {
        let Some(socket) = sockets.first_mut() else {
            return;
        };
        if socket.state() == State::Established && !self.asked {
            self.asked = socket.write(REQUEST) == REQUEST.len();
        }
        let (front, back) = socket.readable();
        let read = front.len() + back.len();
        for &octet in front.iter().chain(back) {
            self.read(now, octet);
        }
        socket.consume(read);
        if self.done.is_some() && socket.state() != State::Closed {
            socket.close(now);
        }
    }
}
