//! Runs nodes in a world: takes events in order, moves frames past receivers, and serves the nodes.

use chappe_core::{Failure, Instant, Purpose, RadioEvent, RadioNode, Reception, Seed, Stream};

use crate::air::{Air, Walk};
use crate::jamming::Interferer;
use crate::link_loss::LinkLosses;
use crate::queue::{Key, Kind, Queue};
use crate::radio::{NONE, Radio, flag::*};
use crate::serving::Desk;
use crate::{AirTime, Clock, Counters, Error, Fault, Medium, Power, Recorder, World};

/// A run: the nodes, the air between them, and what is to happen next.
///
/// Everything is decided by the world, the nodes and the seed. One run is single-threaded; run several seeds
/// side by side.
pub struct Simulator<N: RadioNode + ?Sized, R: Recorder = ()> {
    pub(crate) now: AirTime,
    pub(crate) queue: Queue,
    pub(crate) air: Air,
    pub(crate) nodes: Vec<Box<N>>,
    pub(crate) desks: Vec<Desk>,
    pub(crate) recorder: R,
    pub(crate) faults: Vec<(AirTime, Fault)>,
    pub(crate) interferers: Vec<Interferer>,
    pub(crate) interference: Stream,
    pub(crate) reviver: Option<Reviver<N>>,
    /// What nodes write their frames to; swapped with a slot's buffer, never copied.
    pub(crate) scratch: Vec<u8>,
    /// A falsified frame is made here.
    pub(crate) falsified: Vec<u8>,
}

/// Makes a fresh node for a crashed one.
type Reviver<N> = Box<dyn FnMut(usize) -> Box<N> + Send>;

