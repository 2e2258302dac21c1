//! Goal: nodes keep their promises to the driver, whatever they hear. Method: the hostile scripts of
//! `chappe_core::contract`, started from nodes in the middle of their work.

use crate::common;

use chappe_core::contract::check_link;
use chappe_core::{Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome};
use chappe_dpclo::{FirstProbes, Router, Scheme, Settings};
use common::router;

/// Times as short as those of the scripts.
fn quick(mut settings: Settings) -> Settings {
    settings.probes.interval = Duration::from_millis(1);
    settings.probes.first = settings.probes.first.map(|_| FirstProbes {
        least: Duration::from_micros(500),
        each: Duration::from_micros(200),
        most: Duration::from_millis(1),
        lasts: Duration::from_millis(10),
    });
    settings.routing.period = Duration::from_millis(5);
    settings.routing.gap = Duration::from_micros(700);
    settings.routing.settle = Duration::from_micros(300);
    settings.routing.jitter = Duration::from_micros(50);
    settings.next_hops.every = Duration::from_millis(1);
    settings.queues.backlog_life = Duration::from_millis(2);
    settings.queues.age_max = Duration::from_millis(20);
    settings.room.destinations = 6;
    settings.room.neighbours = 4;
    settings.room.packets = 12;
    settings.room.payload = 100;
    settings.room.flows = 3;
    settings.room.sources = 2;
    settings.room.seen = 16;
    if let Scheme::Dclo(law) = &mut settings.scheme {
        law.interval = Duration::from_millis(5);
        law.exchange = Duration::from_millis(1);
        law.retry = Duration::from_millis(1);
    }
    settings
}

/// Node 0 after a while with node 1, with packets of its own. For it the script's clock is behind at first, which a driver
/// must not do, and nothing may break.
fn busy(settings: Settings, seed: u64) -> Router {
    let mut pair = [0, 1].map(|me| router(settings, me, 0, Instant::ZERO, seed));
    let mut room = [0; 2304];
    for step in 0..300u64 {
        let now = Instant::from_micros(100 * step);
        for from in [0, 1] {
            pair[from].handle_timeout(now);
            let Some(send) = pair[from].poll_link(now, Classes::ALL, &mut room) else {
                continue;
            };
            let (address, sdu) = (Address::node(from as u16), &room[..send.len]);
            let arrival = Arrival {
                from: address,
                to: send.to,
                sdu,
                power: None,
            };
            pair[1 - from].handle_link(now, LinkEvent::Received(arrival));
            let outcome = Outcome::Acknowledged { attempts: 1 };
            pair[from].handle_link(
                now,
                LinkEvent::Sent {
                    token: send.token,
                    outcome,
                },
            );
        }
        for destination in [1, 2, 3] {
            let _ = pair[0].offer(now, destination, destination, b"a packet of its own");
        }
        pair[0].handle_timeout(now);
    }
    let [node, _] = pair;
    assert!(node.counters().data_sent > 0 && node.waiting() > 0);
    let mut node = node;
    node.trace(true);
    node
}

/// The scripts begin after a millisecond.
fn fresh(settings: Settings, seed: u64) -> Router {
    let begin = Instant::from_millis(1);
    let mut node = router(settings, 0, 0, begin, seed);
    for destination in [1, 2, 3] {
        let _ = node.offer(begin, destination, destination, b"a packet of its own");
    }
    node.trace(true);
    node
}

fn all() -> [Settings; 6] {
    let mut lifo = Settings::improved();
    lifo.extras.lifo = true;
    [
        Settings::paper(),
        Settings::improved(),
        lifo,
        Settings::shortest_path(),
        Settings::fusion(),
        Settings::dclo(),
    ]
    .map(quick)
}

#[test]
fn nodes_keep_their_promises() {
    for settings in all() {
        check_link(60, |seed| fresh(settings, seed));
    }
}

#[test]
fn busy_nodes_keep_their_promises() {
    for settings in all() {
        check_link(40, |seed| busy(settings, seed));
    }
}
