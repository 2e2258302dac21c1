//! Hop-by-hop recovery without the card: frames are repeated until their neighbour acknowledges them.
//!
//! Frames are broadcast, so that all neighbours hear queues and prices. Every frame carries acknowledgements: of a relay, the
//! frame that forwards a packet acknowledges it. A body is repeated when one that left later was acknowledged (as in RACK,
//! RFC 8985: a radio does not reorder), or when its neighbour says that the burst in which it left is over and does not list
//! it. If no answer comes, the last body is repeated, so that one does; small ones ride in its frame where few neighbours contend.
//! When a frame was on the air is not known: it may have waited in the card.

use chappe_core::{Class, Duration, Instant, Outcome};

use crate::frame::{ACKS_MAX, Ack};

/// Bodies of so many octets ride in later frames, too: a TCP segment that only acknowledges, or a ping, in a frame of the router.
const COPIED: usize = 128;
/// Most bodies that wait for an acknowledgement: fewer than the router has tokens for (32).
const WINDOW: usize = 28;
/// Transmissions of a frame before it is given up. At half of all frames lost, one in 4096 is (as dot11LongRetryLimit, three
/// times).
const ATTEMPTS: u8 = 12;
/// After so many transmissions of a small body the time between them doubles each time, where few neighbours contend.
const EVEN: u8 = 6;
/// A neighbour that was not heard for this long while [`VAIN`] transmissions to it went unanswered has gone. Probes come four
/// times a second.
const SILENCE: Duration = Duration::from_millis(500);
/// At 80 % delivery six transmissions in a row are lost once in 15,625 times.
const VAIN: u16 = 6;
/// A neighbour that is heard, and acknowledged none of so many transmissions of large bodies for so long, is deaf, or a wormhole passes what
/// it says and small packets, and nothing else. At half of all frames lost that happens once in 10^7 times.
const DEAF: (u16, Duration) = (24, Duration::from_secs(1));
/// Most neighbours that are remembered; the one unheard for longest makes room.
const NEIGHBOURS_MAX: usize = 256;
/// Every frame tells what has arrived of a neighbour until nothing has for this long: what a neighbour does not list was lost.
const TOLD: Duration = Duration::from_secs(1);
/// Bounds of the time after which an unanswered frame is repeated (RFC 6298 has 1 s; a hop is no path).
const WAIT_MAX: Duration = Duration::from_millis(400);

/// The state of recovery with all neighbours.
#[derive(Debug)]
pub struct Recovery {
    /// The least time after which an unanswered frame is repeated.
    wait_min: Duration,
    shared: bool,
    /// Whether few neighbours contend for a shared channel.
    few: bool,
    neighbours: Vec<Neighbour>,
    outstanding: Vec<Outstanding>,
    /// Transmissions so far; tells which of two frames left later.
    order: u64,
    outcomes: Vec<(u32, Outcome)>,
    gone: Vec<u16>,
    deaf: Vec<u16>,
    counters: RecoveryCounters,
}

/// Counters of frames and their repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCounters {
    /// Frames sent for the first time.
    pub frames: u64,
    /// Transmissions after the first one.
    pub repeats: u64,
    /// Copies of small bodies in frames that left anyway.
    pub companions: u64,
    /// Repeats because the time had passed.
    pub timeouts: u64,
    /// Frames that were given up.
    pub given_up: u64,
    /// Neighbours that went silent.
    pub silent: u64,
    /// Neighbours that were heard and acknowledged nothing.
    pub deaf: u64,
    /// Frames that were received twice.
    pub copies: u64,
    /// Frames with nothing but acknowledgements.
    pub acks: u64,
}

#[derive(Debug)]
struct Neighbour {
    node: u16,
    heard: Instant,
    /// The life of the neighbour, with what has arrived in it.
    received: Option<Received>,
    /// Number of the next frame to it.
    next: u16,
    /// Smoothed time to an acknowledgement and its variation, in seconds (RFC 6298).
    round: Option<(f64, f64)>,
    /// Transmissions since it last acknowledged one.
    in_vain: u16,
    /// The same of large bodies, and when the first of them left.
    large_in_vain: u16,
    vain_since: Instant,
    /// When its frames must be acknowledged, if nothing else leaves before.
    ack_at: Option<Instant>,
    /// Since when, and how many bodies have arrived since.
    owed: Instant,
    unanswered: u8,
    /// When its last frame for this node arrived.
    arrived: Instant,
    bursts: Bursts,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    life: u8,
    newest: u16,
    /// Bit 0 is the newest.
    map: u64,
}

