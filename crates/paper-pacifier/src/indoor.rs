//! An indoor network like the paper's testbed (V-A): 22 nodes in two buildings.
//!
//! The testbed's map is not public, so this is a network of the same kind, not the same network:
//!
//! | what | value | source |
//! |---|---|---|
//! | nodes | 22, half in each building; floors are not modelled | V-A |
//! | buildings | 90 m by 30 m, 15 m apart | our choice: campus buildings |
//! | path loss | 40 dB at 1 m, exponent from the longest path, see [`exponent`] | free space at 2.4 GHz; V-C: 1 to 6 hops |
//! | shadowing | 7 dB | the same, table 4.6: offices with hard partitions |
//! | fading | Rayleigh, 1 ms | V-A: no line of sight, multipath |
//! | radio | 16 dBm, antennas of 2 dBi, 2 Mbit/s, no RTS | V-A, V-C |
//! | object, packets | 2.3 MB, 1460 B | V-C |
//!
//! The paper's days differ because "the quality of some links varies substantially from day to day": our second day
//! keeps the places and redraws all shadowing. The exponent stands for walls and floors, which are not modelled one by
//! one. Figure 8 compares the links with the testbed's.

use std::fmt::Write as _;
use std::sync::OnceLock;

use chappe_core::{Purpose, Seed};
use chappe_pacifier::Links;
use chappe_scenario::InputError;
use chappe_scenario::Network;
use chappe_scenario::Plan;

use crate::links::LinkStatistics;
use chappe_lab_pacifier::SYSTEM;

/// The seed of the nodes' places, and of the shadowing on the first day.
const BUILDING: u64 = 22;

/// The number of nodes (V-A).
const NODES: usize = 22;

/// The length of the testbed's longest shortest ETX path, in hops (V-C).
pub const HOPS: u16 = 6;

/// Path loss exponents inside obstructed buildings, in tenths, from the lowest (Rappaport, *Wireless
/// Communications*, 2nd ed., table 4.2).
const EXPONENTS: std::ops::RangeInclusive<u32> = 40..=60;

/// The plan of the indoor scenarios. A seed selects source and receivers.
pub fn plan(bytes: usize, day: u8) -> Result<Plan, InputError> {
    plan_with(bytes, day, exponent()?)
}

/// The plan of an object of `bytes` on a day, and its network of a seed.
pub fn planned(bytes: usize, day: u8, seed: u64) -> Result<(Plan, Network), InputError> {
    let plan = plan(bytes, day)?;
    let network = plan.network(seed)?;
    Ok((plan, network))
}

/// The smallest path loss exponent, in tenths, for which the longest shortest ETX path of the first day has [`HOPS`]
/// hops. With a smaller one, our network would be better connected than the testbed.
pub fn exponent() -> Result<u32, InputError> {
    static FOUND: OnceLock<u32> = OnceLock::new();
    if let Some(&found) = FOUND.get() {
        return Ok(found);
    }
    for tenths in EXPONENTS {
        let plan = plan_with(1, 1, tenths)?;
        // A day without enough receivers has no statistics; larger exponents would have fewer still.
        let network = plan.network(BUILDING)?;
        let links = Links::new(NODES, network.delivery);
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

/// Positions in metres: two buildings side by side along x. Floors 4 m apart are not modelled: they change distances by
/// less than the unknown positions do.
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
