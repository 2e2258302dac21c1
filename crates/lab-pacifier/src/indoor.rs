//! An indoor network like the paper's testbed (V-A): 22 nodes in two buildings.
//!
//! The testbed's map is not public, so this is a network of the same kind, not the same network:
//!
//! | what | value | source |
//! |---|---|---|
//! | nodes | 22, half in each building; floors are not modelled | V-A |
//! | buildings | 90 m by 30 m, 15 m apart | a judgement: campus buildings |
//! | path loss | 40 dB at 1 m, exponent from the longest path, see [`exponent`] | free space at 2.4 GHz; V-C: 1 to 6 hops |
//! | shadowing | 7 dB | the same, table 4.6: offices with hard partitions |
//! | fading | Rayleigh, 1 ms | V-A: no line of sight, multipath |
//! | radio | 16 dBm, antennas of 2 dBi, 2 Mbit/s, no RTS | V-A, V-C |
//! | object, packets | 2.3 MB, 1460 B | V-C |
//!
//! The paper's days differ because "the quality of some links varies substantially from day to day": our second day
//! keeps the places and draws all shadowing anew. Walls and floors are in the exponent, not drawn one by one. What
//! the links are like stands beside the testbed's in Figure 8.

use std::fmt::Write as _;
use std::sync::OnceLock;

use chappe_core::{Purpose, Seed};
use chappe_pacifier::Links;
use chappe_scenario::InputError;
use chappe_scenario::Plan;

use super::SYSTEM;
use super::links::LinkStatistics;

/// The seed of the building: the nodes' places, and the shadowing between them on the first day.
const BUILDING: u64 = 22;

/// Nodes.
const NODES: usize = 22;

/// The longest of the testbed's shortest ETX paths, in hops (V-C).
pub const HOPS: u16 = 6;

/// Path loss exponents inside obstructed buildings, in tenths, from the lowest (Rappaport, *Wireless
/// Communications*, 2nd ed., table 4.2).
const EXPONENTS: std::ops::RangeInclusive<u32> = 40..=60;

/// The plan of the indoor scenarios; the seed of a stage decides source and receivers.
pub fn plan(bytes: usize, day: u8) -> Result<Plan, InputError> {
    plan_with(bytes, day, exponent()?)
}

/// The smallest exponent, in tenths, with which the longest shortest ETX path of the first day has the testbed's
/// [`HOPS`]. With smaller ones our buildings would be better connected than the testbed's.
pub fn exponent() -> Result<u32, InputError> {
    static FOUND: OnceLock<u32> = OnceLock::new();
    if let Some(&found) = FOUND.get() {
        return Ok(found);
    }
    for tenths in EXPONENTS {
        let plan = plan_with(1, 1, tenths)?;
        // A day without enough receivers has no statistics; larger exponents would have fewer still.
        let stage = plan.network(BUILDING)?;
        let links = Links::new(NODES, stage.delivery);
        if links.is_ok_and(|links| LinkStatistics::of(&links).hops_max >= HOPS) {
            return Ok(*FOUND.get_or_init(|| tenths));
        }
    }
    Ok(*FOUND.get_or_init(|| *EXPONENTS.end()))
}

fn plan_with(bytes: usize, day: u8, tenths: u32) -> Result<Plan, InputError> {
    let seed = BUILDING + u64::from(day) - 1;
    let exponent = f64::from(tenths) / 10.0;
    let mut places = String::new();
    for [x, y] in places_of(BUILDING) {
        let _ = write!(places, "[\"{x:.1} m\", \"{y:.1} m\"], ");
    }
    let text = format!(
        r#"
title = "Pacifier, indoor network"
[network]
positions = [{places}]
seed = {seed}
[radio]
profile = "chappe-physical"
tx_power = "16 dBm"
antenna_gains = "4 dB"
path_loss = "log-distance"
exponent = {exponent:.1}
reference_loss = "40 dB"
shadowing = "7 dB"
fading = "rayleigh"
rate = "2 Mbit/s"
[protocol]
payload = "1460 B"
[[transfer]]
receivers = 4
bytes = "{bytes} B"
"#
    );
    Plan::parse(&[&SYSTEM], "indoor", &text)
}

/// Places in metres: buildings side by side along x. The floors' 4 m change distances by less than the places'
/// own uncertainty and are left out.
fn places_of(seed: u64) -> Vec<[f64; 2]> {
    let mut random = Seed(seed).stream(Purpose::Topology);
    let mut place = |node: usize| {
        let building = if node < NODES / 2 { 0.0 } else { 90.0 + 15.0 };
        [
            building + random.fraction() * 90.0,
            random.fraction() * 30.0,
        ]
    };
    (0..NODES).map(&mut place).collect()
}
