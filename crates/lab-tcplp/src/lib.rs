//! TCPlp: TCP on motes. [`scene`] is the network that its experiments run on; [`PAPER`] what is made of it.

mod carry;
mod demo;
mod figure10;
mod figure11;
mod figure12;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure7;
mod figure8;
mod figure9;
mod flow;
mod frames;
mod ground;
mod hops;
mod improved;
mod limits;
pub mod live;
mod lln;
mod loss;
mod paper;
pub mod plan;
mod role;
pub mod scene;
pub mod sheet;
pub mod station;
pub mod study;
mod table3;
mod table4;
mod table5;
mod table6;
mod table7;
mod table9;
#[cfg(test)]
mod tests;
mod times;

#[cfg(test)]
mod scenario_tests;

use chappe_core::Duration;
use chappe_tcplp::lowpan::Config;

use scene::Scene;

pub use demo::DEMO;
pub use paper::PAPER;
pub use plan::{SYSTEM, Tcplp};

/// Its line in the table of systems.
pub static TCPLP: chappe_lab::system::System = chappe_lab::system::System {
    scenario: &SYSTEM,
    carry: plan::run,
    paper: Some(&PAPER),
    demo: Some(&DEMO),
};

/// A scene whose sources get out of the way of their own frames, with the standard's most retries.
///
/// A full frame keeps its neighbourhood busy for 7.2 ms a hop (the paper's Figure 4a); load, mean back-off, assessment and
/// turnaround come before it.
pub fn paced(mut scene: Scene) -> Scene {
    let hops = (0..scene.nodes()).map(|node| scene.hops(node)).max();
    let us = Duration::from_micros;
    let lead = us(960 + 1120 + 128 + 192);
    scene.pace = Config::pace_over(hops.unwrap_or(1).min(255) as u8, us(7200), lead);
    scene.mac.retries = 7;
    scene
}
