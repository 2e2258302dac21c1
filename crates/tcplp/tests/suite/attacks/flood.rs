//! A flood of SYNs from addresses that do not answer, against a mote with four sockets and all its services.

use std::net::IpAddr;

use chappe_core::{Address, HostNode, Instant};
use chappe_tcplp::host::{Host, Services, port};
use chappe_tcplp::lowpan;
use chappe_tcplp::tcp::{
    Config, Ecn, Endpoint, Flags, Flow, Local, Memory, NewReno, Options, Range, Secret, Segment,
    Sent, Seq, Socket, State, Timestamps,
};

use super::support::ip;
use super::support::mote::{PREFIX, address, ms};

pub type Mote = Host<'static, Services<4>, 4>;
const MOTE: u16 = 1;
const CLIENT: u16 = 2;

/// A mote as on a border router's network.
pub fn mote(config: Config) -> Mote {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(MOTE)),
        secret: Secret::new([0x5a; 16]),
        config,
    }));
    let sockets = std::array::from_fn(|_| {
        let memory = Memory {
            send: vec![0; 1848].leak(),
            receive: vec![0; 1848].leak(),
            ranges: vec![Range::default(); 4].leak(),
            flight: vec![Sent::default(); 8].leak(),
        };
        Socket::new(local, memory, NewReno).expect("the sizes are sound")
    });
    let link_local = lowpan::Config::new(Address::node(MOTE), PREFIX, 0).link_local();
    let mut host = Host::new(local, link_local, sockets, Services::new(MOTE));
    for port in port::TCP {
        assert!(host.listen(port));
    }
    host
}

fn flow(client: u16, from: u16, to: u16) -> Flow {
    Flow::new(
        Endpoint::new(IpAddr::V6(address(client)), from),
        Endpoint::new(IpAddr::V6(address(MOTE)), to),
    )
}

/// A segment from a client's port to one of the mote's.
fn segment(from: u16, to: u16, flags: Flags, seq: u32, ack: Seq) -> Segment<'static> {
    Segment {
        source_port: from,
        destination_port: to,
        seq: Seq::new(seq),
        ack,
        flags,
        window: 20_000,
        urgent: 0,
        options: Options::default(),
        payload: &[],
    }
}

fn deliver(mote: &mut Mote, now: Instant, client: u16, segment: &Segment<'_>) {
    let flow = flow(client, segment.source_port, segment.destination_port);
    let mut packet = vec![0; ip::HEADER + 60 + segment.payload.len()];
    let len = segment
        .emit(&flow, &mut packet[ip::HEADER..])
        .expect("it fits");
    packet.truncate(ip::HEADER + len);
    let (from, to) = (flow.local.address(), flow.remote.address());
    ip::emit(&mut packet, from, to, Ecn::NotCapable, len);
    mote.handle_packet(now, &packet);
}

/// A segment that the mote has sent.
struct Out {
    to: IpAddr,
    octets: usize,
    flags: Flags,
    seq: Seq,
    ack: Seq,
    options: Options,
    payload: Vec<u8>,
}

fn drain(mote: &mut Mote, now: Instant) -> Vec<Out> {
    let (mut all, mut buffer) = (Vec::new(), [0; 1280]);
    while let Some(len) = mote.poll_packet(now, &mut buffer) {
        let packet = ip::parse(&buffer[..len]).expect("IPv6");
        let sent = Segment::parse(packet.segment).expect("TCP");
        all.push(Out {
            to: packet.destination,
            octets: len,
            flags: sent.flags,
            seq: sent.seq,
            ack: sent.ack,
            options: sent.options,
            payload: sent.payload.to_vec(),
        });
    }
    all
}

/// A SYN with the options of a mote, or of Linux.
fn syn(from: u16, to: u16, options: Options) -> Segment<'static> {
    Segment {
        options,
        ..segment(from, to, Flags::SYN, 7_000, Seq::default())
    }
}

