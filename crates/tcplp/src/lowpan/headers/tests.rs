extern crate std;
use super::*;
use chappe_core::{Purpose, Seed, Stream};
use std::vec::Vec;

type Ends = [TcpHeaders<2>; 2];

/// A transfer of segments of 500 octets from end 0 to end 1, acknowledged one by one.
struct Transfer {
    ends: Ends,
    seq: u32,
    /// How many headers of each end went short, whole, plain.
    forms: [[u32; 3]; 2],
    unreadable: u32,
    clock: u32,
    port: u16,
}

fn address(end: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, end as u16 + 1)
}

impl Transfer {
    fn new(seq: u32) -> Transfer {
        Transfer {
            ends: Ends::default(),
            seq,
            forms: [[0; 3]; 2],
            unreadable: 0,
            clock: 0,
            port: 49_152,
        }
    }

    fn packet(&mut self, from: usize, seq: u32, ack: u32, payload: usize) -> Vec<u8> {
        self.clock = self.clock.wrapping_add(40);
        let ports = [self.port, 80];
        let mut packet = std::vec![0; 40];
        let header = Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: 32 + payload as u16,
            next_header: 6,
            hop_limit: 64,
            source: address(from),
            destination: address(1 - from),
        };
        header.emit(&mut packet).unwrap();
        packet.extend(ports[from].to_be_bytes());
        packet.extend(ports[1 - from].to_be_bytes());
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x80, 0x10, 7, 0x38, 0xab, 0xcd, 0, 0, 1, 1, 8, 10]);
        packet.extend(self.clock.to_be_bytes());
        packet.extend(self.clock.wrapping_sub(100).to_be_bytes());
        packet.resize(packet.len() + payload, 9);
        packet
    }

    /// Sends a packet; whether it was read on the other side. What is read must be what was sent.
    fn send(&mut self, from: usize, packet: &[u8], lost: bool) -> bool {
        let mut short = [0; 64];
        let Some(lengths) = self.ends[from].compress(packet, &mut short) else {
            self.forms[from][2] += 1;
            return !lost;
        };
        self.forms[from][usize::from(lengths.expanded == 0)] += 1;
        if lost {
            return false;
        }
        let mut bytes = short[..lengths.compressed].to_vec();
        bytes.extend(&packet[40 + lengths.expanded..]);
        let mut out = [0; 64];
        match self.ends[1 - from].expand(address(from), address(1 - from), &bytes, &mut out) {
            Ok(read) => {
                assert_eq!(read, lengths);
                assert_eq!(out[..read.expanded], packet[40..40 + read.expanded]);
                true
            }
            Err(why) => {
                assert_eq!(why, Lost::NoAnchor);
                self.unreadable += 1;
                false
            }
        }
    }

    /// One segment and its acknowledgement, repeated until both have arrived; how often it was sent.
    fn step(&mut self, loss: f64, random: &mut Stream) -> u32 {
        let (seq, end) = (self.seq, self.seq.wrapping_add(500));
        self.seq = end;
        for tries in 1.. {
            let data = self.packet(0, seq, 1, 500);
            if !self.send(0, &data, random.chance(loss)) {
                continue;
            }
            let ack = self.packet(1, 1, end, 0);
            if self.send(1, &ack, random.chance(loss)) {
                return tries;
            }
        }
        0
    }
}

fn random(seed: u64) -> Stream {
    Seed(seed).stream(Purpose::Node(3))
}

/// Without loss all but the first few headers are short, or an anchor once in 32 segments (16 KiB).
#[test]
fn most_headers_are_short() {
    let mut transfer = Transfer::new(0xffff_0000);
    for _ in 0..1000 {
        assert_eq!(transfer.step(0.0, &mut random(1)), 1);
    }
    for [short, whole, plain] in transfer.forms {
        std::println!("short {short}, whole {whole}, plain {plain}");
        assert!(short > 950 && whole <= 32 && plain <= 2);
    }
    assert_eq!(transfer.unreadable, 0);
}

/// With losses in both directions everything arrives as it was sent, and nothing is unreadable: an anchor is only used once
/// it is confirmed.
#[test]
fn losses_leave_no_header_unreadable() {
    for seed in 0..20 {
        let mut transfer = Transfer::new(seed as u32 * 77);
        let mut random = random(seed);
        for _ in 0..500 {
            transfer.step(0.2, &mut random);
        }
        assert_eq!(transfer.unreadable, 0, "seed {seed}");
        let [short, whole, plain] = transfer.forms[0];
        assert!(short > whole + plain, "{:?}", transfer.forms);
    }
}

/// Either end, or both, lose their state again and again: retransmissions restore the flow at once.
#[test]
fn an_end_that_loses_its_state_recovers() {
    for who in [[true, false], [false, true], [true, true]] {
        let mut transfer = Transfer::new(1);
        let mut random = random(4);
        for number in 0..400 {
            if number % 20 == 19 {
                let ends = transfer.ends.iter_mut().zip(who);
                for (end, _) in ends.filter(|(_, forgets)| *forgets) {
                    *end = TcpHeaders::default();
                }
            }
            let tries = transfer.step(0.0, &mut random);
            assert!(tries <= 3, "{who:?} {number}: {tries}");
        }
    }
}

/// More flows than places: each still arrives as it was sent.
#[test]
fn more_flows_than_places_still_arrive() {
    let mut transfer = Transfer::new(1);
    let mut random = random(9);
    for _ in 0..600 {
        transfer.port = 50_000 + random.below(5) as u16;
        assert!(transfer.step(0.05, &mut random) < 12);
    }
}

/// Random octets from a neighbour only affect the flow that they name.
#[test]
fn random_octets_only_affect_one_flow() {
    let mut transfer = Transfer::new(1);
    let mut random = random(11);
    for _ in 0..3000 {
        let len = random.below(70) as usize;
        let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let end = random.below(2) as usize;
        let mut out = [0; 64];
        let _ = transfer.ends[end].expand(address(1 - end), address(end), &noise, &mut out);
        transfer.step(0.0, &mut random);
    }
}
