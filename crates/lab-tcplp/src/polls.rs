//! Data requests of sleeping leaves that let no connection finish: they come too often, and destroy packets that their senders do not
//! sense, or too seldom for TCP.

use chappe_core::Duration;
use chappe_mac::dot15d4::{Config, SDU_MAX};
use chappe_scenario::Network;
use chappe_wire::dot15d4::PSDU_MAX;

use super::plan::{Tcplp, exchange};
use super::tree::leaves;

/// Octets of a data request: all of a frame but its SDU, and the command.
const REQUEST: usize = PSDU_MAX - SDU_MAX + 1;
/// TCP stands still where more packets are lost for good: its window, `sqrt(8 / (3 p))` segments at a loss of `p` (Mathis, Semke, Mahdavi
/// and Ott, 1997), then holds fewer than the four that three duplicate acknowledgements need.
const LOST_MAX: f64 = 1.0 / 6.0;

/// The data requests of a network whose leaves ask for frames as often as they may.
#[derive(Debug)]
pub struct Polls<'n> {
    with: &'n Tcplp,
    network: &'n Network,
    parents: &'n [Option<usize>],
    leaves: Vec<usize>,
    every: Duration,
}

impl<'n> Polls<'n> {
    /// `None` if no node sleeps.
    pub fn new(
        with: &'n Tcplp,
        network: &'n Network,
        parents: &'n [Option<usize>],
    ) -> Option<Self> {
        Some(Polls {
            with,
            network,
            parents,
            leaves: leaves(parents).collect(),
            every: with.sleep?,
        })
    }

    /// Says how many packets along `route` the data requests destroy, if it is more than TCP bears.
    pub fn destroyed(&self, route: &[usize]) -> Option<String> {
        let arrives: f64 = route
            .windows(2)
            .map(|hop| 1.0 - self.lost(hop[0], hop[1]))
            .product();
        let (from, to) = (route.first()?, route.last()?);
        let percent = 100.0 * (1.0 - arrives);
        (1.0 - arrives > LOST_MAX).then(|| {
            format!(
                "leaves that ask for frames every {} and do not sense what is on the air destroy at least {percent:.0} % of the packets from node \
                 {from} to node {to}: a longer `sleep` leaves more of them",
                self.every
            )
        })
    }

    /// Says so if the leaf at the end of a route asks for frames more seldom than TCP waits for the answer to a SYN.
    pub fn outlasts_tcp(&self, route: &[usize]) -> Option<String> {
        let to = route.last().filter(|node| self.leaves.contains(node))?;
        let tcp = &self.with.tcp;
        let waits = (0..=tcp.syn_retries_max).scan(tcp.rto_initial, |next, _| {
            let wait = *next;
            *next = (wait * 2).min(tcp.rto_max);
            Some(wait)
        });
        let patience = waits.fold(Duration::ZERO, |all, wait| all + wait);
        (self.every > patience).then(|| {
            format!(
                "node {to} asks for frames every {}, and TCP gives a connection up after {patience}",
                self.every
            )
        })
    }

    /// The share of packets that a hop loses for good, even those of one short frame: each attempt fails by itself or meets a request.
    fn lost(&self, from: usize, to: usize) -> f64 {
        let mac = &self.with.mac;
        let attempts = match self.leaves.contains(&to) {
            true => i32::from(mac.indirect_polls) * (1 + i32::from(mac.indirect_retries)),
            false => 1 + i32::from(mac.retries),
        };
        let alone = mac.load + mac.cca_time + mac.turnaround + exchange(REQUEST, mac);
        let rate = 1.0 / (self.every + alone).as_secs_f64();
        let frame = Config::MODE.airtime(self.with.least_frame());
        let met = self.begun(from, to) + self.beginning(from, to) * frame.as_secs_f64();
        let spared = self.delivery(from, to) * (-rate * met).exp();
        (1.0 - spared).powi(attempts)
    }

    fn delivery(&self, from: usize, to: usize) -> f64 {
        self.network.delivery[from * self.network.medium.nodes() + to]
    }

    fn others(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let leaves = self.leaves.iter().copied();
        leaves.filter(move |&leaf| leaf != from && leaf != to)
    }

    /// Seconds that `to` spends on one request of each leaf which `from` does not sense. While it receives a request, or acknowledges that
    /// of a child, it misses the beginning of another frame.
    fn begun(&self, from: usize, to: usize) -> f64 {
        let medium = &self.network.medium;
        let lasts = |leaf: usize| match self.parents[leaf] == Some(to) {
            true => exchange(REQUEST, &self.with.mac),
            false => Config::MODE.airtime(REQUEST),
        };
        let taken = |leaf: usize| {
            let unsensed = 1.0 - medium.sense_probability(leaf, from);
            self.delivery(leaf, to) * unsensed * lasts(leaf).as_secs_f64()
        };
        self.others(from, to).map(taken).sum()
    }

    /// The leaves that do not sense `from` and are at least as strong at `to`. Of a matrix no strengths are known.
    fn beginning(&self, from: usize, to: usize) -> f64 {
        let medium = &self.network.medium;
        let is_weaker = |leaf| medium.mean_power(leaf, to).0 < medium.mean_power(from, to).0;
        self.others(from, to)
            .filter(|&leaf| self.delivery(leaf, to) > 0.0 && !is_weaker(leaf))
            .map(|leaf| 1.0 - medium.sense_probability(from, leaf))
            .sum()
    }
}
