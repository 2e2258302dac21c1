//! How long each radio transmitted, listened and was off, from which energy and duty cycles follow.

use chappe_core::Duration;

use crate::id::NodeId;
use crate::radio::{Radio, flag::*};
use crate::{AirTime, NodeCounters};

/// What each radio has been doing since when. Time is booked when that changes: exact, and free on all other events.
#[derive(Clone, Debug)]
pub(crate) struct Duty {
    rows: Vec<(Activity, AirTime)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Transmitting,
    Listening,
    Off,
}

impl Duty {
    /// All radios listen from time 0 on.
    pub(crate) fn new(nodes: usize) -> Duty {
        Duty {
            rows: vec![(Activity::Listening, AirTime::ZERO); nodes],
        }
    }

    /// Books a radio's time up to `at`. From there on it does what its flags say.
    pub(crate) fn change(
        &mut self,
        node: NodeId,
        radio: &Radio,
        counters: &mut NodeCounters,
        at: AirTime,
    ) {
        // A node that sleeps while it transmits still transmits.
        let activity = match () {
            _ if radio.is(TRANSMITTING) => Activity::Transmitting,
            _ if radio.is(ASLEEP | DOWN) => Activity::Off,
            _ => Activity::Listening,
        };
        let row = &mut self.rows[node.index()];
        let (before, since) = std::mem::replace(row, (activity, at));
        let sum = match before {
            Activity::Transmitting => &mut counters.transmitting,
            Activity::Listening => &mut counters.listening,
            Activity::Off => &mut counters.off,
        };
        *sum += Duration::from_nanos(at.0 - since.0);
    }
}
