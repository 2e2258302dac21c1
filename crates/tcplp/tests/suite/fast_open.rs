//! TCP Fast Open (RFC 7413) between two hosts, in virtual time.

use crate::support;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{
    Config, Cookie, Endpoint, FastOpen, Flags, Flow, Options, Segment, Seq, State,
};

use support::host::{Host, Sizes, address};
use support::ip;
use support::network::{Faults, Network};

const PORT: u16 = 80;
const KEY: [u8; 16] = [9; 16];
const REQUEST: &[u8] = b"GET /reading";
const ANSWER: &[u8] = b"21.5 degrees";

/// The cookie that the server has for the client.
fn cookie() -> Cookie {
    let end = |number| Endpoint::new(address(number), 1);
    FastOpen::new(KEY).cookie(&Flow::new(end(2), end(1)))
}

fn network(faults: Faults, seed: u64) -> Network {
    let config = Config {
        retries_max: 40,
        syn_retries_max: 40,
        time_wait: Duration::from_secs(1),
        ..Config::STANDARD
    };
    let hosts = [1, 2].map(|n| Host::new(n, config, Sizes::default(), Any::default()));
    let mut network = Network::new(hosts, faults, seed);
    network.hosts[1].listen(PORT, 1);
    network.hosts[1].fast_open = Some(FastOpen::new(KEY));
    network
}

/// What a client and a server have heard.
#[derive(Default)]
struct Heard {
    asked: Vec<u8>,
    answered: Vec<u8>,
    /// When the answer was whole.
    at: Option<Instant>,
}

/// One request and its answer, both of these lengths.
fn ask(network: &mut Network, cookie: Option<Cookie>, request: &[u8], answer: &[u8]) -> Heard {
    let (now, remote) = (network.now, Endpoint::new(address(2), PORT));
    let client = &mut network.hosts[0];
    let index = match cookie {
        Some(cookie) => client.connect_fast(now, 50_000, remote, cookie),
        None => client.connect(now, 50_000, remote),
    };
    let mut written = client.sockets[index].write(request);
    let (mut heard, mut answering) = (Heard::default(), 0);
    let limit = now + Duration::from_secs(100_000);
    let mut done = now;
    while network.step_with(limit, |side, host| {
        let Some(socket) = host.sockets.first_mut() else {
            return;
        };
        let mut buffer = [0; 8000];
        let len = socket.read(&mut buffer);
        match side {
            0 => {
                written += socket.write(&request[written..]);
                heard.answered.extend_from_slice(&buffer[..len]);
                if heard.answered.len() == answer.len() {
                    socket.shutdown();
                }
            }
            _ => {
                heard.asked.extend_from_slice(&buffer[..len]);
                if heard.asked.len() >= request.len() {
                    answering += socket.write(&answer[answering..]);
                }
                if answering == answer.len() {
                    socket.shutdown();
                }
            }
        }
    }) {
        if heard.at.is_none() && heard.answered.len() == answer.len() {
            (heard.at, done) = (Some(network.now), network.now);
        }
    }
    let states: Vec<_> = network
        .hosts
        .iter()
        .flat_map(|host| {
            host.sockets
                .iter()
                .map(|s| (s.state(), s.failure(), s.info()))
        })
        .collect();
    let (asked, answered) = (heard.asked.len(), heard.answered.len());
    assert!(
        heard.at.is_some() && done >= now,
        "asked {asked} of {}, answered {answered} of {}: {states:#?}",
        request.len(),
        answer.len()
    );
    heard
}

fn round_trips(cookie: Option<Cookie>) -> f64 {
    let mut network = network(Faults::default(), 1);
    let start = network.now;
    let heard = ask(&mut network, cookie, REQUEST, ANSWER);
    assert_eq!((&heard.asked[..], &heard.answered[..]), (REQUEST, ANSWER));
    let took = heard.at.expect("an answer").saturating_since(start);
    took.as_secs_f64() / (2.0 * network.air.faults.delay.as_secs_f64())
}

/// An answer takes one round trip instead of two.
#[test]
fn a_cookie_saves_a_round_trip() {
    assert!((1.99..2.01).contains(&round_trips(None)));
    assert!((1.99..2.01).contains(&round_trips(Some(Cookie::REQUEST))));
    assert!((0.99..1.01).contains(&round_trips(Some(cookie()))));
    // One that the server did not make: the data comes with the handshake's end.
    let forged = Cookie::new(&[1; 8]).expect("a cookie's length");
    assert!((1.99..2.01).contains(&round_trips(Some(forged))));
}

/// Everything that a host has to send: headers and payloads.
fn segments(host: &mut Host, now: Instant) -> Vec<(Segment<'static>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut buffer = [0; 2048];
    while let Some(len) = host.poll_packet(now, &mut buffer) {
        let packet = ip::parse(&buffer[..len]).expect("IPv6");
        let segment = Segment::parse(packet.segment).expect("TCP");
        let payload = segment.payload.to_vec();
        let bare = unborrowed(&segment);
        all.push((bare, payload));
    }
    all
}

