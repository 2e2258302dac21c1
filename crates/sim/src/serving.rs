//! What a node asks of the simulator: requests carried out, deadlines kept, carriers told.

use chappe_core::{Burst, Dbm, Instant, Mode, RadioEvent, RadioNode, RadioRequest, Rate, Transmit};

use crate::queue::{Key, Kind};
use crate::radio::{NONE, flag::*};
use crate::simulator::SLOT_BITS;
use crate::{AirTime, Clock, Loss, Recorder, Simulator};

/// What the simulator keeps for each node beside its radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desk {
    pub(crate) clock: Clock,
    /// The node's deadline in air time.
    pub(crate) wake: u64,
    /// When the key that stands in the queue for it comes up; the deadline may have moved away since.
    pub(crate) queued: u64,
    /// Tells that key from older ones.
    pub(crate) generation: u32,
    /// Slot of the frame that waits for its start, when it starts, and a count that tells its key from older ones.
    pub(crate) waiting: u32,
    pub(crate) waiting_at: u64,
    waiting_local: Instant,
    pub(crate) waiting_generation: u32,
    /// Slot of the frame on the air.
    pub(crate) flying: u32,
    /// Octets of each frame's front that the node wants to see early.
    pub(crate) peek: u32,
    /// Frames begun.
    pub(crate) number: u64,
    /// Deadlines met at one instant: a node that never stops is a defect, not a run.
    pub(crate) streak: u32,
    pub(crate) streak_at: u64,
}

impl Desk {
    pub(crate) fn new(clock: Clock) -> Desk {
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
            peek: 0,
            number: 0,
            streak: 0,
            streak_at: 0,
        }
    }
}

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    /// Serves a node after an input: carries out its requests and takes down its next deadline.
    pub(crate) fn drain(&mut self, node: u32) {
        let index = node as usize;
        let now = self.local(node);
        while let Some(request) = self.nodes[index].poll_radio(now, &mut self.scratch) {
            match request {
                RadioRequest::Transmit(transmit) => self.accept(node, transmit),
                RadioRequest::Burst(burst) => self.accept_burst(node, burst),
                RadioRequest::Cancel => self.cancel(node),
                RadioRequest::Sense(on) => self.sense(node, on),
                RadioRequest::Tune(channel) => {
                    self.air
                        .tune(&mut self.recorder, node, self.now.0, channel.0);
                    self.update_carrier_now(node);
                }
                RadioRequest::Listen(on) => self.listen(node, on),
                RadioRequest::Peek(octets) => self.peek(node, octets),
                RadioRequest::Abort => {
                    self.air
                        .give_up(&mut self.recorder, node, self.now.0, Loss::Aborted);
                    self.update_carrier_now(node);
                }
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
    pub(crate) fn schedule(&mut self, node: u32) {
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
        let scale = self.scale(transmit.power);
        let frame = self.air.frames.get_mut(slot);
        std::mem::swap(&mut frame.buffer, &mut self.scratch);
        frame.source = node;
        frame.len = transmit.len.min(frame.buffer.len());
        frame.octets = frame.len + check_octets(transmit.mode);
        frame.airtime = transmit.mode.airtime(frame.octets).nanos();
        frame.mode = transmit.mode;
        frame.scale = scale;
        self.wait_for(node, slot, transmit.at);
    }

    /// Takes over a burst of energy: a frame of no octets that nobody can receive.
    fn accept_burst(&mut self, node: u32, burst: Burst) {
        self.cancel(node);
        let slot = self.air.frames.take();
        let scale = self.scale(burst.power);
        let frame = self.air.frames.get_mut(slot);
        frame.source = node;
        (frame.len, frame.octets) = (0, 0);
        frame.airtime = burst.lasts.nanos();
        frame.mode = Mode::long(Rate::Dsss1);
        (frame.noise, frame.scale) = (true, scale);
        self.wait_for(node, slot, burst.at);
    }

    /// Transmit power over the radio's usual one.
    fn scale(&self, power: Option<Dbm>) -> f64 {
        let profile = self.air.medium.profile();
        let power = power.map_or(profile.power.0, |Dbm(power)| power.min(profile.power_max.0));
        if power == profile.power.0 {
            1.0
        } else {
            (Dbm(power) - profile.power).to_linear()
        }
    }

    /// Starts what stands in `slot` at an instant of the node's clock.
    fn wait_for(&mut self, node: u32, slot: u32, start: Instant) {
        let desk = &mut self.desks[node as usize];
        let together = self.air.together.as_ref();
        let jitter = together.map_or(0, |together| together.jitter(node, desk.number));
        let at = desk
            .clock
            .air(start)
            .0
            .max(self.now.0)
            .saturating_add(jitter);
        desk.waiting = slot;
        desk.waiting_at = at;
        desk.waiting_local = start;
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
    pub(crate) fn start(&mut self, node: u32) {
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
                .push_cursor(Key::new(at, Kind::FrameStart, frame.source, count));
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
        self.air.change_duty(node, self.now.0);
        let radio = &self.air.radios[node as usize];
        if !on {
            self.air
                .give_up(&mut self.recorder, node, self.now.0, Loss::Asleep);
            self.update_carrier_now(node);
        } else if radio.is(SENSING) {
            self.report_carrier(node);
        }
    }

    /// Tells a node its carrier whatever it was told last; the caller drains.
    pub(crate) fn report_carrier(&mut self, node: u32) {
        let radio = &mut self.air.radios[node as usize];
        let busy = radio.is(BUSY);
        radio.set(TOLD_BUSY, busy);
        let since = self.desks[node as usize].clock.local(AirTime(radio.since));
        self.radio_event(node, RadioEvent::Carrier { busy, since });
    }

    /// Tells a node a change of its carrier and serves it.
    pub(crate) fn tell_carrier(&mut self, node: u32) {
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

    pub(crate) fn radio_event(&mut self, node: u32, event: RadioEvent<'_>) {
        self.air.counters.calls += 1;
        let now = self.local(node);
        self.nodes[node as usize].handle_radio(now, event);
    }

    #[inline]
    pub(crate) fn local(&self, node: u32) -> Instant {
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

/// Octets of the check sequence that the radio adds: 4 in 802.11, 2 in 802.15.4.
pub(crate) const fn check_octets(mode: Mode) -> usize {
    match mode.rate {
        Rate::Oqpsk250 => 2,
        _ => 4,
    }
}
