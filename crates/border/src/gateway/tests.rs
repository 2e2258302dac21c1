use super::*;
use chappe_core::{Purpose, Seed, contract};

const PREFIX: &str = "fd00:1:2:3";

fn address(text: &str) -> Ipv6Addr {
    format!("{PREFIX}:{text}").parse().unwrap()
}

fn gateway() -> Gateway {
    let own = (address(":ff:fe00:0"), "fe80::ff:fe00:0".parse().unwrap());
    let random = Seed(1).stream(Purpose::Node(0));
    Gateway::new(own, address(":1"), [1, 2], random)
}

fn packet(from: Ipv6Addr, to: Ipv6Addr, hop_limit: u8, class: u8, len: usize) -> Vec<u8> {
    let header = Header {
        traffic_class: class,
        flow_label: 0x12345,
        payload_len: len as u16,
        next_header: next::UDP,
        hop_limit,
        source: from,
        destination: to,
    };
    let mut packet = vec![7; HEADER_LEN + len];
    header.emit(&mut packet).unwrap();
    packet
}

fn next_to_mesh(gateway: &mut Gateway) -> Option<Vec<u8>> {
    let mut packet = vec![0; MTU];
    let len = gateway.poll_packet(Instant::ZERO, &mut packet)?;
    packet.truncate(len);
    Some(packet)
}

/// The error that the gateway sends to the kernel about a packet: type, code, parameter.
fn error(gateway: &mut Gateway, packet: &[u8]) -> Option<(u8, u8, u32)> {
    gateway.offer(Instant::from_millis(5000), packet);
    let sent = gateway.arrived()?.to_vec();
    gateway.taken();
    let header = Header::parse(&sent).unwrap();
    assert!(sent.len() <= MTU);
    let upper = &sent[HEADER_LEN..];
    match Message::parse(header.source, header.destination, upper).unwrap() {
        Message::Error {
            kind,
            code,
            parameter,
            quote,
        } => {
            assert!(packet.starts_with(quote));
            Some((kind, code, parameter))
        }
        Message::Echo { .. } => None,
    }
}

/// The hop limit is decremented in both directions; flow label, ECN and payload are unchanged.
#[test]
fn forwarding_decrements_the_hop_limit() {
    let mut gateway = gateway();
    let (kernel, node) = (address(":1"), address(":ff:fe00:2"));
    gateway.offer(Instant::ZERO, &packet(kernel, node, 64, 0xba, 100));
    let passed = next_to_mesh(&mut gateway).unwrap();
    assert_eq!(passed, packet(kernel, node, 63, 0xba, 100));
    gateway.handle_packet(Instant::ZERO, &packet(node, kernel, 61, 0xbb, 9));
    assert_eq!(
        gateway.arrived().unwrap(),
        packet(node, kernel, 60, 0xbb, 9)
    );
    gateway.taken();
    assert_eq!(gateway.arrived(), None);
    let counters = gateway.counters();
    assert_eq!((counters.to_mesh, counters.to_kernel), (1, 1));
}

/// RFC 4443: a packet that cannot be forwarded is reported to its sender, with the reason.
#[test]
fn errors_report_why_a_packet_was_not_forwarded() {
    let (kernel, node) = (address(":1"), address(":ff:fe00:1"));
    let tell = |to, hops, len| error(&mut gateway(), &packet(kernel, to, hops, 0, len));
    assert_eq!(tell(node, 1, 8), Some((3, 0, 0)), "hops used up");
    assert_eq!(tell(node, 64, 1241), Some((2, 0, 1280)), "too big");
    assert_eq!(tell(node, 64, 1240), None, "just fits");
    assert_eq!(tell(address(":ff:fe00:9"), 64, 8), Some((1, 3, 0)));
    assert_eq!(tell(address(":5"), 64, 8), Some((1, 3, 0)));
    assert_eq!(tell("2001:db8::1".parse().unwrap(), 64, 8), Some((1, 0, 0)));
    assert_eq!(tell(address(":ff:fe00:0"), 64, 8), Some((1, 4, 0)));
}

/// Ten errors at once, then ten a second; no error about an error.
#[test]
fn errors_are_rate_limited() {
    let mut gateway = gateway();
    let (kernel, missing) = (address(":1"), address(":ff:fe00:9"));
    let errors = |gateway: &mut Gateway, at: u64| {
        (0..100)
            .filter(|_| {
                let asked = packet(kernel, missing, 64, 0, 8);
                gateway.offer(Instant::from_millis(at), &asked);
                let answered = gateway.arrived().is_some();
                gateway.taken();
                answered
            })
            .count()
    };
    assert_eq!(errors(&mut gateway, 0), 10);
    assert_eq!(errors(&mut gateway, 50), 0);
    assert_eq!(errors(&mut gateway, 1000), 10);
    let mut an_error = packet(kernel, missing, 64, 0, 8);
    (an_error[6], an_error[HEADER_LEN]) = (next::ICMPV6, 3);
    gateway.offer(Instant::from_millis(9000), &an_error);
    assert_eq!(gateway.arrived(), None);
}

