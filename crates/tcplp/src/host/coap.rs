//! A CoAP server (RFC 7252) of the same pages, with blockwise responses (RFC 7959).
//!
//! Between two requests it only keeps the answers to be sent and the latest posts: each block is made when it is requested.
//! Answers are piggybacked on acknowledgements; a non-confirmable request gets a non-confirmable answer. A page may change
//! between two of its blocks, so request short pages in one block.

use core::net::Ipv6Addr;

use super::bulk::fill;
use super::site::{BULK_LEN, Facts, PAGE_MAX, Page, Text};
use super::udp::{Datagram, Outgoing};
use crate::coap::{Block, Code, Kind, Message, PORT, Token, Writer, option};

/// Answers that can wait to be sent, and posts that are remembered.
const WAITING: usize = 4;
/// The longest path in octets, slashes included.
const PATH_MAX: usize = 32;
/// Size exponents: a block has at most 1024 octets; `/50k` is sent in blocks of 512 by default, which take five or six
/// frames like a segment of TCPlp.
const SZX_MAX: u8 = 6;
const SZX_BULK: u8 = 5;

type Peer = (Ipv6Addr, u16);

/// The CoAP server of a mote.
#[derive(Clone, Debug)]
pub(super) struct Server {
    waiting: [Option<Answer>; WAITING],
    /// The latest posts, so that a duplicate is not counted twice (RFC 7252, 4.5).
    seen: [Option<(Peer, u16)>; WAITING],
    turn: usize,
    id: u16,
    /// Octets posted to `/sink`.
    pub sunk: u64,
    /// Requests accepted, duplicates included.
    pub requests: u32,
    /// Datagrams that were no request, or found no place for an answer.
    pub dropped: u32,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    to: Peer,
    kind: Kind,
    code: Code,
    id: u16,
    token: Token,
    page: Option<(Page, Option<Block>)>,
    block1: Option<Block>,
}

impl Server {
    pub const NEW: Server = Server {
        waiting: [None; WAITING],
        seen: [None; WAITING],
        turn: 0,
        id: 1,
        sunk: 0,
        requests: 0,
        dropped: 0,
    };

    /// A datagram to CoAP's port.
    pub fn handle(&mut self, datagram: &Datagram<'_>) {
        let answer = Message::parse(datagram.payload)
            .ok()
            .and_then(|message| self.answer(datagram.from, &message));
        let place = self.waiting.iter_mut().find(|place| place.is_none());
        match (answer, place) {
            (Some(answer), Some(place)) => {
                *place = Some(answer);
                self.requests = self.requests.wrapping_add(1);
            }
            // The client retransmits a confirmable request.
            _ => self.dropped = self.dropped.wrapping_add(1),
        }
    }

    fn answer(&mut self, from: Peer, message: &Message<'_>) -> Option<Answer> {
        let kind = match message.kind {
            Kind::Confirmable => Kind::Ack,
            Kind::NonConfirmable => Kind::NonConfirmable,
            Kind::Ack | Kind::Reset => return None,
        };
        let mut answer = Answer {
            to: from,
            kind,
            code: Code::EMPTY,
            id: message.id,
            token: message.token,
            page: None,
            block1: None,
        };
        if message.code == Code::EMPTY && kind == Kind::Ack {
            // RFC 7252, 4.3: a "CoAP ping".
            answer.kind = Kind::Reset;
            return Some(answer);
        }
        if !message.code.is_request() {
            return None;
        }
        if kind == Kind::NonConfirmable {
            self.id = self.id.wrapping_add(1);
            answer.id = self.id;
        }
        let path = Path::of(message);
        answer.code = match message.code {
            _ if unknown_critical(message) => Code::BAD_OPTION,
            Code::GET => match path.as_ref().and_then(|path| Page::find(path.as_bytes())) {
                None => Code::NOT_FOUND,
                Some(page) => {
                    answer.page = Some((page, message.block2()));
                    Code::CONTENT
                }
            },
            Code::POST | Code::PUT if path.as_ref().is_some_and(Path::is_sink) => {
                answer.block1 = message.block1();
                self.post(from, message)
            }
            _ => Code::NOT_ALLOWED,
        };
        Some(answer)
    }

