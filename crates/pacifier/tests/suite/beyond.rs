//! Goal: objects of many more batches than the window arrive complete. Method: whole networks on the medium of `common`, the
//! application played by the test, batches of a few octets.

use crate::common;

use std::sync::Arc;

use chappe_core::Duration;
use chappe_pacifier::improved::{self, Settings};
use chappe_pacifier::{Common, Config, Links, Node, Object};
use common::{Network, graph, nodes, object};

const K: usize = 4;
const PAYLOAD: usize = 20;
const SERIAL: u8 = 3;

#[derive(Debug)]
struct Read(Arc<[u8]>);

impl Object for Read {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn read(&self, start: usize, into: &mut [u8]) -> bool {
        into.copy_from_slice(&self.0[start..start + into.len()]);
        true
    }
}

/// A transfer to receivers that keep each batch elsewhere.
struct Case {
    links: Arc<Links>,
    receivers: &'static [u16],
    batches: usize,
    settings: Settings,
    partial_max: usize,
    /// How often the application takes decoded batches.
    pause: Duration,
    seed: u64,
}

impl Case {
    fn config(&self) -> Config {
        let config = Config::Improved(improved::Config {
            common: Common::default(),
            settings: self.settings,
        });
        config.with_batch(K, PAYLOAD)
    }

    /// Every receiver completes, and the network is silent afterwards.
    fn run(&self) {
        let len = self.batches * K * PAYLOAD - 7;
        let file = object(len, self.seed);
        let nodes = nodes(&self.config(), &self.links, self.seed);
        let mut network = Network::new(self.links.clone(), self.seed, nodes);
        let mut kept = vec![vec![0; len]; self.links.nodes()];
        for &receiver in self.receivers {
            let node = &mut network.nodes[usize::from(receiver)];
            node.expect_checked(0, SERIAL, len, self.partial_max, |_| false)
                .unwrap();
        }
        let source = &mut network.nodes[0];
        let read = Arc::new(Read(file.clone()));
        source.offer_read(read, SERIAL, self.receivers).unwrap();
        let mut batch = Vec::new();
        for _ in 0..30_000 {
            network.run(self.pause, |_| false);
            for &receiver in self.receivers {
                let (now, node) = (network.now, &mut network.nodes[usize::from(receiver)]);
                while let Some(number) = node.decoded(0, &mut batch) {
                    let start = number as usize * K * PAYLOAD;
                    kept[usize::from(receiver)][start..start + batch.len()].copy_from_slice(&batch);
                    node.accept(now, 0, number);
                }
            }
            if network.nodes[0].source_done() {
                break;
            }
        }
        let state = |node: &Node| (node.received(), node.counters().data_sent);
        assert!(
            network.nodes[0].source_done(),
            "seed {}: {:?}, the source counts {:?}",
            self.seed,
            network.nodes.iter().map(state).collect::<Vec<_>>(),
            self.receivers
                .iter()
                .map(|&node| network.nodes[0].acknowledged_by(node))
                .collect::<Vec<_>>(),
        );
        for &receiver in self.receivers {
            assert!(
                kept[usize::from(receiver)] == file[..],
                "receiver {receiver}"
            );
        }
        network.run(Duration::from_secs(200), |_| false);
        let frames = network.frames;
        network.run(Duration::from_secs(1000), |_| false);
        assert_eq!(network.frames, frames, "silent");
    }
}

fn star() -> Arc<Links> {
    graph(
        4,
        &[
            (0, 1, 0.9),
            (0, 2, 0.7),
            (0, 3, 0.5),
            (1, 2, 0.6),
            (2, 3, 0.8),
            (1, 3, 0.4),
        ],
    )
}

fn apart() -> Arc<Links> {
    graph(4, &[(0, 1, 0.9), (0, 2, 0.7), (0, 3, 0.5)])
}

fn line() -> Arc<Links> {
    graph(4, &[(0, 1, 0.8), (1, 2, 0.6), (2, 3, 0.8), (0, 2, 0.2)])
}

/// Objects a little and much longer than the window, receivers with many places and few, applications that take batches
/// often and seldom.
fn all(window: u32, data_states: usize) {
    let settings = Settings {
        window,
        data_states,
        ..Settings::default()
    };
    let window = window as usize;
    let nets: [(Arc<Links>, &'static [u16]); 4] = [
        (star(), &[1, 2, 3]),
        (apart(), &[1, 2, 3]),
        (line(), &[3]),
        (line(), &[1, 2, 3]),
    ];
    let lengths = [(window + 4, 4 * window), (3 * window + 5, window / 2 + 1)];
    for (links, receivers) in nets {
        for (batches, partial_max) in lengths {
            for (seed, pause) in [(0, 2), (1, 400)] {
                let case = Case {
                    links: links.clone(),
                    receivers,
                    batches,
                    settings,
                    partial_max,
                    pause: Duration::from_millis(pause),
                    seed,
                };
                case.run();
            }
        }
    }
}

#[test]
fn objects_longer_than_the_default_window() {
    all(64, 64);
}

/// Frames name a part of the window only, so reports have to carry the rest.
#[test]
fn objects_longer_than_a_data_frame_can_name() {
    all(64, 12);
}

#[test]
fn objects_longer_than_a_small_window() {
    all(8, 64);
    all(8, 2);
}
