//! The transfer of a manifest, piece by piece from neighbour to neighbour.
//!
//! A receiver needs the manifest before it can check the first batch, and so do members that join late. So it is not part
//! of the coded transfer. A member that lacks pieces requests them, and members with the whole manifest answer with
//! broadcasts, which all neighbours overhear.

use std::collections::BTreeSet;

use chappe_core::{Duration, Instant};

use crate::manifest::Ticket;

/// Largest number of octets of a piece. A transfer with smaller packets has pieces of their size, so that pieces pass where data
/// frames do, whose headers are longer. The last piece may be shorter.
pub const PIECE_MAX: usize = 1024;
/// Least size of a piece, which bounds their number. No sender has smaller packets.
const PIECE_MIN: usize = 128;
/// Largest number of pieces in one request.
pub const WINDOW: u32 = 1024;
/// Interval between requests while no piece arrives.
const PATIENCE: Duration = Duration::from_millis(60);
/// How long members other than the sender wait before they answer. An overheard answer cancels theirs.
pub const POLITENESS: Duration = Duration::from_millis(40);

/// A manifest under transfer.
#[derive(Debug)]
pub struct Fetch {
    ticket: Ticket,
    /// Octets of a piece.
    piece: usize,
    octets: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
    ask_at: Instant,
    /// Pieces that a neighbour has requested, and from when on they are sent.
    wanted: BTreeSet<u32>,
    give_at: Instant,
    /// Times all pieces had arrived and the digest was wrong.
    polluted: u32,
}

impl Fetch {
    /// An empty manifest, of which the first request is due now.
    pub fn new(now: Instant, ticket: Ticket) -> Fetch {
        let piece = usize::from(ticket.cut.payload).clamp(PIECE_MIN, PIECE_MAX);
        let pieces = (ticket.manifest_len as usize).div_ceil(piece);
        Fetch {
            ticket,
            piece,
            octets: vec![0; ticket.manifest_len as usize],
            have: vec![false; pieces],
            missing: pieces,
            ask_at: now,
            wanted: BTreeSet::new(),
            give_at: now,
            polluted: 0,
        }
    }

    /// A complete manifest, from which requests are answered.
    pub fn whole(now: Instant, ticket: Ticket, octets: Vec<u8>) -> Fetch {
        let mut fetch = Fetch::new(now, ticket);
        fetch.have.fill(true);
        (fetch.octets, fetch.missing) = (octets, 0);
        fetch
    }

    /// The manifest, once it is complete and its digest is right.
    pub fn octets(&self) -> Option<&[u8]> {
        (self.missing == 0).then_some(&self.octets)
    }

    /// Times the fetch restarted because a piece was wrong.
    pub fn polluted(&self) -> u32 {
        self.polluted
    }

    /// Stores a piece. Returns whether it completed the manifest.
    pub fn put(&mut self, now: Instant, piece: u32, octets: &[u8]) -> bool {
        // The neighbours that requested it have overheard it too.
        self.wanted.remove(&piece);
        let start = piece as usize * self.piece;
        let end = (start + self.piece).min(self.octets.len());
        let (Some(have), Some(place)) = (
            self.have.get_mut(piece as usize),
            self.octets.get_mut(start..end),
        ) else {
            return false;
        };
        if *have || place.len() != octets.len() {
            return false;
        }
        place.copy_from_slice(octets);
        *have = true;
        self.missing -= 1;
        self.ask_at = now + PATIENCE;
        if self.missing > 0 {
            return false;
        }
        if self.ticket.names(&self.octets) {
            return true;
        }
        // A member has sent a wrong piece, and only the whole has a digest: start again.
        self.have.fill(false);
        self.missing = self.have.len();
        self.polluted += 1;
        // The polluter may answer fastest, so the interval grows.
        self.ask_at = now + PATIENCE * u64::from(self.polluted.min(100));
        false
    }

    /// When to send a request, if a piece is missing.
    pub fn ask_at(&self) -> Option<Instant> {
        (self.missing > 0).then_some(self.ask_at)
    }

