//! Goal: packets that are authenticated by blocks arrive right and fast, and a forger wins no more than the time of two
//! segments. Method: the improved variant with the tags of packets in the CTRL, in an ideal synchronous air, lossless and lossy,
//! with forgers who hear everything and have no key, and with restarts.

use crate::common;

use chappe_core::{DropReason, Duration, Purpose, Seed};
use chappe_p3::{Config, Destination, Ended, Key, Plan, Tagging, setup_time};
use common::faults::power_fails;
use common::{
    CAPS, DESTINATION, Growing, SOURCE, Setting, finish, object, start, transfer, with_gateway,
};

const KEY: Key = Key::new(*b"not a secret key");

fn setting(groups: u8) -> Setting {
    let config = Config::improved(Some(KEY)).tagged_by(Tagging::Segments);
    Setting {
        paths: 2 * usize::from(groups),
        ..Setting::improved(config, groups)
    }
}

#[test]
fn a_lossless_transfer_takes_the_predicted_time() {
    for (octets, packets, rounds, least) in [
        (59_000, 484, 1, 218_000.0),
        (1_000_000, 8197, 10, 224_500.0),
    ] {
        let object = object(octets, 1);
        for hops in [2, 4, 6] {
            let setting = Setting { hops, ..setting(3) };
            assert_eq!(setting.payload, 122);
            let (mut net, duration) = transfer(&setting, object);
            let counts = net.source(SOURCE).counts();
            assert_eq!((counts.data, counts.rounds), (packets, rounds));
            assert_eq!(net.collisions, 0);
            let rate = octets as f64 * 8.0 / duration.as_secs_f64();
            println!("{octets} octets, {hops} hops: {rate:.0} bit/s");
            assert!(rate > least, "{rate}");
            let plan = setting.plan(1);
            assert!(plan.tags_segments());
            if rounds == 1 {
                let whole = setup_time(&setting.config, &plan) + plan.cycle() * (packets + 2);
                let last = plan.hop_time(&setting.config) * hops as u64;
                let gap = setting.config.profile.gap();
                assert_eq!(duration, whole + last.saturating_sub(gap));
            }
        }
    }
}

/// Losses, of packets, combinations, questions and answers: everything arrives right, whatever the size.
#[test]
fn lossy_transfers_are_correct() {
    for (len, payload) in [
        (0, 122),
        (1, 122),
        (122, 122),
        (123, 122),
        (4_000, 25),
        (20_000, 60),
        (59_000, 122),
        (250_000, 122),
    ] {
        for prr in [0.99, 0.93, 0.85] {
            for groups in 1..=3 {
                let seed = u64::from(groups) + len as u64;
                let prr = match prr {
                    0.99 => |_, _, _| 0.99,
                    0.93 => |_, _, _| 0.93,
                    _ => |_: chappe_core::Channel, _: usize, _: usize| 0.85,
                };
                let setting = Setting {
                    payload,
                    seed,
                    prr,
                    ..setting(groups)
                };
                let (mut net, _) = transfer(&setting, object(len, seed));
                assert_eq!(net.source(SOURCE).ended(), Some(Ended::Complete));
                assert!(!net.destination(DESTINATION).meets_forgers());
            }
        }
    }
}

/// Without a CTRL nothing is proven, so nothing is complete. Method: the first `k` questions of the last hop are lost.
#[test]
fn lost_questions_are_repeated_and_nothing_is_complete_before() {
    let object = object(20_000, 10);
    for k in [1, 8, 1000] {
        let setting = setting(3);
        let mut net = setting.net(object);
        let (mut last, mut starts) = (0, 0);
        net.fault = Box::new(move |flight, receiver| {
            if flight.psdu[0] != 0xc0 || receiver != DESTINATION {
                return false;
            }
            starts += u32::from(flight.start > last + 15_000_000 || last == 0);
            last = flight.start;
            starts <= k
        });
        start(&mut net, setting.plan(1), None);
        net.run(Duration::from_secs(5), |net| {
            net.source(SOURCE).state() == "waiting"
        });
        let progress = net.destination(DESTINATION).progress();
        assert_eq!((progress.packets, progress.first_missing), (164, 0));
        let progress = finish(&mut net, Duration::from_secs(30));
        assert_eq!(progress.completed.is_some(), k < 9);
        let right = net.destination(DESTINATION).store().bytes == object;
        assert!(right || k >= 9);
    }
}

