//! What a signal's beginning, overlap and end mean for a receiver, under each of the survival rules.

use chappe_core::Purpose;

use crate::air::{Air, Walk};
use crate::frame::Frame;
use crate::link_loss::Fate;
use crate::medium::NEVER;
use crate::radio::{NONE, Radio, flag::*};
use crate::rules::{Judge, Rules};
use crate::{Loss, Recorder, Window};

/// Below this logarithm a frame is lost without a draw: the chance is less than one in 10^17.
const HOPELESS: f64 = -40.0;

impl Air {
    /// A frame's first bit reaches a receiver.
    #[inline]
    pub(crate) fn arrive<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        place: u32,
        mut power: u64,
        node: u32,
        at: u64,
    ) {
        let radio = &self.radios[node as usize];
        let frame = self.frames.get(slot);
        if radio.channel != frame.channel
            || frame.noise
            || radio.is(TRANSMITTING | ASLEEP | DOWN)
            || at < radio.deaf_until
        {
            let why = match radio.channel != frame.channel {
                true => Loss::OtherChannel,
                false => Loss::Transmitting,
            };
            power = self.across(power, frame.channel, radio.channel);
            return self.arrive_unheard(recorder, slot, power, node, at, why);
        }
        if self.fate(slot, node) == Fate::Unheard {
            return self.arrive_unheard(recorder, slot, power, node, at, Loss::Link);
        }
        if self.together.is_some() {
            return self.arrive_together(recorder, slot, place, power, node, at);
        }
        let (frame, radio) = (self.frames.get(slot), &mut self.radios[node as usize]);
        if radio.lock != NONE {
            return self.arrive_locked(recorder, slot, place, power, 0, node, at);
        }
        let before = radio.energy;
        radio.energy = before.wrapping_add(power);
        if power < self.rules.heard {
            return self.lose(recorder, slot, node, at, at, power, Loss::TooWeak);
        }
        let measured = self.rules.judge == Judge::Overlap;
        if measured
            && frame
                .ratios
                .get(place as usize)
                .is_none_or(|&ratio| ratio == NEVER)
        {
            return self.lose(recorder, slot, node, at, at, power, Loss::TooWeak);
        }
        if !self.rules.locks(power, before) || measured && before != 0 {
            return self.lose(recorder, slot, node, at, at, power, Loss::Collision);
        }
        if let Some(why) = self.header_lost(slot, node, power, before) {
            return self.lose(recorder, slot, node, at, at, power, why);
        }
        self.radios[node as usize].lock(slot, power, at, before != 0);
    }

    /// Whether a frame's PHY header will be lost in the noise and interference that are there when it begins: the
    /// radio then does not stay with the frame. The draw is the one that decides over the whole frame, which needs
    /// its header, so no probability changes; only a header whose interference ends within it is judged a
    /// little too hard.
    pub(crate) fn header_lost(
        &self,
        slot: u32,
        node: u32,
        power: u64,
        before: u64,
    ) -> Option<Loss> {
        if self.rules.judge != Judge::Curves {
            return None;
        }
        let frame = self.frames.get(slot);
        let others = self.rules.noise.wrapping_add(before) as f64;
        if power as f64 >= frame.bits.perfect_header * others {
            return None;
        }
        let draw = self.reception.fraction_at(draw_position(frame, node));
        let lost = |others: f64| {
            !survives(
                draw,
                self.rules.ln_header(power as f64 / others, frame.mode),
            )
        };
        match (lost(others), lost(self.rules.noise as f64)) {
            (true, true) => Some(Loss::Noise),
            (true, false) => Some(Loss::Collision),
            (false, _) => None,
        }
    }

    /// A signal reaches a radio that cannot lock on to it: it counts as energy, and disturbs.
    #[cold]
    #[allow(clippy::too_many_arguments)] // The facts of an arrival; a struct would be built for nothing.
    fn arrive_unheard<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        power: u64,
        node: u32,
        at: u64,
        why: Loss,
    ) {
        let noise = self.frames.get(slot).noise;
        let radio = &mut self.radios[node as usize];
        if radio.lock != NONE && power != 0 {
            self.disturb(node, power, at);
        } else {
            radio.energy = radio.energy.wrapping_add(power);
        }
        if !noise {
            self.lose(recorder, slot, node, at, at, power, why);
        }
    }

    /// Adds interference to a reception in progress.
    fn disturb(&mut self, node: u32, power: u64, at: u64) {
        if self.rules.judge == Judge::Curves {
            self.close_node(node, at);
        }
        let radio = &mut self.radios[node as usize];
        radio.energy = radio.energy.wrapping_add(power);
        radio.flags |= INTERFERED;
        let doomed = match self.rules.judge {
            Judge::Curves => false,
            Judge::Threshold(ratio) => {
                let others = self.rules.noise.wrapping_add(radio.interference());
                (radio.lock_power as f64) < ratio * others as f64
            }
            Judge::Pairwise(ratio) => (radio.lock_power as f64) < ratio * power as f64,
            Judge::Overlap => true,
        };
        if doomed {
            radio.flags |= DOOMED;
        }
    }

    /// Closes a stretch of constant interference at a radio that receives.
    #[inline]
    pub(crate) fn close_node(&mut self, node: u32, at: u64) {
        let radio = &mut self.radios[node as usize];
        if radio.grouped {
            return self.close_group(node, at);
        }
        close(&self.rules, radio, self.frames.get(radio.lock), at);
    }

    /// A frame reaches a radio that is receiving another one: it disturbs, and may take the receiver over. `allies` is
    /// the power of identical frames that are there already.
    #[allow(clippy::too_many_arguments)] // The facts of an arrival; a struct would be built on the hot path.
    pub(crate) fn arrive_locked<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        place: u32,
        power: u64,
        allies: u64,
        node: u32,
        at: u64,
    ) {
        let radio = self.radios[node as usize];
        let (before, old) = (radio.energy, self.frames.get(radio.lock));
        let (old_end, old_payload) = (
            radio.lock_started.saturating_add(old.airtime),
            old.bits.payload,
        );
        self.disturb(node, power, at);
        let (sum, others) = (power.wrapping_add(allies), before.wrapping_sub(allies));
        let strong = sum >= self.rules.heard
            && self
                .frames
                .get(slot)
                .ratios
                .get(place as usize)
                .is_none_or(|&ratio| ratio != NEVER);
        if !strong {
            return self.lose(recorder, slot, node, at, at, power, Loss::TooWeak);
        }
        match self.rules.judge {
            Judge::Curves | Judge::Threshold(_) => {
                if self.captures(
                    sum,
                    others,
                    at.saturating_sub(radio.lock_started),
                    old_payload,
                ) {
                    self.give_up(recorder, node, at, Loss::Captured);
                    self.radios[node as usize].lock(slot, sum, at, before != 0);
                } else {
                    self.lose(recorder, slot, node, at, at, power, Loss::PreambleMissed);
                }
            }
            Judge::Pairwise(ratio) if radio.lock_power as f64 >= ratio * power as f64 => {
                self.lose(recorder, slot, node, at, at, power, Loss::PreambleMissed);
            }
            // Both die, and the receiver stays busy until the later of them ends.
            Judge::Pairwise(_) => {
                if at.saturating_add(self.frames.get(slot).airtime) > old_end {
                    self.give_up(recorder, node, at, Loss::Collision);
                    let radio = &mut self.radios[node as usize];
                    radio.lock(slot, power, at, true);
                    radio.flags |= DOOMED;
                } else {
                    self.lose(recorder, slot, node, at, at, power, Loss::Collision);
                }
            }
            Judge::Overlap => self.lose(recorder, slot, node, at, at, power, Loss::Collision),
        }
    }

    /// Whether a newcomer takes the receiver from a frame of which `age` has been heard.
    fn captures(&self, power: u64, others: u64, age: u64, payload: u64) -> bool {
        let open = match self.rules.window {
            Window::Preamble => age < payload,
            Window::First(span) => age <= span.nanos(),
            Window::Frame => true,
        };
        let margin = self.rules.capture_ratio * self.rules.noise.wrapping_add(others) as f64;
        open && power as f64 >= margin && self.rules.locks(power, others)
    }

    /// A frame's last bit passes a receiver. Returns what to tell the node, [`Walk::Done`] if nothing.
    #[inline]
    pub(crate) fn leave<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        place: u32,
        mut power: u64,
        node: u32,
        at: u64,
    ) -> Walk {
        let radio = &mut self.radios[node as usize];
        let frame = self.frames.get(slot);
        if radio.lock == slot {
            return self.complete(recorder, slot, place, node, at);
        }
        if radio.channel != frame.channel {
            power = self.across(power, frame.channel, self.radios[node as usize].channel);
        }
        let radio = &self.radios[node as usize];
        let locked = radio.lock != NONE;
        let share = match &self.together {
            Some(together) if locked && radio.grouped => together.share(node, radio, slot),
            _ => None,
        };
        // One of the set being received that ends before the one that stands for it changes nothing until that end.
        if locked && share.is_none() && self.rules.judge == Judge::Curves {
            self.close_node(node, at);
        }
        let radio = &mut self.radios[node as usize];
        radio.energy = radio.energy.wrapping_sub(power);
        radio.lock_power = radio.lock_power.wrapping_sub(share.unwrap_or(0));
        Walk::Done
    }

    /// The end of a reception.
    fn complete<R: Recorder>(
        &mut self,
        recorder: &mut R,
        slot: u32,
        place: u32,
        node: u32,
        at: u64,
    ) -> Walk {
        if self.rules.judge == Judge::Curves {
            self.close_node(node, at);
        }
        let radio = &mut self.radios[node as usize];
        let mut own = radio.lock_power;
        if radio.grouped
            && let Some(together) = &self.together
        {
            // The others of the set take their power away themselves when they end.
            own = together.share(node, radio, slot).unwrap_or(own);
            radio.lock_power = together.whole(node, radio).unwrap_or(own);
        }
        radio.energy = radio.energy.wrapping_sub(own);
        radio.lock = NONE;
        radio.grouped = false;
        let (radio, started) = (*radio, radio.lock_started);
        let mut outcome = self.judge(slot, place, node, &radio);
        let mut falsified = None;
        if outcome.is_ok() && matches!(self.fate(slot, node), Fate::Broken(_)) {
            outcome = Err(Loss::Link);
        }
        if outcome.is_ok() && !self.corruption.is_empty() {
            (outcome, falsified) = self.corrupt(slot, node, self.frames.get(slot).octets);
        }
        match outcome {
            Ok(()) if self.frames.get(slot).foreign => {
                self.counters.nodes[node as usize].foreign += 1;
                Walk::Done
            }
            Ok(()) => {
                self.keep(recorder, slot, node, at, started, radio.lock_power);
                let power = radio.lock_power;
                Walk::Received {
                    at,
                    node,
                    started,
                    power,
                    falsified,
                }
            }
            Err(why) => {
                self.counters.nodes[node as usize].failures += 1;
                self.lose(recorder, slot, node, at, started, radio.lock_power, why);
                Walk::Failed { at, node, started }
            }
        }
    }

    /// Whether a frame that was received to its end survived.
    fn judge(&self, slot: u32, place: u32, node: u32, radio: &Radio) -> Result<(), Loss> {
        let frame = self.frames.get(slot);
        if frame.truncated {
            return Err(Loss::Truncated);
        }
        if radio.is(DOOMED) {
            return Err(Loss::Collision);
        }
        if radio.lock_power < self.rules.decode_power {
            return Err(Loss::TooWeak);
        }
        let position = draw_position(frame, node);
        match self.rules.judge {
            Judge::Curves if radio.ln_success == 0.0 => Ok(()),
            Judge::Curves => {
                let draw = self.reception.fraction_at(position);
                if survives(draw, radio.ln_success) {
                    return Ok(());
                }
                let ratio = radio.lock_power as f64 / self.rules.noise as f64;
                let alone = || self.rules.ln_alone(ratio, frame.mode, frame.octets);
                let blameless = !radio.is(INTERFERED) || !survives(draw, alone());
                Err(if blameless {
                    Loss::Noise
                } else {
                    Loss::Collision
                })
            }
            Judge::Overlap => {
                let ratio = frame
                    .ratios
                    .get(place as usize)
                    .map_or(0.0, |&ratio| f64::from(ratio));
                let kept = ratio > 0.0 && self.reception.fraction_at(position) <= ratio;
                if kept { Ok(()) } else { Err(Loss::Noise) }
            }
            Judge::Threshold(_) | Judge::Pairwise(_) => Ok(()),
        }
    }

    /// Applies a fault's bit errors to the first `octets` of a frame that came through.
    #[cold]
    pub(crate) fn corrupt(
        &self,
        slot: u32,
        node: u32,
        octets: usize,
    ) -> (Result<(), Loss>, Option<u64>) {
        let Some(&(rate, detected)) = self.corruption.get(node as usize) else {
            return (Ok(()), None);
        };
        let frame = self.frames.get(slot);
        let position = draw_position(frame, node);
        let ln_clean = octets as f64 * 8.0 * libm::log1p(-rate);
        if rate <= 0.0 || survives(self.faults.fraction_at(position), ln_clean) {
            return (Ok(()), None);
        }
        match detected {
            true => (Err(Loss::Corrupted), None),
            false => (Ok(()), Some(position)),
        }
    }

    /// The stream from which the wrong bits of one falsified frame are drawn.
    pub(crate) fn bit_errors(&self, position: u64) -> chappe_core::Stream {
        chappe_core::Seed(self.faults.at(position)).stream(Purpose::Fault)
    }
}

