//! The bug classes of other stacks that concern TCP, as tests: P02, P07, P14 (parsing), F01 to F05 as far as they have
//! a form in a byte stream, and T02 to T10. T01 is tested beside the ISN, T06 and T07 beside the receive buffer, part of
//! T05 beside the scoreboard, T11 to T14 among the properties and the scripts.

mod cost;
mod flood;
mod frames;
mod off_path;
mod timestamps;

use crate::support;

use chappe_core::{HostNode, Instant, Purpose, Seed};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{
    Config, Ecn, Endpoint, Flags, Flow, Malformed, Options, Range, SackBlocks, Segment, Seq,
    Socket, State, Timestamps,
};

use support::host::{Connection, Host, Sizes, address};
use support::ip;

fn flow() -> Flow {
    Flow::new(
        Endpoint::new(address(1), 80),
        Endpoint::new(address(2), 5000),
    )
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A host with one connection, established by a peer whose next number is 1, and the host's next number.
fn established(config: Config, sizes: Sizes) -> (Host, Seq) {
    let options = Options {
        mss: Some(1000),
        sack_permitted: true,
        ..Options::default()
    };
    established_with(config, sizes, options)
}

/// The same by a peer whose SYN has these options; its later segments have a timestamp if the SYN had.
fn established_with(config: Config, sizes: Sizes, options: Options) -> (Host, Seq) {
    let mut host = Host::new(1, config, sizes, Any::default());
    host.listen(80, 100);
    let syn = Segment {
        source_port: 5000,
        destination_port: 80,
        seq: Seq::new(0),
        ack: Seq::new(0),
        flags: Flags::SYN,
        window: 60_000,
        urgent: 0,
        options,
        payload: &[],
    };
    deliver(&mut host, at(1), &syn);
    let reply = drain(&mut host, at(1)).pop().expect("a SYN-ACK");
    let answer = Segment::parse(ip::parse(&reply).expect("IPv6").segment).expect("TCP");
    let next = answer.seq + 1;
    let ack = Segment {
        options: Options {
            timestamps: options.timestamps,
            ..Options::default()
        },
        ..segment(Seq::new(1), next, &[])
    };
    deliver(&mut host, at(2), &ack);
    assert_eq!(host.sockets[0].state(), State::Established);
    (host, next)
}

fn segment(seq: Seq, ack: Seq, payload: &[u8]) -> Segment<'_> {
    Segment {
        source_port: 5000,
        destination_port: 80,
        seq,
        ack,
        flags: Flags::ACK,
        window: 60_000,
        urgent: 0,
        options: Options::default(),
        payload,
    }
}

fn deliver(host: &mut Host, now: Instant, segment: &Segment<'_>) {
    let mut packet = vec![0; ip::HEADER + 60 + segment.payload.len()];
    let len = segment
        .emit(&flow(), &mut packet[ip::HEADER..])
        .expect("it fits");
    packet.truncate(ip::HEADER + len);
    ip::emit(&mut packet, address(2), address(1), Ecn::NotCapable, len);
    host.handle_packet(now, &packet);
}

fn drain(host: &mut Host, now: Instant) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut buffer = [0; 4096];
    while let Some(len) = host.poll_packet(now, &mut buffer) {
        packets.push(buffer[..len].to_vec());
        assert!(packets.len() < 1000, "the host does not stop sending");
    }
    packets
}

/// P02: every option kind with every length and every cut of the option area: no loop, no panic, and the
/// options before an invalid one are kept.
#[test]
fn p02_options_of_every_kind_length_and_cut() {
    for kind in 0..=255u8 {
        for len in 0..=255u8 {
            for room in 0..=40usize {
                let mut area = vec![2, 4, 5, 0xb4, kind, len];
                area.resize(40, 1);
                area.truncate(room);
                let options = Options::parse(&area);
                if room >= 4 && !(kind == 2 && len == 4) {
                    assert_eq!(options.mss, Some(0x5b4), "{kind} {len} {room}");
                }
            }
        }
    }
}