/// The destination restarts with its checkpoint. What it had stored without a proof is proven in the new session.
#[test]
fn a_restarted_destination_resumes_from_its_checkpoint() {
    for (len, at_ms) in [
        (59_000, 1200),
        (250_000, 6000),
        (250_000, 300),
        (59_000, 2090),
    ] {
        let setting = Setting {
            prr: |_, _, _| 0.95,
            ..setting(3)
        };
        power_fails(&setting, len, Duration::from_millis(at_ms));
    }
}

/// Whether a frame is DATA or CODED: its header is the short one.
fn is_packet(psdu: &[u8]) -> bool {
    psdu[0] & 0x80 == 0
}

/// One forged packet in a transfer costs one more round of its block, not the attempt. Method: the destination hears each of 200 forged
/// packets, one in each transfer; among them plain ones, combinations, and numbers that the segment does not have.
#[test]
fn one_forged_packet_costs_a_block() {
    let object = object(20_000, 3);
    let mut rounds = [0; 4];
    for which in 0..200u32 {
        let setting = setting(2 + (which % 2) as u8);
        let mut net = with_gateway(&setting, setting.plan(1), object);
        let mut random = Seed(which.into()).stream(Purpose::Interference);
        let mut heard = 0;
        let mut last = 0;
        net.tamper = Box::new(move |flight, receiver| {
            if receiver != DESTINATION || !is_packet(&flight.psdu) || flight.start == last {
                return None;
            }
            last = flight.start;
            heard += 1;
            (heard == which + 1).then(|| {
                let mut psdu = flight.psdu.clone();
                match which % 3 {
                    0 => random.fill(&mut psdu[3..]),
                    1 => psdu[60] ^= 1,
                    // The number of a packet that comes later, or never.
                    _ => psdu[1] = psdu[1].wrapping_add(1 + random.below(250) as u8),
                }
                psdu
            })
        });
        net.run(Duration::from_secs(20), |net| {
            net.source(SOURCE).ended().is_some() && net.gateway(DESTINATION).is_idle()
        });
        let counts = net.source(SOURCE).counts();
        let gateway = net.gateway(DESTINATION);
        assert!(gateway.progress().completed.is_some(), "{which}");
        assert_eq!(gateway.attempts(), 1, "{which}");
        assert!(gateway.destination().store().bytes == object, "{which}");
        // 164 packets in 25 blocks of seven at most; with the block, 6 that a wrong combination solved.
        assert!(
            counts.data <= 164 && counts.coded <= 2 + 16,
            "{which}: {counts:?}"
        );
        rounds[counts.rounds.min(3) as usize] += 1;
    }
    println!("rounds: {rounds:?}");
    assert!(rounds[2] > 100, "{rounds:?}");
}

/// A forger who bends a share of all frames for good: the gateway goes on with a tag in each frame, and the object
/// arrives as without blocks. Method: shares up to a fifth, objects of one and of several segments.
#[test]
fn with_forgers_about_each_frame_gets_its_tag() {
    let (mut complete, mut wary, mut found) = (0, 0, 0);
    for seed in 0..30 {
        let setting = Setting {
            seed,
            ..setting(2 + (seed % 2) as u8)
        };
        let object = object(if seed % 5 == 0 { 250_000 } else { 40_000 }, seed);
        let mut net = with_gateway(&setting, setting.plan(1), object);
        let mut random = Seed(seed).stream(Purpose::Interference);
        let share = [0.002, 0.02, 0.1][seed as usize % 3];
        net.tamper = Box::new(move |flight, _| {
            random.chance(share).then(|| {
                let mut psdu = flight.psdu.clone();
                let at = random.below(psdu.len() as u64) as usize;
                psdu[at] ^= 1 << random.below(8);
                psdu
            })
        });
        net.run(Duration::from_secs(120), |net| {
            net.gateway(DESTINATION).is_idle()
        });
        let gateway = net.gateway(DESTINATION);
        let (attempts, done) = (gateway.attempts(), gateway.progress().completed.is_some());
        let destination = gateway.destination();
        let tagged = destination.plan().is_some_and(|plan| !plan.tags_segments());
        assert!(!destination.store().finished || destination.store().bytes == object);
        assert_eq!(done, destination.store().finished);
        // Fewer may leave the second question's blocks alone.
        if share >= 0.1 {
            assert!(tagged && attempts >= 2, "seed {seed}: {attempts}");
        }
        complete += u32::from(done);
        wary += u32::from(tagged);
        found += destination.drops().of(DropReason::Unauthentic);
    }
    println!("{complete} of 30 complete, {wary} with tags in frames, {found} frames found");
    assert!(complete == 30 && wary >= 15 && found > 100);
}

