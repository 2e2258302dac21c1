//! Frame formats of the standards: whatever parses is written again and read back.

use chappe_tcplp::coap::Message;
use chappe_tcplp::tcp::{Endpoint, Flow, Segment};
use chappe_wire::sixlowpan::frag::Fragment;
use chappe_wire::sixlowpan::iphc::{self, Known, Reach};
use chappe_wire::sixlowpan::mesh::Mesh;
use chappe_wire::sixlowpan::tcphc::{self, Anchor, Lead};
use chappe_wire::sixlowpan::{Context, Dispatch, Ends};
use chappe_wire::{dot11, dot15d4, icmpv6, ipv6, llc, radiotap, udp};
use std::net::{IpAddr, Ipv6Addr};

/// Room for any header that is written again.
const ROOM: usize = 4096;

/// Radiotap headers and LLC: what stands around an 802.11 frame in a capture.
pub fn captures(bytes: &[u8]) {
    let _ = llc::parse(bytes);
    if let Ok((header, _)) = radiotap::Radiotap::parse(bytes) {
        let mut room = [0; ROOM];
        let len = header.emit(&mut room).expect("there is room");
        let (again, _) = radiotap::Radiotap::parse(&room[..len]).expect("what is written parses");
        assert_eq!(header, again);
    }
}

/// 802.11 frames: what parses is written again and read back.
pub fn dot11(bytes: &[u8]) {
    let Ok(frame) = dot11::Frame::new(bytes) else {
        return;
    };
    let _ = (frame.duration(), frame.receiver(), frame.transmitter());
    let _ = (frame.bssid(), frame.sequence(), frame.body());
    if let Ok(repr) = dot11::Repr::parse(&frame) {
        let mut room = [0; ROOM];
        let len = repr.emit(&mut room).expect("there is room");
        let again = dot11::Frame::new(&room[..len]).expect("what is written parses");
        assert_eq!(Ok(repr), dot11::Repr::parse(&again));
    }
}

/// 802.15.4 frames: header and payload are the whole frame.
pub fn dot15d4(bytes: &[u8]) {
    let Ok(frame) = dot15d4::Frame::new(bytes) else {
        return;
    };
    assert_eq!(
        frame.header_octets().len() + frame.payload().len(),
        bytes.len()
    );
    let mut room = [0; ROOM];
    if let Ok(len) = frame.header().emit(&mut room) {
        let (again, read) = dot15d4::Header::parse(&room[..len]).expect("what is written parses");
        assert_eq!((frame.header(), len), (&again, read));
    }
}

/// 6LoWPAN: fragments, mesh headers, compressed IPv6 and UDP headers.
pub fn lowpan(bytes: &[u8]) {
    let _ = Dispatch::of(bytes);
    let mut room = [0; ROOM];
    if let Ok((fragment, _)) = Fragment::parse(bytes) {
        let len = fragment.emit(&mut room).expect("there is room");
        assert_eq!(Ok((fragment, len)), Fragment::parse(&room[..len]));
    }
    if let Ok((mesh, _)) = Mesh::parse(bytes) {
        let len = mesh.emit(&mut room).expect("there is room");
        assert_eq!(Ok((mesh, len)), Mesh::parse(&room[..len]));
    }
    let contexts = [Context {
        id: 0,
        prefix: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0),
        len: 64,
    }];
    let known = Known {
        contexts: &contexts,
        ends: Ends {
            source: [2, 0, 0, 0, 0, 0, 0, 1],
            destination: [2, 0, 0, 0, 0, 0, 0, 2],
        },
    };
    let _ = iphc::ecn(bytes);
    let mut marked = bytes.to_vec();
    if iphc::mark(&mut marked) {
        assert_eq!(iphc::ecn(&marked), Some(3));
    }
    expanded_headers_come_back(bytes, &known, &mut room);
}

