//! Plans on the wire, and what no plan may be.

extern crate std;
use super::*;
use crate::config::LAST_STAGE_THRESHOLD;
use crate::header::Malformed;
use chappe_core::{Purpose, Seed};
use std::vec::Vec;

const ORDER: ChannelOrder = ChannelOrder::new(7).unwrap();
const WANTED: Wanted = Wanted {
    transfer: 5,
    payload: 118,
    source: 100,
    destination: 0,
    channels: ORDER,
};

fn plan(paths: &[Vec<usize>], last_prr: impl Fn(u16) -> f64) -> Result<Plan, PlanError> {
    let mut random = Seed(1).stream(Purpose::Trial(0));
    Plan::from_paths(
        WANTED,
        &Profile::PAPER,
        paths,
        &mut random,
        LAST_STAGE_THRESHOLD,
        last_prr,
    )
}

/// `count` paths of `hops` hops over nodes 1, 2, ...
fn paths(count: usize, hops: usize) -> Vec<Vec<usize>> {
    let path = |path| (1..hops).map(|stage| path * (hops - 1) + stage).collect();
    (0..count).map(path).collect()
}

/// The relays of a plan of the paper's variant.
fn parts(plan: &Plan) -> Vec<PaperPart> {
    let part = |place: &Place| match plan.part_of(place.node) {
        Some(Part::Paper(part)) => part,
        other => panic!("{other:?}"),
    };
    plan.relays().iter().map(part).collect()
}

#[test]
fn paths_are_split_into_two_groups() {
    for (count, hops) in [(2, 2), (7, 6), (9, 4), (35, 2)] {
        let plan = plan(&paths(count, hops), |_| 1.0).unwrap();
        for stage in 1..hops as u8 {
            let group = |group| {
                let theirs = |place: &&Place| place.stage == stage && place.group == group;
                plan.relays().iter().filter(theirs).count()
            };
            assert_eq!((group(0), group(1)), (count / 2, count - count / 2));
        }
        assert!(!plan.is_single() && parts(&plan).iter().all(|part| part.sends));
    }
    let pip = plan(&paths(1, 4), |_| 1.0).unwrap();
    assert!(pip.is_single());
    assert!(
        plan(&[Vec::new(), Vec::new()], |_| 1.0)
            .unwrap()
            .is_single()
    );
}

#[test]
fn the_last_stage_sends_where_it_reaches_the_destination() {
    // Nodes 2, 4, .. 12 stand in the last stage; 2 and 4 reach the destination well.
    let good = plan(&paths(6, 3), |node| if node <= 4 { 0.8 } else { 0.1 }).unwrap();
    let good = parts(&good);
    assert!(good.iter().all(|part| part.place.stage == 2 || part.sends));
    let in_group = |parts: &[PaperPart], group| -> Vec<PaperPart> {
        let theirs = |part: &PaperPart| part.place.stage == 2 && part.place.group == group;
        parts.iter().copied().filter(theirs).collect()
    };
    for group in 0..2 {
        let theirs = in_group(&good, group);
        let reach = theirs.iter().filter(|part| part.place.node <= 4).count();
        let senders: Vec<_> = theirs.iter().filter(|part| part.sends).collect();
        assert_eq!(senders.len(), reach.max(1), "{theirs:?}");
        assert!(reach == 0 || senders.iter().all(|part| part.place.node <= 4));
    }
    // Where none does, the best of each group sends.
    let bad = parts(&plan(&paths(6, 3), |node| f64::from(node) / 100.0).unwrap());
    for group in 0..2 {
        let theirs = in_group(&bad, group);
        let best = theirs.iter().map(|part| part.place.node).max();
        let senders: Vec<_> = theirs.iter().filter(|part| part.sends).collect();
        assert_eq!(senders.len(), 1);
        assert_eq!(Some(senders[0].place.node), best);
    }
}

/// Goal: a plan of one variant never passes for one of the other. Method: the fields that only one of them has.
#[test]
fn plans_of_the_two_variants_are_told_apart() {
    let place = Place {
        node: 1,
        stage: 1,
        group: 0,
    };
    let answers = true;
    let stages = Stages {
        hops: 2,
        groups: 1,
        parts: &[ImprovedPart { place, answers }],
        repair: 2,
        session: 9,
    };
    let improved = Config::improved(None);
    let made = Plan::from_stages(WANTED, &improved, stages).unwrap();
    let of_paper = plan(&paths(1, 2), |_| 1.0).unwrap();
    assert_eq!((made.repair(), made.session()), (2, Some(9)));
    assert_eq!((of_paper.repair(), of_paper.session()), (0, None));
    assert_eq!(
        made.part_of(1),
        Some(Part::Improved(ImprovedPart { place, answers }))
    );
    for plan in [made, of_paper] {
        let mut body = [0; 118];
        let body = &mut body[..plan.encoded_len()];
        plan.emit(body).unwrap();
        assert_eq!(Plan::parse(WANTED.transfer, body), Ok(plan));
    }
    let refused = Plan::from_stages(WANTED, &Config::default(), stages);
    assert_eq!(refused, Err(PlanError::Variant));
    let part = PaperPart { place, sends: true };
    assert_eq!(made.joined(part), Err(PlanError::Variant));
}

