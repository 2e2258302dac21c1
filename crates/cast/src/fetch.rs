//! The transfer of a manifest, piece by piece from neighbour to neighbour.
//!
//! A receiver needs the manifest before it can check the first batch, and so do members that join late. So it is not part
//! of the coded transfer. A member that lacks pieces requests them, and members with the whole manifest answer with
//! broadcasts, which all neighbours overhear.
//!
//! Behind the pieces of the manifest come those of its outline, which a receiver requests first. With it, each part of 64 kB is
//! checked when it is complete, and a wrong one is fetched again alone. Without it (if no neighbour answers), the whole is checked.

mod outline;

use std::collections::BTreeSet;
use std::ops::Range;

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
/// Requests for the outline before the manifest is fetched without it, and again when that was wrong. Of three at least one
/// arrives in 97 % of cases where 30 % are lost.
const OUTLINE_ASKS: u32 = 3;
/// How long members other than the sender wait before they answer. An overheard answer cancels theirs.
pub const POLITENESS: Duration = Duration::from_millis(40);

/// A manifest under transfer.
#[derive(Debug)]
pub struct Fetch {
    ticket: Ticket,
    /// Octets of a piece.
    piece: usize,
    octets: Vec<u8>,
    /// The pieces that are there, and the number of those that are not.
    have: Vec<bool>,
    missing: usize,
    outline: Outline,
    /// Whether the manifest is complete and right.
    right: bool,
    ask_at: Instant,
    /// Pieces that a neighbour has requested, and from when on they are sent.
    wanted: BTreeSet<u32>,
    give_at: Instant,
    /// Times that a part, or the whole, had arrived and its digest was wrong.
    polluted: u32,
}

/// The outline of a manifest under transfer.
#[derive(Debug)]
struct Outline {
    octets: Vec<u8>,
    have: Vec<bool>,
    /// Whether it belongs to the manifest's digest.
    right: bool,
    /// Requests since it is lacking.
    asks: u32,
    /// Whether it was requested last, and the manifest is next.
    turn: bool,
}

impl Outline {
    fn is_wanted(&self) -> bool {
        !self.right && !self.have.is_empty() && self.asks < OUTLINE_ASKS
    }
}

