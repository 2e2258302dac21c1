//! What is under way with a neighbour: handshakes, sessions that wait for their first frame, and how many may be computed.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant};

use crate::handshake::{self, Begun};
use crate::queue::Location;
use crate::seal::Pair;

/// A frame that is to be sent to a neighbour.
#[derive(Debug)]
pub(crate) enum Order {
    /// A message of a handshake.
    Handshake(u16, Location, [u8; handshake::BODY]),
    /// The confirmation of a key of this generation.
    Got(u16, Location, u8),
    /// This node's newest key.
    Give(u16, Location),
}

/// What is under way with one neighbour.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// The handshake that this node has begun: since when, when it is repeated, and how often it was.
    pub begun: Option<(Begun, Instant, Instant, u32)>,
    /// Sessions that this node has answered, of which nothing has arrived yet: the other's life, and the keys.
    pub answered: VecDeque<(u64, Pair)>,
    /// The last first messages that were answered, with the answers and when they were sent.
    pub replies: VecDeque<([u8; handshake::BODY], [u8; handshake::BODY], Instant)>,
    /// Handshakes that may still begin while the present life is heard.
    pub allowance: Option<Allowance>,
}

impl Sessions {
    /// The sessions with this life that wait for the first frame.
    pub fn answered(&self, epoch: u64) -> impl Iterator<Item = &Pair> {
        let of = move |one: &&(u64, Pair)| one.0 == epoch;
        self.answered.iter().filter(of).map(|one| &one.1)
    }
}

/// How many handshakes may be computed: some at once, then one in each interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    left: u64,
    since: Instant,
    most: u64,
    each: Duration,
}

impl Default for Allowance {
    /// For all neighbours together. A handshake costs some 0.2 ms on a present-day core, 5 ms on a slow router: 1 % to 25 % of it.
    fn default() -> Allowance {
        Allowance::new(64, Duration::from_millis(20))
    }
}

impl Allowance {
    pub fn new(most: u64, each: Duration) -> Allowance {
        Allowance {
            left: most,
            since: Instant::ZERO,
            most,
            each,
        }
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_since(self.since).steps(self.each);
        self.left = self.left.saturating_add(gained).min(self.most);
        self.since += self.each * gained;
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}
