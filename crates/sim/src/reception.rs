//! What a signal's beginning, overlap and end mean for a receiver, under each of the survival rules.
//!
//! The functions take one [`Radio`] and the frames in flight, and return what happened to the reception. They count and
//! report nothing: that is [`Air`](crate::air::Air)'s part.

use chappe_core::{Purpose, Seed};

use crate::arrival::Arrival;
use crate::bit_errors::{BitErrors, Falsified, Heard};
use crate::error_curve::LIKELY;
use crate::frame::{Edge, Frame, Frames};
use crate::id::{NodeId, Slot};
use crate::joint::Joint;
use crate::level;
use crate::link_loss::{Fate, LinkLosses};
use crate::parts::{self, Parts};
use crate::radio::{Radio, flag::*};
use crate::receiver::Receiver;
use crate::rules::{Judge, Rejection, Rules};
use crate::spread::NEVER;
use crate::survival::{Draws, abandon, close_stretch, judge_bits, survives};
use crate::{AirTime, Loss, Medium, Power, Profile, Window};

/// The laws by which radios receive.
#[derive(Debug)]
pub(crate) struct Reception {
    pub(crate) rules: Rules,
    pub(crate) rejection: Rejection,
    pub(crate) bit_errors: BitErrors,
    /// Only where the profile lets identical frames add up.
    pub(crate) joint: Option<Box<Joint>>,
    draws: Draws,
    parts: Parts,
    /// What single links lose by themselves; `None` in most runs.
    link_losses: Option<LinkLosses>,
}

/// Stands for a draw that no one asked for: it survives whatever has a chance.
const UNDRAWN: f64 = 0.0;

/// What an arriving signal did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrived {
    /// The radio receives the frame.
    Locked,
    /// The radio receives the frame, and lost the one before.
    TookOver(Interrupted, Loss),
    /// The frame is lost here, at this power.
    Lost(Power, Loss),
    /// The frame is lost here, at this power, and the radio left the one before, whose preamble it was still looking for.
    LostBoth(Interrupted, Power),
    /// Noise, which no one could receive.
    Noise,
}

/// A reception that ended before its frame did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interrupted {
    pub(crate) slot: Slot,
    pub(crate) started: AirTime,
    pub(crate) power: Power,
}

/// A reception that lasted to its frame's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Completed {
    pub(crate) started: AirTime,
    pub(crate) power: Power,
    pub(crate) outcome: Result<Heard, Loss>,
}

/// A frame's head that has arrived without error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GoodHead {
    pub(crate) started: AirTime,
    pub(crate) falsified: Option<Falsified>,
}

/// Ends the reception in progress, if there is one.
pub(crate) fn interrupt(radio: &mut Receiver<'_>) -> Option<Interrupted> {
    let slot = std::mem::replace(&mut radio.lock, Slot::NONE);
    (!slot.is_none()).then_some(Interrupted {
        slot,
        started: radio.lock_started,
        power: radio.lock_power,
    })
}

impl Reception {
    pub(crate) fn new(medium: &Medium, link_losses: Option<LinkLosses>, seed: Seed) -> Reception {
        let profile: &Profile = medium.profile();
        let mut rules = Rules::new(profile);
        rules.vigilant |= link_losses.is_some();
        rules.plain = rules.judge == Judge::Curves && !rules.vigilant;
        Reception {
            rules,
            rejection: Rejection::new(profile),
            bit_errors: BitErrors::new(seed),
            joint: Joint::new(medium, seed),
            draws: Draws(seed.stream(Purpose::Reception)),
            parts: Parts::default(),
            link_losses,
        }
    }

