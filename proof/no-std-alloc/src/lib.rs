//! Builds only if the protocols need no operating system beyond an allocator.
//!
//! The allocator is the simplest one that works: it hands out one block of memory from front to back.

#![no_std]

extern crate alloc;

mod bump;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::panic::PanicInfo;

use chappe_core::{
    Address, Arrival, Caps, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_dpclo::{Room, Router, Settings};
use chappe_pacifier::{Config, Links, Node};
use chappe_wildnet::{Link, Opportunity, Recovery, SERVICES, Service, Site, SlotConfig};

/// Octets of the object that is sent.
const OBJECT: usize = 3000;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Sends an object from node 0 to node 1 by Pacifier, packets over a link of WiLDNet and a packet by DPCLO, and returns a
/// number made of what arrived; zero if it did not.
#[unsafe(no_mangle)]
pub extern "C" fn chappe_proof(seed: u64) -> u64 {
    let (pacifier, wildnet, dpclo) = (pacifier(seed), wildnet(seed), dpclo(seed));
    let both = pacifier.zip(wildnet).map(|(a, b)| a ^ b);
    both.zip(dpclo).map_or(0, |(both, dpclo)| both ^ dpclo)
}

/// Two routers measure their link, tell their routes, and one sends the other a packet.
fn dpclo(seed: u64) -> Option<u64> {
    let mut settings = Settings::improved();
    settings.room = Room {
        destinations: 4,
        neighbours: 4,
        packets: 8,
        payload: 100,
        flows: 2,
        sources: 2,
        seen: 16,
    };
    let caps = Caps {
        frame_max: 300,
        schedules: false,
        start_error: Duration::ZERO,
        reports_power: false,
        overhears: true,
        confirms_broadcast: true,
        hastens: false,
    };
    let router = |me: u16| {
        let random = Seed(seed).stream(Purpose::Node(me.into()));
        Router::new(settings, me, 0, &caps, Instant::ZERO, random).ok()
    };
    let (mut here, mut there) = (router(0)?, router(1)?);
    let (mut frame, mut packet) = ([0; 300], [0; 100]);
    for ms in 0..12_000 {
        let now = Instant::from_millis(ms);
        if ms == 10_000 {
            here.offer(now, 1, 7, &[9; 50]).ok()?;
        }
        for turn in 0..2 {
            let (from, to) = match turn {
                0 => (&mut here, &mut there),
                _ => (&mut there, &mut here),
            };
            from.handle_timeout(now);
            let Some(send) = from.poll_link(now, Classes::ALL, &mut frame) else {
                continue;
            };
            let (token, outcome) = (send.token, Outcome::Acknowledged { attempts: 1 });
            let arrival = Arrival {
                from: Address::node(from.number()),
                to: send.to,
                sdu: frame.get(..send.len)?,
                power: None,
            };
            to.handle_link(now, LinkEvent::Received(arrival));
            from.handle_link(now, LinkEvent::Sent { token, outcome });
        }
        if let Some(delivery) = there.poll_delivery(&mut packet) {
            return Some(u64::from(delivery.flow) + delivery.len as u64);
        }
    }
    None
}

/// Packets that the link carries.
const PACKETS: u8 = 40;

/// Two ends speak in turns; every fourth frame is lost. All packets must arrive in order.
fn wildnet(seed: u64) -> Option<u64> {
    let config = chappe_wildnet::Config {
        frame_max: 300,
        window: 16,
        queue: 8,
        recovery: Recovery::Improved { fill: true },
        services: [Service::retries(None); SERVICES],
        ..chappe_wildnet::Config::slots()
    };
    let slot = Duration::from_millis(20);
    let site = Site::new(
        SlotConfig::dot11b(slot),
        1,
        Seed(seed).stream(Purpose::Node(0)),
    );
    let mut here = Link::new(config, 1).ok()?;
    let mut there = Link::new(config, 2).ok()?;
    let (mut sent, mut came, mut frames) = (0, 0, 0u64);
    let (mut frame, mut packet) = ([0; 300], [0; 300]);
    let mut now = Instant::ZERO;
    for turn in 0..200 {
        now += slot;
        site.advance(now);
        while sent < PACKETS && here.offer(now, 1, 0, &[sent; 100]) {
            sent += 1;
        }
        let (from, to) = match turn % 2 {
            0 => (&mut here, &mut there),
            _ => (&mut there, &mut here),
        };
        from.begin_slot(now);
        for fits in (1..=8).rev() {
            let chance = Opportunity {
                fits,
                most: usize::MAX,
                fill: true,
                last: false,
                slot: None,
                again: true,
                new: true,
            };
            let Some(len) = from.poll(now, chance, &mut frame) else {
                break;
            };
            frames += 1;
            if frames % 4 != 0 {
                to.handle(now, frame.get(..len)?).ok()?;
            }
        }
        while let Some(delivery) = there.deliver(&mut packet) {
            if packet.get(..delivery.len)? != [came; 100] {
                return None;
            }
            came += 1;
        }
        if came == PACKETS {
            return Some(frames ^ site.turn().index << 32);
        }
    }
    None
}

fn pacifier(seed: u64) -> Option<u64> {
    let links = Arc::new(Links::new(2, vec![0.0, 0.9, 0.9, 0.0]).ok()?);
    let config = Config::default().with_batch(4, 200);
    let mut nodes = Vec::new();
    for me in 0..2 {
        let random = Seed(seed).stream(Purpose::Node(u32::from(me)));
        nodes.push(Node::new(config.clone(), me, links.clone(), random).ok()?);
    }
    let mut object = vec![0; OBJECT];
    Seed(seed).stream(Purpose::Trial(0)).fill(&mut object);
    let [source, receiver] = &mut nodes[..] else {
        return None;
    };
    source.offer(object.clone().into(), &[1]).ok()?;
    receiver.expect(0, OBJECT).ok()?;
    let mut now = Instant::from_millis(1);
    for _ in 0..1000 {
        carry(now, source, 0, receiver);
        carry(now, receiver, 1, source);
        if source.source_done() {
            return (receiver.object()? == object).then(|| now.nanos());
        }
        now += Duration::from_millis(10);
        for node in [&mut *source, &mut *receiver] {
            node.handle_timeout(now);
        }
    }
    None
}

/// Takes one frame from a node, if it has one, hands it to the other and reports it as sent.
fn carry(now: Instant, from: &mut Node, number: u16, to: &mut Node) {
    let mut sdu = [0; 2304];
    let Some(send) = from.poll_link(now, Classes::ALL, &mut sdu) else {
        return;
    };
    let arrival = Arrival {
        from: Address::node(number),
        to: send.to,
        sdu: sdu.get(..send.len).unwrap_or_default(),
        power: None,
    };
    to.handle_link(now, LinkEvent::Received(arrival));
    let outcome = match send.to.is_broadcast() {
        true => Outcome::Unconfirmed,
        false => Outcome::Acknowledged { attempts: 1 },
    };
    from.handle_link(
        now,
        LinkEvent::Sent {
            token: send.token,
            outcome,
        },
    );
}
