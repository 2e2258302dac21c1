//! DCLO: the distributed form of Chen, Low, Chiang and Doyle (INFOCOM 2006), as the paper compares with it.
//!
//! Time is divided into rounds. In the first part of a round every node broadcasts its queues. Then neighbours pair up, the
//! largest queue differences first ([`matching`](super::matching)). Until the round ends, data flows within pairs only.
//! There is no ETX and no routing: every neighbour may be the next hop.
//!
//! The paper does not say how rounds are synchronised. Here every frame carries its sender's round and the time within it,
//! and a node that is behind jumps ahead: all follow the fastest clock.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Stream};

use super::matching::{Matcher, Message};
use crate::config::Matching;
use crate::header::Round;

/// How far another clock may be ahead before a node jumps: less than the time of a frame exchange.
const SLACK: Duration = Duration::from_millis(1);

/// The rounds of one node.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    law: Matching,
    pub matcher: Matcher,
    number: u32,
    began: Instant,
    advertise_at: Option<Instant>,
    match_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// The queues must be broadcast as soon as the link allows.
    pub advertise: bool,
    /// When this node may send its first request. Requests sent together would collide.
    send_at: Option<Instant>,
    may_send: bool,
    /// Neighbours that this node would send to if paired; from the others it would receive.
    targets: Vec<u16>,
}

/// A neighbour as a possible pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub node: u16,
    /// The largest queue difference in either direction, 1/16 packet (eqs. 3 and 4).
    pub weight: u32,
    /// Whether the difference is larger from here to there.
    pub outgoing: bool,
}

/// An event within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A new round has begun.
    Round,
    /// The queues must be broadcast.
    Advertise,
    /// The pairing phase begins.
    Match,
}

impl Rounds {
    pub fn new(law: Matching, me: u16, neighbours: u8, now: Instant) -> Rounds {
        Rounds {
            law,
            matcher: Matcher::new(me, usize::from(neighbours)),
            number: 0,
            began: now,
            advertise_at: Some(now),
            match_at: Some(now + law.exchange),
            retry_at: None,
            advertise: false,
            send_at: None,
            may_send: false,
            targets: Vec::with_capacity(usize::from(neighbours)),
        }
    }

    //= dpclo III-A: links with the largest price differences are matched (eqs. 3 to 5)
    /// Begins pairing over these edges.
    pub fn start(&mut self, edges: impl Iterator<Item = Edge> + Clone) {
        let room = self.targets.capacity();
        let outgoing = edges.clone().filter(|edge| edge.outgoing);
        self.targets.clear();
        self.targets
            .extend(outgoing.take(room).map(|edge| edge.node));
        self.matcher
            .start(edges.map(|edge| (edge.node, edge.weight)));
    }

    /// The neighbour that data may be sent to now.
    pub fn target(&self) -> Option<u16> {
        self.matcher
            .pair()
            .filter(|pair| self.targets.contains(pair))
    }

    /// This node's position in its round.
    pub fn position(&self, now: Instant) -> Round {
        Round {
            number: self.number,
            into: now.saturating_since(self.began),
        }
    }

    /// Compares with another node's position. True if this node jumped to another round.
    pub fn follow(&mut self, now: Instant, other: Round, random: &mut Stream) -> bool {
        let newer = other.number.wrapping_sub(self.number);
        let mine = self.position(now).into;
        let ahead = match newer {
            0 => other.into > mine + SLACK,
            _ => newer < 1 << 31,
        };
        if !ahead || other.into > self.law.interval {
            return false;
        }
        let fresh = newer != 0;
        (self.number, self.began) = (other.number, now.saturating_before(other.into));
        if fresh {
            self.begin(now, random);
        } else {
            let matching = (self.began + self.law.exchange).max(now);
            self.match_at = self.match_at.map(|_| matching);
        }
        fresh
    }