    /// The first bit of `frame`, one of `frames`, reaches a receiver.
    #[inline(never)]
    pub(crate) fn arrive(
        &mut self,
        (frames, frame): (&Frames, &Frame),
        radio: &mut Receiver<'_>,
        mut edge: Edge,
    ) -> Arrived {
        if radio.channel != frame.channel
            || frame.noise
            || radio.is(TRANSMITTING | ASLEEP | DOWN)
            || radio.is_deaf(edge.at)
        {
            let why = match radio.channel != frame.channel {
                true => Loss::OtherChannel,
                false => Loss::Transmitting,
            };
            // An interferer on all channels reaches any radio in full; a neighbour channel only leaks.
            edge.power = self
                .rejection
                .across(edge.power, frame.channel, radio.channel);
            return self.arrive_unheard(frames, radio, edge, why);
        }
        // Asked before the radio: a frame whose preamble the link loses must not make the receiver busy.
        if self.fate(frame, edge.node) == Fate::Unheard {
            return self.arrive_unheard(frames, radio, edge, Loss::Link);
        }
        if self.joint.is_some() {
            return self.arrive_joint(frames, radio, edge);
        }
        if !radio.lock.is_none() {
            return self.arrive_locked((frames, frame), radio, edge, Power::ZERO);
        }
        match self.find::<false>(frame, radio, edge) {
            Ok(()) => Arrived::Locked,
            Err(why) => Arrived::Lost(edge.power, why),
        }
    }

    /// A frame's first bit reaches an idle radio, which locks on to the frame or loses it. `PLAIN` says that the laws are
    /// [plain](Rules::plain), that the frame is not weak, and that it has no parts.
    #[inline]
    pub(crate) fn find<const PLAIN: bool>(
        &self,
        frame: &Frame,
        radio: &mut Receiver<'_>,
        edge: Edge,
    ) -> Result<(), Loss> {
        let before = radio.level.energy;
        radio.level.energy = before.plus(edge.power);
        if !PLAIN && edge.power < self.rules.heard {
            return Err(Loss::TooWeak);
        }
        // A matrix has links that are sensed and never deliver. They count as weak frames, so that they are no collisions.
        let measured = !PLAIN && self.rules.judge == Judge::Overlap;
        if measured && frame.ratio(edge.place).is_none_or(|ratio| ratio == NEVER) {
            return Err(Loss::TooWeak);
        }
        if !self.rules.locks(edge.power, before) || measured && before != Power::ZERO {
            return Err(Loss::Collision);
        }
        // A receiver that stayed with a frame after a bad header would be deaf to the next one for a whole airtime.
        let draw = match PLAIN || self.rules.judge == Judge::Curves {
            true => self.header_survives(frame, edge.node, edge.power, before)?,
            false => UNDRAWN,
        };
        radio.lock(edge.slot, edge.power, edge.at, before != Power::ZERO);
        radio.draw = draw;
        if PLAIN {
            self.foresee_from(frame, radio, draw, frame.bits.perfect);
        } else {
            self.foresee(frame, radio, draw);
        }
        Ok(())
    }

    /// A signal begins or ends at a radio that receives another frame, under [plain](Rules::plain) laws: the energy becomes another one.
    #[inline]
    pub(crate) fn disturb_plainly(
        &mut self,
        frames: &Frames,
        radio: &mut Receiver<'_>,
        (node, at): (NodeId, AirTime),
        energy: Power,
    ) {
        let frame = frames.get(radio.lock);
        match frame.parts.is_empty() {
            true => close_stretch((&self.rules, &self.draws), radio, (frame, node), at),
            false => self.close(frame, radio, node, at),
        }
        radio.level.energy = energy;
    }

    /// The end of the reception of a frame without parts, under plain laws.
    #[inline]
    pub(crate) fn complete_plainly(
        &mut self,
        frame: &Frame,
        radio: &mut Receiver<'_>,
        (node, at): (NodeId, AirTime),
    ) -> Completed {
        close_stretch((&self.rules, &self.draws), radio, (frame, node), at);
        radio.level.energy = radio.level.energy.minus(radio.lock_power);
        radio.lock = Slot::NONE;
        let judged = self.judge_whole(frame, radio);
        let judged =
            judged.and_then(|()| judge_bits(&self.rules, &self.draws, radio, (frame, node)));
        Completed {
            started: radio.lock_started,
            power: radio.lock_power,
            outcome: judged.and_then(|()| self.falsify(frame, node, 0)),
        }
    }

