//! The simulation set-up (pacifier IV-A): 50 nodes uniform in a square kilometre, one source, nine receivers.
//!
//! | what | value | source |
//! |---|---|---|
//! | simulator | GloMoSim, its radio and its fading law | IV-A; the law read from its code (physics report 4.4) |
//! | transmit power | 7.87 dBm | two-ray loss at 250 m is 88.87 dB, the receiver's threshold -81 dBm: the "average radio propagation range" of 250 m |
//! | carrier sense | -91 dBm | GloMoSim's default; mean power reaches it at 445 m (the paper says 460 m on average) |
//! | object, packets, batch | 12 MB, 1500 B, 32 | IV-A |
//! | MAC | 802.11b DCF, 2 Mbit/s, no RTS | IV-A; V-C for RTS |
//!
//! Open in the paper: whether 250 m is the range of the mean power or an average over fading. We take the mean
//! power. Receivers are drawn among the nodes that links of at least 10 % lead to.

use crate::input::InputError;
use crate::plan::Plan;

/// The plan of the outdoor scenarios; the seed of a stage decides which one.
pub fn plan(bytes: usize, rayleigh: bool) -> Result<Plan, InputError> {
    let fading = if rayleigh { "rayleigh" } else { "glomosim" };
    let text = format!(
        r#"
title = "Pacifier, simulation"
[network]
generator = "random"
nodes = 50
area = ["1000 m", "1000 m"]
[radio]
profile = "glomosim"
fading = "{fading}"
tx_power = "7.87 dBm"
rate = "2 Mbit/s"
[[transfer]]
receivers = 9
bytes = "{bytes} B"
"#
    );
    Plan::parse("outdoor", &text)
}
