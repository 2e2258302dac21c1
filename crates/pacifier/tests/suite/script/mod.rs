//! The player of packet scripts: the scene, and the events and expectations that all variants share. The submodules read and
//! write the frames of each.

mod improved;
mod paper;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use chappe_coding::field::mul;
use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Purpose,
    Seed,
};
use chappe_pacifier::improved::Settings;
use chappe_pacifier::paper::{AckProof, Pacing, Variant};
use chappe_pacifier::{Common, Config, Links, Node};

/// Plays one script; several may stand in one file, separated by lines of `=`.
pub fn check(name: &str, text: &str) {
    let mut scene = Scene::default();
    let mut play: Option<Play> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let place = format!("{name}:{}: {line}", number + 1);
        match (&mut play, line) {
            (_, "") => {}
            (_, _) if line.chars().all(|c| c == '=') => (scene, play) = Default::default(),
            (None, "---") => play = Some(scene.start(&place)),
            (None, _) => scene.line(line, &place),
            (Some(play), _) => play.line(line, &place),
        }
    }
    assert!(play.is_some(), "{name}: a script without events");
}

/// The frames of a variant, as scripts write them.
trait Frames {
    /// The node has begun to offer an object.
    fn offered(&mut self, node: &Node, now: Instant);

    /// Writes a frame that is heard. Its length.
    fn write(&mut self, about: &mut Object, frame: Said<'_>, sdu: &mut [u8]) -> usize;

    /// Compares what the node sends with what the script says.
    fn compare(&mut self, about: &Object, frame: Said<'_>, sdu: &[u8]);
}

/// A frame in a script's words: `data batch=1`.
struct Said<'a> {
    kind: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
    place: &'a str,
}

impl<'a> Said<'a> {
    fn new(kind: &'a str, words: &[&'a str], place: &'a str) -> Said<'a> {
        let field = |word: &&'a str| {
            word.split_once('=')
                .unwrap_or_else(|| panic!("{place}: {word}"))
        };
        Said {
            kind,
            fields: words.iter().map(field).collect(),
            place,
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.fields.get(name).copied()
    }

    fn number<T: FromStr<Err: Debug>>(&self, name: &str, usual: T) -> T {
        self.get(name).map_or(usual, |n| number(n, self.place))
    }
}

/// What is sent in a script, and how it is cut.
struct Object {
    config: Config,
    /// Nodes of the network.
    nodes: usize,
    /// The octets that all objects of the script begin with.
    octets: Vec<u8>,
    /// Octets of the one on offer or expected; 0 if there is none.
    len: usize,
    /// The next unit vector of each batch.
    used: BTreeMap<u32, usize>,
}

impl Object {
    /// The place of the one in the code vector of a frame that is heard: as said, or the next one of the batch.
    fn unit(&mut self, batch: u32, frame: &Said<'_>) -> usize {
        let next = self.used.entry(batch).or_default();
        let unit = frame.number("e", *next);
        *next = unit + 1;
        unit
    }

    /// What the payload of a frame must be, in an object of `len` octets.
    fn combination(&self, len: usize, batch: u32, vector: &[u8]) -> Vec<u8> {
        let Common { k, payload, .. } = *self.config.common();
        let octet = |packet: usize, at: usize| {
            let place = (batch as usize * k + packet) * payload + at;
            if place < len { self.octets[place] } else { 0 }
        };
        let sum = |at| {
            let products = vector.iter().enumerate();
            let products = products.map(|(packet, &c)| mul(c, octet(packet, at)));
            products.fold(0, |sum, product| sum ^ product)
        };
        (0..payload).map(sum).collect()
    }
}

/// The head of a script.
struct Scene {
    nodes: usize,
    links: Vec<(u16, u16, f64)>,
    config: Config,
    me: u16,
    asks: Vec<String>,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            nodes: 0,
            links: Vec::new(),
            config: Config::default().with_batch(4, 8),
            me: 0,
            asks: Vec::new(),
        }
    }
}

