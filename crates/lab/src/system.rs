//! What a system that a scenario can name gives the lab: a [`System`] with a [`Carrier`].
//!
//! The lab knows no system by name. Whoever reads a scenario says which systems it may name; the command says all of
//! them (`chappe-lab-all`), a paper's figures their own. The first one is meant where a scenario names none. What keys of
//! `[protocol]` there are stands in [`scenario::Protocol`](crate::scenario::Protocol), since a file has one form.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use chappe_core::Mode;
use chappe_sim::Profile;

use crate::input::InputError;
use crate::nearest::nearest;
use crate::plan::{Check, Ground, Plan, Stage};
use crate::run::{Meter, Outcome, RunError};
use crate::scenario::{Located, Protocol, Scenario, Source};

/// What is the same for every scenario of a system.
#[derive(Debug)]
pub struct System {
    /// Its name in scenario files and results.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Its forms; the first one is meant where a scenario names none.
    pub variants: &'static [Variant],
    /// The keys of `[protocol]` that it reads, beside `system` and `variant`.
    pub keys: &'static [&'static str],
    /// Whether it reads `[mac]`.
    pub has_mac: bool,
    /// Which radios it is for.
    pub radios: Radios,
    /// The profile of `[radio]` where a scenario names none.
    pub profile: &'static str,
    /// Most nodes, and the reason in a sentence's beginning: `Pacifier names nodes by one octet`.
    pub nodes_max: (usize, &'static str),
    /// Whether a node may be the source of several transfers, and the receiver of several.
    pub shares_ends: bool,
    /// Makes what carries the data, or says what is wrong.
    pub plan: fn(&Draft<'_>) -> Result<Arc<dyn Carrier>, InputError>,
}

/// One form of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in scenario files and results.
    pub name: &'static str,
    /// Its name in tables and figures.
    pub label: &'static str,
}

/// A family of radios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radios {
    /// 802.11b.
    Dot11b,
    /// 802.15.4 at 2.4 GHz.
    Dot15d4,
}

/// A scenario of which everything is checked but the system's own part.
pub struct Draft<'a> {
    /// As it was written.
    pub scenario: &'a Scenario,
    /// Which of the system's variants.
    pub variant: &'static Variant,
    /// The physics.
    pub profile: &'a Profile,
    /// Where the nodes stand, or their links.
    pub ground: &'a Ground,
    /// Makes errors that point into the scenario.
    pub check: &'a Check<'a>,
}

/// What carries the data in one plan: a system with its parameters.
pub trait Carrier: Any + Debug + Send + Sync {
    /// The system.
    fn system(&self) -> &'static System;

    /// The variant.
    fn variant(&self) -> &'static Variant;

    /// System and radio as they stand over a table: `Pacifier (2 Mbit/s)`.
    fn label(&self) -> String;

    /// How the shortest data frame is sent, and its octets with all headers: what delivery ratios are asked for.
    fn frame(&self) -> (Mode, usize);

    /// Whether it carries traffic without an end (`[[flow]]`), too.
    fn carries_flows(&self) -> bool {
        false
    }

    /// Carries a stage's transfers. Advances the meter by two [`WORK`](crate::run::WORK): one when everything is
    /// prepared, one in the course of the transfer. Says [`RunError::Defect`] if more arrived than the bound allows.
    fn run(&self, job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError>;
}

/// One seed to run.
#[derive(Debug)]
pub struct Job<'a> {
    /// What is the same for all seeds.
    pub plan: &'a Plan,
    /// The network and transfers of this one.
    pub stage: Stage,
    /// Whether the receivers' copies are wanted.
    pub copies: bool,
    /// Where to write every frame, if that is wanted.
    pub pcap: Option<&'a Path>,
}

impl Variant {
    /// A line of [`System::variants`].
    pub const fn new(name: &'static str, label: &'static str) -> Variant {
        Variant { name, label }
    }
}

