//! An experiment that runs, and what is counted in it.

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant};
use chappe_sim::{Recorder, Simulator};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::lowpan::Losses;
use chappe_tcplp::tcp::{Endpoint, TcpInfo};

use super::addresses::PORT;
use super::station::{Node, SOCKETS};

/// First of the ports that connections are opened from (RFC 6056: the dynamic ports).
const PORTS: u16 = 49_152;

/// Motes, a border router and a host, at some moment of their run.
pub struct Lln<'a, A: Application<'a>, R: Recorder = ()> {
    /// For what is not offered here.
    pub simulator: Simulator<Node<'a, A>, R>,
    addresses: Vec<Ipv6Addr>,
    opened: u16,
}

/// What has happened up to a moment, or between two ([`Counts::since`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Up to when, or for how long.
    pub time: Duration,
    /// Frames lost on the air because another one lay over them, all receivers together.
    pub collided: u64,
    /// By node.
    pub nodes: Vec<NodeCounts>,
}

/// Makes a struct of numbers and its difference.
macro_rules! counts {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$about])* pub $field: u64,)*
        }

        impl $name {
            /// What came since.
            fn since(&self, before: &$name) -> $name {
                $name { $($field: self.$field.saturating_sub(before.$field),)* }
            }
        }
    };
}

counts! {
    /// The share of one node: by layer, from the radio up.
    NodeCounts {
        /// Time that the radio was on, receiving or sending, ns.
        radio_on_ns,
        /// Frames put on the air, acknowledgements included, and their octets.
        air_frames,
        /// Their octets.
        air_octets,
        /// Frames received, acknowledgements and frames for others included.
        receptions,
        /// Unicast data frames put on the air, further attempts included.
        data_sent,
        /// Of these, further attempts.
        retries,
        /// Data frames given up.
        failed,
        /// Assessments that found the channel busy.
        busy,
        /// Data requests put on the air.
        requests_sent,
        /// Data frames handed up.
        data_received,
        /// Packets taken from the host.
        packets_sent,
        /// Packets handed to the host's side.
        packets_received,
        /// Frames made of the host's packets.
        frames_sent,
        /// Frames passed on.
        frames_forwarded,
        /// Packets passed on.
        packets_forwarded,
        /// Packets marked as having met congestion.
        marked,
        /// Losses of 6LoWPAN, all reasons.
        lowpan_lost,
        /// Packets for the host lost on purpose.
        lost_for,
        /// Packets from the host lost on purpose.
        lost_from,
        /// TCP segments handed to sockets.
        segments,
        /// Datagrams handed to the application.
        datagrams,
        /// Segments sent anew.
        retransmits,
        /// Retransmission timeouts.
        timeouts,
        /// Fast recoveries.
        recoveries,
        /// Reductions undone.
        undone,
    }
}

impl Counts {
    /// What happened between `before` and this.
    pub fn since(&self, before: &Counts) -> Counts {
        let nodes = self.nodes.iter().zip(&before.nodes);
        Counts {
            time: self.time.saturating_sub(before.time),
            collided: self.collided.saturating_sub(before.collided),
            nodes: nodes.map(|(now, then)| now.since(then)).collect(),
        }
    }

    /// Data frames put on the air by all nodes, further attempts included.
    pub fn frames(&self) -> u64 {
        self.nodes.iter().map(|node| node.data_sent).sum()
    }

    /// Share of the data frames that had to be sent again.
    pub fn frame_loss(&self) -> f64 {
        let again: u64 = self
            .nodes
            .iter()
            .map(|node| node.retries + node.failed)
            .sum();
        again as f64 / self.frames().max(1) as f64
    }

    /// Share of the packets of one host that did not reach another, if that is where all of them go: the paper's segment
    /// loss, what link retries do not mask. Those on their way at both ends of the span are taken to be equally many.
    pub fn segment_loss(&self, from: usize, to: usize) -> f64 {
        let sent = self.nodes[from].packets_sent;
        let came = self.nodes[to].packets_received - self.nodes[to].lost_for;
        1.0 - came.min(sent) as f64 / sent.max(1) as f64
    }

    /// Share of the time that a node's radio was on.
    pub fn radio_duty(&self, node: usize) -> f64 {
        self.nodes[node].radio_on_ns as f64 / self.time.nanos().max(1) as f64
    }
}

