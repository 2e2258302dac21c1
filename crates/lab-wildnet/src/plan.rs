//! WiLDNet's line in the table of systems: keys, variants, and a scenario's masts and links.
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
use crate::layout::{Layout, Unfit};
use crate::masts::{Hop, Masts, Pair, Path};
use crate::scheme::{Card, Load, Scheme, SlotForm};

/// What scenarios may say of WiLDNet: variants, keys, radios, limits.
pub static SYSTEM: System = System {
    name: "wildnet",
    title: "WiLDNet",
    about: "TCP over links of tens of kilometres: slots, bulk acknowledgements, redundancy",
    variants: &[
        scenario::Variant::planned("paper", "WiLDNet"),
        scenario::Variant::new("csma", "802.11"),
        scenario::Variant::new("snoop", "802.11 and Snoop"),
        scenario::Variant::planned("2p", "2P"),
        scenario::Variant::planned("improved", "WiLDNet, improved"),
    ],
    keys: Keys::of::<WildNetKeys>(),
    may_move: false,
    has_mac: false,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: true,
    radios: Radios::Dot11,
    profile: "long-link",
    nodes_max: (64, "a network has this many masts at most"),
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
    /// Which masts are linked, each pair by two radios of their own. If omitted, each mast is linked to the next. Links form a tree: a
    /// chain, a star, or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<Located<[usize; 2]>>>,
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

/// Masts and their links, as a scenario describes them.
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
    /// Positions of the masts.
    pub sites: Vec<Position>,
    /// Which masts are linked.
    pub layout: Layout,
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
            let help = "network.positions = [[\"0 km\", \"0 km\"], [\"60 km\", \"0 km\"]], a position for each mast";
            return Err(check
                .at(&checked.scenario.network, "without positions", message)
                .help(help));
        };
        let layout = layout(protocol, places.len(), checked)?;
        apart(places, checked)?;
        for transfer in &checked.scenario.transfer {
            ends(transfer, checked)?;
        }
        if let Some(one) = checked.scenario.transfer.get(TRANSFERS_MAX) {
            let message = format!("WiLDNet carries {TRANSFERS_MAX} transfers at most");
            return Err(check.at(one, "one too many", message));
        }
        faults::check(checked.scenario, &layout, check)?;
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
            layout,
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

    /// The masts as a trial, with a pair of hosts for each of `pairs`.
    pub fn masts(&self, profile: &chappe_sim::Profile, pairs: Vec<Pair>) -> Masts {
        let steps = LinkTrace::Steps(vec![(AirTime::ZERO, 1.0 - self.frame_loss)]);
        let law = (self.frame_loss > 0.0).then_some(LossLaw::Trace(steps));
        let hop = |&(a, b): &(usize, usize)| Hop {
            km: distance(self.sites[a], self.sites[b]) / 1e3,
            law: law.clone(),
            channel: Channel(profile.channel.0),
        };
        let hops = self.layout.links().iter().map(hop).collect();
        Masts {
            layout: self.layout.clone(),
            path: Path::Pairs(pairs),
            snoop: self.variant == Variant::Snoop,
            gain: Db(profile.antennas.0 / 2.0),
            profile: Masts::profile(profile.clone()),
            sites: Some(self.sites.clone()),
            ..Masts::line(self.scheme(), hops, Load::Tcp, Duration::ZERO)
        }
    }

    /// The most that the slowest transfer can get, whatever the channel access: full segments back to back. Each transfer has the
    /// octets of its object, its source and its receiver.
    ///
    /// No mast receives while one of its radios sends. So all octets have crossed a mast no earlier than those of the radio that
    /// receives most and those of the radio that sends most take one after the other, back to back. Of the transfers that cross it,
    /// the one that ends last has at most the octets of the largest.
    pub fn bound_bps(&self, transfers: &[(usize, usize, usize)]) -> f64 {
        // A segment of 1448 octets takes 1536 in 802.11 with IPv4 and LLC, and no gap between frames.
        let air = MODE.airtime(1536).as_secs_f64();
        let radios = self.layout.radios();
        let (mut sent, mut received) = (vec![0; radios], vec![0; radios]);
        let mut largest = vec![0; self.layout.masts()];
        for &(octets, from, to) in transfers {
            for radio in self.layout.way(from, to) {
                sent[radio] += octets;
                received[radio ^ 1] += octets;
                for mast in [radio, radio ^ 1].map(|radio| self.layout.mast_of(radio)) {
                    largest[mast] = octets.max(largest[mast]);
                }
            }
        }
        let most = |of: &[usize], mast| {
            let radios = self.layout.radios_at(mast).into_iter();
            radios.map(|radio| of[radio]).max().unwrap_or(0)
        };
        let share = |mast: usize| match most(&sent, mast) + most(&received, mast) {
            0 => 1.0,
            total => largest[mast] as f64 / total as f64,
        };
        let least = (0..self.layout.masts()).map(share).fold(1.0, f64::min);
        1448.0 * 8.0 / air * least
    }
}

