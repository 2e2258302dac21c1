//! Prices of airtime: what a node's surroundings charge for a second of the channel.
//!
//! Every node has a *congestion price*. It rises while the node and its neighbours together use more of the channel than there
//! is, or the node's queue is long, and falls otherwise. That takes seconds, so a long queue asks a price at once, too. Neighbours of one node are at most two ranges apart and so sense each
//! other: of them one can send at a time. A transmission takes the channel from all nodes that sense it, so it costs its
//! duration times the sum of their prices, and a path costs the sum over its hops. Sources that send at a falling function of their
//! path's cost maximise a sum of utilities: with the inverse that of logarithms, with the inverse root one that is fairer to long
//! paths (Kelly, Maulloo, Tan, 1998; Mo, Walrand, 2000; Low and Lapsley, 1999: the price of a constraint moves with its excess).
//!
//! Nodes within three hops stand for those that sense a transmission: with ns-2's ranges, 550 m is 2.2 times the range of
//! reception. Each tells its airtime and price in data frames and probes, and probes repeat those of nodes within two hops. A node where
//! packets end repeats those within three, for the sources beside it.

use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use crate::config::AirtimeLaw;
use crate::header::Share;

/// A node that uses less of the channel is idle. 0.01 (ours: five packets of 200 octets a second; control frames take 0.003).
const IDLE: f64 = 0.01;

/// A node that uses as much of the channel sends. 0.03 (ours: 16 packets of 200 octets a second).
const SENDS: f64 = 0.03;
/// A node that was idle for so long begins to send anew. 30 s (ours: next hops that are used now and then do not).
const RESTS: Duration = Duration::from_secs(30);

/// A node's airtime, its price, and those of the nodes around it.
#[derive(Clone, Debug)]
pub(crate) struct Airtime {
    law: AirtimeLaw,
    most: usize,
    /// What this node tells of itself.
    own: Share,
    /// Transmission time since the last update.
    spent: Duration,
    /// The smoothed share of the channel that this node uses.
    share: f64,
    /// This node's congestion price, without what a queue asks at once.
    price: f64,
    /// When this node was idle last.
    idle_at: Instant,
    /// In the order of nodes.
    known: Vec<Known>,
    /// The sum of the prices around, this node's included.
    around: f64,
    updated: Instant,
    next: Instant,
    /// When a packet ended here last.
    ended: Option<Instant>,
    /// When this node was busy last, once it has begun to send.
    sent_at: Option<Instant>,
}

/// A node within three hops.
#[derive(Clone, Copy, Debug)]
struct Known {
    node: u16,
    share: Share,
    heard: Instant,
    /// Over how many hops it was heard.
    hops: u8,
}

impl Airtime {
    pub fn new(law: AirtimeLaw, most: u16, now: Instant) -> Airtime {
        let most = usize::from(most);
        Airtime {
            law,
            most,
            own: Share::default(),
            spent: Duration::ZERO,
            share: 0.0,
            price: law.least(),
            idle_at: now,
            known: Vec::with_capacity(most),
            around: law.least(),
            updated: now,
            next: now + law.interval,
            ended: None,
            sent_at: None,
        }
    }

    /// This node transmitted a frame of `octets` so many times.
    pub fn spend(&mut self, attempts: u8, octets: usize) {
        self.spent += self.exchange(octets) * u64::from(attempts);
    }

    /// The time that a frame of `octets` takes from the channel.
    fn exchange(&self, octets: usize) -> Duration {
        self.law.around + self.law.octet * octets as u64
    }

    /// What this node tells of itself.
    pub fn own(&self) -> Share {
        self.own
    }

    /// What a neighbour told of itself lately; nothing if it did not.
    pub fn of(&self, node: u16) -> Share {
        let at = self.known.binary_search_by_key(&node, |known| known.node);
        let known = at.ok().and_then(|at| self.known.get(at));
        known
            .filter(|known| known.hops == 1)
            .map_or(Share::default(), |known| known.share)
    }

    /// A packet ended at this node.
    pub fn on_end(&mut self, now: Instant) {
        self.ended = Some(now);
    }

    /// Whether this node asks more than an idle one.
    pub fn asks(&self) -> bool {
        self.own.price() > self.idle_most()
    }

    /// Whether packets ended here lately.
    pub fn ends(&self) -> bool {
        let recent = |at| self.updated.saturating_since(at) < self.law.life;
        self.ended.is_some_and(recent)
    }

    /// Twice the least price: who asks no more counts as idle.
    fn idle_most(&self) -> f64 {
        Share::new(0.0, 2.0 * self.law.least()).price()
    }

