//! The nodes of a run: their requests carried out, their deadlines kept, their events delivered.

use chappe_core::{
    Burst, Dbm, Failure, Head, Instant, Mode, Ppm, RadioEvent, RadioNode, RadioRequest, Rate,
    Reception, TraceEvent, Transmit,
};

use crate::bit_errors::Heard;
use crate::engine::Engine;
use crate::event::{Key, Kind};
use crate::forger::Forger;
use crate::id::{NodeId, Slot};
use crate::listener::{Carrier, Ending, Listener, Wish};
use crate::part;
use crate::radio::flag::*;
use crate::{AirTime, Clock, Forgery, Loss, Power, Recorder, Switched};

/// A node that meets this many deadlines without time moving has broken its contract.
const STREAK_MAX: u32 = 100_000;
/// More octets than any frame has, and few enough to stand in a key beside the slot.
const HEAD_MAX: usize = 1 << 20;

/// All nodes, with what the simulator keeps for each beside its radio.
pub(crate) struct Nodes<N: ?Sized> {
    nodes: Vec<Box<N>>,
    states: Vec<NodeState>,
    /// Clocks that ran until their drift changed, with their nodes, in that order.
    past: Vec<(NodeId, Clock)>,
    reviver: Option<Reviver<N>>,
    /// What nodes write their frames to; swapped with a slot's buffer, never copied.
    scratch: Vec<u8>,
    /// Room for a frame with wrong bits.
    falsified: Vec<u8>,
    /// Only in runs with forged frames.
    forger: Option<Box<Forger>>,
    /// What a node asked for when it was notified, until it is served.
    asked: Option<RadioRequest>,
}

/// Makes a fresh node for a crashed one.
type Reviver<N> = Box<dyn FnMut(usize) -> Box<N> + Send>;

/// What the simulator keeps for a node beside its radio.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct NodeState {
    clock: Clock,
    /// When the node wants to be woken, in the time of the air.
    wake: AirTime,
    /// When the key that stands in the queue for it comes up. The deadline may have moved away since.
    queued: AirTime,
    /// Tells that key from older ones.
    generation: u32,
    /// The frame that waits for its start, when it starts, and a count that tells its key from older ones.
    waiting: Slot,
    waiting_at: AirTime,
    waiting_local: Instant,
    waiting_generation: u32,
    /// The frame on the air.
    flying: Slot,
    /// When the radio can begin the next one.
    ready: AirTime,
    /// Octets of each frame's head that the node asked to see early.
    peek: u32,
    /// How many frames it has begun to send: the number of the next.
    number: u64,
    /// Deadlines met at one instant: a node that never stops is a defect, not a run.
    streak: u32,
    streak_at: AirTime,
}

impl NodeState {
    fn new(clock: Clock) -> NodeState {
        NodeState {
            clock,
            wake: AirTime::MAX,
            queued: AirTime::MAX,
            generation: 0,
            waiting: Slot::NONE,
            waiting_at: AirTime::ZERO,
            waiting_local: Instant::ZERO,
            waiting_generation: 0,
            flying: Slot::NONE,
            ready: AirTime::ZERO,
            peek: 0,
            number: 0,
            streak: 0,
            streak_at: AirTime::ZERO,
        }
    }
}

impl<N: RadioNode + ?Sized> Nodes<N> {
    /// Nodes with their clocks; none means ideal ones. Frames have at most `frame_max` octets.
    pub(crate) fn new(nodes: Vec<Box<N>>, clocks: &[Clock], frame_max: usize) -> Nodes<N> {
        let clock = |node: usize| clocks.get(node).copied().unwrap_or_default();
        Nodes {
            states: (0..nodes.len())
                .map(|node| NodeState::new(clock(node)))
                .collect(),
            nodes,
            past: Vec::new(),
            reviver: None,
            scratch: vec![0; frame_max],
            falsified: Vec::new(),
            forger: None,
            asked: None,
        }
    }

    /// Frames are forged in this run.
    pub(crate) fn set_forger(&mut self, forger: Forger) {
        self.forger = Some(Box::new(forger));
    }

