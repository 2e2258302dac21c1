//! Goal: transfers deliver the exact object in the predicted time. Method: an ideal synchronous air (`common`), from
//! lossless to faulty.

use crate::common;

use chappe_core::{Channel, Duration};
use chappe_p3::{Ended, Profile, setup_time};
use common::faults::power_fails;
use common::{DESTINATION, SOURCE, Setting, finish, object, start, transfer};

const CYCLE: Duration = Profile::PAPER.cycle(118);

/// Within 5 % of the line that the paper's Table III lies on.
fn assert_on_line(duration: Duration, transmissions: u64, rounds: u64, what: &str) {
    let line = Profile::PAPER.predicted(transmissions, rounds);
    let ratio = duration.as_secs_f64() / line.as_secs_f64();
    println!(
        "{what}: {transmissions} packets, {rounds} rounds, {duration}, {ratio:.4} of the line"
    );
    // The paper's routes have 4.35 hops on average; two hops turn faster than any line through them says.
    let tolerance = if what.starts_with("2 hops") {
        0.07
    } else {
        0.05
    };
    assert!((ratio - 1.0).abs() < tolerance, "{what}: {ratio}");
}

#[test]
fn a_lossless_transfer_takes_the_predicted_time() {
    let object = object(59_000, 1);
    for hops in 2..=6 {
        for paths in [4, 5, 7, 10]
            .into_iter()
            .filter(|paths| paths * (hops - 1) <= 35)
        {
            let setting = Setting {
                hops,
                paths,
                ..Setting::default()
            };
            let (mut net, duration) = transfer(&setting, object);
            let counts = net.source(SOURCE).counts();
            assert_eq!((counts.data, counts.ctrl, counts.rounds), (500, 2, 1));
            assert_eq!(net.collisions, 0);
            assert_eq!(net.source(SOURCE).ended(), Some(Ended::Complete));
            // Set-up, 500 packets, the first CTRL: its end at the destination, `hops - 1` stages later.
            let gap = Profile::PAPER.gap();
            let setup = setup_time(&setting.config, &setting.plan(1));
            let last = CYCLE * (501 + hops as u64 - 1);
            assert_eq!(duration, (setup + last).saturating_sub(gap));
            assert_on_line(
                duration,
                500,
                1,
                &format!("{hops} hops, {paths} paths, no loss"),
            );
        }
    }
}

/// Losses for which the rounds of the paper's variant resemble those of Table III. The line holds where a round
/// costs what the paper's does; ours turns faster, so the gap to the line grows with the rounds.
#[test]
fn lossy_transfers_are_correct_and_near_the_predicted_time() {
    let object = object(59_000, 2);
    let mut rounds_seen = Vec::new();
    for (hops, paths) in [(2, 4), (3, 6), (4, 6), (5, 7), (6, 7), (4, 10)] {
        for seed in 0..4 {
            let prr = |channel: Channel, from: usize, to: usize| {
                // Each link has its own quality on each channel, between 0.75 and 1.
                let mixed = (usize::from(channel.0) * 31 + from * 17 + to * 7) % 26;
                0.75 + mixed as f64 / 100.0
            };
            let setting = Setting {
                hops,
                paths,
                seed,
                prr,
                ..Setting::default()
            };
            let (mut net, duration) = transfer(&setting, object);
            let counts = net.source(SOURCE).counts();
            let what = format!("{hops} hops, {paths} paths, seed {seed}, losses");
            assert_on_line(duration, counts.data, counts.rounds, &what);
            assert_eq!(net.source(SOURCE).ended(), Some(Ended::Complete), "{what}");
            assert_eq!(counts.single_rounds, 0);
            rounds_seen.push(counts.rounds);
        }
    }
    assert!(
        rounds_seen.iter().any(|&rounds| rounds >= 4),
        "{rounds_seen:?}"
    );
}

