//! Goal: each rule of the protocol, one at a time. Method: packet scripts, played to one node by one function that
//! knows the API. The language is explained in `scripts/README.md`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use chappe_coding::field::mul;
use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome, Purpose,
    Seed,
};
use chappe_pacifier::header::{self, Ack, AckId, DataRepr, Frame};
use chappe_pacifier::{AckProof, Config, Links, Node, Variant};

#[test]
fn every_script_plays_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    files.sort();
    assert!(files.len() >= 8, "only {} scripts found", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        check(&name, &std::fs::read_to_string(&path).unwrap());
    }
}

#[test]
#[should_panic(expected = "planted:6: me > * data batch=2")]
fn a_script_that_is_wrong_fails() {
    check(
        "planted",
        "nodes 2\nlink 0-1 1.0\nnode 0\noffer 8 to 1\n---\nme > * data batch=2\n",
    );
}

/// Plays one script; several may stand in one file, separated by lines of `=`.
fn check(name: &str, text: &str) {
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

/// The head of a script.
#[derive(Default)]
struct Scene {
    nodes: usize,
    links: Vec<(u16, u16, f64)>,
    config: Option<Config>,
    me: u16,
    asks: Vec<String>,
}

impl Scene {
    fn line(&mut self, line: &str, place: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let config = self.config.get_or_insert_with(|| Config {
            k: 4,
            payload: 8,
            ..Config::default()
        });
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
                config.variant = match name {
                    "pacifier" => Variant::Pacifier { knob: share },
                    "tree+rl" => Variant::TreeRl,
                    "tree" => Variant::Tree,
                    "more" => Variant::More { prune: share },
                    _ => panic!("{place}: unknown variant"),
                };
            }
            ["set", name, value] => set(config, name, value, place),
            ["node", n] => self.me = number(n, place),
            ["offer" | "expect", ..] => self.asks.push(line.to_owned()),
            _ => panic!("{place}: not understood"),
        }
    }

    fn start(&mut self, place: &str) -> Play {
        let ratio = |from, to| {
            let found = self
                .links
                .iter()
                .find(|link| (link.0, link.1) == (from, to));
            found.map_or(0.0, |link| link.2)
        };
        let links = Arc::new(Links::measured(self.nodes, ratio).unwrap());
        let random = Seed(1).stream(Purpose::Node(self.me.into()));
        let config = self.config.clone().unwrap_or_default();
        let node = Node::new(config.clone(), self.me, links, random);
        let mut object = vec![0; 4096];
        Seed(9).stream(Purpose::Trial(9)).fill(&mut object);
        let mut play = Play {
            node: node.unwrap_or_else(|error| panic!("{place}: {error}")),
            config,
            object,
            len: 0,
            now: Instant::ZERO,
            token: None,
            said: Said::default(),
            used: BTreeMap::new(),
        };
        for ask in &self.asks {
            play.ask(ask, place);
        }
        play
    }
}

fn set(config: &mut Config, name: &str, value: &str, place: &str) {
    match name {
        "k" => config.k = number(value, place),
        "payload" => config.payload = number(value, place),
        "M" => config.ack_overheard_next_hop = number(value, place),
        "N" => config.ack_overheard_other = number(value, place),
        "repeat" => config.ack_repeat = number(value, place),
        "cache" => config.ack_cache = number(value, place),
        "groups" => config.groups_max = number(value, place),
        "retry_ms" => config.ack_retry_min = Duration::from_millis(number(value, place)),
        "proof" if value == "mac" => config.ack_proof = AckProof::MacOrOverheard,
        "proof" if value == "overheard" => config.ack_proof = AckProof::Overheard,
        _ => panic!("{place}: no such parameter"),
    }
}

/// What "as before" refers to.
#[derive(Default)]
struct Said {
    object: u8,
    batch: u32,
    turn: u16,
    forwarders: String,
    destinations: String,
}

