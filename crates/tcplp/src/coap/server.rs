//! The server: receives posts block by block from several clients, and serves a content block by block.

use core::net::Ipv6Addr;

use super::message::{Block, Code, Kind, Message, Token, Writer, option};

/// A client: address and port.
type Peer = (Ipv6Addr, u16);

/// A server that tracks up to `PEERS` clients: the last message of each, to answer duplicates without processing them twice
/// (RFC 7252, 4.5), and the length of its body so far.
#[derive(Clone, Debug)]
pub struct Server<const PEERS: usize> {
    peers: [Option<Known>; PEERS],
    /// The place that the next unknown client takes.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    peer: Peer,
    id: u16,
    answer: Code,
    token: Token,
    /// Octets of the body so far.
    octets: usize,
}

/// A part of a body that a message carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The octets, each delivered once.
    pub payload: &'a [u8],
    /// The position of the first one in the body.
    pub start: usize,
    /// Whether the body ends with this part.
    pub last: bool,
}

impl<const PEERS: usize> Default for Server<PEERS> {
    fn default() -> Self {
        Server {
            peers: [None; PEERS],
            next: 0,
        }
    }
}

impl<const PEERS: usize> Server<PEERS> {
    /// Processes a datagram of a client. Returns the part of the body it carried, and the length of the answer written to
    /// `answer`, each if there is one.
    pub fn handle<'a>(
        &mut self,
        peer: Peer,
        bytes: &'a [u8],
        answer: &mut [u8],
    ) -> (Option<Received<'a>>, Option<usize>) {
        let Ok(message) = Message::parse(bytes) else {
            return (None, None);
        };
        if !matches!(message.kind, Kind::Confirmable | Kind::NonConfirmable)
            || !message.code.is_request()
        {
            return (None, None);
        }
        let place = self.place_of(peer);
        let Some(known) = self.peers.get_mut(place) else {
            return (None, None);
        };
        let repeated = known.is_some_and(|known| known.peer == peer && known.id == message.id);
        let (code, received) = match repeated {
            true => (known.map_or(Code::EMPTY, |known| known.answer), None),
            false => Self::judge(known, peer, &message),
        };
        let confirm = message.kind == Kind::Confirmable;
        let len = confirm
            .then(|| Self::confirm(&message, code, answer))
            .flatten();
        (received, len)
    }

    fn confirm(message: &Message<'_>, code: Code, answer: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(answer, Kind::Ack, code, message.id, message.token)?;
        if let Some(block) = message.block1() {
            writer.block(option::BLOCK1, block)?;
        }
        Some(writer.len())
    }

    /// The place of a client; an unknown one takes the next place in turn.
    fn place_of(&mut self, peer: Peer) -> usize {
        let of = |known: &Option<Known>| known.is_some_and(|known| known.peer == peer);
        if let Some(place) = self.peers.iter().position(of) {
            return place;
        }
        let place = self.next;
        self.next = (place + 1) % PEERS.max(1);
        place
    }

    fn judge<'a>(
        known: &mut Option<Known>,
        peer: Peer,
        message: &Message<'a>,
    ) -> (Code, Option<Received<'a>>) {
        let block = message.block1().unwrap_or(Block {
            number: 0,
            more: false,
            szx: 6,
        });
        let start = (block.number as usize).saturating_mul(block.size());
        let so_far = known
            .filter(|known| known.peer == peer && known.token == message.token)
            .map_or(0, |known| known.octets);
        let lossy = message.kind == Kind::NonConfirmable;
        // RFC 7959, 2.5: a gap cannot be filled later. Non-confirmable blocks may leave gaps.
        let gap = block.number > 0 && start != so_far && !lossy;
        let (answer, received) = if message.unknown_critical() {
            (Code::BAD_OPTION, None)
        } else if message.code != Code::POST {
            (Code::NOT_ALLOWED, None)
        } else if gap {
            (Code::INCOMPLETE, None)
        } else {
            let received = Received {
                payload: message.payload,
                start,
                last: !block.more,
            };
            match block.more {
                true => (Code::CONTINUE, Some(received)),
                false => (Code::CHANGED, Some(received)),
            }
        };
        let octets = match received {
            Some(received) => start.saturating_add(received.payload.len()),
            None => so_far,
        };
        *known = Some(Known {
            peer,
            id: message.id,
            answer,
            token: message.token,
            octets,
        });
        (answer, received)
    }
}

/// Answers a confirmable GET with the requested block of a content of `octets`, in blocks of `1 << (szx + 4)`, or smaller if
/// the client asks for it. `read` copies a part, from a position on. Returns the length of the answer and whether more
/// blocks follow; `None` if the datagram is no such request. Stateless: a duplicate gets the same answer.
pub fn content(
    datagram: &[u8],
    octets: usize,
    szx: u8,
    read: impl FnOnce(usize, &mut [u8]),
    answer: &mut [u8],
) -> Option<(usize, bool)> {
    let message = Message::parse(datagram).ok()?;
    if message.kind != Kind::Confirmable || message.code != Code::GET {
        return None;
    }
    let reply = |code, answer| Writer::new(answer, Kind::Ack, code, message.id, message.token);
    if message.unknown_critical() {
        return Some((reply(Code::BAD_OPTION, answer)?.len(), false));
    }
    let asked = message.block2();
    let szx = asked.map_or(szx, |block| block.szx.min(szx)).min(6);
    let mut block = Block {
        // NUM counts blocks of the size in the same option: rescale it to ours.
        number: asked.map_or(0, |block| block.number << block.szx.saturating_sub(szx)),
        more: false,
        szx,
    };
    let start = (block.number as usize).saturating_mul(block.size());
    if start > 0 && start >= octets {
        return Some((reply(Code::BAD_OPTION, answer)?.len(), false));
    }
    let len = octets.saturating_sub(start).min(block.size());
    block.more = start + len < octets;
    let mut writer = reply(Code::CONTENT, answer)?;
    if block.more || block.number > 0 {
        writer.block(option::BLOCK2, block)?;
    }
    read(start, writer.room(len)?);
    Some((writer.len(), block.more))
}
