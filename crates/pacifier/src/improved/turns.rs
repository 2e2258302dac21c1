//! Turns: which members send together, in which slots.
//!
//! Hidden nodes do not sense each other, so members that contend lose many receptions to collisions (docs/pacifier.md, "Turns").
//! Turns are made from the delivery ratios that all members know: `Shares` says how often each member has to send, and members
//! whose frames do not disturb each other where they are needed share a slot.
//!
//! How strongly a member disturbs is not measured, but follows from delivery ratios ([`Channel`]). Between members that do not hear
//! each other it follows from where they stand (`places.rs`).
//!
//! Turns serve a source whose links stay as they were measured. If a member fails, its turns go unused until members contend
//! (`group/access.rs`).

use alloc::vec;
use alloc::vec::Vec;

use super::fit::Measured;
use super::pairs::Pairs;
use super::places::distances;
use super::shares::Shares;
use crate::links::Links;
use crate::set::NodeSet;

/// Packets whose transmissions one period of turns holds. A member that sends less than one frame in this many packets has no turns.
const PERIOD: f64 = 64.0;
/// The same for chosen sets, of which there are hundreds, each with a small part of the time.
const CHOSEN_PERIOD: f64 = 256.0;
/// Slots by which a member begins later than those that it hears, so that they have something for it. A judgement: 10 to 25 carried as much.
const DELAY: f64 = 15.0;
/// The turns of the first periods are made for so many times the object's packets, since some frames bring nothing new.
const MARGIN: f64 = 1.1;
/// Longer objects gain nothing from turns of their beginning and end.
const OPENING_MAX: f64 = 20_000.0;
/// A node has done its share of a period when this part of it is left: the last slots would serve hardly anyone.
const DONE: f64 = 0.03;
/// Least reuse for which turns pay: contention carries 0.76 to 0.85 of the best serial schedule, and turns about 0.85 of what their reuse
/// promises (docs/pacifier.md, "Turns"). A plan with less has missed the serial schedule itself.
const REUSE_MIN: f64 = 0.95;
/// Ratios outside these limits are not told from 0 and 1 by 600 probes.
const MEASURED: (f64, f64) = (0.01, 0.995);
/// Probes of a node in the paper's ten minutes, of which ratios are made.
const PROBES: f64 = 600.0;
/// No distance is taken for more exact than to this part: collisions of probes and the law itself; a judgement.
const EXACT: f64 = 0.01;

/// How signals fade, and what disturbs them.
///
/// With P(gain > x) = exp(-x^n) a frame whose mean power is `m` times what is needed arrives with the probability p = exp(-m^-n). So
/// -ln p tells its power, and grows with the distance to the power of n times that of the path loss. Beside a frame of another node,
/// it survives with the probability 1 / (1 + c^n ln p / ln q), where q is the other's ratio and c what signal to interference a receiver needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// How -ln p of a link grows with its distance: with this power of it.
    pub exponent: f64,
    /// The power of the distance for near nodes, those of links whose -ln p is below `bend`.
    pub near: f64,
    /// Where the law of near nodes ends: -ln p of a link of that length. Zero if one law holds everywhere.
    pub bend: f64,
    /// The weight c^n of the interferer.
    pub weight: f64,
}

impl Channel {
    /// Two rays over open land, where power falls with the fourth power of the distance; a receiver needs 10 dB; and GloMoSim's
    /// fading, P(gain > x) = exp(-pi x^2 / 4).
    pub const OPEN_LAND: Channel = Channel {
        exponent: 8.0,
        near: 4.0,
        bend: 0.0,
        weight: 100.0,
    };

    /// Rayleigh's fading with the fourth power of the distance, and radios of 802.11b, which receive a frame with twice the power of the other
    /// ones. Shares of links alone tell the powers. The exponent only tells those of members that do not hear each other; with the third
    /// and the sixth power turns carried as much (0.99, 1.11 and 1.00, 1.13 instead of 0.99, 1.11 times the serial schedule indoors).
    pub const RAYLEIGH: Channel = Channel {
        exponent: 4.0,
        near: 2.0,
        bend: 0.0,
        weight: 2.0,
    };

    /// The length of a link from -ln of its delivery ratio, in an unknown unit.
    fn length(&self, faint: f64) -> f64 {
        match self.bend > 0.0 {
            true if faint < self.bend => libm::pow(faint / self.bend, 1.0 / self.near),
            true => libm::pow(faint / self.bend, 1.0 / self.exponent),
            false => libm::pow(faint, 1.0 / self.exponent),
        }
    }

