//! A system that carries nothing: for tests of what all systems share.

use std::sync::Arc;

use chappe_core::{Mode, Rate};

use crate::input::InputError;
use crate::keys::Keys;
use crate::plan::{NetworkPlan, Plan};
use crate::system::{Radios, Settings, System, Variant};

/// Its line in a table of systems.
pub static IDLE: System = System {
    name: "idle",
    title: "Idle",
    about: "nothing",
    variants: &[Variant::new("paper", "Idle")],
    keys: Keys::NONE,
    may_move: true,
    has_mac: true,
    has_priorities: false,
    carries_flows: false,
    has_link_loss: false,
    radios: Radios::Dot11,
    profile: "chappe-physical",
    nodes_max: (256, "Idle names nodes by one octet"),
    shares_ends: false,
    plan: |_| Ok(Arc::new(Idle)),
};

#[derive(Debug)]
struct Idle;

impl Settings for Idle {
    fn variant(&self) -> &'static Variant {
        &IDLE.variants[0]
    }

    fn label(&self) -> String {
        IDLE.title.into()
    }

    fn frame(&self) -> (Mode, usize) {
        (Mode::long(Rate::Dsss2), 1564)
    }
}

/// The plan of a scenario's text that names no other system.
///
/// # Panics
///
/// If the text is not a scenario.
pub fn plan(text: &str) -> Plan {
    plan_or_error(text).unwrap()
}

/// The plan of such a text, or what is wrong with it.
pub fn plan_or_error(text: &str) -> Result<Plan, InputError> {
    Plan::parse(&[&IDLE], "test", text)
}

/// The network of such a text.
///
/// # Panics
///
/// If the text is not a scenario.
pub fn network(text: &str) -> NetworkPlan {
    NetworkPlan::parse(&[&IDLE], "test", text).unwrap()
}
