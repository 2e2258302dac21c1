//! The turns of a transfer, from the links that all its members have measured.
//!
//! Which members send together is the answer of the program with interference ([`chappe_bound::schedule`]), whose powers follow from delivery ratios. Every member comes to the same answer, since all know the same ratios.

use std::sync::Arc;

use chappe_bound::{Interference, Rayleigh, Schedule, ScheduleOptions, schedule};
use chappe_pacifier::improved::turns::{Channel, Chosen, Turns, faint};
use chappe_pacifier::{Config, Links, NodeSet};
use chappe_sim::{Fading, PathLoss, Profile, crossover};

use super::interference::NODES_MAX;
use super::{Pacifier, Prepared};

/// How far a frame's power must exceed that of each other one with GloMoSim's fading, as a plain ratio. A receiver needs 10, but the program multiplies chances
/// where powers add: with four others of equal power their squares count for 1 + 3 pi / 4 each, which asks for 18. The rest is for
/// powers that are not known exactly. Chosen among 17, 22 and 30 on seeds 4001 to 4004.
const RATIO: f64 = 22.0;
/// A program stops this close to the best: half of that takes 1.5 times as long, and carried as much (seeds 4001 to 4004).
const GAP: f64 = 0.2;
/// The program takes a second or less on networks of so many nodes.
const SMALL: usize = 30;
const SMALL_GAP: f64 = 0.05;

/// The turns of the transfer's source, if the members are to send in turns, there is one transfer, and turns pay on this network. Without an
/// outer code all its batches must have a place at a relay: longer objects wait for batches that lack a few packets.
pub fn turns(with: &Pacifier, prepared: &Prepared) -> Option<(u16, Arc<Turns>)> {
    let [transfer] = prepared.network.transfers.as_slice() else {
        return None;
    };
    let Config::Improved(config) = &with.protocol.config else {
        return None;
    };
    let common = &config.common;
    let batch = common.k * common.payload;
    let batches = transfer.object.len().div_ceil(batch.max(1));
    let fits = config.settings.outer || batches <= config.settings.window as usize;
    if !with.protocol.turns || !fits {
        return None;
    }
    let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
    let (source, link_min) = (transfer.source as u16, config.settings.link_min);
    let packets = transfer.object.len().div_ceil(common.payload.max(1));
    let profile = prepared.network.medium.profile();
    let channel = channel(profile);
    let links = &prepared.links;
    let strong = prepared.strengths.over_least(links);
    let turns = model(links, &strong, channel, profile.fading)
        .and_then(|model| chosen(&model, links, (source, &receivers), link_min, packets))
        .unwrap_or_else(|| Turns::new(links, source, &receivers, link_min, channel));
    turns.pays().then(|| (source, Arc::new(turns)))
}

/// How signals fade with the distance, by what members know of their radios: power, threshold, wave length and antennas.
fn channel(profile: &Profile) -> Channel {
    if profile.fading == Fading::Rayleigh {
        return Channel::RAYLEIGH;
    }
    let PathLoss::TwoRayGround { hertz, height } = profile.path_loss else {
        return Channel::OPEN_LAND;
    };
    let bend = crossover(hertz, height);
    let power = profile.power - profile.path_loss.loss(bend) + profile.antennas;
    let margin = 10f64.powf((power.0 - profile.lock.power.0) / 10.0);
    Channel {
        bend: std::f64::consts::FRAC_PI_4 / (margin * margin),
        ..Channel::OPEN_LAND
    }
}

/// What frames do to each other, by the delivery ratios of all links and what is known of `strong` ones; `None` if the network is too large for the
/// program, which then takes sets one by one ([`Turns::new`]).
fn model(
    links: &Links,
    strong: &[Option<f64>],
    channel: Channel,
    fading: Fading,
) -> Option<Interference> {
    let nodes = links.nodes();
    if nodes > NODES_MAX {
        return None;
    }
    // Mean powers over the least that is received: -ln p is least / mean with Rayleigh's fading, pi / 4 times its square with GloMoSim's.
    // Powers of interference and noise add with Rayleigh's, and noise alone asks for the least power.
    let (mean, ratio, noise): (fn(f64) -> f64, _, _) = match fading {
        Fading::Rayleigh => (|faint| 1.0 / faint, channel.weight, 1.0 / channel.weight),
        _ => (
            |faint| (std::f64::consts::FRAC_PI_4 / faint).sqrt(),
            RATIO,
            0.0,
        ),
    };
    let power: Vec<f64> = (faint(links, channel).iter().enumerate())
        .map(|(pair, faint)| match pair / nodes == pair % nodes {
            true => 0.0,
            false => (strong.get(pair).copied().flatten())
                .unwrap_or_else(|| mean(faint.max(f64::MIN_POSITIVE))),
        })
        .collect();
    let radio = Rayleigh {
        power: &power,
        noise,
        ratio,
        least: 1.0,
    };
    // Rates count in frames for each frame's time, so neither time nor size matters.
    let model = match fading {
        Fading::Rayleigh => Interference::rayleigh(nodes, &radio, 1.0, 1),
        _ => Interference::glomosim(nodes, &radio, 1.0, 1),
    };
    model.ok()
}

