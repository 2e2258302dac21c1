//! What a scenario may name: a [`System`] with its variants, and the keys of `[protocol]` that are its own.
//!
//! This crate knows no system. The caller passes the ones that a scenario may name; a scenario that names none gets the
//! first one.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use chappe_core::Mode;
use chappe_sim::Profile;

use crate::check::Check;
use crate::format::{ProtocolTable, Scenario, Source};
use crate::input::InputError;
use crate::keys::{Given, Keys};
use crate::nearest::nearest;
use crate::plan::Topology;

pub use crate::format::span_of;
pub use crate::radios::Radios;

/// What is the same for every scenario of a system.
#[derive(Debug)]
pub struct System {
    /// Its name in scenario files and results.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Its variants; the first one is the default.
    pub variants: &'static [Variant],
    /// The keys of `[protocol]` that it reads, in addition to `system` and `variant`.
    pub keys: Keys,
    /// Whether its nodes may move: it finds out about links while it runs, instead of planning with those of the start.
    pub may_move: bool,
    /// Whether it reads `[mac]`.
    pub has_mac: bool,
    /// Whether its packets have priorities, so that `[mac]` may choose among channel access methods.
    pub has_priorities: bool,
    /// Whether it carries `[[flow]]`, traffic without an end.
    pub carries_flows: bool,
    /// Whether its links lose frames in addition to the radios' own losses, so that a fault may change that loss.
    pub has_link_loss: bool,
    /// The family of radios that it is made for.
    pub radios: Radios,
    /// The profile of `[radio]` where a scenario names none.
    pub profile: &'static str,
    /// The largest number of nodes, and the reason as the beginning of a sentence: `Pacifier names nodes by one octet`.
    pub nodes_max: (usize, &'static str),
    /// Whether a node may be the source of several transfers, and the receiver of several.
    pub shares_ends: bool,
    /// Turns the scenario into the system's settings, or reports what is wrong with it.
    pub plan: fn(&CheckedScenario<'_>) -> Result<Arc<dyn Settings>, InputError>,
}

/// One variant of a system: the paper's protocol, a baseline, or an improved one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in scenario files and results.
    pub name: &'static str,
    /// Its name in tables and figures.
    pub label: &'static str,
    /// Whether its nodes sense the carrier before they send.
    pub senses_carrier: bool,
}

/// A scenario that is checked except for the system's own part.
pub struct CheckedScenario<'a> {
    /// The scenario as it was written.
    pub scenario: &'a Scenario,
    /// The variant that the scenario names, or the first one.
    pub variant: &'static Variant,
    /// The physics of the radios: the profile with the changes of `[radio]`.
    pub profile: &'a Profile,
    /// Where the nodes stand, or their links.
    pub topology: &'a Topology,
    /// Makes errors that point into the scenario.
    pub check: &'a Check<'a>,
    /// The system's own keys, see [`CheckedScenario::keys`].
    pub(crate) given: &'a Given,
}

impl CheckedScenario<'_> {
    /// The system's own keys of `[protocol]`: the type that [`System::keys`] was made of.
    ///
    /// # Panics
    ///
    /// If `K` is another type than that. The system's own tests show it.
    pub fn keys<K: 'static>(&self) -> &K {
        let keys: Option<&K> = self.given.value.downcast_ref();
        keys.expect("a system asks for the type of its own keys")
    }
}

/// A system with its parameters, as one scenario has them.
pub trait Settings: Any + Debug + Send + Sync {
    /// The variant that runs.
    fn variant(&self) -> &'static Variant;

    /// Variant and radio for the title of a table: `Pacifier (2 Mbit/s)`.
    fn label(&self) -> String;

    /// How the shortest data frame is sent, and its octets with all headers. Delivery ratios are computed for it.
    fn frame(&self) -> (Mode, usize);

    /// Share of packets that a link loses for good whose radios lose this share of frames: with the losses that the scenario
    /// declares in keys of the system, which delivery ratios do not contain, and after the system's own repetitions. None is
    /// lost for good by a system that repeats until something arrives.
    fn unrepaired(&self, frame_loss: f64) -> f64 {
        let _ = frame_loss;
        0.0
    }

    /// The pairs of nodes between which the system sends, if it keeps to some of the links, for example to a tree: among so many
    /// nodes with these delivery ratios (row-major, from each node to each). `None` if it may use all.
    fn links(&self, nodes: usize, delivery: &[f64]) -> Option<Vec<(usize, usize)>> {
        let _ = (nodes, delivery);
        None
    }
}

/// Settings of a system without any: every scenario has the same ones.
#[derive(Clone, Copy, Debug)]
pub struct NoSettings {
    /// The variant that the scenario names.
    pub variant: &'static Variant,
    /// How the shortest data frame is sent, see [`Settings::frame`].
    pub frame: (Mode, usize),
}

impl NoSettings {
    /// The settings of a checked scenario whose shortest data frame is sent like `frame`.
    pub fn new(checked: &CheckedScenario<'_>, frame: (Mode, usize)) -> NoSettings {
        let variant = checked.variant;
        NoSettings { variant, frame }
    }
}

impl Settings for NoSettings {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn label(&self) -> String {
        format!("{} ({})", self.variant.label, self.frame.0.rate)
    }

    fn frame(&self) -> (Mode, usize) {
        self.frame
    }
}

impl Variant {
    /// A line of [`System::variants`]: nodes that sense the carrier before they send.
    pub const fn new(name: &'static str, label: &'static str) -> Variant {
        Variant {
            name,
            label,
            senses_carrier: true,
        }
    }

