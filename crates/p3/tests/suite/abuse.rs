//! Goal: under attacks and faults, the object is correct or the transfer is reported incomplete. Method: the improved
//! variant in an ideal synchronous air, with an attacker who knows the protocol and hears everything, but has no key;
//! with relays that fail and restart, jammed channels and lost control frames.

use crate::common;

use chappe_core::{Channel, DropReason, Duration, Purpose, Seed};
use chappe_p3::config::CHANNELS;
use chappe_p3::{Config, Ended, Key};
use common::faults::{assert_right, power_fails, under_faults};
use common::{Bytes, CAPS, DESTINATION, Flight, Net, Node, SOURCE, Setting, finish, object, start};

const KEY: Key = Key::new(*b"not a secret key");

fn setting(groups: u8) -> Setting {
    Setting {
        config: Config::improved(Some(KEY)),
        groups,
        paths: 2 * usize::from(groups),
        ..Setting::default()
    }
}

/// All frames that the nodes sent in a transfer.
fn overheard(setting: &Setting, transfer: u8, object: Bytes) -> Vec<Flight> {
    let mut net = setting.net(object);
    start(&mut net, setting.plan(transfer), None);
    assert!(
        finish(&mut net, Duration::from_secs(20))
            .completed
            .is_some()
    );
    net.log.borrow().clone()
}

/// Frames that all nodes together dropped for one reason.
fn drops(net: &mut Net, setting: &Setting, why: DropReason) -> u64 {
    let relays = (2..setting.nodes())
        .map(|node| net.relay(node).drops().of(why))
        .sum::<u64>();
    relays + net.source(SOURCE).drops().of(why) + net.destination(DESTINATION).drops().of(why)
}

/// A forged plan: every field is valid, but its maker has another key.
#[test]
fn frames_of_other_networks_wake_no_node() {
    let setting = setting(2);
    let object = object(6_000, 1);
    let stranger = Setting {
        config: Config::improved(Some(Key::new([0; 16]))),
        ..self::setting(2)
    };
    let plan = overheard(&stranger, 9, object)[0].psdu.clone();
    let mut net = setting.net(object);
    for node in [2, 5, 9] {
        net.inject(node, Channel(26), plan.clone());
        net.run(Duration::from_millis(50), |_| false);
    }
    assert!((2..setting.nodes()).all(|node| net.relay(node).state() == "waking"));
    assert!(drops(&mut net, &setting, DropReason::Unauthentic) > 5);
    // Nor does a relay leave the transfer that it serves.
    start(&mut net, setting.plan(1), None);
    net.run(Duration::from_millis(100), |_| false);
    for node in 2..setting.nodes() {
        for channel in CHANNELS {
            net.inject(node, channel, plan.clone());
        }
        net.run(Duration::from_millis(7), |_| false);
    }
    assert!(
        finish(&mut net, Duration::from_secs(20))
            .completed
            .is_some()
    );
    assert!(net.destination(DESTINATION).store().bytes == object);
}

/// A frame that an attacker makes of one that it heard.
fn bend(heard: &[u8], random: &mut chappe_core::Stream) -> Vec<u8> {
    let mut psdu = heard.to_vec();
    match random.below(4) {
        // Other contents under the same header.
        0 => random.fill(&mut psdu[7..]),
        // Another packet number, or end, or round.
        1 => psdu[1] = psdu[1].wrapping_add(1 + random.below(7) as u8),
        // The other group, complete, last.
        2 => psdu[3] ^= 1 << random.below(5),
        _ => {
            let at = random.below(psdu.len() as u64) as usize;
            psdu[at] ^= 1 << random.below(8);
        }
    }
    psdu
}

/// During a transfer, modified frames arrive in place of genuine ones.
#[test]
fn forged_frames_do_not_corrupt_the_object() {
    let (mut complete, mut found) = (0, 0);
    for seed in 0..40 {
        let groups = 2 + (seed % 2) as u8;
        let setting = Setting {
            seed,
            ..setting(groups)
        };
        let object = object(20_000, seed);
        let mut net = setting.net(object);
        let mut random = Seed(seed).stream(Purpose::Interference);
        let share = [0.002, 0.02, 0.2][seed as usize % 3];
        net.tamper = Box::new(move |flight, _| {
            let forges = random.chance(share);
            forges.then(|| bend(&flight.psdu, &mut random))
        });
        start(&mut net, setting.plan(1), None);
        net.run(Duration::from_secs(60), |net| {
            net.source(SOURCE).ended().is_some() && net.destination(DESTINATION).is_idle()
        });
        let what = format!("seed {seed}");
        assert_right(&mut net, object, 118, &what);
        let done = net.destination(DESTINATION).progress().completed.is_some();
        let said = net.source(SOURCE).ended();
        assert!(said != Some(Ended::Complete) || done, "{what}");
        complete += u32::from(done);
        found += drops(&mut net, &setting, DropReason::Unauthentic);
    }
    println!("{complete} of 40 complete, {found} forged frames found");
    assert!(complete >= 30 && found > 500, "{complete} {found}");
}

