//! The improved variant's parameters.

use chappe_core::{Caps, Duration};

use crate::common::{Common, ConfigError, require_nonzero, require_shares};
use crate::improved::K_MAX;
use crate::improved::header::{self, ObjectId, TIMES};
use crate::improved::narrow;
use crate::improved::report::STATES_MAX;
use crate::improved::slot;
use crate::links::NODES_MAX;

/// The parameters of the improved variant's node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {
    /// The parameters that the paper's protocols have, too; `k` is at most [`K_MAX`].
    pub common: Common,
    /// The variant's own parameters.
    pub settings: Settings,
}

impl Config {
    /// Checks the values that have limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.common.check(K_MAX, self.overhead())?;
        self.settings.check()
    }

    /// Checks that a link can carry the frames of this configuration.
    pub fn check_link(&self, caps: &Caps) -> Result<(), ConfigError> {
        let longest = self.overhead() + self.common.payload;
        self.common.check_link(caps, longest)
    }

    /// These parameters for members that send in turns: with an outer code batches are larger, at most [`K_MAX`] packets.
    #[must_use]
    pub fn in_turns(&self) -> Config {
        let mut with = *self;
        if self.settings.outer {
            let k = self.common.k.saturating_mul(self.settings.batch_in_turns);
            with.common.k = k.min(K_MAX).max(self.common.k);
        }
        with
    }

    /// How long a slot of members in turns takes with its part of the open slots, in seconds: for an object of so many octets, in a network of
    /// `nodes` nodes.
    pub fn slot_s(&self, nodes: usize, octets: usize) -> f64 {
        let with = self.in_turns();
        let common = &with.common;
        let batches = octets.div_ceil((common.k * common.payload).max(1));
        let id = ObjectId {
            tag: 0,
            batches: u32::try_from(batches).unwrap_or(u32::MAX).max(1),
            k: common.k.min(K_MAX) as u8,
            last: 1,
            outer: self.settings.outer,
        };
        let frame = with.frame_in_slot(nodes, &id) + common.link_overhead;
        slot::mean_s(&id, common.mode.airtime(frame))
    }

    /// Octets of the longest data frame of an object, beside those of the link, if members send in turns.
    pub(super) fn frame_in_slot(&self, nodes: usize, id: &ObjectId) -> usize {
        let (common, settings) = (&self.common, &self.settings);
        let times = if settings.timed { TIMES } else { 0 };
        let done = match id.is_cut() {
            true => header::done(nodes),
            false => 0,
        };
        let states = settings.data_states.min(slot::states(id));
        let vector = narrow::octets(common.k);
        times + done + header::SLOT + header::overhead(nodes, states, vector) + common.payload
    }

    /// Whether frames that name their slot fit the link.
    pub fn has_room_for_turns(&self) -> bool {
        let nodes = self.settings.nodes_max.min(NODES_MAX);
        let more = header::SLOT + header::done(nodes);
        self.in_turns().overhead() + more + self.common.payload <= self.common.frame_max
    }

    /// Octets beside the payload in the longest data frame, without a slot.
    pub(super) fn overhead(&self) -> usize {
        let states = self.settings.data_states.min(STATES_MAX);
        let times = match self.settings.timed {
            true => TIMES,
            false => 0,
        };
        let nodes = self.settings.nodes_max.min(NODES_MAX);
        times + header::overhead(nodes, states, self.common.k)
    }
}

