//! The traffic of one radio: UDP, this project's TCP, KCP, pings, or packets from the mast's other radios.

mod junction;

use chappe_core::{HostNode, Instant, Wake};
use chappe_tcplp::host::Host;
use chappe_wildnet::baseline::{Snoop, SnoopConfig};

use crate::hosts::BulkApp;
use crate::ipv4;
use crate::pings::Pings;
use crate::relay::Relay;
use crate::stream::Tunnel;
use crate::udp::Udp;

pub use junction::Junction;

/// Octets of the largest packet.
pub const PACKET_MAX: usize = 2304;

/// What stands behind one radio and exchanges packets with it.
pub enum Traffic<'a> {
    /// UDP datagrams at one end.
    Udp(Udp),
    /// A TCP host: one connection in each direction that has data.
    Tcp(Box<Host<'a, BulkApp, 2>>),
    /// A TCP host behind a Snoop agent.
    Snooped(Box<Snoop>, Box<Host<'a, BulkApp, 2>>),
    /// A byte stream over KCP.
    Kcp(Box<Tunnel>),
    /// Pings that share the link with datagrams.
    Pinged(Box<Pings>),
    /// The other radios of the same mast.
    Relay(Relay),
    /// Several hosts, or hosts and the other radios.
    Junction(Box<Junction<'a>>),
}

impl<'a> Traffic<'a> {
    /// The TCP hosts behind this radio.
    pub fn hosts(&self) -> Vec<&Host<'a, BulkApp, 2>> {
        match self {
            Traffic::Tcp(host) | Traffic::Snooped(_, host) => vec![host],
            Traffic::Junction(junction) => {
                let hosts = junction.hosts.iter();
                hosts.flat_map(|(_, traffic)| traffic.hosts()).collect()
            }
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => {
                Vec::new()
            }
        }
    }

    /// Polls for a packet of the urgent class, and returns its length.
    pub fn poll_urgent(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        match self {
            Traffic::Pinged(pings) if pings.apart => pings.poll_urgent(now, packet),
            _ => None,
        }
    }

    /// The traffic after its mast restarted: a Snoop agent runs on the mast and loses its state, hosts keep theirs.
    pub fn restarted(self) -> Traffic<'a> {
        match self {
            Traffic::Snooped(_, host) => {
                Traffic::Snooped(Box::new(Snoop::new(SnoopConfig::default())), host)
            }
            Traffic::Junction(junction) => Traffic::Junction(Box::new(junction.restarted())),
            other => other,
        }
    }

    /// The same hosts, mutable, to connect them.
    pub fn hosts_mut(&mut self) -> Vec<&mut Host<'a, BulkApp, 2>> {
        match self {
            Traffic::Tcp(host) | Traffic::Snooped(_, host) => vec![host],
            Traffic::Junction(junction) => {
                let hosts = junction.hosts.iter_mut();
                hosts.flat_map(|(_, traffic)| traffic.hosts_mut()).collect()
            }
            Traffic::Udp(_) | Traffic::Kcp(_) | Traffic::Pinged(_) | Traffic::Relay(_) => {
                Vec::new()
            }
        }
    }
}

/// TCP before the translation of its headers: hosts and agents read IPv6, the air carries IPv4.
impl Traffic<'_> {
    fn handle_segment(&mut self, now: Instant, packet: &[u8]) {
        match self {
            Traffic::Tcp(host) => host.handle_packet(now, packet),
            Traffic::Snooped(snoop, host) => {
                if snoop.from_link(now, packet) {
                    host.handle_packet(now, packet);
                }
            }
            Traffic::Udp(_)
            | Traffic::Kcp(_)
            | Traffic::Pinged(_)
            | Traffic::Relay(_)
            | Traffic::Junction(_) => {}
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
            _ => None,
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
            Traffic::Junction(junction) => junction.handle_packet(now, packet),
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
            Traffic::Junction(junction) => junction.poll_packet(now, packet),
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
            Traffic::Junction(junction) => junction.handle_timeout(now),
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
            Traffic::Junction(junction) => junction.poll_timeout(),
        }
    }
}
