//! Four radios that hear each other where channel and time agree. A script says which frames are lost.

use chappe_core::Purpose;
use chappe_core::{
    Channel, Duration, Head, Instant, RadioEvent, RadioNode, RadioRequest, Reception, Seed, Stream,
    Wake,
};
use chappe_p3::timing::{MODE, airtime};

use crate::{Role, Watcher};

/// How many radios share the air.
const COUNT: usize = 4;
/// The longest PSDU of 802.15.4, in octets.
const FRAME: usize = 127;
/// Nothing takes longer than this.
const LIMIT: Duration = Duration::from_secs(5);
/// One frame in so many is lost for everybody.
const LOST: u64 = 12;

pub struct Air<'a> {
    nodes: [&'a mut dyn RadioNode; COUNT],
    radios: [Radio; COUNT],
    losses: Stream,
}

struct Radio {
    channel: Channel,
    on: bool,
    /// Since when it hears what it hears.
    since: Instant,
    peek: usize,
    frame: [u8; FRAME],
    len: usize,
    /// When the frame starts that waits.
    waits: Option<Instant>,
    /// When the frame started that is on the air, and whether its head has been told.
    sends: Option<(Instant, bool)>,
}

/// The next event, with the radio that it happens to.
#[derive(Clone, Copy)]
enum Event {
    Head(usize),
    End(usize),
    Deadline(usize),
    Start(usize),
}

impl<'a> Air<'a> {
    pub fn new(nodes: [&'a mut dyn RadioNode; COUNT], seed: u64) -> Air<'a> {
        let radios = core::array::from_fn(|_| Radio {
            channel: Channel(0),
            on: true,
            since: Instant::ZERO,
            peek: 0,
            frame: [0; FRAME],
            len: 0,
            waits: None,
            sends: None,
        });
        let losses = Seed(seed).stream(Purpose::Reception);
        Air {
            nodes,
            radios,
            losses,
        }
    }

    /// Runs until no node has anything left to do.
    pub fn run(&mut self, begin: Instant, watcher: &mut impl Watcher) {
        for node in 0..COUNT {
            self.drain(begin, node);
        }
        while let Some((at, event)) = self.next().filter(|(at, _)| *at <= begin + LIMIT) {
            match event {
                Event::Start(node) => self.start(at, node, watcher),
                Event::Head(node) => self.head(at, node),
                Event::End(node) => self.end(at, node, watcher),
                Event::Deadline(node) => {
                    self.nodes[node].handle_timeout(at);
                    self.drain(at, node);
                }
            }
        }
    }

    fn next(&self) -> Option<(Instant, Event)> {
        let mut first: Option<(Instant, Event)> = None;
        let mut offer = |at: Instant, event: Event| {
            if first.is_none_or(|(best, _)| at < best) {
                first = Some((at, event));
            }
        };
        for (node, radio) in self.radios.iter().enumerate() {
            if let Some((started, told)) = radio.sends {
                match told {
                    true => offer(started + airtime(radio.len), Event::End(node)),
                    // Two octets less than the airtime counts: the check sequence is at the end.
                    false => offer(started + airtime(2), Event::Head(node)),
                }
            }
        }
        for (node, radio) in self.radios.iter().enumerate() {
            if let Some(Wake { at, .. }) = self.nodes[node].poll_timeout() {
                offer(at, Event::Deadline(node));
            }
            if let Some(at) = radio.waits.filter(|_| radio.sends.is_none()) {
                offer(at, Event::Start(node));
            }
        }
        first
    }

    fn start(&mut self, at: Instant, node: usize, watcher: &mut impl Watcher) {
        let radio = &mut self.radios[node];
        radio.waits = None;
        radio.sends = Some((at, false));
        watcher.sends(
            at,
            Role::ALL[node],
            radio.channel.0,
            &radio.frame[..radio.len],
        );
    }

    fn hears(&self, node: usize, from: usize, started: Instant) -> bool {
        let (radio, sender) = (&self.radios[node], &self.radios[from]);
        let there = radio.on && radio.sends.is_none() && radio.since <= started;
        node != from && there && radio.channel == sender.channel
    }

    fn head(&mut self, at: Instant, from: usize) {
        let Some((started, told)) = &mut self.radios[from].sends else {
            return;
        };
        *told = true;
        let (started, frame, len) = (*started, self.radios[from].frame, self.radios[from].len);
        for node in 0..COUNT {
            if self.hears(node, from, started) && self.radios[node].peek > 0 {
                let head = Head {
                    octets: &frame[..self.radios[node].peek.min(len)],
                    len,
                    started,
                    mode: MODE,
                };
                self.nodes[node].handle_radio(at, RadioEvent::Head(head));
                self.drain(at, node);
            }
        }
    }

    fn end(&mut self, at: Instant, from: usize, watcher: &mut impl Watcher) {
        let Some((started, _)) = self.radios[from].sends else {
            return;
        };
        let (frame, len) = (self.radios[from].frame, self.radios[from].len);
        let lost = self.losses.below(LOST) == 0;
        for node in 0..COUNT {
            if self.hears(node, from, started) && !lost {
                let psdu = &frame[..len];
                let (mode, power) = (MODE, None);
                let heard = Reception {
                    psdu,
                    started,
                    mode,
                    power,
                };
                watcher.begins();
                self.nodes[node].handle_radio(at, RadioEvent::Received(heard));
                watcher.ends(Role::ALL[node], Some(psdu));
                self.drain(at, node);
            }
        }
        self.radios[from].sends = None;
        self.radios[from].since = at;
        watcher.begins();
        self.nodes[from].handle_radio(at, RadioEvent::Sent);
        watcher.ends(Role::ALL[from], None);
        self.drain(at, from);
    }

    fn drain(&mut self, now: Instant, node: usize) {
        let mut frame = [0; FRAME];
        while let Some(request) = self.nodes[node].poll_radio(now, &mut frame) {
            let radio = &mut self.radios[node];
            match request {
                RadioRequest::Transmit(transmit) => {
                    (radio.frame, radio.len) = (frame, transmit.len);
                    radio.waits = Some(if transmit.at < now { now } else { transmit.at });
                }
                RadioRequest::Cancel => radio.waits = None,
                RadioRequest::Tune(channel) => (radio.channel, radio.since) = (channel, now),
                RadioRequest::Listen(on) => (radio.on, radio.since) = (on, now),
                RadioRequest::Abort => radio.since = now,
                RadioRequest::Peek(octets) => radio.peek = octets,
                // P³ neither senses nor bursts.
                RadioRequest::Sense(_) | RadioRequest::Burst(_) => {}
            }
        }
    }
}
