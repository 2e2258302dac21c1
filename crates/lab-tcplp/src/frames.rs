//! The frames of a TCP segment, by the 6LoWPAN encoder itself: their number, lengths and headers.

use std::net::Ipv6Addr;

use chappe_core::{
    Address, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_mac::dot15d4;
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::Config;
use chappe_tcplp::tcp::Ecn;
use chappe_wire::ipv6::{Header, next};
use chappe_wire::sixlowpan::Context;

use super::addresses::PREFIX;
use super::app::App;
use super::socket_memory::SocketMemory;
use super::station::{Gate, Paths, Stack};
use super::transport::{MSS, Transport, WINDOW};

/// The header formats of a mote.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The link layer, which decides the length of link addresses.
    pub mac: dot15d4::Config,
    /// The shared contexts (RFC 6282).
    pub contexts: &'static [Context],
    /// Whether packets carry ECN bits, which take an octet of compressed header.
    pub ecn: bool,
    /// Whether packets use link-local addresses, which only neighbours can.
    pub link_local: bool,
    /// Whether relays are between the ends, so that IPv6 addresses cannot be derived from link addresses.
    pub far: bool,
    /// Whether TCP headers are compressed.
    pub headers: bool,
}

/// Octets of TCP's header with timestamps, and of its compressed form (`chappe_wire::sixlowpan::tcphc`).
const HEADER: usize = 32;
const HEADER_SHORT: usize = 11;
/// Octets of the first fragment header and of the others (RFC 4944, 5.3).
const FIRST: usize = 4;
const FURTHER: usize = 5;

impl Form {
    /// TCPlp's: short link addresses, IPv6 addresses in line, ECN.
    pub const TCPLP: Form = Form {
        mac: dot15d4::Config::HAMILTON,
        contexts: &[],
        ecn: true,
        link_local: false,
        far: false,
        headers: false,
    };

    /// Octets of link header and check sequence of each frame.
    pub fn link(&self) -> usize {
        chappe_wire::dot15d4::PSDU_MAX - self.mac.caps(0).frame_max
    }

    /// The frames of a TCP segment, without link header and check sequence. `octets` counts TCP header and payload.
    pub fn frames(&self, octets: usize) -> Vec<Vec<u8>> {
        let (here, next) = (Address::node(1), Address::node(2));
        let there = if self.far { Address::node(3) } else { next };
        let config = |node| Config::new(node, PREFIX, self.mac.caps(0).frame_max);
        let address = |node| match self.link_local {
            true => config(node).link_local(),
            false => config(node).global(),
        };
        let packet = packet(address(here), address(there), octets, self.ecn);
        // Node 1 sends every packet to its parent, node 2, and so does node 3.
        let paths = Paths::new(1, &[0, 2, 0, 2], &[]);
        let config = Config {
            contexts: self.contexts,
            ..config(here)
        };
        let random = || Seed(1).stream(Purpose::Node(1));
        // The host itself is silent: its cable holds the packet.
        let tcp = (config.global(), Transport::tcplp(MSS, WINDOW));
        let mut memory = SocketMemory::new(std::iter::once(tcp));
        let (local, sockets) = memory.only();
        let host = Host::new(local, config.link_local(), sockets, App::Nothing);
        let gate = Gate::new(host, Duration::from_nanos(1), (0.0, 0.0), random());
        let mut stack = Stack::with_headers(config, gate, paths, random(), None);
        let now = Instant::ZERO;
        stack.with_host(now, |gate| gate.hold(now, &packet));
        let mut frames = Vec::new();
        let mut sdu = [0; chappe_wire::dot15d4::PSDU_MAX];
        while let Some(send) = stack.poll_link(now, Classes::ALL, &mut sdu) {
            frames.push(sdu[..send.len].to_vec());
            let outcome = Outcome::Acknowledged { attempts: 1 };
            let token = send.token;
            stack.handle_link(now, LinkEvent::Sent { token, outcome });
        }
        frames
    }

