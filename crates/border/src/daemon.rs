//! The loop: simulated time follows the clock, packets pass between the gateway and the kernel's TUN device.
//!
//! ```text
//!   the kernel sends   take it; the air catches up with the clock; the gateway gets it
//!   an event is due    the air catches up; what arrived goes to the kernel; take down how late that was
//! ```

use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;

use chappe_core::{Duration, Instant};
use chappe_emu::Lateness;
use chappe_sim::{AirTime, Recorder, Simulator};
use chappe_sys::tun::{Kind, Tun};
use chappe_sys::{Clock, Error, EventLoop, Links, Ready, Result, Signal};

use crate::gateway::MTU;
use crate::network::Network;
use crate::station::Station;

/// Packets that the kernel keeps for the device: the gateway takes them at once, so this is for bursts only.
const DEVICE_QUEUE: u32 = 32;
/// Packets that are read before the air has its turn.
const TURN: usize = 32;
/// Octets of the largest packet that a TUN device gives: what IPv6's length field can say, rounded up.
const PACKET_MAX: usize = 1 << 16;
/// The air goes on in steps of at most this, after which the kernel gets what has arrived: a quarter of a full frame.
const STEP: Duration = Duration::from_millis(1);
/// How often motes are told how long their radios were on.
const TELL: Duration = Duration::from_millis(250);
const TUN: u64 = 0;
/// Tokens of the caller's descriptors begin here.
const CALLERS: u64 = 1 << 32;

/// A late loop falsifies when the kernel learns of a packet. Half of the shortest time between two packets of one mote,
/// which is that of a frame of acknowledgement size: its back-off, assessment and air time are 4 ms at least.
pub const LATENESS_LIMIT: Duration = Duration::from_millis(2);

/// Why [`Border::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program is asked to end.
    Signal(Signal),
    /// A descriptor that the caller watches has become readable: which one.
    Watched(u64),
    /// The moment has come.
    Time,
}

/// A network that runs in real time behind a TUN device. Dropping it takes the device away.
pub struct Border<R: Recorder = ()> {
    simulator: Simulator<Station, R>,
    network: Network,
    tun: Tun,
    events: EventLoop,
    clock: Clock,
    lateness: Lateness,
    ready: Vec<Ready>,
    packet: Vec<u8>,
    told: Instant,
}

