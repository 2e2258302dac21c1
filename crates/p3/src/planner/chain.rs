//! What a pipeline delivers, predicted from measured links.
//!
//! The relays of a stage and group that have a packet are a set. From the set of one stage follows the probability of
//! each set of the next, since receivers lose packets independently (measured: MASCOTS 2013, Zimmerling et al.). So a
//! group is a Markov chain over sets, and its last state is the destination alone.
//!
//! One reception, from all senders of a set at once:
//!
//! - the strongest sender's PRR,
//! - times what overlapping identical frames cost, by how far the strongest stands above the sum of the others. Their
//!   carriers beat: in every beat there is a moment at which the others weaken the strongest, and what is left must still
//!   be received,
//! - times what other frames on the air cost, by how far it stands above the sum of these. Every stage sends another
//!   packet at the same time; every fourth one has the same channel, and of the next channel a radio lets through a
//!   thousandth.
//!
//! Both costs are tables of measurements with two nRF52840 senders (R. Jacob et al., data of "Synchronous transmissions
//! on BLE 5 and IEEE 802.15.4"), frames displaced by 0.25 us and different frames.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Channel;

use super::links::Tables;
use super::places::Places;
use super::wish::Wish;
use crate::channels::ChannelOrder;
use crate::sizes::GROUPS_MAX;

/// The expected delivery of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Share of packets that reach the destination in the first pass.
    pub delivered: f64,
    /// The same for the worst group.
    pub worst_group: f64,
    /// The same for the best group.
    pub best_group: f64,
    /// Probability that an answer reaches the source.
    pub answered: f64,
    /// Mean share of a stage's packets that the next stage receives. Where a link does not exist nothing is delivered, and
    /// this still says how much of the way works.
    pub passed: f64,
}

impl Prediction {
    /// The prediction for a chain on which everything arrives.
    pub(super) const PERFECT: Prediction = Prediction {
        delivered: 1.0,
        worst_group: 1.0,
        best_group: 1.0,
        answered: 1.0,
        passed: 1.0,
    };
}

/// A node that sends another packet at the same time.
#[derive(Clone, Copy)]
struct Other {
    node: usize,
    channel: Channel,
    /// The share of its power that passes the receiver's filter.
    share: f64,
}

/// The predictor for one source and destination.
pub(super) struct Model<'a> {
    tables: &'a Tables,
    source: usize,
    destination: usize,
    /// The radios' sensitivity in milliwatts.
    sensitivity: f64,
    rooms: Rooms,
}

/// Room for a prediction, so that a search does not allocate for each.
#[derive(Default)]
struct Rooms {
    holders: Vec<usize>,
    receivers: Vec<usize>,
    senders: Vec<usize>,
    others: Vec<Other>,
    sets: Vec<f64>,
    next: Vec<f64>,
    success: Vec<f64>,
}

/// Share of frames that two overlapping identical ones leave, by how many dB one is stronger: 0, 1, .. 4; all from 5 dB on.
const OVERLAP: [f64; 6] = [0.37, 0.70, 0.86, 0.97, 0.99, 1.0];
/// The same for different frames.
const CAPTURE: [f64; 5] = [0.02, 0.19, 0.73, 0.96, 1.0];
/// Share of frames that survive a beat whose null is too weak to be received: beats slower than a frame, as chip-level
/// simulation of two senders has it (a fifth to a half of them).
const NULL_SURVIVED: f64 = 0.2;
/// Assumed power of a sender that is not received, as a share of the sensitivity: 6 dB below it.
const UNHEARD: f64 = 0.25;
/// Share of a signal's power that passes the filter no, one and two channels away: 30 and 53 dB of rejection, the worse sides of the
/// CC2420's data sheet (SWRS041).
const LEAKAGE: [f64; 3] = [1.0, 1e-3, 5e-6];
/// Decibels by which a frame must stand higher above others than the table says: powers are known to the decibel, and
/// several of them add up.
const CAPTURE_SLACK: f64 = 3.0;

/// Reads a table with one entry per dB.
fn read(table: &[f64], db: f64) -> f64 {
    if db < 0.0 {
        return 0.0;
    }
    let below = db as usize;
    match (table.get(below), table.get(below + 1)) {
        (Some(&low), Some(&high)) => low + (high - low) * (db - below as f64),
        _ => 1.0,
    }
}

fn db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

impl<'a> Model<'a> {
    pub fn new(tables: &'a Tables, source: usize, destination: usize, wish: &Wish) -> Self {
        Model {
            tables,
            source,
            destination,
            sensitivity: wish.sensitivity.to_milliwatt().0,
            rooms: Rooms::default(),
        }
    }

