//! Goal: a mesh finds its routes, carries packets, and loses none without a reason. Method: an ideal shared medium.

use crate::common;

use std::collections::BTreeSet;

use chappe_core::{Purpose, Seed};
use chappe_dpclo::{KMax, Settings};
use common::{Flow, Got, Mesh, at, chain, figure2};

/// Everything that was accepted is somewhere: delivered, lost for a reason, or still on its way.
fn assert_accounted(mesh: &Mesh) {
    let (accepted, delivered, lost, waiting) = mesh.account();
    assert_eq!(accepted, delivered + lost + waiting, "{:?}", mesh.losses());
}

fn assert_no_copies(mesh: &Mesh) {
    let mut seen = BTreeSet::new();
    for got in &mesh.got {
        let delivery = got.delivery;
        let key = (got.node, delivery.source, delivery.flow, delivery.number);
        assert!(seen.insert(key), "{key:?} was delivered twice");
    }
}

/// A frame of 216 octets takes 1264 us on this air, so four hops carry 197.8 packets a second at best.
#[test]
fn a_chain_is_filled_and_loses_next_to_nothing() {
    let mut mesh = Mesh::new(Settings::paper(), 5, &chain(5, 1.0), 1);
    mesh.seconds(10);
    assert_eq!(
        mesh.nodes[0].distance(4),
        Some(4.0),
        "routes stand after ten seconds"
    );
    assert_eq!(mesh.nodes[0].next_hops(4).collect::<Vec<_>>(), [1]);
    mesh.flows.push(Flow::new(0, 4));
    mesh.seconds(120);
    let rate = mesh.rate(0, at(60));
    assert!((175.0..197.8).contains(&rate), "{rate}");
    assert_accounted(&mesh);
    let (accepted, _, lost, _) = mesh.account();
    assert!(lost * 500 < accepted, "{lost} of {accepted}");
    assert!(
        mesh.got.iter().all(|got| got.delivery.hops == 3),
        "forwarded by three nodes"
    );
    assert!(
        mesh.nodes
            .iter()
            .all(|node| node.counters().drops.of(chappe_core::DropReason::Malformed) == 0)
    );
}

/// Goal: the two flows of the paper's Fig. 2 share the air. Either takes two hops, so 395.6 packets a second cross two
/// hops at best.
#[test]
fn two_flows_share_the_air() {
    let mut mesh = Mesh::new(Settings::paper(), 6, &figure2(), 1);
    mesh.flows = vec![Flow::new(0, 4), Flow::new(3, 5)];
    mesh.seconds(180);
    let (first, second) = (mesh.rate(0, at(60)), mesh.rate(3, at(60)));
    assert!(first + second > 330.0, "{first} {second}");
    assert!(
        first.min(second) > 0.6 * first.max(second),
        "{first} {second}"
    );
    assert_accounted(&mesh);
    assert_no_copies(&mesh);
}

/// Goal: a second path is used when the first one's queue fills, and not with K = 1. Method: the relay of the short path
/// offers packets too, and the link behind it loses every fifth frame.
#[test]
fn a_full_next_hop_opens_a_second_path() {
    let mut links = figure2();
    links[1].2 = 0.8;
    let run = |limit| {
        let mut settings = Settings::paper();
        settings.next_hops.limit = limit;
        let mut mesh = Mesh::new(settings, 6, &links, 1);
        mesh.prioritised = false;
        mesh.flows = vec![Flow::new(0, 4), Flow::new(3, 4)];
        mesh.seconds(150);
        assert_accounted(&mesh);
        let counters = mesh.nodes[0].counters();
        (counters.detours, counters.k_grew)
    };
    let (detours, grew) = run(KMax::AtLeastTwo);
    assert!(detours > 100 && grew > 0, "{detours} {grew}");
    assert_eq!(
        run(KMax::Literal),
        (0, 0),
        "three neighbours and beta = 0.1 leave one path"
    );
    assert_eq!(run(KMax::Fixed(1)), (0, 0));
}

/// Goal: routes avoid bad links. Method: one hop of ratio 0.4 (ETX 6.25) beside two hops of 0.9 (1.23 each).
#[test]
fn routes_prefer_good_links() {
    let links = [(0, 2, 0.4), (0, 1, 0.9), (1, 2, 0.9)];
    let mut mesh = Mesh::new(Settings::paper(), 3, &links, 3);
    mesh.seconds(60);
    assert_eq!(mesh.nodes[0].next_hops(2).next(), Some(1));
    let distance = mesh.nodes[0].distance(2).unwrap();
    assert!((2.0..3.6).contains(&distance), "{distance}");
}