struct Play {
    node: Node,
    config: Config,
    /// The octets that all transfers of the script consist of.
    object: Vec<u8>,
    len: usize,
    now: Instant,
    token: Option<u32>,
    said: Said,
    /// The next unused unit vector of each batch.
    used: BTreeMap<u32, usize>,
}

impl Play {
    fn line(&mut self, line: &str, place: &str) {
        let line = match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((time, rest)) => {
                self.advance(millis(time, place));
                rest.trim()
            }
            None => line,
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["again", ref ask @ ..] => self.ask(&ask.join(" "), place),
            ["me", ">", to, kind, ref fields @ ..] => self.expect_frame(to, kind, fields, place),
            [from, ">", to, kind, ref fields @ ..] => self.feed(from, to, kind, fields, place),
            ["link", outcome] => self.report(outcome, place),
            ["me", "silent"] => {
                assert!(
                    self.node.pending().is_empty(),
                    "{place}: {:?}",
                    self.node.pending()
                );
                let sent = self.poll();
                assert!(sent.is_none(), "{place}: it sent {:?}", sent.unwrap().1);
            }
            ["me", "waits", "for", "nothing"] => {
                assert_eq!(self.node.poll_timeout(), None, "{place}");
            }
            ["me", "waits", time, ref why @ ..] => {
                let wake = self
                    .node
                    .poll_timeout()
                    .unwrap_or_else(|| panic!("{place}: no deadline"));
                let wait = wake.at.saturating_since(self.now);
                let said = Duration::from_secs_f64(number::<f64>(time, place) / 1000.0);
                assert_eq!((wait, wake.why), (said, &why.join(" ")[..]), "{place}");
            }
            ["me", "has", n, "batches"] => {
                let has = self.node.received().batches_done;
                assert_eq!(has, number(n, place), "{place}");
            }
            ["me", "complete"] => {
                assert_eq!(self.node.object(), self.object.get(..self.len), "{place}");
                assert!(self.node.received().complete_at.is_some(), "{place}");
            }
            ["me", "done"] => assert!(self.node.source_done(), "{place}"),
            ["me", "not", "done"] => assert!(!self.node.source_done(), "{place}"),
            ["me", "counts", name, n] => {
                assert_eq!(
                    self.counter(name, place),
                    number::<u64>(n, place),
                    "{place}"
                );
            }
            _ => panic!("{place}: not understood"),
        }
    }

    fn ask(&mut self, ask: &str, place: &str) {
        let words: Vec<&str> = ask.split_whitespace().collect();
        match words[..] {
            ["offer", len, "to", ref receivers @ ..] => {
                self.len = number(len, place);
                let receivers: Vec<u16> = receivers.iter().map(|n| number(n, place)).collect();
                let object = self.object[..self.len].into();
                self.node
                    .offer(object, &receivers)
                    .unwrap_or_else(|e| panic!("{place}: {e}"));
            }
            ["expect", len, "from", source] => {
                self.len = number(len, place);
                self.node.expect(number(source, place), self.len).unwrap();
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
                let drops = counters.drops.iter().find(|(why, _)| why.name() == name);
                drops
                    .unwrap_or_else(|| panic!("{place}: no such counter"))
                    .1
            }
        }
    }

    fn feed(&mut self, from: &str, to: &str, kind: &str, fields: &[&str], place: &str) {
        let mut sdu = [0; 512];
        let len = match kind {
            "data" => self.data(&fields_of(fields, place), &mut sdu, place),
            "ack" => self
                .ack(&fields_of(fields, place), place)
                .emit(&mut sdu)
                .unwrap(),
            _ => panic!("{place}: a frame is data or ack"),
        };
        let arrival = Arrival {
            from: Address::node(number(from, place)),
            to: address(to, place),
            sdu: &sdu[..len],
            power: None,
        };
        self.node
            .handle_link(self.now, LinkEvent::Received(arrival));
    }

    /// Writes a data frame; the group is that of node 0 unless the script says otherwise.
    fn data(&mut self, fields: &BTreeMap<&str, &str>, sdu: &mut [u8], place: &str) -> usize {
        let said = &mut self.said;
        let keep = |field: &str, said: &mut String| {
            if let Some(value) = fields.get(field) {
                *said = (*value).to_owned();
            }
        };
        keep("fn", &mut said.forwarders);
        keep("to", &mut said.destinations);
        said.batch = fields.get("batch").map_or(said.batch, |n| number(n, place));
        said.turn = fields.get("turn").map_or(said.turn, |n| number(n, place));
        said.object = fields
            .get("object")
            .map_or(said.object, |n| number(n, place));
        let mut forwarders = vec![];
        for entry in said.forwarders.split(',').filter(|entry| !entry.is_empty()) {
            let (node, credit) = entry.split_once(':').unwrap_or_else(|| panic!("{place}"));
            let units = (number::<f64>(credit, place) * 512.0).round() as u16;
            forwarders.push(number(node, place));
            forwarders.extend_from_slice(&units.to_be_bytes());
        }
        let listed = said
            .destinations
            .split(',')
            .filter(|entry| !entry.is_empty());
        let destinations: Vec<u8> = listed.map(|node| number(node, place)).collect();
        let repr = DataRepr {
            source: fields.get("source").map_or(0, |n| number(n, place)),
            object: said.object,
            turn: said.turn,
            batch: said.batch,
            packets: self.packets(self.said.batch) as u8,
            forwarders: &forwarders,
            destinations: &destinations,
            last_ack: fields.get("ack").map(|ack| ack_id(ack, place)),
        };
        let coefficients = self.vector(fields, place);
        let (vector, payload) = repr.emit(sdu, self.config.payload).unwrap();
        vector.copy_from_slice(&coefficients);
        payload.copy_from_slice(&self.combination(repr.batch, &coefficients));
        repr.frame_len(self.config.payload)
    }

    fn vector(&mut self, fields: &BTreeMap<&str, &str>, place: &str) -> Vec<u8> {
        let (batch, packets) = (self.said.batch, self.packets(self.said.batch));
        if let Some(list) = fields.get("v") {
            return list.split(',').map(|c| number(c, place)).collect();
        }
        let next = self.used.entry(batch).or_default();
        let unit = fields.get("e").map_or(*next, |n| number(n, place));
        *next = unit + 1;
        (0..packets)
            .map(|at| u8::from(at == unit % packets))
            .collect()
    }

    fn ack(&self, fields: &BTreeMap<&str, &str>, place: &str) -> Ack {
        let field = |name: &str, usual: u32| fields.get(name).map_or(usual, |n| number(n, place));
        Ack {
            source: field("source", 0) as u16,
            object: field("object", self.said.object.into()) as u8,
            id: AckId {
                receiver: field("from", 0) as u16,
                batch: field("batch", 0),
            },
            repeat: field("repeat", 0) as u8,
        }
    }

    /// Packets of a batch: of the object that was offered or is expected, or else k.
    fn packets(&self, batch: u32) -> usize {
        let Config { k, payload, .. } = self.config;
        let all = self.len.div_ceil(payload);
        match all.saturating_sub(batch as usize * k).min(k) {
            0 => k,
            packets => packets,
        }
    }

    /// What the payload of a frame must be.
    fn combination(&self, batch: u32, vector: &[u8]) -> Vec<u8> {
        let Config { k, payload, .. } = self.config;
        let len = if self.len == 0 {
            self.object.len()
        } else {
            self.len
        };
        let octet = |packet: usize, at: usize| {
            let place = (batch as usize * k + packet) * payload + at;
            if place < len { self.object[place] } else { 0 }
        };
        let sum = |at| {
            let products = vector
                .iter()
                .enumerate()
                .map(|(p, &c)| mul(c, octet(p, at)));
            products.fold(0, |sum, product| sum ^ product)
        };
        (0..payload).map(sum).collect()
    }

    fn poll(&mut self) -> Option<(LinkSend, Vec<u8>)> {
        let mut sdu = [0; 512];
        let send = self.node.poll_link(self.now, Classes::ALL, &mut sdu)?;
        Some((send, sdu[..send.len].to_vec()))
    }

    fn expect_frame(&mut self, to: &str, kind: &str, fields: &[&str], place: &str) {
        let (fields, outcome) = match fields.iter().position(|word| *word == "->") {
            Some(arrow) => (&fields[..arrow], fields[arrow + 1]),
            None => (fields, "sent"),
        };
        assert!(
            !self.node.pending().is_empty(),
            "{place}: it has nothing to send"
        );
        let (send, sdu) = self
            .poll()
            .unwrap_or_else(|| panic!("{place}: it sends nothing"));
        assert_eq!(send.to, address(to, place), "{place}");
        let fields = fields_of(fields, place);
        match (kind, header::parse(&sdu)) {
            ("data", Ok(Frame::Data(data))) => {
                self.said.object = data.object();
                let same = |field: &str, value: u32| {
                    let said: Option<u32> = fields.get(field).map(|n| number(n, place));
                    assert_eq!(said.unwrap_or(value), value, "{place}: {field} in {data}");
                };
                same("batch", data.batch());
                same("turn", data.turn().into());
                same("source", data.source().into());
                if let Some(&last) = fields.get("ack") {
                    let last = (last != "none").then(|| ack_id(last, place));
                    assert_eq!(data.last_ack(), last, "{place}");
                }
                if let Some(list) = fields.get("fn") {
                    assert_eq!(forwarders(data.forwarders()), *list, "{place}");
                }
                if let Some(list) = fields.get("to") {
                    let nodes: Vec<String> =
                        data.destinations().iter().map(u8::to_string).collect();
                    assert_eq!(nodes.join(","), *list, "{place}");
                }
                assert!(
                    data.vector().iter().any(|&c| c != 0),
                    "{place}: an empty combination"
                );
                let payload = self.combination(data.batch(), data.vector());
                assert_eq!(
                    data.payload(),
                    payload,
                    "{place}: payload and vector disagree"
                );
            }
            ("ack", Ok(Frame::Ack(ack))) => {
                assert_eq!(ack, self.ack(&fields, place), "{place}");
            }
            (_, frame) => panic!("{place}: it sent {frame:?}"),
        }
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
        let token = self
            .token
            .take()
            .unwrap_or_else(|| panic!("{place}: nothing was sent"));
        self.node
            .handle_link(self.now, LinkEvent::Sent { token, outcome });
    }
}