    /// Probability that `to` receives what `senders` send at once, while `others` send something else.
    fn reception(&self, channel: Channel, senders: &[usize], others: &[Other], to: usize) -> f64 {
        let (mut best, mut strongest, mut sum, mut known, mut audible) =
            (0.0f64, 0.0f64, 0.0, true, 0);
        for &from in senders {
            let share = self.tables.believed(channel, from, to);
            best = best.max(share);
            audible += usize::from(share > 0.0);
            match self.tables.milliwatts(channel, from, to) {
                Some(power) => {
                    strongest = strongest.max(power);
                    sum += power;
                }
                // Too weak to be received, and yet strong enough to weaken a faint one.
                None if share <= 0.0 => sum += self.sensitivity * UNHEARD,
                None => known = false,
            }
        }
        if best <= 0.0 {
            return 0.0;
        }
        let rest = sum - strongest;
        let overlap = if audible < 2 && (rest <= 0.0 || strongest <= 0.0) {
            1.0
        } else if known && strongest > 0.0 {
            self.overlap(strongest, rest)
        } else {
            UNKNOWN_OVERLAP
        };
        let mut noise = 0.0;
        let mut capture = 1.0f64;
        for other in others {
            match self.tables.milliwatts(other.channel, other.node, to) {
                Some(power) if known => noise += power * other.share,
                _ if other.share < 1.0 => {}
                _ => capture *= 1.0 - self.tables.believed(channel, other.node, to),
            }
        }
        if noise > 0.0 && strongest > 0.0 {
            capture *= read(&CAPTURE, db(strongest / noise) - CAPTURE_SLACK);
        }
        best * overlap * capture
    }

    /// The share of frames that survives overlapping, for the strongest sender and the sum of the others in milliwatts.
    fn overlap(&self, strongest: f64, rest: f64) -> f64 {
        if rest <= 0.0 {
            return 1.0;
        }
        let amplitude = 1.0 - libm::sqrt(rest / strongest);
        let left = if amplitude > 0.0 {
            strongest * amplitude * amplitude
        } else {
            0.0
        };
        // From 4 dB above the sensitivity nothing is lost at the null; 2 dB below it most frames are.
        let margin = if left > 0.0 {
            db(left / self.sensitivity)
        } else {
            -2.0
        };
        let null = ((margin + 2.0) / 6.0).clamp(0.0, 1.0);
        read(&OVERLAP, db(strongest / rest)) * (NULL_SURVIVED + (1.0 - NULL_SURVIVED) * null)
    }

    /// Predicts the delivery of these stages on these channels.
    pub fn predict(&mut self, stages: &Places, channels: ChannelOrder) -> Prediction {
        let mut shares = [0.0; GROUPS_MAX as usize];
        let groups = stages.groups().min(shares.len());
        let mut passed = 0.0;
        for (group, share) in shares.iter_mut().take(groups).enumerate() {
            let (delivered, through) = self.delivered(stages, channels, group);
            *share = delivered;
            passed += through / groups as f64;
        }
        let known = &shares[..groups];
        Prediction {
            delivered: known.iter().sum::<f64>() / groups as f64,
            worst_group: known.iter().copied().fold(1.0, f64::min),
            best_group: known.iter().copied().fold(0.0, f64::max),
            answered: self.answerers(stages, channels).1,
            passed,
        }
    }

    /// The share of a group's packets that arrives, and the mean share that passes a stage.
    fn delivered(&mut self, stages: &Places, channels: ChannelOrder, group: usize) -> (f64, f64) {
        let mut rooms = core::mem::take(&mut self.rooms);
        let share = self.follow(stages, channels, group, &mut rooms);
        self.rooms = rooms;
        share
    }

