//! Goal: each rule of the protocol, one at a time. Method: packet scripts, played to one node by one function that
//! knows the API. The language is explained in `scripts/README.md`.

use crate::common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use chappe_core::{
    Channel, DropReason, Drops, Duration, Head, Instant, RadioEvent, RadioNode, RadioRequest,
    Reception, Transmit, Wake,
};
use chappe_p3::header::{Ctrl, Flags, Header, Kind, Nack};
use chappe_p3::timing::{MODE, airtime};
use chappe_p3::{ChannelOrder, Config, Destination, Part, Place, Plan, Relay, Source};
use common::{CAPS, DESTINATION, Growing, SOURCE, Setting, object};

#[test]
fn every_script_plays_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    chappe_testkit::script::each(folder, 4, check);
}

#[test]
#[should_panic(expected = "planted:4: sends data hop=1 seq=1 +281")]
fn a_script_that_is_wrong_fails() {
    check(
        "planted",
        "relay stage=1 group=0\nwoken\nhears data hop=0 seq=0\nsends data hop=1 seq=1 +281\n",
    );
}

/// Plays the scripts of one file, separated by lines of `=`.
fn check(name: &str, text: &str) {
    let mut scene = Scene::default();
    let (mut play, mut played): (Option<Play>, usize) = (None, 0);
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let place = format!("{name}:{}: {line}", number + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&mut play, &words[..]) {
            (_, []) => {}
            (_, [rule]) if rule.chars().all(|c| c == '=') => (scene, play) = Default::default(),
            (None, ["set", name, value]) => scene.set(name, value, &place),
            (None, [role, fields @ ..]) => {
                play = Some(scene.start(role, fields, &place));
                played += 1;
            }
            (Some(play), words) => play.line(words, &place),
        }
    }
    assert!(played > 0, "{name}: no script");
}

/// What stands before the role of the node under test.
struct Scene {
    hops: usize,
    paths: usize,
    len: usize,
    last: f64,
    config: Config,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            hops: 4,
            paths: 4,
            len: 36,
            last: 0.0,
            config: Config::default(),
        }
    }
}

impl Scene {
    fn set(&mut self, name: &str, value: &str, place: &str) {
        match name {
            "hops" => self.hops = number(value, place),
            "paths" => self.paths = number(value, place),
            "object" => self.len = number(value, place),
            "silent_last" => self.last = number::<f64>(value, place),
            "segment" => self.config.segment = number(value, place),
            "ctrl_attempts" => self.config.ctrl_attempts = number(value, place),
            "fruitless_rounds" => self.config.fruitless_rounds = number(value, place),
            _ => panic!("{place}: no such setting"),
        }
    }

    fn start(&self, role: &str, fields: &[&str], place: &str) -> Play {
        let setting = Setting {
            hops: self.hops,
            paths: self.paths,
            payload: 12,
            config: self.config.clone(),
            ..Setting::default()
        };
        let plan = setting.plan_on(7, ChannelOrder::default());
        let plan = if self.last > 0.0 {
            silence(&setting)
        } else {
            plan
        };
        let bytes = object(self.len, 9);
        let fields = fields_of(fields, place);
        let config = || self.config.clone();
        let node = match role {
            "relay" => {
                let (stage, group) = (
                    field(&fields, "stage", place),
                    field(&fields, "group", place),
                );
                let silent: u8 = fields.get("silent").map_or(0, |n| number(n, place));
                let sends = |node| match plan.part_of(node) {
                    Some(Part::Paper(part)) => part.sends,
                    part => panic!("{place}: {part:?}"),
                };
                let fits = |at: &&Place| {
                    (at.stage, at.group, u8::from(!sends(at.node))) == (stage, group, silent)
                };
                let relay = plan.relays().iter().find(fits);
                let me = relay
                    .unwrap_or_else(|| panic!("{place}: no such relay"))
                    .node;
                Me::Relay(Relay::new(config(), &CAPS, me).unwrap())
            }
            "bystander" => Me::Relay(Relay::new(config(), &CAPS, 9999).unwrap()),
            "source" => Me::Source(Source::new(config(), &CAPS, SOURCE as u16, bytes).unwrap()),
            "destination" => {
                let store = Growing::default();
                let me = Destination::new(config(), &CAPS, DESTINATION as u16, store);
                Me::Destination(me.unwrap())
            }
            _ => panic!("{place}: no such role"),
        };
        let mut play = Play {
            node,
            plan,
            bytes,
            now: Instant::ZERO,
            channel: Channel(0),
            listening: true,
            aborted: false,
            transmit: None,
            heard: Vec::new(),
        };
        play.drain();
        play
    }
}

