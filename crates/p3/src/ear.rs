//! When a node's receiver is on. P³'s energy is counted in radio-on time.
//!
//! A node of a transfer knows when its next frame can come: from the last one that it heard, of any group, or from the
//! plan. Its receiver is off until shortly before, and then on until it hears a frame. After a lost frame it keeps
//! listening, and the next frame of another group tells it the time again.

use chappe_core::{Duration, Instant, Wake};

use crate::config::{Config, Variant};
use crate::frame::Frames;
use crate::groups::Turns;
use crate::header::Flags;
use crate::outbox::Outbox;
use crate::plan::Plan;

/// The receiver is on this early: one symbol of 16 us, 30 times what a synchronous start may be off.
const EARLY: Duration = Duration::from_micros(16);
/// The receiver is also on early by this fraction of the time that it was off, since clocks differ: 1/8192 is 122 ppm,
/// for two clocks of 40 ppm.
const DRIFT: u64 = 8192;

/// Whether and until when the receiver is off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ear {
    opens: Option<Instant>,
    /// When the frame starts for which the receiver opens.
    due: Option<Instant>,
}

impl Ear {
    /// Nothing can come before `due`, so the receiver is off until then, unless that is shorter than a turnaround.
    pub fn rest(&mut self, config: &Config, now: Instant, due: Instant, out: &mut Outbox) {
        let span = due.saturating_since(now);
        let early = EARLY + config.ramp_up + span / DRIFT;
        let opens = due.saturating_before(early);
        self.due = Some(due);
        if opens <= now + config.profile.turnaround {
            self.open(out);
        } else {
            out.listen(false);
            self.opens = Some(opens);
        }
    }

    /// Switches the receiver on.
    pub fn open(&mut self, out: &mut Outbox) {
        out.listen(true);
        self.opens = None;
    }

    /// Switches the receiver off until another call.
    pub fn close(&mut self, out: &mut Outbox) {
        out.listen(false);
        self.opens = None;
    }

    /// Switches the receiver on if its time has come.
    pub fn on_time(&mut self, now: Instant, out: &mut Outbox) {
        if self.opens.is_some_and(|opens| opens <= now) {
            self.open(out);
        }
    }

    /// Whether a frame that began at `started` is the one that was due.
    pub fn was_due(&self, started: Instant) -> bool {
        self.due.is_some_and(|due| {
            let off = due.saturating_since(started) + started.saturating_since(due);
            off <= EARLY * 2
        })
    }

    pub fn wake(&self) -> Option<Wake> {
        let why = "receiver on";
        self.opens.map(|at| Wake { at, why })
    }
}

/// The start of the next frame for relays of `group`, after one with these flags that began at `started`.
pub(crate) fn next_turn(
    config: &Config,
    plan: &Plan,
    group: u8,
    started: Instant,
    flags: Flags,
) -> Instant {
    let turns = Turns::new(plan.groups(), flags.left_out);
    let ahead = if flags.both {
        1
    } else {
        turns.until(flags.group, group)
    };
    started + plan.period(config, flags) * ahead
}

/// The start of the first frame for relays of a stage and group, where the source begins at `start`.
pub(crate) fn first_turn(
    config: &Config,
    plan: &Plan,
    stage: u8,
    group: u8,
    start: Instant,
) -> Instant {
    // A frame reaches stage h after h - 1 hops, and group g takes packet g first.
    let stages = u64::from(stage.saturating_sub(1));
    start + plan.hop_time(config) * stages + plan.cycle() * u64::from(group)
}

/// The earliest start of an answer at `stage` (0 is the source) to a CTRL that began there at `started`, received from
/// the stage before or, at the source, sent by it.
pub(crate) fn answer_due(
    config: &Config,
    frames: &Frames,
    plan: &Plan,
    stage: u8,
    started: Instant,
    copies_left: u8,
) -> Instant {
    let hops = u64::from(plan.hops().saturating_sub(stage));
    // A frame that is received at a stage reaches the next one a hop later; the source sends it a hop earlier.
    let there = plan.hop_time(config) * (hops + u64::from(stage > 0));
    let back = config.profile.slot(frames.nack_min(plan)) * hops.saturating_sub(1);
    // The destination waits for the last copy of the CTRL, and for relays that change their channel.
    let waits = plan.cycle() * u64::from(copies_left) + config.profile.turn_relays;
    started + there + waits + back
}

/// The earliest start of a frame at `stage` after an answer of `len` octets that began there at `started`: received from
/// the stage after or, at the destination, sent by it.
pub(crate) fn round_due(
    config: &Config,
    plan: &Plan,
    stage: u8,
    started: Instant,
    len: usize,
    complete: bool,
) -> Instant {
    let last = stage == plan.hops();
    let back = config.profile.slot(len) * (u64::from(stage) + u64::from(!last));
    let there = plan.hop_time(config) * u64::from(stage.saturating_sub(1));
    // A source that missed it asks again: its wait is four cycles longer than the answer's way.
    let (again, turn) = (plan.cycle() * 3, config.profile.turn_source);
    let pause = if complete || turn > again {
        again
    } else {
        turn
    };
    started + back + pause + there
}

/// Turns of each group without a frame after which a transfer has not begun. 8: our choice; where half of the frames are lost, two groups
/// lose all of theirs once in 65,000 times.
const TURNS: u64 = 8;

/// Until when a node at `stage` waits for its very first frame, where the source begins at `start`.
///
/// A source that has missed the plan sends nothing, and a gateway that notices soon tries again soon: its flood finds only nodes that have
/// left. In the improved variant they wait for some turns of each group, or for a second question where the object is short. A source that
/// asks first may do so twice, and the paper's nodes wait as long as ever.
pub(crate) fn silence_end(config: &Config, plan: &Plan, stage: u8, start: Instant) -> Instant {
    if matches!(config.variant, Variant::Paper) || plan.is_resumed() {
        return start + patience(config, plan);
    }
    let groups = u64::from(plan.groups());
    let cycle = match plan.is_single() {
        true => plan.single_period(config),
        false => plan.cycle(),
    };
    let (turns, again) = (
        cycle * (TURNS * groups),
        reply_time(config, plan, 0) + config.reply_slack + cycle * (2 * groups),
    );
    let first = first_turn(config, plan, stage, 0, start);
    first + if turns > again { turns } else { again }
}

/// How long a node of a transfer waits without hearing anything.
///
/// The paper's nodes wait for the time of a whole segment, all packets of which might be lost before they reach them.
/// In the improved variant silence means that the gateway will soon try again, and its flood finds only nodes that have
/// left: they wait for two questions and their answers.
pub(crate) fn patience(config: &Config, plan: &Plan) -> Duration {
    match config.variant {
        Variant::Paper => config.idle + plan.cycle() * u64::from(config.segment),
        Variant::Improved(_) => config.idle + reply_time(config, plan, 0) * 2,
    }
}

/// How long a NACK can take to come back to stage `stage`, from the end of its CTRL: its hops to the destination and
/// back, the pause at the turn, and four cycles. The source is stage 0.
pub(crate) fn reply_time(config: &Config, plan: &Plan, stage: u8) -> Duration {
    let hops = u64::from(plan.hops().saturating_sub(stage));
    let (hop, cycle) = (plan.hop_time(config), plan.cycle());
    let hops_time = hop * hops + cycle * 4 + config.profile.nack_slot() * hops;
    hops_time + config.profile.turn_relays
}
