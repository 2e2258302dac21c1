//! MORE: forwarding nodes and credits from a belt of nodes towards each destination.
//!
//! Chachulski et al., SIGCOMM 2007, as the Pacifier paper sums it up (II-A). For each destination, every
//! node nearer to it than the source is a candidate. A packet is the duty of the nearest candidate that
//! heard it; from that follows how many transmissions z_i each of them makes. Nodes with a small share of all
//! transmissions are pruned and z is computed again for the rest: the *belt*. With several destinations a
//! node takes the largest of its z.

use alloc::vec;
use alloc::vec::Vec;

use crate::NodeSet;
use crate::credit::Credit;
use crate::links::Links;

/// The share of all transmissions below which MORE prunes a node (pacifier II-A).
pub const PRUNE: f64 = 0.10;

/// The nodes that carry packets from the source to one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Belt {
    /// The receiver that this belt leads to.
    pub destination: u16,
    /// The nodes that may forward, nearest to the destination first; the source is the last one. The
    /// destination itself is not among them.
    pub members: Vec<Member>,
    /// The part of the source's packets that arrives, 0 to 1: less than 1 if some end at a node that nobody
    /// nearer hears, 0 if the destination is cut off.
    pub delivered: f64,
}

/// A node of a belt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Its number.
    pub node: u16,
    /// L_i: the part of the source's packets that it is the nearest to hear.
    pub load: f64,
    /// z_i: its transmissions for each packet of the source.
    pub transmissions: f64,
}

impl Belt {
    /// The belt from `source` to `destination`, pruned at `prune` (a share from 0 to 1 of all transmissions);
    /// `None` if no path leads there.
    ///
    /// A destination that pruning cuts off has a belt that delivers nothing. MORE as published goes on with it
    /// (pacifier IV-B.1), and so does this.
    pub fn new(links: &Links, source: u16, destination: u16, prune: f64) -> Option<Belt> {
        let paths = links.etx_to(destination);
        if !paths.reaches(source) || source == destination {
            return None;
        }
        //= pacifier II-A: candidates are the nodes whose ETX distance is shorter than the source's
        let mut nodes: Vec<u16> = (0..links.nodes() as u16)
            .filter(|&node| node != destination && paths.cost(node) < paths.cost(source))
            .collect();
        nodes.sort_by(|&a, &b| paths.order(a, b));
        nodes.push(source);
        let all = Belt::over(links, destination, &nodes);
        let total: f64 = all.members.iter().map(|member| member.transmissions).sum();
        //= pacifier II-A: prune nodes expected to make less than 10% of all transmissions; the source stays
        let kept =
            |member: &&Member| member.node == source || member.transmissions >= prune * total;
        let kept: Vec<u16> = all
            .members
            .iter()
            .filter(kept)
            .map(|member| member.node)
            .collect();
        Some(Belt::over(links, destination, &kept))
    }

    /// Loads and transmissions of `nodes`, which are sorted by distance, the source last.
    fn over(links: &Links, destination: u16, nodes: &[u16]) -> Belt {
        let mut members: Vec<Member> = nodes
            .iter()
            .map(|&node| Member {
                node,
                load: 0.0,
                transmissions: 0.0,
            })
            .collect();
        if let Some(source) = members.last_mut() {
            source.load = 1.0;
        }
        let mut delivered = 0.0;
        for place in (0..members.len()).rev() {
            let Some((sender, nearer)) = members.get_mut(..=place).and_then(<[_]>::split_last_mut)
            else {
                break;
            };
            let lost = |to: u16| 1.0 - links.ratio(sender.node, to);
            let lost_by_all = nearer
                .iter()
                .fold(lost(destination), |p, m| p * lost(m.node));
            // A node that nobody nearer can hear sends nothing: its packets end there.
            if lost_by_all >= 1.0 {
                continue;
            }
            sender.transmissions = sender.load / (1.0 - lost_by_all);
            // Whom the sender passes its packets to: the nearest node that hears them.
            let mut lost_so_far = lost(destination);
            delivered += sender.transmissions * (1.0 - lost_so_far);
            for member in nearer {
                let lost = lost(member.node);
                member.load += sender.transmissions * (1.0 - lost) * lost_so_far;
                lost_so_far *= lost;
            }
        }
        Belt {
            destination,
            members,
            delivered,
        }
    }

    /// Whether packets of the source can reach the destination through the belt.
    pub fn connected(&self) -> bool {
        self.delivered > 0.0
    }

    /// The nodes from which a member earns credit: those farther from the destination. Empty for others.
    pub fn upstream_of(&self, node: u16) -> NodeSet {
        match self.members.iter().position(|member| member.node == node) {
            Some(place) => {
                let farther = self.members.get(place + 1..).unwrap_or_default();
                farther.iter().map(|member| member.node).collect()
            }
            None => NodeSet::EMPTY,
        }
    }

    fn transmissions_of(&self, node: u16) -> f64 {
        let found = self.members.iter().find(|member| member.node == node);
        found.map_or(0.0, |member| member.transmissions)
    }
}

//= pacifier II-A: belts are merged; a node in several takes its largest expected number of transmissions
/// The credits of the union of `belts`, the source first, then by node number.
///
/// A node earns credit from every node that is upstream of it in any of the belts, each counted with *its*
/// largest number of transmissions. Nodes that would send nothing are left out.
pub fn credits(links: &Links, source: u16, belts: &[&Belt]) -> Vec<Credit> {
    let most = |node: u16| {
        let each = belts.iter().map(|belt| belt.transmissions_of(node));
        each.fold(0.0, f64::max)
    };
    let members: NodeSet = belts
        .iter()
        .flat_map(|belt| belt.members.iter().map(|member| member.node))
        .collect();
    let mut credits = vec![Credit {
        node: source,
        expected: 1.0,
        transmissions: most(source),
        credit: 0.0,
    }];
    for node in members
        .iter()
        .filter(|&node| node != source && most(node) > 0.0)
    {
        let upstream: NodeSet = belts
            .iter()
            .flat_map(|belt| belt.upstream_of(node).iter().collect::<Vec<_>>())
            .collect();
        let expected: f64 = upstream
            .iter()
            .map(|up| most(up) * links.ratio(up, node))
            .sum();
        let transmissions = most(node);
        let credit = if expected > 0.0 {
            transmissions / expected
        } else {
            0.0
        };
        credits.push(Credit {
            node,
            expected,
            transmissions,
            credit,
        });
    }
    credits
}

//= pacifier IV-B.1: the largest threshold that cuts nobody off, from 0.10 down in steps of 0.01
/// The pruning threshold that favours MORE most on this network, in hundredths of one: 10 down to 0.
///
/// A receiver counts as cut off when its own belt is broken ([`Belt::connected`]). (The authors repeated whole
/// simulations; what the belts of other receivers leak to it is luck, and is not counted here.) Receivers
/// that no path reaches cannot be helped by any threshold and do not count.
pub fn tuned_prune_percent(links: &Links, source: u16, receivers: &[u16]) -> u32 {
    let cuts_nobody = |percent: u32| {
        let share = prune_share(percent);
        receivers.iter().all(|&receiver| {
            Belt::new(links, source, receiver, share).is_none_or(|belt| belt.connected())
        })
    };
    (0..=10)
        .rev()
        .find(|&percent| cuts_nobody(percent))
        .unwrap_or(0)
}

/// A threshold in hundredths as a share.
pub fn prune_share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}
