//! Links as the gateway measured them, and what it believes of them.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Channel, Dbm};

use super::wish::Wish;
use crate::sizes::CHANNELS;

/// Links as the gateway measured them.
pub trait Links {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// The share of frames of one node that another receives on a channel.
    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64;

    /// The mean received power, where it was measured. Without it the planner assumes that overlapping senders are
    /// equally strong, and that a frame of another stage collides as often as it could be received.
    fn power(&self, channel: Channel, from: usize, to: usize) -> Option<Dbm> {
        let _ = (channel, from, to);
        None
    }
}

/// Weight of the prior of a link of unknown power: Jeffreys'.
const DOUBT: f64 = 0.5;
/// A PRR below this counts as no link, but as noise of the measurement.
const FAINT: f64 = 0.05;

/// What the gateway believes of every link on every channel. Worked out once for a plan: a search asks for the same links
/// millions of times.
pub(super) struct Tables {
    nodes: usize,
    /// The estimated PRR of each link: by channel, sender and receiver.
    believed: Vec<f64>,
    /// The received power in milliwatts; negative where it was not measured.
    milliwatts: Vec<f64>,
}

impl Tables {
    pub fn new(links: &impl Links, wish: &Wish) -> Tables {
        let nodes = links.nodes();
        let size = CHANNELS.len() * nodes * nodes;
        let mut tables = Tables {
            nodes,
            believed: vec![0.0; size],
            milliwatts: vec![-1.0; size],
        };
        let beacons = f64::from(wish.beacons);
        let milliwatts = Milliwatts::new();
        // Where a link stands in the tables, and its power: a list of those that were heard is short.
        let (mut heard, mut sums) = (Vec::new(), vec![Sums::default(); WHOLE]);
        for (at, channel) in CHANNELS.into_iter().enumerate() {
            for from in 0..nodes {
                for to in (0..nodes).filter(|&to| to != from) {
                    let power = links.power(channel, from, to);
                    let share = links.prr(channel, from, to);
                    let place = (at * nodes + from) * nodes + to;
                    if let Some(power) = power {
                        tables.milliwatts[place] = milliwatts.of(power);
                    }
                    if share > 0.0 {
                        heard.push((place, share, power));
                        if let Some(sum) = power.and_then(|power| sums.get_mut(bin(power)?)) {
                            sum.add(share);
                        }
                    }
                }
            }
        }
        let curve = Curve::new(&sums, beacons);
        for (place, share, power) in heard {
            if share >= FAINT {
                // Power says more about a link than a few beacons do, as far as links of equal power are alike.
                let Prior { heard, lost } = curve.prior(power);
                tables.believed[place] = (share * beacons + heard) / (beacons + heard + lost);
            }
        }
        tables
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    fn place(&self, channel: Channel, from: usize, to: usize) -> usize {
        let at = match channel {
            Channel(20) => 1,
            Channel(25) => 2,
            Channel(26) => 3,
            _ => 0,
        };
        (at * self.nodes + from) * self.nodes + to
    }

    /// The estimated PRR of a link.
    pub fn believed(&self, channel: Channel, from: usize, to: usize) -> f64 {
        self.believed[self.place(channel, from, to)]
    }

    /// The received power in milliwatts, if it was measured.
    pub fn milliwatts(&self, channel: Channel, from: usize, to: usize) -> Option<f64> {
        let power = self.milliwatts[self.place(channel, from, to)];
        (power >= 0.0).then_some(power)
    }

    /// The better of its channels for a link that must work both ways on the same one.
    pub fn both_ways(&self, from: usize, to: usize) -> f64 {
        let tables = self.believed.chunks_exact((self.nodes * self.nodes).max(1));
        let (there, back) = (from * self.nodes + to, to * self.nodes + from);
        let both = |table: &[f64]| table[there].min(table[back]);
        tables.map(both).fold(0.0, f64::max)
    }
}

/// What is known of a link before its own beacons: so many heard and so many lost (the parameters of a beta distribution).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prior {
    heard: f64,
    lost: f64,
}

