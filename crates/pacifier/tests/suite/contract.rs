//! Goal: nodes honour the contract of a link node in every role and variant. Method: the hostile scripts of
//! `chappe_core::contract`, started from nodes in the middle of a transfer.

use crate::common;

use std::sync::Arc;

use chappe_core::contract::check_link;
use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_pacifier::paper::{self, AckProof, Variant};
use chappe_pacifier::{Common, Config, Links, Node, ProbeConfig, Prober, improved};
use common::{object, scatter};

const VARIANTS: [Variant; 4] = [
    Variant::More { prune: 0.02 },
    Variant::Tree,
    Variant::TreeRl,
    Variant::Pacifier { knob: 1.0 },
];

/// The scripts use the addresses of nodes 0 to 11. Nodes 0 to 2 form a chain here, so node 1 forwards.
fn links() -> Arc<Links> {
    let scattered = scatter(12, 3.0, 1);
    let ratio = |from: u16, to: u16| match (from.min(to), from.max(to)) {
        (0, 1) | (1, 2) => 0.7,
        (0, 2) => 0.0,
        _ => scattered.ratio(from, to),
    };
    Arc::new(Links::measured(12, ratio).unwrap())
}

fn node(config: &Config, number: u16, seed: u64) -> Node {
    let random = Seed(seed).stream(Purpose::Node(number.into()));
    let mut node = Node::new(config.clone(), number, links(), random).unwrap();
    node.trace(true);
    node
}

fn source(config: &Config, seed: u64) -> Node {
    let mut source = node(config, 0, seed);
    source.offer(object(700, seed), &[2, 5]).unwrap();
    source
}

/// Lets `node` hear some frames of the source.
fn hear(node: &mut Node, config: &Config, seed: u64) {
    let mut source = source(config, seed);
    let mut sdu = [0; 512];
    for step in 0..6 {
        let now = Instant::ZERO + Duration::from_micros(100 * step);
        source.handle_timeout(now);
        let Some(send) = source.poll_link(now, Classes::ALL, &mut sdu) else {
            continue;
        };
        let event = LinkEvent::Sent {
            token: send.token,
            outcome: Outcome::Unconfirmed,
        };
        source.handle_link(now, event);
        let (from, sdu) = (Address::node(0), &sdu[..send.len]);
        let arrival = Arrival {
            from,
            to: send.to,
            sdu,
            power: None,
        };
        node.handle_link(now, LinkEvent::Received(arrival));
    }
    node.handle_timeout(Instant::from_millis(1));
}

fn each_config(mut check: impl FnMut(&Config)) {
    let common = Common {
        k: 4,
        payload: 30,
        forget: Duration::from_millis(1),
        ..Common::default()
    };
    for variant in VARIANTS {
        for ack_proof in [AckProof::MacOrOverheard, AckProof::Overheard] {
            check(&Config::Paper(paper::Config {
                common,
                ack_proof,
                ack_retry_min: Duration::from_micros(300),
                ack_retry_max: Duration::from_millis(2),
                ack_repeat: 5,
                ack_cache: 6,
                ..paper::Config::new(variant)
            }));
        }
    }
    let settings = improved::Settings::default();
    check(&improved::Config { common, settings }.into());
}

#[test]
fn sources_honour_the_link_contract() {
    each_config(|config| check_link(40, |seed| source(config, seed)));
}

#[test]
fn relays_honour_the_link_contract() {
    each_config(|config| {
        check_link(40, |seed| {
            let mut relay = node(config, 1, seed);
            hear(&mut relay, config, seed);
            relay
        });
    });
}

#[test]
fn receivers_honour_the_link_contract() {
    each_config(|config| {
        check_link(40, |seed| {
            let mut receiver = node(config, 2, seed);
            receiver.expect(0, 700).unwrap();
            hear(&mut receiver, config, seed);
            receiver
        });
    });
}

#[test]
fn a_node_in_all_roles_honours_the_link_contract() {
    each_config(|config| {
        check_link(40, |seed| {
            let mut node = node(config, 1, seed);
            node.expect(0, 700).unwrap();
            node.offer(object(90, seed), &[0, 2, 7]).unwrap();
            hear(&mut node, config, seed);
            node
        });
    });
}

#[test]
fn probers_honour_the_link_contract() {
    check_link(100, |seed| {
        let interval = Duration::from_millis(1);
        let config = ProbeConfig {
            interval,
            payload: 60,
            ..ProbeConfig::default()
        };
        let random = Seed(seed).stream(Purpose::Node(0));
        Prober::new(config, 12, Instant::from_millis(1), random)
    });
}
