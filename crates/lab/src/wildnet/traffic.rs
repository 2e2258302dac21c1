//! What runs over the link: constant-rate or saturating UDP, or TCP of this project.

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_tcplp::host::{Bulk, Host};

/// Octets of payload in each datagram: the paper's (2.3).
pub const UDP_PAYLOAD: usize = 1440;
/// Octets of the IP packet around it.
const UDP_PACKET: usize = UDP_PAYLOAD + 28;

/// A host at one end.
pub enum Traffic<'a> {
    /// Datagrams.
    Udp(Udp),
    /// One connection in each direction that has something to send.
    Tcp(Box<Host<'a, Bulk, 2>>),
}

/// A source and a sink of datagrams.
#[derive(Debug, Default)]
pub struct Udp {
    source: Source,
    /// When the datagrams that came had been offered, and how long each took; from `since` on.
    pub delays: Vec<f64>,
    /// From when on they are counted.
    pub since: Instant,
    /// Datagrams offered since then.
    pub offered: u64,
    /// Datagrams that came, whenever they had been offered.
    pub received: u64,
}

/// When datagrams are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Never.
    #[default]
    Silent,
    /// Whenever there is room.
    Full,
    /// At this moment, and then at even intervals.
    Steady(Instant, Duration),
}

impl Udp {
    /// Counts from `since` on.
    pub fn new(source: Source, since: Instant) -> Udp {
        Udp {
            source,
            since,
            ..Udp::default()
        }
    }

    fn stamp(&mut self, at: Instant, packet: &mut [u8]) -> Option<usize> {
        let packet = packet.get_mut(..UDP_PACKET)?;
        packet.fill(7);
        packet[..8].copy_from_slice(&at.nanos().to_be_bytes());
        self.offered += u64::from(at >= self.since);
        Some(UDP_PACKET)
    }
}

impl HostNode for Udp {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(stamp) = packet.first_chunk() else {
            return;
        };
        self.received += 1;
        let at = Instant::from_nanos(u64::from_be_bytes(*stamp));
        if at >= self.since {
            self.delays.push(now.saturating_since(at).as_secs_f64());
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self.source {
            Source::Silent => None,
            Source::Full => self.stamp(now, packet),
            Source::Steady(at, every) if at <= now => {
                self.source = Source::Steady(at + every, every);
                self.stamp(at, packet)
            }
            Source::Steady(..) => None,
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        match self.source {
            Source::Steady(at, _) => Some(Wake {
                at,
                why: "next datagram",
            }),
            _ => None,
        }
    }
}

impl Traffic<'_> {
    fn node(&mut self) -> &mut dyn HostNode {
        match self {
            Traffic::Udp(udp) => udp,
            Traffic::Tcp(host) => host.as_mut(),
        }
    }
}

impl HostNode for Traffic<'_> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.node().handle_packet(now, packet);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        self.node().poll_packet(now, packet)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Traffic::Udp(udp) => udp.poll_timeout(),
            Traffic::Tcp(host) => host.poll_timeout(),
        }
    }
}