/// Where the stream of receptions is read for one frame at one receiver.
pub(crate) fn draw_position(frame: &Frame, node: u32) -> u64 {
    u64::from(frame.source & 0xffff) << 48
        | u64::from(node & 0xffff) << 32
        | frame.number & 0xffff_ffff
}

/// Whether a uniform draw in (0, 1] stays within `exp(ln)`, with the exponential only where it matters:
/// `1 + x <= exp(x)`.
pub(crate) fn survives(draw: f64, ln: f64) -> bool {
    draw <= 1.0 + ln || ln > HOPELESS && draw <= libm::exp(ln)
}

/// Closes a stretch of constant interference of the frame being received.
#[inline]
fn close(rules: &Rules, radio: &mut Radio, frame: &Frame, at: u64) {
    let others = rules.noise.wrapping_add(radio.interference()) as f64;
    let signal = radio.lock_power as f64;
    if signal < frame.bits.perfect * others {
        radio.ln_success += stretch(rules, radio, frame, at, signal / others);
    }
    radio.segment = at;
}

/// The logarithm of the probability that the bits between the segment's start and `at` survive.
fn stretch(rules: &Rules, radio: &Radio, frame: &Frame, at: u64, ratio: f64) -> f64 {
    let bits = &frame.bits;
    let from = radio.segment.saturating_sub(radio.lock_started);
    let to = at.saturating_sub(radio.lock_started);
    let payload = to.min(frame.airtime).saturating_sub(from.max(bits.payload));
    let mut ln =
        payload as f64 * bits.payload_density * rules.curves.of(frame.mode.rate).ln_success(ratio);
    let header = to.min(bits.payload).saturating_sub(from.max(bits.header));
    if header > 0 {
        ln += header as f64
            * bits.header_density
            * rules.curves.of(bits.header_rate).ln_success(ratio);
    }
    ln
}
