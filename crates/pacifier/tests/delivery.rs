//! Goal: every variant delivers every octet to every receiver, whatever the graph. Method: whole networks on the
//! medium of `common`, which loses frames independently on every link.

mod common;

use std::sync::Arc;

use chappe_core::Duration;
use chappe_pacifier::baseline::more::{prune_share, tuned_prune_percent};
use chappe_pacifier::{Config, Links, Node, Variant};
use common::{Network, graph, nodes, object, scatter};

fn variants(links: &Links, source: u16, receivers: &[u16]) -> Vec<Config> {
    let prune = prune_share(tuned_prune_percent(links, source, receivers));
    [
        Variant::More { prune },
        Variant::Tree,
        Variant::TreeRl,
        Variant::Pacifier { knob: 0.0 },
        Variant::Pacifier { knob: 0.5 },
        Variant::Pacifier { knob: 1.0 },
    ]
    .map(|variant| Config {
        k: 8,
        payload: 40,
        ..Config::new(variant)
    })
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
    let what = format!("{:?}, seed {seed}", config.variant);
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
fn over_a_lossy_chain_with_a_last_batch_that_is_not_full() {
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
fn to_receivers_that_also_forward_and_to_one_next_to_the_source() {
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
fn over_links_that_lose_nine_frames_of_ten() {
    deliver(
        graph(3, &[(0, 1, 0.1), (1, 2, 0.1)]),
        0,
        &[1, 2],
        8 * 40 + 7,
        3,
    );
}

#[test]
fn objects_of_every_awkward_size() {
    let links = graph(3, &[(0, 1, 0.8), (1, 2, 0.8)]);
    for len in [0, 1, 39, 40, 41, 8 * 40 - 1, 8 * 40, 8 * 40 + 1, 2 * 8 * 40] {
        deliver(links.clone(), 0, &[1, 2], len, 4);
    }
}

#[test]
fn over_scattered_nodes() {
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
fn with_the_papers_sizes_and_with_batches_beyond_32() {
    let links = graph(3, &[(0, 1, 0.8), (1, 2, 0.7)]);
    let paper = Config::default();
    deliver_with(&paper, links.clone(), 0, &[1, 2], 100_001, 7);
    let large = Config {
        k: 100,
        payload: 50,
        ..Config::default()
    };
    deliver_with(&large, links, 0, &[1, 2], 12_345, 7);
}