/// Most transfers: each has two hosts with half a megabyte of TCP's memory.
const TRANSFERS_MAX: usize = 64;

/// The links that a scenario gives, or a line. Fails with the place of the link that does not fit.
fn layout(
    keys: &WildNetKeys,
    masts: usize,
    checked: &CheckedScenario<'_>,
) -> Result<Layout, InputError> {
    let check = checked.check;
    let Some(links) = &keys.links else {
        return Ok(Layout::line(masts.saturating_sub(1)));
    };
    let ends = links.iter().map(|link| (link[0], link[1])).collect();
    Layout::new(masts, ends).map_err(|unfit| {
        let error =
            |place: usize, label: &str, message: String| check.at(&links[place], label, message);
        match unfit {
            Unfit::NoMast(place) => {
                let message = format!("there are {masts} masts, and a link names another one");
                error(place, "no such mast", message)
                    .help(format!("0 to {}", masts.saturating_sub(1)))
            }
            Unfit::Loop(place) => error(place, "both ends", "a link needs two masts".into()),
            Unfit::Ring(place) => {
                let message = "this link closes a ring: a way leads between its masts already";
                error(place, "a second way", message.into()).help(
                    "links form a tree, so that one way leads from each mast to each other one",
                )
            }
            Unfit::Apart(mast) => {
                let message = format!("no way leads from mast 0 to mast {mast}");
                match links.last() {
                    Some(last) => check.at(last, "the last link", message),
                    None => check.at(&checked.scenario.network, "without links", message),
                }
                .help(format!("link it to another one: [0, {mast}]"))
            }
        }
    })
}

/// Refuses two masts at one place: their radios would be those of one mast.
fn apart(places: &[Position], checked: &CheckedScenario<'_>) -> Result<(), InputError> {
    for (mast, place) in places.iter().enumerate() {
        if let Some(other) = places[..mast].iter().position(|other| other == place) {
            let message = format!("masts {other} and {mast} stand at the same place");
            return Err(checked
                .check
                .at(&checked.scenario.network, "one place", message)
                .help("a mast may have several links: list them in protocol.links"));
        }
    }
    Ok(())
}

/// The distance between two positions, in m.
fn distance(a: Position, b: Position) -> f64 {
    libm::hypot(b.x - a.x, b.y - a.y)
}

/// Refuses a transfer that does not lead from one mast to another. Unknown masts are reported by the plan.
fn ends(
    transfer: &Located<TransferTable>,
    checked: &CheckedScenario<'_>,
) -> Result<(), InputError> {
    let fits = match (&*transfer.receivers, &transfer.source) {
        (Receivers::Nodes(list), Some(source)) => list.len() == 1 && list[0] != **source,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let message = "a transfer leads from one mast to one other";
    let help = "source = 0 and receivers = [1]; write a transfer for each receiver";
    Err(checked
        .check
        .at(&transfer.receivers, "not one other mast", message)
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

    fn links(&self, _: usize, _: &[f64]) -> Option<Vec<(usize, usize)>> {
        Some(self.layout.links().to_vec())
    }
}
