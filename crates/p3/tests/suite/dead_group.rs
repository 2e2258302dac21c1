//! Goal: a group that delivers nothing loses its packets to the two others within a round, and gets them back once it works.
//! Method: the improved variant in an ideal synchronous air, three groups of one relay a stage; one relay misses the plan, dies, or
//! is not heard for a while. The source's packets are counted by group and round.

use crate::common;

use chappe_core::Duration;
use chappe_p3::{Config, Key, Tagging};
use common::{Bytes, DESTINATION, Flight, Net, SOURCE, Setting, finish, object, start};

const KEY: Key = Key::new(*b"not a secret key");
const GROUPS: u8 = 3;

fn setting(tagging: Tagging) -> Setting {
    let config = Config::improved(Some(KEY)).tagged_by(tagging);
    Setting::improved(config, GROUPS)
}

/// The group of the relays on a path, which is the path's number.
fn group_of(setting: &Setting, relay: usize) -> u8 {
    ((relay - 2) / (setting.hops - 1)) as u8
}

/// Packets of the source by group, in each round: before the first answer, before the second, and so on.
fn rounds(log: &[Flight]) -> Vec<[usize; 3]> {
    let mut rounds = vec![[0; 3]];
    let mut last_answer = 0;
    for flight in log {
        let answer = flight.psdu[0] == 0xa0 && flight.psdu[2] == 1;
        // All relays of the first stage may repeat it at once.
        if answer && flight.start > last_answer + 1_000_000 {
            last_answer = flight.start;
            rounds.push([0; 3]);
        }
        let plain = flight.from == SOURCE && flight.psdu[0] & 0xc0 == 0;
        if let (true, Some(round)) = (plain, rounds.last_mut()) {
            round[usize::from(flight.psdu[0] >> 4 & 3)] += 1;
        }
    }
    rounds
}

/// Answers before a time of the air.
fn answers_before(log: &[Flight], time: u64) -> usize {
    let early: Vec<Flight> = log.iter().filter(|one| one.start < time).cloned().collect();
    rounds(&early).len() - 1
}

/// Runs the rest of a transfer and checks the object. Returns all frames.
fn fetched(net: &mut Net, object: Bytes, what: &str) -> Vec<Flight> {
    let progress = finish(net, Duration::from_secs(120));
    let counts = net.source(SOURCE).counts();
    assert!(progress.completed.is_some(), "{what}: {counts:?}");
    assert!(
        net.destination(DESTINATION).store().bytes == object,
        "{what}"
    );
    net.log.borrow().clone()
}

/// The relay of each place misses the plan: the group has its share of the first segment only. The two others take turns as in a
/// plan for two groups, with the slower pace that relays need for it.
#[test]
fn a_group_that_missed_the_plan_gets_one_round() {
    let object = object(300_000, 21);
    for tagging in [Tagging::Packets, Tagging::Segments] {
        let setting = setting(tagging);
        for deaf in 2..setting.nodes() {
            let what = format!("{tagging:?}, relay {deaf}");
            let mut net = setting.net(object);
            net.fault = Box::new(move |flight, to| flight.psdu[0] == 0xb0 && to == deaf);
            let plan = setting.plan(1);
            start(&mut net, plan, None);
            let log = fetched(&mut net, object, &what);
            let dead = usize::from(group_of(&setting, deaf));
            let rounds = rounds(&log);
            assert!(rounds[0][dead] >= 293, "{what}: {rounds:?}");
            let later: usize = rounds[1..].iter().map(|round| round[dead]).sum();
            assert_eq!(later, 0, "{what}: {rounds:?}");
            // What it lost is sent once more, and nothing else.
            let packets = object.len().div_ceil(setting.payload.into());
            let data = net.source(SOURCE).counts().data as usize;
            assert_eq!(data, packets + rounds[0][dead], "{what}");
            // The pace of the last segment.
            let sent = log.iter().filter(|one| one.from == SOURCE);
            let sent: Vec<u64> = sent.map(|one| one.start).collect();
            let last = &sent[sent.len() - 100..];
            let pace = plan.pair_period(&setting.config);
            assert!(pace > plan.cycle() && pace < plan.cycle() * 21 / 20);
            assert_eq!(last[50] - last[0], (pace * 50).nanos(), "{what}");
        }
    }
}