/// A node that meets this many deadlines without time moving has broken its contract.
const STREAK_MAX: u32 = 100_000;
/// Bits of a frame key's count that hold the slot; the rest count the transmitter's frames.
pub(crate) const SLOT_BITS: u32 = 18;
/// How often `run_while` asks, in air time: 1 ms.
const CADENCE: u64 = 1_000_000;

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    /// Puts `nodes` into `world`, node `i` at place `i`, and lets each say what it wants first.
    pub fn new(world: World, nodes: Vec<Box<N>>, seed: Seed, recorder: R) -> Result<Self, Error> {
        world.check(nodes.len())?;
        let World {
            mut medium,
            clocks,
            link_losses,
            faults,
            frame_max,
        } = world;
        medium.set_run_seed(seed);
        let interferers = Interferer::place_all(&mut medium, &faults)?;
        let mut air = Air::new(medium, frame_max, seed);
        air.link_losses = LinkLosses::new(&link_losses, seed)?;
        let clock = |node: usize| clocks.get(node).copied().unwrap_or_default();
        let mut simulator = Simulator {
            now: AirTime::ZERO,
            queue: Queue::with_capacity(nodes.len() * 4 + faults.len()),
            air,
            desks: (0..nodes.len())
                .map(|node| Desk::new(clock(node)))
                .collect(),
            nodes,
            recorder,
            faults,
            interferers,
            interference: seed.stream(Purpose::Interference),
            reviver: None,
            scratch: vec![0; frame_max],
            falsified: Vec::new(),
        };
        for (number, (at, _)) in simulator.faults.iter().enumerate() {
            simulator
                .queue
                .push(Key::new(at.0, Kind::Scenario, 0, number as u64));
        }
        for node in 0..simulator.nodes.len() as u32 {
            // An early timeout changes nothing, but lets layers inside a node look at each other.
            let now = simulator.local(node);
            simulator.nodes[node as usize].handle_timeout(now);
            simulator.drain(node);
        }
        Ok(simulator)
    }

    /// Says how to make a fresh node `i` when a fault restarts it. Without one, restarts have no effect.
    pub fn set_reviver(&mut self, reviver: impl FnMut(usize) -> Box<N> + Send + 'static) {
        self.reviver = Some(Box::new(reviver));
    }

    /// The present moment.
    pub fn now(&self) -> AirTime {
        self.now
    }

    /// Node `i`. Panics if there is none, as indexing does.
    pub fn node(&self, i: usize) -> &N {
        &self.nodes[i]
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &N> {
        self.nodes.iter().map(Box::as_ref)
    }

    /// The application's side of node `i`: calls `f` with the node and its present time, then serves the node
    /// as after any input. Panics if there is no such node.
    pub fn with_node<T>(&mut self, i: usize, f: impl FnOnce(&mut N, Instant) -> T) -> T {
        let now = self.local(i as u32);
        let result = f(&mut self.nodes[i], now);
        if !self.air.radios[i].is(DOWN) {
            self.nodes[i].handle_timeout(now);
            self.drain(i as u32);
        }
        result
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.air.counters
    }

    /// A number that stands for every frame start and every outcome so far. Equal for equal runs, on any machine.
    pub fn digest(&self) -> u64 {
        self.air.digest.value()
    }

    /// The medium.
    pub fn medium(&self) -> &Medium {
        &self.air.medium
    }

    /// The clock of node `i`. Panics if there is no such node.
    pub fn clock(&self, i: usize) -> &Clock {
        &self.desks[i].clock
    }

    /// The recorder, to take out what it holds.
    pub fn recorder_mut(&mut self) -> &mut R {
        &mut self.recorder
    }

    /// Ends the run: the nodes, the recorder and the counters.
    pub fn into_parts(self) -> (Vec<Box<N>>, R, Counters) {
        (self.nodes, self.recorder, self.air.counters)
    }

    /// Octets of memory: for each node (radio and desk), for each directed link, and for each frame slot in
    /// use so far with its buffers.
    pub fn memory(&self) -> Memory {
        let (frames, slots) = self.air.frames.octets();
        Memory {
            per_node: size_of::<Radio>() + size_of::<Desk>() + size_of::<Box<N>>(),
            links: self.air.medium.octets(),
            frames,
            slots,
        }
    }

    /// Handles every event up to and including `at`, and moves the present there.
    pub fn run_until(&mut self, at: AirTime) {
        // No event's order reaches the bound's, so the bound itself ends a walk at the limit.
        let limit = Key::new(at.0.saturating_add(1), Kind::FrameEnd, 0, 0);
        while self.queue.top() < limit {
            if let Some(key) = self.queue.pop() {
                self.now = AirTime(key.at());
                self.air.counters.events += 1;
                self.handle(key, limit);
            }
        }
        self.now = self.now.max(at);
        self.air.settle_duty(self.now.0);
    }

    /// Runs until `limit` or until `keep_going` says no; it is asked before every millisecond of air time in
    /// which something happens.
    pub fn run_while(&mut self, limit: AirTime, mut keep_going: impl FnMut(&Self) -> bool) {
        while self.now < limit && keep_going(self) {
            // Silence is skipped: nothing can change in it.
            let next = self.queue.top().at().max(self.now.0);
            let step = next.saturating_add(CADENCE).min(limit.0);
            self.run_until(AirTime(step));
        }
    }

    /// When the next event is due; [`AirTime::MAX`] if there is none. For a driver that keeps time with a clock.
    pub fn next_at(&self) -> AirTime {
        AirTime(self.queue.top().at())
    }

    fn handle(&mut self, key: Key, limit: Key) {
        match key.kind() {
            Kind::FrameEnd => self.frame_ends(key, limit),
            Kind::Head => self.head(key),
            Kind::Timeout => self.timeout(key),
            Kind::Transmission => self.transmission(key),
            Kind::FrameStart => self.frame_starts(key, limit),
            Kind::Scenario => self.scenario(key),
        }
    }

    fn frame_starts(&mut self, key: Key, limit: Key) {
        let slot = slot_of(key);
        loop {
            let bound = self.queue.top().min(limit);
            let far = self.queue.top_but_starts();
            let walk = self
                .air
                .walk_starts(&mut self.recorder, slot, key, [bound, far]);
            match walk {
                Walk::Carrier { at, node } => {
                    self.now = AirTime(at);
                    self.tell_carrier(node);
                }
                Walk::Locked { at, node, carrier } => {
                    self.await_head(slot, node, at);
                    if carrier {
                        self.now = AirTime(at);
                        self.tell_carrier(node);
                    }
                }
                Walk::Pause(next) => return self.pause(next, limit),
                _ => return,
            }
        }
    }

    fn frame_ends(&mut self, key: Key, limit: Key) {
        let slot = slot_of(key);
        let frame = self.air.frames.get(slot);
        let end = frame.begin + frame.airtime;
        // The transmitter's own end comes first: nothing has ended yet and the key is that of the end itself.
        if frame.ended == 0 && key.at() == end && frame.flying && !self.is_past_own_end(slot) {
            self.own_end(slot, end);
        }
        loop {
            let bound = self.queue.top().min(limit);
            let far = self.queue.top_but_cursors();
            let walk = self
                .air
                .walk_ends(&mut self.recorder, slot, key, [bound, far]);
            match walk {
                Walk::Carrier { at, node } => {
                    self.now = AirTime(at);
                    self.tell_carrier(node);
                }
                Walk::Received { at, node, .. } | Walk::Failed { at, node, .. } => {
                    self.now = AirTime(at);
                    self.tell_end(slot, walk);
                    self.drain(node);
                    self.update_carrier(node);
                }
                Walk::Pause(next) => return self.pause(next, limit),
                _ => return self.air.frames.release(slot),
            }
        }
    }

    /// Another event comes before a frame's next receiver. If it is the end of this call, the same event goes on
    /// in the next one, and counts there.
    fn pause(&mut self, next: Key, limit: Key) {
        let only_the_end = next >= limit && next < self.queue.top();
        self.air.counters.events -= u64::from(only_the_end);
        self.queue.push_cursor(next);
    }

    fn is_past_own_end(&self, slot: u32) -> bool {
        let frame = self.air.frames.get(slot);
        frame.foreign || self.desks[frame.source as usize].flying != slot
    }

    /// The transmitter's own end: it is told, and a frame whose time has come meanwhile follows.
    fn own_end(&mut self, slot: u32, end: u64) {
        let Some(node) = self.air.finish(slot, end) else {
            return;
        };
        self.desks[node as usize].flying = NONE;
        // A node that turns carrier sensing on when it has sent must hear of the channel as it is now.
        let sense = self.air.rules.carrier_sense;
        self.air.radios[node as usize].refresh(end, sense);
        self.radio_event(node, RadioEvent::Sent);
        self.drain(node);
        let desk = self.desks[node as usize];
        if desk.waiting != NONE && desk.waiting_at <= end && desk.flying == NONE {
            self.start(node);
            self.schedule(node);
        }
        self.update_carrier(node);
    }

    /// Tells a node what became of a frame that it had begun to receive.
    fn tell_end(&mut self, slot: u32, walk: Walk) {
        match walk {
            Walk::Failed { node, started, .. } => {
                let started = self.desks[node as usize].clock.local(AirTime(started));
                let mode = Some(self.air.frames.get(slot).mode);
                self.radio_event(node, RadioEvent::Failed(Failure { started, mode }));
            }
            Walk::Received {
                node,
                started,
                power,
                falsified,
                ..
            } => {
                let desk = self.desks[node as usize];
                self.air.counters.calls += 1;
                self.air.counters.falsified += u64::from(falsified.is_some());
                let frame = self.air.frames.get(slot);
                let psdu = self
                    .air
                    .heard_bytes(slot, node, falsified, &mut self.falsified);
                let reception = Reception {
                    psdu,
                    started: desk.clock.local(AirTime(started)),
                    mode: frame.mode,
                    power: self
                        .air
                        .medium
                        .powers_are_real()
                        .then(|| Power(power).to_dbm()),
                };
                let now = desk.clock.local(self.now);
                self.nodes[node as usize].handle_radio(now, RadioEvent::Received(reception));
            }
            _ => {}
        }
    }

    fn timeout(&mut self, key: Key) {
        let node = key.node();
        let desk = &mut self.desks[node as usize];
        if key.count() != u64::from(desk.generation) {
            return;
        }
        desk.queued = u64::MAX;
        if desk.wake > key.at() {
            return self.schedule(node);
        }
        desk.wake = u64::MAX;
        if desk.streak_at != key.at() {
            (desk.streak_at, desk.streak) = (key.at(), 0);
        }
        desk.streak += 1;
        let clock = desk.clock;
        assert!(
            desk.streak < STREAK_MAX,
            "node {node} keeps a deadline at {}: its contract is broken",
            self.now
        );
        let handle = &mut self.nodes[node as usize];
        if R::NODES
            && let Some(wake) = handle.poll_timeout()
        {
            self.recorder.woken(self.now, node as usize, wake.why);
        }
        self.air.counters.calls += 1;
        handle.handle_timeout(clock.local(self.now));
        self.drain(node);
    }

    fn transmission(&mut self, key: Key) {
        let node = key.node();
        let desk = self.desks[node as usize];
        let current = desk.waiting != NONE && key.count() == u64::from(desk.waiting_generation);
        // While the last frame is still on the air, this one waits for its end.
        if current && desk.flying == NONE {
            self.start(node);
            self.update_carrier(node);
        }
    }
}

/// What a run takes up, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// For each node, its own state not counted.
    pub per_node: usize,
    /// All link tables.
    pub links: usize,
    /// All frame slots with their buffers.
    pub frames: usize,
    /// How many slots there are: the most frames that were ever waiting or in flight together.
    pub slots: usize,
}

pub(crate) fn slot_of(key: Key) -> u32 {
    key.count() as u32 & ((1 << SLOT_BITS) - 1)
}

#[cfg(test)]
mod tests;
