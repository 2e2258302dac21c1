//! A running experiment: its nodes, and the counters of all layers.

use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant};
use chappe_lab::carry::Record;
use chappe_sim::Simulator;
use chappe_tcplp::host::{Bulk, Host};
use chappe_tcplp::lowpan::Losses;
use chappe_tcplp::tcp::{Endpoint, TcpInfo};

use super::addresses::PORT;
use super::app::App;
use super::station::{Node, SOCKETS};
use super::times::Times;

/// First of the ports that connections are opened from (RFC 6056: the dynamic ports).
const PORTS: u16 = 49_152;

/// A low-power and lossy network (RFC 7102) that runs: motes, and a border router with a host if there is a wire.
pub struct Lln<'a> {
    /// The simulator, for what [`Lln`] does not offer.
    pub simulator: Simulator<Node<'a>, Record<Times>>,
    addresses: Vec<Ipv6Addr>,
    opened: u16,
}

/// The counters of all nodes since the start, or over an interval ([`Counts::since`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// The time since the start, or the length of the interval.
    pub time: Duration,
    /// Frames lost to collisions, over all receivers.
    pub collided: u64,
    /// The counters of each node.
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
            /// The difference to earlier counters.
            fn since(&self, before: &$name) -> $name {
                $name { $($field: self.$field.saturating_sub(before.$field),)* }
            }
        }
    };
}

counts! {
    /// The counters of one node, from the radio up.
    NodeCounts {
        /// Time that the radio was on, receiving or sending, in ns.
        radio_on_ns,
        /// Frames put on the air, acknowledgements included.
        air_frames,
        /// Octets of these frames.
        air_octets,
        /// Frames received, acknowledgements and frames for others included.
        receptions,
        /// Unicast data frames put on the air, link retries included.
        data_sent,
        /// The number of link retries among these.
        retries,
        /// Data frames given up after the last retry.
        failed,
        /// Clear channel assessments that found the channel busy.
        busy,
        /// Data requests put on the air.
        requests_sent,
        /// Data frames passed to 6LoWPAN.
        data_received,
        /// Packets taken from the host.
        packets_sent,
        /// Packets delivered to the host.
        packets_received,
        /// Frames made of the host's packets.
        frames_sent,
        /// Frames forwarded to the next hop.
        frames_forwarded,
        /// Packets forwarded to the next hop.
        packets_forwarded,
        /// Packets marked with ECN's CE codepoint.
        marked,
        /// Packets lost by 6LoWPAN, for all reasons.
        lowpan_lost,
        /// Injected losses of packets to the host.
        lost_for,
        /// Injected losses of packets from the host.
        lost_from,
        /// TCP segments delivered to sockets.
        segments,
        /// UDP datagrams delivered to the application.
        datagrams,
        /// TCP segments sent again.
        retransmits,
        /// Retransmission timeouts (RTO) of TCP.
        timeouts,
        /// Times that TCP entered fast recovery.
        recoveries,
        /// Reductions of the congestion window that TCP undid.
        undone,
    }
}

impl Counts {
    /// The counters of the interval from `before` to `self`.
    pub fn since(&self, before: &Counts) -> Counts {
        let nodes = self.nodes.iter().zip(&before.nodes);
        Counts {
            time: self.time.saturating_sub(before.time),
            collided: self.collided.saturating_sub(before.collided),
            nodes: nodes.map(|(now, then)| now.since(then)).collect(),
        }
    }

    /// Data frames put on the air by all nodes, link retries included.
    pub fn frames(&self) -> u64 {
        self.nodes.iter().map(|node| node.data_sent).sum()
    }

    /// Share of the data frames that were retried or given up.
    pub fn frame_loss(&self) -> f64 {
        let again: u64 = self
            .nodes
            .iter()
            .map(|node| node.retries + node.failed)
            .sum();
        again as f64 / self.frames().max(1) as f64
    }

    /// Share of the packets from one host that did not reach another: the paper's segment loss, which link retries do not
    /// mask. All packets must have the same destination. The numbers in flight at the start and at the end of the interval
    /// are taken as equal.
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

impl<'a> Lln<'a> {
    pub(super) fn new(
        simulator: Simulator<Node<'a>, Record<Times>>,
        addresses: Vec<Ipv6Addr>,
    ) -> Self {
        Lln {
            simulator,
            addresses,
            opened: 0,
        }
    }

    /// The simulated time since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.simulator.now().nanos())
    }