/// The newest burst that a neighbour announced.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    newest: u8,
    /// When the newest one is over.
    until: Instant,
}

#[derive(Debug)]
struct Outstanding {
    to: u16,
    number: u16,
    token: u32,
    class: Class,
    body: Vec<u8>,
    attempts: u8,
    order: u64,
    sent: Instant,
    /// When it had left the card, once that is known.
    left: Option<Instant>,
    /// The burst in which it left.
    burst: u8,
    /// Whether it must be repeated now.
    lost: bool,
    /// Copies that rode in other frames.
    copies: u8,
}

/// A frame to repeat.
#[derive(Clone, Copy, Debug)]
pub struct Repeat<'a> {
    /// The neighbour it is for.
    pub to: u16,
    /// Its number among the frames to it.
    pub number: u16,
    /// The class of the frame.
    pub class: Class,
    /// The body of the frame.
    pub body: &'a [u8],
}

impl Recovery {
    /// Nothing is known yet. `exchange` is the time of a full frame on the channel, which others share or not.
    pub fn new(exchange: Duration, shared: bool) -> Recovery {
        let wait_min = (exchange * 8).max(Duration::from_millis(5));
        Recovery {
            // A relay's next frame carries it sooner, and the host's own acknowledgements are held for less (`Host`).
            // A burst of a neighbour, and one of the node that answers.
            wait_min,
            shared,
            few: shared,
            neighbours: Vec::new(),
            outstanding: Vec::with_capacity(WINDOW),
            order: 0,
            outcomes: Vec::new(),
            gone: Vec::new(),
            deaf: Vec::new(),
            counters: RecoveryCounters::default(),
        }
    }

    /// Sets whether few neighbours contend. Small bodies are repeated sooner then: on twelve nodes with four flows that cost a quarter of
    /// TCP (docs/studies/mesh.md).
    pub fn contend(&mut self, few: bool) {
        self.few = few && self.shared;
    }

    /// Whether another body may be sent.
    pub fn has_room(&self) -> bool {
        self.outstanding.len() < WINDOW
    }

    /// The counters since the start.
    pub fn counters(&self) -> RecoveryCounters {
        self.counters
    }

    /// The frames that wait for an acknowledgement.
    pub fn waiting(&self) -> usize {
        self.outstanding.len()
    }

    /// The smoothed time in which a neighbour acknowledges.
    pub fn round(&self, node: u16) -> Option<Duration> {
        let known = self.neighbours.iter().find(|known| known.node == node)?;
        known.round.map(|(mean, _)| Duration::from_secs_f64(mean))
    }

    /// A frame with this body leaves for the first time. Returns its number.
    pub fn send(
        &mut self,
        now: Instant,
        to: u16,
        (token, class): (u32, Class),
        burst: u8,
        body: &[u8],
    ) -> u16 {
        self.counters.frames += 1;
        self.order += 1;
        let order = self.order;
        let neighbour = self.neighbour(now, to);
        neighbour.next = neighbour.next.wrapping_add(1);
        neighbour.count_vain(now, body.len() > COPIED);
        let number = neighbour.next;
        self.outstanding.push(Outstanding {
            to,
            number,
            token,
            class,
            body: body.to_vec(),
            attempts: 1,
            order,
            sent: now,
            left: None,
            burst,
            lost: false,
            copies: 0,
        });
        number
    }

    /// How many bodies must be repeated, and their octets.
    pub fn lost(&self) -> (usize, usize) {
        let lost = self.outstanding.iter().filter(|frame| frame.lost);
        lost.fold((0, 0), |(count, octets), frame| {
            (count + 1, octets + frame.body.len())
        })
    }

    /// Whether a small body must be repeated.
    pub fn has_small_lost(&self) -> bool {
        let mut outstanding = self.outstanding.iter();
        outstanding.any(|frame| frame.lost && frame.body.len() <= COPIED)
    }

    /// Whether a frame must be repeated.
    pub fn has_lost(&self) -> bool {
        self.outstanding.iter().any(|frame| frame.lost)
    }