/// P07, T03: every data offset with every segment length: refused, or parsed completely.
#[test]
fn p07_every_data_offset_against_every_length() {
    for offset in 0..16u8 {
        for len in 0..=80usize {
            let mut bytes = vec![1; len];
            if let Some(field) = bytes.get_mut(12) {
                *field = offset << 4;
            }
            let header = usize::from(offset) * 4;
            match Segment::parse(&bytes) {
                Ok(segment) => {
                    assert!((20..=len).contains(&header));
                    assert_eq!(segment.payload.len(), len - header);
                }
                Err(Malformed::Truncated) => assert!(len < 20),
                Err(Malformed::Offset) => assert!(header < 20 || header > len),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

/// P14: writing into buffers of exactly the right size, and of one octet less.
#[test]
fn p14_emission_into_exact_and_short_buffers() {
    let mut sack = SackBlocks::default();
    (0..4).for_each(|n| sack.push(Range::new(Seq::new(n * 10), Seq::new(n * 10 + 5))));
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let none = SackBlocks::default();
    for (mss, scale, permitted, stamps, blocks) in [
        (Some(1000), Some(7), true, timestamps, none),
        (None, None, false, None, sack),
        (None, None, true, None, none),
        (Some(1), None, false, timestamps, none),
    ] {
        let options = Options {
            mss,
            window_scale: scale,
            sack_permitted: permitted,
            timestamps: stamps,
            sack: blocks,
        };
        let payload = [3; 11];
        let segment = Segment {
            options,
            ..segment(Seq::new(1), Seq::new(2), &payload)
        };
        let exact = 20 + options.len() + payload.len();
        let mut buffer = vec![0; exact];
        assert_eq!(segment.emit(&flow(), &mut buffer), Some(exact));
        assert_eq!(Segment::parse_checked(&buffer, &flow()), Ok(segment));
        let mut short = vec![0; exact - 1];
        assert_eq!(segment.emit(&flow(), &mut short), None);
    }
}

/// Every parsed segment is emitted with the same meaning.
#[test]
fn a_parsed_segment_survives_emission() {
    let mut random = Seed(1).stream(Purpose::Trial(0));
    for _ in 0..50_000 {
        let mut bytes = vec![0; 20 + random.below(60) as usize];
        random.fill(&mut bytes);
        bytes[12] = (5 + random.below(11) as u8) << 4;
        let Ok(mut segment) = Segment::parse(&bytes) else {
            continue;
        };
        if segment.options.len() > 40 {
            segment.options.sack = SackBlocks::default();
        }
        let mut out = [0; 200];
        let len = segment.emit(&flow(), &mut out).expect("it fits");
        assert_eq!(Segment::parse_checked(&out[..len], &flow()), Ok(segment));
    }
}

/// F01, F02, F03: segments at every edge of the window, overlapping with different content, before the data they
/// follow: nothing is written outside of the buffer, and the content accepted first stays.
#[test]
fn f01_f02_f03_data_at_every_edge_of_the_window() {
    let sizes = Sizes {
        receive: 64,
        ..Sizes::default()
    };
    for start in -70..140i64 {
        for len in [1usize, 2, 31, 63, 64, 65, 200] {
            let (mut host, next) = established(Config::STANDARD, sizes);
            let payload: Vec<u8> = (0..len).map(|n| (start + n as i64) as u8).collect();
            let seq = Seq::new(1) + start as u32;
            deliver(&mut host, at(3), &segment(seq, next, &payload));
            drain(&mut host, at(3));
            let first: Vec<u8> = (0..64).collect();
            deliver(&mut host, at(4), &segment(Seq::new(1), next, &first));
            drain(&mut host, at(4));
            let mut got = [0; 100];
            let count = host.sockets[0].read(&mut got);
            assert_eq!(&got[..count], &first[..], "{start} {len}");
        }
    }
}

/// F04, F05, T06: one octet in every two across a large window, from the far end: memory is bounded, and genuine data
/// still passes.
#[test]
fn f04_a_flood_of_fragments_does_not_hold_up_the_stream() {
    let (mut host, next) = established(Config::STANDARD, Sizes::default());
    for offset in (1..20_000u32).rev().step_by(2) {
        deliver(&mut host, at(5), &segment(Seq::new(1) + offset, next, &[9]));
        assert!(drain(&mut host, at(5)).len() <= 1);
    }
    let data: Vec<u8> = (0..1000).map(|n| n as u8).collect();
    deliver(&mut host, at(6), &segment(Seq::new(1), next, &data));
    assert_eq!(host.sockets[0].info().unread, 1000);
    assert!(host.sockets[0].info().gaps <= 8);
}

/// T02: every set of flags with every kind of urgent pointer: no panic, and the stream is unchanged.
#[test]
fn t02_urgent_pointers_beyond_everything() {
    for bits in 0..=255u8 {
        for urgent in [0, 1, 9, 10, 11, u16::MAX] {
            let (mut host, next) = established(Config::STANDARD, Sizes::default());
            let data = Segment {
                flags: Flags::from_bits(bits),
                urgent,
                ..segment(Seq::new(1), next, b"0123456789")
            };
            deliver(&mut host, at(3), &data);
            drain(&mut host, at(3));
            let mut got = [0; 20];
            let count = host.sockets[0].read(&mut got);
            let flags = Flags::from_bits(bits);
            let taken = flags.has(Flags::ACK) && !flags.has(Flags::SYN) && !flags.has(Flags::RST);
            assert_eq!(count, if taken { 10 } else { 0 }, "{flags} {urgent}");
            assert!(got[..count].iter().eq(&b"0123456789"[..count]));
        }
    }
}

/// T03: segment sizes 0, 1 and 65535 in a SYN: the sender neither divides by zero nor sends beyond its own bound.
#[test]
fn t03_segment_sizes_at_the_edges() {
    for mss in [0, 1, 47, 48, 49, 1220, 65_535] {
        let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Any::default());
        host.listen(80, 1);
        let syn = Segment {
            flags: Flags::SYN,
            options: Options {
                mss: Some(mss),
                timestamps: Some(Timestamps { value: 1, echo: 0 }),
                sack_permitted: true,
                ..Options::default()
            },
            ..segment(Seq::new(0), Seq::new(0), &[])
        };
        deliver(&mut host, at(1), &syn);
        let packet = drain(&mut host, at(1)).pop().expect("a SYN-ACK");
        let answer = Segment::parse(ip::parse(&packet).expect("IPv6").segment).expect("TCP");
        let echo = answer.options.timestamps.map_or(0, |t| t.value);
        let ack = Segment {
            options: Options {
                timestamps: Some(Timestamps { value: 2, echo }),
                ..Options::default()
            },
            ..segment(Seq::new(1), answer.seq + 1, &[])
        };
        deliver(&mut host, at(2), &ack);
        host.sockets[0].write(&[1; 3000]);
        let sent = drain(&mut host, at(3));
        assert!(!sent.is_empty());
        let largest = sent
            .iter()
            .map(|packet| packet.len() - ip::HEADER - 20)
            .max();
        assert!(largest <= Some(usize::from(mss.clamp(48, 1220))), "{mss}");
    }
}

/// T04: the peer's window shrinks to zero and grows again at every point of a transfer: no underflow, and the sender never
/// sends beyond the largest edge it was offered.
#[test]
fn t04_windows_that_shrink_at_every_moment() {
    let mut random = Seed(4).stream(Purpose::Trial(0));
    for round in 0..300 {
        let (mut host, next) = established(Config::STANDARD, Sizes::default());
        let (mut now, mut acked, mut edge) = (10, 0u32, 60_000u32);
        let mut highest = 0;
        for _ in 0..60 {
            host.sockets[0].write(&[5; 4000]);
            for packet in drain(&mut host, at(now)) {
                let sent = Segment::parse(ip::parse(&packet).expect("IPv6").segment).expect("TCP");
                let end = (sent.seq + sent.payload.len() as u32).since(next);
                // A window probe may lie one octet beyond.
                assert!(
                    end <= edge + 1,
                    "round {round}: sent to {end}, offered to {edge}"
                );
                highest = end.max(highest);
            }
            acked += random.below(u64::from(highest - acked) + 1) as u32;
            let window = [0, 1, 500, 5000][random.below(4) as usize];
            edge = edge.max(acked + u32::from(window));
            let ack = Segment {
                window,
                ..segment(Seq::new(1), next + acked, &[])
            };
            now += 1 + random.below(3000);
            host.handle_timeout(at(now));
            deliver(&mut host, at(now), &ack);
        }
    }
}

/// T05: hostile SACK blocks, 100,000 of them, while data is in flight: bounded answers, consistent counters, and
/// the connection still works afterwards.
#[test]
fn t05_hostile_sack_blocks() {
    let mut random = Seed(5).stream(Purpose::Trial(0));
    let (mut host, next) = established(Config::STANDARD, Sizes::default());
    host.sockets[0].write(&[1; 20_000]);
    drain(&mut host, at(3));
    for n in 0..100_000u64 {
        let mut sack = SackBlocks::default();
        for _ in 0..random.below(5) {
            let mut edge = || match random.below(8) {
                0 => Seq::new(random.next_u64() as u32),
                _ => next + random.below(22_000) as u32,
            };
            sack.push(Range::new(edge(), edge()));
        }
        let ack = Segment {
            options: Options {
                sack,
                ..Options::default()
            },
            ..segment(Seq::new(1), next, &[])
        };
        let now = at(10 + n / 1000);
        deliver(&mut host, now, &ack);
        assert!(drain(&mut host, now).len() < 40);
        let info = host.sockets[0].info();
        assert!(info.sacked + info.lost <= info.in_flight && info.pipe <= info.in_flight);
    }
    let end = next + host.sockets[0].info().in_flight;
    deliver(&mut host, at(200), &segment(Seq::new(1), end, &[]));
    assert_eq!(host.sockets[0].info().in_flight, 0);
    assert_eq!(host.sockets[0].state(), State::Established);
}

/// T08: resets, SYNs and acknowledgements with random numbers: only a reset at exactly RCV.NXT closes, so that a blind guess
/// succeeds once in 2^32; and the answers are rate-limited.
#[test]
fn t08_blind_guesses_close_nothing() {
    let mut random = Seed(8).stream(Purpose::Trial(0));
    let (mut host, next) = established(Config::STANDARD, Sizes::default());
    let mut answers = 0;
    for n in 0..200_000u64 {
        // Half of the guesses inside the window, where they are most dangerous; the right number itself left out.
        let seq = match random.below(2) {
            0 => Seq::new(2 + random.below(20_000) as u32),
            _ => Seq::new(random.next_u64() as u32 | 1 << 31),
        };
        let flags = [
            Flags::RST,
            Flags::RST | Flags::ACK,
            Flags::SYN,
            Flags::SYN | Flags::ACK,
        ];
        let guess = Segment {
            flags: flags[random.below(4) as usize],
            ..segment(seq, next + random.below(1 << 32) as u32, &[])
        };
        let now = Instant::from_micros(3000 + n * 50);
        deliver(&mut host, now, &guess);
        answers += drain(&mut host, now).len();
        assert_eq!(host.sockets[0].state(), State::Established);
    }
    // 10 s of attack: at most ten answers in each of three periods of 5 s.
    assert!(answers <= 30, "{answers} answers");
}

/// T09: this TCP has no input for ICMP messages. Only the configuration can lower the segment size, and never below 48.
#[test]
fn t09_nothing_but_the_configuration_lowers_the_segment_size() {
    let config = Config {
        mss: 1,
        ..Config::STANDARD
    };
    let (host, _) = established(config, Sizes::default());
    assert_eq!(host.sockets[0].info().send_mss, 48);
}

/// T10: accept, refuse, abort and close of half-open and open connections in every order of four steps, on a listener
/// whose backlog is full or not: no panic, no stray answer, no socket left over.
#[test]
fn t10_accept_refuse_and_abort_in_every_order() {
    for order in 0..5u32.pow(4) {
        let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Any::default());
        host.listen(80, u16::from(order % 2 == 0));
        let mut iss = None;
        for step in 0..4 {
            let now = at(10 * (u64::from(step) + 1));
            let ack = iss.map_or(Seq::new(7), |iss: Seq| iss + 1);
            match order / 5u32.pow(step) % 5 {
                0 => deliver(
                    &mut host,
                    now,
                    &Segment {
                        flags: Flags::SYN,
                        ..segment(Seq::new(0), Seq::new(0), &[])
                    },
                ),
                1 => deliver(&mut host, now, &segment(Seq::new(1), ack, b"x")),
                2 => deliver(
                    &mut host,
                    now,
                    &Segment {
                        flags: Flags::RST,
                        ..segment(Seq::new(1), ack, &[])
                    },
                ),
                3 => host.sockets.iter_mut().for_each(Socket::abort),
                _ => host
                    .sockets
                    .iter_mut()
                    .for_each(|socket: &mut Connection| socket.close(now)),
            }
            for packet in drain(&mut host, now) {
                let sent = Segment::parse(ip::parse(&packet).expect("IPv6").segment).expect("TCP");
                if sent.flags.has(Flags::SYN) {
                    iss = Some(sent.seq);
                }
            }
        }
        host.sockets.iter_mut().for_each(Socket::abort);
        drain(&mut host, at(100));
        assert_eq!(host.collect(), 0, "order {order}");
        assert_eq!(host.poll_timeout(), None);
    }
}

/// S05, as far as it concerns TCP: for each octet of a SYN from an unverified address, fewer than three octets are sent,
/// retransmissions of the SYN-ACK included, up to the third.
#[test]
fn s05_a_syn_is_not_amplified() {
    let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Any::default());
    host.listen(80, 100);
    let syn = Segment {
        flags: Flags::SYN,
        options: Options {
            mss: Some(1000),
            sack_permitted: true,
            ..Options::default()
        },
        ..segment(Seq::new(0), Seq::new(0), &[])
    };
    deliver(&mut host, at(1), &syn);
    let first: usize = drain(&mut host, at(1)).iter().map(Vec::len).sum();
    assert!(first <= ip::HEADER + 20 + syn.options.len() + 8);
}

/// Random segments with plausible numbers, in every state that a script of calls and such segments can reach: no
/// panic, no burst, no deadline in the past.
#[test]
fn random_segments_and_calls_never_panic() {
    let mut random = Seed(9).stream(Purpose::Trial(0));
    let mut states = std::collections::BTreeSet::new();
    for round in 0..3_000 {
        let config = Config {
            mss: [64, 400, 1220][random.below(3) as usize],
            time_wait: chappe_core::Duration::from_secs(1),
            rack: random.chance(0.5),
            sack: random.chance(0.8),
            window_scale: random.chance(0.5),
            ..Config::STANDARD
        };
        let sizes = Sizes {
            send: 1 + random.below(3000) as usize,
            receive: 1 + random.below(3000) as usize,
            ranges: random.below(4) as usize,
            flight: 1 + random.below(6) as usize,
        };
        let mut host = Host::new(1, config, sizes, Any::default());
        host.listen(80, 10);
        if random.chance(0.4) {
            host.connect(at(1), 80, flow().remote);
        }
        let (mut now, mut snd, mut rcv) = (at(1), Seq::new(0), Seq::new(random.next_u64() as u32));
        for _ in 0..60 {
            (snd, rcv) = follow(&mut host, now, (snd, rcv));
            match random.below(8) {
                0 => {
                    now += chappe_core::Duration::from_millis(random.below(3000));
                    host.handle_timeout(now);
                }
                1 => host
                    .sockets
                    .iter_mut()
                    .for_each(|socket| match random.below(6) {
                        0 => socket.shutdown(),
                        1 if random.chance(0.3) => socket.close(now),
                        2 if random.chance(0.1) => socket.abort(),
                        3 => {
                            socket.read(&mut [0; 700]);
                        }
                        _ => {
                            socket.write(&[1; 900]);
                        }
                    }),
                _ => {
                    let payload = vec![2; random.below(3) as usize * random.below(700) as usize];
                    let near = |base: Seq, random: &mut chappe_core::Stream| match random.below(6) {
                        0 => base + random.below(3000) as u32,
                        1 => base.back(random.below(3000) as u32),
                        _ => base,
                    };
                    let mut sack = SackBlocks::default();
                    (0..random.below(4)).for_each(|_| {
                        let start = near(snd, &mut random);
                        sack.push(Range::new(start, start + random.below(1000) as u32));
                    });
                    let flags = match random.below(10) {
                        0 => Flags::from_bits(random.next_u64() as u8),
                        1 => Flags::SYN,
                        2 => Flags::SYN | Flags::ACK,
                        3 => Flags::FIN | Flags::ACK,
                        4 if random.chance(0.2) => Flags::RST,
                        _ => Flags::ACK,
                    };
                    let timestamps = Timestamps {
                        value: random.below(1 << 33) as u32,
                        echo: random.next_u64() as u32,
                    };
                    let options = Options {
                        mss: random.chance(0.5).then(|| random.next_u64() as u16),
                        window_scale: random.chance(0.5).then(|| random.below(20) as u8),
                        sack_permitted: random.chance(0.5),
                        timestamps: random.chance(0.2).then_some(timestamps),
                        sack,
                    };
                    let options = if options.len() > 40 {
                        Options::default()
                    } else {
                        options
                    };
                    let hostile = Segment {
                        flags,
                        window: random.next_u64() as u16,
                        urgent: random.next_u64() as u16,
                        options,
                        ..segment(near(rcv, &mut random), near(snd, &mut random), &payload)
                    };
                    deliver(&mut host, now, &hostile);
                }
            }
            states.extend(host.sockets.iter().map(|socket| socket.state().name()));
            (snd, rcv) = follow(&mut host, now, (snd, rcv));
            let due = host.poll_timeout().is_some_and(|wake| wake.at <= now);
            if due {
                host.handle_timeout(now);
                (snd, rcv) = follow(&mut host, now, (snd, rcv));
                let still = host.poll_timeout().is_some_and(|wake| wake.at <= now);
                assert!(!still, "round {round}: a deadline stays");
            }
        }
    }
    assert_eq!(states.len(), 10, "states reached: {states:?}");
}

/// The sequence numbers that a peer learns from the host's segments: the end of what the host sent, and RCV.NXT.
fn follow(host: &mut Host, now: Instant, (mut snd, mut rcv): (Seq, Seq)) -> (Seq, Seq) {
    for packet in drain(host, now) {
        let packet = ip::parse(&packet).expect("IPv6");
        let sent = Segment::parse(packet.segment).expect("TCP");
        snd = sent.seq + sent.sequence_len();
        if sent.flags.has(Flags::ACK) && !sent.flags.has(Flags::RST) {
            rcv = sent.ack;
        }
    }
    (snd, rcv)
}

/// What the host sends: sequence number, flags and payload length of each segment.
fn sent(host: &mut Host, now: Instant) -> Vec<(Seq, Flags, usize)> {
    let fields = |packet: &Vec<u8>| {
        let packet = ip::parse(packet).expect("IPv6");
        let sent = Segment::parse(packet.segment).expect("TCP");
        (sent.seq, sent.flags, sent.payload.len())
    };
    drain(host, now).iter().map(fields).collect()
}