/// Goal: the destination does not ask for all packets again where the tag of one block is bent and relays accept the CTRL. Method: the first
/// copies of the CTRL are bent in their tags, and at each other place.
#[test]
fn bent_tags_make_no_block_fail() {
    let object = object(20_000, 4);
    let setting = setting(3);
    for at in (7..125).step_by(3) {
        let mut net = setting.net(object);
        net.tamper = Box::new(move |flight, receiver| {
            let aimed = receiver == DESTINATION && flight.psdu[0] == 0xc0;
            let first = flight.psdu.get(15) == Some(&2);
            (aimed && first).then(|| {
                let mut psdu = flight.psdu.clone();
                psdu[at] ^= 0x10;
                psdu
            })
        });
        start(&mut net, setting.plan(1), None);
        let progress = finish(&mut net, Duration::from_secs(20));
        assert!(progress.completed.is_some());
        let counts = net.source(SOURCE).counts();
        assert_eq!((counts.rounds, counts.data), (1, 164), "octet {at}");
        // The octet behind the tags is padding, which nobody reads.
        let dropped = net.destination(DESTINATION).drops();
        let found = dropped.of(DropReason::Unauthentic) + dropped.of(DropReason::Malformed);
        assert_eq!(found, u64::from(at != 120), "octet {at}");
    }
}

/// Goal: frames of an earlier session prove nothing in a later one. Method: packets of another object, replayed by a stranger.
#[test]
fn replayed_packets_are_no_part_of_the_object() {
    let setting = setting(2);
    let (old, new) = (object(20_000, 1), object(20_000, 2));
    let mut net = setting.net(old);
    start(&mut net, setting.plan(1), None);
    finish(&mut net, Duration::from_secs(20));
    let frames: Vec<_> = net
        .log
        .borrow()
        .iter()
        .map(|one| one.psdu.clone())
        .collect();
    let mut net = with_gateway(&setting, setting.plan(5), new);
    let mut random = Seed(1).stream(Purpose::Interference);
    net.tamper = Box::new(move |flight, _| {
        let replay = is_packet(&flight.psdu) && random.chance(0.01);
        replay.then(|| frames[random.below(frames.len() as u64) as usize].clone())
    });
    net.run(Duration::from_secs(60), |net| {
        net.gateway(DESTINATION).is_idle()
    });
    assert!(net.gateway(DESTINATION).destination().store().bytes == new);
}

/// A node without a key takes no plan that asks for tags, and a payload whose CTRL has no room for one is refused.
#[test]
fn plans_that_cannot_be_proven_are_refused() {
    let setting = setting(2);
    let open = Config::improved(None);
    let mut node = Destination::new(open, &CAPS, 0, Growing::default()).unwrap();
    let now = chappe_core::Instant::ZERO;
    assert!(node.start(setting.plan(1), None, now).is_err());
    let config = setting.config.clone();
    let mut node = Destination::new(config, &CAPS, 0, Growing::default()).unwrap();
    assert!(node.start(setting.plan(1), None, now).is_ok());
    // With a tag in each frame the frames are as long as before.
    let plan = setting.plan(1);
    let wary = plan.tagged_by_packet();
    assert_eq!((plan.payload(), wary.payload()), (122, 118));
    assert_eq!(
        plan.hop_time(&setting.config),
        wary.hop_time(&setting.config)
    );
    assert_eq!(wary.tagged_by_packet(), wary);
    let mut body = [0; 125];
    for plan in [plan, wary] {
        let body = &mut body[..plan.encoded_len()];
        plan.emit(body).unwrap();
        assert_eq!(Plan::parse(1, body), Ok(plan));
    }
}
