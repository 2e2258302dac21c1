//! The baselines: CoAP's retransmissions and blocks exactly as in the RFC, and each baseline over simulated air beside TCP.

use crate::row;

use std::net::Ipv6Addr;

use chappe_core::{Address, Duration, Expect, Instant, Purpose, Seed, Wake};
use chappe_mac::dot15d4::{self, Sleep};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::baseline::{Post, Receive, one_segment};
use chappe_tcplp::coap::{Client, Cocoa, Config, Outcome, Server, Standard, Timeout};
use chappe_tcplp::host::{Application, Bulk, Datagram, Outgoing};
use chappe_tcplp::tcp::NewReno;

use row::{Node, Setup, address, connect};

fn client<T: Timeout>(config: Config, timeout: T, seed: u64) -> Client<T> {
    Client::new(config, timeout, Seed(seed).stream(Purpose::Node(0)))
}

fn fill(start: usize, part: &mut [u8]) -> bool {
    for (i, place) in part.iter_mut().enumerate() {
        *place = (start + i) as u8;
    }
    true
}

const PEER: (Ipv6Addr, u16) = (Ipv6Addr::LOCALHOST, 5683);

/// RFC 7252, 4.2: 2 to 3 s, doubled four times; the client gives up after the last wait.
#[test]
fn retransmissions_are_spaced_as_the_rfc_says() {
    for seed in 0..200 {
        let mut client = client(Config::STANDARD, Standard, seed);
        assert!(client.post(10));
        let (mut now, mut message, mut waits) = (Instant::from_millis(5), [0; 600], Vec::new());
        while client.is_busy() {
            let sent = client.poll(now, fill, &mut message).is_some();
            assert!(sent);
            assert_eq!(client.poll(now, fill, &mut message), None);
            let at = client.poll_timeout().unwrap().at;
            waits.push(at.saturating_since(now));
            client.handle_timeout(now);
            now = at;
            client.handle_timeout(now);
        }
        assert_eq!(client.outcome(), Some(Outcome::GaveUp));
        assert_eq!(waits.len(), 5);
        assert!((2_000_000_000..=3_000_000_000).contains(&waits[0].nanos()));
        for pair in waits.windows(2) {
            assert_eq!(pair[0] * 2, pair[1]);
        }
    }
}

/// Bodies of every size around the block boundaries arrive complete and once, although a third of all messages is lost.
#[test]
fn bodies_arrive_over_a_lossy_path() {
    let config = Config {
        szx: 2,
        max_retransmit: 30,
        ..Config::STANDARD
    };
    let mut loss = Seed(3).stream(Purpose::Trial(1));
    let mut client = client(config, Cocoa::default(), 3);
    let mut server = Server::<2>::default();
    let mut now = Instant::ZERO;
    for len in [1, 63, 64, 65, 127, 128, 129, 640, 1000] {
        let mut body = vec![0xee; len];
        let mut brought = 0;
        assert!(client.post(len));
        while client.is_busy() {
            let mut message = [0; 600];
            if let Some(sent) = client.poll(now, fill, &mut message)
                && !loss.chance(0.33)
            {
                let mut answer = [0; 32];
                let (received, answered) = server.handle(PEER, &message[..sent], &mut answer);
                if let Some(received) = received {
                    let end = received.start + received.payload.len();
                    body[received.start..end].copy_from_slice(received.payload);
                    brought += received.payload.len();
                    assert_eq!(received.last, end == len);
                }
                if !loss.chance(0.33) {
                    now += Duration::from_millis(80);
                    client.handle(now, &answer[..answered.unwrap()]);
                }
            }
            if let Some(wake) = client.poll_timeout() {
                now = wake.at;
                client.handle_timeout(now);
            }
        }
        assert_eq!(client.outcome(), Some(Outcome::Done));
        assert_eq!(brought, len, "each octet once");
        assert!(body.iter().enumerate().all(|(i, &octet)| octet == i as u8));
    }
    assert!(client.counters().retransmitted > 10);
}

/// A non-confirmable body is sent at once, and nothing is sent twice.
#[test]
fn non_confirmable_bodies_are_sent_once() {
    let config = Config {
        confirmable: false,
        szx: 2,
        ..Config::STANDARD
    };
    let mut client = client(config, Standard, 1);
    let mut server = Server::<1>::default();
    assert!(client.post(200));
    let (mut message, mut brought) = ([0; 200], 0);
    while let Some(sent) = client.poll(Instant::ZERO, fill, &mut message) {
        let (received, answer) = server.handle(PEER, &message[..sent], &mut [0; 32]);
        brought += received.unwrap().payload.len();
        assert_eq!(answer, None);
    }
    assert_eq!((brought, client.outcome()), (200, Some(Outcome::Done)));
    assert_eq!(client.poll_timeout(), None);
}

