//! Protocols written in Python as systems that a scenario may name.
//!
//! A system of the lab lasts as long as the program, so what is registered is never freed. A class that is registered again under
//! its name, as notebooks do, replaces the older one and takes no more memory.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chappe::systems::SYSTEMS;
use chappe_core::{Address, Instant, Mac, Mode, OverMac, Purpose, Seed, Stream};
use chappe_lab::carry::{Carry, Receipt, Report, Running, carry_unprepared};
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::system::{self, Job};
use chappe_mac::{dot11, dot15d4};
use chappe_scenario::plan::radio;
use chappe_scenario::{
    CheckedScenario, InputError, Plan, Radios, Settings, System, Transfer, Variant,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::node::{Node, Raised, Station};

/// Octets that LLC, the header of 802.11 and the check sequence add to what a node sends.
const AROUND_DOT11B: usize = 36;
/// Octets of the longest frame of 802.15.4, and of its header and check sequence.
const DOT15D4_MAX: usize = 127;
const AROUND_DOT15D4: usize = DOT15D4_MAX - dot15d4::SDU_MAX;

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

/// The family of radios, and the mode of all frames.
fn link(name: &str, rate_bps: u64, octets: usize) -> PyResult<(Radios, Mode)> {
    let refused = |message: &str| Err(PyValueError::new_err(message.to_string()));
    match name {
        "802.11" => match radio::rate_of(rate_bps as f64) {
            Some(rate) => Ok((Radios::Dot11, Mode::long(rate))),
            None => refused(
                "rate_bps is one of 1000000, 2000000, 5500000, 11000000 (802.11b), 6000000, 9000000, 12000000, \
                 18000000, 24000000, 36000000, 48000000, 54000000 (802.11g), 6500000, \
                 13000000, 19500000, 26000000, 39000000, 52000000, 58500000, 65000000 (802.11n)",
            ),
        },
        "802.15.4" if rate_bps != 250_000 => refused("rate_bps of 802.15.4 is 250000"),
        "802.15.4" if octets > dot15d4::SDU_MAX => refused(&format!(
            "octets_max of 802.15.4 is at most {}",
            dot15d4::SDU_MAX
        )),
        "802.15.4" => Ok((Radios::Dot15d4, dot15d4::Config::MODE)),
        _ => refused("radio is one of 802.11, 802.15.4"),
    }
}

/// Makes a class of nodes known as a system. `words` are its title and what it is about, `octets` is the largest frame that a node
/// sends, `rate_bps` the rate of all frames.
#[pyfunction]
pub fn register(
    name: &str,
    words: (String, String),
    radio: &str,
    rate_bps: u64,
    octets: usize,
    class: Py<PyAny>,
) -> PyResult<()> {
    let (radios, mode) = link(radio, rate_bps, octets)?;
    if SYSTEMS.iter().any(|system| system.scenario.name == name) {
        let message = format!("chappe has a system of the name {name}");
        return Err(PyValueError::new_err(message));
    }
    let mut held = registry();
    let known = held.get_or_insert_with(|| Registry {
        entries: Vec::new(),
        table: SYSTEMS,
    });
    let own = |entry: &Registered| entry.scenario.name == name;
    if let Some(entry) = known.entries.iter_mut().find(|entry| own(entry))
        && entry.scenario.radios == radios
    {
        (entry.class, entry.mode, entry.octets) = (class, mode, octets);
        return Ok(());
    }
    // The older class of this name is on another radio, which is a part of the system.
    known.entries.retain(|entry| !own(entry));
    let others = known.table.iter().copied();
    let mut all: Vec<_> = others.filter(|other| other.scenario.name != name).collect();
    let scenario = scenario(name, &words.0, &words.1, radios);
    let carry = match radios {
        Radios::Dot11 => run_over::<Dot11>,
        Radios::Dot15d4 => run_over::<Dot15d4>,
    };
    all.push(Box::leak(Box::new(system::System::new(scenario, carry))));
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
fn scenario(name: &str, title: &str, about: &str, radios: Radios) -> &'static System {
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
        ..match radios {
            Radios::Dot11 => System::DOT11B,
            Radios::Dot15d4 => System::DOT15D4,
        }
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
        frame: (entry.mode, entry.octets + around(entry.scenario.radios)),
        by: (entry.scenario, checked.variant),
        raised: Raised::default(),
    }))
}

/// Octets that the layers below add to what a node sends.
fn around(radios: Radios) -> usize {
    match radios {
        Radios::Dot11 => AROUND_DOT11B,
        Radios::Dot15d4 => AROUND_DOT15D4,
    }
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

/// The MAC below a node, and the largest frame of its radio.
trait Below: Clone + Send + 'static {
    type Mac: Mac;
    /// In octets with the check sequence; the simulator's default if `None`.
    const FRAME_MAX: Option<usize>;

    fn mac(mode: Mode, address: Address, random: Stream) -> Self::Mac;
}

/// 802.11 with the standard's values for the rate.
#[derive(Clone)]
struct Dot11;

/// 802.15.4 with the standard's values.
#[derive(Clone)]
struct Dot15d4;

impl Below for Dot11 {
    type Mac = dot11::Dot11;
    const FRAME_MAX: Option<usize> = None;

    fn mac(mode: Mode, address: Address, random: Stream) -> dot11::Dot11 {
        dot11::Dot11::new(dot11::Config::of_rate(mode.rate), address, random)
    }
}

impl Below for Dot15d4 {
    type Mac = dot15d4::Dot15d4;
    const FRAME_MAX: Option<usize> = Some(DOT15D4_MAX);

    fn mac(_: Mode, address: Address, random: Stream) -> dot15d4::Dot15d4 {
        dot15d4::Dot15d4::new(dot15d4::Config::STANDARD, address, random)
    }
}

fn run_over<B: Below>(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let settings: &PythonSettings = system::settings(job.plan)?;
    let run = PythonRun {
        seed: Seed(job.network.seed),
        transfer: job.network.transfers[0].clone(),
        settings: settings.clone(),
        below: PhantomData::<B>,
    };
    let outcome = carry_unprepared(run, &job, meter)?;
    match settings.raised.is_set() {
        // The caller raises the exception itself, see `raised_in`.
        true => Err(RunError::Defect("a node raised an exception".into())),
        false => Ok(outcome),
    }
}

/// One run of a protocol written in Python.
#[derive(Clone)]
struct PythonRun<B> {
    seed: Seed,
    transfer: Transfer,
    settings: PythonSettings,
    below: PhantomData<B>,
}

impl<B: Below> Carry for PythonRun<B> {
    type Node = OverMac<B::Mac, Node>;

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
        let mac = B::mac(self.settings.frame.0, Address::node(node as u16), backoff);
        Ok(Box::new(OverMac::new(mac, link)))
    }

    fn frame_max(&self) -> Option<usize> {
        B::FRAME_MAX
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