/// All frames of an earlier transfer are replayed into a later one, at random places and times.
#[test]
fn replayed_frames_are_refused() {
    let setting = setting(2);
    let (old, new) = (object(20_000, 1), object(20_000, 2));
    // The same transfer number, a later session.
    let frames = overheard(&setting, 1, old);
    let mut net = setting.net(new);
    let mut random = Seed(1).stream(Purpose::Interference);
    start(&mut net, setting.plan(5), None);
    net.run(Duration::from_secs(20), |net| {
        if random.chance(0.03) {
            let frame = &frames[random.below(frames.len() as u64) as usize];
            net.inject(frame.from, frame.channel, frame.psdu.clone());
        }
        net.source(SOURCE).ended().is_some() && net.destination(DESTINATION).is_idle()
    });
    assert!(net.destination(DESTINATION).progress().completed.is_some());
    assert!(net.destination(DESTINATION).store().bytes == new);
    // The plan of the old session wakes no node afterwards, unless a node has forgotten the new one.
    net.run(Duration::from_secs(1), |_| false);
    let plan = &frames[0];
    for node in [2, 4] {
        net.inject(node, plan.channel, plan.psdu.clone());
        net.run(Duration::from_millis(100), |_| false);
    }
    assert!((2..setting.nodes()).all(|node| net.relay(node).state() == "waking"));
    let session = net.relay(2).session();
    assert_eq!(session, 5);
    let config = setting.config.clone();
    let forgetful = chappe_p3::Relay::new(config.clone(), &CAPS, 3).unwrap();
    let mindful = chappe_p3::Relay::new(config, &CAPS, 4)
        .unwrap()
        .with_session(session);
    net.place(3, Node::Relay(forgetful));
    net.place(4, Node::Relay(mindful));
    net.inject(2, plan.channel, plan.psdu.clone());
    net.run(Duration::from_millis(30), |_| false);
    assert_ne!(net.relay(3).state(), "waking");
    assert_eq!(net.relay(4).state(), "waking");
}

/// Goal: a plan with another slot is refused, and the flood goes on with the genuine ones. Method: half of all plans that arrive, at any
/// hop, have a bent slot; floods of two to six hops, one attempt each.
#[test]
fn plans_with_bent_slots_are_refused() {
    let (mut complete, mut refused) = (0, 0);
    for seed in 0..60 {
        let setting = Setting {
            seed,
            hops: 2 + seed as usize % 5,
            ..setting(2 + (seed % 2) as u8)
        };
        let object = object(20_000, seed);
        let mut net = setting.net(object);
        let mut random = Seed(seed).stream(Purpose::Interference);
        net.tamper = Box::new(move |flight, _| {
            let bends = flight.psdu[0] == 0xb0 && random.chance(0.5);
            let mut psdu = flight.psdu.clone();
            psdu[2] ^= 1 + random.below(63) as u8;
            bends.then_some(psdu)
        });
        start(&mut net, setting.plan(1), None);
        let progress = finish(&mut net, Duration::from_secs(20));
        complete += u32::from(progress.completed.is_some());
        refused += drops(&mut net, &setting, DropReason::Unauthentic);
        assert_right(&mut net, object, 118, &format!("seed {seed}"));
    }
    println!("{complete} of 60 complete, {refused} plans refused");
    assert!(complete >= 58 && refused > 500, "{complete} {refused}");
}

/// One forged DATA frame in the last hop corrupts the object without a key, and costs one packet with it.
#[test]
fn without_a_key_a_forged_frame_corrupts_the_object() {
    let object = object(20_000, 3);
    for key in [None, Some(KEY)] {
        let setting = Setting {
            config: Config::improved(key),
            ..setting(2)
        };
        let mut net = setting.net(object);
        net.tamper = Box::new(move |flight, receiver| {
            let aimed =
                receiver == DESTINATION && flight.psdu[..1] != [0xc0] && flight.psdu[1] == 7;
            let mut forged = flight.psdu.clone();
            *forged.get_mut(60)? ^= 1;
            aimed.then_some(forged)
        });
        start(&mut net, setting.plan(1), None);
        let progress = finish(&mut net, Duration::from_secs(20));
        assert!(progress.completed.is_some());
        let right = net.destination(DESTINATION).store().bytes == object;
        assert_eq!(right, key.is_some());
    }
}