    /// The reverse of [`length`](Self::length).
    fn faintness(&self, length: f64) -> f64 {
        match self.bend > 0.0 {
            true if length < 1.0 => self.bend * libm::pow(length, self.near),
            true => self.bend * libm::pow(length, self.exponent),
            false => libm::pow(length, self.exponent),
        }
    }
}

/// Sets that were chosen elsewhere, by a program that knows how frames disturb each other.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// Who sends together, with the slots of each set for a packet of the source.
    pub sets: &'a [(NodeSet, f64)],
    /// What goes from a node to another, up to a factor; row-major: from, to.
    pub flows: &'a [f64],
    /// The innovative packets that each node hears for one of the source, by node.
    pub heard: &'a [f64],
    /// Packets of the source's object; zero for turns that begin as they go on.
    pub packets: usize,
}

/// The turns of all members.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// Slots of each node for a packet of the source, by node.
    slots: Vec<f32>,
    /// Slots of each node for each innovative packet that it hears.
    per_heard: Vec<f32>,
    /// The nodes that get more from a node than they give to it, by node.
    fed: Vec<NodeSet>,
    sets: Vec<NodeSet>,
    /// The slots of the first periods, each with the index of its set.
    opening: Vec<u16>,
    /// One period of those after them, in the same way.
    order: Vec<u16>,
    reuse: f64,
}

impl Turns {
    /// Turns for one source and its receivers, over links of at least `link_min`.
    pub fn new(
        links: &Links,
        source: u16,
        receivers: &[u16],
        link_min: f64,
        channel: Channel,
    ) -> Turns {
        let shares = Shares::least(links, source, receivers, link_min);
        let picked = Reuse::new(links, &shares, channel).pick(&shares);
        let mut counts: Vec<(NodeSet, u32)> = Vec::new();
        for set in &picked {
            match counts.iter_mut().find(|(known, _)| known == set) {
                Some((_, count)) => *count += 1,
                None => counts.push((*set, 1)),
            }
        }
        let heard = heard(links, source, &shares);
        let flow = |from: usize, to: usize| shares.flow.at(from, to);
        Turns::of(counts, PERIOD, flow, &heard, shares.sent.iter().sum())
    }

    /// Turns in sets that were chosen elsewhere, for one source and its receivers.
    pub fn in_sets(
        links: &Links,
        source: u16,
        receivers: &[u16],
        link_min: f64,
        chosen: &Chosen<'_>,
    ) -> Turns {
        let rounded = chosen.sets.iter().map(|&(set, slots)| {
            let count = libm::round(slots * CHOSEN_PERIOD);
            (set, count as u32)
        });
        let counts: Vec<(NodeSet, u32)> = rounded.filter(|&(_, count)| count > 0).collect();
        let shares = Shares::least(links, source, receivers, link_min);
        let flow = |from: usize, to: usize| {
            let place = from * links.nodes() + to;
            chosen.flows.get(place).copied().unwrap_or(0.0)
        };
        let serial = shares.sent.iter().sum();
        let depths = depths(links.nodes(), source.into(), &flow);
        let mut turns = Turns::of(counts, CHOSEN_PERIOD, flow, chosen.heard, serial);
        turns.opening = turns.opening(chosen, &depths);
        turns
    }

    /// The turns of sets with their slots in `packets` packets of the source.
    fn of(
        counts: Vec<(NodeSet, u32)>,
        packets: f64,
        flow: impl Fn(usize, usize) -> f64,
        heard: &[f64],
        serial: f64,
    ) -> Turns {
        let nodes = heard.len();
        let slots = (0..nodes as u16).map(|node| {
            let turns = counts.iter().filter(|(set, _)| set.contains(node));
            let turns: u32 = turns.map(|&(_, count)| count).sum();
            (f64::from(turns) / packets) as f32
        });
        let slots: Vec<f32> = slots.collect();
        let per_heard = slots.iter().zip(heard);
        let per_heard = per_heard.map(|(&slots, &heard)| match heard > 0.0 {
            true => slots / heard as f32,
            false => 0.0,
        });
        let fed = (0..nodes).map(|from| {
            let fed = (0..nodes).filter(|&to| flow(from, to) > flow(to, from));
            fed.map(|to| to as u16).collect()
        });
        let all: u32 = counts.iter().map(|&(_, count)| count).sum();
        Turns {
            per_heard: per_heard.collect(),
            fed: fed.collect(),
            slots,
            opening: Vec::new(),
            order: spread(&counts),
            sets: counts.into_iter().map(|(set, _)| set).collect(),
            reuse: serial * packets / f64::from(all.max(1)),
        }
    }