fn usual() -> Options {
    Options {
        mss: Some(498),
        sack_permitted: true,
        timestamps: Some(Timestamps {
            value: 500,
            echo: 0,
        }),
        ..Options::default()
    }
}

/// Calls the mote's deadlines up to `now`.
fn wait(mote: &mut Mote, now: Instant) -> usize {
    let mut octets = 0;
    while let Some(wake) = mote.poll_timeout().filter(|wake| wake.at <= now) {
        mote.handle_timeout(wake.at);
        octets += drain(mote, wake.at)
            .iter()
            .map(|out| out.octets)
            .sum::<usize>();
    }
    octets
}

/// A request that is served.
const REQUEST: &[u8] = b"GET /sensors HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// An honest handshake and a request for a page, from client port `from`. Returns the page, if it came.
fn fetch(mote: &mut Mote, now: u64, from: u16, options: Options) -> Option<Vec<u8>> {
    let page = ask(mote, now, from, options, REQUEST)?;
    page.starts_with(b"HTTP/1.1 200").then_some(page)
}

/// The same with any request; what was sent in answer, within ten milliseconds.
fn ask(mote: &mut Mote, now: u64, from: u16, options: Options, request: &[u8]) -> Option<Vec<u8>> {
    let home = IpAddr::V6(address(CLIENT));
    deliver(mote, ms(now), CLIENT, &syn(from, port::HTTP, options));
    let mut sent = drain(mote, ms(now)).into_iter();
    let answer = sent.find(|out| out.to == home && out.flags.has(Flags::SYN | Flags::ACK))?;
    assert_eq!(answer.ack, Seq::new(7_001));
    let stamp = |now: u64| {
        let echo = answer.options.timestamps?.value;
        let value = 500 + now as u32;
        Some(Timestamps { value, echo })
    };
    let ack = Segment {
        options: Options {
            timestamps: stamp(now),
            ..Options::default()
        },
        ..segment(from, port::HTTP, Flags::ACK, 7_001, answer.seq + 1)
    };
    deliver(mote, ms(now + 50), CLIENT, &ack);
    drain(mote, ms(now + 50));
    let request = Segment {
        payload: request,
        flags: Flags::ACK | Flags::PSH,
        ..ack
    };
    deliver(mote, ms(now + 60), CLIENT, &request);
    let sent = drain(mote, ms(now + 60)).into_iter();
    Some(
        sent.filter(|out| out.to == home)
            .flat_map(|out| out.payload)
            .collect(),
    )
}

