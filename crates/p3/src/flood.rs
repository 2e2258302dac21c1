//! The wake-up flood of the plan, after Glossy (Ferrari, Zimmerling, Thiele, Saukh, IPSN 2011).
//!
//! Time is divided into slots as long as the plan frame and one turnaround. The root sends in slot 0. A node that
//! hears the frame in a slot repeats it in the next one with that slot's number in it, listens for one slot, and goes
//! on until it has sent it N_tx times. In a thin flood it chooses its further slots by a hash ([`Plan::thinly`]), and sends in them by the
//! time that the first frame told it: few send, so it may hear none. All senders of a slot send the same bits. The start of slot 0, the *reference*,
//! follows from the start of any frame and its number; the data starts a fixed time after it.
//!
//! The tag of a plan with a key is the exclusive or of two CCM tags, that of the plan and that of the slot (an aggregate MAC, as in
//! `blocks.rs`). So a frame with a bent slot is refused, and a hop that repeats the plan makes the slot's tag only. A genuine frame
//! that is replayed in another slot still tells a wrong time, by as many slots.

use chappe_core::{DropReason, Instant, Reception};

use crate::blocks::Tag;
use crate::config::Config;
use crate::frame::Frames;
use crate::header::{Header, Kind};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::sizes::FRAME_MAX;
use crate::timing::{airtime, flood_slots};

/// Slot numbers from here on belong to no flood: no network has that many hops.
const SLOT_MAX: u8 = 64;

/// A flood that this node takes part in.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub plan: Plan,
    /// The tag of the plan without its slot.
    tag: Tag,
    /// Start of slot 0, from which all nodes reckon the start of the data.
    reference: Instant,
    /// The slot of this node's last transmission.
    sent: u8,
    /// When the flood is over for nodes within the plan's hops.
    pub end: Instant,
    /// Number of the node that takes part, which decides the turns in which it is silent.
    node: u16,
    /// Transmissions that this node still has to make.
    left: u8,
}

impl Flood {
    /// The flood that a frame belongs to, if it is a sound plan. Keeps the frame in `out`.
    ///
    /// A flood that is over by the plan's hops is stale, since its data has begun. So is one whose session is not later
    /// than `session`, the last one that this `node` took part in. The result is the flood, and the slot of the frame.
    pub fn open(
        config: &Config,
        frames: &Frames,
        (node, session): (u16, u32),
        now: Instant,
        heard: &Reception<'_>,
        out: &mut Outbox,
    ) -> Result<(Flood, u8), DropReason> {
        let kind = heard.psdu.first().copied().and_then(Kind::from_code);
        if kind != Some(Kind::Plan) {
            let foreign = kind.is_some() || crate::header::is_short(heard.psdu);
            return Err(if foreign {
                DropReason::NotForUs
            } else {
                DropReason::Malformed
            });
        }
        let message = heard.psdu.len().checked_sub(frames.tag_len());
        let message = message.and_then(|len| heard.psdu.get(..len));
        let (header, body) =
            Header::parse(message.unwrap_or_default()).map_err(|_| DropReason::Malformed)?;
        let plan = Plan::parse(header.transfer, body).map_err(|_| DropReason::Malformed)?;
        if header.hop >= SLOT_MAX || !frames.fit(&plan) {
            return Err(DropReason::Malformed);
        }
        let mut bare = [0; FRAME_MAX];
        let bare = bare.get_mut(..heard.psdu.len());
        let bare = bare.ok_or(DropReason::Malformed)?;
        bare.copy_from_slice(heard.psdu);
        frames.add_tag(bare, frames.tag_of_slot(&plan, header.hop));
        if !frames.is_genuine(&Nonce::of_plan(&plan), bare) {
            return Err(DropReason::Unauthentic);
        }
        // A replayed plan has a good tag, but its session is an old one.
        if plan.session().is_some_and(|new| new <= session) {
            return Err(DropReason::Stale);
        }
        let slot = config.profile.flood_slot(heard.psdu.len());
        let before = slot * u64::from(header.hop);
        let reference = heard.started.saturating_before(before);
        let end = end(config, &plan, reference, heard.psdu.len());
        // Its data has begun, and a late relay would send into it.
        if end <= now {
            return Err(DropReason::Stale);
        }
        if !out.copy(heard.psdu) {
            return Err(DropReason::Malformed);
        }
        let flood = Flood {
            end,
            plan,
            tag: frames.tag_in(bare),
            reference,
            sent: header.hop,
            node,
            left: plan.flood_repeats(config),
        };
        Ok((flood, header.hop))
    }

    /// Takes a frame of this flood and repeats it in the next slot, if repetitions and slots are left.
    pub fn hear(
        &mut self,
        config: &Config,
        frames: &Frames,
        now: Instant,
        heard: &Reception<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let slot = same_flood(frames, &self.plan, &self.tag, heard.psdu, out.frame())?;
        self.repeat(config, frames, now, slot, out);
        Ok(())
    }

