//! Goal: nodes keep the contract with their driver in every role. Method: the hostile scripts of
//! `chappe_core::contract`, started from fresh nodes and from nodes in the middle of a transfer.

use crate::common;

use chappe_core::contract::check_radio;
use chappe_core::{Duration, Instant, RadioEvent, RadioNode, RadioRequest, Reception};
use chappe_p3::timing::{MODE, airtime};
use chappe_p3::{Config, Destination, Relay, Source};
use common::{CAPS, DESTINATION, Growing, SOURCE, Setting, object};

/// Short times, so that the scripts reach every deadline.
fn setting(hops: usize, paths: usize) -> Setting {
    let config = Config {
        start_guard: Duration::from_micros(10),
        idle: Duration::from_millis(60),
        linger: Duration::from_millis(2),
        rest: Duration::from_micros(500),
        segment: 4,
        ctrl_attempts: 3,
        fruitless_rounds: 2,
        ..Config::default()
    };
    Setting {
        hops,
        paths,
        config,
        payload: 12,
        ..Setting::default()
    }
}

/// The frames of a lossless transfer that a node hears, up to `count` of them.
fn heard_by(setting: &Setting, node: usize, count: usize) -> Vec<Vec<u8>> {
    let mut net = setting.net(object(300, 1));
    let stage = setting.stage_of(node);
    common::start(&mut net, setting.plan(1), None);
    net.run(Duration::from_secs(3), |_| false);
    let near = |from: usize| setting.stage_of(from).abs_diff(stage) <= 1 && from != node;
    let log = net.log.borrow();
    let heard = log.iter().filter(|flight| near(flight.from));
    heard
        .take(count)
        .map(|flight| flight.psdu.clone())
        .collect()
}

/// Lets a node hear frames, one per 6 ms, and finishes what it sends at once.
fn hear(node: &mut impl RadioNode, frames: &[Vec<u8>]) {
    let mut psdu = [0; 127];
    let mut now = Instant::ZERO;
    for frame in frames {
        now += Duration::from_micros(2);
        if let Some(wake) = node.poll_timeout().filter(|wake| wake.at <= now) {
            node.handle_timeout(wake.at.max(now));
        }
        let started = now.saturating_before(airtime(frame.len()));
        let event = RadioEvent::Received(Reception {
            psdu: frame,
            started,
            mode: MODE,
            power: None,
        });
        node.handle_radio(now, event);
        while let Some(request) = node.poll_radio(now, &mut psdu) {
            if let RadioRequest::Transmit(_) = request {
                node.handle_radio(now, RadioEvent::Sent);
            }
        }
    }
}

/// The scripts started in each of these states.
fn assert_reached(states: &[&str], wanted: &[&str]) {
    for state in wanted {
        assert!(states.contains(state), "never {state}: {:?}", {
            let mut seen = states.to_vec();
            seen.sort();
            seen.dedup();
            seen
        });
    }
}

#[test]
fn a_relay_keeps_the_radio_contract() {
    let mut states = Vec::new();
    for (hops, paths) in [(2, 4), (4, 2), (4, 1)] {
        for count in [0, 1, 6, 40] {
            let setting = setting(hops, paths);
            let frames = heard_by(&setting, 2, count);
            check_radio(60, |_| {
                let mut relay = Relay::new(setting.config.clone(), &CAPS, 2).unwrap();
                relay.trace(true);
                hear(&mut relay, &frames);
                states.push(relay.state());
                relay
            });
        }
    }
    assert_reached(&states, &["waking", "flooding", "forward"]);
}

#[test]
fn a_source_keeps_the_radio_contract() {
    let mut states = Vec::new();
    for (hops, paths) in [(1, 1), (3, 2)] {
        for count in [0, 1, 5, 200] {
            let setting = setting(hops, paths);
            let frames = heard_by(&setting, SOURCE, count);
            check_radio(60, |_| {
                let bytes = object(300, 1);
                let mut source = Source::new(setting.config.clone(), &CAPS, 1, bytes).unwrap();
                source.trace(true);
                hear(&mut source, &frames);
                states.push(source.state());
                source
            });
        }
    }
    assert_reached(&states, &["waking", "flooding", "waiting"]);
}

#[test]
fn a_destination_keeps_the_radio_contract() {
    let mut states = Vec::new();
    for (hops, paths) in [(1, 1), (3, 2)] {
        for count in [0, 1, 20, 200] {
            let setting = setting(hops, paths);
            let frames = heard_by(&setting, DESTINATION, count);
            check_radio(60, |_| {
                let store = Growing::default();
                let config = setting.config.clone();
                let mut destination = Destination::new(config, &CAPS, 0, store).unwrap();
                destination.trace(true);
                let started = destination.start(setting.plan(1), None, Instant::ZERO);
                assert_eq!(started, Ok(()));
                hear(&mut destination, &frames);
                states.push(destination.state());
                destination
            });
        }
    }
    assert_reached(&states, &["waking", "complete"]);
}
