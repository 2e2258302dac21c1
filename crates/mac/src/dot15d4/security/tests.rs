use super::*;
use chappe_wire::dot15d4::{Kind, Version};

const KEY: [u8; 16] = [
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
];
const FROM: Address = Address::node(2);

fn frame(security: &mut Security, payload: &[u8], psdu: &mut [u8]) -> usize {
    let (to, from) = (Node::Short(1), Node::Short(2));
    let header = Header {
        version: Version::V2006,
        ..Header::within(0xcafe, Kind::Data, to, from, 7)
    };
    security.protect(header, FROM, payload, psdu).unwrap()
}

const LEVELS: [Level; 6] = [
    Level::Mic32,
    Level::Mic64,
    Level::Mic128,
    Level::EncMic32,
    Level::EncMic64,
    Level::EncMic128,
];

/// The command frame of IEEE 802.15.4-2006, annex C.2.3: level 6, EUI-64 acde480000000001, counter 5: one octet
/// 0xce becomes 0xd8 with the code 4fde52905f9 (..). Header octets as given there.
#[test]
fn the_standards_example() {
    let header = [
        0x2b, 0xdc, 0x84, 0x21, 0x43, 0x02, 0x00, 0x00, 0x00, 0x00, 0x48, 0xde, 0xac, 0xff, 0xff,
        0x01, 0x00, 0x00, 0x00, 0x00, 0x48, 0xde, 0xac, 0x06, 0x05, 0x00, 0x00, 0x00, 0x01,
    ];
    let cipher = Cipher::Eight(Ccm::new(&KEY.into()));
    let nonce = nonce(Address::from_u64(0xacde_4800_0000_0001), 5, 6);
    let (mut secret, mut mic) = ([0xce], [0; 8]);
    cipher.seal(&nonce, &header, &mut secret, &mut mic).unwrap();
    assert_eq!(secret, [0xd8]);
    assert_eq!(mic, [0x4f, 0xde, 0x52, 0x90, 0x61, 0xf9, 0xc6, 0xf1]);
}

#[test]
fn frames_open_once_and_only_whole() {
    for level in LEVELS {
        let mut sender = Security::new(KEY, 1, level, 9);
        let mut receiver = Security::new(KEY, 1, level, 0);
        let mut psdu = [0; 125];
        let len = frame(&mut sender, b"hello", &mut psdu);
        assert_eq!(len, 9 + 5 + sender.overhead());
        // S01: every bent bit is refused and changes nothing.
        for bit in 0..len * 8 {
            let mut bent = psdu;
            bent[bit / 8] ^= 1 << (bit % 8);
            if let Ok(bent) = Frame::new(&bent[..len]) {
                assert_eq!(receiver.open(&bent, FROM, &mut [0; 127]), None, "{bit}");
            }
        }
        let whole = Frame::new(&psdu[..len]).unwrap();
        let mut clear = [0; 127];
        assert_eq!(receiver.open(&whole, FROM, &mut clear), Some(&b"hello"[..]));
        assert_eq!(receiver.open(&whole, FROM, &mut clear), None, "replayed");
        assert_eq!(receiver.open(&whole, Address::node(3), &mut clear), None);
        let len = frame(&mut sender, b"", &mut psdu);
        let next = Frame::new(&psdu[..len]).unwrap();
        assert_eq!(receiver.open(&next, FROM, &mut clear), Some(&b""[..]));
    }
}

/// S04: no other level passes, nor none at all; S03: a key of one length of code refuses the others.
#[test]
fn s04_other_levels_are_refused() {
    for sent in LEVELS {
        for wanted in LEVELS {
            let mut psdu = [0; 125];
            let len = frame(&mut Security::new(KEY, 1, sent, 0), b"x", &mut psdu);
            let frame = Frame::new(&psdu[..len]).unwrap();
            let mut receiver = Security::new(KEY, 1, wanted, 0);
            let opens = receiver.open(&frame, FROM, &mut [0; 127]).is_some();
            assert_eq!(opens, sent == wanted);
        }
    }
    let plain = [0x61, 0x88, 7, 0xfe, 0xca, 1, 0, 2, 0, 42];
    let frame = Frame::new(&plain).unwrap();
    let mut receiver = Security::new(KEY, 1, Level::EncMic32, 0);
    assert_eq!(receiver.open(&frame, FROM, &mut [0; 127]), None);
}

/// A key whose counters are used up sends nothing more.
#[test]
fn s02_the_last_counter_is_the_last() {
    let mut sender = Security::new(KEY, 1, Level::EncMic32, u32::MAX - 1);
    let header = Header {
        version: Version::V2006,
        ..Header::within(1, Kind::Data, Node::Short(1), Node::Short(2), 7)
    };
    assert!(sender.protect(header, FROM, b"x", &mut [0; 125]).is_some());
    assert!(sender.protect(header, FROM, b"x", &mut [0; 125]).is_none());
    assert_eq!(sender.counter(), u32::MAX);
}

/// S02: a thousand power cuts at random moments, the counter stored in blocks of 64: none is used twice.
#[test]
fn s02_no_counter_repeats_over_power_cuts() {
    use chappe_core::{Purpose, Seed};
    let mut cuts = Seed(1).stream(Purpose::Trial(1));
    let (mut stored, mut last, mut writes) = (0, None, 0);
    for _ in 0..1000 {
        let mut sender = Security::new(KEY, 1, Level::EncMic32, stored);
        for _ in 0..cuts.below(200) {
            if sender.to_store(64) > stored {
                stored = sender.to_store(64);
                writes += 1;
            }
            let used = sender.counter();
            assert!(last.is_none_or(|last| used > last), "{used} after {last:?}");
            last = Some(used);
            frame(&mut sender, b"x", &mut [0; 125]);
        }
    }
    assert!(writes < 4000, "{writes}");
}
