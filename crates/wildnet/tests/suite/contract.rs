//! The contract that every node keeps, whatever happens on the air.

use chappe_core::{Address, Duration, Purpose, Seed, contract};
use chappe_wildnet::{Config, Link, Node, Radio, Site, SlotConfig, Turns};

#[test]
fn a_radio_keeps_the_contract() {
    for (turns, by_demand) in [
        (Turns::Stamps, false),
        (Turns::Stamps, true),
        (Turns::Markers { timeout: 5 }, false),
    ] {
        contract::check_radio(12, |seed| {
            let slots = SlotConfig {
                turns,
                by_demand,
                ..SlotConfig::dot11b(Duration::from_micros(1_500))
            };
            let random = |purpose| Seed(seed).stream(Purpose::Node(purpose));
            let link = Link::new(
                Config {
                    window: 64,
                    queue: 8,
                    ..Config::slots()
                },
                1,
            )
            .unwrap();
            let site = Site::new(slots, 1, random(0));
            Radio::new(
                link,
                site,
                0,
                (Address::node(1), Address::node(0)),
                random(1),
            )
        });
    }
}

#[test]
fn a_node_keeps_the_contract() {
    contract::check_link(12, |_| {
        let link = Link::new(
            Config {
                window: 64,
                queue: 8,
                ..Config::tunnel(1400)
            },
            1,
        )
        .unwrap();
        Node::new(link, Address::node(0), None)
    });
}
