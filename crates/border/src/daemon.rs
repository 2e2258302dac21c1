//! The event loop: simulated time follows the host's clock, and packets pass between the gateway and the TUN device.
//!
//! ```text
//!   the kernel sends   the air catches up with the clock; the gateway gets the packet
//!   an event is due    the air catches up; arrived packets go to the kernel; the lateness is recorded
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

/// The device's transmit queue in the kernel, in packets. The gateway takes packets at once, so it only absorbs bursts.
const DEVICE_QUEUE: u32 = 32;
/// Packets read from the kernel in one turn, before the air catches up again.
const TURN: usize = 32;
/// Octets of the largest packet that a TUN device can deliver: IPv6's largest length, rounded up.
const PACKET_MAX: usize = 1 << 16;
/// The air advances in steps of at most this time; after each, arrived packets go to the kernel. A quarter of a full frame.
const STEP: Duration = Duration::from_millis(1);
/// How often the motes' services learn how long their radios were on.
const RADIO_INTERVAL: Duration = Duration::from_millis(250);
const TUN: u64 = 0;
/// The event tokens of the caller's descriptors start here.
const CALLERS: u64 = 1 << 32;

/// The limit of the lateness at the 99th percentile. A late loop delivers packets to the kernel too late. This is half of the
/// shortest time between two packets of one mote, which is that of a frame of acknowledgement size: its back-off, assessment
/// and air time take at least 4 ms.
pub const LATENESS_LIMIT: Duration = Duration::from_millis(2);

/// The reason for which [`Border::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGINT or SIGTERM asks the program to end.
    Signal(Signal),
    /// A descriptor that the caller watches is readable: the token of [`Border::watch`].
    Watched(u64),
    /// The end time of [`Border::run`] has come.
    Time,
}

/// A network that runs in real time behind a TUN device. Dropping it removes the device.
pub struct Border<R: Recorder = ()> {
    simulator: Simulator<Station, R>,
    network: Network,
    tun: Tun,
    events: EventLoop,
    clock: Clock,
    lateness: Lateness,
    ready: Vec<Ready>,
    packet: Vec<u8>,
    /// When the motes' services last learned how long their radios were on.
    radio_noted: Instant,
}

impl<R: Recorder> Border<R> {
    /// Creates the device `name` (`%d` in it becomes a free number) in the present network namespace, gives it the host's
    /// address and the route into the network, and starts the clock. From now on SIGINT and SIGTERM are blocked and reported
    /// by [`run`](Self::run). Needs CAP_NET_ADMIN, which [`isolate`](chappe_sys::namespace::isolate) provides.
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
            radio_noted: Instant::ZERO,
        })
    }

    /// Makes [`run`](Self::run) return [`Ending::Watched`] with this token when `fd` becomes readable.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> Result<()> {
        self.events.add(fd, CALLERS + u64::from(token))
    }

    /// Stops watching a descriptor.
    pub fn forget(&mut self, fd: BorrowedFd<'_>) -> Result<()> {
        self.events.remove(fd)
    }

    /// Serves until one of the events of [`Ending`], at the latest until `end` on [`clock`](Self::clock).
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

    /// One turn of the loop: processes everything up to now.
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
        if now.saturating_since(self.radio_noted) >= RADIO_INTERVAL {
            self.radio_noted = now;
            for node in 0..self.network.nodes() {
                self.simulator
                    .with_node(node, |station, now| station.note_radio_on(now));
            }
        }
        Ok(ending)
    }

    /// Advances the air to `now`, and hands arriving packets to the kernel.
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
                            // A device that the user has turned off is no reason to end; one that is gone is.
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

    /// Takes packets from the kernel.
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
        // The gateway answers pings and refused packets itself, without the air.
        self.hand_over()
    }

    /// The name of the TUN device, with its number filled in.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// The network as it was passed to [`open`](Self::open).
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The clock that the air follows.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The loop's lateness: from when the first event of a turn was due until the kernel had all resulting packets.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// A node. Panics if there is no node with this number.
    pub fn station(&self, node: usize) -> &Station {
        self.simulator.node(node)
    }

    /// The simulator's counters of the air.
    pub fn air(&self) -> &chappe_sim::Counters {
        self.simulator.counters()
    }

    /// The recorder of the run, to take out what it has recorded.
    pub fn recorder_mut(&mut self) -> &mut R {
        self.simulator.recorder_mut()
    }
}

/// Configures the device and turns it on.
fn raise(tun: &Tun, address: Ipv6Addr) -> Result<()> {
    let links = Links::open()?;
    let name = tun.name();
    // The mesh has no router advertisements; without these settings the kernel would solicit them.
    for (parameter, value) in [
        ("disable_ipv6", "0"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ] {
        let path = format!("net/ipv6/conf/{name}/{parameter}");
        // Where /proc/sys is read-only, the gateway drops and counts the solicitations; without IPv6, adding the address
        // fails.
        let _ = chappe_sys::set_parameter(&path, value);
    }
    links.set_mtu(name, MTU as u32)?;
    links.set_queue_len(name, DEVICE_QUEUE)?;
    links.add_address_v6(name, address, 64)?;
    links.up(name)
}