    /// The slots of a whole object, at most [`OPENING_MAX`]. The farther members are from the source, the later they begin, and the source
    /// ends first: no member has turns before there is something to send, or after all is sent.
    fn opening(&self, chosen: &Chosen<'_>, depths: &[f64]) -> Vec<u16> {
        let packets = chosen.packets as f64 * MARGIN;
        let each = chosen.sets.iter().map(|&(_, slots)| slots);
        let all = each.sum::<f64>() * packets;
        let depth = |node: u16| depths.get(usize::from(node)).copied().unwrap_or(0.0);
        let senders = self.senders();
        let deepest = senders.iter().map(depth).fold(0.0, f64::max);
        let span = all - DELAY * deepest;
        if span <= 0.0 || all > OPENING_MAX {
            return Vec::new();
        }
        let mut places: Vec<(f64, u16)> = Vec::new();
        for &(set, slots) in chosen.sets {
            let known = (0u16..).zip(&self.sets).find(|(_, known)| **known == set);
            let Some((number, _)) = known else {
                continue;
            };
            let late = set.iter().map(depth).sum::<f64>() / set.len().max(1) as f64;
            let count = libm::round(slots * packets) as u32;
            let turns = (0..count).map(|turn| (f64::from(turn) + 0.5) / f64::from(count));
            places.extend(turns.map(|place| (place * span + late * DELAY, number)));
        }
        in_order(places)
    }

    /// How many frames that a packet takes one after the other go in one slot: what turns gain over a serial schedule.
    pub fn reuse(&self) -> f64 {
        self.reuse
    }

    /// Whether turns are likely to carry more than contention.
    pub fn pays(&self) -> bool {
        self.reuse >= REUSE_MIN
    }

    /// Slots in a period.
    pub fn period(&self) -> u64 {
        self.order.len() as u64
    }

    /// Slots within which every node with turns has one, whatever slot it is now.
    pub fn horizon(&self) -> u64 {
        self.opening.len() as u64 + self.period()
    }

    /// Whether a slot is one of this node's turns. Slots go on through the periods.
    pub fn is_turn(&self, slot: u64, node: u16) -> bool {
        let opening = self.opening.len() as u64;
        let set = match slot.checked_sub(opening) {
            None => self.opening.get(slot as usize),
            Some(later) => {
                let place = later.checked_rem(self.period()).unwrap_or(0);
                self.order.get(place as usize)
            }
        };
        let set = set.and_then(|&set| self.sets.get(usize::from(set)));
        set.is_some_and(|set| set.contains(node))
    }

    /// Whether this node has turns at all.
    pub fn has_turns(&self, node: u16) -> bool {
        self.own(node) > 0.0
    }

    /// Whether the flow between two nodes goes from the first to the second; `None` if there is none.
    pub fn feeds(&self, from: u16, to: u16) -> Option<bool> {
        let fed = |from: u16, to: u16| {
            let fed = self.fed.get(usize::from(from));
            fed.is_some_and(|fed| fed.contains(to))
        };
        (fed(from, to) || fed(to, from)).then(|| fed(from, to))
    }

    /// The nodes that have turns, with the source.
    pub fn senders(&self) -> NodeSet {
        let sets = self.sets.iter();
        sets.fold(NodeSet::EMPTY, |all, set| all.union(set))
    }

    /// Slots of a node for a packet of the source.
    pub fn own(&self, node: u16) -> f32 {
        let own = self.slots.get(usize::from(node));
        own.copied().unwrap_or(0.0)
    }

    /// Slots of a node for each innovative packet that it hears.
    pub fn per_heard(&self, node: u16) -> f32 {
        let per_heard = self.per_heard.get(usize::from(node));
        per_heard.copied().unwrap_or(0.0)
    }
}

/// The innovative packets that each node hears for one of the source, by node: those of nodes nearer to the source.
fn heard(links: &Links, source: u16, shares: &Shares) -> Vec<f64> {
    let paths = links.etx_paths(source);
    let nodes = 0..links.nodes() as u16;
    let heard = |node: u16| {
        let sent = (0u16..).zip(&shares.sent);
        let nearer = sent.filter(|&(from, _)| paths.cost(from) < paths.cost(node));
        let each = nearer.map(|(from, sent)| sent * links.ratio(from, node));
        each.sum::<f64>().min(1.0)
    };
    nodes.map(heard).collect()
}

