//! What carries an object over long links in a scenario: masts in a line, and TCP between the first and the last.

use std::sync::Arc;

use chappe_core::{Channel, Db, Duration, Mode, Rate};
use chappe_lab::input::InputError;
use chappe_lab::plan::{Ground, Plan};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::scenario::{Located, Receivers, Transfer};
use chappe_lab::system::{self, Carrier, Draft, Job, Radios, System};
use chappe_sim::{AirTime, LinkTrace, LossLaw, Position};
use chappe_wildnet::{Recovery, Service};

use super::carry::carry;
use super::masts::{Hop, Masts};
use super::trial::{Card, Form, Load, Scheme};

/// Its line in the table of systems.
pub static SYSTEM: System = System {
    name: "wildnet",
    title: "WiLDNet",
    about: "TCP over links of tens of kilometres: slots, bulk acknowledgements, redundancy",
    variants: &Variant::ROWS,
    keys: &["slot", "frame_loss", "frame_retries"],
    has_mac: false,
    radios: Radios::Dot11b,
    profile: "long-link",
    nodes_max: (64, "a line of masts is at most so long"),
    shares_ends: true,
    plan: |draft| Ok(Arc::new(WildNet::new(draft)?)),
};

/// How the links are shared and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As in the paper: slots of one length, bulk acknowledgements.
    Paper,
    /// 802.11, whose wait for acknowledgements follows the distance.
    Csma,
    /// 802.11 with a Snoop agent at each end.
    Snoop,
    /// Slots that end with markers, nothing repeated.
    TwoPhase,
    /// Slots by demand, one controller, repairs in unused time.
    Improved,
}

impl Variant {
    /// All of them, in the order of the enum.
    pub const ALL: [Variant; 5] = [
        Variant::Paper,
        Variant::Csma,
        Variant::Snoop,
        Variant::TwoPhase,
        Variant::Improved,
    ];

    const ROWS: [system::Variant; 5] = [
        system::Variant::new("paper", "WiLDNet"),
        system::Variant::new("csma", "802.11"),
        system::Variant::new("snoop", "802.11 and Snoop"),
        system::Variant::new("2p", "2P"),
        system::Variant::new("improved", "WiLDNet, improved"),
    ];

    fn named(row: &system::Variant) -> Variant {
        SYSTEM.form(row, Variant::ALL)
    }

    fn row(self) -> &'static system::Variant {
        &SYSTEM.variants[self as usize]
    }

    /// Its name in tables and figures.
    pub fn label(self) -> &'static str {
        self.row().label
    }
}

/// A line of masts with everything that a scenario says about it.
#[derive(Clone, Debug)]
pub struct WildNet {
    /// Which form.
    pub variant: Variant,
    /// Length of a slot; 20 ms in most of the paper's measurements.
    pub slot: Duration,
    /// Share of frames that each link loses beside what its radios do.
    pub frame_loss: f64,
    /// Repetitions of 802.11 (two in the paper), or most of a slot's bulk acknowledgements; none given: no limit.
    pub retries: Option<u8>,
    /// Where the masts stand, in the order of the line.
    pub sites: Vec<Position>,
}

/// How all data frames are sent.
const MODE: Mode = Mode::long(Rate::Cck11);
/// Octets of a full frame with all headers.
const FRAME: usize = 1596;

impl WildNet {
    fn new(draft: &Draft<'_>) -> Result<WildNet, InputError> {
        let protocol = &draft.scenario.protocol;
        let check = draft.check;
        let Ground::Positions { places, .. } = draft.ground else {
            let message = "WiLDNet's masts need places: distance and direction matter";
            let help = "network.positions = [[\"0 km\", \"0 km\"], [\"60 km\", \"0 km\"]], one mast after the other";
            return Err(check
                .at(&draft.scenario.network, "without positions", message)
                .help(help));
        };
        for transfer in &draft.scenario.transfer {
            ends(transfer, places.len(), draft)?;
        }
        if draft.scenario.transfer.len() > 2 {
            let third = &draft.scenario.transfer[2];
            let message = "a line carries one transfer in each direction";
            return Err(check.at(third, "one too many", message));
        }
        super::faults::check(draft.scenario, check)?;
        if let Some(rate) = &draft.scenario.radio.rate
            && rate.value() != 11e6
        {
            let message = format!("WiLDNet's frames have 11 Mbit/s, not {}", **rate);
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
                    let message = format!("slots of {} are of no use", **given);
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
                    .at(given, "too many", format!("{} repetitions", **given))
                    .help("255 at most")
            })?),
        };
        Ok(WildNet {
            variant: Variant::named(draft.variant),
            slot,
            frame_loss,
            retries,
            sites: places.clone(),
        })
    }

    /// What a plan of this system carries its data with, in another variant.
    pub fn of(plan: &Plan, variant: Variant) -> Result<WildNet, RunError> {
        let own: &WildNet = plan.carrier_as()?;
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
            Variant::Paper => slots(Recovery::Acks, Service::retries(self.retries), Form::Even),
            Variant::TwoPhase => slots(Recovery::None, Service::retries(Some(0)), Form::Markers),
            Variant::Improved => {
                let service = Service {
                    retries: self.retries,
                    ..Service::RELIABLE
                };
                slots(Recovery::Improved { fill: true }, service, Form::Demand)
            }
        }
    }

    /// The line as seen from the source of the first transfer.
    pub fn masts(&self, profile: &chappe_sim::Profile, (reversed, both): (bool, bool)) -> Masts {
        let mut sites = self.sites.clone();
        if reversed {
            sites.reverse();
        }
        let steps = LinkTrace::Steps(vec![(AirTime::ZERO, 1.0 - self.frame_loss)]);
        let law = (self.frame_loss > 0.0).then_some(LossLaw::Trace(steps));
        let hop = |pair: &[Position]| Hop {
            km: metres(pair[0], pair[1]) / 1e3,
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

    /// What no channel access exceeds: full segments back to back, half of that where a relay must hear them first.
    pub fn bound_bps(&self, both: bool) -> f64 {
        let air = MODE.airtime(1536).as_secs_f64();
        let shared = if self.sites.len() > 2 || both {
            2.0
        } else {
            1.0
        };
        1448.0 * 8.0 / air / shared
    }
}

fn metres(a: Position, b: Position) -> f64 {
    libm::hypot(b.x - a.x, b.y - a.y)
}

/// Refuses a transfer that does not lead from one end of the line to the other.
fn ends(transfer: &Located<Transfer>, masts: usize, draft: &Draft<'_>) -> Result<(), InputError> {
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
    Err(draft
        .check
        .at(&transfer.receivers, "not the other end", message)
        .help(help))
}

impl Carrier for WildNet {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn variant(&self) -> &'static system::Variant {
        self.variant.row()
    }

    fn label(&self) -> String {
        format!("{} (11 Mbit/s)", self.variant.label())
    }

    fn frame(&self) -> (Mode, usize) {
        (MODE, FRAME)
    }

    fn run(&self, job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
        meter.expect(2 * WORK);
        meter.advance(WORK);
        let outcome = carry(self, &job, meter)?;
        let over = |bound: &chappe_lab::results::Bound| bound.fraction > 1.0;
        match outcome.run.bounds.iter().any(over) {
            true => Err(RunError::Defect(
                "more arrived than the radios can send".into(),
            )),
            false => Ok(outcome),
        }
    }
}