    /// From now on weak signals pass a radio unseen, as long as the frame that it receives is neither harmed by them nor
    /// judged in another way than by its ratio to their sum.
    #[inline]
    pub(crate) fn look_away(&self, radio: &mut Receiver<'_>, at: AirTime) {
        if radio.lock.is_none() {
            return radio.look_away(at, &self.rules);
        }
        let alarm = match radio.channel == self.rules.home && !radio.is_due() {
            true => radio.harmless,
            false => level::ALWAYS,
        };
        radio.level.look_away(alarm);
    }

    /// A radio has locked on to a frame: up to which energy do other signals not matter to it?
    ///
    /// As long as the ratio stays one at which nothing is lost. No stretch needs to be closed there, and whether something
    /// overlapped is only asked of a frame that lost bits: a stretch that lost some began with a signal that was examined.
    /// A frame that is lost in noise alone is lost to noise, whatever else arrives.
    #[inline]
    fn foresee(&self, frame: &Frame, radio: &mut Receiver<'_>, draw: f64) {
        let least = match self.rules.judge {
            Judge::Curves if frame.parts.is_empty() => frame.bits.perfect,
            Judge::Threshold(ratio) => ratio,
            _ => return,
        };
        if !self.rules.vigilant {
            self.foresee_from(frame, radio, draw, least);
        }
    }

    /// The same, where nothing is lost from the ratio `least` up.
    #[inline]
    fn foresee_from(&self, frame: &Frame, radio: &mut Receiver<'_>, draw: f64, least: f64) {
        let power = radio.lock_power.as_f64();
        // A billionth less covers all roundings.
        let room = (power / least - self.rules.noise.as_f64()) * (1.0 - 1e-9);
        if room > 0.0 {
            radio.harmless = radio.lock_power.plus(Power::rounded_down(room));
        } else if draw > UNDRAWN && !radio.peeks && !frame.foreign {
            // Its head may be good though, so radios that look at heads are not told.
            let ratio = power / self.rules.noise.as_f64();
            if !survives(draw, frame.ln_alone(ratio) * (1.0 - 1e-9)) {
                abandon(&self.rules, radio);
            }
        }
    }

    /// What a link's own loss process makes of a frame.
    #[inline]
    fn fate(&mut self, frame: &Frame, node: NodeId) -> Fate {
        match &mut self.link_losses {
            Some(losses) => losses.fate(frame.source, node, frame.begin, frame.number),
            None => Fate::Through,
        }
    }

    /// Whether its PHY header survives noise and interference at a frame's beginning: otherwise the radio does not stay with
    /// the frame. Returns the draw, if it was asked for. The draw is the one that decides over the whole frame, which needs its header, so no probability
    /// changes. Only a header whose interference ends within it is judged a little too hard.
    #[inline]
    fn header_survives(
        &self,
        frame: &Frame,
        node: NodeId,
        power: Power,
        before: Power,
    ) -> Result<f64, Loss> {
        let others = self.rules.noise.plus(before).as_f64();
        let power = power.as_f64();
        if power >= frame.bits.perfect_header * others {
            return Ok(UNDRAWN);
        }
        let draw = self.draws.of(frame, node);
        if draw <= LIKELY && power >= frame.bits.likely_header * others {
            return Ok(draw);
        }
        let lost = |others: f64| !survives(draw, frame.bits.ln_header(power / others));
        if !lost(others) {
            return Ok(draw);
        }
        // The same draw decides both: lost in noise alone means that the interference is not to blame.
        match before == Power::ZERO || lost(self.rules.noise.as_f64()) {
            true => Err(Loss::Noise),
            false => Err(Loss::Collision),
        }
    }

    /// A signal reaches a radio that cannot lock on to it: it counts as energy, and disturbs.
    #[cold]
    fn arrive_unheard(
        &mut self,
        frames: &Frames,
        radio: &mut Receiver<'_>,
        edge: Edge,
        why: Loss,
    ) -> Arrived {
        if !radio.lock.is_none() && edge.power != Power::ZERO {
            self.disturb(frames, radio, edge);
        } else {
            radio.level.energy = radio.level.energy.plus(edge.power);
        }
        match frames.get(edge.slot).noise {
            true => Arrived::Noise,
            false => Arrived::Lost(edge.power, why),
        }
    }

