//! KCP's rules one by one, then two ends over paths that lose, delay and reorder.

extern crate std;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Address, Duration, Instant, Purpose, Seed, Stream, contract};

use super::segment::{Command, HEADER, Segment};
use super::{Kcp, KcpConfig, KcpError, KcpNode, KcpRules};

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Command, number and timestamp of the segments in all waiting datagrams.
fn sent(kcp: &mut Kcp) -> Vec<(Command, u32, u32)> {
    let (mut datagram, mut all) = ([0; 2048], Vec::new());
    while let Some(len) = kcp.poll(&mut datagram) {
        let mut rest = &datagram[..len];
        while let Some((segment, more)) = Segment::parse(rest) {
            all.push((segment.command, segment.number, segment.stamp));
            rest = more;
        }
    }
    all
}

fn ack(kcp: &mut Kcp, now: u64, numbers: &[(u32, u32)]) {
    let mut datagram = Vec::new();
    for &(number, stamp) in numbers {
        let segment = Segment {
            conv: 1,
            command: Command::Ack,
            window: 512,
            stamp,
            number,
            una: 0,
            data: &[],
        };
        let from = datagram.len();
        datagram.resize(from + HEADER, 0);
        segment.emit(&mut datagram[from..]).unwrap();
    }
    kcp.handle(at(now), &datagram);
}

/// Goal: the timeout of a segment that is never acknowledged grows by half in the quick mode and doubles otherwise.
#[test]
fn timeouts_grow_by_half_or_double() {
    for (config, expected) in [
        // 200 ms at first, then 300, 450, 675 more: at the flush after.
        (KcpConfig::fast3(), [10, 210, 510, 960, 1640]),
        // A flush every 30 ms; the first timeout is longer by an eighth: 225, then 400, 800, 1600.
        (KcpConfig::fast(), [30, 270, 690, 1500, 3120]),
    ] {
        let mut kcp = Kcp::new(config).unwrap();
        kcp.write(at(0), b"lost");
        let mut times = Vec::new();
        for ms in 0..3_500 {
            kcp.handle_timeout(at(ms));
            times.extend(sent(&mut kcp).iter().map(|_| ms));
        }
        assert_eq!(times[..5], expected);
    }
}

/// Goal: kcp-go's timeouts grow by steps of the present timeout, here the first 200 ms. One skip is enough when nothing new
/// can be sent. A window that moves is used at once.
#[test]
fn kcp_go_rules_differ() {
    let go = |config| KcpConfig {
        rules: KcpRules::Go,
        send_window: 4,
        ..config
    };
    for (config, expected) in [
        (go(KcpConfig::fast3()), [10, 210, 510, 910, 1410]),
        (go(KcpConfig::fast()), [30, 240, 660, 1260, 2070]),
    ] {
        let mut kcp = Kcp::new(config).unwrap();
        kcp.write(at(0), b"lost");
        let mut times = Vec::new();
        for ms in 0..3_500 {
            kcp.handle_timeout(at(ms));
            times.extend(sent(&mut kcp).iter().map(|_| ms));
        }
        assert_eq!(times[..5], expected);
    }
    let mut kcp = Kcp::new(go(KcpConfig::fast3())).unwrap();
    let body = vec![1; kcp.config().segment_max() * 5];
    kcp.write(at(0), &body);
    kcp.handle_timeout(at(10));
    assert_eq!(sent(&mut kcp).len(), 4);
    ack(&mut kcp, 21, &[(1, 10)]);
    kcp.handle_timeout(at(30));
    assert_eq!(sent(&mut kcp), [(Command::Push, 0, 30)]);
    let mut all = [0; HEADER];
    let two_came = Segment {
        conv: 1,
        command: Command::Ack,
        window: 512,
        stamp: 30,
        number: 0,
        una: 2,
        data: &[],
    };
    two_came.emit(&mut all).unwrap();
    kcp.handle(at(41), &all);
    assert_eq!(sent(&mut kcp), [(Command::Push, 4, 41)]);
}

