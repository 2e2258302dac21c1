//! Several flows over one relay whose queue is shorter than their windows: they share it (TCPlp 8, 8.3).

use crate::row;

use std::net::IpAddr;

use chappe_core::{Address, Instant, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{Config as MacConfig, Dot15d4};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::host::{Application, Bulk, Host};
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, Lost, Route, Table};
use chappe_tcplp::tcp::{self, Endpoint, Local, NewReno, Secret, Socket};

use row::{PREFIX, address, memory};

const FLOWS: usize = 3;

/// Reads all sockets and counts the octets of each; or sends on the first.
#[derive(Clone, Copy, Debug, Default)]
struct App {
    bulk: Bulk,
    received: [u64; FLOWS],
}

impl<'a> Application<'a> for App {
    fn serve(&mut self, now: Instant, sockets: &mut [Socket<'a>]) {
        if self.bulk.to_send > 0 {
            return self.bulk.serve(now, sockets);
        }
        for (socket, count) in sockets.iter_mut().zip(&mut self.received) {
            let ready = socket.readable().0.len() + socket.readable().1.len();
            *count += ready as u64;
            socket.consume(ready);
        }
    }
}

type Node = OverMac<Dot15d4, Interface<Host<'static, App, FLOWS>, Table<8>, 2, 4, 16, 1280>>;

/// Node 0 is the border, 1 the relay, the others send through it.
fn node(number: u16, red: bool, seed: u64) -> Node {
    let here = Address::node(number);
    let stream = |n| Seed(seed).stream(Purpose::Node(u32::from(number) * 4 + n));
    let mac = MacConfig {
        retries: 7,
        ..MacConfig::HAMILTON
    };
    let config = Config {
        red: red.then(|| Thresholds::of(16)),
        ..Config::new(here, PREFIX, mac.caps(0).frame_max)
    };
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new([number as u8; 16]),
        // Three frames a segment, as the paper has it where flows compete (8).
        config: tcp::Config {
            mss: 266,
            ..tcp::Config::STANDARD
        },
    }));
    let socket = || Socket::new(local, memory(4 * 254, 4), NewReno).unwrap();
    let app = App {
        bulk: Bulk::sending(if number > 1 { u64::MAX } else { 0 }),
        ..App::default()
    };
    let sockets = std::array::from_fn(|_| socket());
    let mut host = Host::new(local, config.link_local(), sockets, app);
    host.listen(80);
    let next = |other: u16| match (number, other) {
        (1, other) => other,
        _ => 1,
    };
    let mut table = Table::new(here, PREFIX, Route::Nowhere);
    for other in (0..FLOWS as u16 + 2).filter(|&other| other != number) {
        table.add(Address::node(other), Address::node(next(other)));
    }
    OverMac::new(
        Dot15d4::new(mac, here, stream(0)),
        Interface::new(config, host, table, stream(1)),
    )
}

/// Goodput of each flow in kb/s, and the packets that the relay dropped and marked, in two minutes.
fn run(red: bool, seed: u64) -> ([f64; FLOWS], u32, u32) {
    let nodes = FLOWS as u16 + 2;
    let stations = (0..nodes).map(|i| Box::new(node(i, red, seed))).collect();
    // The sources hear each other and the relay, which gets one turn in four and has as much to send as all of them.
    let pairs = (1..5).flat_map(|a| (1..a).map(move |b| (a, b)));
    let matrix = pairs.fold(
        Matrix::silent(usize::from(nodes)).with_link(0, 1, 1.0),
        |matrix, (a, b)| matrix.with_link(a, b, 1.0),
    );
    let world = World::new(Medium::matrix(&matrix).unwrap());
    let mut simulator: Simulator<Node> = Simulator::new(world, stations, Seed(seed), ()).unwrap();
    for source in 2..usize::from(nodes) {
        simulator.with_node(source, |node, now| {
            node.link.with_host(now, |host| {
                let border = Endpoint::new(IpAddr::V6(address(0)), 80);
                assert!(host.connect(now, 40_000 + source as u16, border));
            });
        });
    }
    simulator.run_until(AirTime::from_secs(120));
    let received = simulator.node(0).link.host().app().received;
    let relay = &simulator.node(1).link;
    let dropped = relay.losses().of(Lost::QueueFull) + relay.losses().of(Lost::Early);
    (
        received.map(|octets| octets as f64 * 8.0 / 120e3),
        dropped,
        relay.counters().marked,
    )
}

/// Jain's fairness index of rates: 1 if all are equal, 1/n if one has all.
fn fairness(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

/// The paper found that tail drops are unfair and that RED with ECN restores fairness. Here flows share with either, because
/// recovery by SACK and RACK does not wait for timeouts. A queue of 16 frames is less than half of the three windows together, so it
/// overflows with and without RED, and RED's early drops (acknowledgements and retransmissions cannot be marked)
/// come on top.
//= tcplp 8.3: several flows compete at a relay with RED and ECN
#[test]
fn flows_share_a_relay() {
    for red in [true, false] {
        for seed in 0..2 {
            let (rates, dropped, marked) = run(red, seed);
            let (sum, index) = (rates.iter().sum::<f64>(), fairness(&rates));
            println!(
                "RED {red}: {rates:.1?} kb/s, fairness {index:.3}, {dropped} dropped, {marked} marked"
            );
            assert_eq!(marked > 0, red);
            assert!(dropped > 0 && index > 0.97, "{index}");
            assert!((27.0..40.0).contains(&sum), "{sum}");
        }
    }
}
