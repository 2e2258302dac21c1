//! Pacifier on real sockets.
//!
//! Goal: a file of 1 MB reaches every receiver intact over interfaces that lose frames. Method: a namespace and a thread
//! for each node, a bridge between them, losses injected from a seed at each receiver.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use chappe_core::{Address, Bitrate, Duration, Mode, Purpose, Rate, Seed};
use chappe_live::{Carrier, Config, Live, Loss, Pace, Statistics};
use chappe_pacifier::{Common, Links, Node};
use common::Network;

const MEGABYTE: usize = 1_000_000;

fn main() {
    common::run(&[
        ("three_receivers_over_udp", || three_receivers(Carrier::UDP)),
        ("three_receivers_over_packets", || {
            three_receivers(Carrier::PACKET)
        }),
        ("a_line_of_four_over_udp", a_line_of_four),
    ]);
}

/// One hop, 20 % of all frames lost at each host, 20 Mbit/s.
fn three_receivers(carrier: Carrier) {
    let ratios = |from: usize, to: usize| if from == to { 0.0 } else { 0.8 };
    transfer(carrier, ratios, &[1, 2, 3]);
}

/// A line with delivery ratios of 80 % between neighbours: two relays, three hops, and all nodes but the first receive.
fn a_line_of_four() {
    let ratios = |from: usize, to: usize| if from.abs_diff(to) == 1 { 0.8 } else { 0.0 };
    transfer(Carrier::UDP, ratios, &[1, 2, 3]);
}

/// Moves a megabyte from node 0 of four to `receivers`; `ratios` gives the delivery ratio of each link.
fn transfer(carrier: Carrier, ratios: fn(usize, usize) -> f64, receivers: &[u16]) {
    const NODES: usize = 4;
    let network = Network::new(NODES as u8);
    let matrix = (0..NODES * NODES)
        .map(|at| ratios(at / NODES, at % NODES))
        .collect();
    let links = Arc::new(Links::new(NODES, matrix).unwrap());
    let mut file = vec![0; MEGABYTE];
    Seed(11).stream(Purpose::Trial(0)).fill(&mut file);
    let file: Arc<[u8]> = file.into();
    let (complete, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ends: Vec<(Box<Node>, Statistics, f64)> = thread::scope(|scope| {
        let run = |me: u16| {
            let (network, links, file) = (&network, links.clone(), file.clone());
            let (complete, done) = (&complete, &done);
            move || {
                let port = network.port(me, carrier);
                let config = chappe_pacifier::Config::default().with_common(Common {
                    payload: 1300,
                    frame_max: port.caps().frame_max,
                    mode: Mode::long(Rate::Cck11),
                    ..Common::default()
                });
                let random = Seed(12).stream(Purpose::Node(u32::from(me)));
                let mut node = Node::new(config, me, links, random).unwrap();
                if me == 0 {
                    assert!(
                        node.offer(file.clone(), receivers)
                            .unwrap()
                            .unreachable
                            .is_empty()
                    );
                } else if receivers.contains(&me) {
                    node.expect(0, file.len()).unwrap();
                }
                let mut loss = Loss::new(Seed(13).child(u64::from(me)), 0.0);
                for other in 0..NODES {
                    let ratio = 1.0 - ratios(other, usize::from(me));
                    loss = loss.from(Address::node(other as u16), ratio);
                }
                let config = Config {
                    loss: Some(loss),
                    signals: false,
                    observe_every: Duration::from_millis(20),
                    ..Config::new(Pace::Rate(Bitrate(20_000_000)), common::member(me))
                };
                let mut live = Live::new(config, port, Box::new(node)).unwrap();
                let (mut counted, mut seconds) = (false, f64::NAN);
                live.run(|node, now, statistics| {
                    if !counted && node.object().is_some() {
                        (counted, seconds) = (true, now.as_secs_f64());
                        complete.fetch_add(1, Ordering::SeqCst);
                    }
                    if me == 0 && node.source_done() {
                        done.store(true, Ordering::SeqCst);
                    }
                    let all = complete.load(Ordering::SeqCst) == receivers.len();
                    if all && done.load(Ordering::SeqCst) {
                        return ControlFlow::Break(());
                    }
                    assert!(
                        now.as_secs_f64() < 60.0,
                        "node {me}: {:?}, {statistics:?}",
                        node.counters()
                    );
                    ControlFlow::Continue(())
                })
                .unwrap();
                let statistics = live.statistics().clone();
                (live.into_node(), statistics, seconds)
            }
        };
        let threads: Vec<_> = (0..NODES as u16).map(|me| scope.spawn(run(me))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for &receiver in receivers {
        let (node, statistics, seconds) = &ends[usize::from(receiver)];
        assert!(
            node.object() == Some(&file[..]),
            "receiver {receiver} has another file"
        );
        assert!(statistics.injected_losses > 0);
        println!(
            "  receiver {receiver}: {seconds:.2} s, {:.1} Mbit/s, {} frames lost",
            MEGABYTE as f64 * 8e-6 / seconds,
            statistics.injected_losses
        );
    }
    let latest = ends
        .iter()
        .map(|(_, statistics, _)| statistics.latest)
        .max()
        .unwrap();
    println!(
        "  source: {} data frames for {} packets; a deadline met {latest} late at worst",
        ends[0].0.counters().source_sent,
        MEGABYTE.div_ceil(1300)
    );
}