    /// The active nodes two hops away, and three where packets end: see [`AirtimeLaw::repeats`].
    pub fn far(&self) -> impl Iterator<Item = (u16, Share)> + '_ {
        let idle_most = self.idle_most();
        let farthest = match self.law.repeats && self.ends() {
            true => 3,
            false => 2,
        };
        let active = move |known: &&Known| {
            (2..=farthest).contains(&known.hops)
                && (known.share.airtime() > 0.0 || known.share.price() > idle_most)
        };
        let known = self.known.iter().filter(active);
        known.map(|known| (known.node, known.share))
    }

    /// A node's share was heard over so many hops.
    pub fn on_share(&mut self, now: Instant, node: u16, share: Share, hops: u8) {
        let fresh = Known {
            node,
            share,
            heard: now,
            hops,
        };
        match self.known.binary_search_by_key(&node, |known| known.node) {
            Ok(at) => {
                // Over fewer hops it is newer.
                let life = self.law.life;
                let worse = |known: &&mut Known| {
                    hops <= known.hops || now.saturating_since(known.heard) >= life
                };
                if let Some(known) = self.known.get_mut(at).filter(worse) {
                    *known = fresh;
                }
            }
            Err(at) if self.known.len() < self.most => self.known.insert(at, fresh),
            // Without room for it, prices are too low: queues rise and correct that.
            Err(_) => {}
        }
    }

    /// When the price is updated next.
    pub fn next_update(&self) -> Instant {
        self.next
    }

    /// Updates share and price, if it is time. `queue` packets wait here. True if the node began to send.
    pub fn update(&mut self, now: Instant, queue: f64) -> bool {
        if now < self.next {
            return false;
        }
        let law = self.law;
        let span = now.saturating_since(self.updated).as_secs_f64().max(1e-3);
        let used = self.spent.as_secs_f64() / span;
        let weight = libm::exp(-span / law.smoothing.as_secs_f64().max(1e-3));
        self.share = weight * self.share + (1.0 - weight) * used;
        self.spent = Duration::ZERO;
        self.known
            .retain(|known| now.saturating_since(known.heard) < law.life);
        let neighbours = self.known.iter().filter(|known| known.hops == 1);
        let load = self.share + neighbours.map(|known| known.share.airtime()).sum::<f64>();
        let excess = law.gain * (load - law.load) + law.queue_gain * (queue - law.queue).max(0.0);
        // Rates follow a root of prices, and shall move as fast whatever the root is.
        let step = law.fairness * excess.clamp(-law.fall, law.rise) * span;
        self.price = (self.price * libm::exp(step)).clamp(law.least(), law.most());
        if self.share < IDLE {
            self.idle_at = now;
        }
        let base = match now.saturating_since(self.idle_at) < law.early {
            true => self.price.max(law.asked_at_once(queue)),
            false => self.price,
        };
        let asked = (base * law.ahead_of(queue)).min(law.most());
        self.own = Share::new(self.share, asked);
        // An idle node charges nothing, however many there are.
        let beyond = |known: &Known| (known.share.price() - law.least()).max(0.0);
        let prices = self.known.iter().map(beyond);
        self.around = asked + prices.sum::<f64>();
        (self.updated, self.next) = (now, now + law.interval);
        self.begins(now)
    }

    /// Whether the node sends and did not lately.
    fn begins(&mut self, now: Instant) -> bool {
        let lately = |at| now.saturating_since(at) < RESTS;
        let begins = self.share >= SENDS && !self.sent_at.is_some_and(lately);
        if begins || self.share >= IDLE && self.sent_at.is_some() {
            self.sent_at = Some(now);
        }
        begins
    }

    /// The cost of one transmission of a frame of `octets` by this node.
    pub fn cost(&self, octets: usize) -> f64 {
        self.exchange(octets).as_secs_f64() * self.around
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AirtimeLaw;

    const LAW: AirtimeLaw = AirtimeLaw::DOT11B;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A full second of one node's transmissions in a row, updated each interval.
    fn loaded(airtime: &mut Airtime, from: u64, attempts: u8, queue: f64) {
        for ms in (from..from + 1000).step_by(100) {
            airtime.spend(attempts, 216);
            airtime.update(at(ms + 100), queue);
        }
    }

    #[test]
    fn a_price_rises_with_load_and_queue_and_falls_otherwise() {
        let mut airtime = Airtime::new(LAW, 4, at(0));
        loaded(&mut airtime, 0, 5, 0.0);
        assert_eq!(airtime.price, LAW.least(), "half of a channel is no excess");
        loaded(&mut airtime, 1000, 5, LAW.queue + 30.0);
        let risen = airtime.price;
        assert!(risen > 1.5 * LAW.least(), "{risen}");
        airtime.on_share(at(2000), 7, Share::new(1.0, 0.5), 1);
        airtime.on_share(at(2000), 8, Share::new(1.0, 0.25), 2);
        airtime.on_share(at(2000), 9, Share::new(1.0, 0.25), 2);
        loaded(&mut airtime, 2000, 5, 0.0);
        assert!(airtime.price > risen, "three neighbours that send always");
        // 1874 us, at a price of 1 for the four nodes together and this node's, less what they have while idle.
        let cost = airtime.cost(216) / (1.0 - 3.0 * LAW.least() + airtime.price);
        assert!((cost - 0.001_874).abs() < 2e-5, "{cost}");
        // A hundred idle nodes around cost nothing.
        let mut lone = Airtime::new(LAW, 200, at(0));
        (0..100).for_each(|node| lone.on_share(at(0), node, Share::new(0.0, LAW.least()), 2));
        lone.update(at(100), 0.0);
        assert!(
            lone.cost(216) < 1.1 * 0.001_874 * LAW.least(),
            "{}",
            lone.cost(216)
        );
        // Their shares expire, and the price returns to its floor.
        for second in 3..80 {
            loaded(&mut airtime, 1000 * second, 0, 0.0);
        }
        assert_eq!(airtime.price, LAW.least());
        assert_eq!(airtime.own(), Share::new(0.0, LAW.least()));
    }

    /// Goal: sources that flood a node hear of it before its price has risen, and no longer than its queue stands.
    #[test]
    fn a_long_queue_asks_at_once() {
        let mut airtime = Airtime::new(LAW, 4, at(0));
        airtime.update(at(100), LAW.queue + 6.0);
        assert!(airtime.price < 2.0 * LAW.least(), "{}", airtime.price);
        let asked = airtime.own().price();
        let want = libm::pow(6.0 * LAW.at_once, LAW.fairness) * LAW.ahead_of(LAW.queue + 6.0);
        assert!((asked / want - 1.0).abs() < 0.01, "{asked} {want}");
        let cost = airtime.cost(216) / 0.001_874;
        assert!((cost / want - 1.0).abs() < 0.01, "{cost} {want}");
        airtime.update(at(200), LAW.queue);
        assert_eq!(airtime.own(), Share::new(0.0, airtime.price));
        // For good it would cost small networks a fifth.
        loaded(&mut airtime, 1000, 2, LAW.queue + 6.0);
        let asked = airtime.own().price();
        assert!((asked / want - 1.0).abs() < 0.01, "{asked} {want}");
        for second in 2..12 {
            loaded(&mut airtime, 1000 * second, 2, LAW.queue - 1.0);
        }
        loaded(&mut airtime, 12_000, 2, LAW.queue + 6.0);
        let asked = airtime.own().price();
        assert!(asked < 0.5 * want, "{asked} {want}");
    }

    /// Goal: a queue asks at once what its price would be after `ahead`, for as long as it stands, also when the node has been busy for
    /// long. Method: a price that has risen, then a queue that stands for two seconds, beside the price without the queue.
    #[test]
    fn a_queue_asks_ahead_of_its_price() {
        let mut airtime = Airtime::new(LAW, 4, at(0));
        for second in 0..20 {
            let queue = LAW.queue + if second < 16 { 0.0 } else { 10.0 };
            loaded(&mut airtime, 1000 * second, 2, queue);
        }
        loaded(&mut airtime, 20_000, 2, LAW.queue);
        let (plain, asks) = (airtime.price, airtime.own().price());
        assert!((asks / plain - 1.0).abs() < 0.01, "{asks} {plain}");
        airtime.update(at(21_100), LAW.queue + 6.0);
        let ratio = airtime.own().price() / airtime.price;
        let want = libm::exp(LAW.fairness * LAW.queue_gain * 6.0 * 2.0);
        assert!((ratio / want - 1.0).abs() < 0.01, "{ratio} {want}");
        let none = AirtimeLaw {
            ahead: Duration::ZERO,
            ..LAW
        };
        assert_eq!(none.ahead_of(100.0), 1.0);
    }

    /// Goal: the neighbours of a destination hear of nodes three hops from it, as long as packets end there. Method: what its probes repeat.
    #[test]
    fn where_packets_end_prices_reach_one_hop_farther() {
        let mut airtime = Airtime::new(LAW, 4, at(0));
        let share = Share::new(0.5, 1.0);
        for hops in 1..=3 {
            airtime.on_share(at(0), 6 + u16::from(hops), share, hops);
        }
        let repeated = |airtime: &Airtime| airtime.far().map(|far| far.0).collect::<Vec<_>>();
        assert_eq!(repeated(&airtime), [8]);
        airtime.on_end(at(0));
        assert_eq!(repeated(&airtime), [8, 9]);
        let law = AirtimeLaw {
            repeats: false,
            ..LAW
        };
        airtime.law = law;
        assert_eq!(repeated(&airtime), [8]);
        airtime.law = LAW;
        airtime.update(at(100) + LAW.life, 0.0);
        assert_eq!(repeated(&airtime), []);
    }

    #[test]
    fn what_a_node_says_itself_counts_more_and_the_table_is_bounded() {
        let mut airtime = Airtime::new(LAW, 2, at(0));
        let (one, two) = (Share::new(0.5, 0.1), Share::new(0.25, 0.2));
        airtime.on_share(at(0), 7, one, 1);
        airtime.on_share(at(100), 7, two, 2);
        assert_eq!(airtime.of(7), one);
        airtime.on_share(at(200) + LAW.life, 7, two, 2);
        assert_eq!((airtime.of(7), airtime.known.len()), (Share::default(), 1));
        airtime.on_share(at(300), 8, one, 1);
        airtime.on_share(at(300), 9, one, 1);
        assert_eq!((airtime.known.len(), airtime.of(9)), (2, Share::default()));
    }
}