/// Compressed TCP headers: one that expands is compressed to one that expands to the same; one that is read is found again.
pub fn compressed_tcp(bytes: &[u8]) {
    let (mut first, mut short, mut again) = ([0; 64], [0; 64], [0; 64]);
    let anchor = Anchor::default();
    if let Ok(lengths) = tcphc::expand(bytes, &anchor, &mut first) {
        let lead = Lead::parse(bytes).expect("it was read");
        let tcp = &first[..lengths.expanded];
        let written = tcphc::compress(lead, &anchor, tcp, &mut short).expect("there is room");
        let back = tcphc::expand(&short[..written.compressed], &anchor, &mut again);
        assert_eq!(back, Ok(written));
        assert_eq!(again[..written.expanded], *tcp);
    }
    if let Ok((anchor, len)) = Anchor::of(bytes)
        && tcphc::is_suitable(bytes)
    {
        let lead = Lead {
            whole: false,
            generation: 1,
            held: 0,
            flow: 0,
        };
        let written =
            tcphc::compress(lead, &anchor, bytes, &mut short).expect("it is its own anchor");
        let back = tcphc::expand(&short[..written.compressed], &anchor, &mut again);
        assert_eq!(back, Ok(written));
        assert_eq!(again[..len], bytes[..len]);
    }
}

/// What expands is a packet; compressed again and expanded again it is the same packet.
fn expanded_headers_come_back(bytes: &[u8], known: &Known<'_>, packet: &mut [u8]) {
    let Ok(lengths) = iphc::expand(bytes, known, None, packet) else {
        return;
    };
    let Some(payload) = bytes.get(lengths.compressed..) else {
        panic!("more headers than octets");
    };
    let whole = lengths.expanded + payload.len();
    let Some(place) = packet.get_mut(lengths.expanded..whole) else {
        return;
    };
    place.copy_from_slice(payload);
    for reach in [Reach::Link, Reach::Path] {
        let (mut short, mut again) = ([0; ROOM], [0; ROOM]);
        let Ok(lengths) = iphc::compress(&packet[..whole], known, reach, &mut short) else {
            continue;
        };
        let rest = &packet[lengths.expanded..whole];
        short[lengths.compressed..][..rest.len()].copy_from_slice(rest);
        let frame = &short[..lengths.compressed + rest.len()];
        let back = iphc::expand(frame, known, None, &mut again).expect("ours expands");
        assert_eq!(back, lengths);
        assert_eq!(again[..back.expanded], packet[..back.expanded], "{reach:?}");
    }
}

/// IPv6, UDP and ICMPv6.
pub fn internet(bytes: &[u8]) {
    let ends = ends();
    let _ = udp::Datagram::parse(ends[0], ends[1], bytes);
    let _ = icmpv6::Message::parse(ends[0], ends[1], bytes);
    if let Ok((header, upper)) = ipv6::parse(bytes) {
        let mut room = [0; ROOM];
        let len = header.emit(&mut room).expect("there is room");
        assert_eq!(Ok(header), ipv6::Header::parse(&room[..len]));
        assert!(upper.packet.len() <= usize::from(header.payload_len));
    }
}

/// TCP segments: what parses is written again with a checksum.
pub fn segments(bytes: &[u8]) {
    let ends = ends();
    let Ok(segment) = Segment::parse(bytes) else {
        return;
    };
    let end = |address, port| Endpoint::new(IpAddr::V6(address), port);
    let flow = Flow::new(
        end(ends[0], segment.source_port),
        end(ends[1], segment.destination_port),
    );
    let mut room = vec![0; ROOM + bytes.len()];
    if let Some(len) = segment.emit(&flow, &mut room) {
        let again = Segment::parse_checked(&room[..len], &flow).expect("what is written parses");
        assert_eq!(segment, again);
    }
}

/// CoAP messages: options and blocks can be read of whatever parses.
pub fn coap(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        let octets: usize = message.options().map(|(_, value)| value.len()).sum();
        assert!(octets + message.payload.len() <= bytes.len());
        let _ = (
            message.block1(),
            message.block2(),
            message.unknown_critical(),
        );
    }
}

/// The two addresses of all packets here.
fn ends() -> [Ipv6Addr; 2] {
    [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n))
}