    /// A node gets the forged frame of fault `number`, if its radio listens and receives nothing.
    pub(crate) fn forge<R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        (number, forgery): (usize, Forgery),
    ) {
        let radio = engine.air.radio(node);
        let is_free = !radio.is(TRANSMITTING | ASLEEP | DOWN)
            && radio.lock.is_none()
            && !radio.is_deaf(engine.now);
        let Some(forger) = self.forger.as_mut().filter(|_| is_free) else {
            return;
        };
        let clock = self.states[node.index()].clock;
        let (psdu, mode) = forger.forge(number, forgery);
        let counters = &mut engine.air.ledger.counters;
        counters.calls += 1;
        counters.forged += 1;
        let airtime = mode.airtime(psdu.len() + check_octets(mode));
        let reception = Reception {
            psdu,
            started: clock.local(engine.now).saturating_before(airtime),
            mode,
            power: engine
                .air
                .medium()
                .powers_are_real()
                .then_some(engine.air.medium().profile().power),
        };
        let now = clock.local(engine.now);
        self.nodes[node.index()].handle_radio(now, RadioEvent::Received(reception));
        self.drain(engine, node);
    }

    pub(crate) fn all(&self) -> &[Box<N>] {
        &self.nodes
    }

    pub(crate) fn into_all(self) -> Vec<Box<N>> {
        self.nodes
    }

    pub(crate) fn clock(&self, node: usize) -> &Clock {
        &self.states[node].clock
    }

    /// The first moment at which the node's clock showed `local` or more, whenever its drift changed.
    pub(crate) fn air_time(&self, node: usize, local: Instant) -> AirTime {
        let past = self.past.iter().filter(|(of, _)| of.index() == node);
        let past = past.map(|(_, clock)| clock);
        let (present, before) = (self.clock(node), |clock: &&Clock| clock.first() < local);
        let mut clocks = past.chain([present]);
        let first = clocks.next().unwrap_or(present);
        clocks.take_while(before).last().unwrap_or(first).air(local)
    }

    /// Whether the frame in `slot` is the one that this node has on the air.
    pub(crate) fn is_sending(&self, node: NodeId, slot: Slot) -> bool {
        self.states[node.index()].flying == slot
    }

    pub(crate) fn set_reviver(&mut self, reviver: Reviver<N>) {
        self.reviver = Some(reviver);
    }

    /// The application's side of a node: calls `f` with it and its present time, then serves it as after any input.
    pub(crate) fn with<R: Recorder, T>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        f: impl FnOnce(&mut N, Instant) -> T,
    ) -> T {
        let now = self.local(engine, node);
        let result = f(&mut self.nodes[node.index()], now);
        if !engine.air.radio(node).is(DOWN) {
            self.start(engine, node);
        }
        result
    }

    /// Gives a node an early timeout, which changes nothing but lets layers inside the node look at each other, and
    /// serves it.
    pub(crate) fn start<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let now = self.local(engine, node);
        self.nodes[node.index()].handle_timeout(now);
        self.drain(engine, node);
    }

    /// Serves a node after an input: carries out its requests and takes down its next deadline.
    pub(crate) fn drain<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let index = node.index();
        let now = self.local(engine, node);
        while let Some(request) = self.nodes[index].poll_radio(now, &mut self.scratch) {
            self.carry_out(engine, node, request);
        }
        // A constant: without a recorder of nodes, not even the question costs anything.
        if R::NODES {
            while let Some(event) = self.nodes[index].poll_trace() {
                let recorder = &mut engine.air.ledger.recorder;
                recorder.traced(engine.now, index, event);
            }
        }
        self.schedule(engine, node);
    }

    /// Serves a node that a cursor told something and that did not settle.
    pub(crate) fn serve<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        match self.asked.take() {
            Some(request) => {
                self.carry_out(engine, node, request);
                self.drain(engine, node);
            }
            None => self.schedule(engine, node),
        }
    }

    #[inline]
    fn carry_out<R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        request: RadioRequest,
    ) {
        match request {
            RadioRequest::Transmit(transmit) => self.accept(engine, node, transmit),
            RadioRequest::Burst(burst) => self.accept_burst(engine, node, burst),
            RadioRequest::Cancel => self.cancel(engine, node),
            RadioRequest::Sense(on) => self.sense(engine, node, on),
            RadioRequest::Tune(channel) => {
                engine.air.tune(node, engine.now, channel.0);
                self.update_carrier_now(engine, node);
            }
            RadioRequest::Listen(on) => self.listen(engine, node, on),
            RadioRequest::Peek(octets) => self.peek(engine, node, octets),
            RadioRequest::Abort => {
                engine.air.give_up(node, engine.now, Loss::Aborted);
                self.update_carrier_now(engine, node);
            }
        }
    }

    /// Reads a node's deadline and sees to it that a key for it stands in the queue.
    fn schedule<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let state = &mut self.states[node.index()];
        state.wake = match self.nodes[node.index()].poll_timeout() {
            Some(wake) => state.clock.air(wake.at).max(engine.now),
            None => AirTime::MAX,
        };
        // Deadlines mostly move later, so the old key stays and finds that out when it comes up. Only a key that would
        // come up too late is replaced.
        if state.wake < state.queued {
            state.generation = state.generation.wrapping_add(1);
            state.queued = state.wake;
            let generation = u64::from(state.generation);
            let key = Key::new(state.wake, Kind::Timeout, node, generation);
            engine.queue.push(key);
        }
    }

    /// A key for a node's deadline came up.
    pub(crate) fn timeout<R: Recorder>(&mut self, engine: &mut Engine<R>, key: Key) {
        let node = key.node();
        let state = &mut self.states[node.index()];
        // The deadline has moved earlier since, and a newer key stood for it.
        if key.count() != u64::from(state.generation) {
            return;
        }
        state.queued = AirTime::MAX;
        // The deadline has moved later since: it gets its key only now.
        if state.wake > key.at() {
            return self.schedule(engine, node);
        }
        state.wake = AirTime::MAX;
        if state.streak_at != key.at() {
            (state.streak_at, state.streak) = (key.at(), 0);
        }
        state.streak += 1;
        let clock = state.clock;
        assert!(
            state.streak < STREAK_MAX,
            "node {} keeps a deadline at {}: its contract is broken",
            node.0,
            engine.now
        );
        let handle = &mut self.nodes[node.index()];
        // Asked before `handle_timeout`, which replaces the deadline and its reason.
        if R::NODES
            && let Some(wake) = handle.poll_timeout()
        {
            let recorder = &mut engine.air.ledger.recorder;
            recorder.woken(engine.now, node.index(), wake.why);
        }
        engine.air.ledger.counters.calls += 1;
        handle.handle_timeout(clock.local(engine.now));
        self.drain(engine, node);
    }

    /// Takes over a frame that the node wrote to the scratch buffer.
    fn accept<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, transmit: Transmit) {
        // The contract: one transmission can wait, and a second one replaces it.
        self.cancel(engine, node);
        let slot = engine.air.take_slot();
        let scale = scale(engine, transmit.power);
        let frame = engine.air.frame_mut(slot);
        // All buffers have the same length, so the node's next frame fits into the one that comes back.
        std::mem::swap(&mut frame.buffer, &mut self.scratch);
        frame.source = node;
        frame.len = transmit.len.min(frame.buffer.len());
        frame.octets = frame.len + check_octets(transmit.mode);
        if transmit.mode.aggregate {
            part::find(&frame.buffer[..frame.len], &mut frame.parts);
        }
        frame.airtime = transmit.mode.airtime(frame.octets);
        frame.mode = transmit.mode;
        frame.scale = scale;
        self.wait_for(engine, node, slot, transmit.at);
    }

    /// Takes over a burst of energy: a frame of no octets that no radio can receive.
    fn accept_burst<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, burst: Burst) {
        self.cancel(engine, node);
        let slot = engine.air.take_slot();
        let scale = scale(engine, burst.power);
        let frame = engine.air.frame_mut(slot);
        frame.source = node;
        (frame.len, frame.octets) = (0, 0);
        frame.airtime = burst.lasts;
        // Any mode: no radio decodes noise, and its airtime is given.
        frame.mode = Mode::long(Rate::Dsss1);
        (frame.noise, frame.scale) = (true, scale);
        self.wait_for(engine, node, slot, burst.at);
    }

    /// Starts what stands in `slot` at an instant of the node's clock.
    fn wait_for<R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        slot: Slot,
        start: Instant,
    ) {
        let state = &mut self.states[node.index()];
        // By the frame's number: replacing a waiting frame does not draw again.
        let jitter = engine.air.jitter(node, state.number);
        let at = state.clock.air(start).max(engine.now) + jitter;
        state.waiting = slot;
        state.waiting_at = at;
        state.waiting_local = start;
        state.waiting_generation = state.waiting_generation.wrapping_add(1);
        if at > engine.now {
            let count = u64::from(state.waiting_generation);
            engine
                .queue
                .push(Key::new(at, Kind::Transmission, node, count));
        } else if state.flying.is_none() && !self.defer(engine, node) {
            self.transmit(engine, node);
            self.update_carrier_now(engine, node);
        }
    }

    /// Puts a waiting frame off to the moment at which the radio can begin it. Returns false if that is now.
    fn defer<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) -> bool {
        let state = &mut self.states[node.index()];
        if state.ready <= engine.now {
            return false;
        }
        state.waiting_at = state.ready;
        let count = u64::from(state.waiting_generation);
        let key = Key::new(state.ready, Kind::Transmission, node, count);
        engine.queue.push(key);
        true
    }

    /// A waiting frame's start came up.
    pub(crate) fn transmission<R: Recorder>(&mut self, engine: &mut Engine<R>, key: Key) {
        let node = key.node();
        let state = &self.states[node.index()];
        let is_current =
            !state.waiting.is_none() && key.count() == u64::from(state.waiting_generation);
        // While the last frame is still on the air, this one waits for its end.
        if is_current && state.flying.is_none() && !self.defer(engine, node) {
            self.transmit(engine, node);
            self.update_carrier(engine, node);
        }
    }

    /// Puts the node's waiting frame on the air now.
    fn transmit<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let state = &mut self.states[node.index()];
        let slot = std::mem::replace(&mut state.waiting, Slot::NONE);
        state.flying = slot;
        let number = state.number;
        state.number += engine.air.frame(slot).numbers();
        let channel = engine.air.radio(node).channel;
        let frame = engine.air.frame_mut(slot);
        // Only now: until it starts, the frame may be replaced, which uses up no number, and the radio may be tuned.
        frame.number = number;
        frame.channel = channel;
        engine.launch(slot);
    }

    /// The transmitter's own end of a frame: the node is notified, and a frame whose time has come meanwhile follows.
    pub(crate) fn sent<R: Recorder>(&mut self, engine: &mut Engine<R>, slot: Slot, end: AirTime) {
        let Some(node) = engine.air.finish(slot, end) else {
            return;
        };
        let gap = engine.air.medium().profile().frame_gap;
        let state = &mut self.states[node.index()];
        (state.flying, state.ready) = (Slot::NONE, end + gap);
        // A node that turns carrier sensing on when it has sent must hear of the channel as it is now.
        engine.air.refresh_carrier(node, end);
        self.radio_event(engine, node, RadioEvent::Sent);
        self.drain(engine, node);
        let state = &self.states[node.index()];
        if !state.waiting.is_none()
            && state.waiting_at <= end
            && state.flying.is_none()
            && !self.defer(engine, node)
        {
            self.transmit(engine, node);
            self.schedule(engine, node);
        }
        self.update_carrier(engine, node);
    }

    fn cancel<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let waiting = &mut self.states[node.index()].waiting;
        let slot = std::mem::replace(waiting, Slot::NONE);
        if !slot.is_none() {
            engine.air.release_slot(slot);
        }
    }

    fn sense<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, on: bool) {
        let mut radio = engine.air.receiver(node);
        radio.set(SENSING, on);
        if on && !radio.is(ASLEEP) {
            self.report_carrier(engine, node);
        }
    }

    fn listen<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, on: bool) {
        let listens = !engine.air.radio(node).is(ASLEEP);
        if on == listens {
            return;
        }
        engine.air.switch(node, engine.now, ASLEEP, !on);
        let to = if on { Switched::On } else { Switched::Asleep };
        engine.air.ledger.report_switched(engine.now, node, to);
        if !on {
            engine.air.give_up(node, engine.now, Loss::Asleep);
            self.update_carrier_now(engine, node);
        } else if engine.air.radio(node).is(SENSING) {
            self.report_carrier(engine, node);
        }
    }

    /// The node asks to see the first `octets` of frames whose reception begins from now on.
    fn peek<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, octets: usize) {
        self.states[node.index()].peek = octets.min(HEAD_MAX) as u32;
        engine.air.receiver(node).peeks = octets > 0;
    }

    /// A radio whose node peeks locked on to a frame at `at`: the head has arrived some octets later.
    pub(crate) fn await_head<R: Recorder>(
        &self,
        engine: &mut Engine<R>,
        slot: Slot,
        node: NodeId,
        at: AirTime,
    ) {
        let frame = engine.air.frame(slot);
        let octets = (self.states[node.index()].peek as usize).min(frame.len);
        let arrived = at + frame.mode.airtime(octets);
        let key = Key::with_slot(arrived, Kind::Head, node, (octets as u64, slot));
        engine.queue.push(key);
    }

    /// The head of a frame has arrived, if the radio is still locked on to it.
    pub(crate) fn head<R: Recorder>(&mut self, engine: &mut Engine<R>, key: Key) {
        let (slot, node, octets) = (key.slot(), key.node(), key.above_slot() as usize);
        // The node may have turned it off since the frame began.
        if !engine.air.radio(node).peeks {
            return;
        }
        let Some(good) = engine.air.head(slot, node, octets, key.at()) else {
            return;
        };
        engine.air.ledger.counters.calls += 1;
        let clock = self.states[node.index()].clock;
        let frame = engine.air.frame(slot);
        let space = &mut self.falsified;
        let heard = Heard {
            falsified: good.falsified,
            lost: 0,
        };
        let psdu = engine.air.psdu_heard(slot, node, heard, space);
        let head = Head {
            octets: psdu.get(..octets).unwrap_or(psdu),
            len: frame.len,
            started: clock.local(good.started),
            mode: frame.mode,
        };
        let now = clock.local(engine.now);
        self.nodes[node.index()].handle_radio(now, RadioEvent::Head(head));
        self.drain(engine, node);
    }

    /// Tells a node its carrier, changed or not; the caller drains.
    fn report_carrier<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        let mut radio = engine.air.receiver(node);
        let (busy, since) = (radio.is(BUSY), radio.since);
        radio.set(REPORTED_BUSY, busy);
        let since = self.states[node.index()].clock.local(since);
        self.radio_event(engine, node, RadioEvent::Carrier { busy, since });
    }

    /// Tells a node a change of its carrier and serves it.
    pub(crate) fn carrier_changed<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        self.report_carrier(engine, node);
        self.drain(engine, node);
    }

    /// Brings a radio's carrier up to date and tells the node if it changed; the caller drains.
    fn update_carrier_now<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        if engine.refresh_carrier(node) {
            self.report_carrier(engine, node);
        }
    }

    /// The same, and serves the node.
    pub(crate) fn update_carrier<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        if engine.refresh_carrier(node) {
            self.carrier_changed(engine, node);
        }
    }

    fn radio_event<R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        event: RadioEvent<'_>,
    ) {
        engine.air.ledger.counters.calls += 1;
        let now = self.local(engine, node);
        self.nodes[node.index()].handle_radio(now, event);
    }

    #[inline]
    fn local<R: Recorder>(&self, engine: &Engine<R>, node: NodeId) -> Instant {
        self.states[node.index()].clock.local(engine.now)
    }

    /// The node's clock runs at another rate from now on: what stands in the queue for it is worked out again.
    pub(crate) fn drift<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId, drift: Ppm) {
        let state = &mut self.states[node.index()];
        self.past.push((node, state.clock));
        state.clock.set_drift(engine.now, drift);
        // As if no key stood there: those in the queue come up at times of the old rate.
        state.queued = AirTime::MAX;
        if !state.waiting.is_none() && state.flying.is_none() {
            let at = state.clock.air(state.waiting_local).max(engine.now);
            state.waiting_at = at;
            state.waiting_generation = state.waiting_generation.wrapping_add(1);
            let count = u64::from(state.waiting_generation);
            engine
                .queue
                .push(Key::new(at, Kind::Transmission, node, count));
        }
        if !engine.air.radio(node).is(DOWN) {
            self.schedule(engine, node);
        }
    }

    /// A node crashes: its radio stops and all that it asked for is forgotten.
    pub(crate) fn crash<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        if engine.air.radio(node).is(DOWN) {
            return;
        }
        engine.air.give_up(node, engine.now, Loss::Down);
        self.cancel(engine, node);
        let state = &mut self.states[node.index()];
        // Keys are never removed from the queue; another generation makes this one stale.
        state.generation = state.generation.wrapping_add(1);
        (state.wake, state.queued) = (AirTime::MAX, AirTime::MAX);
        state.peek = 0;
        let flying = std::mem::replace(&mut state.flying, Slot::NONE);
        if !flying.is_none() {
            // What is on the air ends as it was planned, since receivers have its times; but none of them may get the frame.
            engine.air.frame_mut(flying).truncated = true;
        }
        engine.air.crash(node, engine.now);
        let ledger = &mut engine.air.ledger;
        ledger.report_switched(engine.now, node, Switched::Down);
    }

    /// A crashed node starts again as a fresh one from the reviver, if there is one.
    pub(crate) fn restart<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        if !engine.air.radio(node).is(DOWN) {
            return;
        }
        if let Some(reviver) = &mut self.reviver {
            self.nodes[node.index()] = reviver(node.index());
            self.rise(engine, node);
        }
    }

    /// A crashed node starts again now, as what `renew` makes of it. False if it is not down.
    pub(crate) fn revive<R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        node: NodeId,
        renew: impl FnOnce(&mut Box<N>),
    ) -> bool {
        let is_down = engine.air.radio(node).is(DOWN);
        if is_down {
            renew(&mut self.nodes[node.index()]);
            self.rise(engine, node);
        }
        is_down
    }

    /// The radio of a restarted node listens on the profile's channel again.
    fn rise<R: Recorder>(&mut self, engine: &mut Engine<R>, node: NodeId) {
        engine.air.switch(node, engine.now, DOWN, false);
        let ledger = &mut engine.air.ledger;
        ledger.report_switched(engine.now, node, Switched::On);
        let channel = engine.air.medium().profile().channel.0;
        // A crash loses the tuning with all other state of the radio.
        engine.air.tune(node, engine.now, channel);
        self.update_carrier(engine, node);
        self.start(engine, node);
    }
}

