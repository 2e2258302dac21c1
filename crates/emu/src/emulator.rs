//! The loop: simulated time follows the clock, and frames pass between the air and the hosts' interfaces.
//!
//! ```text
//!   a host sends       take it; the air catches up with the clock; offer it to the station
//!   an event is due    the air catches up; what arrived goes to the hosts; take down how late that was
//! ```
//!
//! Between two turns nothing on the air can depend on a host. So an event that is handled late has the same outcome as
//! one handled in time. Lateness only changes when a host learns of it.

use std::os::fd::BorrowedFd;

use chappe_core::{Duration, Instant};
use chappe_sim::{AirTime, Counters, Recorder, Simulator};
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Clock, EventLoop, Ready, Received, Result, Signal};

use crate::bridge::{BridgeCounters, Station};
use crate::ethernet::HEADER;
use crate::lateness::Lateness;
use crate::network::Network;

/// A simulated network in real time, with one host behind each station.
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

/// The event that ended [`Emulator::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGINT or SIGTERM arrived.
    Signal(Signal),
    /// A watched descriptor became readable; the value is its token.
    Watched(u64),
    /// The end time has passed.
    Time,
}

/// The longest step of the air. Frames that arrive within a step must fit the queue to the host, and a forwarded packet
/// is late on the air by up to one step: half the duration of the long preamble.
const STEP: Duration = Duration::from_micros(100);
/// First token of the caller's descriptors; those below are the hosts' ports.
const CALLERS: u64 = 1 << 32;

impl<N: Station + ?Sized, R: Recorder> Emulator<N, R> {
    /// Connects station `i` of the simulator to host `i` of the network. Time starts now. From now on [`run`](Self::run)
    /// reports SIGINT and SIGTERM, which no longer end the program.
    ///
    /// Panics if the numbers of stations and hosts differ.
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

    /// Lets [`run`](Self::run) return [`Ending::Watched`] when `fd` becomes readable.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> Result<()> {
        self.events.add(fd, CALLERS + u64::from(token))
    }

    /// Stops watching a descriptor.
    pub fn forget(&mut self, fd: BorrowedFd<'_>) -> Result<()> {
        self.events.remove(fd)
    }

    /// Emulates until a signal arrives, a watched descriptor becomes readable, or [`clock`](Self::clock) reaches `end`.
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

    /// Advances the air to now, then serves the descriptors that are ready.
    fn turn(&mut self, due: Instant) -> Result<Option<Ending>> {
        self.turns += 1;
        let now = self.clock.now();
        // The air first: a frame from a host must enter it at the present time.
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

    /// When the next event on the air is due.
    fn due(&self) -> Instant {
        Instant::from_nanos(self.simulator.next_at().nanos())
    }

    /// Advances the air to `now` and delivers arriving frames to the hosts.
    fn catch_up(&mut self, now: Instant) -> Result<()> {
        let now = AirTime::from_nanos(now.nanos());
        while self.simulator.now() < now {
            let next = self.simulator.next_at().max(self.simulator.now());
            self.simulator.run_until((next + STEP).min(now));
            self.hand_over()?;
        }
        Ok(())
    }

    /// Delivers arrived frames to the hosts. A kernel that forwards a packet has sent it before `send` returns, so it is
    /// taken at once: otherwise a late turn would delay the next hop.
    fn hand_over(&mut self) -> Result<()> {
        for number in 0..self.network.ports.len() {
            if !self.simulator.node(number).bridge().has_arrived() {
                continue;
            }
            let port = &self.network.ports[number];
            // Removing received frames does not change what the station asks of its radio.
            self.simulator
                .with_node(number, |station, _| port.send(station.bridge_mut()));
            self.take(number)?;
        }
        Ok(())
    }

    /// Reads the frames that a host has sent.
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

    /// The lateness of all turns: from when a turn's first event was due until the hosts had all frames that followed.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Number of turns of the loop.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The simulator's counters of frames on the air.
    pub fn air(&self) -> &Counters {
        self.simulator.counters()
    }

    /// The counters of each bridge, including frames that the kernel lost on the way to it.
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

    /// The recorder, to take out its records.
    pub fn recorder_mut(&mut self) -> &mut R {
        self.simulator.recorder_mut()
    }

    /// The station `number`. Panics if there is none.
    pub fn station(&self, number: usize) -> &N {
        self.simulator.node(number)
    }
}
