//! Goal: a gateway learns that the way back of a plan does not work, and only then. Method: the improved variant in an ideal
//! synchronous air that brings the destination fifty packets and no more, so that the attempt fails, and drops all answers or none.

use crate::common;

use chappe_core::Duration;
use chappe_p3::{Config, Key, Tagging, Trial};
use common::{DESTINATION, SOURCE, Setting, object, with_gateway};

const KEY: Key = Key::new(*b"not a secret key");
/// First octet of an answer.
const NACK: u8 = 0xa0;

/// The first attempt of a transfer of which fifty packets come, and whose answers reach the source or not.
fn attempt(groups: u8, tagging: Tagging, answers: bool) -> Trial {
    let config = Config::improved(Some(KEY)).tagged_by(tagging);
    let setting = Setting {
        hops: 4,
        ..Setting::improved(config, groups)
    };
    let mut net = with_gateway(&setting, setting.plan(1), object(12_000, 5));
    let (mut packets, is_packet) = (0, |psdu: &[u8]| psdu[0] & 0x80 == 0);
    net.fault = Box::new(move |flight, to| match to {
        DESTINATION if is_packet(&flight.psdu) => {
            packets += 1;
            packets > 50
        }
        SOURCE => flight.psdu[0] == NACK && !answers,
        _ => false,
    });
    net.run(Duration::from_secs(30), |net| {
        !net.gateway(DESTINATION).planner().trials.is_empty()
    });
    let trials = &net.gateway(DESTINATION).planner().trials;
    let first = trials.first().copied();
    first.unwrap_or_else(|| panic!("{groups} {tagging:?}: no attempt ended"))
}

/// Questions reach the destination and its answers are lost: it counts each question that comes again. Four are what a
/// planner takes for a broken way back.
#[test]
fn lost_answers_are_counted() {
    for (groups, tagging) in [
        (2, Tagging::Segments),
        (3, Tagging::Segments),
        (2, Tagging::Packets),
    ] {
        let trial = attempt(groups, tagging, false);
        assert!(trial.gained > 0, "{groups} {tagging:?}");
        assert!(
            trial.unheard >= 4,
            "{groups} {tagging:?}: {}",
            trial.unheard
        );
    }
}

/// The same packets are lost, but every answer comes: the source asks anew, and no question comes again.
#[test]
fn answers_that_came_are_not_counted() {
    for (groups, tagging) in [
        (2, Tagging::Segments),
        (3, Tagging::Segments),
        (2, Tagging::Packets),
    ] {
        let trial = attempt(groups, tagging, true);
        assert!(trial.gained > 0, "{groups} {tagging:?}");
        assert_eq!(trial.unheard, 0, "{groups} {tagging:?}");
    }
}