    fn follow(
        &self,
        stages: &Places,
        channels: ChannelOrder,
        group: usize,
        rooms: &mut Rooms,
    ) -> (f64, f64) {
        let Rooms {
            holders,
            receivers,
            senders,
            others,
            sets,
            next,
            success,
        } = rooms;
        // The nodes that may hold the packet, and for each subset of them the probability that exactly it does.
        holders.clear();
        holders.push(self.source);
        sets.clear();
        sets.extend([0.0, 1.0]);
        let (mut alive, mut passed) = (true, 0.0);
        for stage in 0..=stages.stages() {
            receivers.clear();
            if stage == stages.stages() {
                receivers.push(self.destination);
            } else {
                receivers.extend(stages.members(stage, group));
            }
            let channel = channels.of_stage(stage as u8 + 1);
            others.clear();
            self.interferers(stages, channels, stage, group, others);
            next.clear();
            next.resize(1 << receivers.len(), 0.0);
            for (set, &probability) in sets.iter().enumerate().skip(1) {
                if probability <= 0.0 {
                    continue;
                }
                senders.clear();
                senders.extend(
                    (0..holders.len())
                        .filter(|at| set >> at & 1 == 1)
                        .map(|at| holders[at]),
                );
                success.clear();
                success.extend(
                    receivers
                        .iter()
                        .map(|&to| self.reception(channel, senders, others, to)),
                );
                for (outcome, place) in next.iter_mut().enumerate() {
                    let mut chance = 1.0;
                    for (at, &success) in success.iter().enumerate() {
                        let came = outcome >> at & 1 == 1;
                        chance *= if came { success } else { 1.0 - success };
                    }
                    *place += probability * chance;
                }
            }
            let (held, holding): (f64, f64) =
                (sets.iter().skip(1).sum(), next.iter().skip(1).sum());
            passed += holding / held;
            if holding <= 0.0 {
                alive = false;
                // The rest of the way is looked at as if all of them had the packet.
                if let Some(all) = next.last_mut() {
                    *all = 1.0;
                }
            }
            core::mem::swap(holders, receivers);
            core::mem::swap(sets, next);
        }
        let share = sets.get(1).copied().filter(|_| alive);
        let passed = passed / (stages.stages() + 1) as f64;
        (share.unwrap_or(0.0), passed)
    }

    /// The nodes that send another packet while `stage` (from 0) of a group listens, and how much of its power counts: all on the
    /// same channel, little on the next one. A stage `k` further on is `k` packets behind, so theirs is the group whose
    /// turn it then is; a single group sends in every second slot only.
    fn interferers(
        &self,
        stages: &Places,
        channels: ChannelOrder,
        stage: usize,
        group: usize,
        others: &mut Vec<Other>,
    ) {
        let groups = stages.groups();
        let own = channels.of_stage(stage as u8 + 1);
        // Sender 0 is the source, sender k the relays of stage k - 1; `stage` hears sender `stage`.
        for sender in (0..=stages.stages()).filter(|&sender| sender != stage) {
            let channel = channels.of_stage(sender as u8 + 1);
            let apart = channel.0.abs_diff(own.0);
            let Some(&share) = LEAKAGE.get(usize::from(apart)) else {
                continue;
            };
            if groups == 1 && sender.abs_diff(stage) % 2 == 1 {
                continue;
            }
            let other = |node| Other {
                node,
                channel,
                share,
            };
            match sender.checked_sub(1) {
                None => others.push(other(self.source)),
                Some(relays) => {
                    let behind = group + stage + sender * (groups - 1);
                    let turn = behind % groups;
                    others.extend(stages.members(relays, turn).map(other));
                    if groups == 3 {
                        // A hop takes longer than a cycle, so another packet overlaps the front or the end.
                        let beside = if sender > stage { groups - 1 } else { 1 };
                        let turn = (behind + beside) % groups;
                        others.extend(stages.members(relays, turn).map(other));
                    }
                }
            }
        }
    }

    /// An answer goes back through one relay of each stage: the chain of them that most likely brings it, and how
    /// likely that is. Alone they do not beat; if they fail, all relays take part in the next attempt.
    pub fn answerers(&self, stages: &Places, channels: ChannelOrder) -> (Vec<usize>, f64) {
        // For each relay: the best probability to have the answer, and from whom it has it.
        let mut tables: Vec<Vec<(usize, f64, usize)>> = vec![vec![(self.destination, 1.0, 0)]];
        for stage in (0..=stages.stages()).rev() {
            let receivers: Vec<usize> = match stage.checked_sub(1) {
                Some(stage) => (0..stages.groups())
                    .flat_map(|group| stages.members(stage, group))
                    .collect(),
                None => vec![self.source],
            };
            let channel = channels.of_stage(stage as u8);
            let Some(holders) = tables.last() else { break };
            let reach = |to: usize| {
                let mut best = (to, 0.0, 0);
                for (at, &(from, chance, _)) in holders.iter().enumerate() {
                    let chance = chance * self.tables.believed(channel, from, to);
                    if chance > best.1 {
                        best = (to, chance, at);
                    }
                }
                best
            };
            let table = receivers.into_iter().map(reach).collect();
            tables.push(table);
        }
        let end = tables.last().and_then(|table| table.first()).copied();
        let (_, chance, mut at) = end.unwrap_or_default();
        let mut chain = Vec::new();
        for table in tables.iter().rev().skip(1) {
            let (node, _, from) = table.get(at).copied().unwrap_or_default();
            chain.push(node);
            at = from;
        }
        chain.pop();
        (chain, chance)
    }
}

/// What overlapping senders of unknown power are taken to cost: the mean of [`OVERLAP`] over 0 to 5 dB is 0.81, and
/// two links rarely differ by less.
const UNKNOWN_OVERLAP: f64 = 0.9;
