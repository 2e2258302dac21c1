//! Attackers within radio range of a mesh without link-layer security: fragments and compressed headers.
//!
//! With link-layer security no frame of theirs gets past the MAC. Method: frames are handed to one interface.

use chappe_core::{Duration, HostNode, Purpose, Seed};
use chappe_tcplp::lowpan::Lost;
use chappe_wire::sixlowpan::frag::Fragment;

use crate::lowpan::{Stack, drain, frames_of, hand, stack};
use crate::support::mote::{ms, packet, tcp_host};

/// Slots of the interface under test.
pub const SLOTS: usize = 4;
/// Octets of the attacker's datagrams: the largest, so that they take longest.
const LARGE: usize = 1280;

/// Two fragments of a datagram that will not be completed: with two it counts as in progress. Each has another source, since a neighbour
/// sends one datagram at a time between the same ends.
fn two_fragments(from: u16, tag: u16) -> [Vec<u8>; 2] {
    let frames = frames_of(from, packet(20 + tag, 2, LARGE));
    [0, 1].map(|place| retag(&frames[place], tag))
}

fn retag(sdu: &[u8], tag: u16) -> Vec<u8> {
    let mut sdu = sdu.to_vec();
    sdu[2..4].copy_from_slice(&tag.to_be_bytes());
    sdu
}

/// Whether a genuine datagram of neighbour 1 gets through now.
fn gets_through(node: &mut Stack, now: u64, tag: u16) -> bool {
    let before = node.host().got.len();
    for sdu in frames_of(1, packet(1, 2, 300)) {
        hand(ms(now), node, 1, &retag(&sdu, tag));
    }
    node.host().got.len() > before
}

/// What a reassembly attack costs and does.
pub struct Exhaustion {
    /// Frames that take all slots.
    pub frames: usize,
    /// Milliseconds from the attacker's last frame until a genuine datagram gets through.
    pub locked_ms: u64,
    /// Frames a second that keep all slots taken.
    pub sustained: f64,
    /// Whether genuine datagrams got through while the attacker went on.
    pub during: bool,
}

/// All slots taken by datagrams in progress from two made-up neighbours, since one may not have all.
pub fn exhaust() -> Exhaustion {
    let mut node = stack(2);
    let mut frames = 0;
    for (slot, from) in [3, 3, 3, 4].into_iter().enumerate() {
        for sdu in two_fragments(from, slot as u16) {
            hand(ms(1), &mut node, from, &sdu);
            frames += 1;
        }
    }
    // Small fragments keep the datagrams alive: one for each slot in a quarter of a second.
    let mut during = false;
    let (mut now, step) = (1, 240);
    for round in 0..20u16 {
        now += step;
        for (slot, from) in [3, 3, 3, 4].into_iter().enumerate() {
            let fragment = Fragment {
                size: LARGE as u16,
                tag: slot as u16,
                offset: 60 + round as u8,
            };
            let mut sdu = vec![0; 5 + 8];
            let len = fragment.emit(&mut sdu).expect("it fits");
            sdu.truncate(len + 8);
            hand(ms(now), &mut node, from, &sdu);
        }
        during |= gets_through(&mut node, now + 1, 100 + round);
    }
    let free = (0..5000).find(|wait| gets_through(&mut node, now + wait, 200 + *wait as u16));
    Exhaustion {
        frames,
        locked_ms: free.expect("the lock ends"),
        sustained: SLOTS as f64 * 1000.0 / step as f64,
        during,
    }
}

/// The lock lasts as long as the attacker sends, and at most `slot_idle` longer.
#[test]
fn reassembly_is_locked_no_longer_than_a_slot_may_idle() {
    let done = exhaust();
    let idle = stack(2).config().slot_idle;
    assert!(
        Duration::from_millis(done.locked_ms) <= idle,
        "{} ms",
        done.locked_ms
    );
    assert!(!done.during, "the attack as described takes all slots");
}

/// One made-up fragment ends the datagram that it overlaps with, and no other. Returns how many it ends.
pub fn overlap() -> usize {
    let mut node = stack(2);
    let frames = frames_of(1, packet(1, 2, 300));
    hand(ms(1), &mut node, 1, &retag(&frames[0], 7));
    hand(ms(1), &mut node, 3, &frames_of(3, packet(3, 2, 300))[0]);
    let mut forged = retag(&frames[1], 7);
    let last = forged.len() - 1;
    forged[last] ^= 1;
    hand(ms(2), &mut node, 1, &forged);
    hand(ms(2), &mut node, 1, &retag(&frames[1], 7));
    assert_eq!(node.losses().of(Lost::Overlap), 1);
    for sdu in frames_of(3, packet(3, 2, 300)).iter().skip(1) {
        hand(ms(3), &mut node, 3, sdu);
    }
    assert_eq!(node.host().got.len(), 1, "the other neighbour's");
    assert!(gets_through(&mut node, 4, 8), "the next one");
    2 + 1 - node.host().got.len()
}

#[test]
fn an_overlap_ends_one_datagram() {
    assert_eq!(overlap(), 1);
}

/// Frames with confused headers.
pub const CONFUSED: u64 = 200_000;

/// Compressed headers that name contexts which do not exist, or any bits at all. Returns how many reach a socket or the application of a host:
/// none, since the checksum covers the addresses. The others are delivered to the host and dropped there, forwarded, or counted as lost.
pub fn confuse() -> u32 {
    let mut random = Seed(21).stream(Purpose::Trial(0));
    let mut node = stack(2);
    let mut host = tcp_host(1);
    let genuine = frames_of(1, packet(1, 2, 90)).remove(0);
    for round in 0..CONFUSED {
        let mut sdu = genuine.clone();
        // The dispatch stays IPHC; encoding bits, context octet and the inline fields change.
        sdu[0] = 0x60 | random.next_u64() as u8 & 0x1f;
        sdu[1] = random.next_u64() as u8;
        for _ in 0..random.below(6) {
            let place = 1 + random.below(sdu.len() as u64 - 1) as usize;
            sdu[place] = random.next_u64() as u8;
        }
        sdu.truncate(2 + random.below(sdu.len() as u64 - 1) as usize);
        let now = ms(round / 100);
        hand(now, &mut node, 1, &sdu);
        for packet in node.with_host(now, |host| std::mem::take(&mut host.got)) {
            host.handle_packet(now, &packet);
        }
        drain(now, &mut node);
    }
    let losses = node.losses();
    assert!(
        losses.of(Lost::Malformed) > CONFUSED as u32 / 20,
        "{losses:?}"
    );
    let taken = host.counters();
    taken.segments + taken.datagrams
}

#[test]
fn confused_headers_reach_no_socket() {
    assert_eq!(confuse(), 0);
}
