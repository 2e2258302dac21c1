//! Signals that no node can receive, as the simulator lists them.
//!
//! A burst of energy reaches dozens of nodes, and a run has a million such signals, of which the ring keeps few. So they are copied as they
//! come, and taken apart when the run is over.

use chappe_core::Duration;
use chappe_sim::{AirTime, Arrival, Interference};

use crate::event::Burst;
use crate::ring::Ring;

/// The newest signals that no node can receive.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    /// What left an antenna and reached a node: no more of them than of signals, so those of all signals are there.
    heads: Ring<Head>,
    signals: Ring<Arrival>,
}

/// What the signals of one burst have in common.
#[derive(Clone, Copy, Debug)]
struct Head {
    from: u32,
    number: u32,
    at: AirTime,
    airtime: Duration,
    /// The number of its signals.
    signals: usize,
}

impl Bursts {
    /// Keeps the newest `limit` signals.
    pub(crate) fn new(limit: usize) -> Bursts {
        Bursts {
            heads: Ring::new(limit),
            signals: Ring::new(limit),
        }
    }

    pub(crate) fn push(&mut self, burst: &Interference, signals: &[Arrival]) {
        if signals.is_empty() {
            return;
        }
        self.heads.push(Head {
            from: burst.from as u32,
            number: burst.number as u32,
            at: burst.at,
            airtime: burst.airtime,
            signals: signals.len(),
        });
        self.signals.extend(signals);
    }

    /// Each signal by itself, from the oldest to the newest.
    pub(crate) fn into_rows(self) -> Vec<Burst> {
        let (heads, signals) = (self.heads.into_rows(), self.signals.into_rows());
        let all: usize = heads.iter().map(|head| head.signals).sum();
        // Of the oldest bursts some signals were dropped, or all.
        let dropped = all - signals.len();
        let each = heads
            .iter()
            .flat_map(|head| std::iter::repeat_n(head, head.signals));
        let row = |(head, signal): (&Head, &Arrival)| {
            let at = signal.at(head.at);
            Burst {
                node: at.node as u32,
                from: head.from,
                number: head.number,
                start: at.start,
                end: at.start + head.airtime,
                power: at.power,
            }
        };
        each.skip(dropped).zip(&signals).map(row).collect()
    }
}
