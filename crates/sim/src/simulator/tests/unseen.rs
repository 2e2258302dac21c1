//! Signals that pass a radio unseen change nothing that a node could ask for.

use super::*;
use crate::radio::flag::{BUSY, DOWN};

/// A recorder that wants all frames: with it every signal is examined at every receiver.
struct Examiner;

impl Recorder for Examiner {
    const NODES: bool = false;
}

/// How often a signal passed unseen, at least, and how often it could not.
#[derive(Default)]
struct Seen {
    unseen: u64,
    looks: u64,
}

/// Runs the same wild nodes twice, with and without examining each signal, and compares what radios know: all energies
/// with the plain sum over the frames in flight, and now and then a radio's carrier and reception.
fn compare(profile: &Profile, seed: u64, seen: &mut Seen) {
    let mut examined = build(profile, seed, Examiner);
    let mut usual = build(profile, seed, ());
    let mut random = Seed(seed).stream(Purpose::Trial(7));
    let end = AirTime::from_millis(500);
    let mut at = AirTime::ZERO;
    while at < end {
        at = (at + Duration::from_nanos(random.below(400_000))).min(end);
        examined.run_until(at);
        usual.run_until(at);
        for node in (0..usual.nodes.all().len()).map(NodeId::of) {
            let name = profile.name;
            let (air, plain) = (&mut usual.engine.air, &mut examined.engine.air);
            let channel = air.radio(node).channel;
            let sum = air.sum(node, channel);
            assert_eq!(air.energy(node), sum, "{name}: node {} at {at}", node.0);
            assert_eq!(plain.energy(node), sum, "{name}: node {} at {at}", node.0);
            seen.unseen += u64::from(sum != Power::ZERO && air.is_passed(node));
            // Rarely: what is looked at examines the next signal.
            if !random.chance(0.02) {
                continue;
            }
            seen.looks += u64::from(sum != Power::ZERO);
            let (one, other) = (air.receiver(node), plain.receiver(node));
            assert_eq!(
                (one.is(BUSY), one.since, one.lock, one.is(DOWN)),
                (other.is(BUSY), other.since, other.lock, other.is(DOWN)),
                "{name}: node {} at {at}",
                node.0
            );
        }
    }
    assert_eq!(usual.digest(), examined.digest(), "{}", profile.name);
    assert_eq!(usual.counters(), examined.counters(), "{}", profile.name);
}

#[test]
fn what_passes_unseen_does_not_matter() {
    let mut seen = Seen::default();
    for seed in 0..4 {
        for name in Profile::NAMES {
            let mut profile = Profile::named(name).unwrap();
            profile.shadowing = Db(4.0);
            if seed % 2 == 0 {
                profile.fading = Fading::Rayleigh;
                profile.rejection = vec![Db(10.0), Db(25.0)];
            }
            compare(&profile, seed, &mut seen);
        }
        for name in ["cc2420-indoor", "ieee-e418"] {
            let mut profile = Profile::named(name).unwrap();
            profile.channel = Channel(1);
            profile.path_loss = crate::PathLoss::LogDistance {
                exponent: 3.0,
                reference: Db(46.7),
            };
            compare(&profile, seed, &mut seen);
        }
    }
    assert!(seen.unseen > 10_000, "{} unseen", seen.unseen);
    assert!(seen.looks > 1_000, "{} looks", seen.looks);
}