#[test]
fn transfers_tolerate_clock_drift() {
    let object = object(250_000, 13);
    for seed in 0..4 {
        let setting = Setting {
            hops: 6,
            paths: 6,
            ..setting(2 + (seed % 2) as u8)
        };
        let mut net = setting.net(object);
        net.drift(40.0, seed);
        start(&mut net, setting.plan(1), None);
        let progress = finish(&mut net, Duration::from_secs(30));
        assert!(progress.completed.is_some(), "{progress:?}");
        assert!(net.destination(DESTINATION).store().bytes == object);
        assert_eq!((net.collisions, net.source(SOURCE).counts().rounds), (0, 3));
    }
}

#[test]
fn a_jammed_channel_ends_in_an_incomplete_object() {
    let object = object(59_000, 14);
    let setting = Setting {
        hops: 5,
        ..setting(3)
    };
    let mut net = setting.net(object);
    net.fault = Box::new(|flight, _| flight.channel == Channel(20) && flight.start > 1_000_000_000);
    start(&mut net, setting.plan(1), None);
    let progress = finish(&mut net, Duration::from_secs(60));
    assert!(
        progress.completed.is_none() && progress.packets > 100,
        "{progress:?}"
    );
    assert_right(&mut net, object, 118, "jammed");
    assert_eq!(net.source(SOURCE).ended(), Some(Ended::NoReply));
    assert_eq!(net.destination(DESTINATION).state(), "incomplete");
}

/// The first `k` CTRL or NACK frames of the last hop are lost: the source asks again, and gives up after nine.
#[test]
fn lost_questions_and_answers_are_repeated() {
    let object = object(20_000, 10);
    for (kind, k) in [
        (0xc0, 1),
        (0xc0, 8),
        (0xc0, 1000),
        (0xa0, 1),
        (0xa0, 8),
        (0xa0, 1000),
    ] {
        for groups in [2, 3] {
            let setting = setting(groups);
            let mut net = setting.net(object);
            let to = if kind == 0xc0 { DESTINATION } else { SOURCE };
            let (mut last, mut starts) = (0, 0);
            net.fault = Box::new(move |flight, receiver| {
                if flight.psdu[0] != kind || receiver != to {
                    return false;
                }
                // All copies of a CTRL, a cycle apart, count as one question; so do head and whole of a frame.
                starts += u32::from(flight.start > last + 15_000_000 || last == 0);
                last = flight.start;
                starts <= k
            });
            start(&mut net, setting.plan(1), None);
            let progress = finish(&mut net, Duration::from_secs(30));
            let (ended, counts) = (net.source(SOURCE).ended(), net.source(SOURCE).counts());
            let what = format!("{kind:x} {k} {groups} {counts:?}");
            let expected = if k < 9 {
                Ended::Complete
            } else {
                Ended::NoReply
            };
            assert_eq!(ended, Some(expected), "{what}");
            let complete = progress.completed.is_some();
            assert_eq!(complete, k < 9 || kind == 0xa0, "{what}");
            assert_eq!(progress.packets, 170, "all packets are there in any case");
            assert_right(&mut net, object, 118, &what);
        }
    }
}

/// The destination restarts with its checkpoint and resumes in a new session.
#[test]
fn a_restarted_destination_resumes_from_its_checkpoint() {
    for (len, at_ms) in [
        (59_000, 1200),
        (250_000, 6000),
        (250_000, 300),
        (59_000, 2190),
    ] {
        let setting = Setting {
            prr: |_, _, _| 0.95,
            ..setting(3)
        };
        power_fails(&setting, len, Duration::from_millis(at_ms));
    }
}

/// Losses, failures, restarts, jammers and drift at once: the object is correct, or reported incomplete.
#[test]
fn faults_never_corrupt_an_object() {
    let (complete, incomplete) = under_faults(0..120, (32, 5), |seed, random| Setting {
        repair: random.below(9) as u8,
        ..setting(1 + (seed % 3) as u8)
    });
    assert!(complete > 25 && incomplete > 10, "{complete} {incomplete}");
}