    /// Adds interference to a reception in progress.
    fn disturb(&mut self, frames: &Frames, radio: &mut Receiver<'_>, edge: Edge) {
        // The stretch before is judged without the newcomer, so it is closed first.
        if self.rules.judge == Judge::Curves {
            self.close(frames.get(radio.lock), radio, edge.node, edge.at);
        }
        // The frame in reception is inside `energy` too; `interference` takes it out again.
        radio.level.energy = radio.level.energy.plus(edge.power);
        radio.flags |= INTERFERED;
        let signal = radio.lock_power.as_f64();
        let doomed = match self.rules.judge {
            Judge::Curves => false,
            Judge::Threshold(ratio) => {
                signal < ratio * self.rules.noise.plus(radio.interference()).as_f64()
            }
            // ns-2 looks at each pair alone (physics report 4.5), so the sum does not matter.
            Judge::Pairwise(ratio) => signal < ratio * edge.power.as_f64(),
            Judge::Overlap => true,
        };
        if doomed {
            radio.flags |= DOOMED;
        }
    }

    /// Closes a stretch of constant interference at a radio that receives `frame`.
    #[inline]
    fn close(&mut self, frame: &Frame, radio: &mut Receiver<'_>, node: NodeId, at: AirTime) {
        match &mut self.joint {
            Some(joint) if radio.grouped => {
                joint.close_stretch((&self.rules, &self.draws), radio, (frame, node), at);
            }
            _ if !frame.parts.is_empty() => {
                self.parts
                    .close_stretch(&self.rules, radio, (frame, node), at);
            }
            _ => close_stretch((&self.rules, &self.draws), radio, (frame, node), at),
        }
    }

    /// A frame reaches a radio that is receiving another one: it disturbs, and may take the receiver over. `allies` is
    /// the power of identical frames that are there already.
    fn arrive_locked(
        &mut self,
        (frames, frame): (&Frames, &Frame),
        radio: &mut Receiver<'_>,
        edge: Edge,
        allies: Power,
    ) -> Arrived {
        // Read before `disturb`, which adds the newcomer: the newcomer must not interfere with itself.
        let (before, lock_power, lock_started) =
            (radio.level.energy, radio.lock_power, radio.lock_started);
        let old = frames.get(radio.lock);
        self.disturb(frames, radio, edge);
        // Identical frames that are here already help the newcomer instead of interfering with it.
        let (sum, others) = (edge.power.plus(allies), before.minus(allies));
        let delivers = frame.ratio(edge.place).is_none_or(|ratio| ratio != NEVER);
        if sum < self.rules.heard || !delivers {
            return Arrived::Lost(edge.power, Loss::TooWeak);
        }
        if edge.at.saturating_since(lock_started) < self.rules.search {
            return self.search(radio, (frame, edge), (before, lock_power));
        }
        let why = match self.rules.judge {
            Judge::Curves | Judge::Threshold(_) => {
                if self.captures(sum, others, old, edge.at, lock_started)
                    && let Some(lost) = interrupt(radio)
                {
                    radio.lock(edge.slot, sum, edge.at, before != Power::ZERO);
                    self.foresee(frame, radio, UNDRAWN);
                    return Arrived::TookOver(lost, Loss::Captured);
                }
                Loss::PreambleMissed
            }
            Judge::Pairwise(ratio) if lock_power.as_f64() >= ratio * edge.power.as_f64() => {
                Loss::PreambleMissed
            }
            // Both die, and the receiver stays busy until the later of them ends.
            Judge::Pairwise(_) => {
                if edge.at + frame.airtime > lock_started + old.airtime
                    && let Some(lost) = interrupt(radio)
                {
                    radio.lock(edge.slot, edge.power, edge.at, true);
                    radio.flags |= DOOMED;
                    return Arrived::TookOver(lost, Loss::Collision);
                }
                Loss::Collision
            }
            Judge::Overlap => Loss::Collision,
        };
        Arrived::Lost(edge.power, why)
    }