#[test]
fn objects_of_any_size_arrive() {
    for (len, hops, paths) in [
        (0, 3, 4),
        (1, 2, 6),
        (117, 1, 1),
        (118, 3, 4),
        (119, 6, 5),
        (107_617, 4, 4),
    ] {
        let lossy = |_, _, _| 0.93;
        let setting = Setting {
            hops,
            paths,
            prr: lossy,
            ..Setting::default()
        };
        transfer(&setting, object(len, 3));
    }
}

/// 250 kB are three segments: missing packets of one travel with the next.
#[test]
fn missing_packets_of_a_segment_join_the_next() {
    let object = object(250_000, 4);
    for seed in 0..3 {
        let setting = Setting {
            prr: |_, _, _| 0.9,
            seed,
            ..Setting::default()
        };
        let (mut net, duration) = transfer(&setting, object);
        let counts = net.source(SOURCE).counts();
        let goodput = 250_000.0 * 8.0 / duration.as_secs_f64();
        println!("250 kB, seed {seed}: {counts:?}, {goodput:.0} bit/s");
        assert!(counts.rounds >= 4 && counts.rounds <= 9, "{counts:?}");
        assert!(counts.data > 2119);
    }
    let small = Setting {
        config: chappe_p3::Config {
            segment: 64,
            ..Default::default()
        },
        ..Setting::default()
    };
    let (mut net, _) = transfer(&small, common::object(59_000, 5));
    assert_eq!(net.source(SOURCE).counts().rounds, 8);
}

/// 8.3 MB are more packets than 16 bits can number, sent at 88 octets to have more of them.
#[test]
fn packet_numbers_wrap() {
    let setting = Setting {
        hops: 2,
        paths: 2,
        payload: 88,
        prr: |_, _, _| 0.95,
        ..Setting::default()
    };
    let object = object(66_000 * 88, 6);
    let (mut net, duration) = transfer(&setting, object);
    let counts = net.source(SOURCE).counts();
    println!("66,000 packets: {counts:?}, {duration}");
    assert!(counts.data >= 66_000);
}

#[test]
fn a_group_survives_the_loss_of_a_relay() {
    let object = object(59_000, 7);
    for relay in [2, 3, 4] {
        let setting = Setting {
            prr: |_, _, _| 0.97,
            ..Setting::default()
        };
        let mut net = setting.net(object);
        start(&mut net, setting.plan(1), None);
        net.run(Duration::from_millis(900), |_| false);
        net.kill(relay);
        net.run(Duration::from_millis(700), |_| false);
        // It restarts without memory and waits for a plan that does not come.
        net.place(relay, setting.fresh(relay, object));
        let progress = finish(&mut net, Duration::from_secs(60));
        assert!(progress.completed.is_some(), "relay {relay}: {progress:?}");
        assert!(net.destination(DESTINATION).store().bytes == object);
        assert_eq!(net.relay(relay).forwarded(), 0);
    }
}

/// A whole group of one stage fails: all relays become one group.
#[test]
fn a_dead_group_halves_the_rate() {
    let object = object(59_000, 8);
    let setting = Setting::default();
    let plan = setting.plan(1);
    let mut net = setting.net(object);
    start(&mut net, plan, None);
    net.run(Duration::from_millis(100), |_| false);
    for part in plan
        .relays()
        .iter()
        .filter(|part| part.stage == 2 && part.group == 1)
    {
        net.kill(part.node.into());
    }
    let progress = finish(&mut net, Duration::from_secs(60));
    let counts = net.source(SOURCE).counts();
    assert!(progress.completed.is_some(), "{progress:?}");
    assert!(net.destination(DESTINATION).store().bytes == object);
    println!("one group of a stage dead: {counts:?}");
    assert!(
        counts.rounds <= 4 && counts.single_rounds >= 1,
        "{counts:?}"
    );
    assert!(counts.data <= 760, "{counts:?}");
}

