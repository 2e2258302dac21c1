//! Packets between a TUN device and Ethernet frames, and nothing else: the least that a daemon of this kind can cost.

use std::os::fd::AsFd;

use chappe_core::Address;
use chappe_live::{Carrier, Port};
use chappe_mesh::daemon::ETHER_TYPE;
use chappe_mesh::node::mtu_of;
use chappe_mesh::segments::{self, Joiner};
use chappe_sys::packet::{self, BROADCAST, Framing};
use chappe_sys::tun::{Joins, Tun};
use chappe_sys::{BATCH, Clock, EventLoop, Interface, Links, Ready, Received, Result, Socket};

const TUN: u64 = 0;
const RADIO: u64 = 1;

/// Forwards until a signal comes, under the address of a node of the mesh. `joined`: whether the device passes joined segments.
pub fn serve(node: u16, joined: bool) -> Result<()> {
    let carrier = Carrier::Packet {
        ether_type: ETHER_TYPE,
    };
    let caps = Port::open("radio0", Address::node(node), carrier)?.caps();
    let mtu = mtu_of(caps.frame_max);
    let tun = Tun::create_joining("mesh%d")?;
    let joins = match joined {
        true => tun.join_all(),
        false => Joins::default(),
    };
    let links = Links::open()?;
    links.set_mtu(tun.name(), mtu as u32)?;
    links.add_address(tun.name(), [10, 77, 0, node as u8].into(), 16)?;
    links.up(tun.name())?;
    let radio = packet::open(&Interface::find("radio0")?, ETHER_TYPE, Framing::Payload)?;
    let mut events = EventLoop::new(Clock::start())?;
    events.watch_signals()?;
    events.add(&tun, TUN)?;
    events.add(radio.as_fd(), RADIO)?;
    let (mut ready, mut received) = (Vec::new(), Received::new(2048));
    let mut outward = Outward {
        packet: vec![0; (1 << 16) + 10],
        room: Vec::new(),
        frames: Vec::new(),
    };
    let mut joiner = Joiner::new(joins);
    loop {
        events.wait(&mut ready)?;
        for event in ready.drain(..) {
            match event {
                Ready::Readable(TUN) => outward.pass(&tun, &radio)?,
                Ready::Readable(_) => inward(&radio, &tun, &mut received, (&mut joiner, joined))?,
                Ready::Signal(_) => return Ok(()),
                _ => {}
            }
        }
    }
}

struct Outward {
    packet: Vec<u8>,
    room: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl Outward {
    /// As many packets as one call sends, each as a frame of its own.
    fn pass(&mut self, tun: &Tun, radio: &Socket) -> Result<()> {
        let mut count = 0;
        while count < BATCH {
            let Some((len, joined)) = tun.receive_joined(&mut self.packet)? else {
                break;
            };
            let packet = &self.packet[..len];
            let frames = &mut self.frames;
            let mut keep = |one: &[u8]| {
                if frames.len() == count {
                    frames.push(Vec::new());
                }
                frames[count].clear();
                // As much as the mesh's frames have around a packet.
                frames[count].extend_from_slice(&[0; 64]);
                frames[count].extend_from_slice(one);
                count += 1;
            };
            match joined {
                Some(joined) => drop(segments::cut(packet, joined, &mut self.room, keep)),
                None => keep(packet),
            }
        }
        let mut sent = 0;
        while sent < count {
            let frames = self.frames[sent..count].iter();
            match radio.send(frames.map(|frame| (&frame[..], BROADCAST)))? {
                0 => break,
                some => sent += some,
            }
        }
        Ok(())
    }
}

fn inward(
    radio: &Socket,
    tun: &Tun,
    received: &mut Received,
    (joiner, joined): (&mut Joiner, bool),
) -> Result<()> {
    radio.receive(received)?;
    let give = |joiner: &mut Joiner| match joiner.take() {
        Some((packet, joined)) => tun.send_joined(packet, joined),
        None => Ok(true),
    };
    for (_, frame) in received.iter().flatten() {
        let packet = frame.get(64..).unwrap_or_default();
        // Each alone, if the device passes no joined segments.
        if !joined || !joiner.push(packet) {
            give(joiner)?;
            joiner.push(packet);
        }
    }
    give(joiner)?;
    Ok(())
}
