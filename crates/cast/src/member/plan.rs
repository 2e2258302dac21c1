//! Planning: the links from the records, and a Pacifier node for each transfer over them.

use std::sync::Arc;

use chappe_core::{Duration, Instant};
use chappe_pacifier::{Links, Node};

use super::config::config;
use super::{Member, Transfer};
use crate::error::Error;

/// Shortest interval between two computations of the links.
const RELINK: Duration = Duration::from_millis(500);
/// The change of a delivery ratio that justifies a new plan: two standard deviations of a ratio of 0.8 over 256 frames.
const CHANGE: f64 = 0.05;

impl Member {
    /// Computes the links from the records, and plans anew if they have changed enough.
    pub(super) fn relink(&mut self, now: Instant) {
        if !self.changed || (self.links.is_some() && now < self.linked + RELINK) {
            return;
        }
        (self.changed, self.linked) = (false, now);
        let Some(links) = self.roster.links(now) else {
            return;
        };
        if self.links.as_ref().is_some_and(|old| is_alike(old, &links)) {
            return;
        }
        let links = Arc::new(links);
        for (_, transfer) in &mut self.transfers {
            if let Some(node) = &mut transfer.node {
                node.relink(links.clone());
            }
            if let Some(offer) = &mut transfer.offer {
                // Forces a new plan even for the same receivers.
                offer.served.clear();
            }
        }
        self.links = Some(links);
        self.make_nodes(now);
    }

    /// Creates a Pacifier node for each transfer whose sender is among the links.
    pub(super) fn make_nodes(&mut self, now: Instant) {
        let common = self.frame_max(now);
        let Some(links) = &self.links else {
            return;
        };
        for (&source, transfer) in &mut self.transfers {
            let links = links.clone();
            if transfer.node.is_some() || transfer.withdrawn.is_some() || !links.has(source) {
                continue;
            }
            let config = config(&self.settings, &transfer.ticket, common);
            let seed = chappe_core::Seed(self.random.next_u64());
            let random = seed.stream(chappe_core::Purpose::Node(self.node.into()));
            match Node::new(config, self.node, links, random) {
                Ok(mut node) => {
                    if let Some(joined) = &transfer.joined {
                        joined.expect(&mut node, &transfer.ticket);
                    }
                    transfer.node = Some(node);
                }
                Err(error) => {
                    // Another sender's frames may be too long for this link. Receivers report that; a relay can only warn.
                    self.counts.unrelayed += u64::from(!self.settings.roles.receives);
                    if let Some(offer) = &mut transfer.offer {
                        let what = format!("the files cannot be sent: {error}");
                        let todo = "lower --k or --nodes, or raise the interface's MTU";
                        offer.obstacle = Some(Error::failed(what, todo));
                    }
                }
            }
        }
    }

    /// Handles senders that have restarted or left.
    pub(super) fn watch_senders(&mut self, now: Instant) {
        let me = self.node;
        for (&source, transfer) in &mut self.transfers {
            let record = self.roster.get(now, source).filter(|_| source != me);
            let Some(life) = record.map(|record| record.life) else {
                continue;
            };
            if transfer.life.is_some_and(|known| known != life) {
                if let Some(node) = &mut transfer.node {
                    node.forget_group(source, false);
                }
                if let Some(joined) = &mut transfer.joined {
                    joined.tell_at = now;
                    joined.collect_all();
                }
            }
            transfer.life = Some(life);
        }
        let needed = |source: &u16, transfer: &Transfer| {
            let offers = self
                .roster
                .get(now, *source)
                .and_then(|record| record.transfer(transfer.ticket.id()));
            match transfer.withdrawn {
                Some(_) => transfer.is_withdrawn(now),
                None => *source == me || transfer.joined.is_some() || offers.is_some(),
            }
        };
        self.transfers
            .retain(|source, transfer| needed(source, transfer));
    }
}

/// Whether two measurements are so close that their plans would hardly differ.
fn is_alike(old: &Links, new: &Links) -> bool {
    let nodes = new.nodes() as u16;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let close = |(from, to)| {
        let (old, new) = (old.ratio(from, to), new.ratio(from, to));
        (old - new).abs() < CHANGE && (old > 0.0) == (new > 0.0)
    };
    old.nodes() == new.nodes() && pairs.into_iter().all(close)
}
