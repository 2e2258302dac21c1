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
/// Most copies of a small body. At 80 % delivery one of 125 stays lost with two, and waits for a turn of the channel at its hop; with four one
/// of 3125.
const COPIES: u8 = 4;
/// The same where many contend: of an urgent packet, and of what is neither that nor replaced by what follows it.
const COPIES_AWAITED: u8 = 3;
const COPIES_OF_MANY: u8 = 2;
/// Where many contend, after so many transmissions of an urgent packet the time between them doubles each time.
const EVEN_AWAITED: u8 = 4;
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

/// What its sender and its receiver lose while a body is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A program or a person waits for it, as for a ping: an urgent packet.
    Awaited,
    /// A TCP segment that only acknowledges: the next one says as much.
    Replaced,
    /// Neither of these: data, and control frames that are repeated.
    Usual,
}

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
    weight: Weight,
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
        (token, class, weight): (u32, Class, Weight),
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
            weight,
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

    /// Whether an urgent packet must be repeated that has a time of its own.
    pub fn has_hasty_lost(&self) -> bool {
        let mut outstanding = self.outstanding.iter();
        outstanding.any(|frame| frame.lost && self.is_hasty(frame))
    }

    /// When such a packet is due next.
    pub fn hasty_deadline(&self) -> Option<Instant> {
        let hasty = |frame: &&Outstanding| self.is_hasty(frame) && !frame.lost;
        let waiting = self.outstanding.iter().filter(hasty);
        waiting.map(|frame| self.due(frame)).min()
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
    /// frame that leaves anyway. On a cable none is needed.
    pub fn copy(&mut self, burst: u8, room: usize, order: u64) -> Option<Repeat<'_>> {
        if !self.shared {
            return None;
        }
        let few = self.few;
        let most = |weight: Weight| match (few, weight) {
            (true, _) => COPIES,
            (false, Weight::Awaited) => COPIES_AWAITED,
            (false, Weight::Usual) => COPIES_OF_MANY,
            // Three of four small frames carried such segments there.
            (false, Weight::Replaced) => 0,
        };
        let small = self.outstanding.iter_mut().filter(|frame| {
            let is_new = !frame.lost && frame.order <= order;
            let len = frame.body.len();
            is_new && frame.copies < most(frame.weight) && len <= room.min(COPIED)
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
    /// tail loss probe of RFC 8985, 7). Where many contend that answer may take 0.6 s, so that urgent packets have a time of their own.
    fn is_timed(&self, frame: &Outstanding) -> bool {
        if self.is_hasty(frame) {
            return !frame.lost;
        }
        let mut others = self.outstanding.iter().filter(|other| other.to == frame.to);
        !frame.lost && others.all(|other| !other.lost && other.order <= frame.order)
    }

    /// Whether a body is a small urgent packet where many contend.
    fn is_hasty(&self, frame: &Outstanding) -> bool {
        let small = frame.body.len() <= COPIED;
        self.shared && !self.few && small && frame.weight == Weight::Awaited
    }

    fn due(&self, frame: &Outstanding) -> Instant {
        if self.is_hasty(frame) {
            // Two full frames: a relay forwards it in a short frame that goes first, and its end answers within as much.
            let doublings = frame.attempts.saturating_sub(EVEN_AWAITED).min(5);
            return frame.left.unwrap_or(frame.sent) + self.wait_min / 4 * (1u64 << doublings);
        }
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
mod tests;
