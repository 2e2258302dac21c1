//! The wake-up flood of the plan, after Glossy (Ferrari, Zimmerling, Thiele, Saukh, IPSN 2011).
//!
//! Time is divided into slots as long as the plan frame and one turnaround. The root sends in slot 0. A node that
//! hears the frame in a slot repeats it in the next one with that slot's number in it, listens for one slot, and goes
//! on until it has sent it N_tx times. All senders of a slot send the same bits. The start of slot 0, the *reference*,
//! follows from the start of any frame and its number; the data starts a fixed time after it.

use chappe_core::{DropReason, Instant, Reception};

use crate::config::Config;
use crate::frame::Frames;
use crate::header::{Header, Kind};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::timing::{airtime, flood_slots};

/// Slot numbers from here on belong to no flood: no network has that many hops.
const SLOT_MAX: u8 = 64;

/// A flood that this node takes part in.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub plan: Plan,
    /// Start of slot 0, from which all nodes reckon the start of the data.
    reference: Instant,
    /// When the flood is over for nodes within the plan's hops.
    pub end: Instant,
    /// Transmissions that this node still has to make.
    left: u8,
}

impl Flood {
    /// The flood that a frame belongs to, if it is a sound plan. Keeps the frame in `out`.
    ///
    /// A flood that is over by the plan's hops is stale, since its data has begun. So is one whose session is not later
    /// than `session`, the last one that this node took part in.
    pub fn open(
        config: &Config,
        frames: &Frames,
        session: u32,
        now: Instant,
        heard: &Reception<'_>,
        out: &mut Outbox,
    ) -> Result<Flood, DropReason> {
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
        if !frames.is_genuine(&Nonce::of_plan(&plan), heard.psdu) {
            return Err(DropReason::Unauthentic);
        }
        // A replayed plan has a good tag, but its session is an old one.
        if plan.session().is_some_and(|new| new <= session) {
            return Err(DropReason::Stale);
        }
        let slot = config.profile.slot(heard.psdu.len());
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
        Ok(Flood {
            end,
            plan,
            reference,
            left: config.flood_repeats,
        })
    }

    /// Takes a frame of this flood and repeats it in the next slot, if repetitions and slots are left.
    pub fn hear(
        &mut self,
        config: &Config,
        now: Instant,
        heard: &Reception<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let slot = same_flood(heard.psdu, out.frame())?;
        let slots = flood_slots(self.plan.hops(), config.flood_repeats);
        // In the last slot nothing is repeated: data is about to start.
        let in_time = u64::from(slot) + 1 < slots;
        if self.left > 0 && in_time && !out.is_busy() {
            self.left -= 1;
            out.set_hop(slot + 1);
            out.send(now + config.profile.gap());
        }
        Ok(())
    }

    /// The session to remember, after `last`. Plans of the paper's variant have none.
    pub fn session(&self, last: u32) -> u32 {
        self.plan.session().unwrap_or(last)
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
    let slots = flood_slots(plan.hops(), config.flood_repeats);
    reference + config.profile.slot(len) * slots
}

/// The slot of a frame that differs from `known` in nothing else.
pub(crate) fn same_flood(psdu: &[u8], known: &[u8]) -> Result<u8, DropReason> {
    let (header, body) = Header::parse(psdu).map_err(|_| DropReason::Malformed)?;
    let (ours, our_body) = Header::parse(known).map_err(|_| DropReason::Malformed)?;
    let hop = header.hop;
    if header != (Header { hop, ..ours }) || body != our_body {
        return Err(DropReason::Stale);
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
