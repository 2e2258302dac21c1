//! The physics of a run: frames that pass receivers, and what the receivers make of them.
//!
//! A frame is two cursors in the event queue. Each walks the frame's receivers in the order in which the signal
//! reaches them, the first one where it begins, the second where it ends, and goes on without touching the queue
//! while no other event comes earlier. It stops when a node must be told something.
//!
//! [`reception`](crate::reception) decides what a beginning, an overlap and an end mean for a receiver, and
//! [`heads`](crate::heads) what one that looks at a frame early sees; this file moves the cursors and starts frames.

use chappe_core::{Purpose, Seed, Stream};

use crate::digest::Digest;
use crate::duty::Duty;
use crate::frame::{Bits, EVERY_CHANNEL, Frame, Frames};
use crate::link_loss::{Fate, LinkLosses};
use crate::medium::{Arrival, Departure};
use crate::queue::Key;
use crate::radio::{NONE, Radio, flag::*};
use crate::rules::{Rules, rejection};
use crate::together::Together;
use crate::{AirTime, Counters, Heard, Loss, Medium, NodeCounters, Recorder, Sent};

/// The air with all radios in it.
#[derive(Debug)]
pub(crate) struct Air {
    pub(crate) medium: Medium,
    pub(crate) rules: Rules,
    /// How much of a signal is left one, two... channels away.
    pub(crate) rejection: Vec<f64>,
    pub(crate) frames: Frames,
    pub(crate) radios: Vec<Radio>,
    pub(crate) counters: Counters,
    pub(crate) digest: Digest,
    pub(crate) reception: Stream,
    pub(crate) faults: Stream,
    /// Pairs between which nothing passes, both directions, sorted.
    pub(crate) cuts: Vec<(u32, u32)>,
    /// Bit error rate at each receiver and whether it is detected; empty until a fault asks for it.
    pub(crate) corruption: Vec<(f64, bool)>,
    /// Identical frames at each receiver; only where the profile lets them add up.
    pub(crate) together: Option<Box<Together>>,
    /// What single links lose by themselves; nothing in most runs.
    pub(crate) link_losses: Option<LinkLosses>,
    /// What each radio has been doing, and since when.
    pub(crate) duty: Duty,
}

/// Why a cursor stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Walk {
    /// The receiver must be told its carrier.
    Carrier { at: u64, node: u32 },
    /// The receiver began to receive the frame and wants to see its front early; `carrier` as above.
    Locked { at: u64, node: u32, carrier: bool },
    /// The receiver has the frame whole. `falsified` is a position in the stream of faults if bits must be flipped.
    Received {
        at: u64,
        node: u32,
        started: u64,
        power: u64,
        falsified: Option<u64>,
    },
    /// The receiver began to receive the frame and lost it.
    Failed { at: u64, node: u32, started: u64 },
    /// Another event comes first: go on at this key.
    Pause(Key),
    /// The frame is past everybody.
    Done,
}

/// Why a tight loop over receivers stopped.
enum Glide {
    /// Past the last receiver.
    End,
    /// The next one is later than allowed: at this moment.
    Late(u64),
    /// This one needs a closer look; the cursor has passed it.
    Look {
        at: u64,
        arrival: Arrival,
        place: u32,
    },
    /// This one's carrier changed and its node wants to know.
    Carrier { at: u64, node: u32 },
}

impl Air {
    pub(crate) fn new(medium: Medium, frame_max: usize, seed: Seed) -> Air {
        let profile = medium.profile();
        let (rules, nodes) = (Rules::new(profile), medium.nodes());
        let together = Together::new(&medium, seed);
        Air {
            rejection: rejection(profile),
            radios: vec![Radio::new(profile.channel.0); nodes],
            medium,
            rules,
            frames: Frames::new(frame_max),
            counters: Counters {
                nodes: vec![NodeCounters::default(); nodes],
                ..Counters::default()
            },
            digest: Digest::default(),
            reception: seed.stream(Purpose::Reception),
            faults: seed.stream(Purpose::Fault),
            cuts: Vec::new(),
            corruption: Vec::new(),
            together,
            link_losses: None,
            duty: Duty::new(nodes),
        }
    }