    /// A frame begins while the radio still searches: the strongest preamble is found, if it stands out from all others together.
    /// `before` and `found` are the energy without the newcomer, and the part of it that was found.
    fn search(
        &self,
        radio: &mut Receiver<'_>,
        (frame, edge): (&Frame, Edge),
        (before, found): (Power, Power),
    ) -> Arrived {
        let is_stronger = edge.power > found;
        let (strongest, others) = match is_stronger {
            true => (edge.power, before),
            false => (found, radio.interference()),
        };
        let locks = self.rules.locks(strongest, others);
        if locks && !is_stronger {
            return Arrived::Lost(edge.power, Loss::PreambleMissed);
        }
        let Some(lost) = interrupt(radio) else {
            return Arrived::Lost(edge.power, Loss::Collision);
        };
        if locks {
            radio.lock(edge.slot, edge.power, edge.at, true);
            self.foresee(frame, radio, UNDRAWN);
            return Arrived::TookOver(lost, Loss::Captured);
        }
        Arrived::LostBoth(lost, edge.power)
    }

    /// Whether a newcomer at `at` takes the receiver from a frame whose reception began at `started`.
    fn captures(
        &self,
        power: Power,
        others: Power,
        old: &Frame,
        at: AirTime,
        started: AirTime,
    ) -> bool {
        let margin = self.rules.capture_ratio * self.rules.noise.plus(others).as_f64();
        if power.as_f64() < margin {
            return false;
        }
        let age = at.saturating_since(started);
        let open = match self.rules.window {
            // In ns-3 the window is 16 us (physics report 4.2), in GloMoSim the whole frame (4.4).
            Window::Preamble => age < old.bits.payload,
            Window::First(span) => age <= span,
            Window::Frame => true,
        };
        open && self.rules.locks(power, others)
    }

    /// A frame's first bit reaches a radio that can hear it, under a profile with joint reception.
    #[cold]
    fn arrive_joint(&mut self, frames: &Frames, radio: &mut Receiver<'_>, edge: Edge) -> Arrived {
        let frame = frames.get(edge.slot);
        let Some(joint) = &mut self.joint else {
            return Arrived::Noise;
        };
        let joined = joint.put(radio, frame, edge);
        if joined.is_locked {
            return self.join(frames, radio, edge);
        }
        // A frame can start a new set at a radio that is locked on to another one, and take it over by capture.
        let arrived = match radio.lock.is_none() {
            true => self.try_lock(frames, radio, edge, joined.allies),
            false => self.arrive_locked((frames, frame), radio, edge, joined.allies),
        };
        // Only now is it known whether the radio locked: the set must stand for it before the next member arrives.
        if radio.lock == edge.slot
            && let Some(joint) = &mut self.joint
        {
            joint.lock(joined, edge.node, edge.slot, radio);
        }
        arrived
    }

    /// One more frame of the set being received adds its power to the signal.
    fn join(&mut self, frames: &Frames, radio: &mut Receiver<'_>, edge: Edge) -> Arrived {
        self.close(frames.get(radio.lock), radio, edge.node, edge.at);
        radio.level.energy = radio.level.energy.plus(edge.power);
        radio.lock_power = radio.lock_power.plus(edge.power);
        radio.grouped = true;
        radio.flags |= INTERFERED;
        // The set is received once, by the frame that the radio locked on to; every other member must have an outcome too.
        Arrived::Lost(edge.power, Loss::PreambleMissed)
    }

