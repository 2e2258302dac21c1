//! How long each radio transmitted, listened and was off: what energy and duty cycles are worked out from.

use chappe_core::Duration;

use crate::Counters;
use crate::air::Air;
use crate::radio::{Radio, flag::*};

/// What each radio has been doing since when. Time is booked when that changes, so it is exact and costs nothing
/// on other events.
#[derive(Clone, Debug)]
pub(crate) struct Duty {
    rows: Vec<(Doing, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Transmitting,
    Listening,
    Off,
}

impl Duty {
    /// All radios listen from time 0 on.
    pub(crate) fn new(nodes: usize) -> Duty {
        Duty {
            rows: vec![(Doing::Listening, 0); nodes],
        }
    }

    /// Books a radio's time up to `at`; from there on it does what its flags say.
    fn change(&mut self, radios: &[Radio], counters: &mut Counters, node: u32, at: u64) {
        let node = node as usize;
        let radio = &radios[node];
        let doing = match () {
            _ if radio.is(TRANSMITTING) => Doing::Transmitting,
            _ if radio.is(ASLEEP | DOWN) => Doing::Off,
            _ => Doing::Listening,
        };
        let (before, since) = std::mem::replace(&mut self.rows[node], (doing, at));
        let own = &mut counters.nodes[node];
        let sum = match before {
            Doing::Transmitting => &mut own.transmitting,
            Doing::Listening => &mut own.listening,
            Doing::Off => &mut own.off,
        };
        *sum += Duration::from_nanos(at - since);
    }

    /// Books everybody's time up to `at`.
    fn settle(&mut self, radios: &[Radio], counters: &mut Counters, at: u64) {
        for node in 0..self.rows.len() as u32 {
            self.change(radios, counters, node, at);
        }
    }
}

impl Air {
    /// A radio has begun to do something else, or goes on.
    pub(crate) fn change_duty(&mut self, node: u32, at: u64) {
        self.duty.change(&self.radios, &mut self.counters, node, at);
    }

    /// Books all radios' time up to `at`.
    pub(crate) fn settle_duty(&mut self, at: u64) {
        self.duty.settle(&self.radios, &mut self.counters, at);
    }
}
