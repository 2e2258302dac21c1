//! `[[fault]]`: what goes wrong, as the simulator takes it.

use std::ops::Range;

use chappe_core::{Dbm, Duration, Ppm};
use chappe_sim::{Bursts, Fault as Strike, Forgery, Jammer, Place, Position};

use super::Topology;
use crate::check::Check;
use crate::format::{FaultKind, FaultTable, ForgeryName, Located};
use crate::input::InputError;
use crate::system::System;

/// A fault before the seed has placed the nodes.
#[derive(Clone, Debug)]
pub enum FaultPlan {
    /// A fault that needs no places.
    Ready(Strike),
    /// A jammer where this node will stand.
    JammerAt {
        /// The node whose place it takes.
        node: usize,
        /// Transmit power of the jammer, in dBm.
        power: Dbm,
        /// Without a pause, or in bursts.
        bursts: Bursts,
        /// How long it transmits.
        lasts: Duration,
    },
}

impl FaultPlan {
    /// The fault among nodes that stand at these places; none for measured links.
    pub fn strike(&self, places: Option<&[Position]>) -> Strike {
        match self {
            FaultPlan::Ready(strike) => strike.clone(),
            &FaultPlan::JammerAt {
                node,
                power,
                bursts,
                lasts,
            } => {
                let at = places.and_then(|places| places.get(node)).copied();
                let place = at.map_or_else(|| Place::Over(vec![node]), Place::At);
                Strike::Jammer(Jammer {
                    place,
                    power,
                    channel: None,
                    bursts,
                    lasts,
                })
            }
        }
    }
}

/// From a moment on a link loses another share of its frames in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossStep {
    /// When, counted from the start of the transfer.
    pub at: Duration,
    /// The node that transmits.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// Share of frames lost in addition to the radios' own losses, 0 to 1.
    pub share: f64,
}

/// What strikes in the simulator.
pub fn plan(
    faults: &[Located<FaultTable>],
    topology: &Topology,
    check: &Check<'_>,
) -> Result<Vec<(Duration, FaultPlan)>, InputError> {
    let planned = |fault: &Located<FaultTable>| {
        let at = check.time(&fault.at)?;
        if *fault.kind == FaultKind::Jammer && matches!(topology, Topology::Channels(_)) {
            let message = "links that differ between channels have no place for a jammer";
            return Err(check
                .at(&fault.kind, "no use here", message)
                .help("corrupt or cut-link; a jammer needs positions"));
        }
        Ok(one(fault, topology.nodes(), check)?.map(|plan| (at, plan)))
    };
    faults
        .iter()
        .map(planned)
        .filter_map(Result::transpose)
        .collect()
}

/// The changes of links' losses, in the order given, for a system that has such losses.
pub fn losses(
    faults: &[Located<FaultTable>],
    topology: &Topology,
    system: &System,
    check: &Check<'_>,
) -> Result<Vec<LossStep>, InputError> {
    let steps = faults
        .iter()
        .filter(|fault| *fault.kind == FaultKind::LinkLoss);
    steps
        .map(|fault| {
            if !system.has_link_loss {
                let message = format!("links have no loss of their own in {}", system.title);
                return Err(check
                    .at(&fault.kind, "no use here", message)
                    .help("cut-link, corrupt or jammer"));
            }
            refuse_unused(fault, check)?;
            let (from, to) = ends(fault, topology.nodes(), check)?;
            let share = fault
                .frame_loss
                .as_ref()
                .ok_or_else(|| missing(fault, "frame_loss", "0.6", check))?;
            if !(0.0..=1.0).contains(&**share) {
                let message = format!("a link cannot lose a share of {} of its frames", **share);
                return Err(check.at(share, "out of range", message).help("0 to 1"));
            }
            Ok(LossStep {
                at: check.time(&fault.at)?,
                from,
                to,
                share: **share,
            })
        })
        .collect()
}

fn missing(fault: &FaultTable, key: &str, example: &str, check: &Check<'_>) -> InputError {
    let message = format!("this fault needs `{key}`");
    check
        .at(&fault.kind, "this kind", message)
        .help(format!("for example {key} = {example}"))
}

fn ends(fault: &FaultTable, nodes: usize, check: &Check<'_>) -> Result<(usize, usize), InputError> {
    let link = fault
        .link
        .as_ref()
        .ok_or_else(|| missing(fault, "link", "[3, 7]", check))?;
    Ok((
        check.node(&link.replaced(link[0]), nodes)?,
        check.node(&link.replaced(link[1]), nodes)?,
    ))
}

