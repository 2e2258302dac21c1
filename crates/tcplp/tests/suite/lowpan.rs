//! The bug classes of other 6LoWPAN stacks (fragments, forwarding, wrong lengths), and the node contract.
//!
//! Method: the test hands frames to one interface as its link would, made by hand or by a second interface.

use crate::support;

use std::net::Ipv6Addr;

use chappe_core::{
    Address, Arrival, Classes, Duration, HostNode, Instant, LinkEvent, LinkNode, Outcome, OverMac,
    Purpose, RadioNode, Seed, Wake, contract,
};
use chappe_mac::dot15d4::{self, Dot15d4, Sleep};
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, Lost, Route, Table};
use chappe_wire::sixlowpan::frag::Fragment;
use support::mote::{PREFIX, ms, packet, tcp_host};

const FRAME: usize = 116;

/// A host that sends queued packets and keeps received ones.
#[derive(Default)]
pub struct Mailbox {
    pub out: Vec<Vec<u8>>,
    pub got: Vec<Vec<u8>>,
}

impl HostNode for Mailbox {
    fn handle_packet(&mut self, _: Instant, packet: &[u8]) {
        self.got.push(packet.to_vec());
    }
    fn poll_packet(&mut self, _: Instant, packet: &mut [u8]) -> Option<usize> {
        if self.out.is_empty() {
            return None;
        }
        let out = self.out.remove(0);
        packet[..out.len()].copy_from_slice(&out);
        Some(out.len())
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

pub type Stack = Interface<Mailbox, Table<8>, 2, 4, 8, 1280>;

/// Node `number` of a row; every other node is reached by the neighbour on its side.
pub fn stack(number: u16) -> Stack {
    let here = Address::node(number);
    let mut table = Table::new(here, PREFIX, Route::Nowhere);
    for other in (0..5).filter(|&other| other != number) {
        let next = if other > number {
            number + 1
        } else {
            number - 1
        };
        table.add(Address::node(other), Address::node(next));
    }
    let config = Config::new(here, PREFIX, FRAME);
    let random = Seed(u64::from(number)).stream(Purpose::Node(u32::from(number)));
    Interface::new(config, Mailbox::default(), table, random)
}

/// Everything that a node has to send, as (next hop, frame); each frame is confirmed at once.
pub fn drain(now: Instant, node: &mut Stack) -> Vec<(Address, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut sdu = [0; FRAME];
    while let Some(send) = node.poll_link(now, Classes::ALL, &mut sdu) {
        frames.push((send.to, sdu[..send.len].to_vec()));
        let (token, outcome) = (send.token, Outcome::Acknowledged { attempts: 1 });
        node.handle_link(now, LinkEvent::Sent { token, outcome });
    }
    frames
}

pub fn hand(now: Instant, node: &mut Stack, from: u16, sdu: &[u8]) {
    let arrival = Arrival {
        from: Address::node(from),
        to: node.config().address,
        sdu,
        power: None,
    };
    node.handle_link(now, LinkEvent::Received(arrival));
}

pub fn frames_of(from: u16, packet: Vec<u8>) -> Vec<Vec<u8>> {
    let mut sender = stack(from);
    sender.with_host(Instant::ZERO, |host| host.out.push(packet));
    drain(Instant::ZERO, &mut sender)
        .into_iter()
        .map(|(_, sdu)| sdu)
        .collect()
}

/// Packets of every size, from a bare header to the largest buffer, are sent in frames that fit and arrive unchanged.
#[test]
fn every_size_is_cut_and_put_together() {
    for len in 40..=1280 {
        let sent = packet(1, 2, len);
        let frames = frames_of(1, sent.clone());
        let mut receiver = stack(2);
        for sdu in &frames {
            assert!(sdu.len() <= FRAME);
            hand(ms(1), &mut receiver, 1, sdu);
        }
        assert_eq!(receiver.host().got, [sent], "{len}");
        assert_eq!(receiver.losses().total(), 0);
    }
}

/// TCPlp's segment: 534 octets with ECN and addresses in line in exactly five frames; one octet more needs six.
//= tcplp 6.1: an MSS of five frames
#[test]
fn the_papers_segment_takes_five_frames() {
    assert_eq!(frames_of(1, packet(1, 2, 534)).len(), 5);
    assert_eq!(frames_of(1, packet(1, 2, 536)).len(), 6);
    assert_eq!(frames_of(1, packet(1, 3, 534)).len(), 5, "along a path");
}

/// A datagram crosses two relays fragment by fragment: each fragment leaves before the next one enters, with the same length.
#[test]
fn fragments_pass_relays_one_by_one() {
    let sent = packet(1, 4, 534);
    let mut relays = [stack(2), stack(3)];
    let mut receiver = stack(4);
    for sdu in frames_of(1, sent.clone()) {
        let mut sdu = sdu;
        for (place, relay) in relays.iter_mut().enumerate() {
            hand(ms(1), relay, place as u16 + 1, &sdu);
            let mut passed = drain(ms(1), relay);
            assert_eq!(passed.len(), 1);
            let (to, onward) = passed.remove(0);
            assert_eq!(to, Address::node(place as u16 + 3));
            assert_eq!(onward.len(), sdu.len(), "no frame grows on the way");
            sdu = onward;
        }
        hand(ms(1), &mut receiver, 3, &sdu);
    }
    let mut expected = sent;
    expected[7] = 62;
    assert_eq!(receiver.host().got, [expected]);
    for relay in &relays {
        assert_eq!(
            (relay.losses().total(), relay.counters().frames_forwarded),
            (0, 5)
        );
        assert_eq!(
            relay.poll_timeout(),
            None,
            "nothing is kept of a datagram that has passed"
        );
    }
}

/// F01, F02: sizes and offsets at all edges, in first and further fragments: never more is written than
/// fits, and only what was sent is delivered.
#[test]
fn f01_offsets_and_sizes_at_the_edges() {
    let first = frames_of(1, packet(1, 2, 600)).remove(0);
    for size in (0..=2047u16)
        .step_by(13)
        .chain([1279, 1280, 1281, 2040, 2047])
    {
        for offset in [1u8, 2, 12, 13, 14, 15, 74, 75, 80, 159, 160, 161, 254, 255] {
            for len in [0, 1, 7, 8, 100, 111] {
                let mut receiver = stack(2);
                hand(ms(1), &mut receiver, 1, &first);
                let tag = u16::from_be_bytes([first[2], first[3]]);
                let mut sdu = [7; 116];
                let at = Fragment { size, tag, offset }.emit(&mut sdu).unwrap();
                hand(ms(2), &mut receiver, 1, &sdu[..at + len]);
                let mut head = first.clone();
                head[..2].copy_from_slice(&(0xc000 | size).to_be_bytes());
                hand(ms(3), &mut receiver, 1, &head);
                assert!(receiver.host().got.is_empty(), "{size} {offset} {len}");
            }
        }
    }
}

/// F02: a further fragment before its first one is dropped.
#[test]
fn f02_further_fragments_come_after_the_first() {
    let frames = frames_of(1, packet(1, 2, 500));
    let mut receiver = stack(2);
    for sdu in &frames[1..] {
        hand(ms(1), &mut receiver, 1, sdu);
    }
    assert_eq!(receiver.losses().of(Lost::NoFirst), frames.len() as u32 - 1);
    assert_eq!(receiver.poll_timeout(), None);
    for sdu in &frames {
        hand(ms(2), &mut receiver, 1, sdu);
    }
    assert_eq!(receiver.host().got.len(), 1);
}

/// F03: the same fragment twice is harmless; one that overlaps with other contents, or by a part, ends the datagram.
#[test]
fn f03_overlaps_end_the_datagram() {
    let frames = frames_of(1, packet(1, 2, 500));
    let play = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut receiver = stack(2);
        let mut again = frames[1].clone();
        change(&mut again);
        for sdu in [&frames[0], &frames[1], &again]
            .into_iter()
            .chain(&frames[2..])
        {
            hand(ms(1), &mut receiver, 1, sdu);
        }
        (
            receiver.host().got.len(),
            receiver.losses().of(Lost::Overlap),
        )
    };
    assert_eq!(play(&|_| {}), (1, 0));
    assert_eq!(play(&|again| again[20] ^= 1), (0, 1));
    assert_eq!(play(&|again| again[4] += 1), (0, 1), "shifted by 8 octets");
    assert_eq!(
        play(&|again| again.truncate(5 + 96)),
        (1, 0),
        "a part of the same"
    );
}

/// F04: a flood of first fragments from one source, or from a thousand, mixed 1 : 1 and 3 : 1 with a
/// genuine neighbour's datagrams: these get through.
#[test]
fn f04_floods_of_first_fragments() {
    let genuine = packet(1, 2, 534);
    let frames = frames_of(1, genuine.clone());
    for sources in [1u32, 1000] {
        for ratio in [1u32, 3] {
            let (mut receiver, mut forged, mut rounds) = (stack(2), 0u32, 0);
            while forged < 250_000 {
                rounds += 1;
                for sdu in &frames {
                    for _ in 0..ratio {
                        let mut sdu = frames[0].clone();
                        sdu[2..4].copy_from_slice(&(forged as u16).to_be_bytes());
                        let from = 100 + (forged % sources) as u16;
                        hand(
                            Instant::from_micros(u64::from(forged) * 2400),
                            &mut receiver,
                            from,
                            &sdu,
                        );
                        forged += 1;
                    }
                    let now = Instant::from_micros(u64::from(forged) * 2400);
                    hand(now, &mut receiver, 1, sdu);
                }
            }
            let share = f64::from(receiver.host().got.len() as u32) / f64::from(rounds);
            assert!(share >= 0.5, "{sources} sources, {ratio} to 1: {share}");
            assert!(receiver.host().got.iter().all(|got| *got == genuine));
        }
    }
}

/// F05: packets of one frame are delivered although every slot is taken.
#[test]
fn f05_whole_packets_need_no_slot() {
    let mut receiver = stack(2);
    for from in [3, 4, 5, 6, 7, 8] {
        hand(
            ms(1),
            &mut receiver,
            from,
            &frames_of(1, packet(1, 2, 500))[0],
        );
    }
    let whole = frames_of(1, packet(1, 2, 80));
    assert_eq!(whole.len(), 1);
    hand(ms(2), &mut receiver, 1, &whole[0]);
    assert_eq!(receiver.host().got.len(), 1);
}

/// F06: forwarding with a datagram's three fragments in every order, with time passing.
#[test]
fn f06_forwarding_in_every_order() {
    let frames = frames_of(1, packet(1, 4, 300));
    assert_eq!(frames.len(), 3);
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for pause in [0, 1, 2500] {
            let mut relay = stack(2);
            for (step, place) in order.into_iter().enumerate() {
                let now = ms(1 + pause * step as u64);
                if Wake::due(relay.poll_timeout(), now) {
                    relay.handle_timeout(now);
                }
                hand(now, &mut relay, 1, &frames[place]);
                for (to, _) in drain(now, &mut relay) {
                    assert_eq!(to, Address::node(3));
                }
            }
            let end = ms(20_000);
            relay.handle_timeout(end);
            assert_eq!(relay.poll_timeout(), None, "{order:?}");
        }
    }
}