impl<N: RadioNode + ?Sized> Listener for Nodes<N> {
    fn ended(&mut self, ending: Ending<'_>) {
        let index = ending.node.index();
        let clock = self.states[index].clock;
        let (now, started) = (clock.local(ending.at), clock.local(ending.started));
        let mode = ending.frame.mode;
        let Some(heard) = ending.heard else {
            let mode = Some(mode);
            let event = RadioEvent::Failed(Failure { started, mode });
            return self.nodes[index].handle_radio(now, event);
        };
        let space = &mut self.falsified;
        let reception = Reception {
            psdu: ending
                .bit_errors
                .apply(ending.frame, ending.node, heard, space),
            started,
            mode,
            power: ending.power.map(Power::to_dbm),
        };
        if let Some(forger) = &mut self.forger {
            forger.overhear(reception.psdu, reception.mode);
        }
        self.nodes[index].handle_radio(now, RadioEvent::Received(reception));
    }

    fn carrier(&mut self, carrier: Carrier) {
        let index = carrier.node.index();
        let clock = &self.states[index].clock;
        let event = RadioEvent::Carrier {
            busy: carrier.busy,
            since: clock.local(carrier.since),
        };
        let now = clock.local(carrier.at);
        self.nodes[index].handle_radio(now, event);
    }

