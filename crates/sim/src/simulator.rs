//! Runs nodes in a world: takes events in order, moves frames past receivers, and serves the nodes.

use chappe_core::{
    Dbm, Failure, Instant, Purpose, RadioEvent, RadioNode, RadioRequest, Reception, Seed, Stream,
    Transmit,
};

use crate::air::{Air, Walk};
use crate::jamming::Interferer;
use crate::queue::{Key, Kind, Queue};
use crate::radio::{NONE, Radio, flag::*};
use crate::{AirTime, Clock, Counters, Error, Fault, Loss, Medium, Power, Recorder, World};

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
    scratch: Vec<u8>,
    /// A falsified frame is made here.
    falsified: Vec<u8>,
}

/// Makes a fresh node for a crashed one.
type Reviver<N> = Box<dyn FnMut(usize) -> Box<N> + Send>;

/// What the simulator keeps for each node beside its radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desk {
    pub(crate) clock: Clock,
    /// The node's deadline in air time.
    wake: u64,
    /// When the key that stands in the queue for it comes up; the deadline may have moved away since.
    queued: u64,
    /// Tells that key from older ones.
    generation: u32,
    /// Slot of the frame that waits for its start, when it starts, and a count that tells its key from older ones.
    waiting: u32,
    waiting_at: u64,
    waiting_local: Instant,
    waiting_generation: u32,
    /// Slot of the frame on the air.
    flying: u32,
    /// Frames begun.
    number: u64,
    /// Deadlines met at one instant: a node that never stops is a defect, not a run.
    streak: u32,
    streak_at: u64,
}

