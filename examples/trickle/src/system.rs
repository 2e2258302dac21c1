//! Trickle in scenarios: what they may say of it, and how the lab carries its transfers.

use std::sync::Arc;

use chappe_core::{Address, Instant, Mode, OverMac, Purpose, Rate, Seed};
use chappe_lab::carry::{Carry, Receipt, Report, Running, carry_unprepared};
use chappe_lab::run::RunError;
use chappe_lab::system;
use chappe_mac::dot11::{Config, Dot11};
use chappe_results::DATA_TRANSMISSIONS;
use chappe_scenario::{NoSettings, System, Transfer, Variant};

use crate::protocol::{Node, PAYLOAD};

/// Its line in the table of systems.
pub static TRICKLE: system::System = system::System::new(&SCENARIO, |job, meter| {
    let (seed, transfers) = (Seed(job.network.seed), job.network.transfers.clone());
    carry_unprepared(TrickleRun { seed, transfers }, &job, meter)
});

/// What scenarios may say of it.
pub static SCENARIO: System = System {
    name: "trickle",
    title: "Trickle",
    about: "a flood by Trickle timers (RFC 6206)",
    variants: &[Variant::new("paper", "Trickle")],
    plan: |checked| {
        if let Some(second) = checked.scenario.transfer.get(1) {
            return Err(checked
                .check
                .at(second, "one too many", "Trickle carries one object"));
        }
        // The longest frame: 3 octets of our header and 36 of LLC, 802.11 header and check sequence.
        let frame = (Mode::long(Rate::Dsss2), PAYLOAD + 3 + 36);
        Ok(Arc::new(NoSettings::new(checked, frame)))
    },
    ..System::DOT11B
};

#[derive(Clone)]
struct TrickleRun {
    seed: Seed,
    transfers: Vec<Transfer>,
}

impl Carry for TrickleRun {
    type Node = OverMac<Dot11, Node>;

    fn by(&self) -> (&'static System, &'static Variant) {
        (&SCENARIO, &SCENARIO.variants[0])
    }

    fn station(&self, node: usize, life: u32) -> Result<Box<Self::Node>, RunError> {
        let seed = self.seed.child(life.into());
        let random = |stream: usize| seed.stream(Purpose::Node(stream as u32));
        let (timer, object) = (random(2 * node), &self.transfers[0].object);
        let link = match node == self.transfers[0].source {
            true => Node::with_object(object, timer),
            false => Node::without_object(object.len(), timer),
        };
        let (config, address) = (Config::dot11b(Rate::Dsss2), Address::node(node as u16));
        let mac = Dot11::new(config, address, random(2 * node + 1));
        Ok(Box::new(OverMac::new(mac, link)))
    }

    fn completed(&self, node: &Self::Node) -> Option<Instant> {
        node.link.completed
    }

    fn receipt<'n>(&self, node: &'n Self::Node, _: &Transfer) -> Receipt<'n> {
        Receipt {
            octets: node.link.packets() * PAYLOAD,
            completed_s: node.link.completed.map(|at| at.as_secs_f64()),
            copy: node.link.object(),
            delay: None,
        }
    }

    fn count(&self, running: &dyn Running<Self::Node>, report: &mut Report) {
        for node in 0..running.nodes() {
            let link = &running.node(node).link;
            report.count(DATA_TRANSMISSIONS, link.packets_sent);
            report.count("summaries", link.summaries_sent);
        }
    }
}