/// Turns in the sets that the program chooses; `None` if it has no answer.
fn chosen(
    model: &Interference,
    links: &Links,
    (source, receivers): (u16, &[u16]),
    link_min: f64,
    packets: usize,
) -> Option<Turns> {
    let to: Vec<usize> = receivers.iter().map(|&node| node.into()).collect();
    let options = ScheduleOptions {
        gap: match links.nodes() <= SMALL {
            true => SMALL_GAP,
            false => GAP,
        },
        ..ScheduleOptions::default()
    };
    let found = schedule(model, source.into(), &to, &options).ok()?;
    if found.rate_fps <= 0.0 {
        return None;
    }
    let sets = found.sets.iter().map(|(set, share)| {
        let members: NodeSet = set.iter().map(|&node| node as u16).collect();
        (members, share / found.rate_fps)
    });
    let sets: Vec<(NodeSet, f64)> = sets.collect();
    let chosen = Chosen {
        sets: &sets,
        flows: &found.flows,
        heard: &heard(model, &found),
        packets,
    };
    Some(Turns::in_sets(links, source, receivers, link_min, &chosen))
}

/// The packets that each node hears from those that feed it, for one of the source; at most one.
fn heard(model: &Interference, found: &Schedule) -> Vec<f64> {
    let nodes = model.nodes();
    let feeds =
        |from: usize, to: usize| found.flows[from * nodes + to] > found.flows[to * nodes + from];
    let at = |node: usize| {
        let each = found.sets.iter().map(|(set, share)| {
            let from = set.iter().filter(|&&from| feeds(from, node));
            let all: f64 = from.map(|&from| model.received(from, node, set)).sum();
            share * all
        });
        (each.sum::<f64>() / found.rate_fps).min(1.0)
    };
    (0..nodes).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nodes that do not hear each other get their true powers, where near and far nodes follow different laws. Method: a row of
    /// nodes 150 m apart over open land; near ones are in free space, those two apart are heard hardly, and those three apart never.
    #[test]
    fn powers_of_far_nodes_follow_from_near_ones() {
        let profile = Profile {
            power: chappe_core::Dbm(5.0),
            ..Profile::glomosim()
        };
        let channel = channel(&profile);
        let true_faint = |metres: f64| {
            let mean = profile.power - profile.path_loss.loss(metres) + profile.antennas;
            let margin = 10f64.powf((mean.0 - profile.lock.power.0) / 10.0);
            std::f64::consts::FRAC_PI_4 / (margin * margin)
        };
        let ratio = |a: usize, b: usize| (-true_faint(150.0 * a.abs_diff(b) as f64)).exp();
        let nodes = 6;
        let table: Vec<f64> = (0..nodes * nodes)
            .map(|pair| match pair / nodes == pair % nodes {
                true => 0.0,
                false => ratio(pair / nodes, pair % nodes),
            })
            .collect();
        let links = Links::new(nodes, table).unwrap();
        let found = faint(&links, channel);
        let decibels = |a: f64, b: f64| 5.0 * (a / b).log10();
        for (pair, found) in found.iter().enumerate() {
            let apart = (pair / nodes).abs_diff(pair % nodes);
            if apart > 0 {
                let wrong = decibels(*found, true_faint(150.0 * apart as f64));
                assert!(wrong.abs() < 1.0, "{apart} apart: {wrong} dB");
            }
        }
    }

    /// By hand: with Rayleigh's fading -ln of a ratio is the power that is needed over the mean one, and a frame survives beside one of a tenth of its
    /// power with the probability 1 / (1 + 2 / 10). Method: the first node feeds the second one, which hears the third one hardly.
    #[test]
    fn ratios_tell_powers_with_rayleighs_fading() {
        let ratio = |faint: f64| (-faint).exp();
        let links = Links::measured(3, |from, to| match (from, to) {
            (0, 1) | (1, 0) => ratio(0.1),
            (1, 2) | (2, 1) => ratio(1.0),
            _ => 0.0,
        });
        let links = links.unwrap();
        let model = model(&links, &[], Channel::RAYLEIGH, Fading::Rayleigh).unwrap();
        let alone = model.received(0, 1, &[0]);
        assert!((alone - ratio(0.1)).abs() < 1e-9, "{alone}");
        let beside = model.received(0, 1, &[0, 2]) / alone;
        assert!((beside - 1.0 / 1.2).abs() < 1e-9, "{beside}");
    }

    /// Goal: frames go together where radios follow an error curve and fading is Rayleigh's. Method: on a row of ten nodes whose powers fall with the
    /// fourth power of the distance, a packet takes nine frames one after the other, and fewer slots.
    #[test]
    fn far_nodes_share_slots_with_rayleighs_fading() {
        let links = Links::measured(10, |from, to| {
            (-0.05 * f64::from(from.abs_diff(to)).powi(4)).exp()
        });
        let links = links.unwrap();
        let model = model(&links, &[], Channel::RAYLEIGH, Fading::Rayleigh).unwrap();
        let turns = chosen(&model, &links, (0, &[9]), 0.05, 0).unwrap();
        assert!(turns.reuse() > 1.5, "{}", turns.reuse());
    }
}