    /// Repeats the plan in the slot after `slot`, if repetitions and slots are left.
    pub fn repeat(
        &mut self,
        config: &Config,
        frames: &Frames,
        now: Instant,
        slot: u8,
        out: &mut Outbox,
    ) {
        let slots = flood_slots(self.plan.hops(), self.plan.flood_repeats(config));
        // In the last slot nothing is repeated: data is about to start.
        let in_time = u64::from(slot) + 1 < slots;
        let first = self.left == self.plan.flood_repeats(config);
        if self.left > 0 && in_time && !out.is_busy() && (first || !self.plan.is_thin()) {
            self.left -= 1;
            self.sent = slot + 1;
            set_slot(frames, &self.plan, &self.tag, slot + 1, out);
            out.send(now + config.profile.flood_gap());
        }
    }

    /// After a transmission in a thin flood: sends again in the next slot that it does not rest in.
    pub fn go_on(&mut self, config: &Config, frames: &Frames, out: &mut Outbox) {
        let slots = flood_slots(self.plan.hops(), self.plan.flood_repeats(config));
        let last = u8::try_from(slots).unwrap_or(SLOT_MAX).min(SLOT_MAX);
        let next = (self.sent.saturating_add(1)..last)
            .find(|&slot| self.plan.is_thin() && !self.plan.rests(self.node, slot));
        if let Some(slot) = next.filter(|_| self.left > 0 && !out.is_busy()) {
            self.left -= 1;
            self.sent = slot;
            set_slot(frames, &self.plan, &self.tag, slot, out);
            let len = config.profile.flood_slot(out.frame().len());
            out.send(self.reference + len * u64::from(slot));
        }
    }

    /// The session to remember, after `last`. Plans of the paper's variant have none.
    pub fn session(&self, last: u32) -> u32 {
        self.plan.session().unwrap_or(last)
    }

    /// The start of slot 0.
    pub fn reference(&self) -> Instant {
        self.reference
    }

    /// Whether the radio has all of this node's transmissions.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// When the source sends its first packet.
    pub fn data_start(&self, config: &Config) -> Instant {
        data_start(config, &self.plan, self.reference)
    }
}

/// When the first packet is sent: after the flood and a guard.
pub(crate) fn data_start(config: &Config, plan: &Plan, reference: Instant) -> Instant {
    end(config, plan, reference, plan.frame_len(config)) + config.start_guard
}

fn end(config: &Config, plan: &Plan, reference: Instant, len: usize) -> Instant {
    let slots = flood_slots(plan.hops(), plan.flood_repeats(config));
    reference + config.profile.flood_slot(len) * slots
}

/// Writes a slot to the plan in `out`, whose tag without a slot is `tag`.
pub(crate) fn set_slot(frames: &Frames, plan: &Plan, tag: &Tag, slot: u8, out: &mut Outbox) {
    out.set_hop(slot);
    let frame = out.frame_mut();
    let old = frames.tag_in(frame);
    frames.add_tag(frame, old);
    frames.add_tag(frame, *tag);
    frames.add_tag(frame, frames.tag_of_slot(plan, slot));
}

/// The slot of a frame that differs from `known` in nothing else, and has the tag of that slot.
pub(crate) fn same_flood(
    frames: &Frames,
    plan: &Plan,
    tag: &Tag,
    psdu: &[u8],
    known: &[u8],
) -> Result<u8, DropReason> {
    let end = known.len().saturating_sub(frames.tag_len());
    let (message, ours) = (psdu.get(..end).unwrap_or_default(), known.get(..end));
    let (header, body) = Header::parse(message).map_err(|_| DropReason::Malformed)?;
    let ours = Header::parse(ours.unwrap_or_default());
    let (ours, our_body) = ours.map_err(|_| DropReason::Malformed)?;
    let hop = header.hop;
    if psdu.len() != known.len() || header != (Header { hop, ..ours }) || body != our_body {
        return Err(DropReason::Stale);
    }
    let of_slot = frames.tag_of_slot(plan, hop);
    let told: Tag = core::array::from_fn(|at| {
        let octet = |tag: &Tag| tag.get(at).copied().unwrap_or(0);
        octet(tag) ^ octet(&of_slot)
    });
    if frames.tag_in(psdu) != told {
        return Err(DropReason::Unauthentic);
    }
    (hop < SLOT_MAX).then_some(hop).ok_or(DropReason::Malformed)
}

/// The time from the first wake-up transmission to the source's first packet.
///
/// Formula: (hops + 2 (N_tx - 1) + 1) slots of the plan frame and the guard.
pub fn setup_time(config: &Config, plan: &Plan) -> chappe_core::Duration {
    data_start(config, plan, Instant::ZERO).saturating_since(Instant::ZERO)
}

/// The time that a plan frame is on the air.
pub fn plan_airtime(config: &Config, plan: &Plan) -> chappe_core::Duration {
    airtime(plan.frame_len(config))
}
