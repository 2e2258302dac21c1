//! Two sockets over a bad network, in virtual time: whatever the network does, the data read is the data written, nothing
//! stalls, and both ends come to rest. A failure prints its seed.

use crate::support;

use std::net::IpAddr;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed, Stream, contract};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Endpoint, Few, Flow, NewReno, Secret, State, Unlimited};

use support::host::{Host, Sizes, address};
use support::network::{Faults, Network};

const PORT: u16 = 80;

/// One direction of a transfer, as its two applications see it.
struct Transfer {
    data: Vec<u8>,
    written: usize,
    read: usize,
}

impl Transfer {
    fn new(random: &mut Stream, len: usize) -> Transfer {
        let mut data = vec![0; len];
        random.fill(&mut data);
        Transfer {
            data,
            written: 0,
            read: 0,
        }
    }
}

/// A configuration whose options are drawn at random.
fn config(random: &mut Stream) -> Config {
    let mut coin = || random.chance(0.7);
    let standard = Config::STANDARD;
    let config = Config {
        nagle: coin(),
        sack: coin(),
        timestamps: coin(),
        window_scale: coin(),
        ecn: coin(),
        limited_transmit: coin(),
        rack: coin(),
        tail_loss_probe: coin(),
        prr: coin(),
        undo: coin(),
        idle_restart: coin(),
        retries_max: 30,
        syn_retries_max: 30,
        rto_max: Duration::from_secs(20),
        ..standard
    };
    Config {
        mss: [100, 462, 1220][random.below(3) as usize],
        rto_min: Duration::from_millis([200, 1000][random.below(2) as usize]),
        delayed_ack: Duration::from_millis([0, 100][random.below(2) as usize]),
        ..config
    }
}

fn congestion(random: &mut Stream) -> Any {
    match random.below(4) {
        0 => Any::Few(Few::default()),
        1 => Any::Unlimited(Unlimited),
        _ => Any::NewReno(NewReno),
    }
}

fn sizes(random: &mut Stream, mss: u16) -> Sizes {
    let segments = 1 + random.below(8) as usize;
    let mss = usize::from(mss);
    Sizes {
        send: mss * segments + random.below(50) as usize,
        receive: mss * (1 + random.below(8) as usize) + random.below(50) as usize,
        ranges: random.below(6) as usize,
        flight: 1 + random.below(10) as usize,
    }
}

/// The two sockets of a network with a client on host 0 and a server on host 1.
fn open(network: &mut Network) {
    network.hosts[1].listen(PORT, 10);
    let remote = Endpoint::new(address(2), PORT);
    let now = network.now;
    network.hosts[0].connect(now, 50_000, remote);
}

fn pump(network: &mut Network, transfers: &mut [Transfer; 2], random: &mut Stream) {
    for side in 0..2 {
        let now = network.now;
        let Some(socket) = network.hosts[side].sockets.first_mut() else {
            continue;
        };
        let (incoming, outgoing) = (1 - side, side);
        let mut buffer = vec![0; 1 + random.below(3000) as usize];
        let len = socket.read(&mut buffer);
        let transfer = &mut transfers[incoming];
        let want = transfer.data.get(transfer.read..transfer.read + len);
        assert_eq!(want, Some(&buffer[..len]), "the stream is broken");
        transfer.read += len;
        let transfer = &mut transfers[outgoing];
        let chunk = (1 + random.below(3000) as usize).min(transfer.data.len() - transfer.written);
        transfer.written +=
            socket.write(&transfer.data[transfer.written..transfer.written + chunk]);
        if transfer.written == transfer.data.len() && socket.state() != State::SynSent {
            socket.shutdown();
        }
        if socket.at_end() && !socket.may_write() {
            socket.close(now);
        }
    }
    network.drain();
}

/// Runs until both are at rest; the network has time to lose everything several times over.
fn run(network: &mut Network, transfers: &mut [Transfer; 2], random: &mut Stream) {
    let limit = network.now + Duration::from_secs(24 * 3600);
    loop {
        let before = transfers.each_ref().map(|transfer| transfer.read);
        pump(network, transfers, random);
        let still = before == transfers.each_ref().map(|transfer| transfer.read);
        if !network.step(limit) && still {
            break;
        }
    }
}