/// F07: a neighbour that restarts reuses a tag for a new datagram, which gets through. Incomplete datagrams time out, also
/// 49.7 days after the start of the clock.
#[test]
fn f07_reused_tags_and_long_running_clocks() {
    let days = 4_294_967_296 - 500;
    let old = frames_of(1, packet(1, 2, 500));
    let mut receiver = stack(2);
    hand(ms(days), &mut receiver, 1, &old[0]);
    hand(ms(days), &mut receiver, 1, &old[1]);
    // The same first tag after a restart, since the same seed: another size.
    for sdu in frames_of(1, packet(1, 2, 532)) {
        hand(ms(days + 100), &mut receiver, 1, &sdu);
    }
    assert_eq!(receiver.host().got, [packet(1, 2, 532)]);
    hand(ms(days + 200), &mut receiver, 1, &old[0]);
    let wake = receiver.poll_timeout().unwrap();
    assert_eq!(wake.at, ms(days + 2200));
    receiver.handle_timeout(wake.at);
    assert_eq!(receiver.poll_timeout(), None);
    assert_eq!(receiver.losses().of(Lost::Expired), 1);
}

/// A fragment that is finally lost discards the rest of its datagram, at the source and at a relay.
#[test]
fn a_lost_fragment_ends_its_datagram() {
    let mut sender = stack(1);
    sender.with_host(ms(1), |host| {
        host.out = vec![packet(1, 2, 534), packet(1, 2, 80)]
    });
    let mut sdu = [0; FRAME];
    let send = sender.poll_link(ms(1), Classes::ALL, &mut sdu).unwrap();
    assert_eq!(
        sender.poll_link(ms(1), Classes::ALL, &mut sdu),
        None,
        "one at a time"
    );
    let (token, outcome) = (send.token, Outcome::Failed { attempts: 4 });
    sender.handle_link(ms(2), LinkEvent::Sent { token, outcome });
    assert_eq!(
        drain(ms(2), &mut sender).len(),
        1,
        "the next packet, in one frame"
    );
    let mut relay = stack(2);
    for frame in &frames_of(1, packet(1, 4, 534))[..3] {
        hand(ms(1), &mut relay, 1, frame);
    }
    let send = relay.poll_link(ms(1), Classes::ALL, &mut sdu).unwrap();
    let (token, outcome) = (send.token, Outcome::Failed { attempts: 4 });
    relay.handle_link(ms(2), LinkEvent::Sent { token, outcome });
    assert!(drain(ms(2), &mut relay).is_empty());
    for node in [&sender, &relay] {
        assert_eq!(node.losses().of(Lost::LinkFailed), 1);
    }
}

