//! Goal: every variant delivers every octet to every receiver, whatever the graph. Method: whole networks on the
//! medium of `common`, which loses frames independently on every link.

use crate::common;

use std::sync::Arc;

use chappe_core::Duration;
use chappe_pacifier::paper::more::{prune_share, tuned_prune_percent};
use chappe_pacifier::paper::{self, AckProof, Variant};
use chappe_pacifier::{Config, Links, Node, improved};
use common::{Network, graph, nodes, object, scatter};

fn variants(links: &Links, source: u16, receivers: &[u16]) -> Vec<Config> {
    let prune = prune_share(tuned_prune_percent(links, source, receivers));
    [
        Variant::More { prune }.into(),
        Variant::Tree.into(),
        Variant::TreeRl.into(),
        Variant::Pacifier { knob: 0.0 }.into(),
        Variant::Pacifier { knob: 0.5 }.into(),
        Variant::Pacifier { knob: 1.0 }.into(),
        improved::Config::default().into(),
    ]
    .map(|config: Config| config.with_batch(8, 40))
    .into()
}

/// Moves `len` octets from `source` to `receivers` by every variant and checks every octet.
fn deliver(links: Arc<Links>, source: u16, receivers: &[u16], len: usize, seed: u64) {
    for config in variants(&links, source, receivers) {
        deliver_with(&config, links.clone(), source, receivers, len, seed);
    }
}

fn deliver_with(
    config: &Config,
    links: Arc<Links>,
    source: u16,
    receivers: &[u16],
    len: usize,
    seed: u64,
) -> Network<Node> {
    let what = format!("{:?}, seed {seed}", config);
    let file = object(len, seed);
    let mut network = Network::new(links.clone(), seed, nodes(config, &links, seed));
    for &receiver in receivers {
        network.nodes[usize::from(receiver)]
            .expect(source, len)
            .unwrap();
    }
    let offered = network.nodes[usize::from(source)]
        .offer(file.clone(), receivers)
        .unwrap();
    assert!(
        offered.unreachable.is_empty() && offered.cut_off.is_empty(),
        "{what}: {offered:?}"
    );
    let done = network.run(Duration::from_secs(20_000), |nodes| {
        nodes[usize::from(source)].source_done()
    });
    for &receiver in receivers {
        let node = &network.nodes[usize::from(receiver)];
        let progress = node.received();
        assert_eq!(
            node.object(),
            Some(&file[..]),
            "{what}: receiver {receiver} has {progress:?}"
        );
        assert_eq!(
            (progress.bytes, progress.batches_done),
            (len, progress.batches)
        );
    }
    assert!(done, "{what}: the source has not heard of it");
    network
}

#[test]
fn a_lossy_chain_with_a_short_last_batch() {
    let links = graph(
        5,
        &[
            (0, 1, 0.7),
            (1, 2, 0.6),
            (2, 3, 0.8),
            (3, 4, 0.5),
            (1, 3, 0.1),
        ],
    );
    deliver(links, 0, &[4], 8 * 40 * 3 + 101, 1);
}

#[test]
fn receivers_that_forward_and_one_next_to_the_source() {
    let edges = [
        (0, 1, 0.9),
        (0, 2, 0.6),
        (2, 3, 0.7),
        (3, 4, 0.6),
        (3, 5, 0.4),
        (2, 5, 0.2),
        (1, 2, 0.3),
    ];
    deliver(graph(6, &edges), 0, &[1, 3, 4, 5], 8 * 40 * 2 + 1, 2);
}

#[test]
fn links_that_lose_nine_frames_of_ten() {
    deliver(
        graph(3, &[(0, 1, 0.1), (1, 2, 0.1)]),
        0,
        &[1, 2],
        8 * 40 + 7,
        3,
    );
}

#[test]
fn objects_of_boundary_sizes() {
    let links = graph(3, &[(0, 1, 0.8), (1, 2, 0.8)]);
    for len in [0, 1, 39, 40, 41, 8 * 40 - 1, 8 * 40, 8 * 40 + 1, 2 * 8 * 40] {
        deliver(links.clone(), 0, &[1, 2], len, 4);
    }
}

#[test]
fn scattered_nodes() {
    let mut runs = 0;
    for seed in 0..6 {
        let links = scatter(16, 3.0, seed);
        let (there, back) = (links.etx_paths(0), links.ack_paths(0));
        let reached = |&n: &u16| there.reaches(n) && back.reaches(n) && there.cost(n) < 40.0;
        let receivers: Vec<u16> = (1..16).step_by(3).filter(reached).collect();
        if receivers.is_empty() {
            continue;
        }
        deliver(links, 0, &receivers, 8 * 40 * 2 + 55, seed);
        runs += 1;
    }
    assert!(runs >= 4, "{runs} of the graphs were connected");
}

#[test]
fn the_papers_sizes_and_batches_beyond_32() {
    let links = graph(3, &[(0, 1, 0.8), (1, 2, 0.7)]);
    let paper = Config::default();
    deliver_with(&paper, links.clone(), 0, &[1, 2], 100_001, 7);
    let large = Config::default().with_batch(100, 50);
    deliver_with(&large, links, 0, &[1, 2], 12_345, 7);
}