fn trial(seed: u64, faults: impl Fn(&mut Stream) -> Faults) -> Network {
    let mut random = Seed(seed).stream(Purpose::Trial(0));
    let make = |number, random: &mut Stream| {
        let config = config(random);
        let sizes = sizes(random, config.mss);
        Host::new(number, config, sizes, congestion(random))
    };
    let hosts = [make(1, &mut random), make(2, &mut random)];
    let mut network = Network::new(hosts, faults(&mut random), seed);
    start_near_wrap(&mut network, &mut random);
    let lens = [1 + random.below(20_000), random.below(4_000)];
    let mut transfers = lens.map(|len| Transfer::new(&mut random, len as usize));
    open(&mut network);
    run(&mut network, &mut transfers, &mut random);
    for (side, transfer) in transfers.iter().enumerate() {
        let len = transfer.data.len();
        let states: Vec<_> = network
            .hosts
            .iter()
            .map(|h| {
                h.sockets
                    .first()
                    .map(|s| (s.state(), s.failure(), s.info()))
            })
            .collect();
        assert_eq!(
            (transfer.written, transfer.read),
            (len, len),
            "seed {seed}: direction {side} stalled at {}: {states:#?}",
            network.now
        );
    }
    for host in &network.hosts {
        let socket = &host.sockets[0];
        assert_eq!(socket.state(), State::Closed, "seed {seed}");
        assert_eq!(socket.failure(), None, "seed {seed}");
    }
    network
}

/// T12: every other run starts a few hundred octets before the client's sequence numbers wrap, or a second before the
/// timestamps' or the microseconds' clock does.
fn start_near_wrap(network: &mut Network, random: &mut Stream) {
    let flow = Flow::new(
        Endpoint::new(address(1), 50_000),
        Endpoint::new(address(2), PORT),
    );
    let secret: Secret = network.hosts[0].local.secret;
    let now = match random.below(6) {
        0 => {
            let first = secret.initial_sequence_number(Instant::ZERO, &flow).bits();
            let ticks = 0u32
                .wrapping_sub(first)
                .wrapping_sub(random.below(1000) as u32);
            Instant::from_micros(u64::from(ticks) * 4)
        }
        1 => {
            let offset = secret.timestamp_offset(&flow);
            Instant::from_millis(u64::from(0u32.wrapping_sub(offset)).saturating_sub(1000))
        }
        2 => Instant::from_micros((1 << 32) - 1_000_000),
        _ => Instant::from_millis(random.below(1 << 40)),
    };
    network.now = now.max(Instant::from_millis(1));
}

/// T12: a connection that lives for 60 days and sends something now and then, from a second before the timestamps' clock
/// wraps on: 32-bit milliseconds wrap once more, microseconds a thousand times, and PAWS's 24 days pass in silence.
#[test]
fn t12_a_connection_lives_through_every_wrap() {
    let config = Config::STANDARD;
    let hosts = [1, 2].map(|n| Host::new(n, config, Sizes::default(), Any::default()));
    let mut network = Network::new(hosts, Faults::default(), 1);
    let flow = Flow::new(
        Endpoint::new(address(1), 50_000),
        Endpoint::new(address(2), PORT),
    );
    let offset = network.hosts[0].local.secret.timestamp_offset(&flow);
    network.now = Instant::from_millis(u64::from(0u32.wrapping_sub(offset)).saturating_sub(1000));
    let start = network.now;
    open(&mut network);
    let mut random = Seed(2).stream(Purpose::Trial(0));
    let (mut said, mut heard) = (0usize, 0usize);
    let day = Duration::from_secs(24 * 3600);
    while network.now < start + day * 60 {
        // Mostly minutes, once in a while 10 days, and 25 days once.
        let pause = match random.below(40) {
            0 => day * 10,
            1 if said % 7 == 3 => day * 25,
            _ => Duration::from_secs(60 + random.below(100_000)),
        };
        let until = network.now + pause;
        while network.step(until) {}
        network.now = until;
        let len = 1 + random.below(500) as usize;
        said += network.hosts[0].sockets[0].write(&vec![said as u8; len]);
        let soon = network.now + Duration::from_secs(1);
        while network.step(soon) {}
        heard += network.hosts[1].sockets[0].read(&mut [0; 1000]);
        assert_eq!(
            heard,
            said,
            "{} s in",
            network.now.saturating_since(start).as_secs_f64()
        );
    }
    assert_eq!(network.hosts[0].sockets[0].info().counters.timeouts, 0);
}

#[test]
fn streams_arrive_whole_without_faults() {
    for seed in 0..100 {
        trial(seed, |_| Faults::default());
    }
}

