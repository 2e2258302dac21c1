//! Protocols written in Python as systems that a scenario may name.
//!
//! A system of the lab lasts as long as the program, so what is registered is never freed. A class that is registered again under
//! its name, as notebooks do, replaces the older one and takes no more memory.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chappe::systems::SYSTEMS;
use chappe_core::{Address, Bitrate, Instant, Mode, OverMac, Purpose, Rate, Seed};
use chappe_lab::carry::{Carry, Receipt, Report, Running, carry_unprepared};
use chappe_lab::run::RunError;
use chappe_lab::system;
use chappe_mac::dot11::{Config, Dot11};
use chappe_scenario::{CheckedScenario, InputError, Plan, Settings, System, Transfer, Variant};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::node::{Node, Raised, Station};

/// Octets that LLC, the header of 802.11 and the check sequence add to what a node sends.
const AROUND: usize = 36;

/// A class of nodes, with what the lab must know of it.
struct Registered {
    class: Py<PyAny>,
    mode: Mode,
    /// The largest frame of the protocol, in octets without headers.
    octets: usize,
    scenario: &'static System,
}

/// What Python registered, and the table of all systems with them.
struct Registry {
    entries: Vec<Registered>,
    table: &'static [&'static system::System],
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn registry() -> MutexGuard<'static, Option<Registry>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All systems: those of the command, and those registered.
pub fn table() -> &'static [&'static system::System] {
    registry().as_ref().map_or(SYSTEMS, |known| known.table)
}

/// Makes a class of nodes known as a system. `octets` is the largest frame that a node sends, `rate_bps` the rate of all frames.
#[pyfunction]
pub fn register(
    name: &str,
    title: &str,
    about: &str,
    rate_bps: u64,
    octets: usize,
    class: Py<PyAny>,
) -> PyResult<()> {
    let rate = Rate::DOT11B
        .into_iter()
        .chain(Rate::OFDM)
        .find(|rate| rate.bitrate() == Bitrate(rate_bps));
    let rate = rate.ok_or_else(|| {
        PyValueError::new_err(
            "rate_bps is a rate of 802.11b (1000000, 2000000, 5500000, 11000000) or of 802.11g (6000000, 9000000, 12000000, \
             18000000, 24000000, 36000000, 48000000, 54000000)",
        )
    })?;
    if SYSTEMS.iter().any(|system| system.scenario.name == name) {
        let message = format!("chappe has a system of the name {name}");
        return Err(PyValueError::new_err(message));
    }
    let mode = Mode::long(rate);
    let mut held = registry();
    let known = held.get_or_insert_with(|| Registry {
        entries: Vec::new(),
        table: SYSTEMS,
    });
    let entry = known
        .entries
        .iter_mut()
        .find(|entry| entry.scenario.name == name);
    if let Some(entry) = entry {
        (entry.class, entry.mode, entry.octets) = (class, mode, octets);
        return Ok(());
    }
    let scenario = scenario(name, title, about);
    let system: &'static system::System =
        Box::leak(Box::new(system::System::new(scenario, |job, meter| {
            let settings: &PythonSettings = system::settings(job.plan)?;
            let run = PythonRun {
                seed: Seed(job.network.seed),
                transfer: job.network.transfers[0].clone(),
                settings: settings.clone(),
            };
            let outcome = carry_unprepared(run, &job, meter)?;
            match settings.raised.is_set() {
                // The caller raises the exception itself, see `raised_in`.
                true => Err(RunError::Defect("a node raised an exception".into())),
                false => Ok(outcome),
            }
        })));
    let mut all = known.table.to_vec();
    all.push(system);
    known.table = Vec::leak(all);
    known.entries.push(Registered {
        class,
        mode,
        octets,
        scenario,
    });
    Ok(())
}

/// What scenarios may say of a registered system.
fn scenario(name: &str, title: &str, about: &str) -> &'static System {
    let kept = |text: &str| -> &'static str { Box::leak(text.into()) };
    let title = kept(title);
    Box::leak(Box::new(System {
        name: kept(name),
        title,
        about: kept(about),
        variants: Vec::leak(vec![Variant::new("paper", title)]),
        plan: settings_of,
        // A node in Python is given nothing but its number; what it knows of links it hears.
        may_move: true,
        ..System::DOT11B
    }))
}

