//! The loop: simulated time follows the clock, frames pass between the air and the hosts' interfaces.
//!
//! ```text
//!   a host sends       take it; the air catches up with the clock; offer it to the station
//!   an event is due    the air catches up; what arrived goes to the hosts; take down how late that was
//! ```
//!
//! Between two turns nothing on the air can depend on a host, so an event that is handled late is handled as it
//! would have been in time. What lateness falsifies is when a host learns of it.

use std::os::fd::BorrowedFd;

use chappe_core::{Duration, Instant};
use chappe_sim::{AirTime, Counters, Recorder, Simulator};
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Clock, EventLoop, Ready, Received, Result, Signal};

use crate::bridge::{BridgeCounters, Station};
use crate::ethernet::HEADER;
use crate::lateness::Lateness;
use crate::network::Network;

/// A simulated network in real time, with a host's interface on each station.
pub struct Emulator<N: Station + ?Sized, R: Recorder = ()> {
    simulator: Simulator<N, R>,
    network: Network,
    events: EventLoop,
    clock: Clock,
    lateness: Lateness,
    received: Received,
    ready: Vec<Ready>,
    turns: u64,
}

/// Why [`Emulator::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program is asked to end.
    Signal(Signal),
    /// A descriptor that the caller watches has become readable: which one.
    Watched(u64),
    /// The moment has come.
    Time,
}

/// The air goes on in steps of at most this: what arrives in one of them fits the room for it, and a packet that is
/// handed on is at most so late on the air: half the time that the long preamble takes.
const STEP: Duration = Duration::from_micros(100);
/// Tokens of the caller's descriptors begin here; below are the hosts' ports.
const CALLERS: u64 = 1 << 32;

impl<N: Station + ?Sized, R: Recorder> Emulator<N, R> {
    /// Joins station `i` of the simulator to host `i` of the network. Time starts now. SIGINT and SIGTERM are held back
    /// from now on and reported by [`run`](Self::run).
    ///
    /// Panics if there are not as many stations as hosts.
    pub fn new(simulator: Simulator<N, R>, network: Network) -> Result<Emulator<N, R>> {
        assert_eq!(
            simulator.nodes().count(),
            network.len(),
            "as many stations as hosts"
        );
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        events.watch_signals()?;
        for (token, port) in network.ports.iter().enumerate() {
            events.add(port, token as u64)?;
        }
        Ok(Emulator {
            received: Received::new(HEADER + network.mtu + 1),
            simulator,
            network,
            events,
            clock,
            lateness: Lateness::default(),
            ready: Vec::new(),
            turns: 0,
        })
    }

    /// Comes back from [`run`](Self::run) with [`Ending::Watched`] when `fd` becomes readable.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> Result<()> {
        self.events.add(fd, CALLERS + u64::from(token))
    }

    /// Forgets a descriptor that was watched.
    pub fn forget(&mut self, fd: BorrowedFd<'_>) -> Result<()> {
        self.events.remove(fd)
    }

    /// Emulates until something ends it, or until `end` on the emulator's own clock.
    pub fn run(&mut self, end: Option<Instant>) -> Result<Ending> {
        loop {
            let due = self.due();
            let wake = end.map_or(due, |end| end.min(due));
            self.events.set_deadline(Some(wake))?;
            self.ready.clear();
            self.events.wait(&mut self.ready)?;
            let ending = self.turn(due)?;
            if ending.is_some() {
                return Ok(ending.unwrap_or(Ending::Time));
            }
            if end.is_some_and(|end| self.clock.now() >= end) {
                return Ok(Ending::Time);
            }
        }
    }

    /// One turn: everything up to now.
    fn turn(&mut self, due: Instant) -> Result<Option<Ending>> {
        self.turns += 1;
        let now = self.clock.now();
        self.catch_up(now)?;
        let mut ending = None;
        for place in 0..self.ready.len() {
            match self.ready[place] {
                Ready::Readable(token) if token < CALLERS => self.take(token as usize)?,
                Ready::Readable(token) => ending = Some(Ending::Watched(token - CALLERS)),
                Ready::Signal(signal) => ending = Some(Ending::Signal(signal)),
                Ready::Writable(_) | Ready::Deadline => {}
            }
        }
        if due <= now {
            self.lateness.add(self.clock.now().saturating_since(due));
        }
        Ok(ending)
    }

    /// When the air must go on.
    fn due(&self) -> Instant {
        Instant::from_nanos(self.simulator.next_at().nanos())
    }

    /// Lets the air go on until `now`, and hands what arrives to the hosts.
    fn catch_up(&mut self, now: Instant) -> Result<()> {
        let now = AirTime::from_nanos(now.nanos());
        while self.simulator.now() < now {
            let next = self.simulator.next_at().max(self.simulator.now());
            self.simulator.run_until((next + STEP).min(now));
            self.hand_over()?;
        }
        Ok(())
    }

    /// Hands what has arrived to the hosts. A kernel that hands a packet on has done so before `send` comes back, so
    /// it is taken at once: a late turn does not hold up the next hop.
    fn hand_over(&mut self) -> Result<()> {
        for number in 0..self.network.ports.len() {
            if !self.simulator.node(number).bridge().has_arrived() {
                continue;
            }
            let port = &self.network.ports[number];
            // Taking what has arrived changes nothing about what the station wants of its radio.
            self.simulator
                .with_node(number, |station, _| port.send(station.bridge_mut()));
            self.take(number)?;
        }
        Ok(())
    }

    /// Takes what a host has sent.
    fn take(&mut self, number: usize) -> Result<()> {
        let (Some(port), received) = (self.network.ports.get(number), &mut self.received) else {
            return Ok(());
        };
        self.simulator.with_node(number, |station, _| {
            port.receive(received, station.bridge_mut()).map(drop)
        })
    }

    /// The namespace of host `number`.
    pub fn host(&self, number: usize) -> Option<&NetworkNamespace> {
        self.network.host(number)
    }

    /// The clock that the air follows.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How late the emulator was: from when the first event of a turn was due until all that came of it was in the
    /// hosts' hands.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// How often the loop went round.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// What happened on the air.
    pub fn air(&self) -> &Counters {
        self.simulator.counters()
    }

    /// What each bridge did, with what the kernel lost on the way to it.
    pub fn bridges(&mut self) -> Vec<BridgeCounters> {
        let mut all = Vec::new();
        for (number, port) in self.network.ports.iter().enumerate() {
            let lost = port.overflowed();
            let counters = self.simulator.with_node(number, |station, _| {
                station.bridge_mut().overflowed(lost);
                *station.bridge().counters()
            });
            all.push(counters);
        }
        all
    }

    /// What follows the run, to take out what it holds.
    pub fn recorder_mut(&mut self) -> &mut R {
        self.simulator.recorder_mut()
    }

    /// The station `number`. Panics if there is none.
    pub fn station(&self, number: usize) -> &N {
        self.simulator.node(number)
    }
}