/// A plan in which one relay per group sends in the last stage.
fn silence(setting: &Setting) -> Plan {
    let wanted = chappe_p3::Wanted {
        transfer: 7,
        payload: 12,
        source: SOURCE as u16,
        destination: DESTINATION as u16,
        channels: ChannelOrder::default(),
    };
    let mut random = chappe_core::Seed(1).stream(chappe_core::Purpose::Topology);
    let (profile, paths) = (chappe_p3::Profile::PAPER, setting.path_set());
    Plan::from_paths(wanted, &profile, &paths, &mut random, 1e9, f64::from).unwrap()
}

#[allow(clippy::large_enum_variant, reason = "one node in a test")]
enum Me {
    Relay(Relay),
    Source(Source<&'static [u8]>),
    Destination(Destination<Growing>),
}

impl Me {
    fn radio(&mut self) -> &mut dyn RadioNode {
        match self {
            Me::Relay(node) => node,
            Me::Source(node) => node,
            Me::Destination(node) => node,
        }
    }

    fn deadline(&self) -> Option<Wake> {
        match self {
            Me::Relay(node) => node.poll_timeout(),
            Me::Source(node) => node.poll_timeout(),
            Me::Destination(node) => node.poll_timeout(),
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Me::Relay(node) => node.state(),
            Me::Source(node) => node.state(),
            Me::Destination(node) => node.state(),
        }
    }

    fn drops(&self) -> &Drops {
        match self {
            Me::Relay(node) => node.drops(),
            Me::Source(node) => node.drops(),
            Me::Destination(node) => node.drops(),
        }
    }
}

struct Play {
    node: Me,
    plan: Plan,
    bytes: &'static [u8],
    now: Instant,
    channel: Channel,
    listening: bool,
    aborted: bool,
    transmit: Option<(Transmit, Vec<u8>)>,
    /// The last frame that it heard.
    heard: Vec<u8>,
}

impl Play {
    fn line(&mut self, words: &[&str], place: &str) {
        match words {
            [time, rest @ ..] if time.starts_with('@') => {
                self.advance(micros(&time[1..], place));
                if !rest.is_empty() {
                    self.line(rest, place);
                }
            }
            ["start"] => {
                let Me::Destination(me) = &mut self.node else {
                    panic!("{place}: only a destination starts")
                };
                me.start(self.plan, None, self.now).unwrap();
                self.drain();
            }
            ["woken"] => self.wake(place),
            ["hears", kind, fields @ ..] => self.hear(kind, &fields_of(fields, place), place),
            ["glances", kind, fields @ ..] => {
                let psdu = self.frame(kind, &fields_of(fields, place), place);
                let octets = &psdu[..4];
                let event = RadioEvent::Head(Head {
                    octets,
                    len: psdu.len(),
                    started: self.now.saturating_before(airtime(2)),
                    mode: MODE,
                });
                self.aborted = false;
                self.node.radio().handle_radio(self.now, event);
                self.drain();
            }
            ["aborts"] => assert!(self.aborted, "{place}"),
            ["stays"] => assert!(!self.aborted && self.listening, "{place}"),
            ["sends", kind, fields @ ..] => self.expect(kind, fields, place),
            ["silent"] => {
                assert!(self.transmit.is_none(), "{place}: {:?}", self.transmit);
            }
            ["listens", channel] => {
                let wanted = (*channel != "off").then(|| self.channel_of(channel, place));
                let actual = self.listening.then_some(self.channel);
                assert_eq!(actual, wanted, "{place}");
            }
            ["rests", channel] => {
                let off = !self.listening && self.channel == self.channel_of(channel, place);
                assert!(off, "{place}: on {}, {}", self.channel, self.listening);
            }
            ["waits", span, why @ ..] => {
                let (asked, why) = (self.now, why.join(" "));
                let mut wake = self.node.deadline();
                // A receiver that opens meanwhile is not what the script asks for.
                while let Some(opens) = wake.filter(|wake| wake.why != why) {
                    assert_eq!(opens.why, "receiver on", "{place}");
                    self.advance(opens.at);
                    wake = self.node.deadline();
                }
                let wake = wake.unwrap_or_else(|| panic!("{place}: it waits for nothing"));
                let after = wake.at.saturating_since(asked).nanos() / 1000;
                assert_eq!((after, wake.why), (number(span, place), &*why), "{place}");
            }
            ["state", state] => assert_eq!(self.node.state(), *state, "{place}"),
            ["drops", why, count] => {
                let why = DropReason::ALL.into_iter().find(|drop| drop.name() == *why);
                let why = why.unwrap_or_else(|| panic!("{place}: no such reason"));
                assert_eq!(self.node.drops().of(why), number(count, place), "{place}");
            }
            ["ended", how] => {
                let Me::Source(me) = &self.node else {
                    panic!("{place}")
                };
                assert_eq!(
                    format!("{:?}", me.ended()),
                    format!("Some({how})"),
                    "{place}"
                );
            }
            ["has", packets] => {
                let Me::Destination(me) = &self.node else {
                    panic!("{place}")
                };
                let progress = me.progress();
                assert_eq!(progress.packets, number(packets, place), "{place}");
                if progress.completed.is_some() {
                    assert!(me.store().bytes == self.bytes, "{place}: other octets");
                }
            }
            _ => panic!("{place}: not understood"),
        }
    }