/// A node that meets this many deadlines without time moving has broken its contract.
const STREAK_MAX: u32 = 100_000;
/// Bits of a frame key's count that hold the slot; the rest count the transmitter's frames.
const SLOT_BITS: u32 = 18;
/// How often `run_while` asks, in air time: 1 ms.
const CADENCE: u64 = 1_000_000;

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    /// Puts `nodes` into `world`, node `i` at place `i`, and lets each say what it wants first.
    pub fn new(world: World, nodes: Vec<Box<N>>, seed: Seed, recorder: R) -> Result<Self, Error> {
        world.check(nodes.len())?;
        let World {
            mut medium,
            clocks,
            faults,
            frame_max,
        } = world;
        medium.set_run_seed(seed);
        let interferers = Interferer::place_all(&mut medium, &faults)?;
        let clock = |node: usize| clocks.get(node).copied().unwrap_or_default();
        let mut simulator = Simulator {
            now: AirTime::ZERO,
            queue: Queue::with_capacity(nodes.len() * 4 + faults.len()),
            air: Air::new(medium, frame_max, seed),
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

    fn handle(&mut self, key: Key, limit: Key) {
        match key.kind() {
            Kind::FrameEnd => self.frame_ends(key, limit),
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
            match self.air.walk_starts(&mut self.recorder, slot, key, bound) {
                Walk::Carrier { at, node } => {
                    self.now = AirTime(at);
                    self.tell_carrier(node);
                }
                Walk::Pause(next) => return self.queue.push(next),
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
            let walk = self.air.walk_ends(&mut self.recorder, slot, key, bound);
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
                Walk::Pause(next) => return self.queue.push(next),
                _ => return self.air.frames.release(slot),
            }
        }
    }

    fn is_past_own_end(&self, slot: u32) -> bool {
        let frame = self.air.frames.get(slot);
        frame.noise || self.desks[frame.source as usize].flying != slot
    }

    /// The transmitter's own end: it is told, and a frame whose time has come meanwhile follows.
    fn own_end(&mut self, slot: u32, end: u64) {
        let Some(node) = self.air.finish(slot, end) else {
            return;
        };
        self.desks[node as usize].flying = NONE;
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
                let frame = self.air.frames.get(slot);
                let mut psdu = frame.psdu();
                if let Some(position) = falsified {
                    self.falsified.clear();
                    self.falsified.extend_from_slice(psdu);
                    falsify(
                        &mut self.falsified,
                        self.air.bit_errors(position),
                        self.air.corruption[node as usize].0,
                    );
                    self.air.counters.falsified += 1;
                    psdu = &self.falsified;
                }
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
                self.air.counters.calls += 1;
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

    /// Serves a node after an input: carries out its requests and takes down its next deadline.
    pub(crate) fn drain(&mut self, node: u32) {
        let index = node as usize;
        let now = self.local(node);
        while let Some(request) = self.nodes[index].poll_radio(now, &mut self.scratch) {
            match request {
                RadioRequest::Transmit(transmit) => self.accept(node, transmit),
                RadioRequest::Cancel => self.cancel(node),
                RadioRequest::Sense(on) => self.sense(node, on),
                RadioRequest::Tune(channel) => {
                    self.air
                        .tune(&mut self.recorder, node, self.now.0, channel.0);
                    self.update_carrier_now(node);
                }
                RadioRequest::Listen(on) => self.listen(node, on),
            }
        }
        if R::NODES {
            while let Some(event) = self.nodes[index].poll_trace() {
                self.recorder.traced(self.now, index, event);
            }
        }
        self.schedule(node);
    }

    /// Reads a node's deadline and sees to it that a key for it stands in the queue.
    fn schedule(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        desk.wake = match self.nodes[node as usize].poll_timeout() {
            Some(wake) => desk.clock.air(wake.at).0.max(self.now.0),
            None => u64::MAX,
        };
        // A key that comes up too early finds out then; only one that would come too late is replaced.
        if desk.wake < desk.queued {
            desk.generation = desk.generation.wrapping_add(1);
            desk.queued = desk.wake;
            self.queue.push(Key::new(
                desk.wake,
                Kind::Timeout,
                node,
                u64::from(desk.generation),
            ));
        }
    }

    /// Takes over a frame that the node wrote to the scratch buffer.
    fn accept(&mut self, node: u32, transmit: Transmit) {
        self.cancel(node);
        let slot = self.air.frames.take();
        let profile = self.air.medium.profile();
        let power = transmit
            .power
            .map_or(profile.power.0, |Dbm(power)| power.min(profile.power_max.0));
        let scale = if power == profile.power.0 {
            1.0
        } else {
            (Dbm(power) - profile.power).to_linear()
        };
        let frame = self.air.frames.get_mut(slot);
        std::mem::swap(&mut frame.buffer, &mut self.scratch);
        frame.source = node;
        frame.len = transmit.len.min(frame.buffer.len());
        frame.octets = frame.len + check_octets(transmit.mode);
        frame.airtime = transmit.mode.airtime(frame.octets).nanos();
        frame.mode = transmit.mode;
        frame.scale = scale;
        let desk = &mut self.desks[node as usize];
        let at = desk.clock.air(transmit.at).0.max(self.now.0);
        desk.waiting = slot;
        desk.waiting_at = at;
        desk.waiting_local = transmit.at;
        desk.waiting_generation = desk.waiting_generation.wrapping_add(1);
        if at > self.now.0 {
            let count = u64::from(desk.waiting_generation);
            self.queue
                .push(Key::new(at, Kind::Transmission, node, count));
        } else if desk.flying == NONE {
            self.start(node);
            self.update_carrier_now(node);
        }
    }

    /// Puts the node's waiting frame on the air now.
    fn start(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        let slot = std::mem::replace(&mut desk.waiting, NONE);
        desk.flying = slot;
        let number = desk.number;
        desk.number += 1;
        let frame = self.air.frames.get_mut(slot);
        frame.number = number;
        frame.channel = self.air.radios[node as usize].channel;
        self.launch(slot);
    }

    /// Sends a frame or a burst on its way.
    pub(crate) fn launch(&mut self, slot: u32) {
        self.air.transmit(&mut self.recorder, slot, self.now.0);
        let frame = self.air.frames.get(slot);
        let count = frame.number << SLOT_BITS | u64::from(slot);
        let end = Key::new(
            frame.begin.saturating_add(frame.airtime),
            Kind::FrameEnd,
            frame.source,
            count,
        );
        self.queue.push(end);
        if let Some(first) = frame.arrivals.first() {
            let at = frame.begin + u64::from(first.delay);
            self.queue
                .push(Key::new(at, Kind::FrameStart, frame.source, count));
        }
    }

    fn cancel(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        if desk.waiting != NONE {
            self.air.frames.release(desk.waiting);
            desk.waiting = NONE;
        }
    }

    fn sense(&mut self, node: u32, on: bool) {
        let radio = &mut self.air.radios[node as usize];
        radio.set(SENSING, on);
        if on && !radio.is(ASLEEP) {
            self.report_carrier(node);
        }
    }

    fn listen(&mut self, node: u32, on: bool) {
        let radio = &mut self.air.radios[node as usize];
        let listens = !radio.is(ASLEEP);
        if on == listens {
            return;
        }
        radio.set(ASLEEP, !on);
        if !on {
            self.air
                .give_up(&mut self.recorder, node, self.now.0, Loss::Asleep);
            self.update_carrier_now(node);
        } else if radio.is(SENSING) {
            self.report_carrier(node);
        }
    }

    /// Tells a node its carrier whatever it was told last; the caller drains.
    fn report_carrier(&mut self, node: u32) {
        let radio = &mut self.air.radios[node as usize];
        let busy = radio.is(BUSY);
        radio.set(TOLD_BUSY, busy);
        let since = self.desks[node as usize].clock.local(AirTime(radio.since));
        self.radio_event(node, RadioEvent::Carrier { busy, since });
    }

    /// Tells a node a change of its carrier and serves it.
    fn tell_carrier(&mut self, node: u32) {
        self.report_carrier(node);
        self.drain(node);
    }

    /// Brings a radio's carrier up to date and tells the node if it changed; the caller drains.
    fn update_carrier_now(&mut self, node: u32) {
        let sense = self.air.rules.carrier_sense;
        if self.air.radios[node as usize].refresh(self.now.0, sense) {
            self.report_carrier(node);
        }
    }

    /// The same, and serves the node.
    pub(crate) fn update_carrier(&mut self, node: u32) {
        let sense = self.air.rules.carrier_sense;
        if self.air.radios[node as usize].refresh(self.now.0, sense) {
            self.tell_carrier(node);
        }
    }

    fn radio_event(&mut self, node: u32, event: RadioEvent<'_>) {
        self.air.counters.calls += 1;
        let now = self.local(node);
        self.nodes[node as usize].handle_radio(now, event);
    }

    #[inline]
    fn local(&self, node: u32) -> Instant {
        self.desks[node as usize].clock.local(self.now)
    }

    /// The node's clock jumped in rate: what stands in the queue for it is worked out again.
    pub(crate) fn rewind(&mut self, node: u32) {
        let desk = &mut self.desks[node as usize];
        desk.queued = u64::MAX;
        if desk.waiting != NONE && desk.flying == NONE {
            let at = desk.clock.air(desk.waiting_local).0.max(self.now.0);
            desk.waiting_at = at;
            desk.waiting_generation = desk.waiting_generation.wrapping_add(1);
            let count = u64::from(desk.waiting_generation);
            self.queue
                .push(Key::new(at, Kind::Transmission, node, count));
        }
        if !self.air.radios[node as usize].is(DOWN) {
            self.schedule(node);
        }
    }

    /// Forgets all that a crashed node had asked for.
    pub(crate) fn shut(&mut self, node: u32) {
        self.cancel(node);
        let desk = &mut self.desks[node as usize];
        desk.generation = desk.generation.wrapping_add(1);
        (desk.wake, desk.queued) = (u64::MAX, u64::MAX);
        if desk.flying != NONE {
            self.air.frames.get_mut(desk.flying).truncated = true;
            desk.flying = NONE;
        }
    }
}

impl Desk {
    fn new(clock: Clock) -> Desk {
        Desk {
            clock,
            wake: u64::MAX,
            queued: u64::MAX,
            generation: 0,
            waiting: NONE,
            waiting_at: 0,
            waiting_local: Instant::ZERO,
            waiting_generation: 0,
            flying: NONE,
            number: 0,
            streak: 0,
            streak_at: 0,
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

/// Octets of the check sequence that the radio adds: 4 in 802.11, 2 in 802.15.4.
pub(crate) const fn check_octets(mode: chappe_core::Mode) -> usize {
    match mode.rate {
        chappe_core::Rate::Oqpsk250 => 2,
        _ => 4,
    }
}

fn slot_of(key: Key) -> u32 {
    key.count() as u32 & ((1 << SLOT_BITS) - 1)
}

/// Flips each bit with probability `rate`, by geometric gaps, and at least one: the frame is known to be wrong.
fn falsify(psdu: &mut [u8], mut random: Stream, rate: f64) {
    let bits = psdu.len() as u64 * 8;
    if bits == 0 {
        return;
    }
    let flip = |psdu: &mut [u8], place: u64| psdu[(place / 8) as usize] ^= 1 << (place % 8);
    let first = random.below(bits);
    flip(psdu, first);
    let ln_keep = libm::log1p(-rate.min(1.0 - 1e-12));
    let mut place = 0u64;
    loop {
        let gap = (libm::log(random.fraction()) / ln_keep) as u64;
        place = place.saturating_add(gap);
        if place >= bits {
            return;
        }
        if place != first {
            flip(psdu, place);
        }
        place += 1;
    }
}