/// Goal: the timeout follows the round trip down to its minimum.
#[test]
fn timeouts_have_a_minimum() {
    for (config, floor) in [(KcpConfig::fast3(), 30), (KcpConfig::fast(), 100)] {
        let mut kcp = Kcp::new(config).unwrap();
        let mut now = 0;
        for number in 0..60 {
            kcp.write(at(now), b"quick");
            now += 30;
            kcp.handle_timeout(at(now));
            let stamp = sent(&mut kcp)[0].2;
            now += 2;
            ack(&mut kcp, now, &[(number, stamp)]);
        }
        assert_eq!(kcp.sender.rto(), floor);
    }
}

/// Goal: two acknowledgements of later segments make the oldest be sent again at the next flush, long before its timeout.
/// Segments sent later than the acknowledged one do not count as skipped.
#[test]
fn skipped_segments_are_sent_again() {
    let mut kcp = Kcp::new(KcpConfig::fast3()).unwrap();
    let body = vec![1; kcp.config().segment_max() * 4];
    assert_eq!(kcp.write(at(0), &body), body.len());
    kcp.handle_timeout(at(10));
    let numbers: Vec<u32> = sent(&mut kcp).iter().map(|segment| segment.1).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    ack(&mut kcp, 21, &[(1, 10)]);
    kcp.handle_timeout(at(30));
    assert_eq!(sent(&mut kcp), []);
    ack(&mut kcp, 31, &[(2, 10)]);
    kcp.handle_timeout(at(40));
    assert_eq!(sent(&mut kcp), [(Command::Push, 0, 40)]);
    // These were sent before the retransmission, so they do not show that it is lost.
    ack(&mut kcp, 41, &[(3, 10)]);
    ack(&mut kcp, 41, &[(3, 10)]);
    kcp.handle_timeout(at(50));
    assert_eq!(sent(&mut kcp), []);
    assert_eq!((kcp.counters().skipped, kcp.counters().timeouts), (1, 0));
}

/// Goal: at most one window is in flight, the smaller of both. A closed window is probed after seven seconds, and a reader
/// that makes room announces it.
#[test]
fn windows_bound_what_is_in_flight() {
    let config = KcpConfig {
        send_window: 8,
        receive_window: 4,
        ..KcpConfig::fast3()
    };
    let [mut here, mut there] = [(); 2].map(|()| Kcp::new(config).unwrap());
    let body = vec![1; config.segment_max() * 20];
    assert_eq!(here.write(at(0), &body), config.segment_max() * 16);
    let mut datagram = [0; 2048];
    let mut carry = |from: &mut Kcp, to: &mut Kcp, ms: u64| {
        from.handle_timeout(at(ms));
        let mut segments = Vec::new();
        while let Some(len) = from.poll(&mut datagram) {
            segments.push(Segment::parse(&datagram[..len]).unwrap().0.command);
            to.handle(at(ms), &datagram[..len]);
        }
        segments
    };
    assert_eq!(carry(&mut here, &mut there, 10), [Command::Push; 4]);
    assert_eq!(carry(&mut there, &mut here, 20), [Command::Ack]);
    assert_eq!(carry(&mut here, &mut there, 30), []);
    assert_eq!(carry(&mut here, &mut there, 7_020), []);
    assert_eq!(carry(&mut here, &mut there, 7_030), [Command::Ask]);
    assert_eq!(carry(&mut there, &mut here, 7_040), [Command::Tell]);
    let mut read = vec![0; body.len()];
    assert_eq!(there.read(&mut read), 4 * config.segment_max());
    assert_eq!(carry(&mut there, &mut here, 7_050), [Command::Tell]);
    assert_eq!(carry(&mut here, &mut there, 7_060), [Command::Push; 4]);
}

/// A path with constant delay, independent losses and some late datagrams.
struct Way {
    loss: f64,
    late: f64,
    random: Stream,
    flying: BTreeMap<(u64, u64), Vec<u8>>,
    count: u64,
}