    /// The wake-up flood in which nothing is lost, up to the end of this node's last transmission.
    fn wake(&mut self, place: &str) {
        if matches!(self.node, Me::Destination(_)) {
            self.line(&["start"], place);
            for slot in ["hop=0", "hop=2", "hop=4"] {
                self.line(&["sends", "plan", slot], place);
            }
            return;
        }
        for (heard, sent) in [("hop=0", "hop=1"), ("hop=2", "hop=3"), ("hop=4", "hop=5")] {
            let len = 7 + self.plan.encoded_len();
            self.advance(self.now + Duration::from_micros(281) + airtime(len));
            self.line(&["hears", "plan", heard], place);
            self.line(&["sends", "plan", sent], place);
        }
    }

    fn advance(&mut self, to: Instant) {
        while let Some(wake) = self.node.deadline().filter(|wake| wake.at <= to) {
            self.now = self.now.max(wake.at);
            self.node.radio().handle_timeout(self.now);
            self.drain();
            assert!(!Wake::due(self.node.deadline(), self.now), "{wake:?} stays");
        }
        self.now = self.now.max(to);
    }

    fn drain(&mut self) {
        let mut psdu = [0; 127];
        while let Some(request) = self.node.radio().poll_radio(self.now, &mut psdu) {
            match request {
                RadioRequest::Transmit(transmit) => {
                    self.transmit = Some((transmit, psdu[..transmit.len].to_vec()));
                }
                RadioRequest::Cancel => self.transmit = None,
                RadioRequest::Tune(channel) => self.channel = channel,
                RadioRequest::Listen(on) => self.listening = on,
                RadioRequest::Abort => self.aborted = true,
                RadioRequest::Sense(_) | RadioRequest::Peek(_) => {}
                RadioRequest::Burst(burst) => panic!("no burst was expected: {burst:?}"),
            }
        }
    }

    fn channel_of(&self, name: &str, place: &str) -> Channel {
        match name.strip_prefix('c') {
            Some(stage) => self.plan.channels().of_stage(number(stage, place)),
            None if name == "flood" => Channel(26),
            None => panic!("{place}: a channel is c0, c1, ... or flood"),
        }
    }

    fn hear(&mut self, kind: &str, fields: &BTreeMap<&str, &str>, place: &str) {
        let psdu = self.frame(kind, fields, place);
        self.heard = psdu.clone();
        let event = RadioEvent::Received(Reception {
            psdu: &psdu,
            started: self.now.saturating_before(airtime(psdu.len())),
            mode: MODE,
            power: None,
        });
        self.node.radio().handle_radio(self.now, event);
        self.drain();
    }

    fn frame(&self, kind: &str, fields: &BTreeMap<&str, &str>, place: &str) -> Vec<u8> {
        let get = |name: &str, usual: u32| fields.get(name).map_or(usual, |n| number(n, place));
        let has = |name: &str| fields.contains_key(name);
        let list: Vec<usize> = fields.get("missing").map_or(Vec::new(), |list| {
            list.split(',').map(|n| number(n, place)).collect()
        });
        let (mut header, mut body) = (
            Header {
                kind: Kind::Plan,
                transfer: get("transfer", 7) as u8,
                hop: get("hop", 0) as u8,
                flags: Flags {
                    group: get("group", 0) as u8,
                    both: has("both"),
                    last: has("last"),
                    complete: has("complete"),
                    by_group: has("by-group"),
                    left_out: None,
                },
                sequence: get("seq", 0) as u16,
                round: get("round", 0) as u8,
            },
            vec![0; 12],
        );
        match kind {
            "plan" => {
                body = vec![0; self.plan.encoded_len()];
                self.plan.emit(&mut body).unwrap();
            }
            "data" => {
                header.kind = Kind::Data;
                body = self.packet(header.sequence);
            }
            "ctrl" => {
                header.kind = Kind::Ctrl;
                let ctrl = Ctrl {
                    object_len: get("len", self.bytes.len() as u32),
                    end: get("end", 3),
                    copies_left: get("left", 0) as u8,
                };
                header.sequence = ctrl.end as u16;
                ctrl.emit(&mut body).unwrap();
            }
            "nack" => {
                header.kind = Kind::Nack;
                header.sequence = get("of", 8) as u16;
                body[..2].copy_from_slice(&(get("base", 0) as u16).to_le_bytes());
                body[2] = list.len() as u8;
                list.iter()
                    .for_each(|&at| body[4 + at / 8] |= 1 << (at % 8));
            }
            "noise" => return vec![0x55; 20],
            _ => panic!("{place}: no such frame"),
        }
        let mut psdu = vec![0; 7 + body.len()];
        header.emit(&mut psdu).unwrap().copy_from_slice(&body);
        psdu.truncate(fields.get("cut").map_or(psdu.len(), |n| number(n, place)));
        psdu
    }

