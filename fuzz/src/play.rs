//! Two nodes that talk to each other under a script of octets: deliveries, losses, repetitions, forgeries, time.
//!
//! Each octet of the script is an operation at one of the two ends, some with operands. A node must stop sending at some time, and
//! never ask to be woken in the past.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant, Wake};

/// Octets of the largest frame.
pub const FRAME_MAX: usize = 2304;
/// Frames in the air on one way; the oldest go when there are more.
const AIR_MAX: usize = 32;
/// Frames that one call of [`Node::say`] after the other may give.
const DRAIN_MAX: usize = 1000;
/// Deadlines that are met in one span of time. A node may set very short ones, and time goes on then.
const DEADLINES_MAX: usize = 200;
/// Operations of a script; what follows is not played.
const OPERATIONS_MAX: usize = 1500;

/// A node as a script sees it.
pub trait Node {
    /// A frame of the other end arrives.
    fn hear(&mut self, now: Instant, frame: &[u8]);
    /// Writes the next frame, and returns its length.
    fn say(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize>;
    /// Whether [`say`](Self::say) is asked until it has nothing more.
    fn is_drained(&self) -> bool;
    /// Something else happens: `what` says what.
    fn meet(&mut self, now: Instant, what: u8);
    /// Time has passed, and a deadline may be due.
    fn wake(&mut self, now: Instant);
    /// When it is to be woken.
    fn deadline(&self) -> Option<Wake>;
}

struct Play<N> {
    ends: [N; 2],
    /// What is on its way to each end.
    air: [VecDeque<Vec<u8>>; 2],
    now: Instant,
    /// The first frames that were sent.
    sent: Vec<Vec<u8>>,
}

/// Plays the script, and returns the first frames that the two nodes sent.
pub fn play<N: Node>(ends: [N; 2], script: &[u8]) -> Vec<Vec<u8>> {
    let mut play = Play {
        ends,
        air: [VecDeque::new(), VecDeque::new()],
        now: Instant::from_millis(1),
        sent: Vec::new(),
    };
    for side in 0..2 {
        play.ends[side].wake(play.now);
        play.drain(side);
    }
    let mut script = script.iter().copied();
    for _ in 0..OPERATIONS_MAX {
        let Some(operation) = script.next() else {
            break;
        };
        play.operate(operation, &mut script);
        play.check();
    }
    play.sent
}

impl<N: Node> Play<N> {
    fn operate(&mut self, operation: u8, script: &mut impl Iterator<Item = u8>) {
        let side = usize::from(operation >> 7);
        let mut operand = || script.next().unwrap_or(0);
        let air = &mut self.air[side];
        match operation & 15 {
            0..=4 => {
                if let Some(frame) = air.pop_front() {
                    self.arrive(side, &frame);
                }
            }
            5 => drop(air.pop_front()),
            6 => {
                let first = air.front().cloned();
                air.extend(first);
            }
            7 => {
                let (place, mask) = (usize::from(operand()), operand());
                let frame = air.front_mut();
                let len = frame.as_ref().map_or(0, |frame| frame.len()).max(1);
                if let Some(octet) = frame.and_then(|frame| frame.get_mut(place % len)) {
                    *octet ^= mask;
                }
            }
            8 => {
                let len = operand();
                if let Some(frame) = air.front_mut() {
                    frame.truncate(len.into());
                }
            }
            9 => {
                let len = operand() % 96;
                let frame: Vec<u8> = (0..len).map(|_| operand()).collect();
                self.arrive(side, &frame);
            }
            10 => self.pass(Duration::from_micros(u64::from(operand()) * 10)),
            11 => self.pass(Duration::from_micros(u64::from(operand()) * 200)),
            12 => self.pass(Duration::from_millis(u64::from(operand()) * 20)),
            13 => {
                self.ends[side].meet(self.now, operand());
                self.drain(side);
            }
            _ => self.say(side),
        }
    }

    fn arrive(&mut self, side: usize, frame: &[u8]) {
        self.ends[side].hear(self.now, frame);
        self.drain(side);
    }

    fn say(&mut self, side: usize) {
        let mut frame = [0; FRAME_MAX];
        if let Some(len) = self.ends[side].say(self.now, &mut frame) {
            self.send(side, frame.get(..len).expect("no longer than its buffer"));
        }
    }

    fn send(&mut self, side: usize, frame: &[u8]) {
        let air = &mut self.air[1 - side];
        air.push_back(frame.to_vec());
        if air.len() > AIR_MAX {
            air.pop_front();
        }
        if self.sent.len() < AIR_MAX {
            self.sent.push(frame.to_vec());
        }
    }

    fn drain(&mut self, side: usize) {
        if !self.ends[side].is_drained() {
            return;
        }
        let mut frame = [0; FRAME_MAX];
        for sent in 0.. {
            assert!(sent < DRAIN_MAX, "side {side} does not stop sending");
            let Some(len) = self.ends[side].say(self.now, &mut frame) else {
                return;
            };
            self.send(side, frame.get(..len).expect("no longer than its buffer"));
        }
    }

    /// Time passes at both ends. Each is woken when it asked to be.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..DEADLINES_MAX {
            let due = |side: usize| self.ends[side].deadline().map(|wake| (wake.at, side));
            let next = [0, 1].into_iter().filter_map(due).min();
            let Some((at, side)) = next.filter(|&(at, _)| at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            self.ends[side].wake(self.now);
            self.drain(side);
            let wake = self.ends[side].deadline();
            assert!(
                !Wake::due(wake, self.now),
                "side {side}: {wake:?} was met at {} and is still due",
                self.now
            );
        }
        // A node that sets very short deadlines stays behind otherwise.
        if [0, 1]
            .into_iter()
            .all(|side| !Wake::due(self.ends[side].deadline(), until))
        {
            self.now = until;
        }
    }

    fn check(&self) {
        for (side, end) in self.ends.iter().enumerate() {
            if let Some(wake) = end.deadline() {
                assert!(wake.at >= self.now, "side {side}: {wake:?} at {}", self.now);
            }
        }
    }
}
