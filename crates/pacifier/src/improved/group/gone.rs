//! Members that have failed, and ways round them.
//!
//! Nodes collect batches for neighbours that are farther from the source on its tree, so behind a relay that has failed they would wait
//! for it although others reach them. A member that its neighbours do not hear any more is therefore named in reports. All take distances over
//! the other members then, and the source adds relays where these need some. Who hears a named member again takes the name back.
//!
//! Reports have the set with a version: each change is a later one, and of equal versions the sets are joined.

use alloc::sync::Arc;

use chappe_core::{Instant, Stream};

use super::{Group, Role};
use crate::improved::header::Gone;
use crate::set::NodeSet;
use crate::tree::Tree;

/// A member has failed when it was not heard for so many times the silence after which nothing is collected for it. Members repeat their reports
/// each 1.5 s, so with one of three lost to collisions a living one is silent for so long once in 10,000 times.
const SILENCES: u64 = 2;

impl Group {
    /// What reports say of members that have failed, if there were any.
    pub(super) fn told_gone(&self) -> Option<Gone> {
        (self.gone.version != 0).then_some(self.gone)
    }

    /// Looks for members that are not heard any more. Members in turns keep to their plan, and hosts that measure their links tell paths
    /// themselves.
    pub(super) fn look_for_gone(&mut self, now: Instant, random: &mut Stream) {
        if self.settings.timed || self.in_turns() {
            return;
        }
        let long = self.settings.absent * SILENCES;
        // In turns members speak seldom, so silence counts from when they contend.
        if now.saturating_since(self.contends_from) < long {
            return;
        }
        let silent = |&node: &u16| {
            node != self.me
                && node != self.source
                && self.links.ratio(node, self.me) >= self.settings.link_min
                && !self.is_heard_within(node, long, now)
        };
        // Complete receivers have nothing to report.
        let members = self.plan.members.without(&self.complete);
        let silent: NodeSet = members.iter().filter(silent).collect();
        let silent = silent.without(&self.accused);
        // Another node may hear one that this one does not: so it is accused once only, until it is heard.
        self.accused = self.accused.union(&silent);
        let gone = self.gone.nodes.union(&silent);
        self.change_gone(now, gone, random);
    }

    /// Takes a member that was heard for alive.
    pub(super) fn take_back(&mut self, now: Instant, node: u16, random: &mut Stream) {
        self.accused.remove(node);
        let mut gone = self.gone.nodes;
        gone.remove(node);
        self.change_gone(now, gone, random);
    }

    /// Takes in what another node knows of members that have failed.
    pub(super) fn on_gone(&mut self, now: Instant, said: &Gone, random: &mut Stream) {
        // Hosts that measure their links believe no other: it might be lying.
        if self.settings.timed {
            return;
        }
        let before = self.gone;
        let nodes = said.nodes.common(&self.plan.members);
        self.gone = match said.version.wrapping_sub(before.version) {
            0 => Gone {
                nodes: nodes.union(&before.nodes),
                ..before
            },
            newer if newer < 128 || before.version == 0 => Gone {
                version: said.version,
                nodes,
            },
            // The sender has not heard of the latest change.
            _ => return self.tell_gone(now, random),
        };
        // A node that hears its own name lives.
        if self.gone.nodes.remove(self.me) {
            self.gone.version = next(self.gone.version);
        }
        if self.gone != before {
            self.find_ways(now, random);
            self.tell_gone(now, random);
        }
    }

    fn change_gone(&mut self, now: Instant, nodes: NodeSet, random: &mut Stream) {
        if nodes == self.gone.nodes {
            return;
        }
        self.gone = Gone {
            version: next(self.gone.version),
            nodes,
        };
        self.find_ways(now, random);
        self.tell_gone(now, random);
    }

    /// Reports soon, before data, which do not say it.
    fn tell_gone(&mut self, now: Instant, random: &mut Stream) {
        self.untold = true;
        self.speak_within(now, self.settings.gossip, random);
    }

    /// Takes distances over the members that are left; over all nodes where one of these has no way. The source adds the relays that they need.
    pub(super) fn find_ways(&mut self, now: Instant, random: &mut Stream) {
        self.paths = self.usual.clone();
        if !self.gone.nodes.is_empty() {
            if self.role == Role::Source {
                self.add_relays(now, random);
            }
            let left = self.plan.members.without(&self.gone.nodes);
            let paths = self.links.etx_paths_among(self.source, &left);
            let cut_off = |node: u16| self.usual.reaches(node) && !paths.reaches(node);
            if !left.iter().any(cut_off) {
                self.paths = Arc::new(paths);
            }
        }
        self.recruit();
        self.begin(now);
    }

    /// As the source, takes the relays into the plan that lead to all members without those that have failed.
    fn add_relays(&mut self, now: Instant, random: &mut Stream) {
        let all: NodeSet = (0..self.links.nodes() as u16).collect();
        let paths = (self.links).etx_paths_among(self.me, &all.without(&self.gone.nodes));
        let left = self.plan.members.without(&self.gone.nodes);
        let tree = Tree::new(&paths, left.without(&self.complete).iter());
        let relays = tree.forwarders.iter().map(|forwarder| forwarder.node);
        let mut members = self.plan.members.union(&relays.collect());
        members.remove(self.me);
        if members != self.plan.members {
            self.serve(now, members, random);
        }
    }
}

/// The version after another one. Zero is that of nodes which have never heard of a member that failed.
fn next(version: u8) -> u8 {
    version.wrapping_add(1).max(1)
}
