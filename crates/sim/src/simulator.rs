//! Runs nodes in a world: takes events in order, moves frames past receivers, and serves the nodes.

use chappe_core::{Instant, RadioNode, Seed};

use crate::air::Air;
use crate::cursor::CursorEvent;
use crate::engine::Engine;
use crate::event::{Key, Kind};
use crate::forger::Forger;
use crate::id::{NodeId, Slot};
use crate::level::Level;
use crate::link_loss::LinkLosses;
use crate::nodes::{NodeState, Nodes};
use crate::queue::Queue;
use crate::radio::Radio;
use crate::scenario::Scenario;
use crate::{Accounts, AirTime, Clock, Counters, Error, Fault, Medium, Reader, Recorder, World};

/// A run: the nodes, the air between them, and the events to come.
///
/// The world, the nodes and the seed decide everything. One run is single-threaded; run several seeds side by side.
pub struct Simulator<N: RadioNode + ?Sized, R: Recorder = ()> {
    engine: Engine<R>,
    nodes: Nodes<N>,
    scenario: Scenario,
}

/// How often `run_while` asks, in air time: 1 ms.
const CADENCE: chappe_core::Duration = chappe_core::Duration::from_millis(1);

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    /// Puts `nodes` into `world`, node `i` at place `i`, and carries out what each asks for first.
    ///
    /// # Errors
    ///
    /// The world is made for another number of nodes, or a fault or a link's loss process makes no sense in it.
    pub fn new(world: World, nodes: Vec<Box<N>>, seed: Seed, recorder: R) -> Result<Self, Error> {
        world.check(nodes.len())?;
        let World {
            mut medium,
            mut clocks,
            link_losses,
            faults,
            frame_max,
        } = world;
        medium.set_run_seed(seed);
        let radio = medium.profile().dot15d4;
        if let Some(law) = radio.and_then(|radio| radio.synchronous)
            && law.clocks
            && clocks.is_empty()
        {
            clocks = Clock::crystals(seed, nodes.len(), law.crystal);
        }
        let forges = faults
            .iter()
            .any(|(_, fault)| matches!(fault, Fault::Forge { .. }));
        let is_dot15d4 = medium.profile().dot15d4.is_some();
        let scenario = Scenario::new(&mut medium, faults, seed)?;
        let link_losses = LinkLosses::new(&link_losses, seed)?;
        let mut simulator = Simulator {
            engine: Engine {
                now: AirTime::ZERO,
                queue: Queue::with_capacity(nodes.len() * 4 + scenario.len()),
                air: Air::new(medium, link_losses, frame_max, seed, recorder),
            },
            nodes: Nodes::new(nodes, &clocks, frame_max),
            scenario,
        };
        if forges {
            let forger = Forger::new(seed, is_dot15d4, frame_max);
            simulator.nodes.set_forger(forger);
        }
        for key in simulator.scenario.keys() {
            simulator.engine.queue.push(key);
        }
        for node in 0..simulator.nodes.all().len() {
            simulator
                .nodes
                .start(&mut simulator.engine, NodeId::of(node));
        }
        Ok(simulator)
    }

    /// Sets how to make a fresh node `i` when a fault restarts it. Without a reviver, restarts have no effect.
    pub fn set_reviver(&mut self, reviver: impl FnMut(usize) -> Box<N> + Send + 'static) {
        self.nodes.set_reviver(Box::new(reviver));
    }

    /// Restarts a crashed node now, as what `renew` makes of it: for a driver that keeps its nodes' parts itself.
    /// Returns false, and does nothing, if the node is not down. Panics if there is no such node.
    pub fn revive(&mut self, node: usize, renew: impl FnOnce(&mut Box<N>)) -> bool {
        let node = NodeId::of(node);
        self.nodes.revive(&mut self.engine, node, renew)
    }

    /// The present time on the air.
    pub fn now(&self) -> AirTime {
        self.engine.now
    }

    /// Node `i`. Panics if there is none, as indexing does.
    pub fn node(&self, i: usize) -> &N {
        &self.nodes.all()[i]
    }

    /// All nodes, in the order in which they were given.
    pub fn nodes(&self) -> impl Iterator<Item = &N> {
        self.nodes.all().iter().map(Box::as_ref)
    }

    /// The application's side of node `i`: calls `f` with the node and its present time, then serves the node
    /// as after any input. Panics if there is no such node.
    pub fn with_node<T>(&mut self, i: usize, f: impl FnOnce(&mut N, Instant) -> T) -> T {
        self.nodes.with(&mut self.engine, NodeId::of(i), f)
    }

    /// The counts since the start of the run.
    pub fn counters(&self) -> &Counters {
        &self.engine.air.ledger.counters
    }

    /// What became of all frames so far. They [balance](Accounts::balance) at any time, or a frame was booked wrongly.
    pub fn accounts(&self) -> Accounts {
        self.engine.air.accounts()
    }

    /// A number that stands for every frame start and every outcome so far. Equal for equal runs, on any machine.
    pub fn digest(&self) -> u64 {
        self.engine.air.ledger.digest.value()
    }

    /// The medium, with the interferers' links added.
    pub fn medium(&self) -> &Medium {
        self.engine.air.medium()
    }

    /// The clock of node `i`. Panics if there is no such node.
    pub fn clock(&self, i: usize) -> &Clock {
        self.nodes.clock(i)
    }

    /// When the clock of node `i` first showed `local` or more, through all changes of its drift so far: what a node noted
    /// by its own clock, by that of the run. Panics if there is no such node.
    pub fn air_time(&self, i: usize, local: Instant) -> AirTime {
        self.nodes.air_time(i, local)
    }

    /// The recorder, to take out what it holds.
    pub fn recorder_mut(&mut self) -> &mut R {
        &mut self.engine.air.ledger.recorder
    }

    /// Reads every node for the recorder, if it wants that now. `show` passes on each reading of one node. The run is not
    /// changed.
    pub fn read(&mut self, mut show: impl FnMut(&N, &mut Reader<'_, R>)) {
        let at = self.engine.now;
        let recorder = &mut self.engine.air.ledger.recorder;
        if !recorder.wants_readings(at) {
            return;
        }
        for (node, of) in self.nodes.all().iter().enumerate() {
            show(of, &mut Reader { at, node, recorder });
        }
    }

    /// Ends the run: the nodes, the recorder and the counters.
    pub fn into_parts(self) -> (Vec<Box<N>>, R, Counters) {
        let ledger = self.engine.air.ledger;
        (self.nodes.into_all(), ledger.recorder, ledger.counters)
    }

    /// Octets of memory: for each node (its radio and state in the simulator), for each directed link, and for each
    /// frame slot in use so far with its buffers.
    pub fn memory(&self) -> Memory {
        let (frames, slots) = self.engine.air.frames().octets();
        Memory {
            per_node: size_of::<Level>()
                + size_of::<Radio>()
                + size_of::<NodeState>()
                + size_of::<Box<N>>(),
            links: self.medium().octets(),
            frames,
            slots,
        }
    }

    /// Handles every event up to and including `at`, and moves the present there.
    pub fn run_until(&mut self, at: AirTime) {
        self.advance_to(at);
        self.book_duty();
    }

    /// The same, but the spans of [`NodeCounters`](crate::NodeCounters) stay as old as each radio's last change: to book them
    /// walks over all radios, which costs more than a millisecond of a large and quiet network.
    fn advance_to(&mut self, at: AirTime) {
        // No event sorts before this bound at its instant, so a cursor that stops at the bound has handled all of `at`.
        let after = AirTime(at.0.saturating_add(1));
        let limit = Key::new(after, Kind::FrameEnd, NodeId(0), 0);
        while self.engine.queue.top() < limit {
            if let Some(key) = self.engine.queue.pop() {
                self.engine.now = key.at();
                self.engine.air.ledger.counters.events += 1;
                self.handle(key, limit);
            }
        }
        self.engine.now = self.engine.now.max(at);
    }

    /// Books the time of all radios up to now, so that the spans of [`NodeCounters`](crate::NodeCounters) are up to date within
    /// [`Simulator::run_while`]. It walks over all radios.
    pub fn book_duty(&mut self) {
        self.engine.air.settle_duty(self.engine.now);
    }

    /// Runs until `limit` or until `keep_going` returns false. It is called before every millisecond of air time in
    /// which something happens. The three spans of [`NodeCounters`](crate::NodeCounters) are up to date when the run ends, not at
    /// these calls, unless [`Simulator::book_duty`] is called.
    pub fn run_while(&mut self, limit: AirTime, mut keep_going: impl FnMut(&mut Self) -> bool) {
        while self.now() < limit && keep_going(self) {
            // Silence is skipped: nothing can change in it.
            let next = self.engine.queue.top().at().max(self.now());
            self.advance_to((next + CADENCE).min(limit));
        }
        self.book_duty();
    }

    /// When the next event is due; [`AirTime::MAX`] if there is none. For a driver that keeps time with a clock.
    pub fn next_at(&self) -> AirTime {
        self.engine.queue.top().at()
    }

    fn handle(&mut self, key: Key, limit: Key) {
        let engine = &mut self.engine;
        match key.kind() {
            Kind::FrameEnd => self.frame_ends(key, limit),
            Kind::Head => self.nodes.head(engine, key),
            Kind::Timeout => self.nodes.timeout(engine, key),
            Kind::Transmission => self.nodes.transmission(engine, key),
            Kind::FrameStart => self.frame_starts(key, limit),
            Kind::Scenario => self.scenario.strike(engine, &mut self.nodes, key),
        }
    }

    fn frame_starts(&mut self, key: Key, limit: Key) {
        let (slot, engine) = (key.slot(), &mut self.engine);
        loop {
            // Read anew each time: a node that was notified may have set a deadline that comes before the next receiver.
            let bound = engine.queue.top().min(limit);
            // Only its own node switches or tunes a radio. One that is off or elsewhere and reports no carrier hears nothing
            // of other frames' beginnings, so its node acts on none of them.
            let far = engine.queue.top_but_starts();
            let event = engine
                .air
                .advance_starts((slot, key), [bound, far], &mut self.nodes);
            match event {
                CursorEvent::Carrier { at, node } => {
                    engine.now = at;
                    self.nodes.serve(engine, node);
                }
                CursorEvent::Locked { at, node, carrier } => {
                    self.nodes.await_head(engine, slot, node, at);
                    if carrier {
                        engine.now = at;
                        self.nodes.carrier_changed(engine, node);
                    }
                }
                CursorEvent::Pause(next) => return self.pause(next, limit),
                _ => return,
            }
        }
    }

    fn frame_ends(&mut self, key: Key, limit: Key) {
        let slot = key.slot();
        let frame = self.engine.air.frame(slot);
        let end = frame.end();
        // The transmitter's own end comes first: no signal has ended yet and the key is that of the end itself.
        if frame.ended == 0 && key.at() == end && frame.flying && !self.is_past_own_end(slot) {
            self.nodes.sent(&mut self.engine, slot, end);
        }
        let engine = &mut self.engine;
        loop {
            let bound = engine.queue.top().min(limit);
            let far = engine.queue.top_but_cursors();
            let event = engine
                .air
                .advance_ends((slot, key), [bound, far], &mut self.nodes);
            match event {
                CursorEvent::Carrier { at, node } => {
                    engine.now = at;
                    self.nodes.serve(engine, node);
                }
                CursorEvent::Ended { at, node } => {
                    engine.now = at;
                    self.nodes.serve(engine, node);
                    self.nodes.update_carrier(engine, node);
                }
                CursorEvent::Pause(next) => return self.pause(next, limit),
                _ => return engine.air.release_slot(slot),
            }
        }
    }

    /// Another event comes before a frame's next receiver. If that is only the end of this `run_until`, the same event
    /// goes on in the next one and counts there: the count must not depend on the steps of a run.
    fn pause(&mut self, next: Key, limit: Key) {
        let only_the_end = next >= limit && next < self.engine.queue.top();
        self.engine.air.ledger.counters.events -= u64::from(only_the_end);
        self.engine.queue.push_cursor(next);
    }

    /// Whether no node has the frame on the air any more: an interferer's frame, or one whose own end was handled.
    fn is_past_own_end(&self, slot: Slot) -> bool {
        let frame = self.engine.air.frame(slot);
        frame.foreign || !self.nodes.is_sending(frame.source, slot)
    }
}

/// The memory of a run, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// For each node, beside the node's own state.
    pub per_node: usize,
    /// The link tables of all channels.
    pub links: usize,
    /// The frame slots in use so far, with their buffers.
    pub frames: usize,
    /// The number of slots: the most frames that ever waited or flew at once.
    pub slots: usize,
}

#[cfg(test)]
mod tests;