impl<'a, A: Application<'a>, R: Recorder> Lln<'a, A, R> {
    pub(super) fn new(simulator: Simulator<Node<'a, A>, R>, addresses: Vec<Ipv6Addr>) -> Self {
        Lln {
            simulator,
            addresses,
            opened: 0,
        }
    }

    /// Time passed.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.simulator.now().nanos())
    }

    /// Lets so much time pass.
    pub fn run(&mut self, span: Duration) {
        let until = self.simulator.now() + span;
        self.simulator.run_until(until);
    }

    /// Lets time pass in steps of `step` until `until` says so, or `limit` has passed. Says whether it did.
    pub fn run_until(
        &mut self,
        limit: Duration,
        step: Duration,
        mut until: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let end = self.now() + limit;
        while !until(self) {
            if self.now() >= end {
                return false;
            }
            self.run(step.min(end.saturating_sub(self.now())));
        }
        true
    }

    /// The address of a node's host.
    pub fn address(&self, node: usize) -> Ipv6Addr {
        self.addresses[node]
    }

    /// A node's application.
    pub fn app(&self, node: usize) -> &A {
        self.host(node).app()
    }

    /// A node's host.
    pub fn host(&self, node: usize) -> &Host<'a, A, SOCKETS> {
        &self.simulator.node(node).link.host().host
    }

    /// Does something to a node's host, then serves it.
    pub fn with_host<T>(
        &mut self,
        node: usize,
        f: impl FnOnce(&mut Host<'a, A, SOCKETS>, Instant) -> T,
    ) -> T {
        self.simulator.with_node(node, |node, now| {
            node.link.with_host(now, |gate| {
                let result = f(&mut gate.host, now);
                gate.host.serve(now);
                result
            })
        })
    }

    /// Opens a connection between two nodes' hosts; data may flow both ways. False if no socket is free.
    pub fn connect(&mut self, from: usize, to: usize) -> bool {
        self.opened = self.opened.wrapping_add(1) & 0x3fff;
        let (port, peer) = (PORTS + self.opened, self.addresses[to]);
        let peer = Endpoint::new(IpAddr::V6(peer), PORT);
        self.with_host(from, |host, now| host.connect(now, port, peer))
    }

    /// What a socket knows of its connection.
    pub fn info(&self, node: usize, socket: usize) -> TcpInfo {
        self.host(node).sockets()[socket].info()
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        let counters = self.simulator.counters();
        let nodes = self.simulator.nodes().enumerate();
        let nodes = nodes.map(|(number, node)| {
            let radio = counters.nodes.get(number).copied().unwrap_or_default();
            count(node, &radio, Instant::ZERO + self.now())
        });
        Counts {
            time: self.now(),
            collided: counters.lost.of(chappe_sim::Loss::Collision),
            nodes: nodes.collect(),
        }
    }

    /// Why 6LoWPAN lost packets at a node.
    pub fn losses(&self, node: usize) -> &Losses {
        self.simulator.node(node).link.losses()
    }
}

fn count<'a, A: Application<'a>>(
    node: &Node<'a, A>,
    radio: &chappe_sim::NodeCounters,
    now: Instant,
) -> NodeCounts {
    let (mac, lowpan, gate) = (node.mac.counters(), node.link.counters(), node.link.host());
    let host = gate.host.counters();
    let mut counts = NodeCounts {
        radio_on_ns: node.mac.radio_on(now).nanos(),
        air_frames: radio.frames,
        air_octets: radio.octets,
        receptions: radio.receptions,
        data_sent: mac.data_sent,
        retries: mac.retries,
        failed: mac.failed,
        busy: mac.busy,
        requests_sent: mac.requests_sent,
        data_received: mac.received,
        packets_sent: lowpan.packets_sent.into(),
        packets_received: lowpan.packets_received.into(),
        frames_sent: lowpan.frames_sent.into(),
        frames_forwarded: lowpan.frames_forwarded.into(),
        packets_forwarded: lowpan.packets_forwarded.into(),
        marked: lowpan.marked.into(),
        lowpan_lost: node.link.losses().total().into(),
        lost_for: gate.lost.0.into(),
        lost_from: gate.lost.1.into(),
        segments: host.segments.into(),
        datagrams: host.datagrams.into(),
        ..NodeCounts::default()
    };
    for socket in gate.host.sockets() {
        let tcp = socket.info().counters;
        counts.retransmits += u64::from(tcp.retransmits);
        counts.timeouts += u64::from(tcp.timeouts);
        counts.recoveries += u64::from(tcp.recoveries);
        counts.undone += u64::from(tcp.undone);
    }
    counts
}

#[cfg(test)]
mod tests {
    use chappe_core::Seed;
    use chappe_tcplp::host::Bulk;

    use super::super::experiment::{Experiment, Wire};
    use super::*;

    /// An upload to the host behind the border router: all of it arrives, the round trip contains the cable's, and the
    /// relay counts what passed it. The same run twice is the same run.
    #[test]
    fn a_mote_sends_to_the_cloud() {
        let experiment = Experiment {
            wire: Some(Wire {
                delay: Duration::from_millis(50),
                ..Wire::paper(super::super::transport::MSS)
            }),
            ..Experiment::row(2)
        };
        let run = || {
            let mut memory = experiment.memory();
            let apps = |node| Bulk::sending(if node == 2 { 20_000 } else { 0 });
            let mut lln = experiment.start(&mut memory, Seed(1), apps).unwrap();
            assert!(lln.connect(2, 0));
            let done = |lln: &mut Lln<Bulk>| lln.app(0).received == 20_000;
            let step = Duration::from_millis(10);
            assert!(lln.run_until(Duration::from_secs(30), step, done));
            assert_eq!(lln.app(0).wrong, 0);
            assert!(lln.info(2, 0).min_rtt >= Duration::from_millis(100));
            (lln.counts(), lln.simulator.digest())
        };
        let (counts, digest) = run();
        assert!(counts.nodes[1].packets_forwarded > 2 * 20_000 / 462 / 3);
        assert_eq!(counts.segment_loss(2, 0), 0.0);
        assert_eq!((counts, digest), run());
    }

    /// A fifth of the segments is lost at the receiver: that is what is counted, and what is sent again.
    #[test]
    fn losses_on_purpose_are_counted() {
        let experiment = Experiment {
            lose: (0.2, 0.0),
            ..Experiment::row(1)
        };
        let mut memory = experiment.memory();
        let apps = |node| Bulk::sending(if node == 1 { u64::MAX } else { 0 });
        let mut lln = experiment.start(&mut memory, Seed(1), apps).unwrap();
        lln.connect(1, 0);
        lln.run(Duration::from_secs(60));
        let counts = lln.counts();
        let loss = counts.segment_loss(1, 0);
        assert!((0.1..0.3).contains(&loss), "{loss}");
        assert!(counts.nodes[1].retransmits > 20 && lln.app(0).wrong == 0);
    }
}