    /// The next event that is due, each once.
    pub fn poll_due(&mut self, now: Instant, random: &mut Stream) -> Option<Due> {
        if self.began + self.law.interval <= now {
            // After a long sleep, continue with the round that has just begun.
            let passed = now.saturating_since(self.began).steps(self.law.interval);
            self.number = self.number.wrapping_add(passed as u32);
            self.began += self.law.interval * passed;
            self.begin(now, random);
            return Some(Due::Round);
        }
        if take(&mut self.advertise_at, now) {
            self.advertise = true;
            return Some(Due::Advertise);
        }
        if take(&mut self.match_at, now) {
            let send_at = now + within(self.law.retry, random);
            self.send_at = Some(send_at);
            self.retry_at = Some(send_at + self.law.retry);
            return Some(Due::Match);
        }
        if take(&mut self.send_at, now) {
            self.may_send = true;
        }
        if take(&mut self.retry_at, now) {
            self.matcher.on_timeout();
            let wait = self.law.retry / 2 + within(self.law.retry, random);
            self.retry_at = self.matcher.is_asking().then(|| now + wait);
        }
        None
    }

    /// Whether a pairing message must be sent.
    pub fn has_message(&self) -> bool {
        self.may_send && self.matcher.has_message()
    }

    /// Handles a pairing message.
    pub fn on_message(&mut self, now: Instant, from: u16, message: Message) {
        let before = self.matcher.is_asking();
        self.matcher.on_message(from, message);
        if self.matcher.is_asking() && !before {
            self.retry_at = Some(now + self.law.retry);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        let end = Some(self.began + self.law.interval);
        let others = [
            self.advertise_at,
            self.match_at,
            self.send_at,
            self.retry_at,
        ];
        others.into_iter().flatten().chain(end).min()
    }

    fn begin(&mut self, now: Instant, random: &mut Stream) {
        self.matcher.stop();
        let left = (self.began + self.law.exchange).saturating_since(now);
        // In the first half of the exchange: later broadcasts would arrive after pairing has begun.
        let wait = within(left / 2, random);
        (self.advertise_at, self.retry_at) = (Some(now + wait), None);
        (self.send_at, self.may_send) = (None, false);
        self.match_at = Some((self.began + self.law.exchange).max(now));
        self.advertise = false;
    }
}

/// A random time of at most `span`.
fn within(span: Duration, random: &mut Stream) -> Duration {
    Duration::from_nanos(random.below(span.nanos().saturating_add(1)))
}

fn take(at: &mut Option<Instant>, now: Instant) -> bool {
    let due = at.is_some_and(|at| at <= now);
    if due {
        *at = None;
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use chappe_core::{Purpose, Seed};

    const LAW: Matching = Matching {
        interval: Duration::from_millis(100),
        exchange: Duration::from_millis(20),
        retry: Duration::from_millis(5),
    };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_round_tells_matches_and_ends() {
        let mut random = Seed(1).stream(Purpose::Node(0));
        let mut rounds = Rounds::new(LAW, 0, 4, at(0));
        let mut due = vec![];
        while let Some(next) = rounds.deadline().filter(|&next| next <= at(300)) {
            while let Some(what) = rounds.poll_due(next, &mut random) {
                due.push((next.nanos() / 1_000_000, what));
            }
        }
        let kinds: Vec<Due> = due.iter().map(|&(_, what)| what).collect();
        let round = [Due::Advertise, Due::Match, Due::Round];
        assert_eq!(kinds[..9], [round, round, round].concat());
        let times: Vec<u64> = due
            .iter()
            .filter(|(_, what)| *what != Due::Advertise)
            .map(|&(ms, _)| ms)
            .collect();
        assert_eq!(times[..6], [20, 100, 120, 200, 220, 300]);
    }

    #[test]
    fn nodes_jump_ahead_and_never_back() {
        let mut random = Seed(1).stream(Purpose::Node(0));
        let mut rounds = Rounds::new(LAW, 0, 4, at(1000));
        let round = |number, ms| Round {
            number,
            into: Duration::from_millis(ms),
        };
        assert!(rounds.follow(at(1010), round(7, 30), &mut random));
        assert_eq!(rounds.position(at(1015)), round(7, 35));
        assert!(!rounds.follow(at(1015), round(6, 90), &mut random));
        assert!(
            !rounds.follow(at(1015), round(7, 40), &mut random),
            "the same round"
        );
        assert_eq!(rounds.position(at(1015)), round(7, 40));
        assert!(
            !rounds.follow(at(1015), round(9, 101), &mut random),
            "no such place in a round"
        );
        assert_eq!(rounds.position(at(1015)), round(7, 40));
    }
}