impl Fetch {
    /// An empty manifest, of which the first request is due now.
    pub fn new(now: Instant, ticket: Ticket) -> Fetch {
        let piece = usize::from(ticket.cut.payload).clamp(PIECE_MIN, PIECE_MAX);
        let len = ticket.manifest_len as usize;
        let pieces = len.div_ceil(piece);
        let outline = match outline::parts(len) {
            0 | 1 => 0,
            parts => parts * outline::VALUE,
        };
        Fetch {
            ticket,
            piece,
            octets: vec![0; len],
            have: vec![false; pieces],
            missing: pieces,
            outline: Outline {
                octets: vec![0; outline],
                have: vec![false; outline.div_ceil(piece)],
                right: false,
                asks: 0,
                turn: false,
            },
            right: false,
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
        fetch.outline.octets = outline::of(&octets);
        (fetch.octets, fetch.missing, fetch.right) = (octets, 0, true);
        fetch
    }

    /// The manifest, once it is complete and its digest is right.
    pub fn octets(&self) -> Option<&[u8]> {
        self.right.then_some(&self.octets)
    }

    /// Times that pieces were fetched again because one was wrong.
    pub fn polluted(&self) -> u32 {
        self.polluted
    }

    /// Stores a piece. Returns whether it completed the manifest.
    pub fn put(&mut self, now: Instant, piece: u32, octets: &[u8]) -> bool {
        // The neighbours that requested it have overheard it too.
        self.wanted.remove(&piece);
        if self.right {
            return false;
        }
        let piece = piece as usize;
        let stored = match piece.checked_sub(self.have.len()) {
            None => store(&mut self.octets, &mut self.have, piece, self.piece, octets),
            Some(at) if !self.outline.right => {
                let Outline {
                    octets: whole,
                    have,
                    ..
                } = &mut self.outline;
                store(whole, have, at, self.piece, octets)
            }
            Some(_) => false,
        };
        if !stored {
            return false;
        }
        self.ask_at = now + PATIENCE;
        if piece < self.have.len() {
            self.missing -= 1;
            let start = piece * self.piece;
            let last = (start + octets.len()).saturating_sub(1);
            self.check_parts(now, start / outline::PART..last / outline::PART + 1);
        } else if self.outline.have.iter().all(|have| *have) {
            self.check_outline(now);
        }
        if self.missing == 0 {
            self.check_whole(now);
        }
        self.right
    }

    /// Checks the outline, and by it what is there already.
    fn check_outline(&mut self, now: Instant) {
        let len = self.octets.len();
        self.outline.right = outline::is_of(&self.outline.octets, len, &self.ticket.manifest);
        if self.outline.right {
            self.check_parts(now, 0..outline::parts(len));
        } else {
            self.outline.have.fill(false);
            self.back_off(now);
        }
    }

    /// Checks those of these parts that are complete. The pieces of a wrong one are fetched again.
    fn check_parts(&mut self, now: Instant, parts: Range<usize>) {
        if !self.outline.right {
            return;
        }
        for part in parts {
            let range = outline::range(part, self.octets.len());
            let pieces = range.start / self.piece..range.end.div_ceil(self.piece);
            let there = self.have[pieces.clone()].iter().all(|have| *have);
            if there && !outline::has(&self.outline.octets, part, &self.octets) {
                self.have[pieces.clone()].fill(false);
                self.missing += pieces.len();
                self.back_off(now);
            }
        }
    }

    /// Checks the manifest, of which all pieces are there. If it is wrong, the outline tells what to fetch again, if it is there or
    /// comes; otherwise everything is.
    fn check_whole(&mut self, now: Instant) {
        self.right = self.ticket.names(&self.octets);
        if self.right {
            // What it serves to others.
            self.outline.octets = outline::of(&self.octets);
            return;
        }
        self.back_off(now);
        if !self.outline.right && !self.outline.have.is_empty() {
            self.outline.asks = 0;
            return;
        }
        self.have.fill(false);
        self.missing = self.have.len();
    }

    /// Counts wrong octets. The polluter may answer fastest, so the interval grows.
    fn back_off(&mut self, now: Instant) {
        self.polluted += 1;
        self.ask_at = now + PATIENCE * u64::from(self.polluted.min(100));
    }

    /// When to send a request, if a piece is missing.
    pub fn ask_at(&self) -> Option<Instant> {
        (!self.right).then_some(self.ask_at)
    }

    /// A request for missing pieces: the index of the first one, and one bit for each from there.
    pub fn ask(&mut self, now: Instant, jitter: Duration) -> Option<(u32, Vec<u8>)> {
        if self.missing == 0 && !self.outline.is_wanted() && !self.right {
            // The whole is wrong, and nothing tells where.
            self.have.fill(false);
            self.missing = self.have.len();
        }
        // The outline and the manifest are requested in turn, one right behind the other.
        let outline = self.outline.is_wanted() && (!self.outline.turn || self.missing == 0);
        self.outline.turn = outline && self.missing > 0;
        self.outline.asks += u32::from(outline);
        self.ask_at = match self.outline.turn {
            true => now,
            false => now + PATIENCE + jitter,
        };
        let (offset, have) = match outline {
            true => (self.have.len(), &self.outline.have),
            false => (0, &self.have),
        };
        let first = have.iter().position(|have| !have)?;
        let lacking = have[first..].iter().take(WINDOW as usize);
        let mut bits = vec![0u8; lacking.len().div_ceil(8)];
        for (place, _) in lacking.enumerate().filter(|(_, have)| !**have) {
            bits[place / 8] |= 1 << (place % 8);
        }
        Some(((offset + first) as u32, bits))
    }

    /// Handles a request. The answer follows after `wait`.
    pub fn on_ask(&mut self, now: Instant, first: u32, bits: &[u8], wait: Duration) {
        if !self.right {
            return;
        }
        if self.wanted.is_empty() {
            self.give_at = now + wait;
        }
        let pieces = self.have.len() + self.outline.have.len();
        for place in 0..(bits.len() as u32 * 8).min(WINDOW) {
            let piece = first.saturating_add(place);
            let asked = bits[place as usize / 8] >> (place % 8) & 1 == 1;
            if asked && (piece as usize) < pieces {
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
        let (whole, at) = match (piece as usize).checked_sub(self.have.len()) {
            None => (&self.octets, piece as usize),
            Some(at) => (&self.outline.octets, at),
        };
        let start = at * self.piece;
        let end = (start + self.piece).min(whole.len());
        Some((piece, whole.get(start..end)?))
    }
}

/// Stores piece `at` of `whole`, of `size` octets, unless it is there. Returns whether it did.
fn store(whole: &mut [u8], have: &mut [bool], at: usize, size: usize, octets: &[u8]) -> bool {
    let start = at * size;
    let end = (start + size).min(whole.len());
    let (Some(have), Some(place)) = (have.get_mut(at), whole.get_mut(start..end)) else {
        return false;
    };
    if *have || place.len() != octets.len() {
        return false;
    }
    place.copy_from_slice(octets);
    *have = true;
    true
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

    /// A manifest of five parts, the last one short.
    fn five_parts() -> Vec<u8> {
        let mut octets = vec![0; 4 * outline::PART + 5000];
        Seed(3).stream(Purpose::Trial(0)).fill(&mut octets);
        octets
    }

    /// Lets `taker` request from `giver` until nothing is missing or `rounds` are over. `change` may change or withhold pieces.
    /// Returns the number of pieces given.
    fn exchange(
        giver: &mut Fetch,
        taker: &mut Fetch,
        rounds: usize,
        mut change: impl FnMut(u32, &mut Vec<u8>) -> bool,
    ) -> usize {
        let mut given = 0;
        for _ in 0..rounds {
            let Some(now) = taker.ask_at() else {
                break;
            };
            let (first, bits) = taker.ask(now, Duration::ZERO).unwrap();
            giver.on_ask(now, first, &bits, Duration::ZERO);
            while let Some((piece, octets)) = giver.give() {
                let mut octets = octets.to_vec();
                given += 1;
                if change(piece, &mut octets) {
                    taker.put(now, piece, &octets);
                }
            }
        }
        given
    }

    /// Goal: a wrong piece costs the 64 kB around it, not the whole manifest. Method: one piece is wrong at its first delivery, with the
    /// outline there before, arriving only afterwards, wrong at first, or never.
    #[test]
    fn a_wrong_piece_costs_its_part() {
        let octets = five_parts();
        let ticket = ticket(&octets);
        let pieces = octets.len().div_ceil(PIECE_MAX);
        let check = |outlines: fn(usize) -> Option<bool>, expected: usize, polluted: u32| {
            let mut giver = Fetch::whole(Instant::ZERO, ticket, octets.clone());
            let mut taker = Fetch::new(Instant::ZERO, ticket);
            let (mut bent, mut seen) = (false, 0);
            let given = exchange(&mut giver, &mut taker, 100, |piece, octets| {
                if piece as usize >= pieces {
                    seen += 1;
                    let right = outlines(seen);
                    octets[7] ^= u8::from(right == Some(false));
                    return right.is_some();
                }
                if piece == 100 && !bent {
                    bent = true;
                    octets[0] ^= 1;
                }
                true
            });
            assert_eq!(taker.octets(), Some(&octets[..]));
            assert_eq!((given, taker.polluted()), (expected, polluted));
        };
        let part = outline::PART / PIECE_MAX;
        check(|_| Some(true), 1 + pieces + part, 1);
        // The whole is found wrong, the outline comes at the second request, and tells where.
        check(|seen| (seen > 1).then_some(true), 2 + pieces + part, 2);
        check(|seen| Some(seen > 1), 2 + pieces + part, 3);
        // Everything twice, with three requests for the outline each time.
        check(|_| None, 1 + pieces + OUTLINE_ASKS as usize + pieces, 1);
    }

    /// Neighbours that know no outlines serve the manifest all the same.
    #[test]
    fn outlines_are_not_needed() {
        let octets = five_parts();
        let ticket = ticket(&octets);
        let mut giver = Fetch::whole(Instant::ZERO, ticket, octets.clone());
        let mut taker = Fetch::new(Instant::ZERO, ticket);
        let pieces = octets.len().div_ceil(PIECE_MAX);
        let given = exchange(&mut giver, &mut taker, 10, |piece, _| {
            (piece as usize) < pieces
        });
        assert_eq!(taker.octets(), Some(&octets[..]));
        assert_eq!((given, taker.polluted()), (1 + pieces, 0));
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
