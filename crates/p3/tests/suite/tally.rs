//! Goal: a gateway learns which link of a group that failed died. Method: the improved variant in an ideal synchronous air; some frames
//! of an attempt are lost so that it fails, and the gateway's planner keeps what it learnt.

use crate::common;

use chappe_core::{Duration, Purpose, Seed};
use chappe_p3::{Config, Key, Tagging, Told, Trial};
use common::{DESTINATION, Net, Setting, object, with_gateway};

const KEY: Key = Key::new(*b"not a secret key");
/// First octets of frames.
const PLAN: u8 = 0xb0;
const TALLY: u8 = 0xe8;
const CTRL: u8 = 0xc0;

fn setting(groups: u8) -> Setting {
    let config = Config::improved(Some(KEY)).tagged_by(Tagging::Segments);
    Setting {
        hops: 5,
        ..Setting::improved(config, groups)
    }
}

/// Runs until the gateway has been told what satisfies `enough`, and returns that.
fn failed(net: &mut Net, enough: impl Fn(&Trial) -> bool) -> Trial {
    net.run(Duration::from_secs(20), |net| {
        let trials = &net.gateway(DESTINATION).planner().trials;
        trials.last().is_some_and(&enough)
    });
    let trials = &net.gateway(DESTINATION).planner().trials;
    let last = trials.last().copied().filter(enough);
    last.unwrap_or_else(|| panic!("never told in {} attempts", trials.len()))
}

/// Whether all nodes but one told, the source that it took part.
fn all_told(trial: &Trial) -> bool {
    let sent = matches!(trial.told.source(), Some(Told::Frames(count)) if count > 0);
    sent && (0..trial.plan.relays().len()).all(|at| trial.told.relay(at).is_some())
}

/// What the relay of a stage and group told.
fn told(setting: &Setting, trial: &Trial, stage: usize, group: usize) -> Option<Told> {
    let at = (stage - 1) * usize::from(setting.groups) + group;
    assert_eq!(usize::from(trial.plan.relays()[at].stage), stage);
    trial.told.relay(at)
}

/// Packets of each group do not pass one hop, and no question comes back. The relays before it heard their group's share, those behind it
/// nothing. The nodes were busy when the gateway asked first.
#[test]
fn the_gateway_learns_where_each_group_died() {
    let object = object(12_000, 5);
    for (first, second) in [(1, 3), (4, 2), (2, 2), (1, 4)] {
        let setting = setting(2);
        let mut net = with_gateway(&setting, setting.plan(1), object);
        let stages: Vec<usize> = (0..setting.nodes())
            .map(|node| setting.stage_of(node))
            .collect();
        let relays = setting.hops - 1;
        net.fault = Box::new(move |flight, to| match flight.psdu[0] {
            PLAN | TALLY => false,
            CTRL => true,
            _ => {
                let relay = flight.from.checked_sub(2);
                let dead = relay.map(|relay| if relay < relays { first } else { second });
                dead == Some(stages[flight.from]) && stages[to] == stages[flight.from] + 1
            }
        });
        let trial = failed(&mut net, all_told);
        let what = format!("{first} {second}");
        assert_eq!(trial.gained, 0, "{what}");
        for (group, dead) in [(0, first), (1, second)] {
            for stage in 1..setting.hops {
                let told = told(&setting, &trial, stage, group);
                let Some(Told::Frames(count)) = told else {
                    panic!("{what}, stage {stage} of group {group}: {told:?}");
                };
                // 99 packets and two combinations, of which each group takes every second one; told to an eighth.
                let right = match stage <= dead {
                    true => (43..=51).contains(&count),
                    false => count == 0,
                };
                assert!(right, "{what}, stage {stage} of group {group}: {count}");
            }
        }
    }
}

/// A relay that missed the plan says so, and the source that it sent. A question costs one frame of each node.
#[test]
fn a_relay_that_missed_the_plan_says_so() {
    let object = object(1200, 6);
    for stage in 1..5 {
        let setting = setting(2);
        let mut net = with_gateway(&setting, setting.plan(1), object);
        let (deaf, other) = (1 + stage, 1 + 2 * (setting.hops - 1));
        net.fault = Box::new(move |flight, to| match flight.psdu[0] {
            // Only plans that ask reach it: the bit is behind the header, twelve octets, and the groups.
            PLAN => to == deaf && flight.psdu[7 + 12 + 1] & 0x80 == 0,
            TALLY => false,
            CTRL => true,
            // The last relay of the other group.
            _ => flight.from == other && to == DESTINATION,
        });
        let trial = failed(&mut net, all_told);
        for other in 1..5 {
            let through = told(&setting, &trial, other, 1);
            assert!(matches!(through, Some(Told::Frames(1..))), "{through:?}");
            let told = told(&setting, &trial, other, 0);
            let right = match told {
                Some(Told::Absent) => other == stage,
                Some(Told::Frames(count)) => other != stage && (count > 0) == (other < stage),
                None => false,
            };
            assert!(right, "{stage}: stage {other} {told:?}");
        }
        let log = net.log.borrow();
        let tallies = log.iter().filter(|one| one.psdu[0] == TALLY);
        let mut tellers: Vec<_> = tallies.map(|one| (one.psdu[1], one.from)).collect();
        let frames = tellers.len();
        tellers.sort_unstable();
        tellers.dedup();
        assert!(frames == tellers.len() && frames >= 9, "one turn each");
        // Header, an octet for each of nine nodes, and a tag.
        let mut tallies = log.iter().filter(|one| one.psdu[0] == TALLY);
        assert!(tallies.all(|one| one.psdu.len() == 7 + 9 + 4));
    }
}

/// No node can tell in another's name: frames with a bent bit are refused. The transfer then goes on as without a question.
#[test]
fn forged_counts_are_refused() {
    let object = object(6000, 7);
    let mut random = Seed(9).stream(Purpose::Interference);
    for round in 0..20 {
        let setting = setting(2);
        let mut net = with_gateway(&setting, setting.plan(1), object);
        // The first attempt fails, since its packets do not pass.
        net.fault = Box::new(|flight, _| flight.psdu[0] & 0x80 == 0 && flight.start < 600_000_000);
        let bit = random.below(8 * (7 + 9)) as usize;
        // The slot of a flood is no part of the tag, and no field of this frame.
        let bit = if bit / 8 == 2 { 0 } else { bit };
        net.tamper = Box::new(move |flight, _| {
            (flight.psdu[0] == TALLY).then(|| {
                let mut psdu = flight.psdu.clone();
                psdu[bit / 8] ^= 1 << (bit % 8);
                psdu
            })
        });
        net.run(Duration::from_secs(60), |net| {
            net.gateway(DESTINATION).progress().completed.is_some()
        });
        let gateway = net.gateway(DESTINATION);
        assert!(gateway.progress().completed.is_some(), "{round}");
        assert!(gateway.destination().store().bytes == object, "{round}");
        for trial in &gateway.planner().trials {
            let relays = (0..trial.plan.relays().len()).map(|at| trial.told.relay(at));
            assert!(
                relays
                    .chain([trial.told.source()])
                    .all(|told| told.is_none()),
                "bit {bit}"
            );
        }
    }
}