impl Scene {
    fn line(&mut self, line: &str, place: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["nodes", n] => self.nodes = number(n, place),
            ["link", ends, ratio] => {
                let ratio = number(ratio, place);
                let (a, b) = ends
                    .split_once(['-', '>'])
                    .unwrap_or_else(|| panic!("{place}"));
                let (a, b) = (number(a, place), number(b, place));
                self.links.push((a, b, ratio));
                if ends.contains('-') {
                    self.links.push((b, a, ratio));
                }
            }
            ["variant", name, ref rest @ ..] => {
                let share = rest.first().map_or(0.0, |share| number(share, place));
                let config: Config = match name {
                    "pacifier" => Variant::Pacifier { knob: share }.into(),
                    "tree+rl" => Variant::TreeRl.into(),
                    "tree" => Variant::Tree.into(),
                    "more" => Variant::More { prune: share }.into(),
                    "improved" => chappe_pacifier::improved::Config::default().into(),
                    _ => panic!("{place}: unknown variant"),
                };
                self.config = config.with_common(*self.config.common());
            }
            ["set", name, value] => set(&mut self.config, name, value, place),
            ["node", n] => self.me = number(n, place),
            ["offer" | "expect", ..] => self.asks.push(line.to_owned()),
            _ => panic!("{place}: not understood"),
        }
    }

    fn start(&mut self, place: &str) -> Play {
        let ratio = |from, to| {
            let mut links = self.links.iter();
            let found = links.find(|link| (link.0, link.1) == (from, to));
            found.map_or(0.0, |link| link.2)
        };
        let links = Arc::new(Links::measured(self.nodes, ratio).unwrap());
        let random = Seed(1).stream(Purpose::Node(self.me.into()));
        let config = self.config.clone();
        let frames: Box<dyn Frames> = match config {
            Config::Improved(_) => Box::new(improved::Improved::default()),
            Config::Paper(_) => Box::new(paper::Paper::default()),
        };
        let node = Node::new(config.clone(), self.me, links, random);
        let mut octets = vec![0; 4096];
        Seed(9).stream(Purpose::Trial(9)).fill(&mut octets);
        let mut play = Play {
            node: node.unwrap_or_else(|error| panic!("{place}: {error}")),
            object: Object {
                config,
                nodes: self.nodes,
                octets,
                len: 0,
                used: BTreeMap::new(),
            },
            frames,
            now: Instant::ZERO,
            token: None,
        };
        for ask in &self.asks {
            play.ask(ask, place);
        }
        play
    }
}

fn set(config: &mut Config, name: &str, value: &str, place: &str) {
    let common = config.common_mut();
    match name {
        "k" => common.k = number(value, place),
        "payload" => common.payload = number(value, place),
        "groups" => common.groups_max = number(value, place),
        _ => match config {
            Config::Paper(config) => set_paper(config, name, value, place),
            Config::Improved(config) => set_improved(&mut config.settings, name, value, place),
        },
    }
}

fn set_paper(config: &mut chappe_pacifier::paper::Config, name: &str, value: &str, place: &str) {
    match name {
        "M" => config.ack_overheard_next_hop = number(value, place),
        "N" => config.ack_overheard_other = number(value, place),
        "repeat" => config.ack_repeat = number(value, place),
        "cache" => config.ack_cache = number(value, place),
        "retry_ms" => config.ack_retry_min = Duration::from_millis(number(value, place)),
        "relay_batches" => config.relay_batches = number(value, place),
        "pacing" if value == "triggered" => config.pacing = Pacing::TRIGGERED,
        "pacing" if value == "printed" => config.pacing = Pacing::PRINTED,
        "pacing" if value == "queued" => config.pacing = Pacing::QUEUED,
        "proof" if value == "mac" => config.ack_proof = AckProof::MacOrOverheard,
        "proof" if value == "overheard" => config.ack_proof = AckProof::Overheard,
        _ => panic!("{place}: no such parameter of the paper's protocols"),
    }
}

fn set_improved(settings: &mut Settings, name: &str, value: &str, place: &str) {
    match name {
        "window" => settings.window = number(value, place),
        "gate" => settings.gate = number(value, place),
        "room" => settings.nodes_max = number(value, place),
        _ => panic!("{place}: no such parameter of the improved variant"),
    }
}

