//! The player: a radio, a clock and a link node for one station.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use chappe_core::{
    Address, Class, Classes, Failure, Instant, LinkEvent, LinkNode, LinkSend, Mode, Outcome,
    OverMac, Purpose, RadioEvent, RadioNode, RadioRequest, Reception, Seed, Transmit, Wake,
};
use chappe_mac::dot11::{Dot11, PSDU_MAX};
use chappe_wire::dot11::Sequence;

use super::text::{Input, Script, describe};

const FCS: usize = 4;

/// Plays a script and returns what the station did, line by line.
pub fn play(script: &Script, frame_first: bool) -> Vec<String> {
    let mut player = Player::new(script, frame_first);
    for (place, &(at, _)) in script.inputs.iter().enumerate() {
        player.push(at, Kind::Input, Event::Input(place));
    }
    while let Some(Reverse((at, kind, _, event))) = player.events.pop() {
        if at >= script.end {
            break;
        }
        player.now = at;
        player.step(kind, event);
    }
    player.log
}

/// Order at one instant, top to bottom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    End,
    Timeout,
    Input,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An input by its place.
    Input(usize),
    /// A heard frame or energy by its place.
    HeardEnds(usize),
    OwnBegins,
    OwnEnds,
    Wake,
}

struct Player<'a> {
    script: &'a Script,
    frame_first: bool,
    node: OverMac<Dot11, Queue>,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, Kind, u64, Event)>>,
    count: u64,
    log: Vec<String>,
    sensing: bool,
    /// Energies on the air, by place and when they began.
    heard: Vec<(usize, Instant)>,
    own: Option<(Vec<u8>, Mode)>,
    sending: bool,
    /// When the own transmission last began.
    sent_at: Option<Instant>,
    since: Instant,
    first: Sequence,
}

/// The link node: frames of zeros, first come, first served.
#[derive(Default)]
struct Queue {
    frames: VecDeque<(Address, usize)>,
    said: Vec<String>,
}