impl System {
    /// The form that stands in `forms` where `variant` stands among [`variants`](System::variants); the first one if it is another
    /// system's.
    pub fn form<F: Copy, const N: usize>(&self, variant: &Variant, forms: [F; N]) -> F {
        let mut pairs = self.variants.iter().zip(forms);
        let found = pairs.find(|(row, _)| *row == variant);
        found.map_or(forms[0], |(_, form)| form)
    }

    /// The one of `systems` that a scenario names; an error that points into `source` if it is none of them.
    pub fn of(
        protocol: &Protocol,
        systems: &[&'static System],
        source: &Source,
    ) -> Result<&'static System, InputError> {
        let Some(given) = &protocol.system else {
            let first = systems.first().copied();
            return first.ok_or_else(|| InputError::new(source.name(), "no system is known"));
        };
        let known = || systems.iter().map(|system| system.name);
        let found = systems.iter().find(|system| system.name == &***given);
        found.copied().ok_or_else(|| {
            let help = match nearest(given, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("unknown name `{}`", &***given);
            let error = source.error(given.span(), "unknown name", message);
            error.help(help)
        })
    }

    /// The variant that a scenario names.
    pub(crate) fn variant_of(
        &'static self,
        protocol: &Protocol,
        check: &Check<'_>,
    ) -> Result<&'static Variant, InputError> {
        let Some(given) = &protocol.variant else {
            return Ok(&self.variants[0]);
        };
        let known = || self.variants.iter().map(|variant| variant.name);
        let found = self
            .variants
            .iter()
            .find(|variant| variant.name == &***given);
        found.ok_or_else(|| {
            let help = match nearest(given, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "variants of {}: {}",
                    self.name,
                    known().collect::<Vec<_>>().join(", ")
                ),
            };
            check
                .at(
                    given,
                    "unknown name",
                    format!("unknown name `{}`", &***given),
                )
                .help(help)
        })
    }

    /// Refuses keys that only others of `systems` read.
    pub(crate) fn refuse_unread(
        &self,
        systems: &[&'static System],
        scenario: &Scenario,
        check: &Check<'_>,
    ) -> Result<(), InputError> {
        for (key, span) in scenario.protocol.given() {
            if self.keys.contains(&key) {
                continue;
            }
            let owner = systems.iter().find(|other| other.keys.contains(&key));
            let message = format!("`{key}` means nothing for the system {}", self.name);
            let error = check.error(span, "no use here", message);
            return Err(match owner {
                Some(owner) => error.help(format!("it belongs to system = \"{}\"", owner.name)),
                None => error,
            });
        }
        if let Some(mac) = scenario.mac.as_ref().filter(|_| !self.has_mac) {
            let message = format!("{} has no [mac] to set", self.title);
            return Err(check.at(mac, "no use here", message));
        }
        Ok(())
    }
}

/// Profiles of 802.11b: those of a neighbourhood, and that of long links.
const DOT11B: [&str; 5] = {
    let [a, b, c, d] = Profile::NAMES;
    let [long] = Profile::NAMES_LONG;
    [a, b, c, d, long]
};

impl Radios {
    /// Its name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Radios::Dot11b => "802.11b",
            Radios::Dot15d4 => "802.15.4",
        }
    }

    /// Whether a profile is of this family.
    pub fn match_profile(self, profile: &Profile) -> bool {
        profile.dot15d4.is_some() == (self == Radios::Dot15d4)
    }

    /// The names of its profiles.
    pub const fn profiles(self) -> &'static [&'static str] {
        match self {
            Radios::Dot11b => &DOT11B,
            Radios::Dot15d4 => &Profile::NAMES_DOT15D4,
        }
    }

    /// The channels that a scenario may name.
    pub const fn channels(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Radios::Dot11b => 1..=14,
            Radios::Dot15d4 => 11..=26,
        }
    }
}

/// Where a key of `[protocol]` stands, if it is given.
pub fn span_of<T>(key: &Option<Located<T>>) -> Option<std::ops::Range<usize>> {
    key.as_ref().map(Located::span)
}