impl<R: Recorder> Border<R> {
    /// Makes the device `name` (`%d` in it becomes a free number) in the present network namespace, gives it the host's
    /// address and the route into the network, and starts time. SIGINT and SIGTERM are held back from now on and reported
    /// by [`run`](Self::run). Needs CAP_NET_ADMIN, which [`isolate`](chappe_sys::namespace::isolate) gives.
    pub fn open(network: Network, name: &str, recorder: R) -> Result<Border<R>> {
        let simulator = network
            .simulator(recorder)
            .map_err(|error| Error::unusable("simulate the network", &error))?;
        let tun = Tun::create(name, Kind::Tun)?;
        raise(&tun, network.kernel())?;
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        events.watch_signals()?;
        events.add(&tun, TUN)?;
        Ok(Border {
            simulator,
            network,
            tun,
            events,
            clock,
            lateness: Lateness::default(),
            ready: Vec::new(),
            packet: vec![0; PACKET_MAX],
            told: Instant::ZERO,
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

    /// Serves until something ends it, or until `end` on its own clock.
    pub fn run(&mut self, end: Option<Instant>) -> Result<Ending> {
        loop {
            let due = Instant::from_nanos(self.simulator.next_at().nanos());
            let wake = end.map_or(due, |end| end.min(due));
            self.events.set_deadline(Some(wake))?;
            self.ready.clear();
            self.events.wait(&mut self.ready)?;
            if let Some(ending) = self.turn(due)? {
                return Ok(ending);
            }
            if end.is_some_and(|end| self.clock.now() >= end) {
                return Ok(Ending::Time);
            }
        }
    }

    /// One turn: everything up to now.
    fn turn(&mut self, due: Instant) -> Result<Option<Ending>> {
        let now = self.clock.now();
        self.catch_up(now)?;
        let mut ending = None;
        for place in 0..self.ready.len() {
            match self.ready[place] {
                Ready::Readable(TUN) => self.take()?,
                Ready::Readable(token) => ending = Some(Ending::Watched(token - CALLERS)),
                Ready::Signal(signal) => ending = Some(Ending::Signal(signal)),
                Ready::Writable(_) | Ready::Deadline => {}
            }
        }
        if due <= now {
            self.lateness.add(self.clock.now().saturating_since(due));
        }
        if now.saturating_since(self.told) >= TELL {
            self.told = now;
            for node in 0..self.network.nodes() {
                self.simulator
                    .with_node(node, |station, now| station.tell_radio(now));
            }
        }
        Ok(ending)
    }

    /// Lets the air go on until `now`, and hands what arrives to the kernel.
    fn catch_up(&mut self, now: Instant) -> Result<()> {
        let now = AirTime::from_nanos(now.nanos());
        while self.simulator.now() < now {
            let next = self.simulator.next_at().max(self.simulator.now());
            self.simulator.run_until((next + STEP).min(now));
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        let border = self.network.border;
        let tun = &self.tun;
        let has_arrived = |station: &Station| {
            let gateway = station.gateway();
            gateway.is_some_and(|gateway| gateway.arrived().is_some())
        };
        if !has_arrived(self.simulator.node(border)) {
            return Ok(());
        }
        self.simulator.with_node(border, |station, now| {
            let mut given = Ok(());
            station.with_gateway(now, |gateway| {
                while let Some(packet) = gateway.arrived() {
                    match tun.send(packet) {
                        Ok(true) => gateway.taken(),
                        Ok(false) => gateway.refused(),
                        Err(error) => {
                            gateway.refused();
                            // A device that somebody has turned off is no reason to end.
                            if error.is_gone() {
                                given = Err(error);
                                return;
                            }
                        }
                    }
                }
            });
            given
        })
    }

    /// Takes what the kernel has sent.
    fn take(&mut self) -> Result<()> {
        for _ in 0..TURN {
            let Some(len) = self.tun.receive(&mut self.packet)? else {
                break;
            };
            let packet = self.packet.get(..len).unwrap_or_default();
            self.simulator
                .with_node(self.network.border, |station, now| {
                    station.with_gateway(now, |gateway| gateway.offer(now, packet));
                });
        }
        // Errors and pings are answered without the air.
        self.hand_over()
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The clock that the air follows.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How late the loop was: from when the first event of a turn was due until all that came of it was with the kernel.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// A node. Panics if there is none.
    pub fn station(&self, node: usize) -> &Station {
        self.simulator.node(node)
    }

    /// What happened on the air.
    pub fn air(&self) -> &chappe_sim::Counters {
        self.simulator.counters()
    }

    /// What follows the run, to take out what it holds.
    pub fn recorder_mut(&mut self) -> &mut R {
        self.simulator.recorder_mut()
    }
}

/// Gives the device what it needs and turns it on.
fn raise(tun: &Tun, address: Ipv6Addr) -> Result<()> {
    let links = Links::open()?;
    let name = tun.name();
    // Nobody on the mesh advertises routers or looks for them; without these the kernel would ask now and then.
    for (parameter, value) in [
        ("disable_ipv6", "0"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ] {
        let path = format!("net/ipv6/conf/{name}/{parameter}");
        // Where /proc/sys cannot be written, such packets are dropped and counted; without IPv6 the address is refused.
        let _ = chappe_sys::set_parameter(&path, value);
    }
    links.set_mtu(name, MTU as u32)?;
    links.set_queue_len(name, DEVICE_QUEUE)?;
    links.add_address_v6(name, address, 64)?;
    links.up(name)
}