/// How links deliver by the power at which they are received, taken from the measurement itself: whether six of six beacons prove a good
/// link depends on what other links of that power did.
///
/// Each decibel is a beta-binomial distribution whose two moments are those of its links (Griffiths, Biometrics 1973, 29). Where all links of
/// a power are alike, such as next to the sensitivity of quiet radios, it outweighs a link's own few beacons. Where some are disturbed and
/// others are not, it hardly counts.
struct Curve(Vec<Prior>);

/// Links of one power from which the shape of their distribution follows; with fewer, those a decibel weaker and stronger count as well, and
/// so on. 30: a standard deviation is then known to an eighth.
const ALIKE: f64 = 30.0;
/// Beacons that a prior counts as at most, so that a link's own beacons are never ignored. 50: our choice.
const WEIGHT_MAX: f64 = 50.0;

/// Links of one power: how many, the sum of their shares, and of the squares.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    links: f64,
    shares: f64,
    squares: f64,
}

impl Curve {
    /// The distributions of each decibel, from the links that were heard at it.
    fn new(sums: &[Sums], beacons: f64) -> Curve {
        let around = |at: usize| {
            let mut sum = sums[at];
            for apart in 1..WHOLE {
                if sum.links >= ALIKE {
                    break;
                }
                let sides = [at.checked_sub(apart), at.checked_add(apart)];
                for other in sides.into_iter().flatten().filter_map(|at| sums.get(at)) {
                    sum.links += other.links;
                    sum.shares += other.shares;
                    sum.squares += other.squares;
                }
            }
            sum.prior(beacons)
        };
        Curve((0..WHOLE).map(around).collect())
    }

    /// What is known of a link of this power.
    fn prior(&self, power: Option<Dbm>) -> Prior {
        let known = power.and_then(|power| self.0.get(bin(power)?)).copied();
        known.unwrap_or(Prior {
            heard: DOUBT,
            lost: DOUBT,
        })
    }
}

impl Sums {
    fn add(&mut self, share: f64) {
        self.links += 1.0;
        self.shares += share;
        self.squares += share * share;
    }

    /// The distribution of these links, by its moments, from so many beacons each.
    fn prior(&self, beacons: f64) -> Prior {
        // Of few links without a loss the next one may still lose some.
        let mean = (self.shares * beacons + DOUBT) / (self.links * beacons + 2.0 * DOUBT);
        let own = self.shares / self.links.max(1.0);
        let variance = self.squares / self.links.max(1.0) - own * own;
        // Of equal links the shares scatter by mean (1 - mean) / beacons; what they scatter beyond tells how different the links are.
        let most = mean * (1.0 - mean);
        let alike = most / beacons;
        let excess = (variance - alike) / (most - alike).max(f64::MIN_POSITIVE);
        let weight = match excess > 0.0 && beacons > 1.0 {
            true => (1.0 / excess - 1.0).clamp(0.0, WEIGHT_MAX),
            false => WEIGHT_MAX,
        };
        // Of one link, or of none, nothing is told of others.
        let weight = weight.min(self.links);
        Prior {
            heard: weight * mean,
            lost: weight * (1.0 - mean),
        }
    }
}

/// The place of a power among the whole decibels.
fn bin(power: Dbm) -> Option<usize> {
    let at = libm::round(power.0) - f64::from(WHOLE_MIN);
    (at >= 0.0).then_some(at as usize)
}

/// Milliwatts of powers that are whole dBm, as radios report them: of a hundred thousand links few differ in theirs.
struct Milliwatts(Vec<f64>);

/// The lowest power in the table, in dBm, and how many there are.
const WHOLE_MIN: i32 = -128;
const WHOLE: usize = 160;

impl Milliwatts {
    fn new() -> Milliwatts {
        let one = |at: usize| Dbm(f64::from(WHOLE_MIN + at as i32)).to_milliwatt().0;
        Milliwatts((0..WHOLE).map(one).collect())
    }

