//! WiLDNet's line in the table of systems: keys, variants, and a scenario's line of masts.
//!
//! Constants of the radio that the bound needs stand here too.

use std::sync::Arc;

use chappe_core::{Channel, Db, Duration, Mode, Rate};
use chappe_lab::run::RunError;
use chappe_lab::system::settings;
use chappe_scenario::format::{Located, Receivers, TransferTable};
use chappe_scenario::quantity::Time;
use chappe_scenario::{
    self as scenario, CheckedScenario, InputError, Keys, Plan, Radios, Settings, System, Topology,
    Variants,
};
use chappe_sim::{AirTime, LinkTrace, LossLaw, Position};
use chappe_wildnet::{Recovery, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::faults;
use crate::masts::{Hop, Masts};
use crate::scheme::{Card, Load, Scheme, SlotForm};

/// What scenarios may say of WiLDNet: variants, keys, radios, limits.
pub static SYSTEM: System = System {
    name: "wildnet",
    title: "WiLDNet",
    about: "TCP over links of tens of kilometres: slots, bulk acknowledgements, redundancy",
    variants: &[
        scenario::Variant::new("paper", "WiLDNet"),
        scenario::Variant::new("csma", "802.11"),
        scenario::Variant::new("snoop", "802.11 and Snoop"),
        scenario::Variant::new("2p", "2P"),
        scenario::Variant::new("improved", "WiLDNet, improved"),
    ],
    keys: Keys::of::<WildNetKeys>(),
    may_move: false,
    has_mac: false,
    senses_carrier: true,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: true,
    radios: Radios::Dot11,
    profile: "long-link",
    nodes_max: (64, "a line has this many masts at most"),
    shares_ends: true,
    plan: |scenario| Ok(Arc::new(WildNet::new(scenario)?)),
};

/// WiLDNet's keys of `[protocol]`. Defaults are the paper's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WildNetKeys {
    /// Length of a slot; 20 ms if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Located<Time>>,
    /// Share of frames that each link loses in addition to radio losses: interference that is not modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_loss: Option<Located<f64>>,
    /// The most retransmissions of a frame; unlimited if omitted, two with 802.11.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_retries: Option<Located<usize>>,
}

/// How the links are shared and losses repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The paper's WiLDNet: slots of equal length, bulk acknowledgements.
    Paper,
    /// Plain 802.11, with an ACK timeout that follows the distance.
    Csma,
    /// Plain 802.11 with a Snoop agent at each end.
    Snoop,
    /// 2P: slots that end with markers, without retransmissions.
    TwoPhase,
    /// The improved variant: slots by demand, one controller, repairs in unused slot time.
    Improved,
}

impl Variants for Variant {
    const SYSTEM: &'static System = &SYSTEM;
    const ALL: &'static [Variant] = &[
        Variant::Paper,
        Variant::Csma,
        Variant::Snoop,
        Variant::TwoPhase,
        Variant::Improved,
    ];
}

/// A line of masts, as a scenario describes it.
#[derive(Clone, Debug)]
pub struct WildNet {
    /// How links are shared and repaired.
    pub variant: Variant,
    /// Length of a slot; 20 ms in most of the paper's measurements.
    pub slot: Duration,
    /// Share of frames that each link loses in addition to radio losses.
    pub frame_loss: f64,
    /// The most retransmissions of a frame. If `None`, two for 802.11, and unlimited for WiLDNet.
    pub retries: Option<u8>,
    /// Positions of the masts, in the order of the line.
    pub sites: Vec<Position>,
}

/// Mode of all data frames: 11 Mbit/s, long preamble.
const MODE: Mode = Mode::long(Rate::Cck11);
/// Octets of a full frame, with all headers.
const FRAME: usize = 1596;

impl WildNet {
    fn new(checked: &CheckedScenario<'_>) -> Result<WildNet, InputError> {
        let protocol = checked.keys::<WildNetKeys>();
        let check = checked.check;
        let Topology::Positions { places, .. } = checked.topology else {
            let message = "WiLDNet's masts need positions: distance and direction matter";
            let help = "network.positions = [[\"0 km\", \"0 km\"], [\"60 km\", \"0 km\"]], one mast after the other";
            return Err(check
                .at(&checked.scenario.network, "without positions", message)
                .help(help));
        };
        for transfer in &checked.scenario.transfer {
            ends(transfer, places.len(), checked)?;
        }
        if checked.scenario.transfer.len() > 2 {
            let third = &checked.scenario.transfer[2];
            let message = "a line carries one transfer in each direction";
            return Err(check.at(third, "one too many", message));
        }
        if let [first, second] = &checked.scenario.transfer[..]
            && first.source.as_deref() == second.source.as_deref()
        {
            let message = "both transfers lead in one direction";
            return Err(check
                .at(&second.receivers, "the same way", message)
                .help("a line carries one transfer in each direction"));
        }
        faults::check(checked.scenario, check)?;
        if let Some(rate) = &checked.scenario.radio.rate
            && rate.value() != 11e6
        {
            let message = format!("WiLDNet sends at 11 Mbit/s, not {}", **rate);
            return Err(check.at(rate, "no choice here", message));
        }
        let frame_loss = match &protocol.frame_loss {
            None => 0.0,
            Some(loss) if (0.0..1.0).contains(&**loss) => **loss,
            Some(loss) => {
                let message = format!("a link cannot lose a share of {} of its frames", **loss);
                return Err(check
                    .at(loss, "out of range", message)
                    .help("0 or more, below 1"));
            }
        };
        let slot = match &protocol.slot {
            None => Duration::from_millis(20),
            Some(given) => {
                let slot = check.time(given)?;
                if !(Duration::from_millis(4)..=Duration::from_millis(500)).contains(&slot) {
                    let message = format!("slots of {} are not supported", **given);
                    let help = "4 ms (two full frames) to 500 ms";
                    return Err(check.at(given, "out of range", message).help(help));
                }
                slot
            }
        };
        let retries = match &protocol.frame_retries {
            None => None,
            Some(given) => Some(u8::try_from(**given).map_err(|_| {
                check
                    .at(given, "too many", format!("{} retries", **given))
                    .help("255 at most")
            })?),
        };
        Ok(WildNet {
            variant: Variant::of(checked.variant),
            slot,
            frame_loss,
            retries,
            sites: places.clone(),
        })
    }

