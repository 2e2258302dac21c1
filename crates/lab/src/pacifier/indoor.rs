//! An indoor network like the paper's testbed (V-A): 22 nodes in two buildings.
//!
//! The testbed's map is not public, so this is a network of the same kind, not the same network:
//!
//! | what | value | source |
//! |---|---|---|
//! | nodes | 22, half in each building; floors are not modelled | V-A |
//! | buildings | 90 m by 30 m, 15 m apart | a judgement: campus buildings |
//! | path loss | exponent 4, 40 dB at 1 m | Rappaport, *Wireless Communications*, 2nd ed., table 4.2: 4 to 6 for obstructed in buildings; free space at 2.4 GHz |
//! | shadowing | 7 dB | the same, table 4.6: offices with hard partitions |
//! | fading | Rayleigh, 1 ms | V-A: no line of sight, multipath |
//! | radio | 16 dBm, antennas of 2 dBi, 2 Mbit/s, no RTS | V-A, V-C |
//! | object, packets | 2.3 MB, 1460 B | V-C |
//!
//! The paper's four days differ because its links changed; our days differ in the fading only. Walls and floors
//! are in the exponent, not drawn one by one.

use std::fmt::Write as _;

use chappe_core::{Purpose, Seed};

use crate::input::InputError;
use crate::plan::Plan;

/// The seed of the building: the nodes' places and the shadowing between them.
const BUILDING: u64 = 22;

/// Nodes.
const NODES: usize = 22;

/// The plan of the indoor scenarios; the seed of a stage decides source and receivers.
pub fn plan(bytes: usize, day: u8) -> Result<Plan, InputError> {
    let seed = BUILDING + u64::from(day) - 1;
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
exponent = 4.0
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
    Plan::parse("indoor", &text)
}

/// Places in metres: buildings side by side along x. The floors' 4 m change distances by less than the places'
/// own uncertainty and are left out.
fn places_of(seed: u64) -> Vec<[f64; 2]> {
    let mut random = Seed(seed).stream(Purpose::Topology);
    let mut place = |node: usize| {
        let building = if node < NODES / 2 { 0.0 } else { 90.0 + 15.0 };
        [building + random.fraction() * 90.0, random.fraction() * 30.0]
    };
    (0..NODES).map(&mut place).collect()
}