#[test]
fn streams_arrive_whole_whatever_the_network_does() {
    for seed in 0..1_500 {
        trial(1_000 + seed, |random| Faults {
            loss: [0.0, 0.01, 0.06, 0.21][random.below(4) as usize],
            duplicate: [0.0, 0.05][random.below(2) as usize],
            reorder: [0.0, 0.1, 0.5][random.below(3) as usize],
            corrupt: [0.0, 0.03][random.below(2) as usize],
            mark: [0.0, 0.1, 1.0][random.below(3) as usize],
            delay: Duration::from_millis(1 + random.below(200)),
            jitter: Duration::from_millis(1 + random.below(400)),
            octet: Duration::from_micros([0, 100][random.below(2) as usize]),
        });
    }
}

/// The same seed gives the same trace.
#[test]
fn runs_repeat() {
    for seed in 0..400 {
        let mut digests = [0, 1].map(|_| {
            let mut random = Seed(seed).stream(Purpose::Trial(0));
            let hosts = [1, 2].map(|number| {
                let config = config(&mut random);
                let sizes = sizes(&mut random, config.mss);
                Host::new(number, config, sizes, congestion(&mut random))
            });
            let faults = Faults {
                loss: 0.05,
                reorder: 0.1,
                duplicate: 0.05,
                mark: 0.05,
                ..Faults::default()
            };
            let mut network = Network::new(hosts, faults, seed);
            let mut transfers = [9_000, 5_000].map(|len| Transfer::new(&mut random, len));
            open(&mut network);
            run(&mut network, &mut transfers, &mut random);
            (network.digest, network.packets)
        });
        digests.sort_unstable();
        assert_eq!(digests[0], digests[1], "seed {seed}");
    }
}

/// The contract of every host: early timeouts change nothing, no deadline stays, two copies do the same, and no
/// packet panics. The host listens and has one connection open, so that its own packets, echoed, truncated and corrupted,
/// reach every possible state.
#[test]
fn a_host_keeps_the_contract() {
    contract::check_host(300, |seed| {
        let mut random = Seed(seed).stream(Purpose::Trial(7));
        let config = config(&mut random);
        let sizes = sizes(&mut random, config.mss);
        let mut host = Host::new(1, config, sizes, congestion(&mut random));
        host.listen(PORT, 100);
        let now = Instant::from_millis(1);
        // Echoes of our own packets go to the sender's address; a host that talks to itself hears them.
        let index = host.connect(now, PORT, Endpoint::new(address(1), PORT));
        host.sockets[index].write(&[7; 3000]);
        host
    });
}

/// T14: the number of packets per octet delivered is bounded: acknowledgements are not acknowledged.
#[test]
fn t14_no_storm_of_acknowledgements() {
    for seed in 0..200 {
        let network = trial(50_000 + seed, |_| Faults {
            duplicate: 0.2,
            reorder: 0.5,
            ..Faults::default()
        });
        assert!(
            network.packets < 3_000,
            "seed {seed}: {} packets",
            network.packets
        );
    }
}

/// T13: each of the first hundred packets of a transfer into a small, slowly read buffer is lost once: no loss of a
/// window update, or of anything else, ends in a deadlock.
#[test]
fn t13_no_single_loss_deadlocks_a_shut_window() {
    for lost in 0..100 {
        let config = Config {
            mss: 462,
            ..Config::STANDARD
        };
        let sizes = Sizes {
            send: 1848,
            receive: 924,
            ranges: 4,
            flight: 8,
        };
        let hosts = [1, 2].map(|n| Host::new(n, config, sizes, Any::NewReno(NewReno)));
        let mut network = Network::new(hosts, Faults::default(), 1);
        open(&mut network);
        let data: Vec<u8> = (0..8_000u32).map(|n| n as u8).collect();
        let (mut written, mut got) = (0, Vec::new());
        let limit = Instant::from_millis(3_600_000);
        let mut next_read = network.now;
        while got.len() < data.len() {
            network.air.faults.loss = if network.packets == lost { 1.0 } else { 0.0 };
            if let Some(client) = network.hosts[0].sockets.first_mut() {
                written += client.write(&data[written..]);
            }
            if network.now >= next_read
                && let Some(server) = network.hosts[1].sockets.first_mut()
            {
                let mut buffer = [0; 924];
                let len = server.read(&mut buffer);
                got.extend_from_slice(&buffer[..len]);
                next_read = network.now + Duration::from_millis(700);
            }
            network.drain();
            if !network.step(limit) {
                // Nothing moves by itself: the application reads on.
                assert!(
                    next_read > network.now,
                    "deadlock after losing packet {lost}"
                );
                network.now = next_read;
            }
        }
        assert_eq!(got, data, "after losing packet {lost}");
    }
}