fn unborrowed(segment: &Segment<'_>) -> Segment<'static> {
    Segment {
        source_port: segment.source_port,
        destination_port: segment.destination_port,
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        urgent: segment.urgent,
        options: segment.options,
        payload: &[],
    }
}

fn syn(options: Options, payload: &[u8]) -> Vec<u8> {
    let flow = Flow::new(
        Endpoint::new(address(1), 50_000),
        Endpoint::new(address(2), PORT),
    );
    let segment = Segment {
        source_port: 50_000,
        destination_port: PORT,
        seq: Seq::new(100),
        ack: Seq::default(),
        flags: Flags::SYN,
        window: 20_000,
        urgent: 0,
        options,
        payload,
    };
    let mut packet = vec![0; 2048];
    let len = segment
        .emit(&flow, &mut packet[ip::HEADER..])
        .expect("it fits");
    ip::emit(&mut packet, address(1), address(2), Default::default(), len);
    packet.truncate(ip::HEADER + len);
    packet
}

fn server() -> Host {
    let mut host = Host::new(2, Config::STANDARD, Sizes::default(), Any::default());
    host.listen(PORT, 5);
    host.fast_open = Some(FastOpen::new(KEY));
    host
}

/// RFC 7413 4.2.1: a cookie is given to who asks or has a wrong one; data without a right one is not taken.
#[test]
fn data_is_taken_with_a_right_cookie_only() {
    let now = Instant::from_millis(1);
    let forged = Cookie::new(&[3; 16]);
    for (offered, taken, given) in [
        (None, 0, None),
        (Some(Cookie::REQUEST), 0, Some(cookie())),
        (forged, 0, Some(cookie())),
        (Some(cookie()), REQUEST.len() as u32, None),
    ] {
        let mut host = server();
        let options = Options {
            mss: Some(1000),
            fast_open: offered,
            ..Options::default()
        };
        host.handle_packet(now, &syn(options, REQUEST));
        let answers = segments(&mut host, now);
        let [(answer, payload)] = &answers[..] else {
            panic!("{answers:?}");
        };
        assert_eq!(answer.flags.without(Flags::ECE), Flags::SYN | Flags::ACK);
        assert_eq!(answer.ack, Seq::new(101) + taken, "{offered:?}");
        assert_eq!((answer.options.fast_open, payload.len()), (given, 0));
        assert_eq!(host.sockets[0].readable().0.len() as u32, taken);
    }
}

/// RFC 7413 4.1.3: a second SYN carries neither cookie nor data. Its answer, whether it acknowledges the data of the first
/// or not, leaves the stream whole.
#[test]
fn the_second_syn_is_a_plain_one() {
    for all in [false, true] {
        let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Any::default());
        let now = Instant::from_millis(1);
        host.connect_fast(now, 50_000, Endpoint::new(address(2), PORT), cookie());
        host.sockets[0].write(REQUEST);
        let first = segments(&mut host, now);
        assert_eq!(first[0].1, REQUEST);
        assert_eq!(first[0].0.options.fast_open, Some(cookie()));
        let later = now + Duration::from_millis(1100);
        host.handle_timeout(later);
        let second = segments(&mut host, later);
        assert_eq!(
            (second[0].0.options.fast_open, second[0].1.len()),
            (None, 0)
        );
        let iss = second[0].0.seq;
        let taken = if all { REQUEST.len() as u32 } else { 0 };
        let flow = Flow::new(
            Endpoint::new(address(2), PORT),
            Endpoint::new(address(1), 50_000),
        );
        let answer = Segment {
            source_port: PORT,
            destination_port: 50_000,
            seq: Seq::new(7),
            ack: iss + 1 + taken,
            flags: Flags::SYN | Flags::ACK,
            options: Options::default(),
            ..unborrowed(&second[0].0)
        };
        let mut packet = vec![0; 2048];
        let len = answer
            .emit(&flow, &mut packet[ip::HEADER..])
            .expect("it fits");
        ip::emit(&mut packet, address(2), address(1), Default::default(), len);
        host.handle_packet(later, &packet[..ip::HEADER + len]);
        assert_eq!(host.sockets[0].state(), State::Established);
        let third = segments(&mut host, later);
        let sent: Vec<u8> = third
            .iter()
            .flat_map(|(_, payload)| payload.clone())
            .collect();
        assert_eq!(sent, if all { &[][..] } else { REQUEST });
        assert!(
            third
                .iter()
                .all(|(segment, _)| segment.seq == iss + 1 + taken)
        );
    }
}

/// Whatever the network does: with right, wrong and no cookies, the request and the answer arrive whole, once.
#[test]
fn streams_stay_whole_in_bad_networks() {
    for seed in 0..300 {
        let mut random = Seed(seed).stream(Purpose::Trial(8));
        let faults = Faults {
            loss: [0.0, 0.06, 0.21][random.below(3) as usize],
            duplicate: [0.0, 0.1][random.below(2) as usize],
            reorder: [0.0, 0.3][random.below(2) as usize],
            ..Faults::default()
        };
        let mut network = network(faults, seed);
        let cookies = [
            Some(cookie()),
            Cookie::new(&[1; 4]),
            Some(Cookie::REQUEST),
            None,
        ];
        let offered = cookies[random.below(4) as usize];
        if random.chance(0.2) {
            network.hosts[1].fast_open = None;
        }
        let mut data = [0, 1].map(|_| vec![0; 1 + random.below(6_000) as usize]);
        data.iter_mut().for_each(|data| random.fill(data));
        let [request, answer] = &data;
        let heard = ask(&mut network, offered, request, answer);
        assert!(
            heard.asked == *request && heard.answered == *answer,
            "seed {seed}"
        );
    }
}
