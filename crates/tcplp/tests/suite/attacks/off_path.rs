//! An attacker who does not see the connection: no single segment changes anything but counters.
//!
//! Method: one socket in a state with data both ways and a hole; one segment whose fields are random, near the true numbers or at their
//! edges, but not acceptable in both number spaces at once; then everything that the socket holds is compared.

use chappe_core::Duration;
use chappe_tcplp::tcp::{
    Config, Flags, KeepAlive, Options, Range, SackBlocks, Segment, Seq, Timestamps,
};
use proptest::prelude::*;

use super::support::host::{Host, Sizes};
use super::{at, deliver, drain, established_with, segment};

/// The window that the host offers, octets.
const WINDOW: u32 = 600;
/// Octets of the host in flight.
const FLIGHT: u32 = 200;

fn stamped(value: u32) -> Options {
    Options {
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Options::default()
    }
}

/// A connection at rest: 100 octets came and were acknowledged, 50 came after a hole; 200 are in flight. Returns the host's SND.NXT.
fn settled() -> (Host, Seq) {
    let config = Config {
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(10),
            probes: 3,
        }),
        delayed_ack: Duration::ZERO,
        ..Config::STANDARD
    };
    let sizes = Sizes {
        send: 300,
        receive: WINDOW as usize,
        ranges: 4,
        flight: 4,
    };
    let options = Options {
        mss: Some(500),
        sack_permitted: true,
        ..stamped(1000)
    };
    let (mut host, next) = established_with(config, sizes, options);
    for (seq, len) in [(1, 100), (201, 50)] {
        let data = vec![7; len];
        let genuine = Segment {
            options: stamped(1010),
            ..segment(Seq::new(seq), next, &data)
        };
        deliver(&mut host, at(10), &genuine);
        drain(&mut host, at(10));
    }
    host.sockets[0].read(&mut [0; 100]);
    host.sockets[0].write(&[5; FLIGHT as usize]);
    drain(&mut host, at(11));
    (host, next + FLIGHT)
}

/// Everything that the socket holds, its buffers too, without its counters, the budget of challenges and the time of the last call.
fn image(host: &Host) -> String {
    let all = format!("{:?}", host.sockets[0]);
    let without = |text: String, field: &str| {
        let from = text.find(field).expect(field);
        let rest = &text[from + field.len()..];
        let ends: &[char] = if field.ends_with('[') {
            &[']']
        } else {
            &[',', '}']
        };
        let end = rest.find(ends).expect("a field ends");
        format!("{}{}", &text[..from], &rest[end..])
    };
    ["challenges: ", "dropped: ", " now: ["]
        .into_iter()
        .fold(all, without)
}

/// A sequence number: anything, or near the true one.
fn near(true_one: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (0..3 * WINDOW).prop_map(move |n| true_one.wrapping_add(n)),
        (0..3 * WINDOW).prop_map(move |n| true_one.wrapping_sub(n)),
        prop::sample::select(vec![
            0,
            1,
            99,
            100,
            101,
            WINDOW - 1,
            WINDOW,
            WINDOW + 1,
            1 << 30,
            1 << 31
        ])
        .prop_map(move |n| true_one.wrapping_add(n)),
    ]
}

fn options(snd: u32) -> impl Strategy<Value = Options> {
    let stamps = prop_oneof![Just(1000), Just(1010), Just(1011), any::<u32>()];
    let sack = prop::collection::vec((near(snd), near(snd)), 0..3);
    (prop::option::weighted(0.8, (stamps, any::<u32>())), sack).prop_map(|(stamps, blocks)| {
        let mut sack = SackBlocks::default();
        for (start, end) in blocks {
            sack.push(Range::new(Seq::new(start), Seq::new(end)));
        }
        Options {
            timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
            sack,
            ..Options::default()
        }
    })
}

/// The host's initial sequence number, which depends on its secret and the time only.
fn snd_nxt() -> u32 {
    settled().1.bits()
}

/// RCV.NXT of the settled connection.
const RCV_NXT: u32 = 101;

/// Whether the attacker guessed: a reset at RCV.NXT; or both numbers of a segment with ACK. RFC 5961 3.2, 5.2. Old segments with a right
/// acknowledgement are a guess too: it may be one of the peer, and is answered.
fn guessed(seq: u32, ack: u32, flags: Flags, snd: u32) -> bool {
    if flags.has(Flags::RST) {
        return seq == RCV_NXT;
    }
    // MAX.SND.WND is the 60,000 that the peer offered.
    let acceptable = snd.wrapping_sub(ack) <= 60_000 + FLIGHT;
    flags.has(Flags::ACK) && !flags.has(Flags::SYN) && acceptable
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_segment_changes_nothing_but_counters(
        (seq, ack, flags, window, urgent, options, len) in {
            let snd = snd_nxt();
            (near(RCV_NXT), near(snd), any::<u8>(), any::<u16>(), any::<u16>(), options(snd), 0..900usize)
        }
    ) {
        let (mut host, next) = settled();
        let flags = Flags::from_bits(flags);
        prop_assume!(!guessed(seq, ack, flags, next.bits()));
        let before = image(&host);
        let data = vec![9; len];
        let forged = Segment { flags, window, urgent, options, ..segment(Seq::new(seq), Seq::new(ack), &data) };
        deliver(&mut host, at(12), &forged);
        let answers = drain(&mut host, at(12)).len();
        prop_assert!(answers <= 1);
        prop_assert_eq!(before, image(&host));
    }
}

/// The comparison notices a change: a segment with both numbers right, and a reset at RCV.NXT.
#[test]
fn the_comparison_can_fail() {
    for flags in [Flags::ACK, Flags::RST] {
        let (mut host, next) = settled();
        let before = image(&host);
        let hit = Segment {
            flags,
            options: stamped(1012),
            ..segment(Seq::new(RCV_NXT), next, b"x")
        };
        deliver(&mut host, at(12), &hit);
        drain(&mut host, at(12));
        assert_ne!(before, image(&host));
    }
}
