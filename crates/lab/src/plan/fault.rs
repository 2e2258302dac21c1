//! `[[fault]]`: what goes wrong, as the simulator takes it.

use std::ops::Range;

use chappe_core::{Dbm, Duration, Ppm};
use chappe_sim::{Bursts, Fault as Strike, Jammer, Place, Position};

use super::{Check, Ground};
use crate::input::InputError;
use crate::scenario::{Fault, FaultKind, Located};

/// A fault before the seed has placed the nodes.
#[derive(Clone, Debug)]
pub enum FaultPlan {
    /// Complete.
    Ready(Strike),
    /// A jammer where this node will stand.
    JammerAt {
        /// The node.
        node: usize,
        /// Transmit power.
        power: Dbm,
        /// How long.
        lasts: Duration,
    },
}

impl FaultPlan {
    /// The fault among nodes that stand at these places; none for measured links.
    pub fn strike(&self, places: Option<&[Position]>) -> Strike {
        match self {
            FaultPlan::Ready(strike) => strike.clone(),
            &FaultPlan::JammerAt { node, power, lasts } => {
                let at = places.and_then(|places| places.get(node)).copied();
                let place = at.map_or_else(|| Place::Over(vec![node]), Place::At);
                Strike::Jammer(Jammer {
                    place,
                    power,
                    channel: None,
                    bursts: Bursts::Constant,
                    lasts,
                })
            }
        }
    }
}

pub fn plan(
    faults: &[Located<Fault>],
    ground: &Ground,
    check: &Check<'_>,
) -> Result<Vec<(Duration, FaultPlan)>, InputError> {
    faults
        .iter()
        .map(|fault| Ok((check.time(&fault.at)?, one(fault, ground.nodes(), check)?)))
        .collect()
}

fn one(fault: &Located<Fault>, nodes: usize, check: &Check<'_>) -> Result<FaultPlan, InputError> {
    let missing = |key: &str, example: &str| {
        let message = format!("this fault needs `{key}`");
        check
            .at(&fault.kind, "this kind", message)
            .help(format!("for example {key} = {example}"))
    };
    let node = || {
        check.node(
            fault.node.as_ref().ok_or_else(|| missing("node", "3"))?,
            nodes,
        )
    };
    let link = || {
        let link = fault
            .link
            .as_ref()
            .ok_or_else(|| missing("link", "[3, 7]"))?;
        Ok((
            check.node(&link.replaced(link[0]), nodes)?,
            check.node(&link.replaced(link[1]), nodes)?,
        ))
    };
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
            return Ok(FaultPlan::JammerAt {
                node: node()?,
                power,
                lasts,
            });
        }
    };
    Ok(FaultPlan::Ready(strike))
}

/// A key that this kind of fault does not look at is a mistake.
fn refuse_unused(fault: &Fault, check: &Check<'_>) -> Result<(), InputError> {
    use FaultKind::{Corrupt, CutLink, Drift, Jammer, RestoreLink};
    let kind = *fault.kind;
    let of_link = matches!(kind, CutLink | RestoreLink);
    let given: [(&str, Option<Range<usize>>, bool); 6] = [
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
            "power",
            fault.power.as_ref().map(Located::span),
            kind == Jammer,
        ),
        (
            "lasts",
            fault.lasts.as_ref().map(Located::span),
            kind == Jammer,
        ),
    ];
    let unused = given
        .into_iter()
        .find_map(|(key, span, used)| Some((key, span.filter(|_| !used)?)));
    match unused {
        Some((key, span)) => Err(check.error(
            span,
            "no use here",
            format!("this kind of fault does not use `{key}`"),
        )),
        None => Ok(()),
    }
}