/// Spreads each set's slots evenly over the period.
fn spread(counts: &[(NodeSet, u32)]) -> Vec<u16> {
    let mut places: Vec<(f64, u16)> = Vec::new();
    for (set, &(_, count)) in (0u16..).zip(counts) {
        let turns = (0..count).map(|turn| (f64::from(turn) + 0.5) / f64::from(count));
        places.extend(turns.map(|place| (place, set)));
    }
    in_order(places)
}

fn in_order(mut places: Vec<(f64, u16)>) -> Vec<u16> {
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    places.into_iter().map(|(_, set)| set).collect()
}

/// How many hops a packet has behind it at each node, on average.
fn depths(nodes: usize, source: usize, flow: &impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut depths = vec![0.0; nodes];
    // Flows of several receivers may go round in rings, so the number of steps is limited.
    for _ in 0..nodes {
        let next = (0..nodes).map(|to| {
            let flows = depths.iter().enumerate();
            let (all, hops) = flows.fold((0.0, 0.0), |(all, hops), (from, depth)| {
                let flow = flow(from, to);
                (all + flow, hops + flow * (1.0 + depth))
            });
            match to != source && all > 0.0 {
                true => hops / all,
                false => 0.0,
            }
        });
        depths = next.collect();
    }
    depths
}

/// What members leave of each other's frames.
struct Reuse {
    heads: Vec<Vec<Head>>,
    /// -ln of the delivery ratio, also of links that nothing arrives over.
    faint: Pairs,
    weight: f64,
}

/// A node that another one's frames are for.
struct Head {
    node: usize,
    /// Its part of the sender's flow; those of a sender sum to 1.
    part: f64,
}

/// A node's work in a period.
struct Work {
    /// Frames that it has to send, if nothing disturbs them.
    frames: f64,
    /// By head: the frames that it still has to have a chance to hear.
    left: Vec<f64>,
}

impl Reuse {
    fn new(links: &Links, shares: &Shares, channel: Channel) -> Reuse {
        let nodes = links.nodes();
        let heads = (0..nodes).map(|from| {
            let flows = (0..nodes).map(|to| (to, shares.flow.at(from, to)));
            let all: f64 = flows.clone().map(|(_, flow)| flow).sum();
            let heads = flows.filter(|&(_, flow)| flow > 0.0);
            heads
                .map(|(node, flow)| Head {
                    node,
                    part: flow / all,
                })
                .collect()
        });
        Reuse {
            heads: heads.collect(),
            faint: faintness(links, channel),
            weight: channel.weight,
        }
    }

    fn heads(&self, node: usize) -> &[Head] {
        self.heads.get(node).map_or(&[], Vec::as_slice)
    }

    /// What the others of a set leave of a node's frames at a head.
    fn survives(&self, node: usize, head: usize, set: &[usize]) -> f64 {
        if set.contains(&head) {
            return 0.0;
        }
        let own = self.faint.at(node, head);
        let others = set.iter().filter(|&&other| other != node);
        others
            .map(|&other| 1.0 / (1.0 + self.weight * own / self.faint.at(other, head)))
            .product()
    }

    /// Sets for all slots of a period. Each head counts for itself: a node of which one head never hears anything has not done its share.
    fn pick(&self, shares: &Shares) -> Vec<NodeSet> {
        let work = |(node, &sent): (usize, &f64)| {
            let frames = sent * PERIOD;
            let frames = if frames < 1.0 { 0.0 } else { frames };
            Work {
                frames,
                left: vec![frames; self.heads(node).len()],
            }
        };
        let mut work: Vec<Work> = shares.sent.iter().enumerate().map(work).collect();
        let mut picked = Vec::new();
        // Each slot does at least a part of one node's work, so this ends; the limit is that of their numbers.
        while picked.len() < u16::MAX.into()
            && let Some(set) = self.next(&work)
        {
            for &node in &set {
                let Some(work) = work.get_mut(node) else {
                    continue;
                };
                for (head, left) in self.heads(node).iter().zip(&mut work.left) {
                    *left -= self.survives(node, head.node, &set);
                }
            }
            picked.push(set.into_iter().map(|node| node as u16).collect());
        }
        picked
    }