#[test]
fn the_gateway_answers_pings() {
    let mut gateway = gateway();
    let (kernel, own) = (address(":1"), address(":ff:fe00:0"));
    let echo = Message::Echo {
        reply: false,
        id: 7,
        sequence: 9,
        data: b"hello",
    };
    let mut ping = packet(kernel, own, 64, 0, ICMP_HEADER + 5);
    ping[6] = next::ICMPV6;
    echo.emit(kernel, own, &mut ping[HEADER_LEN..]).unwrap();
    gateway.offer(Instant::ZERO, &ping);
    let pong = gateway.arrived().unwrap();
    let answer = Message::parse(own, kernel, &pong[HEADER_LEN..]).unwrap();
    assert!(matches!(
        answer,
        Message::Echo {
            reply: true,
            id: 7,
            sequence: 9,
            data: b"hello"
        }
    ));
}

/// Malformed packets, multicast and spoofed addresses are dropped and counted.
#[test]
fn invalid_packets_are_dropped_and_counted() {
    let mut gateway = gateway();
    let (kernel, node) = (address(":1"), address(":ff:fe00:1"));
    let stranger = "2001:db8::7".parse().unwrap();
    for octets in [&[][..], &[0; 3], &[0x45; 40], &[0x60; 40], &[0xff; 1500]] {
        gateway.offer(Instant::ZERO, octets);
        gateway.handle_packet(Instant::ZERO, octets);
    }
    let mut short = packet(kernel, node, 64, 0, 8);
    short.pop();
    gateway.offer(Instant::ZERO, &short);
    assert_eq!(gateway.counters().malformed, 11);
    for to in ["ff02::2", "fe80::1", "::1", "::"] {
        let to = to.parse().unwrap();
        gateway.offer(Instant::ZERO, &packet(kernel, to, 64, 0, 8));
    }
    // A node's address from the kernel's side, and a stranger's from the mesh.
    gateway.offer(Instant::ZERO, &packet(node, node, 64, 0, 8));
    gateway.handle_packet(Instant::ZERO, &packet(stranger, kernel, 64, 0, 8));
    assert_eq!(gateway.counters().not_forwarded, 6);
    assert!(gateway.arrived().is_none() && next_to_mesh(&mut gateway).is_none());
}

/// As its queue grows, RED marks ECN-capable packets and drops others; a full queue drops all.
#[test]
fn congestion_is_marked_before_it_is_dropped() {
    let (kernel, node) = (address(":1"), address(":ff:fe00:1"));
    let run = |class| {
        let mut gateway = gateway();
        for _ in 0..60 {
            gateway.offer(Instant::ZERO, &packet(kernel, node, 64, class, 8));
        }
        let mut marked = 0;
        while let Some(passed) = next_to_mesh(&mut gateway) {
            marked += usize::from(passed[1] >> 4 & 3 == 3);
        }
        (marked, *gateway.counters())
    };
    let (marked, counters) = run(2);
    assert!(marked > 0 && counters.queue_full > 0, "{counters:?}");
    assert_eq!(counters.to_mesh, 16);
    let (marked, counters) = run(0);
    assert!(marked == 0 && counters.early > 0, "{counters:?}");
}

/// A kernel that acknowledges each of 21 segments, 145 ms apart, sends half as many acknowledgements into the mesh; the last one
/// goes when its hold ends.
#[test]
fn acknowledgements_of_a_bulk_flow_are_thinned() {
    use crate::thinning::tests::{blank, packet};
    use chappe_tcplp::tcp::{Segment, Seq};
    let mut gateway = gateway();
    let (kernel, node) = (address(":1").to_string(), address(":ff:fe00:2").to_string());
    let (kernel, node) = ((&kernel[..], 40000), (&node[..], 80));
    let mut now = Instant::ZERO;
    for at in (0..2100).step_by(100) {
        let (seq, ack) = (Seq::new(at), Seq::new(at + 100));
        let data = Segment {
            seq,
            payload: &[1; 100],
            ..blank()
        };
        now += Duration::from_millis(105);
        gateway.handle_packet(now, &packet(node, kernel, &data).1);
        now += Duration::from_millis(40);
        gateway.offer(now, &packet(kernel, node, &Segment { ack, ..blank() }).1);
    }
    let counters = *gateway.counters();
    assert_eq!((counters.to_mesh, counters.thinned), (11, 10));
    let ack = Segment {
        ack: Seq::new(2200),
        ..blank()
    };
    let data = Segment {
        seq: Seq::new(2100),
        payload: &[1; 100],
        ..blank()
    };
    gateway.handle_packet(now, &packet(node, kernel, &data).1);
    gateway.offer(now, &packet(kernel, node, &ack).1);
    let due = gateway.poll_timeout().expect("one is held").at;
    gateway.handle_timeout(due);
    assert_eq!(
        (gateway.counters().to_mesh, gateway.poll_timeout()),
        (12, None)
    );
}

#[test]
fn it_keeps_the_contract() {
    contract::check_host(30, |_| gateway());
}