/// A relay dies in the middle: its group has what is left of that segment's share, and nothing from the next round on.
#[test]
fn a_group_that_dies_on_the_way_loses_its_share_within_a_round() {
    let object = object(400_000, 22);
    let setting = setting(Tagging::Segments);
    for (relay, at_ms) in [(2, 500), (6, 3000), (9, 4500), (3, 5200), (10, 9000)] {
        let what = format!("relay {relay} at {at_ms} ms");
        let mut net = setting.net(object);
        start(&mut net, setting.plan(1), None);
        net.run(Duration::from_millis(at_ms), |_| false);
        let died = net.now;
        net.kill(relay);
        let log = fetched(&mut net, object, &what);
        let (rounds, before) = (rounds(&log), answers_before(&log, died));
        let dead = usize::from(group_of(&setting, relay));
        let shares: Vec<usize> = rounds.iter().map(|round| round[dead]).collect();
        assert!(
            shares[..=before].iter().all(|&share| share > 200),
            "{what}: {rounds:?}"
        );
        assert_eq!(
            shares[before + 1..].iter().sum::<usize>(),
            0,
            "{what}: {rounds:?}"
        );
    }
}

/// A relay is not heard for some seconds: the group loses its share, and has it again two rounds after it works, or earlier.
#[test]
fn a_group_that_works_again_gets_its_share_again() {
    let object = object(800_000, 23);
    let setting = setting(Tagging::Segments);
    for (relay, from_ms, to_ms) in [(2, 500, 6000), (6, 5000, 14_000), (10, 5000, 6500)] {
        let what = format!("relay {relay} from {from_ms} to {to_ms} ms");
        let mut net = setting.net(object);
        let silent = from_ms * 1_000_000..to_ms * 1_000_000;
        let over = silent.end;
        net.fault =
            Box::new(move |flight, _| flight.from == relay && silent.contains(&flight.start));
        start(&mut net, setting.plan(1), None);
        let log = fetched(&mut net, object, &what);
        let (rounds, after) = (rounds(&log), answers_before(&log, over));
        let dead = usize::from(group_of(&setting, relay));
        let shares: Vec<usize> = rounds.iter().map(|round| round[dead]).collect();
        // It was left out of a round, and takes part in a later segment.
        let out = rounds
            .iter()
            .any(|all| all[dead] == 0 && all.iter().sum::<usize>() > 100);
        assert!(out, "{what}: {rounds:?}");
        let back = shares[after + 1..].iter().take(3).any(|&share| share > 200);
        assert!(back, "{what}: {after} {rounds:?}");
    }
}

/// A group that comes and goes is tried again more rarely each time, and never costs the transfer.
#[test]
fn a_group_that_comes_and_goes_is_tried_more_rarely() {
    let object = object(1_200_000, 24);
    let setting = setting(Tagging::Segments);
    let mut net = setting.net(object);
    // Packets by relay 4 are lost, questions pass.
    net.fault = Box::new(|flight, _| flight.from == 4 && flight.psdu[0] & 0x80 == 0);
    start(&mut net, setting.plan(1), None);
    let log = fetched(&mut net, object, "relay 4");
    let rounds = rounds(&log);
    let segments: Vec<&[usize; 3]> = rounds
        .iter()
        .filter(|all| all.iter().sum::<usize>() > 600)
        .collect();
    let tried = segments.iter().filter(|all| all[0] > 200).count();
    println!("{tried} of {} segments: {rounds:?}", segments.len());
    assert!(
        segments.len() >= 11 && (2..=5).contains(&tried),
        "{rounds:?}"
    );
}
