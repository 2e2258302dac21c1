//! UDP: steady or saturating datagrams, their delays, and what is missing.

use chappe_core::{Duration, HostNode, Instant, Wake};

use crate::serial::Serial;

/// Octets of payload in each datagram, as in the paper (2.3).
pub const UDP_PAYLOAD: usize = 1440;
/// Octets of the IP packet of a datagram.
const UDP_PACKET: usize = UDP_PAYLOAD + 28;

/// A source and a sink of numbered datagrams.
#[derive(Debug, Default)]
pub struct Udp {
    source: Source,
    /// Delays of the datagrams offered from `since` to `until`, in order of arrival, in s.
    pub delays: Vec<f64>,
    /// Start of the measured interval.
    pub since: Instant,
    /// End of the measured interval.
    pub until: Instant,
    /// Datagrams offered in the measured interval.
    pub offered: u64,
    /// Datagrams received, whenever they were offered.
    pub received: u64,
    /// Numbers of sent datagrams, and faults of received ones.
    pub serial: Serial,
}

/// When a source offers datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// It never offers datagrams.
    #[default]
    Silent,
    /// Whenever the link has room.
    Full,
    /// First at this time, and then at even intervals.
    Steady(Instant, Duration),
}

impl Udp {
    /// A source and sink that measure from `since` to `until`.
    pub fn new(source: Source, since: Instant, until: Instant) -> Udp {
        Udp {
            source,
            since,
            until,
            ..Udp::default()
        }
    }

    fn counts(&self, at: Instant) -> bool {
        self.since <= at && at < self.until
    }

    fn stamp(&mut self, at: Instant, packet: &mut [u8]) -> Option<usize> {
        let packet = packet.get_mut(..UDP_PACKET)?;
        packet.fill(7);
        packet[..8].copy_from_slice(&at.nanos().to_be_bytes());
        self.serial.stamp(&mut packet[8..]);
        self.offered += u64::from(self.counts(at));
        Some(UDP_PACKET)
    }
}

impl HostNode for Udp {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(stamp) = packet.first_chunk() else {
            return;
        };
        self.received += 1;
        self.serial.check(&packet[8..], UDP_PACKET - 8);
        let at = Instant::from_nanos(u64::from_be_bytes(*stamp));
        if self.counts(at) {
            self.delays.push(now.saturating_since(at).as_secs_f64());
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self.source {
            Source::Silent => None,
            Source::Full => self.stamp(now, packet),
            Source::Steady(at, every) if at <= now => {
                // Stamped with the time at which it was due, so that waiting for room counts as delay.
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