    /// Puts the frame in `slot` on the air: it leaves the antenna at `at`. A reception in progress is lost.
    pub(crate) fn transmit<R: Recorder>(&mut self, recorder: &mut R, slot: u32, at: u64) {
        let frame = self.frames.get_mut(slot);
        frame.begin = at;
        frame.flying = true;
        frame.bits = Bits::new(frame.mode, frame.octets, self.rules.curves);
        if self.together.is_some() {
            let mut content = Digest::default();
            content.bytes(frame.psdu());
            content.mix(
                (frame.len as u64) << 16 ^ (frame.mode.rate as u64) << 8 ^ u64::from(frame.channel),
            );
            if frame.foreign {
                content.mix(u64::from(frame.source) << 32 ^ frame.number);
            }
            frame.content = content.value();
        }
        let departure = Departure {
            source: frame.source,
            channel: frame.channel,
            begin: at,
            scale: frame.scale,
            number: frame.number,
            octets: frame.octets,
        };
        let (arrivals, ratios) = (&mut frame.arrivals, &mut frame.ratios);
        let vanished = self
            .medium
            .spread(departure, self.rules.vanish, arrivals, ratios);
        let (source, foreign, octets, airtime) =
            (frame.source, frame.foreign, frame.octets, frame.airtime);
        let counts = frame.counts();
        self.digest.mix(at);
        self.digest
            .mix(u64::from(source) << 40 ^ frame.number << 16 ^ octets as u64);
        if !self.cuts.is_empty() {
            self.cut(slot);
        }
        if foreign {
            return;
        }
        self.digest.bytes(self.frames.get(slot).psdu());
        let own = &mut self.counters.nodes[source as usize];
        if counts {
            self.counters.lost.add(Loss::TooWeak, vanished);
            self.counters.frames += 1;
            own.frames += 1;
        }
        own.octets += octets as u64;
        own.airtime += chappe_core::Duration::from_nanos(airtime);
        self.give_up(recorder, source, at, Loss::Transmitting);
        self.radios[source as usize].set(TRANSMITTING, true);
        self.change_duty(source, at);
        if R::FRAMES && counts {
            let frame = self.frames.get(slot);
            recorder.sent(&Sent {
                at: AirTime(at),
                node: source as usize,
                number: frame.number,
                psdu: frame.psdu(),
                mode: frame.mode,
                channel: frame.channel,
            });
        }
    }

    /// What a link's own loss process makes of a frame.
    #[inline]
    pub(crate) fn fate(&mut self, slot: u32, node: u32) -> Fate {
        let Some(losses) = &mut self.link_losses else {
            return Fate::Through;
        };
        let frame = self.frames.get(slot);
        losses.fate(frame.source, node, frame.begin, frame.number)
    }

    /// Takes the receivers behind cut links out of a frame.
    fn cut(&mut self, slot: u32) {
        let (frame, cuts) = (self.frames.get_mut(slot), &self.cuts);
        let source = frame.source;
        let open = |receiver: u32| {
            let pair = (source.min(receiver), source.max(receiver));
            cuts.binary_search(&pair).is_err()
        };
        let before = frame.arrivals.len();
        if !frame.ratios.is_empty() {
            let mut receivers = frame.arrivals.iter();
            frame.ratios.retain(|_| {
                receivers
                    .next()
                    .is_some_and(|arrival| open(arrival.receiver))
            });
        }
        frame.arrivals.retain(|arrival| open(arrival.receiver));
        let cut = before - frame.arrivals.len();
        self.counters.lost.add(Loss::LinkCut, cut as u64);
    }

