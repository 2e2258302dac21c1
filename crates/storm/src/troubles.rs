//! Random faults, each with what ends it.

use chappe_core::Stream;

use crate::draft::{Line, Trouble, plain, quoted};
use crate::options::logarithmic;

/// Most troubles of a scenario.
const TROUBLES_MAX: u64 = 16;
/// Most forged frames of one trouble.
const FORGED_MAX: u64 = 40;
/// Troubles begin within this time and end within as much more.
const BEGIN_MS: f64 = 20_000.0;
/// The share of troubles that are never repaired.
const LASTING: f64 = 0.05;
/// Clocks of the cheapest crystals are wrong by 100 ppm.
const DRIFT_MAX: u64 = 100;

/// Draws what goes wrong among `nodes` nodes. `own_losses`: whether links have losses of their own that can change.
pub fn draw(nodes: usize, own_losses: bool, random: &mut Stream) -> Vec<Trouble> {
    // A third of all scenarios is calm: what fails in them needs no trouble.
    let most = if random.chance(0.33) { 0 } else { TROUBLES_MAX };
    let count = random.below(most + 1);
    (0..count)
        .map(|_| one(nodes as u64, own_losses, random))
        .collect()
}

fn one(nodes: u64, own_losses: bool, random: &mut Stream) -> Trouble {
    let from = logarithmic(1.0, BEGIN_MS, random) as u64;
    let until = from + logarithmic(1.0, BEGIN_MS, random) as u64;
    let node = random.below(nodes);
    let other = (node + 1 + random.below(nodes - 1)) % nodes;
    let strike = |at: u64, kind: &str, more: Vec<Line>| {
        let mut lines = vec![quoted("at", format!("{at} ms")), quoted("kind", kind)];
        lines.extend(more);
        lines
    };
    let at_node = || vec![plain("node", node)];
    let link = || vec![plain("link", format!("[{node}, {other}]"))];
    let heals = !random.chance(LASTING);
    let pair = |begin: Vec<Line>, end: Vec<Line>| {
        let mut strikes = vec![begin];
        strikes.extend(heals.then_some(end));
        Trouble {
            strikes,
            heals,
            falsifies: false,
        }
    };
    match random.below(if own_losses { 8 } else { 7 }) {
        0 => pair(
            strike(from, "crash", at_node()),
            strike(until, "restart", at_node()),
        ),
        1 => pair(
            strike(from, "cut-link", link()),
            strike(until, "restore-link", link()),
        ),
        2 => {
            let ppm = random.below(2 * DRIFT_MAX + 1) as i64 - DRIFT_MAX as i64;
            let drift = quoted("drift", format!("{ppm} ppm"));
            Trouble {
                strikes: vec![strike(from, "drift", [at_node(), vec![drift]].concat())],
                heals: true,
                falsifies: false,
            }
        }
        3 => {
            let detected = random.chance(0.7);
            let rate = 10f64.powf(-6.0 + 4.0 * random.fraction());
            let errors = |rate: f64| {
                let more = vec![
                    plain("bit_error_rate", format!("{rate:e}")),
                    plain("detected", detected),
                ];
                [at_node(), more].concat()
            };
            let end = strike(until, "corrupt", errors(0.0));
            let mut trouble = pair(strike(from, "corrupt", errors(rate)), end);
            trouble.falsifies = !detected;
            trouble
        }
        4 => {
            let more = vec![
                quoted("power", format!("{} dBm", random.below(40) as i64 - 20)),
                quoted("lasts", format!("{} ms", until - from)),
            ];
            Trouble {
                strikes: vec![strike(from, "jammer", [at_node(), more].concat())],
                heals: true,
                falsifies: false,
            }
        }
        5 | 6 => forged(from, nodes, random, strike),
        _ => {
            let share = |share: f64| plain("frame_loss", share);
            pair(
                strike(
                    from,
                    "link-loss",
                    [
                        link(),
                        vec![share((random.fraction() * 10.0).floor() / 10.0)],
                    ]
                    .concat(),
                ),
                strike(until, "link-loss", [link(), vec![share(0.0)]].concat()),
            )
        }
    }
}

/// A salvo of forged frames at random nodes.
fn forged(
    from: u64,
    nodes: u64,
    random: &mut Stream,
    strike: impl Fn(u64, &str, Vec<Line>) -> Vec<Line>,
) -> Trouble {
    let form = ["random", "replay", "bent"][random.below(3) as usize];
    let mut at = from;
    let strikes = (0..1 + random.below(FORGED_MAX)).map(|_| {
        at += random.below(300);
        let more = vec![plain("node", random.below(nodes)), quoted("frame", form)];
        strike(at, "forge", more)
    });
    Trouble {
        strikes: strikes.collect(),
        heals: true,
        falsifies: true,
    }
}
