//! A mast that starts over in the middle of a run.

use chappe_core::{Purpose, Seed, Stream};
use chappe_sim::Recorder;

use super::faults::radios;
use super::hosts::nudge;
use super::run::Run;
use super::station::Mounted;
use super::traffic::{Relay, Traffic};

/// A router from one start to its end: where its random numbers come from, and which of its lives it is, from 0 on.
pub struct Life {
    /// From 0 on.
    pub number: u8,
    /// The run's.
    pub seed: Seed,
}

impl Life {
    /// The stream for one of its parts.
    pub fn random(&self, of: usize) -> Stream {
        let seed = match self.number {
            0 => self.seed,
            number => self.seed.child(number.into()),
        };
        seed.stream(Purpose::Node(of as u32))
    }
}

impl<R: Recorder> Run<'_, R> {
    /// Whether anything goes wrong that masts could tell of.
    pub fn faulty(&self) -> bool {
        let mishaps = &self.masts.mishaps;
        !(mishaps.strikes.is_empty() && mishaps.restarts.is_empty() && mishaps.losses.is_empty())
    }

    /// Its radios come up with new links, new slots and empty queues; what stands behind them is as it was.
    pub(super) fn restart(&mut self, mast: usize) {
        self.restarted.push(mast);
        let lives = self.restarted.iter().filter(|other| **other == mast);
        let life = Life {
            number: lives.count() as u8,
            seed: self.seed,
        };
        let site = self.masts.site(mast, &life);
        for radio in radios(mast, self.masts.hops.len() + 1) {
            self.passages[radio].take.borrow_mut().clear();
            let (masts, ended) = (&self.masts, &mut self.ended);
            self.simulator.revive(radio, |node| {
                let nothing = Traffic::Relay(Relay::default());
                let traffic = std::mem::replace(node.station.traffic_mut(), nothing);
                let fresh = masts.mounted(radio, site.as_ref(), &life, traffic.restarted());
                ended.push(std::mem::replace(node.as_mut(), fresh).station);
            });
            let wake = |node: &mut Mounted<'_>, now| nudge(&mut node.station, now);
            self.simulator.with_node(radio, wake);
        }
    }
}