/// Goal: a destination that forgot its sequence number is reachable again, long before its routes would have died.
#[test]
fn a_node_that_starts_over_is_believed_again() {
    let settings = Settings::paper();
    let mut mesh = Mesh::new(settings, 4, &chain(4, 1.0), 1);
    mesh.flows = vec![Flow::new(0, 3), Flow::new(3, 0)];
    mesh.seconds(60);
    mesh.restart(settings, 3, 1);
    let before = mesh.got.len();
    mesh.seconds(20);
    let since = mesh.got[before..].iter();
    let (to, from): (Vec<&Got>, Vec<&Got>) = since.partition(|got| got.node == 3);
    assert!(
        to.len() > 300 && from.len() > 300,
        "{} {}",
        to.len(),
        from.len()
    );
    // Its numbers begin again at 0, and the epoch says that this is right.
    assert_eq!(from.iter().map(|got| got.delivery.number).min(), Some(0));
    mesh.restart(settings, 1, 1);
    let before = mesh.got.len();
    mesh.seconds(20);
    assert!(mesh.got.len() - before > 600, "a relay restarts");
}

/// Goal: a dead relay is bypassed, its link goes down, and its information is forgotten.
#[test]
fn a_dead_relay_is_passed_by() {
    let links = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 0.8), (2, 3, 0.8)];
    let mut mesh = Mesh::new(Settings::paper(), 4, &links, 1);
    mesh.flows = vec![Flow::new(0, 3)];
    mesh.seconds(50);
    assert_eq!(mesh.nodes[0].next_hops(3).next(), Some(1));
    mesh.off[1] = true;
    mesh.seconds(12);
    assert_eq!(mesh.nodes[0].etx(1), None);
    assert_eq!(mesh.nodes[0].next_hops(3).collect::<Vec<_>>(), [2]);
    let before = mesh.got.len();
    mesh.seconds(10);
    assert!(
        mesh.got.len() - before > 1000,
        "{}",
        mesh.got.len() - before
    );
    let account = mesh.account();
    let left = u64::from(mesh.nodes[1].queue(3));
    assert!(left <= 10 && account.0 == account.1 + account.2 + account.3);
}

/// Goal: a destination that is gone for good costs its packets, with a reason, and nothing else.
#[test]
fn packets_without_a_route_expire() {
    let mut mesh = Mesh::new(Settings::paper(), 3, &chain(3, 1.0), 1);
    mesh.flows = vec![Flow::new(0, 2)];
    mesh.seconds(40);
    mesh.off[2] = true;
    mesh.seconds(200);
    assert_eq!(mesh.nodes[0].distance(2), None);
    let losses = mesh.nodes[1].counters().losses;
    assert!(losses.age + losses.link > 0, "{losses:?}");
    assert_accounted(&mesh);
    let sent = mesh.nodes[1].counters().data_sent;
    mesh.seconds(20);
    assert_eq!(
        mesh.nodes[1].counters().data_sent,
        sent,
        "no node sends to it any more"
    );
}

/// Goal: lost acknowledgements make copies, and no copy is delivered.
#[test]
fn copies_are_recognised() {
    let mut mesh = Mesh::new(Settings::paper(), 4, &chain(4, 0.6), 5);
    mesh.lossy_acks = true;
    mesh.flows = vec![Flow::new(0, 3)];
    mesh.seconds(300);
    let copies: u64 = mesh.losses().iter().map(|losses| losses.copies).sum();
    assert!(
        copies > 0 && mesh.got.len() > 3000,
        "{copies} {}",
        mesh.got.len()
    );
    assert_no_copies(&mesh);
    let (accepted, delivered, lost, waiting) = mesh.account();
    assert!(
        accepted <= delivered + lost + waiting,
        "copies may make it more, never less"
    );
}

