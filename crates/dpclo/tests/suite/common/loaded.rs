//! A router with an application that always has something to send, or sends at even intervals.

use std::collections::VecDeque;

use chappe_core::{Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Wake};
use chappe_dpclo::Router;

/// Octets of payload in each packet (Table I).
const PAYLOAD: usize = 200;

/// Packets of an application that wait for the router; further ones are dropped, as by the sources of `chappe sim`.
const BACKLOG: usize = 50;

/// An application that makes packets at even intervals.
#[derive(Clone, Debug)]
pub struct Pace {
    every: Duration,
    next: Instant,
    /// When the packets that wait were made.
    due: VecDeque<Instant>,
}

impl Pace {
    /// So many packets a second from `begin` on.
    pub fn new(rate: f64, begin: Instant) -> Pace {
        Pace {
            every: Duration::from_secs_f64(1.0 / rate),
            next: begin,
            due: VecDeque::new(),
        }
    }

    fn fall_due(&mut self, now: Instant) {
        while self.next <= now {
            if self.due.len() < BACKLOG {
                self.due.push_back(self.next);
            }
            self.next += self.every;
        }
    }
}

/// A router whose application has packets for one sink, if it has a sink.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub router: Router,
    pub sink: Option<u16>,
    /// When packets are made; without it there is always one.
    pub pace: Option<Pace>,
    /// Packets that may wait for one destination.
    pub limit: u16,
    /// When the application begins.
    pub begin: Instant,
    /// Packets that come before this time are not counted.
    pub counted: Instant,
    /// Between these times packets are counted as those of the start.
    pub start: [Instant; 2],
    /// What came since then, by source.
    pub got: Vec<Got>,
}

/// Packets of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Got {
    pub source: u16,
    pub packets: u64,
    /// The sum of their delays.
    pub delays: Duration,
    /// Packets of the start, whether they are counted otherwise or not.
    pub early: u64,
    /// When the last one came, and the longest time without one, of those that are counted.
    last: Instant,
    longest: Duration,
}

impl Loaded {
    fn serve(&mut self, now: Instant) {
        if let Some(sink) = self.sink.filter(|_| now >= self.begin) {
            self.offer(now, sink);
        }
        let mut buffer = [0; PAYLOAD];
        while let Some(delivery) = self.router.poll_delivery(&mut buffer) {
            let offered = buffer.first_chunk().map(|first| u64::from_be_bytes(*first));
            let offered = Instant::from_nanos(offered.unwrap_or(0));
            self.count(now, delivery.source, now.saturating_since(offered));
        }
        self.router.handle_timeout(now);
    }

    /// Offers packets until the router refuses one: the application waits when the queue is full, and is woken when its rate allows the
    /// next packet.
    fn offer(&mut self, now: Instant, sink: u16) {
        if let Some(pace) = &mut self.pace {
            pace.fall_due(now);
        }
        let mut payload = [0; PAYLOAD];
        while let Some(made) = self
            .pace
            .as_ref()
            .map_or(Some(now), |pace| pace.due.front().copied())
        {
            payload[..8].copy_from_slice(&made.nanos().to_be_bytes());
            let room = self.router.queue(sink) < self.limit;
            if !room || self.router.offer(now, sink, 1, &payload).is_err() {
                return;
            }
            if let Some(pace) = &mut self.pace {
                pace.due.pop_front();
            }
        }
    }

    fn count(&mut self, now: Instant, source: u16, delay: Duration) {
        let place = self.got.iter().position(|got| got.source == source);
        let place = place.unwrap_or_else(|| {
            self.got.push(Got {
                source,
                packets: 0,
                delays: Duration::ZERO,
                early: 0,
                last: self.counted,
                longest: Duration::ZERO,
            });
            self.got.len() - 1
        });
        let [from, to] = self.start;
        let got = &mut self.got[place];
        got.early += u64::from(from <= now && now < to);
        if now >= self.counted {
            got.packets += 1;
            got.delays += delay;
            got.longest = got.longest.max(now.saturating_since(got.last));
            got.last = now;
        }
    }

    /// Packets of a source in the start.
    pub fn early(&self, source: u16) -> u64 {
        let got = self.got.iter().find(|got| got.source == source);
        got.map_or(0, |got| got.early)
    }

    /// The longest time without a packet of a source, from when packets count until the end.
    pub fn gap(&self, source: u16, end: Instant) -> Duration {
        let got = self.got.iter().find(|got| got.source == source);
        let (last, longest) = got.map_or((self.counted, Duration::ZERO), |got| {
            (got.last, got.longest)
        });
        longest.max(end.saturating_since(last))
    }

    /// Packets of a source, and their mean delay in seconds.
    pub fn from(&self, source: u16) -> (u64, f64) {
        let got = self.got.iter().find(|got| got.source == source);
        got.map_or((0, 0.0), |got| {
            let mean = got.delays / got.packets.max(1);
            (got.packets, mean.as_secs_f64())
        })
    }
}

impl LinkNode for Loaded {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.router.handle_link(now, event);
        self.serve(now);
    }
    fn pending(&self) -> Classes {
        self.router.pending()
    }
    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.router.poll_link(now, allowed, sdu)
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.router.handle_timeout(now);
        self.serve(now);
    }
    fn poll_timeout(&self) -> Option<Wake> {
        let next = self.pace.as_ref().map(|pace| Wake {
            at: pace.next,
            why: "next packet",
        });
        Wake::earlier(self.router.poll_timeout(), next)
    }
}