/// The settings of a scenario that names a registered system.
fn settings_of(checked: &CheckedScenario<'_>) -> Result<Arc<dyn Settings>, InputError> {
    if let Some(second) = checked.scenario.transfer.get(1) {
        let message = "a protocol written in Python carries one object";
        return Err(checked.check.at(second, "too many", message));
    }
    let held = registry();
    let entries = held.as_ref().map_or(&[][..], |known| &known.entries);
    let is_meant = |entry: &&Registered| std::ptr::eq(&entry.scenario.variants[0], checked.variant);
    let Some(entry) = entries.iter().find(is_meant) else {
        return Err(InputError::new("", "the system is not registered"));
    };
    Ok(Arc::new(PythonSettings {
        class: Python::attach(|py| Arc::new(entry.class.clone_ref(py))),
        frame: (entry.mode, entry.octets + AROUND),
        by: (entry.scenario, checked.variant),
        raised: Raised::default(),
    }))
}

/// A class of nodes in one scenario.
#[derive(Clone)]
struct PythonSettings {
    class: Arc<Py<PyAny>>,
    frame: (Mode, usize),
    by: (&'static System, &'static Variant),
    raised: Raised,
}

impl fmt::Debug for PythonSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in Python", self.by.0.name)
    }
}

impl Settings for PythonSettings {
    fn variant(&self) -> &'static Variant {
        self.by.1
    }

    fn label(&self) -> String {
        format!("{} ({})", self.by.1.label, self.frame.0.rate)
    }

    fn frame(&self) -> (Mode, usize) {
        self.frame
    }
}

/// Takes the exception that a node of this plan's runs raised, if one did.
pub fn raised_in(plan: &Plan) -> Option<PyErr> {
    let settings: &PythonSettings = plan.settings_as()?;
    settings.raised.take()
}

/// One run of a protocol written in Python.
#[derive(Clone)]
struct PythonRun {
    seed: Seed,
    transfer: Transfer,
    settings: PythonSettings,
}

impl Carry for PythonRun {
    type Node = OverMac<Dot11, Node>;

    fn by(&self) -> (&'static System, &'static Variant) {
        self.settings.by
    }

    fn station(&self, node: usize, life: u32) -> Result<Box<Self::Node>, RunError> {
        let stream = |own| self.seed.child(life.into()).stream(Purpose::Node(own));
        // One stream for the node and one for its MAC, so that neither depends on the other's draws.
        let (own, backoff) = (stream(2 * node as u32), stream(2 * node as u32 + 1));
        let is_source = node == self.transfer.source;
        let station = Station {
            node,
            life,
            octets: self.transfer.object.len(),
            object: is_source.then(|| self.transfer.object.clone()),
            is_receiver: self.transfer.receivers.contains(&node),
        };
        let link = Node::new(
            &self.settings.class,
            station,
            own,
            self.settings.raised.clone(),
        );
        let address = Address::node(node as u16);
        let mac = Dot11::new(
            Config::of_rate(self.settings.frame.0.rate),
            address,
            backoff,
        );
        Ok(Box::new(OverMac::new(mac, link)))
    }

    fn completed(&self, node: &Self::Node) -> Option<Instant> {
        node.link.completed()
    }

    fn receipt<'n>(&self, node: &'n Self::Node, _: &Transfer) -> Receipt<'n> {
        Receipt {
            octets: node.link.delivered(),
            completed_s: node.link.completed().map(Instant::as_secs_f64),
            copy: node.link.copy(),
            delay: None,
        }
    }

    fn is_over(&mut self, _: &dyn Running<Self::Node>, all_there: bool) -> bool {
        all_there || self.settings.raised.is_set()
    }

    fn count(&self, running: &dyn Running<Self::Node>, report: &mut Report) {
        for node in 0..running.nodes() {
            for (name, value) in running.node(node).link.counters() {
                report.count(&name, value);
            }
        }
    }
}