/// A relay with a long queue marks ECN-capable packets and drops the others (RED with ECN).
//= tcplp 8: random early detection with explicit congestion notification at relays
#[test]
fn a_crowded_relay_marks() {
    let mut relay = stack(2);
    let mut config = *relay.config();
    config.red = Some(Thresholds {
        min: 1,
        max: 3,
        ..Thresholds::of(8)
    });
    relay = Interface::new(
        config,
        Mailbox::default(),
        *relay.routes_mut(),
        Seed(1).stream(Purpose::Node(9)),
    );
    let marked = frames_of(1, packet(1, 4, 80)).remove(0);
    let mut plain = packet(1, 4, 80);
    plain[1] = 0;
    plain[0] = 0x60;
    let plain = frames_of(1, plain).remove(0);
    for _ in 0..40 {
        for _ in 0..6 {
            hand(ms(1), &mut relay, 1, &marked);
            hand(ms(1), &mut relay, 1, &plain);
        }
        drain(ms(1), &mut relay);
    }
    assert!(relay.counters().marked > 20, "{:?}", relay.counters());
    assert!(relay.losses().of(Lost::Early) > 20, "{:?}", relay.losses());
}

/// P04, P07: packets with a wrong length, or an exhausted hop limit, are dropped and counted by reason.
#[test]
fn p07_packets_with_wrong_lengths_are_dropped() {
    let mut node = stack(2);
    let mut lying = packet(1, 2, 80);
    lying[5] += 1;
    let mut plain = vec![0x41];
    plain.extend_from_slice(&lying);
    hand(ms(1), &mut node, 1, &plain);
    assert_eq!(node.losses().of(Lost::Malformed), 1);
    let mut tired = packet(1, 4, 80);
    tired[7] = 1;
    let mut plain = vec![0x41];
    plain.extend_from_slice(&tired);
    hand(ms(1), &mut node, 1, &plain);
    assert_eq!(node.losses().of(Lost::HopLimit), 1);
    hand(ms(1), &mut node, 1, &frames_of(1, packet(1, 2, 1280))[0]);
    let mut elsewhere = vec![0x41];
    elsewhere.extend_from_slice(&packet(1, 77, 80));
    hand(ms(1), &mut node, 1, &elsewhere);
    assert_eq!(node.losses().of(Lost::NoRoute), 1);
    assert!(node.host().got.is_empty());
}

