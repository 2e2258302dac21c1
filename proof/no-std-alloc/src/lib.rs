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
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_pacifier::{Config, Links, Node};

/// Octets of the object that is sent.
const OBJECT: usize = 3000;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Sends an object from node 0 to node 1 by Pacifier and returns a number made of what arrived; zero if it did not.
#[unsafe(no_mangle)]
pub extern "C" fn chappe_proof(seed: u64) -> u64 {
    pacifier(seed).unwrap_or(0)
}

fn pacifier(seed: u64) -> Option<u64> {
    let links = Arc::new(Links::new(2, vec![0.0, 0.9, 0.9, 0.0]).ok()?);
    let config = Config {
        k: 4,
        payload: 200,
        ..Config::default()
    };
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