    fn of(&self, power: Dbm) -> f64 {
        let at = power.0 - f64::from(WHOLE_MIN);
        // A power that is no whole number, or that no radio reports, is worked out.
        let place = Some(at as usize).filter(|&place| place as f64 == at);
        let known = place.and_then(|place| self.0.get(place)).copied();
        known.unwrap_or_else(|| power.to_milliwatt().0)
    }
}

// The order in which `Tables::place` counts the channels.
const _: () = assert!(
    CHANNELS[0].0 == 15 && CHANNELS[1].0 == 20 && CHANNELS[2].0 == 25 && CHANNELS[3].0 == 26
);

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// A hundred nodes whose links have the power `-80 - from % 20` dBm, and what is heard of `BEACONS` at it.
    struct Drawn(Vec<f64>);

    const NODES: usize = 100;
    const BEACONS: u32 = 6;

    fn power(from: usize) -> f64 {
        -80.0 - (from % 20) as f64
    }

    /// A measurement of links that deliver `share` of their power and of a uniform random number.
    fn drawn(share: impl Fn(f64, f64) -> f64) -> Drawn {
        let mut random = Seed(3).stream(Purpose::Topology);
        let mut shares = Vec::new();
        for place in 0..NODES * NODES {
            let share = share(power(place / NODES), random.fraction());
            let heard = (0..BEACONS).filter(|_| random.chance(share)).count();
            shares.push(heard as f64 / f64::from(BEACONS));
        }
        Drawn(shares)
    }

    impl Links for Drawn {
        fn nodes(&self) -> usize {
            NODES
        }

        fn prr(&self, _: Channel, from: usize, to: usize) -> f64 {
            self.0[from * NODES + to]
        }

        fn power(&self, _: Channel, from: usize, _: usize) -> Option<Dbm> {
            Some(Dbm(power(from)))
        }
    }

    fn tables(links: &Drawn) -> Tables {
        let wish = Wish {
            beacons: BEACONS,
            ..Wish::default()
        };
        Tables::new(links, &wish)
    }

    /// What is believed of links of this power of which all beacons came, on average.
    fn believed(links: &Drawn, dbm: f64) -> f64 {
        let tables = tables(links);
        let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
        let all = pairs.filter(|&(from, to)| from != to && power(from) == dbm);
        let whole = all.filter(|&(from, to)| links.0[from * NODES + to] == 1.0);
        let shares: Vec<f64> = whole
            .map(|(from, to)| tables.believed(Channel(26), from, to))
            .collect();
        assert!(shares.len() > 4, "{dbm}: {}", shares.len());
        shares.iter().sum::<f64>() / shares.len() as f64
    }

    /// Six of six beacons mean little where links of that power lose half. Before, all of these counted as 0.93.
    #[test]
    fn what_links_of_a_power_lose_is_believed() {
        let curve = |dbm: f64| 1.0 / (1.0 + libm::exp(-(dbm + 93.0) * 2.0));
        let links = drawn(|dbm, _| curve(dbm));
        for dbm in [-93.0, -92.0, -91.0, -85.0] {
            let (ours, truth) = (believed(&links, dbm), curve(dbm));
            assert!((ours - truth).abs() < 0.12, "{dbm}: {ours} {truth}");
        }
        assert!(believed(&links, -91.0) > 0.97 && believed(&links, -93.0) < 0.6);
    }

    /// Where a third of the links is disturbed and power says nothing of that, a link's own beacons count.
    #[test]
    fn links_that_differ_are_believed_by_their_own_beacons() {
        let links = drawn(|_, which| if which < 0.33 { 0.3 } else { 1.0 });
        let ours = believed(&links, -85.0);
        assert!(ours > 0.97, "{ours}");
    }

    /// Of a power that no node reports nothing is pooled.
    #[test]
    fn without_a_power_jeffreys_prior_counts() {
        let none = Curve(Vec::new()).prior(None);
        assert_eq!((none.heard, none.lost), (0.5, 0.5));
    }
}