/// The application of a node in this comparison.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
enum App {
    Tcp(Bulk),
    Coap(Post<Standard>),
    Server(Receive),
}

macro_rules! each {
    ($self:ident, $app:ident => $call:expr) => {
        match $self {
            App::Tcp($app) => $call,
            App::Coap($app) => $call,
            App::Server($app) => $call,
        }
    };
}

impl<'a> Application<'a, NewReno> for App {
    fn serve(&mut self, now: Instant, sockets: &mut [chappe_tcplp::tcp::Socket<'a>]) {
        each!(self, inner => inner.serve(now, sockets));
    }
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, inner => Application::<'a, NewReno>::handle_datagram(inner, now, datagram));
    }
    fn poll_datagram(&mut self, now: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        each!(self, inner => Application::<'a, NewReno>::poll_datagram(inner, now, payload))
    }
    fn handle_timeout(&mut self, now: Instant) {
        each!(self, inner => Application::<'a, NewReno>::handle_timeout(inner, now));
    }
    fn poll_timeout(&self) -> Option<Wake> {
        each!(self, inner => Application::<'a, NewReno>::poll_timeout(inner))
    }
    fn expects(&self) -> Expect {
        each!(self, inner => Application::<'a, NewReno>::expects(inner))
    }
}

/// kb/s from node 0 to node 1 in 30 s; node 0 may be node 1's sleepy leaf.
fn run(setup: &Setup, source: App, sink: App) -> f64 {
    let tcp = matches!(source, App::Tcp(_));
    let parent = Setup {
        mac: dot15d4::Config {
            sleep: None,
            ..setup.mac
        },
        ..*setup
    };
    let mut nodes = vec![
        Box::new(row::node(setup, 0, 2, 1, source)),
        Box::new(row::node(&parent, 1, 2, 1, sink)),
    ];
    if setup.mac.sleep.is_some() {
        let child = Address::node(0);
        assert!(nodes[1].mac.add_child(child) && nodes[1].link.routes_mut().add_child(child));
    }
    let medium = Medium::matrix(&Matrix::silent(2).with_link(0, 1, 1.0)).unwrap();
    let mut simulator: Simulator<Node<App>> =
        Simulator::new(World::new(medium), nodes, Seed(1), ()).unwrap();
    if tcp {
        connect(&mut simulator, 1);
    } else {
        simulator.with_node(0, |node, now| {
            node.link.with_host(now, |host| host.serve(now))
        });
    }
    simulator.run_until(AirTime::from_secs(30));
    let received = match simulator.node(1).link.host().app() {
        App::Tcp(bulk) => bulk.received,
        App::Server(receive) => receive.received,
        App::Coap(_) => 0,
    };
    received as f64 * 8.0 / 30e3
}

/// Four-segment TCP, one-segment TCP and CoAP in blocks of 512 octets, kb/s.
fn compare(mac: dot15d4::Config) -> [f64; 3] {
    let bulk = |octets| App::Tcp(Bulk::sending(octets));
    let setup = Setup {
        mac,
        ..Setup::TCPLP
    };
    let single = Setup {
        tcp: one_segment::CONFIG,
        window: one_segment::FLIGHT,
        ..setup
    };
    let client = client(Config::STANDARD, Standard, 1);
    let post = App::Coap(Post::new(client, address(1), 1 << 40, 5120));
    [
        run(&setup, bulk(u64::MAX), bulk(0)),
        run(&single, bulk(u64::MAX), bulk(0)),
        run(&setup, post, App::Server(Receive::default())),
    ]
}

/// Radios that are always on: on one clean hop the air is the limit, whichever end waits for it. Within 3 % of each other.
#[test]
fn on_one_clean_hop_stop_and_wait_costs_little() {
    let [window, single, coap] = compare(dot15d4::Config::HAMILTON);
    println!("one hop: TCP {window:.1}, one segment {single:.1}, CoAP {coap:.1} kb/s");
    assert!((single / window - 1.0).abs() < 0.03 && (coap / window - 1.0).abs() < 0.03);
}

/// A leaf that polls every 100 ms (paper 8.1.2, where TCP moves 40 % more than CoAP): a protocol that waits for each answer
/// waits for the next data request.
//= tcplp 8.1.2: CoAP sends one block at a time, TCP several segments
#[test]
fn under_a_sleepy_radio_stop_and_wait_costs_much() {
    let [window, single, coap] = compare(dot15d4::Config {
        sleep: Some(Sleep::tcplp(Address::node(1))),
        ..dot15d4::Config::HAMILTON
    });
    println!("sleepy leaf: TCP {window:.1}, one segment {single:.1}, CoAP {coap:.1} kb/s");
    assert!(window > 1.25 * single && window > 1.25 * coap);
    assert!(single > 20.0 && coap > 20.0);
}