struct Play {
    node: Node,
    object: Object,
    frames: Box<dyn Frames>,
    now: Instant,
    /// That of the frame sent last, while the link has not reported on it.
    token: Option<u32>,
}

impl Play {
    fn line(&mut self, line: &str, place: &str) {
        let timed = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let line = timed.map_or(line, |(_, rest)| rest.trim());
        if let Some((time, _)) = timed {
            self.advance(Instant::ZERO + millis(time, place));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["again", ref ask @ ..] => self.ask(&ask.join(" "), place),
            ["me", ">", ref frame @ ..] => self.expect(frame, place),
            ["me", "sends", times, ref fields @ ..] => {
                for _ in 0..number::<usize>(times, place) {
                    self.expect(&[&["data"], fields].concat(), place);
                }
            }
            ["me", "serves", ref receivers @ ..] => {
                let receivers: Vec<u16> = receivers.iter().map(|n| number(n, place)).collect();
                self.node.serve(&receivers);
            }
            ["me", ref state @ ..] => self.state(state, place),
            [from, ">", ref frame @ ..] => self.hear(from, frame, place),
            ["link", outcome] => self.report(outcome, place),
            _ => panic!("{place}: not understood"),
        }
    }

    /// What the node is expected to be.
    fn state(&mut self, words: &[&str], place: &str) {
        match *words {
            ["silent"] => {
                let pending = self.node.pending();
                assert!(pending.is_empty(), "{place}: {pending:?}");
                let sent = self.poll();
                assert!(sent.is_none(), "{place}: it sent {:?}", sent.unwrap().1);
            }
            ["waits", "for", "nothing"] => {
                assert_eq!(self.node.poll_timeout(), None, "{place}");
            }
            ["waits", time, ref why @ ..] => {
                let wake = self.node.poll_timeout();
                let wake = wake.unwrap_or_else(|| panic!("{place}: no deadline"));
                let found = (wake.at.saturating_since(self.now), wake.why);
                assert_eq!(found, (millis(time, place), &why.join(" ")[..]), "{place}");
            }
            ["has", n, "batches"] => {
                let has = self.node.received().batches_done;
                assert_eq!(has, number(n, place), "{place}");
            }
            ["complete"] => {
                let object = self.object.octets.get(..self.object.len);
                assert_eq!(self.node.object(), object, "{place}");
                assert!(self.node.received().complete_at.is_some(), "{place}");
            }
            ["done"] => assert!(self.node.source_done(), "{place}"),
            ["not", "done"] => assert!(!self.node.source_done(), "{place}"),
            ["counts", name, n] => {
                let said: u64 = number(n, place);
                assert_eq!(self.counter(name, place), said, "{place}");
            }
            _ => panic!("{place}: not understood"),
        }
    }

    fn ask(&mut self, ask: &str, place: &str) {
        let words: Vec<&str> = ask.split_whitespace().collect();
        match words[..] {
            ["offer", len, "to", ref receivers @ ..] => {
                self.object.len = number(len, place);
                let receivers: Vec<u16> = receivers.iter().map(|n| number(n, place)).collect();
                let object = self.object.octets[..self.object.len].into();
                let offered = self.node.offer(object, &receivers);
                offered.unwrap_or_else(|error| panic!("{place}: {error}"));
                self.frames.offered(&self.node, self.now);
            }
            ["expect", len, "from", source] => {
                self.object.len = number(len, place);
                let source = number(source, place);
                self.node.expect(source, self.object.len).unwrap();
            }
            _ => panic!("{place}: not understood"),
        }
    }

    /// Goes on to `to`, firing deadlines at their time.
    fn advance(&mut self, to: Instant) {
        while let Some(wake) = self.node.poll_timeout().filter(|wake| wake.at <= to) {
            self.node.handle_timeout(wake.at);
        }
        self.now = to;
    }