/// What one fault strikes in the simulator, if it does: the losses of links are [`losses`]'.
fn one(
    fault: &Located<FaultTable>,
    nodes: usize,
    check: &Check<'_>,
) -> Result<Option<FaultPlan>, InputError> {
    let missing = |key: &str, example: &str| missing(fault, key, example, check);
    let node = || {
        check.node(
            fault.node.as_ref().ok_or_else(|| missing("node", "3"))?,
            nodes,
        )
    };
    let link = || ends(fault, nodes, check);
    refuse_unused(fault, check)?;
    let strike = match *fault.kind {
        FaultKind::Crash => Strike::Crash(node()?),
        FaultKind::Restart => Strike::Restart(node()?),
        FaultKind::CutLink => link().map(|(a, b)| Strike::CutLink(a, b))?,
        FaultKind::RestoreLink => link().map(|(a, b)| Strike::RestoreLink(a, b))?,
        FaultKind::Drift => {
            let drift = fault
                .drift
                .as_ref()
                .ok_or_else(|| missing("drift", "\"40 ppm\""))?;
            Strike::Drift {
                node: node()?,
                ppm: Ppm(drift.value()),
            }
        }
        FaultKind::Corrupt => {
            let rate = fault
                .bit_error_rate
                .as_ref()
                .ok_or_else(|| missing("bit_error_rate", "1e-5"))?;
            if !(0.0..=1.0).contains(&**rate) {
                return Err(check.at(
                    rate,
                    "out of range",
                    "a bit error rate lies between 0 and 1",
                ));
            }
            Strike::CorruptBits {
                node: node()?,
                rate: **rate,
                detected: fault.detected.unwrap_or(false),
            }
        }
        FaultKind::Forge => Strike::Forge {
            node: node()?,
            forgery: match fault.frame.as_deref().copied().unwrap_or_default() {
                ForgeryName::Random => Forgery::Random,
                ForgeryName::Replay => Forgery::Replay,
                ForgeryName::Bent => Forgery::Bent,
            },
        },
        FaultKind::LinkLoss => return Ok(None),
        FaultKind::Jammer => {
            let power = fault
                .power
                .as_ref()
                .ok_or_else(|| missing("power", "\"15 dBm\""))?;
            let lasts = fault
                .lasts
                .as_ref()
                .ok_or_else(|| missing("lasts", "\"10 s\""))?;
            let (power, lasts) = (Dbm(power.value()), check.time(lasts)?);
            return Ok(Some(FaultPlan::JammerAt {
                node: node()?,
                power,
                bursts: bursts(fault, check)?,
                lasts,
            }));
        }
    };
    Ok(Some(FaultPlan::Ready(strike)))
}

/// When a jammer transmits.
fn bursts(fault: &Located<FaultTable>, check: &Check<'_>) -> Result<Bursts, InputError> {
    let (burst, pause) = match (&fault.burst, &fault.pause) {
        (None, None) => return Ok(Bursts::Constant),
        (Some(_), None) => return Err(missing(fault, "pause", "\"45 ms\"", check)),
        (None, Some(_)) => return Err(missing(fault, "burst", "\"5 ms\"", check)),
        (Some(burst), Some(pause)) => (burst, pause),
    };
    let on = check.time(burst)?;
    if on == Duration::ZERO {
        return Err(check.at(burst, "too short", "a burst of no length disturbs nothing"));
    }
    let gap = check.time(pause)?;
    Ok(Bursts::Poisson { gap, on })
}

/// The help for a fault of a link that names a node.
const LINK_INSTEAD: &str = "it needs a link, by its two ends: link = [3, 7]";

/// A key that this kind of fault does not look at is a mistake.
fn refuse_unused(fault: &FaultTable, check: &Check<'_>) -> Result<(), InputError> {
    use FaultKind::{Corrupt, CutLink, Drift, Forge, Jammer, LinkLoss, RestoreLink};
    let kind = *fault.kind;
    let of_link = matches!(kind, CutLink | RestoreLink | LinkLoss);
    let given: [(&str, Option<Range<usize>>, bool); 10] = [
        ("node", fault.node.as_ref().map(Located::span), !of_link),
        ("link", fault.link.as_ref().map(Located::span), of_link),
        (
            "drift",
            fault.drift.as_ref().map(Located::span),
            kind == Drift,
        ),
        (
            "bit_error_rate",
            fault.bit_error_rate.as_ref().map(Located::span),
            kind == Corrupt,
        ),
        (
            "frame_loss",
            fault.frame_loss.as_ref().map(Located::span),
            kind == LinkLoss,
        ),
        (
            "frame",
            fault.frame.as_ref().map(Located::span),
            kind == Forge,
        ),
        (
            "power",
            fault.power.as_ref().map(Located::span),
            kind == Jammer,
        ),
        (
            "lasts",
            fault.lasts.as_ref().map(Located::span),
            kind == Jammer,
        ),
        (
            "burst",
            fault.burst.as_ref().map(Located::span),
            kind == Jammer,
        ),
        (
            "pause",
            fault.pause.as_ref().map(Located::span),
            kind == Jammer,
        ),
    ];
    let unused = given
        .into_iter()
        .find_map(|(key, span, used)| Some((key, span.filter(|_| !used)?)));
    let Some((key, span)) = unused else {
        return Ok(());
    };
    let message = format!("this kind of fault does not use `{key}`");
    let error = check.error(span, "no use here", message);
    Err(match key {
        "node" if fault.link.is_none() => error.help(LINK_INSTEAD),
        "link" if fault.node.is_none() => error.help("it needs a node, such as node = 3"),
        _ => error,
    })
}