/// P04: malformed packets get no answer, so making one cannot fail: neither the interface nor the host generates errors for
/// the inputs of P01 to P03.
#[test]
fn p04_no_errors_are_generated() {
    let mut host = tcp_host(1);
    let mut out = [0; 1280];
    let mut random = Seed(4).stream(Purpose::Trial(1));
    for next_header in 0..=255u8 {
        for len in [0usize, 1, 2, 7, 8, 16, 40] {
            let mut packet = packet(2, 1, 40 + len);
            packet[6] = next_header;
            random.fill(&mut packet[40..]);
            host.handle_packet(ms(1), &packet);
            // A closed TCP port may be answered by a reset, which needs 20 octets with a right checksum.
            assert_eq!(
                host.poll_packet(ms(1), &mut out),
                None,
                "{next_header} {len}"
            );
        }
    }
}

/// P09: IPv4, with options of all kinds, is silently ignored everywhere.
#[test]
fn p09_ipv4_is_ignored() {
    let (mut host, mut node) = (tcp_host(1), stack(2));
    for words in 0..=15u8 {
        let mut packet = [0u8; 80];
        packet[0] = 0x40 | words;
        packet[9] = 6;
        for (i, octet) in packet[20..].iter_mut().enumerate() {
            *octet = (i as u8).wrapping_mul(131);
        }
        host.handle_packet(ms(1), &packet);
        let mut frame = vec![0x41];
        frame.extend_from_slice(&packet);
        hand(ms(1), &mut node, 1, &frame);
    }
    assert_eq!(host.counters().dropped, 16);
    assert_eq!(node.losses().of(Lost::Malformed), 16);
    assert!(node.host().got.is_empty());
}