    fn counter(&self, name: &str, place: &str) -> u64 {
        let counters = self.node.counters();
        match name {
            "flushes" => counters.flushes,
            "turns" => counters.turns,
            "relay_sent" => counters.relay_sent,
            "source_sent" => counters.source_sent,
            "innovative" => counters.innovative,
            "non_innovative" => counters.non_innovative,
            "upstream_heard" => counters.upstream_heard,
            "acks_sent" => counters.acks_sent,
            "acks_forwarded" => counters.acks_forwarded,
            "ack_resends" => counters.ack_resends,
            "ack_repeats" => counters.ack_repeats,
            "acks_received" => counters.acks_received,
            "children_heard" => counters.children_heard,
            "pace_timeouts" => counters.pace_timeouts,
            _ => {
                let mut drops = counters.drops.iter();
                let found = drops.find(|(why, _)| why.name() == name);
                found
                    .unwrap_or_else(|| panic!("{place}: no such counter"))
                    .1
            }
        }
    }

    /// Hands the node under test a frame of another one.
    fn hear(&mut self, from: &str, frame: &[&str], place: &str) {
        let (to, kind, fields) = addressed(frame, place);
        let mut sdu = [0; 512];
        let said = Said::new(kind, fields, place);
        let len = self.frames.write(&mut self.object, said, &mut sdu);
        let arrival = Arrival {
            from: Address::node(number(from, place)),
            to,
            sdu: &sdu[..len],
            power: None,
        };
        self.node
            .handle_link(self.now, LinkEvent::Received(arrival));
    }

    fn poll(&mut self) -> Option<(LinkSend, Vec<u8>)> {
        let mut sdu = [0; 512];
        let send = self.node.poll_link(self.now, Classes::ALL, &mut sdu)?;
        Some((send, sdu[..send.len].to_vec()))
    }

    fn expect(&mut self, frame: &[&str], place: &str) {
        let (frame, outcome) = match frame.iter().position(|word| *word == "->") {
            Some(arrow) => (&frame[..arrow], frame[arrow + 1]),
            None => (frame, "sent"),
        };
        let (to, kind, fields) = addressed(frame, place);
        let pending = !self.node.pending().is_empty();
        assert!(pending, "{place}: it has nothing to send");
        let sent = self.poll();
        let (send, sdu) = sent.unwrap_or_else(|| panic!("{place}: it sends nothing"));
        assert_eq!(send.to, to, "{place}");
        let said = Said::new(kind, fields, place);
        self.frames.compare(&self.object, said, &sdu);
        self.token = Some(send.token);
        if outcome != "-" {
            self.report(outcome, place);
        }
    }

    fn report(&mut self, outcome: &str, place: &str) {
        let outcome = match outcome {
            "sent" => Outcome::Unconfirmed,
            "acked" => Outcome::Acknowledged { attempts: 1 },
            "failed" => Outcome::Failed { attempts: 7 },
            _ => panic!("{place}: sent, acked or failed"),
        };
        let token = self.token.take();
        let token = token.unwrap_or_else(|| panic!("{place}: nothing was sent"));
        self.node
            .handle_link(self.now, LinkEvent::Sent { token, outcome });
    }
}

/// To whom a frame goes (to all, if none is named), its kind, and its fields.
fn addressed<'a, 'b>(frame: &'b [&'a str], place: &str) -> (Address, &'a str, &'b [&'a str]) {
    let (to, rest) = match frame {
        ["*", rest @ ..] => (Address::BROADCAST, rest),
        [to, rest @ ..] if to.starts_with(|c: char| c.is_ascii_digit()) => {
            (Address::node(number(to, place)), rest)
        }
        rest => (Address::BROADCAST, rest),
    };
    let (kind, fields) = rest
        .split_first()
        .unwrap_or_else(|| panic!("{place}: no frame"));
    (to, kind, fields)
}

fn millis(text: &str, place: &str) -> Duration {
    Duration::from_secs_f64(number::<f64>(text, place) / 1000.0)
}

/// The parts of a list with commas.
fn list_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.is_empty())
}

fn number<T: FromStr<Err: Debug>>(text: &str, place: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{place}: {text}: {error:?}"))
}