/// Goal: no packet is lost silently and none is delivered twice, whatever the mesh. Method: random meshes and flows, links
/// that are cut and nodes that die, in the paper's and in our settings.
#[test]
fn random_meshes_keep_their_accounts() {
    for seed in 0..6 {
        let mut random = Seed(seed).stream(Purpose::Topology);
        let n = 4 + random.below(8) as u16;
        let mut links = chain(n, 0.9);
        for _ in 0..n {
            let (a, b) = (random.below(n.into()) as u16, random.below(n.into()) as u16);
            if a != b {
                links.push((a, b, 0.2 + 0.8 * random.fraction()));
            }
        }
        for settings in [
            Settings::paper(),
            Settings::improved(),
            lifo(),
            Settings::shortest_path(),
            Settings::fusion(),
            Settings::dclo(),
        ] {
            let mut mesh = Mesh::new(settings, n, &links, seed);
            let flow = |name: u64| {
                let source = random.at(100 + name) % u64::from(n);
                let sink = (source + 1 + random.at(200 + name) % u64::from(n - 1)) % u64::from(n);
                Flow {
                    name: name as u16,
                    begin: at(12),
                    ..Flow::new(source as u16, sink as u16)
                }
            };
            mesh.flows = (0..3).map(flow).collect();
            mesh.prioritised = seed % 2 == 0;
            mesh.seconds(30);
            mesh.cut(0, 1);
            mesh.seconds(15);
            mesh.off[usize::from(n / 2)] = true;
            mesh.seconds(15);
            assert_accounted(&mesh);
            assert_no_copies(&mesh);
            assert!(!mesh.got.is_empty(), "seed {seed}");
        }
    }
}

fn lifo() -> Settings {
    let mut settings = Settings::improved();
    settings.extras.lifo = true;
    settings.extras.pins = None;
    settings
}

/// Goal: one seed, one run.
#[test]
fn a_run_can_be_repeated() {
    let run = || {
        let mut mesh = Mesh::new(Settings::improved(), 6, &figure2(), 7);
        mesh.flows = vec![Flow::new(0, 4), Flow::new(3, 5)];
        mesh.seconds(60);
        let last = mesh.got.last().map(|got| (got.at, got.delivery));
        (mesh.frames, mesh.got.len(), last)
    };
    assert_eq!(run(), run());
}

/// The probes of a node from now to a second.
fn probes_until(mesh: &mut Mesh, node: usize, until: u64) -> u64 {
    let before: u64 = mesh.nodes[node].counters().probes_sent;
    mesh.run_until(at(until));
    mesh.nodes[node].counters().probes_sent - before
}

/// Goal: a node probes each second for ten seconds after its start, and again after it began to send, and each three seconds
/// otherwise. Method: a chain of three, whose source begins at 60 s and pauses between 100 and 110 s, which is too short to begin anew.
#[test]
fn probes_are_frequent_when_prices_change() {
    let mut mesh = Mesh::new(Settings::improved(), 3, &chain(3, 1.0), 1);
    for (begin, end) in [(60, 100), (110, 130)] {
        let flow = Flow::new(0, 2);
        mesh.flows.push(Flow {
            begin: at(begin),
            end: at(end),
            ..flow
        });
    }
    let mut probes = |until: u64| probes_until(&mut mesh, 1, until);
    let frequent = 8..=12;
    assert!(frequent.contains(&probes(10)), "after the start");
    probes(15);
    assert!((9..=13).contains(&probes(50)), "35 s of rest");
    probes(60);
    assert!(frequent.contains(&probes(70)), "it began to send");
    probes(75);
    assert!((4..=9).contains(&probes(95)), "20 s of the same load");
    probes(110);
    assert!((1..=5).contains(&probes(120)), "after a short pause");
}

/// Goal: a node probes each second while packets end there: of its neighbours those that do not hear each other learn each other's prices
/// from its probes. Method: the end of a chain of three, before, in and after 40 s of packets.
#[test]
fn probes_are_frequent_where_packets_end() {
    let mut mesh = Mesh::new(Settings::improved(), 3, &chain(3, 1.0), 1);
    mesh.flows.push(Flow {
        begin: at(60),
        end: at(100),
        ..Flow::new(0, 2)
    });
    let mut probes = |until: u64| probes_until(&mut mesh, 2, until);
    probes(20);
    assert!((10..=17).contains(&probes(60)), "40 s of rest");
    probes(65);
    assert!((26..=34).contains(&probes(95)), "30 s of packets");
    probes(115);
    assert!((7..=13).contains(&probes(145)), "30 s of rest again");
}