    fn packet(&self, sequence: u16) -> Vec<u8> {
        let from = (usize::from(sequence) * 12).min(self.bytes.len());
        let mut packet = self.bytes[from..].to_vec();
        packet.resize(12, 0);
        packet
    }

    /// The frame that it sends next, when and where; then that frame is over.
    fn expect(&mut self, kind: &str, words: &[&str], place: &str) {
        let sent = self.transmit.take();
        let (transmit, psdu) = sent.unwrap_or_else(|| panic!("{place}: it sends nothing"));
        let (header, body) = Header::parse(&psdu).unwrap();
        let mut fields = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "on" => {
                    let channel = words.next().unwrap_or_else(|| panic!("{place}: on what?"));
                    assert_eq!(self.channel, self.channel_of(channel, place), "{place}");
                }
                word if word.starts_with('+') => {
                    let after = transmit.at.saturating_since(self.now).nanos() / 1000;
                    assert_eq!(after, number(&word[1..], place), "{place}: starts after");
                }
                word => fields.push(word),
            }
        }
        let fields = fields_of(&fields, place);
        let name = format!("{:?}", header.kind).to_lowercase();
        assert_eq!(name, kind, "{place}: {header}");
        self.compare(&header, body, &fields, place);
        if let (Me::Relay(_), false) = (&self.node, self.heard.is_empty()) {
            let mut repeated = self.heard.clone();
            repeated[2] = header.hop;
            assert_eq!(psdu, repeated, "{place}: other bits than it heard");
        }
        let end = transmit.at.max(self.now) + airtime(psdu.len());
        self.advance(end);
        self.node.radio().handle_radio(self.now, RadioEvent::Sent);
        self.drain();
    }

    fn compare(&self, header: &Header, body: &[u8], fields: &BTreeMap<&str, &str>, place: &str) {
        let ctrl = Ctrl::parse(body);
        let nack = Nack::parse(header.sequence, body);
        let missing = nack.map(|nack| {
            let all = (0..nack.covered).filter(|&at| nack.is_missing(at));
            all.map(|at| at.to_string()).collect::<Vec<_>>().join(",")
        });
        for (name, value) in fields {
            let actual = match *name {
                "hop" => header.hop.to_string(),
                "group" => header.flags.group.to_string(),
                "seq" => header.sequence.to_string(),
                "round" => header.round.to_string(),
                "both" => String::from(if header.flags.both { "" } else { "no" }),
                "last" => String::from(if header.flags.last { "" } else { "no" }),
                "complete" => String::from(if header.flags.complete { "" } else { "no" }),
                "end" => ctrl.unwrap().end.to_string(),
                "left" => ctrl.unwrap().copies_left.to_string(),
                "len" => ctrl.unwrap().object_len.to_string(),
                "base" => nack.unwrap().base.to_string(),
                "of" => nack.unwrap().covered.to_string(),
                "missing" => missing.clone().unwrap(),
                _ => panic!("{place}: {name}?"),
            };
            assert_eq!(&actual, value, "{place}: {name} of {header}");
        }
        for flag in ["both", "last", "complete"] {
            let set = match flag {
                "both" => header.flags.both,
                "last" => header.flags.last,
                _ => header.flags.complete,
            };
            let expected = fields.contains_key(flag);
            let ours = header.kind != Kind::Plan && !matches!(self.node, Me::Relay(_));
            assert!(!ours || set == expected, "{place}: {flag} of {header}");
        }
        if header.kind == Kind::Data {
            assert_eq!(body, self.packet(header.sequence), "{place}: payload");
        }
    }
}

fn fields_of<'a>(words: &[&'a str], _: &str) -> BTreeMap<&'a str, &'a str> {
    let field = |word: &&'a str| word.split_once('=').unwrap_or((word, ""));
    words.iter().map(field).collect()
}

fn field<T: FromStr<Err: Debug>>(fields: &BTreeMap<&str, &str>, name: &str, place: &str) -> T {
    let text = fields.get(name);
    number(
        text.unwrap_or_else(|| panic!("{place}: {name} is missing")),
        place,
    )
}

fn micros(text: &str, place: &str) -> Instant {
    Instant::from_micros(number(text, place))
}

fn number<T: FromStr<Err: Debug>>(text: &str, place: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{place}: {text}: {error:?}"))
}
