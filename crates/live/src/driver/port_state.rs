//! The driver's state of one port.

use chappe_core::{Bitrate, Instant};
use chappe_sys::{Endpoint, Received, Socket};

use crate::backlog::Backlog;
use crate::neighbours::SILENCE;
use crate::pace::{Pace, Pacer};
use crate::port::Port;
use crate::statistics::Statistics;
use crate::throttle::Throttle;

/// Octets of the Ethernet header, which a rate includes.
const ETHERNET: usize = 14;

/// The driver's state of one port.
pub(super) struct PortState {
    pub socket: Socket,
    pub broadcast: Endpoint,
    /// Until then the kernel gets no frame: it had no buffers, or the interface is down.
    pub held_until: Instant,
    /// Whether the kernel's queue is full and the event loop waits for room in it.
    pub blocked: bool,
    /// Whether frames still wait in the receive queue.
    pub behind: bool,
    /// When it was last known to be empty, by the clock.
    pub emptied: Instant,
    /// Whether they have waited for too long.
    pub backlog: Backlog,
    /// Whether the kernel takes several frames of one length as one, and cuts them apart behind its layers.
    pub cuts: bool,
    /// Whether the kernel joins frames of one sender that arrive in a row.
    pub joins: bool,
    pub pacer: Pacer,
    pub throttle: Throttle,
    /// When a neighbour was last heard there.
    pub heard: Option<Instant>,
}

impl PortState {
    /// An open port whose throttle starts low. Neighbours share its channel of that rate, or each has one of its own.
    pub fn new(port: Port, pace: Pace, shared: Option<Bitrate>) -> PortState {
        let pacer = Pacer::new(pace, port.overhead + ETHERNET);
        // Without a rate the card's queue sets the pace, and would take a whole run for one frame.
        let is_paced = matches!(pace, Pace::Rate(_));
        PortState {
            cuts: is_paced && port.overhead > 0,
            joins: is_paced && port.socket.join_received(),
            socket: port.socket,
            broadcast: port.broadcast,
            held_until: Instant::ZERO,
            blocked: false,
            behind: false,
            emptied: Instant::ZERO,
            backlog: Backlog::default(),
            throttle: Throttle::new(pacer.rate(), shared),
            pacer,
            heard: None,
        }
    }

    /// Whether the port cannot take a frame now.
    pub fn is_shut(&self, now: Instant) -> bool {
        self.blocked || now < self.held_until
    }
}

/// Room for frames that the kernel has joined: an IP packet.
const JOINED: usize = 1 << 16;

/// Room for what one call receives: frames of at most `longest` octets each, or joined ones.
pub(super) fn room(ports: &[PortState], longest: usize) -> Received {
    let joins = ports.iter().any(|state| state.joins);
    Received::new(if joins { JOINED } else { longest })
}

/// When the pace allows the next frame: on all ports where neighbours were heard, or on all if they were nowhere.
pub(super) fn free_at(ports: &[PortState], now: Instant) -> Instant {
    last(ports, now, Pacer::free_at)
}

/// When it allows the next group of frames.
pub(super) fn opens_at(ports: &[PortState], now: Instant) -> Instant {
    last(ports, now, Pacer::opens_at)
}

fn last(ports: &[PortState], now: Instant, when: fn(&Pacer) -> Instant) -> Instant {
    let heard = |state: &&PortState| state.heard.is_some_and(|at| now < at + SILENCE);
    let free = |state: &PortState| when(&state.pacer);
    let most = ports.iter().filter(heard).map(free).max();
    most.or_else(|| ports.iter().map(free).max()).unwrap_or(now)
}

/// Sets the rate of each port by its throttle. Enters the rate of the slowest port and who decides it, the lowest rate of all since one
/// first fell, and the highest.
pub(super) fn adapt(ports: &mut [PortState], now: Instant, statistics: &mut Statistics) {
    let (mut present, mut least, mut most) = (u64::MAX, u64::MAX, 0);
    for state in ports {
        let rate = state.throttle.rate(now);
        state.pacer.set_rate(rate);
        let (lowest, highest) = state.throttle.range();
        (least, most) = (least.min(lowest.0), most.max(highest.0));
        if rate.0 < present {
            present = rate.0;
            (statistics.decider, statistics.carried) =
                (state.throttle.decider(), state.throttle.carried());
        }
    }
    (statistics.rate, statistics.rates) = (present, (least, most));
}