    /// The set of the next slot: the node with most left to do, then those that add most to what the slot does; `None` when all is done.
    fn next(&self, work: &[Work]) -> Option<Vec<usize>> {
        let gain = |set: &[usize]| -> f64 {
            let each = set.iter().map(|&node| self.gain(node, set, work));
            each.sum()
        };
        let alone = work.iter().enumerate();
        let alone = alone.map(|(node, work)| (node, gain(&[node]), work.frames));
        let open: Vec<(usize, f64, f64)> = alone.filter(|&(_, gain, _)| gain > 0.0).collect();
        let waiting = open
            .iter()
            .filter(|&&(_, gain, frames)| gain > DONE * frames);
        let first = waiting.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (mut set, mut value) = (vec![first.0], first.1);
        loop {
            let others = open.iter().filter(|(node, ..)| !set.contains(node));
            let with = others.map(|&(node, ..)| {
                let with: Vec<usize> = set.iter().copied().chain([node]).collect();
                (gain(&with), with)
            });
            let best = with.max_by(|a, b| a.0.total_cmp(&b.0));
            match best.filter(|&(with, _)| with > value) {
                Some((with, larger)) => (value, set) = (with, larger),
                None => return Some(set),
            }
        }
    }

    /// How much of what a node has left to do a slot with this set does, weighted by what is left.
    fn gain(&self, node: usize, set: &[usize], work: &[Work]) -> f64 {
        let left = work.get(node).into_iter().flat_map(|work| &work.left);
        let open = self.heads(node).iter().zip(left);
        let open = open.filter(|&(_, &left)| left > 0.0);
        open.map(|(head, left)| head.part * left * self.survives(node, head.node, set))
            .sum()
    }
}

/// -ln of the delivery ratio of every link, also of those that nothing arrives over; row-major: from, to.
pub fn faint(links: &Links, channel: Channel) -> Vec<f64> {
    faintness(links, channel).into_values()
}

/// -ln of the delivery ratio of every link; of links that nothing arrives over, from where the nodes stand.
fn faintness(links: &Links, channel: Channel) -> Pairs {
    let far = distances(&measured(links, channel));
    Pairs::of(links.nodes(), |from, to| {
        let ratio = links.ratio(from as u16, to as u16);
        match (from == to, ratio >= MEASURED.0) {
            (true, _) => 0.0,
            (_, true) => -libm::log(ratio.min(MEASURED.1)),
            (_, false) => channel.faintness(far.at(from, to)),
        }
    })
}

