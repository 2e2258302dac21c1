//! The contract that every node keeps, whatever happens on the air.

use chappe_core::{Address, Classes, Duration, Instant, LinkNode, Purpose, Seed, contract};
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
                    fragments: by_demand,
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

/// A MAC that was busy for seconds leaves no deadline in the past: a frame that waits for it hides the timers until then.
#[test]
fn a_busy_mac_leaves_no_deadline_in_the_past() {
    let link = Link::new(Config::tunnel(1400), 1).unwrap();
    let mut node = Node::new(link, Address::node(0), None);
    let begin = Instant::from_millis(1);
    assert!(node.link.offer(begin, 0, 0, &[1; 500]));
    assert!(
        node.poll_link(begin, Classes::ALL, &mut [0; 1500])
            .is_some()
    );
    let wake = node.poll_timeout().expect("a report is awaited");
    let late = wake.at + Duration::from_secs(8);
    assert!(node.link.offer(late, 0, 0, &[2; 500]));
    assert!(node.poll_link(late, Classes::ALL, &mut [0; 1500]).is_some());
    let next = node.poll_timeout().expect("a report is still awaited");
    assert!(next.at > late, "{next:?} at {late}");
}
