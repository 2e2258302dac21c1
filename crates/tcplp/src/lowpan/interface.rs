//! The interface: a host on a link, and a relay beside it.

use chappe_core::{
    Classes, DropReason, Expect, HostNode, Instant, Layer, LinkEvent, LinkNode, LinkSend, Stream,
    TraceEvent, TraceRing, Wake,
};

use super::forwarding::Forwarding;
use super::in_flight::InFlight;
use super::outgoing::Outgoing;
use super::reassembly::Reassembly;
use super::red::Red;
use super::{Config, Headers, Losses, Lost, Routes};

/// A 6LoWPAN interface under a host.
///
/// `OUT` datagrams of the host can be sent at a time (one for a leaf, two or more where neighbours sleep) and `IN` can be
/// reassembled. `FRAMES` is the length of the relay queue and the number of datagrams forwarded at a time (0 for a leaf). No
/// datagram may be larger than `MTU` octets. `C` compresses the headers behind IPv6's; `()` leaves them alone.
#[derive(Debug)]
pub struct Interface<
    H,
    R,
    const OUT: usize = 1,
    const IN: usize = 2,
    const FRAMES: usize = 0,
    const MTU: usize = 536,
    C = (),
> {
    pub(super) config: Config,
    pub(super) host: H,
    pub(super) routes: R,
    pub(super) headers: C,
    pub(super) outgoing: [Outgoing<MTU>; OUT],
    pub(super) reassembly: Reassembly<IN, MTU>,
    pub(super) forwarding: Forwarding<FRAMES>,
    pub(super) in_flight: InFlight<OUT, FRAMES>,
    pub(super) red: Red,
    pub(super) random: Stream,
    pub(super) tag: u16,
    /// The host's own frames with relays ahead of them wait until then (`Config::pace`).
    pub(super) resting: Option<Instant>,
    /// A relayed frame was sent last: one of the host's own is next, so that neither starves.
    pub(super) relayed: bool,
    pub(super) losses: Losses,
    pub(super) counters: Counters,
    /// Most calls record at most two events; the ring counts those that do not fit.
    pub(super) trace: TraceRing<2>,
}

/// The goal for microcontrollers: 1.5 KiB for a leaf that sends and receives TCPlp's segments of five frames, two
/// datagrams of 536 octets included.
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<Interface<(), super::Leaf, 1, 1, 0, 536>>() <= 1536);

/// Counters of an interface. They wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets taken from the host.
    pub packets_sent: u32,
    /// Packets handed to the host.
    pub packets_received: u32,
    /// Frames sent with the host's own packets, retransmissions by the MAC not counted.
    pub frames_sent: u32,
    /// Frames sent for other nodes.
    pub frames_forwarded: u32,
    /// Packets accepted for forwarding, whole or as their first fragment.
    pub packets_forwarded: u32,
    /// Forwarded packets that RED marked CE (RFC 3168).
    pub marked: u32,
}

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
> Interface<H, R, OUT, IN, FRAMES, MTU>
{
    /// An interface at rest. `random` is its own stream, for the first datagram tag and for RED.
    pub fn new(config: Config, host: H, routes: R, random: Stream) -> Self {
        Interface::with_headers(config, host, routes, random, ())
    }
}

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
    C: Headers,
> Interface<H, R, OUT, IN, FRAMES, MTU, C>
{
    /// An interface that also compresses the headers behind IPv6's. With [`TcpHeaders`](super::TcpHeaders), all ends of its
    /// TCP flows must do the same.
    pub fn with_headers(
        config: Config,
        host: H,
        routes: R,
        mut random: Stream,
        headers: C,
    ) -> Self {
        Interface {
            config,
            host,
            routes,
            headers,
            outgoing: [Outgoing::EMPTY; OUT],
            reassembly: Reassembly::new(),
            forwarding: Forwarding::new(),
            in_flight: InFlight::NONE,
            red: Red::default(),
            tag: random.below(0x1_0000) as u16,
            random,
            resting: None,
            relayed: false,
            losses: Losses::default(),
            counters: Counters::default(),
            trace: TraceRing::default(),
        }
    }

    /// The host on top.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host on top, to change it. Its packets are taken by the next [`with_host`](Self::with_host), event or timeout.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Calls `f` with the host, then takes the packets that the host has to send.
    pub fn with_host<T>(&mut self, now: Instant, f: impl FnOnce(&mut H) -> T) -> T {
        let result = f(&mut self.host);
        self.pump(now);
        result
    }

    /// The routing table, to change it.
    pub fn routes_mut(&mut self) -> &mut R {
        &mut self.routes
    }

    /// The parameters it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Frames and packets lost, by reason.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Packets and frames, sent, received and forwarded.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Turns trace events on or off. They are off by default.
    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }

    pub(super) fn lose(&mut self, why: Lost) {
        note(&mut self.losses, &mut self.trace, why);
    }
}

/// Counts a loss, and traces it under the nearest common [`DropReason`].
pub(super) fn note(losses: &mut Losses, trace: &mut TraceRing<2>, why: Lost) {
    losses.count(why);
    let layer = Layer::Link;
    let why = match why {
        Lost::Malformed | Lost::Overlap | Lost::TooBig => DropReason::Malformed,
        Lost::NoFirst | Lost::Evicted | Lost::Expired | Lost::HopLimit | Lost::NoAnchor => {
            DropReason::Stale
        }
        Lost::NoSlot | Lost::QueueFull | Lost::Early => DropReason::QueueFull,
        Lost::NoRoute => DropReason::NotForUs,
        Lost::LinkFailed => DropReason::RetryLimit,
    };
    trace.push(TraceEvent::Dropped { layer, why });
}

impl<
    H: HostNode,
    R: Routes,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
    C: Headers,
> LinkNode for Interface<H, R, OUT, IN, FRAMES, MTU, C>
{
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.on_frame(now, &arrival),
            LinkEvent::Sent { token, outcome } => self.on_outcome(now, token, outcome),
        }
        self.pump(now);
    }

    fn pending(&self) -> Classes {
        self.waiting()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.next_frame(now, allowed, sdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.resting.take_if(|until| *until <= now);
        let idle = self.config.reassembly_idle;
        let (losses, trace) = (&mut self.losses, &mut self.trace);
        self.reassembly
            .expire(now, idle, |why| note(losses, trace, why));
        let (losses, trace) = (&mut self.losses, &mut self.trace);
        self.forwarding
            .expire(now, idle, |why| note(losses, trace, why));
        if Wake::due(self.host.poll_timeout(), now) {
            self.host.handle_timeout(now);
            self.pump(now);
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let idle = self.config.reassembly_idle;
        let wake = |at: Option<Instant>, why| at.map(|at| Wake { at, why });
        let put = wake(self.reassembly.next_expiry(idle), "reassembly gives up");
        let pass = wake(self.forwarding.next_expiry(idle), "forwarding forgets");
        let rest = wake(self.resting, "pace");
        let own = Wake::earlier(rest, Wake::earlier(put, pass));
        Wake::earlier(self.host.poll_timeout(), own)
    }

    fn expects(&self) -> Expect {
        self.host.expects()
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop().or_else(|| self.host.poll_trace())
    }
}
