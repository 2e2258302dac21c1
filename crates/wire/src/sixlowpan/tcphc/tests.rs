extern crate std;
use super::*;
use chappe_core::Seed;
use std::vec::Vec;

const LEAD: Lead = Lead {
    whole: false,
    generation: 2,
    held: 1,
    flow: 3,
};

/// A header with timestamps and `blocks` SACK blocks.
fn tcp(anchor: &Anchor, flags: u8, blocks: usize) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(anchor.source_port.to_be_bytes());
    tcp.extend(anchor.destination_port.to_be_bytes());
    tcp.extend(anchor.seq.to_be_bytes());
    tcp.extend(anchor.ack.to_be_bytes());
    tcp.extend([0, flags]);
    tcp.extend(anchor.window.to_be_bytes());
    tcp.extend([0xab, 0xcd, 0, 0]);
    tcp.extend(TIMESTAMPS);
    tcp.extend(anchor.times[0].to_be_bytes());
    tcp.extend(anchor.times[1].to_be_bytes());
    if blocks > 0 {
        tcp.extend([1, 1, 5, 2 + 8 * blocks as u8]);
        tcp.extend((0..8 * blocks).map(|i| i as u8));
    }
    tcp[12] = (tcp.len() as u8) << 2;
    tcp
}

fn anchor() -> Anchor {
    Anchor {
        source_port: 49_152,
        destination_port: 80,
        seq: 0xffff_fff0,
        ack: 7,
        window: 1848,
        times: [1000, 2000],
    }
}

#[test]
fn the_first_octet_comes_back() {
    for octet in 0..=255u8 {
        match Lead::parse(&[octet]) {
            Ok(lead) => assert_eq!(lead.octet(), octet),
            Err(why) if octet & 0x80 != 0 => assert_eq!(why, Malformed::Unsupported),
            Err(why) => assert_eq!((why, octet >> 4 & 3), (Malformed::Illegal, 0)),
        }
    }
}

/// What the page says: 11 octets for a segment of a bulk transfer and for its acknowledgement, instead of 32.
#[test]
fn bulk_transfers_take_eleven_octets() {
    let mut out = [0; 80];
    let data = Anchor {
        seq: anchor().seq.wrapping_add(5000),
        times: [1900, 2800],
        ..anchor()
    };
    let acknowledgement = Anchor {
        ack: 5007,
        times: [1900, 2800],
        ..anchor()
    };
    for now in [data, acknowledgement] {
        let lengths = compress(LEAD, &anchor(), &tcp(&now, flag::ACK, 0), &mut out).unwrap();
        assert_eq!((lengths.compressed, lengths.expanded), (11, 32));
    }
}

/// Random headers near a random anchor come back octet by octet; each cut of them is refused; so is each other anchor
/// that makes a difference.
#[test]
fn headers_come_back() {
    let mut random = Seed(5).stream(chappe_core::Purpose::Node(1));
    let mut wrong = 0;
    for round in 0..4000u32 {
        let anchor = Anchor {
            seq: (random.next_u64() as u32),
            ack: (random.next_u64() as u32),
            window: (random.next_u64() as u32) as u16,
            times: [(random.next_u64() as u32), (random.next_u64() as u32)],
            ..anchor()
        };
        let mut near = |value: u32| match random.below(3) {
            0 => value,
            _ => value
                .wrapping_sub(0x8000)
                .wrapping_add(random.below(0x1_0000) as u32),
        };
        let now = Anchor {
            seq: near(anchor.seq),
            ack: near(anchor.ack),
            window: near(u32::from(anchor.window)) as u16,
            times: [near(anchor.times[0]), near(anchor.times[1])],
            ..anchor
        };
        let flags = flag::ACK
            | [0, flag::PSH, flag::FIN, flag::ECE | flag::PSH, flag::CWR][random.below(5) as usize];
        let header = tcp(&now, flags, (round % 4) as usize);
        let (mut short, mut back) = ([0; 80], [0; 80]);
        let lengths = compress(LEAD, &anchor, &header, &mut short).unwrap();
        let short = &short[..lengths.compressed];
        assert_eq!(expand(short, &anchor, &mut back), Ok(lengths));
        assert_eq!(back[..lengths.expanded], header);
        for cut in 0..short.len() {
            assert!(expand(&short[..cut], &anchor, &mut back).is_err());
            assert!(compress(LEAD, &anchor, &header, &mut [0; 80][..cut]).is_err());
        }
        let other = Anchor {
            seq: anchor.seq.wrapping_add(0x1_0000),
            ..anchor
        };
        wrong += u32::from(expand(short, &other, &mut back).is_ok());
    }
    // A CRC of eight bits lets one of 256 through: 4000 / 256 = 16, three standard deviations 12.
    assert!(wrong < 28, "{wrong}");
}

/// What cannot be found again, or would lose something, is not compressed.
#[test]
fn what_does_not_fit_goes_whole() {
    let mut out = [0; 80];
    let far = Anchor {
        seq: anchor().seq.wrapping_add(0x8000),
        ..anchor()
    };
    let other_port = Anchor {
        source_port: 1,
        ..anchor()
    };
    for now in [far, other_port] {
        let result = compress(LEAD, &anchor(), &tcp(&now, flag::ACK, 0), &mut out);
        assert_eq!(result, Err(Malformed::Unsupported));
    }
    for flags in [0, flag::ACK | 2, flag::ACK | 4, flag::ACK | 32] {
        let header = tcp(&anchor(), flags, 0);
        assert!(!is_suitable(&header));
        let result = compress(LEAD, &anchor(), &header, &mut out);
        assert_eq!(result, Err(Malformed::Unsupported));
    }
    let mut reserved = tcp(&anchor(), flag::ACK, 0);
    reserved[12] |= 1;
    assert!(!is_suitable(&reserved));
    let later = Anchor {
        times: [anchor().times[0].wrapping_add(0x10_0000), 0],
        ..anchor()
    };
    let long = compress(LEAD, &anchor(), &tcp(&later, flag::ACK, 0), &mut out);
    assert_eq!(long.map(|lengths| lengths.compressed), Ok(13));
}

/// Arbitrary octets never do more than fail.
#[test]
fn noise_is_refused() {
    let mut random = Seed(6).stream(chappe_core::Purpose::Node(1));
    for _ in 0..20_000 {
        let len = random.below(80) as usize;
        let noise: Vec<u8> = (0..len).map(|_| (random.next_u64() as u32) as u8).collect();
        let mut out = [0; 64];
        let _ = (
            expand(&noise, &anchor(), &mut out),
            Anchor::of(&noise),
            is_suitable(&noise),
        );
        let _ = compress(LEAD, &anchor(), &noise, &mut out);
    }
}