/// The distances that ratios of both directions together tell, and how far these may be off. Even a single probe that arrived tells a distance
/// to a few percent, as ratios fall steeply.
fn measured(links: &Links, channel: Channel) -> Measured {
    let least = 0.5 / PROBES;
    let both = |a: usize, b: usize| {
        let (a, b) = (a as u16, b as u16);
        (links.ratio(a, b) + links.ratio(b, a)) / 2.0
    };
    let faint = |ratio: f64| -libm::log(ratio.clamp(least, 1.0 - least));
    let far = Pairs::of(links.nodes(), |a, b| match (a == b, both(a, b)) {
        (true, _) => 0.0,
        (_, ratio) if ratio >= least => channel.length(faint(ratio)),
        _ => f64::INFINITY,
    });
    let error = Pairs::of(links.nodes(), |a, b| {
        let ratio = both(a, b).clamp(least, 1.0 - least);
        let spread = libm::sqrt((1.0 - ratio) / (2.0 * PROBES * ratio)) + least;
        let longer = channel.length(faint(ratio) + spread) / channel.length(faint(ratio));
        far.at(a, b) * (longer - 1.0).max(EXACT)
    });
    let silent = channel.length(faint(least));
    Measured { far, error, silent }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of `nodes` nodes at equal distances; a node hears its neighbours well and those behind them hardly.
    fn row(nodes: usize) -> Links {
        Links::measured(nodes, |from, to| match from.abs_diff(to) {
            1 => 0.9,
            2 => 0.02,
            _ => 0.0,
        })
        .unwrap()
    }

    /// Goal: nodes share a slot only if they are far enough apart. Method: on a row of 13 nodes the source's neighbour and the next
    /// would destroy each other's frames; a packet takes a frame of each of twelve nodes, and fewer slots.
    #[test]
    fn far_nodes_share_slots_and_near_ones_do_not() {
        let turns = Turns::new(&row(13), 0, &[12], 0.05, Channel::OPEN_LAND);
        assert!(turns.reuse() > 2.0, "{}", turns.reuse());
        for slot in 0..turns.period() {
            let set: Vec<u16> = (0..13).filter(|&node| turns.is_turn(slot, node)).collect();
            assert!(!set.is_empty());
            let near = set.windows(2).any(|pair| pair[1] - pair[0] < 3);
            assert!(!near, "{set:?}");
        }
        for node in 0..12 {
            assert!(turns.own(node) > 1.0 && turns.has_turns(node));
            assert_eq!(turns.feeds(node, node + 1), Some(true));
            assert_eq!(turns.feeds(node + 1, node), Some(false));
        }
        assert!(!turns.has_turns(12) && turns.feeds(0, 12).is_none());
    }

    /// Goal: where all hear each other no slot has two senders. Method: five nodes, each link good.
    #[test]
    fn one_frame_at_a_time_where_all_hear_all() {
        let links = Links::measured(5, |_, _| 0.8).unwrap();
        let turns = Turns::new(&links, 0, &[1, 2, 3, 4], 0.05, Channel::OPEN_LAND);
        assert!((0.9..1.1).contains(&turns.reuse()), "{}", turns.reuse());
        let senders = |slot| (0..5).filter(|&node| turns.is_turn(slot, node)).count();
        assert!((0..turns.period()).all(|slot| senders(slot) == 1));
    }

    /// Goal: chosen sets become turns in their proportion. Method: on a row of four nodes the ends of the middle link take a slot each, and
    /// the source shares its slots with the last relay.
    #[test]
    fn chosen_sets_keep_their_slots() {
        let set = |nodes: &[u16]| nodes.iter().copied().collect::<NodeSet>();
        let mut flows = [0.0; 16];
        for near in 0..3 {
            flows[near * 4 + near + 1] = 1.0;
        }
        let chosen = Chosen {
            sets: &[(set(&[0, 2]), 1.25), (set(&[1]), 1.25), (set(&[3]), 1e-4)],
            flows: &flows,
            heard: &[0.0, 1.0, 1.0, 1.0],
            packets: 0,
        };
        let turns = Turns::in_sets(&row(4), 0, &[3], 0.05, &chosen);
        assert!((turns.own(0) - 1.25).abs() < 1e-6 && (turns.own(1) - 1.25).abs() < 1e-6);
        assert!((turns.per_heard(2) - 1.25).abs() < 1e-6 && !turns.has_turns(3));
        assert_eq!(
            (turns.feeds(1, 2), turns.feeds(2, 1)),
            (Some(true), Some(false))
        );
        // Three links of 0.9 take 3.3 frames one after the other, here in 2.5 slots.
        assert!(
            (turns.reuse() - 3.33 / 2.5).abs() < 0.05,
            "{}",
            turns.reuse()
        );
        let both = (0..turns.period()).filter(|&slot| turns.is_turn(slot, 0));
        assert!(both.into_iter().all(|slot| turns.is_turn(slot, 2)));
    }

    /// Goal: in the turns of a whole object far members begin and end later, and each has its share. Method: a row of four nodes whose first
    /// three take a slot each for a packet, and an object of 200 packets.
    #[test]
    fn far_members_begin_and_end_later() {
        let set = |node: u16| [node].into_iter().collect::<NodeSet>();
        let mut flows = [0.0; 16];
        for near in 0..3 {
            flows[near * 4 + near + 1] = 1.0;
        }
        let chosen = Chosen {
            sets: &[(set(0), 1.0), (set(1), 1.0), (set(2), 1.0)],
            flows: &flows,
            heard: &[0.0, 1.0, 1.0, 1.0],
            packets: 200,
        };
        let turns = Turns::in_sets(&row(4), 0, &[3], 0.05, &chosen);
        let opening = turns.horizon() - turns.period();
        assert_eq!(opening, 3 * 220);
        for node in 0..3 {
            let own = (0..opening).filter(|&slot| turns.is_turn(slot, node));
            let own: Vec<u64> = own.collect();
            let (first, last) = (own[0], own[own.len() - 1]);
            assert_eq!(own.len(), 220);
            let due = u64::from(node) * 15;
            assert!(first <= due && first + 25 > due, "{node} begins at {first}");
            let left = (2 - u64::from(node)) * 15;
            assert!(opening - last <= left + 5, "{node} ends at {last}");
            assert_eq!(opening - last > 5, node < 2, "{node} ends at {last}");
        }
    }

    #[test]
    fn a_source_without_receivers_has_no_turns() {
        let turns = Turns::new(&row(3), 0, &[], 0.05, Channel::OPEN_LAND);
        assert_eq!((turns.period(), turns.has_turns(0)), (0, false));
        assert!(!turns.is_turn(7, 0));
    }
}