    /// The body of at most `room` octets that must be repeated now, the one that left first; it counts as sent.
    pub fn repeat(&mut self, now: Instant, burst: u8, room: usize) -> Option<Repeat<'_>> {
        let lost = self
            .outstanding
            .iter_mut()
            .filter(|frame| frame.lost && frame.body.len() <= room);
        let frame = lost.min_by_key(|frame| frame.order)?;
        self.order += 1;
        self.counters.repeats += 1;
        frame.attempts = frame.attempts.saturating_add(1);
        (frame.order, frame.sent, frame.lost) = (self.order, now, false);
        (frame.left, frame.burst) = (None, burst);
        if let Some(known) = self
            .neighbours
            .iter_mut()
            .find(|known| known.node == frame.to)
        {
            known.count_vain(now, frame.body.len() > COPIED);
        }
        Some(Repeat {
            to: frame.to,
            number: frame.number,
            class: frame.class,
            body: &frame.body,
        })
    }

    /// Counts transmissions; what leaves from now on has a higher number.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// A small body of at most `room` octets that is under way and has not left since `order`: a copy of it costs little in a
    /// frame that leaves anyway. It has at most so many copies.
    pub fn copy(
        &mut self,
        burst: u8,
        room: usize,
        (order, copies): (u64, u8),
    ) -> Option<Repeat<'_>> {
        let small = self.outstanding.iter_mut().filter(|frame| {
            let len = frame.body.len();
            !frame.lost && frame.copies < copies && len <= room.min(COPIED) && frame.order <= order
        });
        let frame = small.min_by_key(|frame| frame.order)?;
        self.order += 1;
        self.counters.companions += 1;
        frame.copies += 1;
        (frame.order, frame.left, frame.burst) = (self.order, None, burst);
        Some(Repeat {
            to: frame.to,
            number: frame.number,
            class: frame.class,
            body: &frame.body,
        })
    }

    /// A neighbour was heard, in a burst that is over at `until` unless another frame of it is heard.
    pub fn heard(&mut self, now: Instant, from: u16, burst: u8, until: Instant) {
        let known = self.neighbour(now, from);
        known.heard = now;
        known.bursts = Bursts {
            newest: burst,
            until,
        };
    }

    /// All frames have left the card, as far as the channel's time says. On a medium of this node alone that time may lie in the
    /// past, since it makes up for late wake-ups there; but no frame leaves before it is sent.
    pub fn left(&mut self, at: Instant) {
        for frame in &mut self.outstanding {
            frame.left.get_or_insert(at.max(frame.sent));
        }
    }

    /// A neighbour tells what it has received from this node. What left in a burst that is over and is not listed was lost.
    pub fn on_ack(&mut self, now: Instant, from: u16, ack: Ack) {
        let arrived = |frame: &Outstanding| frame.to == from && ack.has(frame.number);
        for frame in self.outstanding.iter_mut().filter(|frame| frame.to == from) {
            frame.lost |= !arrived(frame) && ack.over.wrapping_sub(frame.burst) < 128;
        }
        let latest = self.outstanding.iter().filter(|frame| arrived(frame));
        let Some(latest) = latest.map(|frame| frame.order).max() else {
            return;
        };
        let (mut sample, mut large) = (None, false);
        let outcomes = &mut self.outcomes;
        self.outstanding.retain(|frame| {
            if !arrived(frame) {
                return true;
            }
            // Of a frame that was repeated it is not known which transmission arrived (Karn).
            if frame.attempts == 1 && frame.order == latest {
                sample = Some(now.saturating_since(frame.sent));
            }
            let attempts = frame.attempts;
            large |= frame.body.len() > COPIED;
            outcomes.push((frame.token, Outcome::Acknowledged { attempts }));
            false
        });
        for frame in &mut self.outstanding {
            frame.lost |= frame.to == from && frame.order < latest;
        }
        let neighbour = self.neighbour(now, from);
        neighbour.in_vain = 0;
        if large {
            neighbour.large_in_vain = 0;
        }
        if let Some(sample) = sample {
            neighbour.measured(sample.as_secs_f64());
        }
    }

    /// A frame for this node arrived. False if it had arrived before.
    pub fn on_frame(
        &mut self,
        now: Instant,
        from: u16,
        (life, number): (u8, u16),
        wait: Duration,
    ) -> bool {
        let (delay, longest) = (wait, self.wait_min / 2);
        let neighbour = self.neighbour(now, from);
        let at = now + delay;
        if neighbour.ack_at.is_none() {
            neighbour.owed = now;
            neighbour.unanswered = 0;
        }
        neighbour.unanswered = neighbour.unanswered.saturating_add(1);
        // The next bodies put it off until the burst is over, but not for ever: a stream without a pause is acknowledged, too,
        // before it fills the window of its sender.
        let most = match usize::from(neighbour.unanswered) >= WINDOW / 2 {
            true => now,
            false => neighbour.owed + wait.max(longest),
        };
        neighbour.ack_at = Some(at.min(most));
        neighbour.arrived = now;
        let fresh = neighbour.on_number(life, number);
        self.counters.copies += u64::from(!fresh);
        fresh
    }

    /// The acknowledgements for the next frame, the most overdue first.
    pub fn acks(&mut self, now: Instant) -> ([Ack; ACKS_MAX], usize) {
        let nothing = Ack {
            node: 0,
            newest: 0,
            before: 0,
            over: 0,
        };
        let (mut acks, mut count) = ([nothing; ACKS_MAX], 0);
        self.neighbours.sort_by_key(|known| {
            (
                known.ack_at.unwrap_or(Instant::MAX),
                Instant::MAX.saturating_since(known.arrived),
            )
        });
        let lately = self
            .neighbours
            .iter()
            .filter(|known| now.saturating_since(known.arrived) < TOLD);
        let told = lately.filter_map(|known| Some((known.received?, known)));
        for (place, (received, known)) in acks.iter_mut().zip(told) {
            *place = Ack {
                node: known.node,
                newest: received.newest,
                before: (received.map >> 1) as u32,
                over: match known.bursts.until <= now {
                    true => known.bursts.newest,
                    false => known.bursts.newest.wrapping_sub(1),
                },
            };
            count += 1;
        }
        (acks, count)
    }

    /// A frame with these acknowledgements leaves.
    pub fn told(&mut self, acks: &[Ack]) {
        for known in &mut self.neighbours {
            if acks.iter().any(|ack| ack.node == known.node) {
                known.ack_at = None;
            }
        }
    }

    /// Whether an acknowledgement must leave now, by itself if there is nothing else.
    pub fn owes(&self, now: Instant) -> bool {
        self.neighbours
            .iter()
            .any(|known| known.ack_at.is_some_and(|at| at <= now))
    }

    /// Counts a frame with nothing but acknowledgements.
    pub fn acked_alone(&mut self) {
        self.counters.acks += 1;
    }

    /// Finds what is overdue: frames to repeat or to give up, neighbours that have gone.
    pub fn on_time(&mut self, now: Instant) {
        for at in 0..self.neighbours.len() {
            let Some(known) = self.neighbours.get_mut(at) else {
                return;
            };
            let silent = now.saturating_since(known.heard) >= SILENCE;
            if silent && known.in_vain >= VAIN {
                (known.in_vain, known.large_in_vain) = (0, 0);
                let node = known.node;
                self.counters.silent += 1;
                self.gone.push(node);
                self.give_up(|frame| frame.to == node);
            } else if known.large_in_vain >= DEAF.0
                && now.saturating_since(known.vain_since) >= DEAF.1
            {
                (known.in_vain, known.large_in_vain) = (0, 0);
                let node = known.node;
                self.counters.deaf += 1;
                self.deaf.push(node);
                self.give_up(|frame| frame.to == node);
            }
        }
        let overdue = (0..self.outstanding.len()).filter(|&at| {
            let frame = self.outstanding.get(at);
            frame.is_some_and(|frame| self.is_timed(frame) && self.due(frame) <= now)
        });
        for at in overdue.collect::<Vec<_>>() {
            let Some(frame) = self.outstanding.get_mut(at) else {
                continue;
            };
            frame.lost = true;
            self.counters.timeouts += 1;
            let to = frame.to;
            if self.few {
                self.join(now, to);
            }
        }
        self.give_up(|frame| frame.lost && frame.attempts >= ATTEMPTS);
    }

    /// A frame to a neighbour is repeated since no answer came: small bodies that should have been answered as well ride in it. They cost
    /// little there, and else wait until an answer says that they were lost.
    fn join(&mut self, now: Instant, to: u16) {
        for at in 0..self.outstanding.len() {
            let frame = self.outstanding.get(at);
            let small = |frame: &&Outstanding| frame.to == to && frame.body.len() <= COPIED;
            let rides = frame
                .filter(small)
                .is_some_and(|frame| self.due(frame) <= now);
            if let Some(frame) = self.outstanding.get_mut(at).filter(|_| rides) {
                frame.lost = true;
            }
        }
    }

    fn give_up(&mut self, which: impl Fn(&Outstanding) -> bool) {
        let (outcomes, counters) = (&mut self.outcomes, &mut self.counters);
        self.outstanding.retain(|frame| {
            if which(frame) {
                counters.given_up += 1;
                let attempts = frame.attempts;
                outcomes.push((frame.token, Outcome::Failed { attempts }));
            }
            !which(frame)
        });
    }

    /// When [`on_time`](Self::on_time) or an acknowledgement is due next.
    pub fn deadline(&self) -> Option<Instant> {
        let waiting = self.outstanding.iter().filter(|frame| self.is_timed(frame));
        let due = waiting.map(|frame| self.due(frame));
        let acks = self.neighbours.iter().filter_map(|known| known.ack_at);
        due.chain(acks).min()
    }

    /// Whether the time of a body runs. It is that of the last one to a neighbour only: its answer tells of all others (as the
    /// tail loss probe of RFC 8985, 7).
    fn is_timed(&self, frame: &Outstanding) -> bool {
        let mut others = self.outstanding.iter().filter(|other| other.to == frame.to);
        !frame.lost && others.all(|other| !other.lost && other.order <= frame.order)
    }

    fn due(&self, frame: &Outstanding) -> Instant {
        let known = self.neighbours.iter().find(|known| known.node == frame.to);
        let round = known.and_then(|known| known.round);
        let wait = round.map_or(self.wait_min * 2, |(mean, var)| {
            Duration::from_secs_f64(mean + 4.0 * var)
        });
        if frame.body.len() <= COPIED {
            let (wait, doublings) = match self.few {
                // Small ones cost less than to wait for an answer that is lost. At 80 % delivery six in a row are lost once in 15,625 times: the
                // channel may stand, or the neighbour have gone.
                true => (self.wait_min / 2, frame.attempts.saturating_sub(EVEN)),
                // Where many contend an answer comes later, too; on a cable few are lost, and answers wait for company.
                false => (self.wait_min, frame.attempts / 2),
            };
            let times = 1u64 << doublings.min(5);
            return frame.left.unwrap_or(frame.sent) + wait * times;
        }
        // It doubles with every second attempt: the channel may be full, but a relay that has gone must be noticed.
        let times = 1u64 << (frame.attempts / 2).min(3);
        let most = WAIT_MAX.max(self.wait_min);
        frame.left.unwrap_or(frame.sent) + (wait.max(self.wait_min) * times).min(most)
    }

    /// The next outcome of a frame, with its token.
    pub fn poll_outcome(&mut self) -> Option<(u32, Outcome)> {
        (!self.outcomes.is_empty()).then(|| self.outcomes.remove(0))
    }

    /// A neighbour that is heard and acknowledges nothing.
    pub fn poll_deaf(&mut self) -> Option<u16> {
        self.deaf.pop()
    }

    /// The next neighbour that has gone.
    pub fn poll_gone(&mut self) -> Option<u16> {
        self.gone.pop()
    }

    fn neighbour(&mut self, now: Instant, node: u16) -> &mut Neighbour {
        let at = match self.neighbours.iter().position(|known| known.node == node) {
            Some(at) => at,
            None => {
                if self.neighbours.len() >= NEIGHBOURS_MAX {
                    let silent = self.neighbours.iter().enumerate();
                    let at = silent
                        .min_by_key(|(_, known)| known.heard)
                        .map_or(0, |(at, _)| at);
                    self.neighbours.swap_remove(at);
                }
                self.neighbours.push(Neighbour {
                    node,
                    heard: now,
                    received: None,
                    next: 0,
                    round: None,
                    in_vain: 0,
                    large_in_vain: 0,
                    vain_since: now,
                    ack_at: None,
                    owed: Instant::ZERO,
                    unanswered: 0,
                    arrived: Instant::ZERO,
                    bursts: Bursts {
                        newest: 0,
                        until: Instant::MAX,
                    },
                });
                self.neighbours.len() - 1
            }
        };
        &mut self.neighbours[at]
    }
}

