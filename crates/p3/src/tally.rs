//! What the nodes of a transfer heard of it, asked for after an attempt that failed.
//!
//! A destination that hears too little of a group does not know which of its links died. So the gateway floods the plan once more
//! and asks ([`Plan::asks`]). After that flood the source and the relays have a turn each, in the plan's order, which is that of the
//! stages. In its turn a node sends alone: its own count, and all counts that it heard in the turns before. So every count reaches the
//! destination over any node that hears one of an earlier stage, by whatever group.
//!
//! A count is an octet: a power of two and three bits behind it, so it is at most an eighth too low. The frame is a header and an octet
//! for the source and for each relay. A question costs its flood, and a turn of 736 to 3000 us for each of them.

use chappe_core::{DropReason, Duration, Instant, Wake};

use crate::config::Config;
use crate::frame::Frames;
use crate::header::{Flags, Header, Kind};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::sizes::IMPROVED_RELAYS_MAX;

/// The octet of a node of which nothing is known.
const UNKNOWN: u8 = 255;
/// The octet of a node that had no part in the attempt: it missed the plan.
const ABSENT: u8 = 254;
/// The octet of the highest count.
const MOST: u8 = 253;

/// What one node says of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It had no part in the attempts that were asked for: it did not hear the plan.
    Absent,
    /// Frames with packets that it took from the stage before; of the source, that it sent. At most an eighth too low.
    Frames(u32),
}

/// What the nodes of a plan say of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally([u8; IMPROVED_RELAYS_MAX + 1]);

impl Default for Tally {
    fn default() -> Tally {
        Tally([UNKNOWN; IMPROVED_RELAYS_MAX + 1])
    }
}

impl Tally {
    /// What the source says; `None` if that did not arrive.
    pub fn source(&self) -> Option<Told> {
        self.at(0)
    }

    /// What the relay at this place of the plan's list says; `None` if that did not arrive.
    pub fn relay(&self, at: usize) -> Option<Told> {
        self.at(at.checked_add(1)?)
    }

    fn at(&self, turn: usize) -> Option<Told> {
        match self.0.get(turn).copied()? {
            UNKNOWN => None,
            ABSENT => Some(Told::Absent),
            code => Some(Told::Frames(count_of(code))),
        }
    }

    fn set(&mut self, turn: usize, told: Told) {
        if let Some(place) = self.0.get_mut(turn) {
            *place = match told {
                Told::Absent => ABSENT,
                Told::Frames(count) => code_of(count),
            };
        }
    }

    /// Takes in what another node knows.
    fn merge(&mut self, octets: &[u8]) {
        for (place, &octet) in self.0.iter_mut().zip(octets) {
            if *place == UNKNOWN {
                *place = octet;
            }
        }
    }
}

/// A count as an octet.
fn code_of(count: u32) -> u8 {
    let count = u64::from(count) + 1;
    let power = count.ilog2();
    let behind = (count << 3 >> power) as u32 & 7;
    (power * 8 + behind).min(MOST.into()) as u8
}

/// The least count with this octet.
fn count_of(code: u8) -> u32 {
    let count = (8 + u64::from(code & 7)) << (code / 8) >> 3;
    // Of the eighths of a small power some are no whole numbers, and no count has their octet.
    u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
}

/// A question: when each node of its plan has its turn.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    plan: Plan,
    /// Start of the first turn.
    start: Instant,
    turn: Duration,
    tally: Tally,
    /// This node's own turn, until it has had it; the destination has none.
    own: Option<u8>,
}

impl Question {
    /// The question of a plan that asks, whose turns begin at `start`, for the destination.
    pub fn new(config: &Config, frames: &Frames, plan: Plan, start: Instant) -> Question {
        let len = frame_len(frames, &plan);
        Question {
            // As in a flood, a node has time to check a frame before its own turn.
            turn: config.profile.flood_slot(len),
            plan,
            start,
            tally: Tally::default(),
            own: None,
        }
    }

