//! What a frame of TCPlp's network is, for traces.

use chappe_core::Rate;
use chappe_trace::{Label, standard};
use chappe_wire::dot15d4;
use chappe_wire::ipv6::next;
use chappe_wire::sixlowpan::frag::Fragment;
use chappe_wire::sixlowpan::{Dispatch, iphc};

/// What 802.15.4's header says; a data frame is named by the packet in it. A fragment's `part` is the tag of its packet, and its number
/// the place in it in octets.
pub fn label(rate: Rate, psdu: &[u8]) -> Label {
    let outer = standard(rate, psdu);
    if rate != Rate::Oqpsk250 || outer.kind != "data" {
        return outer;
    }
    // The check sequence of a recorded frame is left out.
    match usual_header(psdu) {
        Some(header) => packet(&psdu[header..], outer),
        None => dot15d4::Frame::new(psdu).map_or(outer, |frame| packet(frame.payload(), outer)),
    }
}

/// The octets of a header that names both addresses and protects nothing, as nearly all do: fewer steps than to read all of it.
fn usual_header(psdu: &[u8]) -> Option<usize> {
    const SECURITY: u8 = 1 << 3;
    const ONE_PAN: u8 = 1 << 6;
    const NEWER: u8 = 1 << 5;
    let (&low, &high) = (psdu.first()?, psdu.get(1)?);
    if low & SECURITY != 0 || high & NEWER != 0 {
        return None;
    }
    let address = |mode: u8| match mode & 3 {
        2 => Some(2),
        3 => Some(8),
        _ => None,
    };
    let second_pan = if low & ONE_PAN == 0 { 2 } else { 0 };
    // Control, sequence number and the receiver's PAN stand before.
    let octets = 5 + address(high >> 2)? + second_pan + address(high >> 6)?;
    (octets <= psdu.len()).then_some(octets)
}

fn packet(payload: &[u8], outer: Label) -> Label {
    match Dispatch::of(payload) {
        Dispatch::First | Dispatch::Further => {
            let Ok((fragment, at)) = Fragment::parse(payload) else {
                return outer;
            };
            let rest = payload.get(at..).unwrap_or_default();
            Label {
                kind: match Dispatch::of(rest) {
                    Dispatch::Iphc if fragment.offset == 0 => first(iphc::next_header(rest)),
                    _ => "fragment",
                },
                part: Some(fragment.tag.into()),
                number: Some(8 * u32::from(fragment.offset)),
                ..outer
            }
        }
        Dispatch::Iphc => Label {
            kind: whole(iphc::next_header(payload)),
            ..outer
        },
        _ => outer,
    }
}

/// A packet in one frame.
fn whole(header: Option<u8>) -> &'static str {
    match header {
        Some(next::TCP) => "tcp",
        Some(next::UDP) => "udp",
        Some(next::ICMPV6) => "icmp",
        _ => "data",
    }
}

/// The first of several frames of a packet.
fn first(header: Option<u8>) -> &'static str {
    match header {
        Some(next::TCP) => "tcp_first",
        Some(next::UDP) => "udp_first",
        Some(next::ICMPV6) => "icmp_first",
        _ => "fragment",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data frame to node 7 of node 2.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut psdu = vec![0x41, 0x88, 1, 0xcd, 0xab, 7, 0, 2, 0];
        psdu.extend(payload);
        psdu
    }

    /// The short cut finds the same payload as the parser, whatever the frame's control says.
    #[test]
    fn usual_headers_have_the_parsers_length() {
        let mut usual = 0;
        for control in 0..=u16::MAX {
            let mut psdu = [0; 30];
            psdu[..2].copy_from_slice(&control.to_le_bytes());
            let Some(header) = usual_header(&psdu) else {
                continue;
            };
            if let Ok(frame) = dot15d4::Frame::new(&psdu) {
                assert_eq!(frame.header_octets().len(), header, "{control:#06x}");
                usual += 1;
            }
            assert_eq!(usual_header(&psdu[..header - 1]), None);
        }
        assert!(usual > 0);
    }

    #[test]
    fn frames_are_named_by_the_packet_in_them() {
        let named = |payload: &[u8]| {
            let label = label(Rate::Oqpsk250, &frame(payload));
            assert_eq!(label.to, Some(7));
            (label.kind, label.part, label.number)
        };
        // Traffic class and addresses elided, the next header in line.
        assert_eq!(named(&[0x7a, 0x33, 6, 1, 2]), ("tcp", None, None));
        assert_eq!(named(&[0x7a, 0x33, 58, 128]), ("icmp", None, None));
        // Compressed headers of UDP and of TCP, behind addresses of 8 and 2 octets.
        let udp = [0x7e, 0x12, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 0xf0, 0, 0];
        assert_eq!(named(&udp), ("udp", None, None));
        let mut tcp = udp;
        tcp[12] = 0x20;
        assert_eq!(named(&tcp), ("tcp", None, None));
        let mut first = vec![0xc1, 0x00, 0, 9];
        first.extend(tcp);
        assert_eq!(named(&first), ("tcp_first", Some(9), Some(0)));
        let further = [0xe1, 0x00, 0, 9, 12, 0x7a, 0x33];
        assert_eq!(named(&further), ("fragment", Some(9), Some(96)));
        assert_eq!(named(&[]), ("data", None, None));
        for len in 0..24 {
            for octet in 0..=255 {
                label(Rate::Oqpsk250, &frame(&vec![octet; len]));
            }
        }
    }
}
