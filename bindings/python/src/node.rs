//! A node whose methods are Python's.
//!
//! The interpreter is asked after every event that can change the node, and what it answered stands until the next one: a driver
//! reads `pending` and `poll_timeout` far more often than a node changes. The first exception is kept; from then on the run's
//! nodes do nothing, and the run ends.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chappe_core::{
    Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Stream as Numbers,
    Wake,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::stream::Stream;

/// The first exception of a run's nodes.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Whether a node raised one.
    pub fn is_set(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_some()
    }

    /// Takes it, so that the next run begins without one.
    pub fn take(&self) -> Option<PyErr> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.take()
    }

    fn set(&self, error: PyErr) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert(error);
    }
}

/// What a node learns of its place when it is made.
pub struct Station {
    pub node: usize,
    pub life: u32,
    /// Octets of the object.
    pub octets: usize,
    /// The object itself, at its source.
    pub object: Option<Arc<[u8]>>,
    pub is_receiver: bool,
}

/// A node of a class of Python's.
pub struct Node {
    /// `None` if its class raised an exception.
    object: Option<Py<PyAny>>,
    raised: Raised,
    state: State,
    copy: OnceLock<Vec<u8>>,
}

/// What the driver may ask at any time.
#[derive(Clone, Copy, Default)]
struct State {
    pending: Classes,
    wake: Option<Instant>,
    completed: Option<Instant>,
}

impl Node {
    /// Calls the class. An exception ends the run, here as elsewhere: a node that restarts cannot return an error.
    pub fn new(class: &Py<PyAny>, station: Station, own: Numbers, raised: Raised) -> Node {
        let mut node = Node {
            object: None,
            raised,
            state: State::default(),
            copy: OnceLock::new(),
        };
        if node.raised.is_set() {
            return node;
        }
        let made = Python::attach(|py| -> PyResult<(Py<PyAny>, State)> {
            let parts = PyDict::new(py);
            parts.set_item("node", station.node)?;
            parts.set_item("life", station.life)?;
            parts.set_item("octets", station.octets)?;
            let object = station.object.as_ref();
            parts.set_item("object", object.map(|octets| PyBytes::new(py, octets)))?;
            parts.set_item("is_receiver", station.is_receiver)?;
            parts.set_item("random", Stream(own).into_pyobject(py)?)?;
            let station = py.import("chappe.protocol")?.getattr("Station")?;
            let made = class.bind(py).call1((station.call((), Some(&parts))?,))?;
            let state = state_of(&made)?;
            Ok((made.unbind(), state))
        });
        match made {
            Ok((object, state)) => (node.object, node.state) = (Some(object), state),
            Err(error) => node.raised.set(error),
        }
        node
    }

    /// Calls Python, unless a node of this run has raised an exception.
    fn call<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref().filter(|_| !self.raised.is_set())?;
        let done = Python::attach(|py| work(object.bind(py)));
        done.map_err(|error| self.raised.set(error)).ok()
    }

    /// The same for a call that may change the node.
    fn change<T>(&mut self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let done = self.call(|object| Ok((work(object)?, state_of(object)?)));
        let (result, state) = done.unzip();
        self.state = state.unwrap_or_default();
        result
    }

    /// When the node had the whole object.
    pub fn completed(&self) -> Option<Instant> {
        self.state.completed
    }

    /// Octets of the object that the node has.
    pub fn delivered(&self) -> usize {
        let delivered = self.call(|object| object.getattr("delivered")?.extract());
        delivered.unwrap_or(0)
    }

    /// The node's copy, once it is complete.
    pub fn copy(&self) -> Option<&[u8]> {
        self.state.completed?;
        if self.copy.get().is_none() {
            let copy: Option<Vec<u8>> = self.call(|object| object.getattr("copy")?.extract())?;
            // Another thread cannot have set it: a run has one.
            let _ = self.copy.set(copy?);
        }
        self.copy.get().map(Vec::as_slice)
    }

    /// What the node counted.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let counted = self.call(|object| {
            let counters = object.getattr("counters")?;
            let counters = counters.cast::<PyDict>()?;
            counters
                .iter()
                .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
                .collect()
        });
        counted.unwrap_or_default()
    }
}

