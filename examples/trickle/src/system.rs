//! Trickle as a system: what scenarios may say of it, and how the lab carries its transfers.

use chappe_core::{Address, Instant, Mode, OverMac, Purpose, Rate, Seed};
use chappe_lab::carry::{Carry, Receipt, Report, Running, carry_unprepared};
use chappe_lab::{run::RunError, system};
use chappe_mac::dot11::{Config, Dot11};
use chappe_scenario::{InputError, NoSettings, System, Transfer, Variant};

use crate::protocol::{Node, OBJECT_MAX, PAYLOAD};

/// A packet with its header of 3 octets; LLC, 802.11 header and check sequence add 36.
const FRAME: (Mode, usize) = (Mode::long(Rate::Dsss2), PAYLOAD + 3 + 36);

/// What scenarios may say of Trickle.
pub static SCENARIO: System = System {
    name: "trickle",
    title: "Trickle",
    about: "a flood by Trickle timers (RFC 6206)",
    variants: &[Variant::new("paper", "Trickle")],
    may_move: true,
    plan: |checked| match (checked.check, checked.scenario.transfer.get(1)) {
        (check, Some(second)) => Err(check.at(second, "too many", "Trickle carries one object")),
        _ => Ok(std::sync::Arc::new(NoSettings::new(checked, FRAME))),
    },
    ..System::DOT11B
};

/// How the lab runs it: its line in the table of systems.
pub static TRICKLE: system::System = system::System::new(&SCENARIO, |job, meter| {
    if job.plan.octets() > OBJECT_MAX {
        return Err(InputError::new("trickle", "an object has at most 8 MiB").into());
    }
    let transfer = job.network.transfers[0].clone();
    carry_unprepared(TrickleRun(Seed(job.network.seed), transfer), &job, meter)
});

#[derive(Clone)]
struct TrickleRun(Seed, Transfer);

impl Carry for TrickleRun {
    type Node = OverMac<Dot11, Node>;

    fn by(&self) -> (&'static System, &'static Variant) {
        (&SCENARIO, &SCENARIO.variants[0])
    }

    fn station(&self, node: usize, life: u32) -> Result<Box<Self::Node>, RunError> {
        let TrickleRun(seed, Transfer { source, object, .. }) = self;
        let stream = |own| seed.child(life.into()).stream(Purpose::Node(own));
        let (timer, backoff) = (stream(2 * node as u32), stream(2 * node as u32 + 1));
        let link = match node == *source {
            true => Node::with_object(object, timer),
            false => Node::without_object(object.len(), timer),
        };
        let address = Address::node(node as u16);
        let mac = Dot11::new(Config::dot11b(Rate::Dsss2), address, backoff);
        Ok(Box::new(OverMac::new(mac, link)))
    }

    fn completed(&self, node: &Self::Node) -> Option<Instant> {
        node.link.completed
    }

    fn receipt<'n>(&self, node: &'n Self::Node, _: &Transfer) -> Receipt<'n> {
        Receipt {
            octets: node.link.packets() * PAYLOAD,
            completed_s: node.link.completed.map(Instant::as_secs_f64),
            copy: node.link.object(),
            delay: None,
        }
    }

    fn count(&self, running: &dyn Running<Self::Node>, report: &mut Report) {
        for node in 0..running.nodes() {
            let [summaries, packets] = running.node(node).link.sent;
            report.count("summaries", summaries);
            report.count(chappe_results::DATA_TRANSMISSIONS, packets);
        }
    }
}