/// Each group is cut at another stage: two groups deliver nothing, one group delivers everything.
#[test]
fn groups_cut_at_different_stages_work_as_one() {
    let object = object(59_000, 9);
    let setting = Setting::default();
    let plan = setting.plan(1);
    let mut net = setting.net(object);
    start(&mut net, plan, None);
    net.run(Duration::from_millis(60), |_| false);
    for part in plan
        .relays()
        .iter()
        .filter(|part| (part.stage, part.group) == (1, 0) || (part.stage, part.group) == (3, 1))
    {
        net.kill(part.node.into());
    }
    let progress = finish(&mut net, Duration::from_secs(60));
    let counts = net.source(SOURCE).counts();
    println!("groups cut at two stages: {counts:?}");
    assert!(progress.completed.is_some(), "{progress:?} {counts:?}");
    assert!(net.destination(DESTINATION).store().bytes == object);
}

/// The first `k` CTRL (or NACK) frames of the last hop are lost: the source asks again, and gives up after nine.
#[test]
fn lost_questions_and_answers_are_repeated() {
    let object = object(20_000, 10);
    for kind in [0xc0, 0xa0] {
        for k in [1, 2, 5, 8, 1000] {
            let setting = Setting::default();
            let mut net = setting.net(object);
            let to = if kind == 0xc0 { DESTINATION } else { SOURCE };
            let (mut last, mut starts) = (0, 0);
            net.fault = Box::new(move |flight, receiver| {
                if flight.psdu[0] != kind || receiver != to {
                    return false;
                }
                // Both copies of a CTRL, a cycle apart, count as one question.
                starts += u32::from(flight.start > last + 15_000_000 || last == 0);
                last = flight.start;
                starts <= k
            });
            start(&mut net, setting.plan(1), None);
            let progress = finish(&mut net, Duration::from_secs(30));
            let ended = net.source(SOURCE).ended();
            let counts = net.source(SOURCE).counts();
            if k < 9 {
                assert_eq!(ended, Some(Ended::Complete), "{kind:x} {k} {counts:?}");
            } else {
                assert_eq!(ended, Some(Ended::NoReply), "{kind:x} {k}");
            }
            // The destination can be complete without its source learning it. Without a CTRL it does not know the length.
            let complete = progress.completed.is_some();
            assert_eq!(complete, k < 9 || kind == 0xa0, "{kind:x} {k}");
            if complete {
                assert!(net.destination(DESTINATION).store().bytes == object);
            }
            assert_eq!(progress.packets, 170, "all packets are there in any case");
        }
    }
}

#[test]
fn a_restarted_destination_resumes_from_its_checkpoint() {
    for (len, at_ms) in [(59_000, 1200), (250_000, 9000), (250_000, 300)] {
        let setting = Setting {
            prr: |_, _, _| 0.92,
            ..Setting::default()
        };
        power_fails(&setting, len, Duration::from_millis(at_ms));
    }
}

#[test]
fn a_lost_source_leaves_an_incomplete_object() {
    let object = object(59_000, 12);
    let setting = Setting::default();
    let mut net = setting.net(object);
    start(&mut net, setting.plan(1), None);
    net.run(Duration::from_millis(1000), |_| false);
    net.kill(SOURCE);
    net.run(Duration::from_secs(20), |_| false);
    let destination = net.destination(DESTINATION);
    assert_eq!(destination.state(), "incomplete");
    let progress = destination.progress();
    let packets = progress.packets as usize;
    assert!((150..300).contains(&packets), "{progress:?}");
    assert!(destination.store().bytes[..packets * 118] == object[..packets * 118]);
    assert_eq!(net.relay(2).state(), "waking");
}

/// Clocks are off by up to 40 ppm; relays take their time from the frames.
#[test]
fn transfers_tolerate_clock_drift() {
    let object = object(59_000, 13);
    for seed in 0..6 {
        let setting = Setting {
            hops: 6,
            paths: 7,
            ..Setting::default()
        };
        let mut net = setting.net(object);
        net.drift(40.0, seed);
        start(&mut net, setting.plan(1), None);
        let progress = finish(&mut net, Duration::from_secs(30));
        assert!(progress.completed.is_some(), "{progress:?}");
        assert!(net.destination(DESTINATION).store().bytes == object);
        assert_eq!((net.collisions, net.source(SOURCE).counts().rounds), (0, 1));
    }
}