    /// Runs for `span` of simulated time.
    pub fn run(&mut self, span: Duration) {
        let until = self.simulator.now() + span;
        self.simulator.run_until(until);
    }

    /// Runs in steps of `step` until `until` is true or `limit` has passed. The result is false if `limit` passed first.
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

    /// The application of a node's host.
    pub fn app(&self, node: usize) -> &App {
        self.host(node).app()
    }

    /// What a node's [`App::Bulk`] has sent and received; zeros if it runs another application.
    pub fn bulk(&self, node: usize) -> Bulk {
        self.app(node).bulk().cloned().unwrap_or_default()
    }

    /// The host of a node, with its sockets.
    pub fn host(&self, node: usize) -> &Host<'a, App, SOCKETS> {
        &self.simulator.node(node).link.host().host
    }

    /// Calls `f` on a node's host, then lets the host react.
    pub fn with_host<T>(
        &mut self,
        node: usize,
        f: impl FnOnce(&mut Host<'a, App, SOCKETS>, Instant) -> T,
    ) -> T {
        self.simulator.with_node(node, |node, now| {
            node.link.with_host(now, |gate| {
                let result = f(&mut gate.host, now);
                gate.host.serve(now);
                result
            })
        })
    }

    /// Opens a connection from one node's host to another's. The result is false if no socket is free.
    pub fn connect(&mut self, from: usize, to: usize) -> bool {
        // 16,384 dynamic ports, up to 65,535.
        self.opened = self.opened.wrapping_add(1) & 0x3fff;
        let (port, peer) = (PORTS + self.opened, self.addresses[to]);
        let peer = Endpoint::new(IpAddr::V6(peer), PORT);
        self.with_host(from, |host, now| host.connect(now, port, peer))
    }

    /// The state of a socket's connection.
    pub fn info(&self, node: usize, socket: usize) -> TcpInfo {
        self.host(node).sockets()[socket].info()
    }

    /// The counters since the start.
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

    /// The packets that 6LoWPAN lost at a node, by reason.
    pub fn losses(&self, node: usize) -> &Losses {
        self.simulator.node(node).link.losses()
    }
}

fn count(node: &Node<'_>, radio: &chappe_sim::NodeCounters, now: Instant) -> NodeCounts {
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

    use super::super::experiment::{Experiment, Wire};
    use super::*;

    /// An upload to the host behind the border router arrives in full. The round trip includes the cable's delay, and the
    /// relay counts the packets that it forwards. Two runs are equal.
    #[test]
    fn motes_send_to_the_cloud() {
        let experiment = Experiment {
            wire: Some(Wire {
                delay: Duration::from_millis(50),
                ..Wire::paper(super::super::transport::MSS)
            }),
            ..Experiment::row(2)
        };
        let run = || {
            let mut memory = experiment.memory();
            let apps = |node| App::sending(if node == 2 { 20_000 } else { 0 });
            let mut lln = experiment.start(&mut memory, Seed(1), apps).unwrap();
            assert!(lln.connect(2, 0));
            let done = |lln: &mut Lln| lln.bulk(0).received == 20_000;
            let step = Duration::from_millis(10);
            assert!(lln.run_until(Duration::from_secs(30), step, done));
            assert_eq!(lln.bulk(0).wrong, 0);
            assert!(lln.info(2, 0).min_rtt >= Duration::from_millis(100));
            (lln.counts(), lln.simulator.digest())
        };
        let (counts, digest) = run();
        assert!(counts.nodes[1].packets_forwarded > 2 * 20_000 / 462 / 3);
        assert_eq!(counts.segment_loss(2, 0), 0.0);
        assert_eq!((counts, digest), run());
    }

    /// With a fifth of the segments dropped at the receiver, the counters show that loss, and the sender retransmits.
    #[test]
    fn injected_losses_are_counted() {
        let experiment = Experiment {
            lose: (0.2, 0.0),
            ..Experiment::row(1)
        };
        let mut memory = experiment.memory();
        let apps = |node| App::sending(if node == 1 { u64::MAX } else { 0 });
        let mut lln = experiment.start(&mut memory, Seed(1), apps).unwrap();
        lln.connect(1, 0);
        lln.run(Duration::from_secs(60));
        let counts = lln.counts();
        let loss = counts.segment_loss(1, 0);
        assert!((0.1..0.3).contains(&loss), "{loss}");
        assert!(counts.nodes[1].retransmits > 20 && lln.bulk(0).wrong == 0);
    }
}