/// Parameters that only the improved variant has; those that it shares with the paper's protocols are in [`Common`].
///
/// None of them is critical: halving or doubling any of them changed the mean over four outdoor and twenty indoor
/// scenarios by less than a tenth, except `gate` and `yielding`, without which far too many nodes contend
/// (docs/pacifier.md has the numbers).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Most batches that a relay holds, and whose ranks a node knows of a neighbour: 1 to 256. Default 64, which is
    /// 3 MB.
    pub window: u32,
    /// A node that has gained packets reports it after sending nothing for about this long. Default 100 ms, the
    /// airtime of 15 data frames at 2 Mbit/s.
    pub report_interval: Duration,
    /// Plans and complete receivers go out within this time, chosen at random, so that neighbours do not send at
    /// once. Default 40 ms.
    pub gossip: Duration,
    /// A node that lacks something, or whose news no node nearer to the source has repeated, repeats its report after this
    /// time, doubling. Default 200 ms.
    pub repeat_min: Duration,
    /// The longest time between such repeats. Default 1.5 s.
    pub repeat_max: Duration,
    /// After a neighbour has been silent for this long, estimates of what it has received fall back to its last report.
    /// Doubled each time, until it is heard. Default 2 s.
    pub doubt_min: Duration,
    /// The longest such silence. Default 32 s.
    pub doubt_max: Duration,
    /// A relay collects nothing for neighbours that it has not heard for this long; it must be several times
    /// `repeat_max`. Default 10 s.
    pub absent: Duration,
    /// How long a neighbour's urge counts. Default 150 ms.
    pub yielding: Duration,
    /// A node goes first if its urge is at least this part of every neighbour's. Default 0.9.
    pub gate: f32,
    /// A member reaches a neighbour much better than another one if its delivery ratio is at least this many times larger.
    /// It then goes first; members whose ratios are closer share the batches. Default 2.
    pub better: f64,
    /// A frame may be in flight, or wait to be handled, for this long: a neighbour's report does not cover it yet. Default
    /// 10 ms. With `timed`, the initial value until a node has measured the lag.
    pub lag: Duration,
    /// Frames carry stamps and echo those of others, five octets, so that a node measures the lag for each neighbour and
    /// recognizes overtaken reports. All nodes should agree on it. Default false: a radio's listeners have a
    /// frame when it ends.
    pub timed: bool,
    /// A node does not send a frame of which it expects fewer innovative receptions. Default 0.02.
    pub worth_min: f32,
    /// A node does not serve neighbours over links of a lower delivery ratio. Default 0.05, ETX 20.
    pub link_min: f64,
    /// Node numbers stay below this, which bounds the sets in a frame and so the room for the payload. Default
    /// [`NODES_MAX`].
    pub nodes_max: usize,
    /// Most octets of states in a data frame, 1 to 64. A batch that is left out keeps its last reported state; a report
    /// with all of them follows within `report_interval`. Default 64.
    pub data_states: usize,
    /// Members that send in turns repair a batch of which nothing was sent or heard for this long. Default 100 ms: 300 ms and
    /// 1 s gave 3 and 5 % less on twenty outdoor networks.
    pub settled: Duration,
    /// Members that send in turns contend when the source has had nothing new to send for this long: a member may have failed.
    /// Default 20 s, which most transfers do not need: after 1 s twenty outdoor networks got 5 % less.
    pub drained: Duration,
    /// In turns, whether coded batches of an outer code follow those of the object, instead of repairs. Default true.
    pub outer: bool,
    /// Packets in a batch in turns with an outer code, as a multiple of `k`. Default 3.
    pub batch_in_turns: usize,
    /// In turns with an outer code, the frames of a batch that a member sends at most, as a multiple of the plan's. The source sends those of the
    /// plan. Default 1.05.
    pub share: f32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            window: 64,
            report_interval: Duration::from_millis(100),
            gossip: Duration::from_millis(40),
            repeat_min: Duration::from_millis(200),
            repeat_max: Duration::from_millis(1500),
            doubt_min: Duration::from_secs(2),
            doubt_max: Duration::from_secs(32),
            absent: Duration::from_secs(10),
            yielding: Duration::from_millis(150),
            gate: 0.9,
            better: 2.0,
            lag: Duration::from_millis(10),
            timed: false,
            worth_min: 0.02,
            link_min: 0.05,
            nodes_max: NODES_MAX,
            data_states: STATES_MAX,
            settled: Duration::from_millis(100),
            drained: Duration::from_secs(20),
            outer: true,
            batch_in_turns: 3,
            share: 1.05,
        }
    }
}

impl Settings {
    /// The largest window that a node keeps of a neighbour, in batches.
    pub const WINDOW_MAX: u32 = 256;

    fn check(&self) -> Result<(), ConfigError> {
        require_shares(&[
            ("gate", f64::from(self.gate)),
            ("worth_min", f64::from(self.worth_min)),
            ("link_min", self.link_min),
        ])?;
        require_nonzero(&[
            ("improved.window", u64::from(self.window)),
            ("improved.report_interval", self.report_interval.nanos()),
            ("improved.repeat_min", self.repeat_min.nanos()),
            ("improved.doubt_min", self.doubt_min.nanos()),
            ("improved.nodes_max", self.nodes_max as u64),
            ("improved.data_states", self.data_states as u64),
        ])?;
        match self.window <= Settings::WINDOW_MAX {
            true => Ok(()),
            false => Err(ConfigError::Window {
                given: self.window,
                most: Settings::WINDOW_MAX,
            }),
        }
    }
}
