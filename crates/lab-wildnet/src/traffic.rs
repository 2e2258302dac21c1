//! What runs over a link: constant-rate or saturating UDP, TCP of this project, or what comes from another radio.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_tcplp::host::Host;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};

use super::hosts::Mail;
use super::ipv4;
use super::pings::Pings;
use super::serial::Serial;
use super::stream::Tunnel;

/// Octets of payload in each datagram: the paper's (2.3).
pub const UDP_PAYLOAD: usize = 1440;
/// Octets of the IP packet around it.
const UDP_PACKET: usize = UDP_PAYLOAD + 28;

/// Room for any packet.
pub const PACKET_MAX: usize = 2304;

/// What stands behind one radio.
pub enum Traffic<'a> {
    /// Datagrams.
    Udp(Udp),
    /// One connection in each direction that has something to send.
    Tcp(Box<Host<'a, Mail, 2>>),
    /// The same behind a Snoop agent.
    Snooped(Box<Snoop>, Box<Host<'a, Mail, 2>>),
    /// A stream over KCP.
    Kcp(Box<Tunnel>),
    /// Pings beside datagrams.
    Pinged(Box<Pings>),
    /// The other radio of the same mast.
    Relay(Relay),
}

/// Packets that wait between the two radios of a mast; more are dropped. A tenth of Linux's usual 1000 (`txqueuelen`).
const PASSAGE: usize = 100;

/// Packets from one radio of a mast to the other.
#[derive(Debug, Default)]
pub struct Passage {
    packets: VecDeque<Vec<u8>>,
    /// Some came since this was last asked.
    fresh: bool,
}

impl Passage {
    /// What waits is lost.
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// Whether packets came since the last call.
    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}

/// One radio's end of a mast's two passages.
#[derive(Clone, Debug, Default)]
pub struct Relay {
    /// What this radio is to send.
    pub take: Rc<RefCell<Passage>>,
    /// Where what it receives goes.
    pub give: Rc<RefCell<Passage>>,
}

impl Relay {
    fn put(&self, packet: &[u8]) {
        let mut give = self.give.borrow_mut();
        if give.packets.len() < PASSAGE {
            give.packets.push_back(packet.to_vec());
            give.fresh = true;
        }
    }

    fn next(&self, packet: &mut [u8]) -> Option<usize> {
        let next = self.take.borrow_mut().packets.pop_front()?;
        packet.get_mut(..next.len())?.copy_from_slice(&next);
        Some(next.len())
    }
}

/// A source and a sink of datagrams.
#[derive(Debug, Default)]
pub struct Udp {
    source: Source,
    /// How long each datagram took that was offered from `since` to `until`, in order of arrival, s.
    pub delays: Vec<f64>,
    /// From when on they are counted.
    pub since: Instant,
    /// Until when.
    pub until: Instant,
    /// Datagrams offered in that time.
    pub offered: u64,
    /// Datagrams that came, whenever they had been offered.
    pub received: u64,
    /// The numbers of those that were sent, and what is wrong with those that came.
    pub serial: Serial,
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
    /// Counts from `since` to `until`.
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

impl<'a> Traffic<'a> {
    /// The TCP host, if there is one.
    pub fn host(&self) -> Option<&Host<'a, Mail, 2>> {
        match self {
            Traffic::Tcp(host) | Traffic::Snooped(_, host) => Some(host),
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => None,
        }
    }

    /// A packet that does not wait behind others.
    pub fn poll_urgent(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self {
            Traffic::Pinged(pings) if pings.apart => pings.poll_urgent(now, packet),
            _ => None,
        }
    }

    /// The same when the router before it starts over: an agent forgets, hosts do not.
    pub fn restarted(self) -> Traffic<'a> {
        match self {
            Traffic::Snooped(_, host) => {
                Traffic::Snooped(Box::new(Snoop::new(SnoopConfig::default())), host)
            }
            other => other,
        }
    }

    /// The same, to start it.
    pub fn host_mut(&mut self) -> Option<&mut Host<'a, Mail, 2>> {
        match self {
            Traffic::Tcp(host) | Traffic::Snooped(_, host) => Some(host),
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => None,
        }
    }
}

/// Between TCP and the translation of its headers.
impl Traffic<'_> {
    fn handle_segment(&mut self, now: Instant, packet: &[u8]) {
        match self {
            Traffic::Tcp(host) => host.handle_packet(now, packet),
            Traffic::Snooped(snoop, host) => {
                if snoop.from_link(now, packet) {
                    host.handle_packet(now, packet);
                }
            }
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => {}
        }
    }

    fn poll_segment(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self {
            Traffic::Tcp(host) => host.poll_packet(now, packet),
            Traffic::Snooped(snoop, host) => snoop.poll_packet(now, packet).or_else(|| {
                let len = host.poll_packet(now, packet)?;
                snoop.from_host(now, packet.get(..len)?);
                Some(len)
            }),
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => None,
        }
    }
}

impl HostNode for Traffic<'_> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        match self {
            Traffic::Udp(udp) => udp.handle_packet(now, packet),
            Traffic::Kcp(tunnel) => tunnel.handle_packet(now, packet),
            Traffic::Pinged(pings) => pings.handle_packet(now, packet),
            Traffic::Relay(relay) => relay.put(packet),
            Traffic::Tcp(_) | Traffic::Snooped(..) => {
                let mut long = [0; PACKET_MAX];
                if let Some(len) = ipv4::lengthen(packet, &mut long) {
                    self.handle_segment(now, &long[..len]);
                }
            }
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self {
            Traffic::Udp(udp) => udp.poll_packet(now, packet),
            Traffic::Kcp(tunnel) => tunnel.poll_packet(now, packet),
            Traffic::Pinged(pings) => pings.poll_packet(now, packet),
            Traffic::Relay(relay) => relay.next(packet),
            Traffic::Tcp(_) | Traffic::Snooped(..) => {
                let len = self.poll_segment(now, packet)?;
                Some(ipv4::shorten(packet, len))
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Traffic::Udp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => {}
            Traffic::Tcp(host) => host.handle_timeout(now),
            Traffic::Kcp(tunnel) => tunnel.handle_timeout(now),
            Traffic::Snooped(snoop, host) => {
                snoop.handle_timeout(now);
                if Wake::due(host.poll_timeout(), now) {
                    host.handle_timeout(now);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Traffic::Udp(udp) => udp.poll_timeout(),
            Traffic::Tcp(host) => host.poll_timeout(),
            Traffic::Kcp(tunnel) => tunnel.poll_timeout(),
            Traffic::Pinged(pings) => pings.poll_timeout(),
            Traffic::Snooped(snoop, host) => {
                Wake::earlier(snoop.poll_timeout(), host.poll_timeout())
            }
            Traffic::Relay(_) => None,
        }
    }
}