/// A border router hands packets for destinations outside the mesh to its host, the gateway, and sends the gateway's
/// packets into the mesh.
#[test]
fn a_border_router_hands_outside_packets_to_its_host() {
    let outside: Ipv6Addr = "2001:db8::7".parse().unwrap();
    let mut border = stack(0);
    *border.routes_mut() = Table::new(Address::node(0), PREFIX, Route::Here);
    border.routes_mut().add(Address::node(2), Address::node(1));
    let mut up = packet(2, 9, 300);
    up[24..40].copy_from_slice(&outside.octets());
    let mut source = stack(2);
    *source.routes_mut() = Table::new(Address::node(2), PREFIX, Route::Via(Address::node(1)));
    let mut relay = stack(1);
    *relay.routes_mut() = Table::new(Address::node(1), PREFIX, Route::Via(Address::node(0)));
    relay.routes_mut().add(Address::node(2), Address::node(2));
    source.with_host(ms(1), |host| host.out.push(up.clone()));
    for (to, sdu) in drain(ms(1), &mut source) {
        assert_eq!(to, Address::node(1));
        hand(ms(1), &mut relay, 2, &sdu);
        for (to, sdu) in drain(ms(1), &mut relay) {
            assert_eq!(to, Address::node(0));
            hand(ms(1), &mut border, 1, &sdu);
        }
    }
    up[7] = 63;
    assert_eq!(border.host().got, [up]);
    let mut down = packet(9, 2, 300);
    down[8..24].copy_from_slice(&outside.octets());
    border.with_host(ms(2), |host| host.out.push(down.clone()));
    for (_, sdu) in drain(ms(2), &mut border) {
        hand(ms(2), &mut relay, 0, &sdu);
        for (_, sdu) in drain(ms(2), &mut relay) {
            hand(ms(2), &mut source, 1, &sdu);
        }
    }
    down[7] = 63;
    assert_eq!(source.host().got, [down]);
}

/// The whole stack as a node that owns its radio.
#[test]
fn a_whole_stack_keeps_the_contract() {
    contract::check_radio(40, |seed| {
        let here = Address::node(1);
        let sleep = seed
            .is_multiple_of(3)
            .then(|| Sleep::tcplp(Address::node(3)));
        let mac_config = dot15d4::Config {
            sleep,
            ..dot15d4::Config::HAMILTON
        };
        let random = |n| Seed(seed).stream(Purpose::Node(n));
        let mut mac: Dot15d4 = Dot15d4::new(mac_config, here, random(1));
        mac.add_child(Address::node(2));
        let mut table: Table<8> = Table::new(here, PREFIX, Route::Via(Address::node(3)));
        table.add_child(Address::node(2));
        let config = Config::new(here, PREFIX, FRAME);
        let mut stack: Interface<_, _, 2, 2, 4, 640> =
            Interface::new(config, tcp_host(seed), table, random(2));
        stack.with_host(ms(1), |host| host.serve(ms(1)));
        let mut node = OverMac::new(mac, stack);
        node.handle_timeout(ms(1));
        node
    });
}

#[test]
fn an_interface_keeps_the_contract() {
    contract::check_link(60, |seed| {
        let mut table: Table<8> =
            Table::new(Address::node(1), PREFIX, Route::Via(Address::node(3)));
        table.add_child(Address::node(2));
        let config = Config {
            red: Some(Thresholds::of(4)),
            pace: Duration::from_millis(5),
            ..Config::new(Address::node(1), PREFIX, FRAME)
        };
        let random = Seed(seed).stream(Purpose::Node(1));
        let mut stack: Interface<_, _, 2, 2, 4, 640> =
            Interface::new(config, tcp_host(seed), table, random);
        stack.trace(true);
        stack.with_host(ms(1), |host| host.serve(ms(1)));
        stack
    });
}