impl LinkNode for Queue {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        self.said.push(match event {
            LinkEvent::Received(a) => format!("^ {} > {} sdu={}", a.from, a.to, a.sdu.len()),
            LinkEvent::Sent { outcome, .. } => match outcome {
                Outcome::Unconfirmed => "= unconfirmed".to_string(),
                Outcome::Acknowledged { attempts } => format!("= acknowledged {attempts}"),
                Outcome::Failed { attempts } => format!("= failed {attempts}"),
            },
        });
    }
    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.frames.is_empty())
    }
    fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let (to, len) = self.frames.pop_front()?;
        sdu[..len].fill(0);
        Some(LinkSend {
            to,
            len,
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, frame_first: bool) -> Player<'a> {
        let stream = Seed(script.seed).stream(Purpose::Node(1));
        let first = Sequence::new(stream.clone().below(4096) as u16);
        let mac = Dot11::new(script.config, Address::node(1), stream);
        Player {
            script,
            frame_first,
            node: OverMac::new(mac, Queue::default()),
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            count: 0,
            log: Vec::new(),
            sensing: false,
            heard: Vec::new(),
            own: None,
            sending: false,
            sent_at: None,
            since: Instant::ZERO,
            first,
        }
    }

    fn push(&mut self, at: Instant, kind: Kind, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, kind, self.count, event)));
    }

    fn say(&mut self, what: &str) {
        let micros = self.now.nanos() / 1000;
        assert_eq!(self.now.nanos() % 1000, 0, "whole microseconds");
        self.log.push(format!("{micros} {what}"));
    }

    fn step(&mut self, kind: Kind, event: Event) {
        match event {
            Event::Input(place) => self.input(place),
            Event::HeardEnds(place) => self.heard_ends(place),
            Event::OwnBegins => self.own_begins(),
            Event::OwnEnds => self.own_ends(),
            Event::Wake => {
                debug_assert!(kind == Kind::Timeout);
                if Wake::due(self.node.poll_timeout(), self.now) {
                    self.node.handle_timeout(self.now);
                    self.drain();
                }
            }
        }
    }

    fn input(&mut self, place: usize) {
        let span = match &self.script.inputs[place].1 {
            &Input::Offer(to, len) => return self.tell(|queue| queue.frames.push_back((to, len))),
            Input::Withdraw => return self.tell(|queue| queue.frames.clear()),
            Input::Hear { psdu, mode } => mode.airtime(psdu.len() + FCS),
            &Input::Garble(span) | &Input::Noise(span) => span,
        };
        self.push(self.now + span, Kind::End, Event::HeardEnds(place));
        let now = self.now;
        let changed = self.change(|player| player.heard.push((place, now)));
        self.report_carrier(changed);
    }

    fn tell(&mut self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.node.link);
        self.node.handle_timeout(self.now);
        self.drain();
    }

    fn heard_ends(&mut self, place: usize) {
        let index = self.heard.iter().position(|heard| heard.0 == place);
        let started = self.heard[index.expect("it began")].1;
        let changed = self.change(|player| {
            player.heard.retain(|heard| heard.0 != place);
        });
        if !self.frame_first {
            self.report_carrier(changed);
        }
        let lost = self.sending || self.sent_at.is_some_and(|at| at >= started);
        let script = self.script;
        match &script.inputs[place].1 {
            Input::Hear { psdu, mode } if !lost => self.radio(RadioEvent::Received(Reception {
                psdu,
                started,
                mode: *mode,
                power: None,
            })),
            Input::Garble(_) if !lost => self.radio(RadioEvent::Failed(Failure {
                started,
                mode: None,
            })),
            _ => {}
        }
        if self.frame_first {
            self.report_carrier(changed);
        }
    }

    fn own_begins(&mut self) {
        let (psdu, mode) = self.own.take().expect("a frame was handed over");
        assert!(!self.sending, "one frame at a time");
        let text = describe(&psdu, mode, self.first, &self.script.config);
        self.say(&format!("> {text}"));
        self.sent_at = Some(self.now);
        self.push(
            self.now + mode.airtime(psdu.len() + FCS),
            Kind::End,
            Event::OwnEnds,
        );
        let changed = self.change(|player| player.sending = true);
        self.report_carrier(changed);
    }

    fn own_ends(&mut self) {
        // Reported only if it was sensed all along: sensing that begins with the report knows it already.
        let sensing = self.sensing;
        let changed = self.change(|player| player.sending = false) && sensing;
        if !self.frame_first {
            self.report_carrier(changed);
        }
        self.radio(RadioEvent::Sent);
        if self.frame_first {
            self.report_carrier(changed);
        }
    }

    /// Changes what is on the air; true if the carrier changed with it.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        let before = self.is_busy();
        change(self);
        let changed = self.is_busy() != before;
        if changed {
            self.since = self.now;
        }
        changed
    }

    fn is_busy(&self) -> bool {
        self.sending || !self.heard.is_empty()
    }

    fn report_carrier(&mut self, changed: bool) {
        if changed && self.sensing {
            let (busy, since) = (self.is_busy(), self.since);
            self.radio(RadioEvent::Carrier { busy, since });
        }
    }

    fn radio(&mut self, event: RadioEvent<'_>) {
        self.node.handle_radio(self.now, event);
        self.drain();
    }

    fn drain(&mut self) {
        self.hear_link();
        let mut psdu = vec![0; PSDU_MAX];
        while let Some(request) = self.node.poll_radio(self.now, &mut psdu) {
            match request {
                RadioRequest::Transmit(transmit) => self.take_off(transmit, &psdu),
                RadioRequest::Sense(on) => self.sense(on),
                other => panic!("the DCF does not ask for {other:?}"),
            }
            self.hear_link();
        }
        if let Some(wake) = self.node.poll_timeout() {
            self.push(wake.at, Kind::Timeout, Event::Wake);
        }
    }

    fn hear_link(&mut self) {
        for said in std::mem::take(&mut self.node.link.said) {
            self.say(&said);
        }
    }

    fn take_off(&mut self, transmit: Transmit, psdu: &[u8]) {
        assert!(self.own.is_none(), "one frame at a time");
        self.own = Some((psdu[..transmit.len].to_vec(), transmit.mode));
        self.push(transmit.at.max(self.now), Kind::Input, Event::OwnBegins);
    }

    fn sense(&mut self, on: bool) {
        self.sensing = on;
        if self.script.show_sense {
            self.say(if on { "sense on" } else { "sense off" });
        }
        if on {
            let (busy, since) = (self.is_busy(), self.since);
            self.node
                .handle_radio(self.now, RadioEvent::Carrier { busy, since });
        }
    }
}