    /// The same for the node that has this turn and says this.
    pub fn answered(mut self, turn: u8, told: Told) -> Question {
        self.tally.set(turn.into(), told);
        self.own = Some(turn);
        self
    }

    /// What is known so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// When the last turn is over.
    pub fn end(&self) -> Instant {
        self.start + self.turn * turns(&self.plan) as u64
    }

    /// The next deadline: before this node's turn, or when all are over.
    pub fn wake(&self, config: &Config) -> Wake {
        let own = self.own.map(|_| Wake {
            at: self.own_start().saturating_before(config.profile.gap()),
            why: "its turn to tell",
        });
        own.unwrap_or(Wake {
            at: self.end(),
            why: "all have told",
        })
    }

    fn own_start(&self) -> Instant {
        self.start + self.turn * u64::from(self.own.unwrap_or(0))
    }

    /// Takes in a frame of an earlier turn.
    pub fn hear(&mut self, frames: &Frames, psdu: &[u8]) -> Result<(), DropReason> {
        let parsed = frames.parse(&self.plan, 0, psdu);
        let (header, body) = parsed.map_err(|_| DropReason::Malformed)?;
        if header.kind != Kind::Tally || header.transfer != self.plan.transfer() {
            return Err(DropReason::NotForUs);
        }
        if psdu.len() != frame_len(frames, &self.plan) {
            return Err(DropReason::Malformed);
        }
        if !frames.is_genuine(&Nonce::of_tally(&self.plan, header.round), psdu) {
            return Err(DropReason::Unauthentic);
        }
        self.tally.merge(body);
        Ok(())
    }

    /// Once this node's turn has come: writes what it knows, to be sent then.
    pub fn tell(&mut self, config: &Config, frames: &Frames, now: Instant, out: &mut Outbox) {
        let due = self.wake(config).at <= now;
        let Some(turn) = self.own.filter(|_| due) else {
            return;
        };
        let at = self.own_start();
        self.own = None;
        // A node that is woken too late would speak in another's turn.
        if at < now {
            return;
        }
        let header = Header {
            kind: Kind::Tally,
            transfer: self.plan.transfer(),
            hop: 0,
            flags: Flags::default(),
            sequence: 0,
            round: turn,
        };
        let len = frame_len(frames, &self.plan);
        let body = frames.begin(out, &self.plan, &header, len);
        let octets = self.tally.0.iter();
        body.iter_mut()
            .zip(octets)
            .for_each(|(to, &octet)| *to = octet);
        frames.seal(out, &Nonce::of_tally(&self.plan, turn));
        out.send(at);
    }
}

/// How many nodes of a plan have a turn.
fn turns(plan: &Plan) -> usize {
    1 + plan.relays().len()
}

/// Octets of each frame of a question.
fn frame_len(frames: &Frames, plan: &Plan) -> usize {
    frames.len_of(Kind::Tally, turns(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_to_an_eighth() {
        for count in (0..5000).chain([70_000, 1 << 24]) {
            let back = count_of(code_of(count));
            assert!(
                back <= count && count - back <= count / 8,
                "{count}: {back}"
            );
        }
        assert!((0..1000).map(code_of).is_sorted());
        assert_eq!(code_of(u32::MAX), MOST);
    }

    #[test]
    fn what_is_known_is_not_forgotten() {
        let mut tally = Tally::default();
        tally.set(0, Told::Frames(16));
        tally.set(2, Told::Absent);
        tally.merge(&[3, 0, 9, UNKNOWN]);
        assert_eq!(tally.source(), Some(Told::Frames(15)));
        assert_eq!(tally.relay(0), Some(Told::Frames(0)));
        assert_eq!(tally.relay(1), Some(Told::Absent));
        assert_eq!((tally.relay(2), tally.relay(usize::MAX)), (None, None));
    }
}