    /// Moves a frame's first cursor from `key` on; `bound` is the next other event.
    pub(crate) fn walk_starts<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        key: Key,
        bounds: [Key; 2],
    ) -> Walk {
        let [last, far] = bounds.map(|bound| key.last_before(bound));
        let (Some(last), Some(far)) = (last, far) else {
            return Walk::Pause(key);
        };
        loop {
            match self.glide_starts(recorder, slot, [last, far]) {
                Glide::End => {
                    self.counters.arrivals += self.frames.get(slot).arrivals.len() as u64;
                    return Walk::Done;
                }
                Glide::Late(at) => return Walk::Pause(key.at_time(at)),
                Glide::Look { at, arrival, place } => {
                    let node = arrival.receiver;
                    self.arrive(recorder, slot, place, arrival.power, node, at);
                    let radio = &mut self.radios[node as usize];
                    let carrier = radio.refresh(at, self.rules.carrier_sense);
                    if radio.peeks && radio.lock == slot {
                        return Walk::Locked { at, node, carrier };
                    }
                    if carrier {
                        return Walk::Carrier { at, node };
                    }
                }
                Glide::Carrier { at, node } => return Walk::Carrier { at, node },
            }
        }
    }

    /// The common case of a first cursor in a tight loop: signals that are too weak for idle radios only add
    /// to their energy.
    ///
    /// What passes a radio that is off or on another channel changes nothing but counts, so a frame does not stop
    /// there for the other frames that begin at the same time: such radios are passed up to the second of the
    /// moments, before which nothing can switch or tune them.
    fn glide_starts<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        [last, far]: [u64; 2],
    ) -> Glide {
        let Air {
            frames,
            radios,
            rules,
            counters,
            rejection,
            ..
        } = self;
        let frame = frames.get_mut(slot);
        let (begin, reach) = (frame.begin, rejection.len() as u8);
        let heard = if R::FRAMES || frame.noise {
            0
        } else {
            rules.glides
        };
        let first = frame.started as usize;
        let (mut place, mut away) = (first, 0);
        let mut stop = Glide::End;
        for arrival in &frame.arrivals[first..] {
            let at = begin + u64::from(arrival.delay);
            let radio = &mut radios[arrival.receiver as usize];
            let is_away = radio.is_away(frame.channel, reach);
            if at > last && !(is_away && at <= far && !radio.is_told()) {
                stop = Glide::Late(at);
                break;
            }
            place += 1;
            if is_away {
                away += 1;
                if radio.is(ASLEEP | DOWN) {
                    let power = across(rejection, arrival.power, frame.channel, radio.channel);
                    radio.energy = radio.energy.wrapping_add(power);
                    radio.refresh(at, rules.carrier_sense);
                }
                if frame.counts() {
                    let why = radio.away_why();
                    counters.lost.count(why);
                    if R::FRAMES {
                        let (node, power) = (arrival.receiver, arrival.power);
                        recorder.heard(&report(frame, node, at, at, power, Err(why)));
                    }
                }
                continue;
            }
            if arrival.power >= heard || !radio.is_idle(frame.channel, at) {
                let arrival = *arrival;
                if frame.counts() {
                    let weak = place - 1 - first - away;
                    counters.lost.add(Loss::TooWeak, weak as u64);
                }
                frame.started = place as u32;
                return Glide::Look {
                    at,
                    arrival,
                    place: place as u32 - 1,
                };
            }
            radio.energy = radio.energy.wrapping_add(arrival.power);
            if radio.refresh_free(at, rules.carrier_sense) {
                stop = Glide::Carrier {
                    at,
                    node: arrival.receiver,
                };
                break;
            }
        }
        if frame.counts() {
            let weak = place - first - away;
            counters.lost.add(Loss::TooWeak, weak as u64);
        }
        frame.started = place as u32;
        stop
    }

    /// Moves a frame's second cursor, after the transmitter's own end.
    pub(crate) fn walk_ends<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        key: Key,
        bounds: [Key; 2],
    ) -> Walk {
        let [last, far] = bounds.map(|bound| key.last_before(bound));
        let (Some(last), Some(far)) = (last, far) else {
            return Walk::Pause(key);
        };
        loop {
            match self.glide_ends(slot, [last, far]) {
                Glide::End => return Walk::Done,
                Glide::Late(at) => return Walk::Pause(key.at_time(at)),
                Glide::Look { at, arrival, place } => {
                    let node = arrival.receiver;
                    let told = self.leave(recorder, slot, place, arrival.power, node, at);
                    let carrier = self.radios[node as usize].refresh(at, self.rules.carrier_sense);
                    if told != Walk::Done {
                        return told;
                    }
                    if carrier {
                        return Walk::Carrier { at, node };
                    }
                }
                Glide::Carrier { at, node } => return Walk::Carrier { at, node },
            }
        }
    }

    /// The common case of a second cursor: signals leave radios that receive nothing. Radios that are away and receive
    /// nothing are passed up to the second of the moments, as above.
    fn glide_ends(&mut self, slot: u32, [last, far]: [u64; 2]) -> Glide {
        let Air {
            frames,
            radios,
            rules,
            rejection,
            ..
        } = self;
        let frame = frames.get_mut(slot);
        let (end, reach) = (frame.begin + frame.airtime, rejection.len() as u8);
        let first = frame.ended as usize;
        let mut place = first;
        let mut stop = Glide::End;
        for arrival in &frame.arrivals[first..] {
            let at = end + u64::from(arrival.delay);
            let radio = &mut radios[arrival.receiver as usize];
            let is_away = radio.is_away(frame.channel, reach);
            let calm = is_away && radio.lock == NONE && !radio.is_told();
            if at > last && !(calm && at <= far) {
                stop = Glide::Late(at);
                break;
            }
            place += 1;
            if is_away {
                if radio.is(ASLEEP | DOWN) {
                    let power = across(rejection, arrival.power, frame.channel, radio.channel);
                    radio.energy = radio.energy.wrapping_sub(power);
                    radio.refresh(at, rules.carrier_sense);
                }
                continue;
            }
            if !radio.is_free(frame.channel) {
                stop = Glide::Look {
                    at,
                    arrival: *arrival,
                    place: place as u32 - 1,
                };
                break;
            }
            radio.energy = radio.energy.wrapping_sub(arrival.power);
            if radio.refresh_free(at, rules.carrier_sense) {
                stop = Glide::Carrier {
                    at,
                    node: arrival.receiver,
                };
                break;
            }
        }
        frame.ended = place as u32;
        stop
    }

    /// The transmitter's own end of a frame: it may listen again after its turnaround.
    pub(crate) fn finish(&mut self, slot: u32, at: u64) -> Option<u32> {
        let frame = self.frames.get(slot);
        if frame.foreign || frame.truncated {
            return None;
        }
        let node = frame.source;
        let radio = &mut self.radios[node as usize];
        radio.set(TRANSMITTING, false);
        radio.deaf_until = at.saturating_add(self.rules.turnaround);
        self.change_duty(node, at);
        Some(node)
    }

    /// Ends a reception in progress, if there is one, for a reason of the node's own.
    pub(crate) fn give_up<R: Recorder>(&mut self, recorder: &mut R, node: u32, at: u64, why: Loss) {
        let radio = &mut self.radios[node as usize];
        let (slot, started, power) = (radio.lock, radio.lock_started, radio.lock_power);
        if slot != NONE {
            radio.lock = NONE;
            self.counters.nodes[node as usize].failures += 1;
            self.lose(recorder, slot, node, at, started, power, why);
        }
    }

    /// Counts and tells a loss.
    #[inline]
    #[allow(clippy::too_many_arguments)] // The facts of a loss; a struct would be built for nothing when off.
    pub(crate) fn lose<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        node: u32,
        at: u64,
        started: u64,
        power: u64,
        why: Loss,
    ) {
        let counts = self.frames.get(slot).counts();
        if counts {
            self.counters.lost.count(why);
        }
        // Most signals are too weak and say nothing that the survivors do not.
        if why != Loss::TooWeak {
            let source = self.frames.get(slot).source;
            self.digest
                .mix(at ^ u64::from(source) << 40 ^ u64::from(node) << 24 ^ (why as u64 + 2) << 58);
        }
        if R::FRAMES && counts {
            recorder.heard(&report(
                self.frames.get(slot),
                node,
                at,
                started,
                power,
                Err(why),
            ));
        }
    }

    /// Counts and tells a reception.
    pub(crate) fn keep<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        node: u32,
        at: u64,
        started: u64,
        power: u64,
    ) {
        self.counters.receptions += 1;
        self.counters.nodes[node as usize].receptions += 1;
        let source = self.frames.get(slot).source;
        self.digest
            .mix(at ^ u64::from(source) << 40 ^ u64::from(node) << 24 ^ 1 << 58);
        if R::FRAMES {
            recorder.heard(&report(
                self.frames.get(slot),
                node,
                at,
                started,
                power,
                Ok(()),
            ));
        }
    }

    /// What a signal on one channel is worth to a radio on another.
    pub(crate) fn across(&self, power: u64, from: u8, to: u8) -> u64 {
        across(&self.rejection, power, from, to)
    }

    /// Moves a radio to another channel: its reception is lost, and it hears what is on the air there.
    pub(crate) fn tune<R: Recorder>(&mut self, recorder: &mut R, node: u32, at: u64, channel: u8) {
        if self.radios[node as usize].channel == channel {
            return;
        }
        self.give_up(recorder, node, at, Loss::OtherChannel);
        self.medium.open(channel);
        let present = |frame: &Frame| -> u64 {
            let passing = frame.ended as usize..frame.started as usize;
            let here = frame.arrivals[passing]
                .iter()
                .filter(|arrival| arrival.receiver == node);
            here.map(|arrival| self.across(arrival.power, frame.channel, channel))
                .sum()
        };
        let energy = self.frames.flying().map(present).sum();
        let radio = &mut self.radios[node as usize];
        radio.channel = channel;
        radio.energy = energy;
    }
}

/// What a signal on one channel is worth to a radio on another.
fn across(rejection: &[f64], power: u64, from: u8, to: u8) -> u64 {
    if from == to || from == EVERY_CHANNEL {
        return power;
    }
    match rejection.get(usize::from(from.abs_diff(to)) - 1) {
        Some(factor) => crate::power::whole(power as f64 * factor),
        None => 0,
    }
}

fn report(
    frame: &Frame,
    node: u32,
    at: u64,
    started: u64,
    power: u64,
    outcome: Result<(), Loss>,
) -> Heard<'_> {
    Heard {
        at: AirTime(at),
        node: node as usize,
        from: frame.source as usize,
        number: frame.number,
        psdu: frame.psdu(),
        mode: frame.mode,
        channel: frame.channel,
        started: AirTime(started),
        power: crate::Power(power),
        outcome,
    }
}
