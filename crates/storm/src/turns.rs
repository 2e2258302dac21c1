//! Scenarios whose members send in turns. Turns need a network where frames far apart do not disturb each other, which the usual draws hardly
//! ever give, so a share of the seeds gets one. Whether a seed does is drawn apart: other seeds keep their scenarios.

use chappe_core::{Purpose, Seed, Stream};
use chappe_scenario as scenario;

use crate::draft::{Draft, Network, Receivers, Transfer, plain, quoted};
use crate::{options, troubles};

/// The key that asks for turns.
const KEY: &str = "turns";
/// The share of the seeds of a system that has the key.
const SHARE: f64 = 0.125;
/// The longest object in batches: with an outer code over 32 of them at a time, several of its segments.
const BATCHES: u64 = 150;

/// Whether this seed's members are to send in turns.
pub fn are_drawn(system: &scenario::System, seed: Seed) -> bool {
    let mut random = seed.stream(Purpose::Trial(1));
    system.keys.names().contains(&KEY) && random.chance(SHARE)
}

/// Gives a draft turns, on a row of nodes that hear little but their neighbours; a good link reaches `range` metres.
pub fn apply(draft: &mut Draft, system: &scenario::System, range: f64, random: &mut Stream) {
    let nodes = 4 + random.below(9) as usize;
    let step = range * (0.5 + 0.6 * random.fraction());
    let place = |node: usize| [(node as f64 * step * 10.0).round() / 10.0, 0.0];
    draft.network = Network::Places((0..nodes).map(place).collect());
    let (batch, payload) = (1 + random.below(8), 20 + random.below(200));
    let batches = options::logarithmic(1.0, BATCHES as f64, random);
    draft
        .protocol
        .retain(|(key, _)| ![KEY, "batch", "payload"].contains(&key.as_str()));
    draft.protocol.push(plain(KEY, true));
    draft.protocol.push(plain("batch", batch));
    draft
        .protocol
        .push(quoted("payload", format!("{payload} B")));
    let source = random.below(3) as usize;
    let others = (0..nodes - 1).filter(|&node| node != source && random.chance(0.3));
    let receivers = others.chain([nodes - 1]).collect();
    draft.transfers = vec![Transfer {
        source: Some(source),
        receivers: Receivers::Nodes(receivers),
        octets: (batches * (2 * batch * payload) as f64) as u64,
    }];
    draft.flows = Vec::new();
    draft.run = Vec::new();
    draft.troubles = troubles::draw(nodes, system.has_link_loss, random);
}