    /// Octets of compressed IPv6 header.
    pub fn ip(&self) -> usize {
        // A segment of 20 octets takes one frame, which has no fragment header.
        let whole = self.frames(20).first().map_or(0, Vec::len);
        whole.saturating_sub(20)
    }

    /// Octets of a segment's frames on the air, with link header and check sequence. `segment` counts TCP header and payload.
    /// A segment with a compressed header has timestamps, 12 octets of options.
    pub fn octets(&self, segment: usize) -> Vec<usize> {
        if !self.headers {
            let frames = self.frames(segment);
            return frames.iter().map(|sdu| sdu.len() + self.link()).collect();
        }
        // As in the encoder: fragments end at multiples of 8 octets of the datagram before compression (RFC 4944, 5.3).
        let payload = segment.saturating_sub(HEADER);
        let (max, headers) = (self.mac.caps(0).frame_max, self.ip() + HEADER_SHORT);
        let expanded = 40 + HEADER;
        if headers + payload <= max {
            return vec![self.link() + headers + payload];
        }
        let first = ((expanded + max - FIRST - headers) & !7) - expanded;
        let mut octets = vec![self.link() + FIRST + headers + first];
        let mut left = payload - first;
        while left > 0 {
            let room = max - FURTHER;
            let part = if left <= room { left } else { room & !7 };
            octets.push(self.link() + FURTHER + part);
            left -= part;
        }
        octets
    }

    /// The largest MSS (payload and 12 octets of timestamps) whose segments fit `frames` frames.
    pub fn mss(&self, frames: usize) -> u16 {
        let fits = |payload: usize| (1..=frames).contains(&self.octets(HEADER + payload).len());
        let most = (1..=1208).rev().find(|&payload| fits(payload));
        most.unwrap_or(0) as u16 + 12
    }
}

/// An IPv6 packet with a TCP segment of `octets` octets, header included. The segment is all zeros.
fn packet(from: Ipv6Addr, to: Ipv6Addr, octets: usize, ecn: bool) -> Vec<u8> {
    let mut packet = vec![0; 40 + octets];
    let header = Header {
        traffic_class: if ecn { Ecn::Capable0.bits() } else { 0 },
        flow_label: 0,
        payload_len: octets as u16,
        next_header: next::TCP,
        hop_limit: 64,
        source: from,
        destination: to,
    };
    header
        .emit(&mut packet)
        .unwrap_or_else(|why| unreachable!("{why:?}"));
    packet
}

#[cfg(test)]
mod tests {
    use super::super::addresses::CONTEXTS;
    use super::*;

    /// Specified: 48 octets in one frame; 462 in five (460 by another count), 489 with a context.
    #[test]
    fn segments_fill_their_frames() {
        let context = Form {
            contexts: &CONTEXTS,
            ..Form::TCPLP
        };
        let payload = |form: Form, frames| form.mss(frames) - 12;
        assert_eq!(payload(Form::TCPLP, 1), 48);
        assert!((460..=471).contains(&payload(Form::TCPLP, 5)));
        assert!((489..=500).contains(&payload(context, 5)));
    }

    /// The arithmetic for compressed headers agrees with the encoder.
    #[test]
    fn short_headers_are_fragmented_as_by_the_encoder() {
        let short = Form {
            headers: true,
            contexts: &CONTEXTS,
            ..Form::TCPLP
        };
        let plain = Form {
            headers: false,
            ..short
        };
        assert_eq!(short.mss(5), 96 + 3 * 104 + 111 + 12);
        let far = Form { far: true, ..short };
        assert_eq!(far.mss(5), 88 + 3 * 104 + 111 + 12);
        // 21 octets less of header make 16 or 24 more of payload, since fragments end at multiples of 8.
        let more = short.mss(5) - plain.mss(5);
        assert!(more == 16 || more == 24, "{more}");
    }
}
