//! Goal: the application checks batches before they are acknowledged, held batches are not sent, receivers come and go, and
//! links change during a transfer. Method: a line of four on the medium of `common`, with the application played by the test.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::Duration;
use chappe_pacifier::improved::{self, Settings};
use chappe_pacifier::{Config, Node, Object, paper};
use common::{Network, graph, nodes, object};

const LEN: usize = 20_011;

/// An object that is read and not kept.
#[derive(Debug)]
struct Read(Arc<[u8]>);

impl Object for Read {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn read(&self, start: usize, into: &mut [u8]) -> bool {
        let from = &self.0[start..start + into.len()];
        into.copy_from_slice(from);
        true
    }
}

fn config() -> Config {
    let config = Config::Paper(paper::Config {
        window: 5,
        ..paper::Config::default()
    });
    config.with_batch(8, 40)
}

struct Play {
    network: Network<Node>,
    file: Arc<[u8]>,
    /// What each receiver has kept, batch by batch.
    kept: BTreeMap<(u16, u32), Vec<u8>>,
    rejected: u32,
}

impl Play {
    fn new(config: Config) -> Play {
        let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.6), (2, 3, 0.8), (0, 2, 0.2)]);
        Play {
            network: Network::new(links.clone(), 1, nodes(&config, &links, 1)),
            file: object(LEN, 1),
            kept: BTreeMap::new(),
            rejected: 0,
        }
    }

    fn expect(&mut self, me: u16, held: impl Fn(u32) -> bool) {
        let node = &mut self.network.nodes[usize::from(me)];
        node.expect_checked(0, 77, LEN, 6, held).unwrap();
    }

    /// Accepts decoded batches, but rejects the first three of node 1.
    fn judge(&mut self) {
        let mut batch = Vec::new();
        for me in 1..4 {
            let now = self.network.now;
            let node = &mut self.network.nodes[usize::from(me)];
            while let Some(number) = node.decoded(0, &mut batch) {
                if me == 1 && self.rejected < 3 {
                    self.rejected += 1;
                    node.reject(0, number);
                    continue;
                }
                node.accept(now, 0, number);
                assert_eq!(self.kept.insert((me, number), batch.clone()), None);
            }
        }
    }

    fn run_until(&mut self, done: impl Fn(&[Node]) -> bool) {
        for _ in 0..100_000 {
            if done(&self.network.nodes) {
                return;
            }
            self.network.run(Duration::from_millis(2), |_| false);
            self.judge();
        }
        panic!("not done: {:?}", self.network.nodes[0].counters());
    }

    fn kept_by(&self, me: u16) -> Vec<u8> {
        let own = self.kept.iter().filter(|((who, _), _)| *who == me);
        own.flat_map(|(_, batch)| batch.clone()).collect()
    }
}

#[test]
fn batches_are_checked_and_receivers_come_and_go() {
    let mut play = Play::new(config());
    play.expect(1, |_| false);
    // Node 3 has every third batch from before.
    play.expect(3, |batch| batch % 3 == 0);
    let object = Arc::new(Read(play.file.clone()));
    let source = &mut play.network.nodes[0];
    source.offer_read(object, 77, &[1, 3]).unwrap();
    let batches = LEN.div_ceil(320) as u32;
    for batch in (0..batches).step_by(3) {
        assert!(source.held_by(3, batch) && !source.held_by(3, batch));
    }
    play.run_until(|nodes| nodes[1].received().batches_done >= 10);
    // Node 2 joins, and the links change.
    play.expect(2, |_| false);
    let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.6), (2, 3, 0.8)]);
    for node in &mut play.network.nodes {
        assert!(node.relink(links.clone()));
    }
    assert!(
        play.network.nodes[0]
            .serve(&[1, 2, 3])
            .unreachable
            .is_empty()
    );
    play.run_until(|nodes| nodes[2].received().batches_done >= 10);
    // Node 1 stops receiving; its radio still forwards.
    play.network.nodes[0].serve(&[2, 3]);
    play.network.nodes[1].forget_group(0, true);
    play.run_until(|nodes| nodes[0].source_done());
    assert_eq!(play.rejected, 3);
    assert_eq!(play.kept_by(2), play.file[..]);
    assert_eq!(play.kept.keys().filter(|(who, _)| *who == 3).count(), 42);
    for (&(_, batch), octets) in &play.kept {
        let start = batch as usize * 320;
        assert_eq!(octets[..], play.file[start..(start + 320).min(LEN)]);
    }
    assert_eq!(play.network.nodes[0].acknowledged_by(3), batches);
}

/// A source that loses its state and starts over with the same serial needs only the batches that receivers lack.
#[test]
fn a_restarted_source_continues() {
    restart_source(config());
}

/// The same with the improved variant, whose data frames name less than a window here.
#[test]
fn a_restarted_source_of_the_improved_variant_continues() {
    let settings = Settings {
        window: 5,
        data_states: 2,
        ..Settings::default()
    };
    let common = *config().common();
    restart_source(improved::Config { common, settings }.into());
}

fn restart_source(config: Config) {
    let mut play = Play::new(config.clone());
    play.expect(3, |_| false);
    let offer = |play: &mut Play| {
        let object = Arc::new(Read(play.file.clone()));
        play.network.nodes[0].offer_read(object, 77, &[3]).unwrap();
    };
    offer(&mut play);
    play.run_until(|nodes| nodes[3].received().batches_done >= 20);
    let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.6), (2, 3, 0.8), (0, 2, 0.2)]);
    play.network.nodes[0] = nodes(&config, &links, 2).swap_remove(0);
    for node in &mut play.network.nodes[1..] {
        node.forget_group(0, false);
    }
    offer(&mut play);
    for &(_, batch) in play.kept.keys() {
        play.network.nodes[0].held_by(3, batch);
    }
    play.run_until(|nodes| nodes[0].source_done());
    assert_eq!(play.kept_by(3), play.file[..]);
}

fn improved_config() -> Config {
    let settings = Settings {
        window: 5,
        ..Settings::default()
    };
    let common = *config().common();
    improved::Config { common, settings }.into()
}

/// A receiver was complete, went away, and comes back without batches that its disk has lost. It is served again.
#[test]
fn a_complete_receiver_that_lost_batches_is_served_again() {
    for (variant, config) in [("paper", config()), ("improved", improved_config())] {
        let mut play = Play::new(config.clone());
        play.expect(3, |_| false);
        let object = Arc::new(Read(play.file.clone()));
        play.network.nodes[0].offer_read(object, 77, &[3]).unwrap();
        play.run_until(|nodes| nodes[0].source_done());
        play.network.nodes[0].serve(&[]);

        let links = graph(4, &[(0, 1, 0.7), (1, 2, 0.6), (2, 3, 0.8), (0, 2, 0.2)]);
        play.network.nodes[3] = nodes(&config, &links, 3).swap_remove(3);
        const LOST: u32 = 5;
        play.kept.retain(|&(_, batch), _| batch >= LOST);
        play.expect(3, |batch| batch >= LOST);
        let source = &mut play.network.nodes[0];
        source.lost_by(3);
        for &(_, batch) in play.kept.keys() {
            source.held_by(3, batch);
        }
        source.serve(&[3]);
        play.run_until(|nodes| nodes[0].source_done());
        assert!(play.kept_by(3) == play.file[..], "{variant}");
    }
}