#[test]
fn plans_that_cannot_work_are_refused() {
    let refused = |paths: &[Vec<usize>]| plan(paths, |_| 1.0).unwrap_err();
    assert_eq!(refused(&[]), PlanError::NoPath);
    assert_eq!(refused(&paths(36, 2)), PlanError::TooManyRelays(36));
    assert_eq!(refused(&paths(1, 16)), PlanError::TooManyHops(16));
    assert_eq!(
        refused(&[[1, 2].into(), [3].into()]),
        PlanError::NotDistinct
    );
    assert_eq!(
        refused(&[[1, 2].into(), [2, 3].into()]),
        PlanError::NotDistinct
    );
    assert_eq!(refused(&[[1, 100].into()]), PlanError::NotDistinct);
    assert_eq!(refused(&[[70_000].into()]), PlanError::NodeNumber(70_000));
}

#[test]
fn plans_round_trip_and_broken_ones_are_refused() {
    let plan = plan(&paths(7, 6), |_| 1.0).unwrap().resumed(6, 70_000);
    let mut body = [0; 118];
    assert_eq!(plan.encoded_len(), 117);
    plan.emit(&mut body).unwrap();
    assert_eq!(Plan::parse(6, &body[..117]), Ok(plan));
    assert_eq!(plan.emit(&mut body[..116]), None);
    assert_eq!(Plan::parse(6, &body), Err(Malformed));
    assert_eq!(Plan::parse(6, &body[..11]), Err(Malformed));
    // One relay less leaves a stage of group 0 or 1 thinner, not empty; all of them gone does not work.
    assert_eq!(Plan::parse(6, &body[..12]), Err(Malformed));
    let bends = [
        (3, 11),
        (3, 119),
        (6, 0),
        (6, 16),
        (11, 24),
        (11, 0x20),
        (14, 0x80),
        (14, 0x41),
        (14, 0),
        (14, 6),
    ];
    for (place, value) in bends {
        let mut bent = body;
        bent[place] = value;
        assert_eq!(
            Plan::parse(6, &bent[..117]),
            Err(Malformed),
            "{place} {value}"
        );
    }
    let mut twice = body;
    twice.copy_within(12..14, 15);
    assert_eq!(Plan::parse(6, &twice[..117]), Err(Malformed));
}

/// Goal: improved plans round-trip, and no bent octet is taken for another plan's without being sound. Method: three groups
/// over 24 hops, the largest plan of the goals; every single bit is flipped.
#[test]
fn the_largest_improved_plan_fits_and_bent_ones_are_sound_or_refused() {
    let mut parts = Vec::new();
    for stage in 1..24 {
        for group in 0..3 {
            let node = 120 + u16::from(stage) * 3 + u16::from(group);
            let place = Place { node, stage, group };
            let answers = group == 1;
            parts.push(ImprovedPart { place, answers });
        }
    }
    // The order of the caller does not matter.
    parts.reverse();
    let stages = Stages {
        hops: 24,
        groups: 3,
        parts: &parts,
        repair: 2,
        session: 9,
    };
    let config = Config::improved(None);
    let plan = Plan::from_stages(WANTED, &config, stages).unwrap();
    assert_eq!((plan.relays().len(), relays_max(256)), (69, 76));
    let mut body = [0; 125];
    let body = &mut body[..plan.encoded_len()];
    plan.emit(body).unwrap();
    assert_eq!(Plan::parse(WANTED.transfer, body), Ok(plan));
    for bit in 0..body.len() * 8 {
        body[bit / 8] ^= 1 << (bit % 8);
        if let Ok(other) = Plan::parse(WANTED.transfer, body) {
            assert!(other.sound() && other != plan, "bit {bit}");
        }
        body[bit / 8] ^= 1 << (bit % 8);
    }
    for len in 0..body.len() {
        assert_eq!(Plan::parse(WANTED.transfer, &body[..len]), Err(Malformed));
    }
    // Numbers of ten bits need more room than there is.
    let far: Vec<ImprovedPart> = parts
        .iter()
        .map(|part| {
            let place = Place {
                node: part.place.node + 60_000,
                ..part.place
            };
            ImprovedPart { place, ..*part }
        })
        .collect();
    let stages = Stages {
        parts: &far,
        ..stages
    };
    assert_eq!(
        Plan::from_stages(WANTED, &config, stages),
        Err(PlanError::TooManyRelays(69))
    );
}