    fn settle(&mut self, node: NodeId, at: AirTime) -> Wish {
        let (state, node) = (
            &mut self.states[node.index()],
            &mut self.nodes[node.index()],
        );
        let asked = node.poll_radio(state.clock.local(at), &mut self.scratch);
        if asked.is_some() {
            self.asked = asked;
            return Wish::Request;
        }
        let wake = match node.poll_timeout() {
            Some(wake) => state.clock.air(wake.at).max(at),
            None => AirTime::MAX,
        };
        if wake < state.queued {
            return Wish::Sooner;
        }
        state.wake = wake;
        Wish::Nothing
    }

    fn trace(&mut self, node: NodeId) -> Option<TraceEvent> {
        self.nodes[node.index()].poll_trace()
    }
}

/// Transmit power over the radio's usual one.
fn scale<R: Recorder>(engine: &Engine<R>, power: Option<Dbm>) -> f64 {
    let profile = engine.air.medium().profile();
    let power = power.map_or(profile.power.0, |Dbm(power)| power.min(profile.power_max.0));
    // Exactly 1, and not what the logarithm rounds to.
    if power == profile.power.0 {
        1.0
    } else {
        (Dbm(power) - profile.power).to_linear()
    }
}

/// Octets of the check sequence that the radio adds: 4 in 802.11, none around an A-MPDU, 2 in 802.15.4.
const fn check_octets(mode: Mode) -> usize {
    match mode.rate {
        // The subframes have room for theirs.
        _ if mode.aggregate => 0,
        Rate::Oqpsk250 => 2,
        _ => 4,
    }
}
