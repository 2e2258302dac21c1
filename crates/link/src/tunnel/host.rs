//! What stands between the link and the programs of this host: a TUN device, or streams without one.

use std::net::IpAddr;

use chappe_core::Instant;
use chappe_sys::tun::{Joined, Tun};
use chappe_sys::{EventLoop, Links};

use super::{TUN, Tunnel, TunnelConfig};
use crate::classify::facts;
use crate::streams::Streams;

/// The host's side of a tunnel.
pub(super) enum Host {
    Device(Tun),
    Streams(Box<Streams>),
}

/// The name that stands for no device, here and in files.
pub(super) const NONE: &str = "none";

impl Host {
    /// Makes the device and brings it up, or opens the listeners.
    pub fn open(config: &TunnelConfig, mtu: usize, events: &EventLoop) -> chappe_sys::Result<Host> {
        if let Some(streams) = &config.streams {
            let streams = Streams::open(streams, &config.addresses, mtu, events)?;
            return Ok(Host::Streams(Box::new(streams)));
        }
        let tun = Tun::create_joining(&config.device)?;
        let links = Links::open()?;
        links.set_mtu(tun.name(), mtu as u32)?;
        links.set_queue_len(tun.name(), config.device_queue)?;
        for &(address, prefix) in &config.addresses {
            match address {
                IpAddr::V4(address) => links.add_address(tun.name(), address, prefix)?,
                IpAddr::V6(address) => links.add_address_v6(tun.name(), address, prefix)?,
            }
        }
        links.up(tun.name())?;
        events.add(&tun, TUN)?;
        Ok(Host::Device(tun))
    }

    pub fn name(&self) -> &str {
        match self {
            Host::Device(tun) => tun.name(),
            Host::Streams(_) => NONE,
        }
    }

    /// Gives the host a packet of the peer at a place; false if it has no room.
    pub fn take(
        &mut self,
        now: Instant,
        place: usize,
        packet: &[u8],
        joined: Option<Joined>,
    ) -> chappe_sys::Result<bool> {
        match self {
            Host::Device(tun) => tun.send_joined(packet, joined),
            Host::Streams(streams) => Ok(streams.hear(now, place, packet)),
        }
    }
}

/// Turns of the streams in one round of the loop at most: then what arrives is read.
const TURNS: usize = 8;

impl Tunnel {
    /// Something of the streams is ready.
    pub(super) fn stream_ready(&mut self, token: u64) {
        let now = self.clock.now();
        let routes = &self.routes;
        if let Host::Streams(streams) = &mut self.host {
            streams.ready(now, token, &self.events, &|to| routes.find(to));
        }
    }

    /// Moves what streams can move, as far as their peers take packets.
    pub(super) fn turn_streams(&mut self, now: Instant) {
        let Host::Streams(streams) = &mut self.host else {
            return;
        };
        for _ in 0..TURNS {
            streams.turn(now, &self.events);
            let mut moved = false;
            for number in streams.places() {
                let Some(Some(place)) = self.places.get_mut(number) else {
                    continue;
                };
                // A packet that would cost another one waits in the stack, and its program with it.
                while place.peer.has_room(1)
                    && let Some(packet) = streams.next_packet(number)
                {
                    if let Some(facts) = facts(&packet) {
                        let class = (facts.service, facts.flow);
                        place.peer.offer_joined(now, class, &packet, None);
                        moved = true;
                    }
                }
                if moved {
                    self.turns.touch(number);
                }
            }
            if !moved {
                return;
            }
        }
    }
}