impl Neighbour {
    /// A frame to it left that it may not answer.
    fn count_vain(&mut self, now: Instant, large: bool) {
        self.in_vain = self.in_vain.saturating_add(1);
        if large && self.large_in_vain == 0 {
            self.vain_since = now;
        }
        self.large_in_vain = self.large_in_vain.saturating_add(u16::from(large));
    }

    /// Notes a number; false if it was noted before, or is too old to know.
    fn on_number(&mut self, life: u8, number: u16) -> bool {
        let Some(received) = self
            .received
            .as_mut()
            .filter(|received| received.life == life)
        else {
            let map = 1;
            self.received = Some(Received {
                life,
                newest: number,
                map,
            });
            return true;
        };
        let ahead = number.wrapping_sub(received.newest);
        match ahead {
            1..0x8000 => {
                received.map = received.map.checked_shl(ahead.into()).unwrap_or(0) | 1;
                received.newest = number;
                true
            }
            _ => {
                let back = received.newest.wrapping_sub(number);
                if back >= 64 || received.map >> back & 1 == 1 {
                    return false;
                }
                received.map |= 1 << back;
                true
            }
        }
    }

    /// A round trip was measured (RFC 6298, 2).
    fn measured(&mut self, sample: f64) {
        self.round = Some(match self.round {
            None => (sample, sample / 2.0),
            Some((mean, var)) => (
                mean + (sample - mean) / 8.0,
                var + ((sample - mean).abs() - var) / 4.0,
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No burst is over yet.
    const OVER: u8 = 0;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn sender(frames: u16) -> Recovery {
        sender_of(frames, 1)
    }

    impl Recovery {
        /// Repeats what is under way.
        fn repeat_all(&mut self, now: Instant) {
            self.outstanding
                .iter_mut()
                .for_each(|frame| frame.lost = true);
            while self.repeat(now, 1, 2000).is_some() {}
        }
    }

    /// The same with bodies of this length.
    fn sender_of(frames: u16, octets: usize) -> Recovery {
        let mut recovery = Recovery::new(Duration::from_millis(2), true);
        for token in 1..=frames {
            let number = recovery.send(
                at(token.into()),
                7,
                (token.into(), Class::Data),
                1,
                &vec![token as u8; octets],
            );
            assert_eq!(number, token);
        }
        recovery
    }

    /// What a frame that left later shows about an earlier one, and what the earlier one's repeat shows.
    #[test]
    fn what_arrives_out_of_order_was_lost() {
        let mut recovery = sender(3);
        recovery.on_ack(
            at(10),
            7,
            Ack {
                node: 1,
                newest: 2,
                before: 0,
                over: OVER,
            },
        );
        assert_eq!(
            recovery.poll_outcome(),
            Some((2, Outcome::Acknowledged { attempts: 1 }))
        );
        let repeat = recovery.repeat(at(11), 2, 2000).unwrap();
        assert_eq!((repeat.number, repeat.body), (1, &[1][..]));
        assert!(
            recovery.repeat(at(11), 2, 2000).is_none(),
            "the third is only late"
        );
        // The third arrives, but it left before the repeat of the first.
        recovery.on_ack(
            at(12),
            7,
            Ack {
                node: 1,
                newest: 3,
                before: 0b1,
                over: OVER,
            },
        );
        assert!(!recovery.has_lost());
        recovery.on_ack(
            at(13),
            7,
            Ack {
                node: 1,
                newest: 3,
                before: 0b11,
                over: OVER,
            },
        );
        let outcomes: Vec<_> = std::iter::from_fn(|| recovery.poll_outcome()).collect();
        assert_eq!(outcomes[1], (1, Outcome::Acknowledged { attempts: 2 }));
        assert_eq!((recovery.waiting(), recovery.deadline()), (0, None));
    }

    /// A neighbour that only others acknowledge is not acknowledged.
    #[test]
    fn acknowledgements_count_for_their_neighbour_only() {
        let mut recovery = sender(1);
        recovery.on_ack(
            at(5),
            8,
            Ack {
                node: 1,
                newest: 1,
                before: 0,
                over: OVER,
            },
        );
        assert_eq!(recovery.poll_outcome(), None);
    }

    #[test]
    fn a_silent_neighbour_is_given_up_within_a_second() {
        let mut recovery = sender(2);
        let (mut now, mut gone) = (at(2), None);
        while gone.is_none() && now < at(3000) {
            now = recovery.deadline().unwrap();
            recovery.on_time(now);
            while recovery.repeat(now, 1, 2000).is_some() {}
            gone = recovery.poll_gone();
        }
        assert_eq!(gone, Some(7));
        assert!(now < at(1000), "{now}");
        let failed = std::iter::from_fn(|| recovery.poll_outcome()).count();
        assert_eq!((failed, recovery.waiting()), (2, 0));
        // One that is heard is only given up frame by frame.
        let mut recovery = sender(1);
        for _ in 0..100 {
            let Some(due) = recovery.deadline() else {
                break;
            };
            recovery.heard(due, 7, 1, due);
            recovery.on_time(due);
            recovery.repeat(due, 1, 2000);
        }
        assert_eq!(recovery.counters().given_up, 1);
        assert_eq!(recovery.counters().repeats, u64::from(ATTEMPTS) - 1);
        assert_eq!(recovery.poll_gone(), None);
    }

    /// Probes of a neighbour arrive, answers do not: it is given up with all that waits for it, and not before its time.
    #[test]
    fn a_neighbour_that_only_talks_is_given_up() {
        let mut recovery = sender_of(6, COPIED + 1);
        let (mut now, mut deaf, mut sent) = (at(2), None, 6);
        while deaf.is_none() {
            now = recovery.deadline().expect("frames wait");
            recovery.heard(now, 7, 1, now);
            recovery.on_time(now);
            while recovery.repeat(now, 1, 2000).is_some() {
                sent += 1;
            }
            deaf = recovery.poll_deaf();
        }
        assert_eq!((deaf, recovery.waiting()), (Some(7), 0));
        assert!(sent >= DEAF.0 && now >= at(0) + DEAF.1, "{sent} {now}");
        assert_eq!((recovery.counters().deaf, recovery.poll_gone()), (1, None));
    }

    #[test]
    fn copies_are_recognised_in_any_order_and_across_lives() {
        let mut recovery = Recovery::new(Duration::from_millis(2), true);
        let mut take = |life, number| recovery.on_frame(at(0), 3, (life, number), Duration::ZERO);
        let taken = [65_535, 0, 65_534, 0, 65_535, 63, 65_534].map(|number| take(1, number));
        assert_eq!(taken, [true, true, true, false, false, true, false]);
        assert!(take(2, 0) && !take(2, 0));
        let (acks, count) = recovery.acks(at(1));
        assert_eq!(
            (count, acks[0]),
            (
                1,
                Ack {
                    node: 3,
                    newest: 0,
                    before: 0,
                    over: 255,
                }
            )
        );
        assert_eq!(recovery.acks(at(999)).1, 1, "told again");
        assert_eq!(recovery.acks(at(1000)).1, 0);
    }

    /// Of a burst that is over, what is not listed was lost; of one that goes on nothing is known.
    #[test]
    fn what_a_burst_lost_is_repeated_when_it_is_over() {
        let ack = |over| Ack {
            node: 1,
            newest: 1,
            before: 0,
            over,
        };
        let mut recovery = sender(3);
        recovery.on_ack(at(10), 7, ack(0));
        assert_eq!((recovery.waiting(), recovery.lost()), (2, (0, 0)));
        recovery.on_ack(at(11), 7, ack(1));
        assert_eq!(recovery.lost(), (2, 2));
        assert_eq!(recovery.repeat(at(12), 2, 2000).unwrap().number, 2);
        assert_eq!(recovery.repeat(at(12), 2, 2000).unwrap().number, 3);
        // The repeats are of the second burst, of which the next answer knows nothing.
        recovery.on_ack(at(13), 7, ack(1));
        assert_eq!(recovery.lost(), (0, 0));
        recovery.on_ack(at(14), 7, ack(2));
        assert_eq!(recovery.lost(), (2, 2));
    }

    /// Without an answer the last of large bodies alone is repeated.
    #[test]
    fn a_missing_answer_costs_one_repeat() {
        let mut recovery = sender_of(3, COPIED + 1);
        let due = recovery.deadline().unwrap();
        recovery.on_time(due);
        assert_eq!(recovery.lost(), (1, COPIED + 1));
        assert_eq!(recovery.repeat(due, 2, 2000).unwrap().number, 3);
    }

    /// A stream without a pause is acknowledged while it lasts.
    #[test]
    fn a_stream_is_acknowledged() {
        let mut recovery = Recovery::new(Duration::from_millis(2), true);
        let wait = Duration::from_millis(3);
        for number in 0..8 {
            recovery.on_frame(at(number), 3, (0, number as u16), wait);
        }
        // Half of what the sender waits for an answer: eight milliseconds.
        assert!(!recovery.owes(at(7)) && recovery.owes(at(8)));
    }

    /// Goal: a sender on a cable is not stopped by its window. Method: bodies that all arrive at once.
    #[test]
    fn half_a_window_is_acknowledged_at_once() {
        let mut recovery = Recovery::new(Duration::from_micros(11), false);
        let wait = Duration::from_millis(1);
        let mut owes = (1..=WINDOW as u16).map(|number| {
            recovery.on_frame(at(1), 3, (0, number), wait);
            recovery.owes(at(1))
        });
        assert_eq!(owes.position(|owes| owes), Some(WINDOW / 2 - 1));
        let acks = recovery.acks(at(1));
        recovery.told(&acks.0[..acks.1]);
        recovery.on_frame(at(1), 3, (0, 100), wait);
        assert!(!recovery.owes(at(1)), "it is counted anew");
    }

    /// Goal: nothing is repeated before it can have been answered. Method: a channel whose time lags behind, as that of a cable does
    /// to make up for late wake-ups.
    #[test]
    fn time_to_answer_begins_when_a_body_is_sent() {
        let mut recovery = Recovery::new(Duration::from_micros(11), false);
        recovery.heard(at(100), 7, 0, at(100));
        recovery.send(at(100), 7, (1, Class::Data), 1, &[0; 1000]);
        recovery.left(at(92));
        recovery.on_time(at(104));
        assert_eq!(recovery.lost(), (0, 0));
    }

    /// Small bodies ride in two later frames, once in each; large ones in none.
    #[test]
    fn small_bodies_have_companions() {
        let mut recovery = sender(1);
        let large = [0; COPIED + 1];
        recovery.send(at(2), 7, (9, Class::Data), 1, &large);
        for _ in 0..2 {
            let order = recovery.order();
            assert_eq!(recovery.copy(1, 2000, (order, 2)).unwrap().number, 1);
            assert!(
                recovery.copy(1, 2000, (order, 2)).is_none(),
                "in this frame"
            );
        }
        let order = recovery.order();
        assert!(recovery.copy(1, 2000, (order, 2)).is_none());
    }

    /// Goal: where few contend a ping that was lost does not wait for the answer to a later one, nor longer with each attempt. Method: two
    /// small bodies and a large one, which nothing answers. (One of 95 pings waited for up to 0.6 s.)
    #[test]
    fn small_bodies_ride_in_what_is_repeated() {
        // Where many contend the time is twice as long, and doubles with every second attempt.
        for (few, lost, due) in [(true, 2, 108), (false, 1, 164)] {
            let mut recovery = sender(2);
            recovery.contend(few);
            recovery.send(at(2), 7, (9, Class::Data), 1, &[0; COPIED + 1]);
            recovery.heard(at(3), 7, 0, at(3));
            (1..=3).for_each(|_| recovery.repeat_all(at(100)));
            recovery.outstanding.pop();
            recovery.on_time(at(due - 1));
            assert_eq!(recovery.lost().0, 0);
            recovery.on_time(at(due));
            assert_eq!(recovery.lost().0, lost);
        }
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let mut recovery = Recovery::new(Duration::from_millis(2), true);
        for node in 0..60_000u16 {
            recovery.on_frame(at(node.into()), node, (0, 1), Duration::ZERO);
        }
        assert_eq!(recovery.neighbours.len(), NEIGHBOURS_MAX);
    }
}