fn state_of(object: &Bound<'_, PyAny>) -> PyResult<State> {
    let pending: u8 = object.call_method0("pending")?.extract()?;
    let at = |nanos: Option<u64>| nanos.map(Instant::from_nanos);
    Ok(State {
        pending: classes(pending)?,
        wake: at(object.call_method0("poll_timeout")?.extract()?),
        completed: at(object.getattr("completed")?.extract()?),
    })
}

/// A set of classes as Python has it: a bit for each, the least urgent first.
fn classes(bits: u8) -> PyResult<Classes> {
    if bits > 0b1111 {
        return Err(PyValueError::new_err(format!(
            "{bits} is no set of classes"
        )));
    }
    let of = |classes: Classes, class: Class| classes.with_if(class, bits & 1 << class as u8 != 0);
    Ok(Class::BY_URGENCY.into_iter().fold(Classes::NONE, of))
}

fn bits(classes: Classes) -> u8 {
    let each = Class::BY_URGENCY.into_iter();
    each.filter(|class| classes.contains(*class))
        .fold(0, |bits, class| bits | 1 << class as u8)
}

/// An address as Python has it: the number of a node, or `None` for all in range.
fn number(address: Address) -> Option<u16> {
    address.node_number()
}

impl LinkNode for Node {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        let now = now.nanos();
        self.change(|object| {
            let py = object.py();
            let module = py.import("chappe.protocol")?;
            let event = match event {
                LinkEvent::Received(arrival) => module.getattr("Received")?.call1((
                    number(arrival.from),
                    number(arrival.to),
                    PyBytes::new(py, arrival.sdu),
                    arrival.power.map(|power| power.0),
                ))?,
                LinkEvent::Sent { token, outcome } => {
                    let (acknowledged, attempts) = match outcome {
                        Outcome::Unconfirmed => (None, 1),
                        Outcome::Acknowledged { attempts } => (Some(true), attempts),
                        Outcome::Failed { attempts } => (Some(false), attempts),
                    };
                    module
                        .getattr("Sent")?
                        .call1((token, acknowledged, attempts))?
                }
            };
            object.call_method1("handle_link", (now, event)).map(|_| ())
        });
    }

    fn pending(&self) -> Classes {
        self.state.pending
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.change(|object| {
            let sent = object.call_method1("poll_link", (now.nanos(), bits(allowed)))?;
            match sent.is_none() {
                true => Ok(None),
                false => written(&sent, sdu).map(Some),
            }
        })?
    }

    fn handle_timeout(&mut self, now: Instant) {
        // Calling early changes nothing, so Python is not asked.
        if self.state.wake.is_some_and(|wake| wake <= now) {
            self.change(|object| {
                object
                    .call_method1("handle_timeout", (now.nanos(),))
                    .map(|_| ())
            });
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let at = self.state.wake?;
        Some(Wake { at, why: "python" })
    }
}

/// Writes a `Frame` of Python's to the driver's buffer.
fn written(frame: &Bound<'_, PyAny>, sdu: &mut [u8]) -> PyResult<LinkSend> {
    let octets = frame.getattr("sdu")?;
    let octets = octets
        .cast::<PyBytes>()
        .map_err(|_| PyTypeError::new_err("the sdu of a frame is bytes"))?
        .as_bytes();
    let len = octets.len();
    let Some(place) = sdu.get_mut(..len) else {
        let message = format!("a frame of {len} octets, at most {}", sdu.len());
        return Err(PyValueError::new_err(message));
    };
    place.copy_from_slice(octets);
    let class = classes(frame.getattr("cls")?.extract()?)?;
    let class = class
        .most_urgent()
        .ok_or_else(|| PyValueError::new_err("a frame has a class"))?;
    let to: Option<u16> = frame.getattr("to")?.extract()?;
    let to = to.map_or(Address::BROADCAST, Address::node);
    let token = frame.getattr("token")?.extract()?;
    Ok(LinkSend {
        token,
        ..LinkSend::unicast(to, len, class)
    })
}
