//! A node that does what a test wrote down for it and records the events it received.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::collections::VecDeque;

use chappe_core::{Dbm, Instant, Mode, RadioEvent, RadioNode, RadioRequest, Transmit, Wake};
use chappe_sim::{AirTime, Heard, Loss, Recorder};

/// What a node was notified of, with its own clock's reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Busy {
        busy: bool,
        since: u64,
    },
    Got {
        psdu: Vec<u8>,
        started: u64,
        power: Option<Dbm>,
    },
    Failed {
        started: u64,
    },
    Head {
        octets: Vec<u8>,
        len: usize,
        started: u64,
    },
    Sent,
    Woken,
}

/// A node that follows a script and notes what the radio reports.
#[derive(Clone, Default)]
pub struct Probe {
    /// When (own clock, nanoseconds) to ask the radio for what.
    script: VecDeque<(u64, RadioRequest, Vec<u8>)>,
    due: VecDeque<(RadioRequest, Vec<u8>)>,
    pub told: Vec<(u64, Told)>,
    /// Gives up every frame whose head it sees and whose first octet is not this one.
    pub picky: Option<u8>,
}

impl Probe {
    /// Adds a request at `micros` on the node's clock. Keep them in order of time.
    pub fn ask(mut self, micros: u64, request: RadioRequest) -> Probe {
        self.script.push_back((micros * 1000, request, Vec::new()));
        self
    }

    /// Adds a frame that leaves at `micros`.
    pub fn send(self, micros: u64, mode: Mode, psdu: &[u8]) -> Probe {
        self.send_at(micros, mode, psdu, None)
    }

    /// The same at a power of its own.
    pub fn send_at(mut self, micros: u64, mode: Mode, psdu: &[u8], power: Option<Dbm>) -> Probe {
        let transmit = Transmit {
            at: Instant::from_micros(micros),
            len: psdu.len(),
            mode,
            power,
        };
        self.script.push_back((
            micros * 1000,
            RadioRequest::Transmit(transmit),
            psdu.to_vec(),
        ));
        self
    }

    /// The frames it received.
    pub fn got(&self) -> usize {
        self.told
            .iter()
            .filter(|(_, told)| matches!(told, Told::Got { .. }))
            .count()
    }

    /// The frames it lost.
    pub fn failed(&self) -> usize {
        self.told
            .iter()
            .filter(|(_, told)| matches!(told, Told::Failed { .. }))
            .count()
    }

    /// The heads it saw.
    pub fn heads(&self) -> usize {
        self.told
            .iter()
            .filter(|(_, told)| matches!(told, Told::Head { .. }))
            .count()
    }

    /// The changes of its carrier: busy or idle, and since when.
    pub fn carrier(&self) -> Vec<(bool, u64)> {
        let changes = self.told.iter().filter_map(|(_, told)| match told {
            Told::Busy { busy, since } => Some((*busy, *since)),
            _ => None,
        });
        changes.collect()
    }
}

impl RadioNode for Probe {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        let told = match event {
            RadioEvent::Carrier { busy, since } => Told::Busy {
                busy,
                since: since.nanos(),
            },
            RadioEvent::Received(reception) => Told::Got {
                psdu: reception.psdu.to_vec(),
                started: reception.started.nanos(),
                power: reception.power,
            },
            RadioEvent::Failed(failure) => Told::Failed {
                started: failure.started.nanos(),
            },
            RadioEvent::Head(head) => {
                if self
                    .picky
                    .is_some_and(|first| head.octets.first() != Some(&first))
                {
                    self.due.push_back((RadioRequest::Abort, Vec::new()));
                }
                Told::Head {
                    octets: head.octets.to_vec(),
                    len: head.len,
                    started: head.started.nanos(),
                }
            }
            RadioEvent::Sent => Told::Sent,
        };
        self.told.push((now.nanos(), told));
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        let (request, bytes) = self.due.pop_front()?;
        psdu[..bytes.len()].copy_from_slice(&bytes);
        Some(request)
    }

    fn handle_timeout(&mut self, now: Instant) {
        let mut woken = false;
        while self
            .script
            .front()
            .is_some_and(|(at, ..)| *at <= now.nanos())
        {
            let Some((_, request, bytes)) = self.script.pop_front() else {
                break;
            };
            self.due.push_back((request, bytes));
            woken = true;
        }
        if woken {
            self.told.push((now.nanos(), Told::Woken));
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let at = Instant::from_nanos(self.script.front()?.0);
        Some(Wake { at, why: "script" })
    }
}

/// `count` nodes that do nothing but listen.
#[allow(clippy::vec_box)] // What a simulator takes.
pub fn probes(count: usize) -> Vec<Box<Probe>> {
    (0..count).map(|_| Box::new(Probe::default())).collect()
}

/// Remembers what became of each frame at each receiver: (receiver, transmitter, outcome), in order.
#[derive(Default)]
pub struct Outcomes(pub Vec<(usize, usize, Result<(), Loss>)>);

impl Recorder for Outcomes {
    const NODES: bool = false;
    fn heard(&mut self, frame: &Heard<'_>) {
        self.0.push((frame.node, frame.from, frame.outcome));
    }
}

impl Outcomes {
    /// What became of frames from `from` at `node`.
    pub fn at(&self, node: usize, from: usize) -> Vec<Result<(), Loss>> {
        let of = self
            .0
            .iter()
            .filter(|outcome| outcome.0 == node && outcome.1 == from);
        of.map(|outcome| outcome.2).collect()
    }
}

/// Air time in microseconds, for short tests.
pub fn us(micros: u64) -> AirTime {
    AirTime::from_micros(micros)
}