#[test]
fn only_overhearing_confirms_acks() {
    let edges = [(0, 1, 0.6), (1, 2, 0.6), (2, 3, 0.6), (1, 4, 0.5)];
    let links = graph(5, &edges);
    let config = Config::Paper(paper::Config {
        ack_proof: AckProof::Overheard,
        ..paper::Config::default()
    });
    let config = config.with_batch(8, 40);
    deliver_with(&config, links, 0, &[3, 4], 3000, 8);
}

#[test]
fn unreachable_receivers_are_left_out() {
    // Node 3 has no link; node 4 hears but is not heard, so its ACKs would never come.
    let mut ratios = vec![0.0; 25];
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (1, 4)] {
        ratios[from * 5 + to] = 0.8;
    }
    let links = Arc::new(Links::new(5, ratios).unwrap());
    for config in variants(&links, 0, &[2]) {
        let mut network = Network::new(links.clone(), 9, nodes(&config, &links, 9));
        let file = object(1000, 9);
        (1..5).for_each(|n| network.nodes[n].expect(0, 1000).unwrap());
        let offered = network.nodes[0].offer(file.clone(), &[1, 2, 3, 4]).unwrap();
        assert_eq!(offered.unreachable, [3, 4]);
        assert!(network.run(Duration::from_secs(1000), |nodes| nodes[0].source_done()));
        assert_eq!(network.nodes[2].object(), Some(&file[..]));
        assert_eq!(network.nodes[3].object(), None);
        // Only unreachable receivers: nothing to do.
        network.nodes[0].offer(file, &[3]).unwrap();
        assert!(network.nodes[0].source_done());
    }
}

#[test]
fn two_sources_share_relays() {
    let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.7), (2, 3, 0.7)]);
    for config in variants(&links, 0, &[3]) {
        let mut network = Network::new(links.clone(), 10, nodes(&config, &links, 10));
        let (there, back) = (object(2500, 10), object(1700, 11));
        network.nodes[3].expect(0, there.len()).unwrap();
        network.nodes[0].expect(3, back.len()).unwrap();
        network.nodes[0].offer(there.clone(), &[3]).unwrap();
        network.nodes[3].offer(back.clone(), &[0]).unwrap();
        let both = |nodes: &[Node]| nodes[0].source_done() && nodes[3].source_done();
        assert!(network.run(Duration::from_secs(5000), both), "{:?}", config);
        assert_eq!(network.nodes[3].object(), Some(&there[..]));
        assert_eq!(network.nodes[0].object(), Some(&back[..]));
    }
}

#[test]
fn a_source_sends_several_objects_in_a_row() {
    let links = graph(3, &[(0, 1, 0.7), (1, 2, 0.7)]);
    for config in variants(&links, 0, &[2]) {
        let mut network = Network::new(links.clone(), 12, nodes(&config, &links, 12));
        for round in 0..4 {
            let file = object(900 + 100 * round, round as u64);
            network.nodes[2].expect(0, file.len()).unwrap();
            network.nodes[0].offer(file.clone(), &[2]).unwrap();
            assert!(network.run(Duration::from_secs(5000), |nodes| nodes[0].source_done()));
            assert_eq!(network.nodes[2].object(), Some(&file[..]), "round {round}");
        }
    }
}

/// From time to time the only relay loses its memory: packets of the batch, and ACKs that it had confirmed to the
/// previous hop.
#[test]
fn a_relay_that_keeps_crashing() {
    let links = graph(3, &[(0, 1, 0.7), (1, 2, 0.7)]);
    for config in variants(&links, 0, &[2]) {
        for seed in 0..5 {
            let mut network = Network::new(links.clone(), seed, nodes(&config, &links, seed));
            let file = object(3000, seed);
            network.nodes[2].expect(0, file.len()).unwrap();
            network.nodes[0].offer(file.clone(), &[2]).unwrap();
            let mut crashes = 0;
            while !network.run(Duration::from_millis(20), |nodes| nodes[0].source_done()) {
                network.nodes[1] = nodes(&config, &links, 100 + seed + crashes).remove(1);
                crashes += 1;
                assert!(crashes < 20_000, "{:?}, seed {seed}", config);
            }
            assert!(crashes > 0, "too fast to be a test");
            assert_eq!(network.nodes[2].object(), Some(&file[..]));
        }
    }
}

/// The source is replaced in the middle and starts over with another object, while relays still hold the old one.
#[test]
fn a_source_that_starts_over() {
    let links = graph(3, &[(0, 1, 0.7), (1, 2, 0.7)]);
    for config in variants(&links, 0, &[2]) {
        let mut network = Network::new(links.clone(), 13, nodes(&config, &links, 13));
        network.nodes[2].expect(0, 9000).unwrap();
        network.nodes[0].offer(object(9000, 13), &[2]).unwrap();
        assert!(!network.run(Duration::from_millis(100), |nodes| nodes[0].source_done()));
        let file = object(2000, 14);
        network.nodes[0] = nodes(&config, &links, 99).remove(0);
        network.nodes[0].offer(file.clone(), &[2]).unwrap();
        network.nodes[2].expect(0, file.len()).unwrap();
        assert!(network.run(Duration::from_secs(5000), |nodes| nodes[0].source_done()));
        assert_eq!(network.nodes[2].object(), Some(&file[..]), "{:?}", config);
    }
}