    /// An idle radio may lock on to a frame that `allies` arrived together with.
    fn try_lock(
        &mut self,
        frames: &Frames,
        radio: &mut Receiver<'_>,
        edge: Edge,
        allies: Power,
    ) -> Arrived {
        // `energy` contains the allies, which are signal here.
        let others = radio.level.energy.minus(allies);
        radio.level.energy = radio.level.energy.plus(edge.power);
        let sum = Power(edge.power.0.saturating_add(allies.0));
        let why = match () {
            _ if sum < self.rules.heard => Some(Loss::TooWeak),
            _ if !self.rules.locks(sum, others) => Some(Loss::Collision),
            _ => {
                let frame = frames.get(edge.slot);
                match self.rules.judge {
                    Judge::Curves => self.header_survives(frame, edge.node, sum, others).err(),
                    _ => None,
                }
            }
        };
        if let Some(why) = why {
            return Arrived::Lost(edge.power, why);
        }
        let interfered = others != Power::ZERO || allies != Power::ZERO;
        radio.lock(edge.slot, sum, edge.at, interfered);
        Arrived::Locked
    }

    /// The last bit of `frame`, one of `frames`, passes a receiver. `Some` if the radio received it to its end.
    #[inline]
    pub(crate) fn leave(
        &mut self,
        (frames, frame): (&Frames, &Frame),
        radio: &mut Receiver<'_>,
        edge: Edge,
    ) -> Option<Completed> {
        if radio.lock == edge.slot {
            return Some(self.complete(frame, radio, edge));
        }
        let mut power = edge.power;
        if radio.channel != frame.channel {
            power = self.rejection.across(power, frame.channel, radio.channel);
        }
        let locked = !radio.lock.is_none();
        // A member takes only its own power out of the signal; the others go on.
        let share = match &self.joint {
            Some(joint) if locked && radio.grouped => joint.share(edge.node, radio, edge.slot),
            _ => None,
        };
        // A member that ends before the frame that stands for its set changes nothing until that end.
        if locked && share.is_none() && self.rules.judge == Judge::Curves {
            self.close(frames.get(radio.lock), radio, edge.node, edge.at);
        }
        radio.level.energy = radio.level.energy.minus(power);
        radio.lock_power = radio.lock_power.minus(share.unwrap_or(Power::ZERO));
        None
    }

    /// The end of a reception.
    #[inline]
    fn complete(&mut self, frame: &Frame, radio: &mut Receiver<'_>, edge: Edge) -> Completed {
        if self.rules.judge == Judge::Curves {
            self.close(frame, radio, edge.node, edge.at);
        }
        let mut own = radio.lock_power;
        if radio.grouped
            && let Some(joint) = &self.joint
        {
            // The other members take their power away themselves when they end.
            own = joint.share(edge.node, radio, edge.slot).unwrap_or(own);
            radio.lock_power = joint.whole(edge.node, radio).unwrap_or(own);
        }
        radio.level.energy = radio.level.energy.minus(own);
        radio.lock = Slot::NONE;
        radio.grouped = false;
        Completed {
            started: radio.lock_started,
            power: radio.lock_power,
            outcome: self.outcome(frame, radio, edge),
        }
    }

    /// The outcome of a reception: by the radio first, then by the link's own loss, then by a fault's bit errors.
    fn outcome(&mut self, frame: &Frame, radio: &Radio, edge: Edge) -> Result<Heard, Loss> {
        self.judge(frame, radio, edge)?;
        let lost = match frame.parts.is_empty() {
            true => 0,
            false => self.lost_parts(frame, radio, edge)?,
        };
        if matches!(self.fate(frame, edge.node), Fate::Broken(_)) {
            return Err(Loss::Link);
        }
        self.falsify(frame, edge.node, lost)
    }

    /// What a fault's bit errors leave of a frame that survived otherwise.
    #[inline]
    fn falsify(&self, frame: &Frame, node: NodeId, lost: u64) -> Result<Heard, Loss> {
        let falsified = match self.bit_errors.is_empty() {
            true => None,
            false => self.bit_errors.strike(frame, node, frame.octets)?,
        };
        Ok(Heard { falsified, lost })
    }