/// T11: one end reboots without its state; the other finds out when it sends, or by keep-alive.
#[test]
fn t11_a_half_open_connection_is_found_after_a_reboot() {
    let config = Config::STANDARD;
    let hosts = [1, 2].map(|n| Host::new(n, config, Sizes::default(), Any::default()));
    let mut network = Network::new(hosts, Faults::default(), 1);
    open(&mut network);
    let second = |n: u64| Instant::from_millis(n * 1000);
    while network.step(second(1)) {}
    assert_eq!(network.hosts[0].sockets[0].state(), State::Established);
    network.hosts[1] = Host::new(2, config, Sizes::default(), Any::default());
    network.now = second(2);
    network.hosts[0].sockets[0].write(b"are you there?");
    while network.step(second(3)) {}
    let socket = &network.hosts[0].sockets[0];
    assert_eq!(socket.failure(), Some(chappe_tcplp::tcp::Failure::Reset));
}

/// 10,000 connections opened, used and aborted in random order leak nothing: every socket returns to the pool, and the pool
/// never holds more than were open at once.
#[test]
fn ten_thousand_connections_leak_no_socket() {
    let config = Config {
        time_wait: Duration::from_secs(1),
        fin_wait_2: Duration::from_secs(1),
        mss: 100,
        ..Config::STANDARD
    };
    let sizes = Sizes {
        send: 300,
        receive: 300,
        ranges: 2,
        flight: 4,
    };
    let hosts = [1, 2].map(|n| Host::new(n, config, sizes, Any::default()));
    let mut network = Network::new(
        hosts,
        Faults {
            loss: 0.02,
            ..Faults::default()
        },
        3,
    );
    network.hosts[1].listen(PORT, 100);
    let mut random = Seed(11).stream(Purpose::Trial(0));
    let remote = Endpoint::new(address(2), PORT);
    for n in 0..10_000u16 {
        let now = network.now;
        network.hosts[0].connect(now, 10_000 + n, remote);
        let pause = now + Duration::from_millis(random.below(60));
        for _ in 0..3 {
            let host = &mut network.hosts[random.below(2) as usize];
            let count = host.sockets.len() as u64;
            let Some(socket) = host.sockets.get_mut(random.below(count.max(1)) as usize) else {
                continue;
            };
            match random.below(5) {
                0 => {
                    socket.write(&[1; 150]);
                }
                1 => {
                    socket.read(&mut [0; 200]);
                }
                2 => socket.shutdown(),
                3 => socket.close(now),
                _ => socket.abort(),
            }
        }
        while network.step(pause) {}
        network.now = pause;
        network.hosts.iter_mut().for_each(|host| {
            host.collect();
        });
    }
    let mut rest = network.now;
    for _ in 0..60 {
        for host in &mut network.hosts {
            host.sockets
                .iter_mut()
                .for_each(|socket| socket.close(rest));
        }
        rest += Duration::from_secs(60);
        while network.step(rest) {}
        network.now = rest;
        network.hosts.iter_mut().for_each(|host| {
            host.collect();
        });
    }
    for host in &network.hosts {
        let left: Vec<_> = host.sockets.iter().map(|s| (s.state(), s.info())).collect();
        assert!(left.is_empty(), "{left:#?}");
        assert_eq!(host.poll_timeout(), None);
    }
}

/// Both address families work; only the pseudo header and the default segment size differ.
#[test]
fn ipv4_connections_have_their_own_default_segment_size() {
    let v4 = |last| IpAddr::from([192, 0, 2, last]);
    let flow = Flow::new(Endpoint::new(v4(1), 1), Endpoint::new(v4(2), 2));
    let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Any::default());
    host.local = Box::leak(Box::new(chappe_tcplp::tcp::Local {
        address: v4(1),
        ..*host.local
    }));
    let index = host.connect(Instant::from_millis(1), 1, flow.remote);
    let socket = &mut host.sockets[index];
    let mut buffer = [0; 100];
    let now = Instant::from_millis(1);
    let syn = socket.poll_segment(now, &mut buffer).expect("a SYN");
    use chappe_tcplp::tcp::{Flags, Options, Segment};
    let syn = Segment::parse_checked(&buffer[..syn.len], &flow).expect("a sound SYN");
    let answer = Segment {
        source_port: 2,
        destination_port: 1,
        seq: chappe_tcplp::tcp::Seq::new(9),
        ack: syn.seq + 1,
        flags: Flags::SYN | Flags::ACK,
        options: Options::default(),
        ..syn
    };
    socket.handle_segment(now, &answer, Default::default());
    assert_eq!(socket.state(), State::Established);
    assert_eq!(socket.info().send_mss, 536);
}