    /// The settings of a plan, with another variant. Fails if the plan belongs to another system.
    pub fn of(plan: &Plan, variant: Variant) -> Result<WildNet, RunError> {
        let own: &WildNet = settings(plan)?;
        Ok(WildNet {
            variant,
            ..own.clone()
        })
    }

    fn scheme(&self) -> Scheme {
        let slots = |recovery, service, form| Scheme::Slots {
            slot: self.slot,
            recovery,
            service,
            form,
        };
        match self.variant {
            Variant::Csma | Variant::Snoop => Scheme::Csma {
                retries: Some(self.retries.unwrap_or(2)),
                card: Card::Short,
            },
            Variant::Paper => slots(
                Recovery::Acks,
                Service::retries(self.retries),
                SlotForm::Even,
            ),
            Variant::TwoPhase => {
                slots(Recovery::None, Service::retries(Some(0)), SlotForm::Markers)
            }
            Variant::Improved => {
                let service = Service {
                    retries: self.retries,
                    ..Service::RELIABLE
                };
                slots(Recovery::Improved { fill: true }, service, SlotForm::Demand)
            }
        }
    }

    /// The line as a trial, seen from the source of the first transfer: `reversed` if that is the last mast.
    pub fn masts(&self, profile: &chappe_sim::Profile, (reversed, both): (bool, bool)) -> Masts {
        let mut sites = self.sites.clone();
        if reversed {
            sites.reverse();
        }
        let steps = LinkTrace::Steps(vec![(AirTime::ZERO, 1.0 - self.frame_loss)]);
        let law = (self.frame_loss > 0.0).then_some(LossLaw::Trace(steps));
        let hop = |pair: &[Position]| Hop {
            km: distance(pair[0], pair[1]) / 1e3,
            law: law.clone(),
            channel: Channel(profile.channel.0),
        };
        let hops = sites.windows(2).map(hop).collect();
        Masts {
            both,
            snoop: self.variant == Variant::Snoop,
            gain: Db(profile.antennas.0 / 2.0),
            profile: Masts::profile(profile.clone()),
            sites: Some(sites),
            ..Masts::line(self.scheme(), hops, Load::Tcp, Duration::ZERO)
        }
    }

    /// The most that the slowest of transfers with so many octets can get, whatever the channel access: full segments back to back.
    ///
    /// Where a relay sends what it received, each way gets half of that. On a single link two ways share it: all octets have
    /// crossed no earlier than back-to-back frames allow, and the transfer that ends last has at most the octets of the larger one.
    pub fn bound_bps(&self, octets: &[usize]) -> f64 {
        // A segment of 1448 octets takes 1536 in 802.11 with IPv4 and LLC, and no gap between frames.
        let air = MODE.airtime(1536).as_secs_f64();
        let total: usize = octets.iter().sum();
        let largest = octets.iter().copied().max().unwrap_or_default();
        let share = match (self.sites.len() > 2, total) {
            (true, _) => 0.5,
            (false, 0) => 1.0,
            (false, total) => largest as f64 / total as f64,
        };
        1448.0 * 8.0 / air * share
    }
}

/// The distance between two positions, in m.
fn distance(a: Position, b: Position) -> f64 {
    libm::hypot(b.x - a.x, b.y - a.y)
}

/// Refuses a transfer that does not lead from one end of the line to the other.
fn ends(
    transfer: &Located<TransferTable>,
    masts: usize,
    checked: &CheckedScenario<'_>,
) -> Result<(), InputError> {
    let source = transfer.source.as_ref().map(|source| **source);
    let fits = match (&*transfer.receivers, source) {
        (Receivers::Nodes(list), Some(0)) => *list == [masts - 1],
        (Receivers::Nodes(list), Some(source)) => source == masts - 1 && *list == [0],
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let message = "a transfer leads from one end of the line of masts to the other";
    let help = format!(
        "source = 0 and receivers = [{last}], or source = {last} and receivers = [0]",
        last = masts - 1
    );
    Err(checked
        .check
        .at(&transfer.receivers, "not the other end", message)
        .help(help))
}

impl Settings for WildNet {
    fn variant(&self) -> &'static scenario::Variant {
        self.variant.row()
    }

    fn label(&self) -> String {
        format!("{} (11 Mbit/s)", self.variant.label())
    }

    fn frame(&self) -> (Mode, usize) {
        (MODE, FRAME)
    }

    /// A packet is lost if its frame and all retransmissions are.
    fn unrepaired(&self, frame_loss: f64) -> f64 {
        let arrives = (1.0 - frame_loss) * (1.0 - self.frame_loss);
        let lost = |retries: u8| (1.0 - arrives).powi(1 + i32::from(retries));
        match self.scheme() {
            Scheme::Csma { retries, .. } => lost(retries.unwrap_or(0)),
            Scheme::Slots {
                recovery: Recovery::None,
                ..
            } => lost(0),
            Scheme::Slots { service, .. } => service.retries.map_or(0.0, lost),
        }
    }
}