    /// The same with nodes that send at planned times and do not sense the carrier.
    pub const fn planned(name: &'static str, label: &'static str) -> Variant {
        Variant {
            senses_carrier: false,
            ..Variant::new(name, label)
        }
    }

    /// Whether it is the paper's own protocol. Every system calls that `paper`.
    pub fn is_paper(&self) -> bool {
        self.name == "paper"
    }

    /// Whether it is the one that is to beat the paper. Every system calls that `improved`.
    pub fn is_improved(&self) -> bool {
        self.name == "improved"
    }
}

impl System {
    /// A system on 802.11b that reads neither `[mac]` nor any other key, for `..System::DOT11B`.
    pub const DOT11B: System = System {
        name: "",
        title: "",
        about: "",
        variants: &[],
        keys: Keys::NONE,
        may_move: false,
        has_mac: false,
        has_priorities: false,
        carries_flows: false,
        has_link_loss: false,
        radios: Radios::Dot11,
        profile: "chappe-physical",
        nodes_max: (65_535, "two octets number the nodes"),
        shares_ends: false,
        plan: |checked| {
            let error = "a system without a plan";
            Err(checked.check.error(0..0, "", error))
        },
    };

    /// The same on 802.15.4.
    pub const DOT15D4: System = System {
        radios: Radios::Dot15d4,
        profile: "cc2420-indoor",
        ..System::DOT11B
    };
}

/// A system's own enum of its variants, in the order of [`System::variants`].
pub trait Variants: Copy + PartialEq + 'static {
    /// The system whose variants these are.
    const SYSTEM: &'static System;
    /// All variants, in the order of [`System::variants`].
    const ALL: &'static [Self];

    /// The variant of a row; the first one if it is another system's row.
    fn of(row: &Variant) -> Self {
        let mut rows = Self::SYSTEM.variants.iter().zip(Self::ALL);
        rows.find(|(own, _)| *own == row)
            .map_or(Self::ALL[0], |(_, variant)| *variant)
    }

    /// Its row in [`System::variants`].
    fn row(self) -> &'static Variant {
        let place = Self::ALL.iter().position(|variant| *variant == self);
        &Self::SYSTEM.variants[place.unwrap_or_default()]
    }

    /// Its name in scenario files and results.
    fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name in tables and figures.
    fn label(self) -> &'static str {
        self.row().label
    }
}

impl System {
    /// The one of `systems` that a scenario names; an error that points into `source` if it is none of them.
    pub fn of(
        protocol: &ProtocolTable,
        systems: &[&'static System],
        source: &Source,
    ) -> Result<&'static System, InputError> {
        let Some(given) = &protocol.system else {
            let first = systems.first().copied();
            return first.ok_or_else(|| InputError::new(source.name(), "no system is known"));
        };
        let known: Vec<&str> = systems.iter().map(|system| system.name).collect();
        let found = systems.iter().find(|system| system.name == &***given);
        found.copied().ok_or_else(|| {
            let message = format!("unknown name `{}`", &***given);
            let error = source.error(given.span(), "unknown name", message);
            error.help(suggestion(given, &known, "known here"))
        })
    }

    /// The variant that a scenario names.
    pub(crate) fn variant_of(
        &'static self,
        protocol: &ProtocolTable,
        check: &Check<'_>,
    ) -> Result<&'static Variant, InputError> {
        let Some(given) = &protocol.variant else {
            return Ok(&self.variants[0]);
        };
        let known: Vec<&str> = self.variants.iter().map(|variant| variant.name).collect();
        let mut variants = self.variants.iter();
        let found = variants.find(|variant| variant.name == &***given);
        found.ok_or_else(|| {
            let message = format!("unknown name `{}`", &***given);
            let all = format!("variants of {}", self.name);
            let error = check.at(given, "unknown name", message);
            error.help(suggestion(given, &known, &all))
        })
    }

    /// The system's own keys. A key of another one of `systems` is refused with the name of its owner.
    pub(crate) fn keys_of(
        &self,
        systems: &[&'static System],
        source: &Source,
    ) -> Result<Given, InputError> {
        let own = self.keys.names();
        for (key, span) in source.keys_of("protocol")? {
            let is_name = ["system", "variant", "name"].contains(&key.as_str());
            if is_name || own.contains(&key.as_str()) {
                continue;
            }
            let Some(owner) = systems
                .iter()
                .find(|other| other.keys.names().contains(&key.as_str()))
            else {
                continue;
            };
            let message = format!("`{key}` means nothing for the system {}", self.name);
            let error = source.error(span.clone(), "no use here", message);
            return Err(error.help(format!("it belongs to system = \"{}\"", owner.name)));
        }
        self.keys.read(source)
    }

    /// Refuses keys of `[mac]` if the system does not read them. An empty table says nothing, so it is no mistake.
    pub(crate) fn refuse_mac(
        &self,
        scenario: &Scenario,
        check: &Check<'_>,
    ) -> Result<(), InputError> {
        let keys = check.source().keys_of("mac")?;
        let (Some(mac), false) = (&scenario.mac, self.has_mac || keys.is_empty()) else {
            return Ok(());
        };
        let message = format!("{} does not read [mac]", self.title);
        let keys: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
        let help = format!("leave out the table: {}", keys.join(", "));
        Err(check.at(mac, "no use here", message).help(help))
    }
}

fn suggestion(given: &str, known: &[&'static str], all: &str) -> String {
    match nearest(given, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{all}: {}", known.join(", ")),
    }
}