/// RFC 9112 2.2, 3.2: lines may end with a bare LF, an empty line before a request is ignored; a request without Host or with two is
/// answered by 400. One that does not come whole is answered by 408 after 20 s, and the connection closes.
#[test]
fn requests_are_answered_or_refused() {
    let check = |request: &[u8], answer: &str| {
        let mut mote = mote(Config::STANDARD);
        let page = ask(&mut mote, 1000, 5000, usual(), request);
        let page = String::from_utf8_lossy(&page.expect("a handshake")).into_owned();
        let line = page.lines().next().unwrap_or_default();
        assert_eq!(line, answer, "{}", String::from_utf8_lossy(request));
    };
    let (fine, bad) = ("HTTP/1.1 200 OK", "HTTP/1.1 400 Bad Request");
    check(REQUEST, fine);
    check(b"GET / HTTP/1.1\nHost: a\n\n", fine);
    check(b"GET / HTTP/1.1\nHost: a\n\r\n", fine);
    check(b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", fine);
    check(b"GET / HTTP/1.0\r\n\r\n", fine);
    check(b"GET / HTTP/1.1\r\n\r\n", bad);
    check(b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", bad);
    check(b"GET / HT\r\n\r\n", bad);
    for part in [&b"GET / HT"[..], b"GET / HTTP/1.1\r\nHost: a\r\n", b"\r\n"] {
        let mut mote = mote(Config::STANDARD);
        let page = ask(&mut mote, 1000, 5000, usual(), part);
        assert_eq!(page, Some(vec![]));
        let (mut said, mut end) = (Vec::new(), 0);
        while let Some(wake) = mote.poll_timeout().filter(|wake| wake.at < ms(25_000)) {
            mote.handle_timeout(wake.at);
            for out in drain(&mut mote, wake.at) {
                said.extend(out.payload);
                if end == 0 && out.flags.has(Flags::FIN) {
                    end = wake.at.nanos() / 1_000_000;
                }
            }
        }
        assert!(
            said.starts_with(b"HTTP/1.1 408 Request Timeout\r\n"),
            "{said:?}"
        );
        assert!((21_000..21_200).contains(&end), "{end} ms");
    }
}

/// Four SYNs from nowhere, then an honest client: it is served at once, on whatever options it offers.
#[test]
fn a_client_is_served_at_once_during_a_flood() {
    let plain = Options::default();
    for options in [usual(), plain] {
        let mut mote = mote(Config {
            mss: 498,
            ..Config::STANDARD
        });
        for n in 0..4 {
            deliver(&mut mote, ms(1), 100 + n, &syn(4000, port::HTTP, usual()));
            drain(&mut mote, ms(1));
        }
        let page = fetch(&mut mote, 1000, 5000, options);
        assert!(page.is_some(), "{options:?}");
    }
}

/// What a flood costs.
pub struct Flood {
    pub syns: u32,
    pub octets_in: usize,
    pub octets_out: usize,
    pub clients: u32,
    pub served: u32,
}

/// A SYN from nowhere every 20 ms for five minutes; every second a client comes.
pub fn long_flood() -> Flood {
    let mut mote = mote(Config {
        mss: 498,
        ..Config::STANDARD
    });
    let (mut served, mut given, mut taken, mut from) = (0, 0, 0, 10_000);
    for n in 0..15_000u64 {
        let now = 10 + n * 20;
        given += wait(&mut mote, ms(now));
        let spoofed = syn(4000 + (n / 50_000) as u16, port::SINK, usual());
        taken += ip::HEADER + 20 + spoofed.options.len();
        deliver(&mut mote, ms(now), 100 + n as u16, &spoofed);
        given += drain(&mut mote, ms(now))
            .iter()
            .map(|out| out.octets)
            .sum::<usize>();
        if n % 50 == 49 {
            from += 1;
            served += usize::from(fetch(&mut mote, now + 1, from, usual()).is_some());
            // The client resets, so that its socket is free for the next one.
            let place = mote
                .sockets()
                .iter()
                .position(|s| s.flow().remote.port == from);
            if let Some(place) = place {
                mote.sockets_mut()[place].abort();
                drain(&mut mote, ms(now + 70));
            }
        }
    }
    Flood {
        syns: 15_000,
        octets_in: taken,
        octets_out: given,
        clients: 300,
        served: served as u32,
    }
}

/// All clients are served. The flood costs an answer of about its own size, and no memory.
#[test]
fn clients_are_served_during_a_long_flood() {
    let flood = long_flood();
    let (taken, given) = (flood.octets_in, flood.octets_out);
    println!("flood: {taken} octets in, {given} out");
    assert_eq!(flood.served, flood.clients);
    assert!(given * 2 <= taken * 3, "{given} octets for {taken}");
}

/// No SYN that stays unanswered keeps its socket longer than an idle connection would.
#[test]
fn half_open_connections_end() {
    let mut mote = mote(Config::STANDARD);
    for n in 0..4 {
        deliver(&mut mote, ms(1), 100 + n, &syn(4000, port::HTTP, usual()));
        drain(&mut mote, ms(1));
    }
    wait(&mut mote, ms(31_000));
    let open = mote.sockets().iter().filter(|s| s.state() != State::Closed);
    assert_eq!(open.count(), 0);
}