    fn post(&mut self, from: Peer, message: &Message<'_>) -> Code {
        if message.payload.len() > 1 << (SZX_MAX + 4) {
            return Code::TOO_LARGE;
        }
        let known = Some((from, message.id));
        if !self.seen.contains(&known) {
            if let Some(place) = self.seen.get_mut(self.turn) {
                *place = known;
            }
            self.turn = (self.turn + 1) % WAITING;
            self.sunk = self.sunk.saturating_add(message.payload.len() as u64);
        }
        match message.block1() {
            Some(block) if block.more => Code::CONTINUE,
            _ => Code::CHANGED,
        }
    }

    /// The next answer, written to the front of `payload`.
    pub fn poll(&mut self, facts: impl Fn() -> Facts, payload: &mut [u8]) -> Option<Outgoing> {
        let answer = self.waiting.iter_mut().find_map(Option::take)?;
        let len = answer.write(facts, payload)?;
        Some(Outgoing {
            to: answer.to,
            port: PORT,
            len,
        })
    }
}

impl Answer {
    fn write(&self, facts: impl Fn() -> Facts, payload: &mut [u8]) -> Option<usize> {
        let Some((page, asked)) = self.page else {
            return self.write_code(self.code, payload);
        };
        let mut text = Text::<PAGE_MAX>::EMPTY;
        page.write(&facts(), &mut text).ok()?;
        let all = match page {
            Page::Bulk => BULK_LEN as usize,
            _ => text.as_bytes().len(),
        };
        let usual = Block {
            number: 0,
            more: false,
            szx: if page == Page::Bulk {
                SZX_BULK
            } else {
                SZX_MAX
            },
        };
        let block = asked.unwrap_or(usual);
        let start = (block.number as usize).saturating_mul(block.size());
        if start >= all {
            return self.write_code(Code::BAD_REQUEST, payload);
        }
        let len = block.size().min(all - start);
        let block = Block {
            more: start + len < all,
            ..block
        };
        let mut writer = Writer::new(payload, self.kind, self.code, self.id, self.token)?;
        writer.number(option::CONTENT_FORMAT, page.content_format().into())?;
        if asked.is_some() || block.more {
            writer.block(option::BLOCK2, block)?;
        }
        if block.number == 0 && block.more {
            writer.number(option::SIZE2, all as u32)?;
        }
        let mut body = [0; 1 << (SZX_MAX + 4)];
        let body = body.get_mut(..len)?;
        match page {
            Page::Bulk => {
                fill(start as u64, body);
            }
            _ => body.copy_from_slice(text.as_bytes().get(start..start + len)?),
        }
        writer.payload(body)?;
        Some(writer.len())
    }

    fn write_code(&self, code: Code, payload: &mut [u8]) -> Option<usize> {
        let token = if code == Code::EMPTY {
            Token::default()
        } else {
            self.token
        };
        let mut writer = Writer::new(payload, self.kind, code, self.id, token)?;
        if let Some(block) = self.block1 {
            writer.block(option::BLOCK1, block)?;
        }
        Some(writer.len())
    }
}

/// Whether the message has a critical option that this server does not understand (RFC 7252, 5.4.1).
fn unknown_critical(message: &Message<'_>) -> bool {
    let known = [
        option::URI_HOST,
        option::URI_PORT,
        option::URI_PATH,
        option::URI_QUERY,
        option::ACCEPT,
        option::BLOCK1,
        option::BLOCK2,
    ];
    let blocks = [option::BLOCK1, option::BLOCK2];
    let unread = |number| match number {
        option::BLOCK1 => message.block1().is_none(),
        _ => message.block2().is_none(),
    };
    message.options().any(|(number, _)| {
        number % 2 == 1 && !known.contains(&number) || blocks.contains(&number) && unread(number)
    })
}

/// A path assembled from its Uri-Path options.
struct Path {
    octets: [u8; PATH_MAX],
    len: usize,
}

impl Path {
    /// `None` if it is longer than any path here.
    fn of(message: &Message<'_>) -> Option<Path> {
        let mut path = Path {
            octets: [0; PATH_MAX],
            len: 0,
        };
        let segments = message.options();
        for (_, segment) in segments.filter(|(number, _)| *number == option::URI_PATH) {
            path.push(b"/")?;
            path.push(segment)?;
        }
        if path.len == 0 {
            path.push(b"/")?;
        }
        Some(path)
    }

    fn push(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.len.checked_add(octets.len())?;
        self.octets.get_mut(self.len..end)?.copy_from_slice(octets);
        self.len = end;
        Some(())
    }

    fn as_bytes(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }

    fn is_sink(&self) -> bool {
        self.as_bytes() == b"/sink"
    }
}
