//! Builds only if the rooms below the protocols need neither an operating system nor an allocator.
//!
//! One packet goes through them: drawn, coded, framed, parsed, decoded. Nothing of it is optimised away, since
//! the seed comes from outside and the sum of all results goes back.

#![no_std]

mod low_power;

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use chappe_coding::{Batch, Encoder, Erasure, Rows, RowsMut, Shape};
use chappe_core::{
    Address, Class, Classes, Db, Dbm, Duration, Instant, LinkEvent, LinkNode, LinkSend, Mode,
    OverMac, Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Wake,
};
use chappe_mac::dot11::{Config, Dot11};
use chappe_wire::dot11::{Frame, NavTime, Repr};

/// Packets in the batch.
const K: usize = 8;
/// Octets of a packet.
const LEN: usize = 32;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Runs through every room and returns a number that depends on all of them; zero if one of them failed.
#[unsafe(no_mangle)]
pub extern "C" fn chappe_proof(seed: u64) -> u64 {
    let parts = [
        numbers(seed),
        frames(seed),
        network_code(seed),
        erasure_code(seed),
        channel_access(seed),
        pipeline(seed),
        low_power::packet(seed),
    ];
    parts
        .into_iter()
        .try_fold(0u64, |sum, part| Some(sum.wrapping_add(part?)))
        .unwrap_or(0)
}

fn numbers(seed: u64) -> Option<u64> {
    let mut random = Seed(seed).stream(Purpose::Node(1));
    let airtime = Mode::long(Rate::Dsss2).airtime(random.below(1500) as usize);
    let noise = (Dbm(-94.0) + Db(random.normal())).to_milliwatt().to_dbm();
    Some(airtime.nanos().wrapping_add(noise.0.to_bits()))
}

fn frames(seed: u64) -> Option<u64> {
    let receiver = Address::node(seed as u16);
    let duration = NavTime::covering(Duration::from_micros(seed % 1000));
    let mut psdu = [0; 64];
    let len = Repr::Ack { receiver, duration }.emit(&mut psdu).ok()?;
    let frame = Frame::new(psdu.get(..len)?).ok()?;
    let mut text = Sum(0);
    write!(text, "{frame} {:?}", Repr::parse(&frame)).ok()?;
    let check = chappe_wire::fcs::of(psdu.get(..len)?);
    Some(text.0.wrapping_add(u64::from(u32::from_le_bytes(check))))
}

fn network_code(seed: u64) -> Option<u64> {
    let mut random = Seed(seed).stream(Purpose::Node(2));
    let shape = Shape::new(K, LEN).ok()?;
    let mut object = [0; K * LEN];
    random.fill(&mut object);
    let source = Encoder::new(Rows::new(shape, &object).ok()?).ok()?;
    let mut relay = Batch::<K, _>::new(shape, [0; K * LEN]).ok()?;
    let mut receiver = Batch::<K, _>::new(shape, [0; K * LEN]).ok()?;
    let (mut coefficients, mut payload) = ([0; K], [0; LEN]);
    while !receiver.is_full() {
        source
            .encode_random(|bytes| random.fill(bytes), &mut coefficients, &mut payload)
            .ok()?;
        let _ = relay.insert(&coefficients, &payload);
        relay
            .recode(|bytes| random.fill(bytes), &mut coefficients, &mut payload)
            .ok()?;
        let _ = receiver.insert(&coefficients, &payload);
    }
    receiver.decode().ok()?;
    (receiver.into_payloads() == object).then(|| sum(&object))
}

fn erasure_code(seed: u64) -> Option<u64> {
    let mut data = [0; K * LEN];
    Seed(seed).stream(Purpose::Trial(3)).fill(&mut data);
    let mut parity = [0; 2 * LEN];
    let code = Erasure::new(K, 2).ok()?;
    let data = Rows::new(Shape::new(K, LEN).ok()?, &data).ok()?;
    code.encode(
        data,
        RowsMut::new(Shape::new(2, LEN).ok()?, &mut parity).ok()?,
    )
    .ok()?;
    Some(sum(&parity))
}

/// A whole transfer by P³: source, two relays, destination.
fn pipeline(seed: u64) -> Option<u64> {
    let mut octets = Octets(0);
    let end = p3_relay::play(seed, &mut octets)?;
    end.complete.then(|| octets.0.wrapping_add(end.at.nanos()))
}

/// Adds up what the nodes send.
struct Octets(u64);

impl p3_relay::Watcher for Octets {
    fn sends(&mut self, at: Instant, _: p3_relay::Role, _: u8, psdu: &[u8]) {
        self.0 = self.0.wrapping_add(sum(psdu)).wrapping_add(at.nanos());
    }
}

/// A station with one broadcast to send, on an idle channel: it ends when the frame has gone out.
fn channel_access(seed: u64) -> Option<u64> {
    let random = Seed(seed).stream(Purpose::Node(4));
    let mac = Dot11::new(Config::dot11b(Rate::Dsss2), Address::node(4), random);
    let mut node = OverMac::new(mac, OneFrame { sent: false });
    let mut psdu = [0; 2304];
    let mut now = Instant::from_millis(1);
    node.handle_timeout(now);
    for _ in 0..100 {
        while let Some(request) = node.poll_radio(now, &mut psdu) {
            match request {
                RadioRequest::Sense(true) => {
                    let busy = RadioEvent::Carrier {
                        busy: false,
                        since: Instant::ZERO,
                    };
                    node.handle_radio(now, busy);
                }
                RadioRequest::Transmit(frame) => {
                    let octets = psdu.get(..frame.len)?;
                    return Some(sum(octets).wrapping_add(frame.airtime(4).nanos()));
                }
                _ => {}
            }
        }
        now = node.poll_timeout()?.at;
        node.handle_timeout(now);
    }
    None
}

/// Has one frame to send, once.
struct OneFrame {
    sent: bool,
}

impl LinkNode for OneFrame {
    fn handle_link(&mut self, _: Instant, _: LinkEvent<'_>) {}

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.sent)
    }

    fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        sdu.first_chunk_mut::<5>()?.copy_from_slice(b"tower");
        let to = Address::BROADCAST;
        let send = LinkSend {
            to,
            len: 5,
            class: Class::Data,
            mode: None,
            token: 0,
        };
        (!core::mem::replace(&mut self.sent, true)).then_some(send)
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    })
}

/// Adds up what is written to it.
struct Sum(u64);

impl Write for Sum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.wrapping_add(sum(text.as_bytes()));
        Ok(())
    }
}
