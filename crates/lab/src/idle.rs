//! A system that carries nothing, for tests of what all systems share.

use std::sync::Arc;

use chappe_core::{Mode, Rate};

use crate::plan::{NetworkPlan, Plan};
use crate::run::{Meter, Outcome, RunError};
use crate::system::{Carrier, Job, Radios, System, Variant};

/// Its line in a table of systems.
pub static SYSTEM: System = System {
    name: "idle",
    title: "Idle",
    about: "nothing",
    variants: &[Variant::new("paper", "Idle")],
    keys: &[],
    has_mac: true,
    radios: Radios::Dot11b,
    profile: "chappe-physical",
    nodes_max: (256, "Idle names nodes by one octet"),
    shares_ends: false,
    plan: |_| Ok(Arc::new(Idle)),
};

#[derive(Debug)]
struct Idle;

impl Carrier for Idle {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn variant(&self) -> &'static Variant {
        &SYSTEM.variants[0]
    }

    fn label(&self) -> String {
        SYSTEM.title.into()
    }

    fn frame(&self) -> (Mode, usize) {
        (Mode::long(Rate::Dsss2), 1564)
    }

    fn run(&self, _: Job<'_>, _: &Meter) -> Result<Outcome, RunError> {
        Err(RunError::Defect("it carries nothing".into()))
    }
}

/// A plan of a scenario's text that names no other system.
pub fn plan(text: &str) -> Plan {
    Plan::parse(&[&SYSTEM], "test", text).unwrap()
}

/// The network of such a text.
pub fn network(text: &str) -> NetworkPlan {
    NetworkPlan::parse(&[&SYSTEM], "test", text).unwrap()
}