    /// Which subframes of an A-MPDU are lost; an error if all are.
    #[cold]
    fn lost_parts(&self, frame: &Frame, radio: &Radio, edge: Edge) -> Result<u64, Loss> {
        let count = frame.parts.len();
        let lost = match self.rules.judge {
            Judge::Curves => {
                let frame = (frame, edge.node);
                self.parts.lost(&self.draws, radio, frame, edge.slot)
            }
            // A measured ratio is that of each subframe.
            Judge::Overlap => {
                let ratio = frame.ratio(edge.place).map_or(0.0, f64::from);
                let lost = |part| self.draws.of_part(frame, edge.node, part) > ratio;
                (0..count).map(|part| u64::from(lost(part)) << part).sum()
            }
            Judge::Threshold(_) | Judge::Pairwise(_) => 0,
        };
        match lost == parts::all(count) {
            true if radio.is(INTERFERED) => Err(Loss::Collision),
            true => Err(Loss::Noise),
            false => Ok(lost),
        }
    }

    /// Whether a frame is lost whatever became of its bits.
    #[inline]
    fn judge_whole(&self, frame: &Frame, radio: &Radio) -> Result<(), Loss> {
        match () {
            _ if frame.truncated => Err(Loss::Truncated),
            _ if radio.is(DOOMED) => Err(Loss::Collision),
            _ if radio.lock_power < self.rules.decode_power => Err(Loss::TooWeak),
            _ => Ok(()),
        }
    }

    /// Whether a frame that was received to its end survived.
    fn judge(&self, frame: &Frame, radio: &Radio, edge: Edge) -> Result<(), Loss> {
        self.judge_whole(frame, radio)?;
        match self.rules.judge {
            Judge::Curves => judge_bits(&self.rules, &self.draws, radio, (frame, edge.node)),
            Judge::Overlap => {
                let ratio = frame.ratio(edge.place).map_or(0.0, f64::from);
                if !frame.parts.is_empty() {
                    return Ok(());
                }
                match ratio > 0.0 && self.draws.of(frame, edge.node) <= ratio {
                    true => Ok(()),
                    false => Err(Loss::Noise),
                }
            }
            Judge::Threshold(_) | Judge::Pairwise(_) => Ok(()),
        }
    }

    /// Whether a radio has the first `octets` of the frame in `slot` at `at`, and without error.
    ///
    /// A head is good if the frame's one draw stays within the probability that its bits so far survived, and the frame is
    /// good if it stays within that of all its bits. So a good frame always had a good head, and a good head is followed
    /// by a good frame with just the probability that the rest survives.
    pub(crate) fn head(
        &mut self,
        frames: &Frames,
        radio: &mut Receiver<'_>,
        (slot, node): (Slot, NodeId),
        octets: usize,
        at: AirTime,
    ) -> Option<GoodHead> {
        let frame = frames.get(slot);
        // A radio that left the frame may have locked on to another one in the same slot since.
        let due = radio.lock_started + frame.mode.airtime(octets);
        if radio.lock != slot || due != at {
            return None;
        }
        if self.rules.judge == Judge::Curves {
            self.close(frame, radio, node, at);
        }
        // The place of a link loss is drawn evenly over the frame: a head before it is still good.
        let broken = match self.fate(frame, node) {
            Fate::Broken(place) => place * frame.octets as f64 <= octets as f64,
            _ => false,
        };
        if broken
            || frame.foreign
            || frame.truncated
            || radio.is(DOOMED)
            || radio.lock_power < self.rules.decode_power
        {
            return None;
        }
        let draw = || self.draws.of(frame, node);
        let good = match self.rules.judge {
            Judge::Curves => radio.ln_success == 0.0 || survives(draw(), radio.ln_success),
            // A measured ratio does not say where bits were lost: evenly, then.
            Judge::Overlap => {
                let receiver = |arrival: &Arrival| arrival.receiver == node;
                let place = frame.own_arrivals.iter().position(receiver)?;
                let ratio = f64::from(*frame.ratios.get(place)?);
                let share = octets as f64 / frame.octets as f64;
                ratio > 0.0 && draw() <= libm::exp(share * libm::log(ratio))
            }
            Judge::Threshold(_) | Judge::Pairwise(_) => true,
        };
        let falsified = match good {
            true if self.bit_errors.is_empty() => None,
            true => self.bit_errors.strike_head(frame, node, octets).ok()?,
            false => return None,
        };
        Some(GoodHead {
            started: radio.lock_started,
            falsified,
        })
    }
}