/// A list of forwarding nodes as scripts write it, credits in hundredths.
fn forwarders(list: &[u8]) -> String {
    let entry = |entry: &[u8]| {
        let credit = f64::from(u16::from_be_bytes([entry[1], entry[2]])) / 512.0;
        format!("{}:{:.2}", entry[0], credit)
    };
    list.chunks(3).map(entry).collect::<Vec<_>>().join(",")
}

fn fields_of<'a>(words: &[&'a str], place: &str) -> BTreeMap<&'a str, &'a str> {
    let field = |word: &&'a str| {
        word.split_once('=')
            .unwrap_or_else(|| panic!("{place}: {word}"))
    };
    words.iter().map(field).collect()
}

fn ack_id(text: &str, place: &str) -> AckId {
    let (receiver, batch) = text.split_once('/').unwrap_or_else(|| panic!("{place}"));
    AckId {
        receiver: number(receiver, place),
        batch: number(batch, place),
    }
}

fn address(text: &str, place: &str) -> Address {
    if text == "*" {
        Address::BROADCAST
    } else {
        Address::node(number(text, place))
    }
}

fn millis(text: &str, place: &str) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(number::<f64>(text, place) / 1000.0)
}

fn number<T: FromStr<Err: Debug>>(text: &str, place: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{place}: {text}: {error:?}"))
}