/// A whole channel is jammed in mid-transfer: incomplete, with what arrived before.
#[test]
fn a_jammed_channel_ends_in_an_incomplete_object() {
    let object = object(59_000, 14);
    let setting = Setting {
        hops: 5,
        ..Setting::default()
    };
    let mut net = setting.net(object);
    net.fault = Box::new(|flight, _| flight.channel == Channel(20) && flight.start > 1_000_000_000);
    start(&mut net, setting.plan(1), None);
    let progress = finish(&mut net, Duration::from_secs(60));
    assert!(
        progress.completed.is_none() && progress.packets > 100,
        "{progress:?}"
    );
    assert_eq!(net.source(SOURCE).ended(), Some(Ended::NoReply));
}

/// Idle nodes sleep through the transfer of others, and the flood reaches nodes outside the plan.
#[test]
fn nodes_outside_the_plan_sleep() {
    let object = object(59_000, 15);
    let wide = Setting {
        paths: 7,
        ..Setting::default()
    };
    let narrow = Setting {
        paths: 5,
        ..Setting::default()
    };
    let mut net = wide.net(object);
    start(&mut net, narrow.plan(1), None);
    net.run(Duration::from_millis(500), |_| false);
    let last = wide.nodes() - 1;
    assert_eq!(net.relay(last).state(), "resting");
    assert_eq!(net.relay(2).state(), "forward");
    let progress = finish(&mut net, Duration::from_secs(30));
    assert!(progress.completed.is_some());
    assert_eq!(net.relay(last).state(), "waking");
}

/// PIP has one path: at best half the rate of P³, with the same rounds.
#[test]
fn pip_sends_in_every_second_cycle() {
    let object = object(59_000, 16);
    for hops in 2..=6 {
        let setting = Setting {
            hops,
            paths: 1,
            ..Setting::default()
        };
        let (mut net, duration) = transfer(&setting, object);
        let counts = net.source(SOURCE).counts();
        assert_eq!(
            (counts.data, counts.ctrl, counts.single_rounds),
            (500, 1, 1)
        );
        // 500 packets in every second cycle, and CTRL through all stages.
        let setup = setup_time(&setting.config, &setting.plan(1));
        let last = CYCLE * (2 * 500 + hops as u64);
        assert_eq!(
            duration,
            (setup + last).saturating_sub(Profile::PAPER.gap())
        );
        let goodput = 59_000.0 * 8.0 / duration.as_secs_f64();
        println!("PIP, {hops} hops, no loss: {goodput:.0} bit/s");
        assert!(goodput > 99_000.0 && goodput < 104_034.0);
    }
    let setting = Setting {
        hops: 5,
        paths: 1,
        prr: |_, _, _| 0.95,
        ..Setting::default()
    };
    let (mut net, duration) = transfer(&setting, object);
    println!(
        "PIP, 5 hops, 5 % per hop: {:?}, {duration}",
        net.source(SOURCE).counts()
    );
}

/// A link that is dead on the channel of its hop stops PIP; the channel-aware choice finds another way.
#[test]
fn pip_needs_every_link_on_its_channel() {
    use chappe_p3::planner::{PathSet, best_path};
    let object = object(20_000, 17);
    let prr = |channel: Channel, from: usize, to: usize| match (from.min(to), from.max(to)) {
        (2, 3) if channel != Channel(25) && channel != Channel(26) => 0.0,
        _ => 0.98,
    };
    let setting = Setting {
        hops: 4,
        paths: 1,
        prr,
        ..Setting::default()
    };
    let mut outcomes = Vec::new();
    let found = PathSet {
        paths: setting.path_set(),
        proven: true,
    };
    let choice = best_path(&found, SOURCE, DESTINATION, 170, prr).unwrap();
    for channels in [chappe_p3::ChannelOrder::default(), choice.channels] {
        let mut net = setting.net(object);
        start(&mut net, setting.plan_on(1, channels), None);
        let progress = finish(&mut net, Duration::from_secs(60));
        outcomes.push(progress.completed.is_some());
    }
    assert_eq!(outcomes, [false, true]);
}