impl Way {
    fn new(seed: u64, loss: f64, late: f64) -> Way {
        Way {
            loss,
            late,
            random: Seed(seed).stream(Purpose::Trial(8)),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    fn carry(&mut self, from: &mut Kcp, to: &mut Kcp, ms: u64) {
        let mut datagram = [0; 2048];
        while let Some(len) = from.poll(&mut datagram) {
            self.count += 1;
            if self.random.chance(self.loss) {
                continue;
            }
            let late = if self.random.chance(self.late) { 7 } else { 0 };
            self.flying
                .insert((ms + 10 + late, self.count), datagram[..len].to_vec());
        }
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= ms
        {
            to.handle(at(ms), &entry.remove());
        }
    }
}

/// Goal: whatever is lost or late, the stream arrives whole and in order, with parity and without. Parity saves
/// retransmissions, and recovered datagrams are counted.
#[test]
fn a_stream_arrives_whole_and_in_order() {
    for (seed, loss, late, parity) in [
        (1, 0.0, 0.0, None),
        (2, 0.1, 0.02, None),
        (3, 0.3, 0.0, None),
        (4, 0.5, 0.1, None),
        (5, 0.3, 0.02, Some((10, 3))),
        (6, 0.5, 0.0, Some((10, 10))),
    ] {
        let config = KcpConfig {
            parity,
            rules: if seed % 2 == 0 {
                KcpRules::Original
            } else {
                KcpRules::Go
            },
            ..KcpConfig::fast3()
        };
        let [mut here, mut there] = [(); 2].map(|()| Kcp::new(config).unwrap());
        let mut ways = [2 * seed, 2 * seed + 1].map(|seed| Way::new(seed, loss, late));
        let octet = |place: usize| (place * 7 + place / 251) as u8;
        let total = 400_000;
        let (mut written, mut came, mut buffer) = (0, 0, [0; 4096]);
        let mut ms = 0;
        while came < total {
            ms += 1;
            assert!(ms < 60_000, "loss {loss}: {came} of {total} octets came");
            for kcp in [&mut here, &mut there] {
                kcp.handle_timeout(at(ms));
            }
            let part: Vec<u8> = (written..total.min(written + 3000)).map(octet).collect();
            written += here.write(at(ms), &part);
            ways[0].carry(&mut here, &mut there, ms);
            ways[1].carry(&mut there, &mut here, ms);
            loop {
                let read = there.read(&mut buffer);
                if read == 0 {
                    break;
                }
                assert!((0..read).all(|i| buffer[i] == octet(came + i)));
                came += read;
            }
        }
        let (sender, receiver) = (here.counters(), there.counters());
        std::println!("loss {loss}, parity {parity:?}: {ms} ms, {sender:?}");
        assert_eq!(sender.timeouts + sender.skipped > 0, loss > 0.0);
        assert_eq!(receiver.recovered > 0, parity.is_some());
        assert_eq!(receiver.received, sender.segments);
    }
}

#[test]
fn a_node_keeps_the_contract() {
    for parity in [None, Some((4, 2))] {
        contract::check_link(8, |_| {
            let config = KcpConfig {
                parity,
                ..KcpConfig::fast3()
            };
            let mut kcp = Kcp::new(config).unwrap();
            kcp.write(Instant::ZERO, &[9; 5000]);
            KcpNode::new(kcp, Address::node(0))
        });
    }
}

#[test]
fn invalid_settings_are_refused() {
    let base = KcpConfig::fast3();
    for (config, error) in [
        (KcpConfig { mtu: 80, ..base }, KcpError::Mtu(80)),
        (
            KcpConfig {
                send_window: 0,
                ..base
            },
            KcpError::Empty,
        ),
        (
            KcpConfig {
                interval: Duration::ZERO,
                ..base
            },
            KcpError::Empty,
        ),
        (
            KcpConfig {
                parity: Some((0, 3)),
                ..base
            },
            KcpError::Parity(0, 3),
        ),
        (
            KcpConfig {
                parity: Some((200, 100)),
                ..base
            },
            KcpError::Parity(200, 100),
        ),
    ] {
        assert_eq!(Kcp::new(config).unwrap_err(), error);
    }
}
