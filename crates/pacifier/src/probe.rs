//! The ETX phase: measures the delivery ratio of every link.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{
    Address, Class, Classes, DropReason, Drops, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Mode, Rate, Stream, Wake,
};

use crate::links::{Links, LinksError, NODES_MAX};
use crate::paper::header::{self, Frame};

/// How probes are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Time from probe to probe. Default 1 s (pacifier IV-A).
    pub interval: Duration,
    /// Octets of padding, which make a probe as long as a data packet. Default 1500 (pacifier IV-A).
    pub payload: usize,
    /// How they are sent: as the data frames are. Default 2 Mbit/s, long preamble.
    pub mode: Mode,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        ProbeConfig {
            interval: Duration::from_secs(1),
            payload: 1500,
            mode: Mode::long(Rate::Dsss2),
        }
    }
}

//= pacifier IV-A: each node broadcasts a 1500-byte packet every second and keeps track of what it receives
/// Broadcasts one probe in every interval and counts the probes of others.
///
/// A probe leaves at a random instant of its interval, drawn anew each time: with a fixed phase, two nodes
/// that collided once would collide for the whole measurement. The driver decides how long it lasts (the paper: ten
/// minutes).
#[derive(Clone, Debug)]
pub struct Prober {
    config: ProbeConfig,
    start: Instant,
    random: Stream,
    /// Probes that have become due; the n-th is due in the n-th interval.
    due: u32,
    next: Instant,
    waiting: bool,
    heard: Vec<u32>,
    drops: Drops,
}

impl Prober {
    /// A prober for a network of `nodes` nodes (at most [`NODES_MAX`] are counted), whose first interval
    /// begins at `start`. Intervals shorter than 1 ms become 1 ms.
    pub fn new(config: ProbeConfig, nodes: usize, start: Instant, random: Stream) -> Prober {
        let interval = config.interval.max(Duration::from_millis(1));
        let mut prober = Prober {
            config: ProbeConfig { interval, ..config },
            start,
            random,
            due: 0,
            next: Instant::ZERO,
            waiting: false,
            heard: vec![0; nodes.min(NODES_MAX)],
            drops: Drops::default(),
        };
        prober.schedule();
        prober
    }

    /// Probes sent or due so far, by this node; every other node has as many, give or take one while an
    /// interval is running.
    pub fn sent(&self) -> u32 {
        self.due
    }

    /// Probes heard from a node.
    pub fn heard_from(&self, node: u16) -> u32 {
        self.heard.get(usize::from(node)).copied().unwrap_or(0)
    }

    /// The measured delivery ratio from a node to this one: probes heard over probes sent, 0 to 1.
    ///
    /// All nodes send at one rate, so the own number of probes is that of every other node. Read it at the
    /// end of an interval.
    pub fn delivery_from(&self, node: u16) -> f64 {
        match self.due {
            0 => 0.0,
            sent => (f64::from(self.heard_from(node)) / f64::from(sent)).min(1.0),
        }
    }

    /// Frames not counted, by reason.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    fn schedule(&mut self) {
        let start = self.start + self.config.interval * u64::from(self.due);
        let phase = self.random.below(self.config.interval.nanos());
        self.next = start + Duration::from_nanos(phase);
    }
}

impl Links {
    /// The measurement of all nodes together: `probers` in the order of the nodes' numbers.
    pub fn probed<'a>(probers: impl IntoIterator<Item = &'a Prober>) -> Result<Links, LinksError> {
        let probers: Vec<&Prober> = probers.into_iter().collect();
        Links::measured(probers.len(), |from, to| {
            probers
                .get(usize::from(to))
                .map_or(0.0, |prober| prober.delivery_from(from))
        })
    }
}

impl LinkNode for Prober {
    fn handle_link(&mut self, _now: Instant, event: LinkEvent<'_>) {
        let LinkEvent::Received(arrival) = event else {
            return;
        };
        match header::parse(arrival.sdu) {
            Ok(Frame::Probe(_)) => {
                let from = arrival.from.node_number().unwrap_or(u16::MAX);
                match self.heard.get_mut(usize::from(from)) {
                    Some(count) => *count = count.saturating_add(1),
                    None => self.drops.count(DropReason::NotForUs),
                }
            }
            Ok(_) => self.drops.count(DropReason::NotForUs),
            Err(_) => self.drops.count(DropReason::Malformed),
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.waiting)
    }

    fn poll_link(&mut self, _now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !self.waiting || !allowed.contains(Class::Data) {
            return None;
        }
        self.waiting = false;
        let number = self.due.wrapping_sub(1);
        let len = header::emit_probe(number, self.config.payload, sdu)?;
        Some(LinkSend {
            to: Address::BROADCAST,
            len,
            class: Class::Data,
            mode: Some(self.config.mode),
            token: number,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        // A late driver skips no interval: every node counts the same number of probes, also those that the link could
        // not take.
        while self.next <= now {
            self.waiting = true;
            self.due = self.due.saturating_add(1);
            self.schedule();
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "probe",
        })
    }
}
