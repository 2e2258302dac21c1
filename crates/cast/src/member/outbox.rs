//! Sent frames: queued control frames, news, pieces of manifests, and the frames of the Pacifier nodes in turn.

use std::collections::VecDeque;

use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome,
};

use super::{Member, TRANSFERS_MAX, Transfer, URGENT};
use crate::frame;
use crate::manifest::TICKET;
use crate::roster::State;

/// Frames that wait for the link, and the tokens of frames that the link has taken.
#[derive(Default)]
pub(super) struct Outbox {
    /// Control frames and pieces of manifests.
    frames: VecDeque<(Address, Vec<u8>)>,
    /// Frames dropped because the queue was full.
    crowded: u64,
    /// The sender whose transfer was served last.
    turn: u16,
    /// The last token given to the link.
    token: u32,
    /// Open tokens, oldest first: the link's token, a sender, and the token of that sender's node.
    tokens: VecDeque<(u32, u16, u32)>,
}

/// The usual interval between news.
const NEWS: Duration = Duration::from_secs(1);
/// Largest number of queued frames.
const FRAMES_MAX: usize = 256;
/// Queue length from which on no pieces of manifests are added.
const BUSY: usize = 8;
/// Random delay that spreads the requests of many receivers for one manifest.
const ASK_JITTER: Duration = Duration::from_millis(20);
/// Largest number of frames without an outcome.
const TOKENS_MAX: usize = 512;
/// The token of control frames, whose outcome is ignored.
const OURS: u32 = u32::MAX;

impl Outbox {
    /// Queues a frame. If the queue is full, the frame is dropped, as if lost on the air.
    pub fn push(&mut self, to: Address, octets: Vec<u8>) {
        if self.frames.len() >= FRAMES_MAX {
            self.crowded = self.crowded.saturating_add(1);
            return;
        }
        self.frames.push_back((to, octets));
    }

    /// Writes the next frame to `sdu`. A frame that does not fit is dropped.
    pub fn pop(&mut self, sdu: &mut [u8]) -> Option<LinkSend> {
        let (to, octets) = self.frames.pop_front()?;
        sdu.get_mut(..octets.len())?.copy_from_slice(&octets);
        Some(LinkSend {
            to,
            len: octets.len(),
            class: Class::Control,
            mode: None,
            token: OURS,
        })
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether the queue is short enough for pieces of manifests.
    pub fn takes_pieces(&self) -> bool {
        self.frames.len() < BUSY
    }

    /// Frames dropped because the queue was full.
    pub fn crowded(&self) -> u64 {
        self.crowded
    }

    /// Maps the token of a sender's node to a token for the link: nodes choose theirs independently.
    fn lend(&mut self, source: u16, token: u32) -> u32 {
        self.token = self.token.wrapping_add(1) % OURS;
        if self.tokens.len() >= TOKENS_MAX {
            self.tokens.pop_front();
        }
        self.tokens.push_back((self.token, source, token));
        self.token
    }

    /// Maps a token of the link back to a sender and its node's token.
    fn redeem(&mut self, token: u32) -> Option<(u16, u32)> {
        let place = self.tokens.iter().position(|known| known.0 == token)?;
        let (_, source, token) = self.tokens.remove(place)?;
        Some((source, token))
    }
}

impl Member {
    /// Sends this member's record, other records and tickets, if it is time.
    pub(super) fn send_news(&mut self, now: Instant) {
        if self.news_at > now {
            return;
        }
        self.roster.renew();
        let room = self.frame_max(now);
        let alive = |transfer: &&Transfer| {
            let id = transfer.ticket.id();
            let record = self.roster.get(now, transfer.ticket.source);
            let offers = record.and_then(|record| record.transfer(id));
            let offered = transfer.offer.is_some() || matches!(offers, Some((State::Offering, _)));
            offered || transfer.is_withdrawn(now)
        };
        // This member's ticket first: other members also spread theirs.
        let own = self.transfers.get(&self.node);
        let others = self.transfers.iter();
        let others = others.filter(|&(&of, _)| of != self.node);
        let tickets: Vec<[u8; TICKET]> = own
            .into_iter()
            .chain(others.map(|(_, transfer)| transfer))
            .filter(alive)
            .map(|transfer| transfer.ticket.encode())
            .take(TRANSFERS_MAX.min((room / 2).saturating_sub(3) / TICKET))
            .collect();
        let mut octets = vec![frame::NEWS, frame::VERSION, tickets.len() as u8];
        octets.extend(tickets.iter().flatten());
        let len = octets.len();
        octets.resize(room.max(len), 0);
        let written = self.roster.write(now, &mut octets[len..]);
        octets.truncate(len + written);
        self.outbox.push(Address::BROADCAST, octets);
        let wait = match self.urgent {
            0 => NEWS,
            _ => URGENT,
        };
        self.urgent = self.urgent.saturating_sub(1);
        let jitter = Duration::from_nanos(self.random.below(wait.nanos() / 2));
        self.news_at = now + wait * 3 / 4 + jitter;
    }

    /// Requests missing pieces of manifests, and answers requests.
    pub(super) fn exchange_manifests(&mut self, now: Instant) {
        for (_, transfer) in &mut self.transfers {
            let id = transfer.ticket.id();
            if transfer.fetch.ask_at().is_some_and(|at| at <= now) {
                let jitter = Duration::from_nanos(self.random.below(ASK_JITTER.nanos()));
                if let Some((first, bits)) = transfer.fetch.ask(now, jitter) {
                    let octets = frame::ask(id, first, &bits);
                    self.outbox.push(Address::BROADCAST, octets);
                }
            }
            while transfer.fetch.give_at().is_some_and(|at| at <= now) && self.outbox.takes_pieces()
            {
                let Some((piece, octets)) = transfer.fetch.give() else {
                    break;
                };
                let octets = frame::piece(id, piece, octets);
                self.outbox.push(Address::BROADCAST, octets);
            }
        }
    }

    /// The next frame of the Pacifier nodes, in turn.
    pub(super) fn poll_nodes(
        &mut self,
        now: Instant,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        let mut source = self.outbox.turn;
        for _ in 0..self.transfers.len() {
            let mut behind = self.transfers.keys().filter(|&&next| next > source);
            let next = behind
                .next()
                .or(self.transfers.first().map(|(next, _)| next));
            source = next.map_or(source, |&next| next);
            let Some(node) = self.node_of(source) else {
                continue;
            };
            if let Some(send) = node.poll_link(now, allowed, sdu) {
                self.outbox.turn = source;
                let token = self.outbox.lend(source, send.token);
                return Some(LinkSend { token, ..send });
            }
        }
        None
    }

    /// Passes the outcome of a frame to its Pacifier node.
    pub(super) fn on_sent(&mut self, now: Instant, token: u32, outcome: Outcome) {
        let Some((source, token)) = self.outbox.redeem(token) else {
            return;
        };
        if let Some(node) = self.node_of(source) {
            node.handle_link(now, LinkEvent::Sent { token, outcome });
        }
    }
}