    /// A request for missing pieces: the index of the first one, and one bit for each from there.
    pub fn ask(&mut self, now: Instant, jitter: Duration) -> Option<(u32, Vec<u8>)> {
        let first = self.have.iter().position(|have| !have)?;
        let lacking = self.have[first..].iter().take(WINDOW as usize);
        let mut bits = vec![0u8; lacking.len().div_ceil(8)];
        for (place, _) in lacking.enumerate().filter(|(_, have)| !**have) {
            bits[place / 8] |= 1 << (place % 8);
        }
        self.ask_at = now + PATIENCE + jitter;
        Some((first as u32, bits))
    }

    /// Handles a request. The answer follows after `wait`.
    pub fn on_ask(&mut self, now: Instant, first: u32, bits: &[u8], wait: Duration) {
        if self.missing > 0 {
            return;
        }
        if self.wanted.is_empty() {
            self.give_at = now + wait;
        }
        for place in 0..(bits.len() as u32 * 8).min(WINDOW) {
            let piece = first.saturating_add(place);
            let asked = bits[place as usize / 8] >> (place % 8) & 1 == 1;
            if asked && (piece as usize) < self.have.len() {
                self.wanted.insert(piece);
            }
        }
    }

    /// When to send a piece, if one is requested.
    pub fn give_at(&self) -> Option<Instant> {
        (!self.wanted.is_empty()).then_some(self.give_at)
    }

    /// The next piece to send: index and octets.
    pub fn give(&mut self) -> Option<(u32, &[u8])> {
        let piece = self.wanted.pop_first()?;
        let start = piece as usize * self.piece;
        let end = (start + self.piece).min(self.octets.len());
        Some((piece, self.octets.get(start..end)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SignKey;
    use crate::manifest::Cut;
    use chappe_core::{Purpose, Seed};

    fn ticket(octets: &[u8]) -> Ticket {
        let cut = Cut {
            len: 0,
            k: 1,
            payload: 1400,
        };
        Ticket::sign(
            0,
            (crate::manifest::Protocol::Improved, 8),
            cut,
            octets,
            crate::manifest::Validity::default(),
            &SignKey::new(&[1; 32]),
        )
    }

    /// Half of the pieces are lost. Both receivers get all of them by requests, and one answer serves both.
    #[test]
    fn missing_pieces_are_requested_until_complete() {
        let mut random = Seed(2).stream(Purpose::Trial(0));
        let mut octets = vec![0; 70 * PIECE_MAX + 5];
        random.fill(&mut octets);
        let ticket = ticket(&octets);
        let mut now = Instant::ZERO;
        let mut giver = Fetch::whole(now, ticket, octets.clone());
        let mut takers = [Fetch::new(now, ticket), Fetch::new(now, ticket)];
        let mut given = 0;
        while takers.iter().any(|taker| taker.octets().is_none()) {
            now += Duration::from_millis(1);
            for taker in &mut takers {
                if taker.ask_at().is_some_and(|at| at <= now) {
                    let (first, bits) = taker.ask(now, Duration::ZERO).unwrap();
                    giver.on_ask(now, first, &bits, Duration::ZERO);
                }
            }
            if let Some((piece, octets)) = giver.give() {
                given += 1;
                for taker in &mut takers {
                    if random.chance(0.5) {
                        taker.put(now, piece, octets);
                    }
                }
            }
        }
        assert!(takers.iter().all(|taker| taker.octets() == Some(&octets)));
        // 71 pieces over two links of 1/2: 8/3 each; requests cross some answers.
        assert!(given < 71 * 5, "{given}");
    }

    #[test]
    fn a_wrong_piece_restarts_the_fetch() {
        let octets = vec![7; 2000];
        let mut taker = Fetch::new(Instant::ZERO, ticket(&octets));
        assert!(!taker.put(Instant::ZERO, 0, &[8; PIECE_MAX]));
        assert!(!taker.put(Instant::ZERO, 1, &octets[PIECE_MAX..]));
        assert_eq!((taker.polluted(), taker.octets()), (1, None));
        assert!(!taker.put(Instant::ZERO, 0, &octets[..PIECE_MAX]));
        assert!(taker.put(Instant::ZERO, 1, &octets[PIECE_MAX..]));
        for (piece, len) in [(2, 5), (u32::MAX, 5), (0, 3)] {
            assert!(!taker.put(Instant::ZERO, piece, &vec![0; len]));
        }
    }
}
