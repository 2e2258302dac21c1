//! Goal: each rule of the variant `chappe`, one at a time. Method: packet scripts, played to one node. The language is
//! explained in `scripts-chappe/README.md`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use chappe_core::{
    Address, Arrival, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_pacifier::chappe::header::{self, Frame, HeadRepr, ObjectId, Plan};
use chappe_pacifier::chappe::report::{self, State};
use chappe_pacifier::{Config, Links, Node, NodeSet, Variant};

#[test]
fn every_script_plays_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts-chappe");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    files.sort();
    assert!(files.len() >= 4, "only {} scripts found", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        check(&name, &std::fs::read_to_string(&path).unwrap());
    }
}

#[test]
#[should_panic(expected = "planted:6: me > data batch=1")]
fn a_script_that_is_wrong_fails() {
    let script = "nodes 2\nlink 0-1 1.0\nnode 0\noffer 8 to 1\n---\nme > data batch=1\n";
    check("planted", script);
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
            ..Config::new(Variant::Chappe)
        });
        match words[..] {
            ["nodes", n] => self.nodes = number(n, place),
            ["link", ends, ratio] => {
                let ends = ends.split_once('-').unwrap_or_else(|| panic!("{place}"));
                let (a, b) = (number(ends.0, place), number(ends.1, place));
                let ratio = number(ratio, place);
                self.links.extend([(a, b, ratio), (b, a, ratio)]);
            }
            ["set", "window", n] => config.chappe.window = number(n, place),
            ["set", "gate", n] => config.chappe.gate = number(n, place),
            ["set", "room", n] => config.chappe.nodes_max = number(n, place),
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
        let config = self.config.clone().unwrap_or_default();
        let random = Seed(1).stream(Purpose::Node(self.me.into()));
        let node = Node::new(config.clone(), self.me, links, random);
        let mut play = Play {
            node: node.unwrap_or_else(|error| panic!("{place}: {error}")),
            config,
            nodes: self.nodes,
            len: 0,
            now: Instant::ZERO,
            epoch: 7,
            members: String::new(),
            used: BTreeMap::new(),
        };
        for ask in &self.asks {
            play.ask(ask, place);
        }
        play
    }
}

struct Play {
    node: Node,
    config: Config,
    nodes: usize,
    /// Octets of the object; it consists of zeros.
    len: usize,
    now: Instant,
    /// That of the node's own offer; for another's, any will do.
    epoch: u8,
    /// The members that frames name, as said last.
    members: String,
    /// The next unit vector of each batch.
    used: BTreeMap<u32, usize>,
}

impl Play {
    fn line(&mut self, line: &str, place: &str) {
        let timed = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let line = timed.map_or(line, |(_, rest)| rest.trim());
        if let Some((time, _)) = timed {
            self.advance(Instant::from_millis(number(time, place)));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["me", ">", kind, ref fields @ ..] => self.expect_frame(kind, fields, place),
            ["me", "sends", times, ref fields @ ..] => {
                for _ in 0..number::<usize>(times, place) {
                    self.expect_frame("data", fields, place);
                }
            }
            [from, ">", kind, ref fields @ ..] => self.feed(from, kind, fields, place),
            ["me", "silent"] => {
                let sent = self.poll();
                assert!(sent.is_none(), "{place}: it sent {:?}", sent.unwrap());
            }
            ["me", "waits", time, ref why @ ..] => {
                let wake = self.node.poll_timeout();
                let wake = wake.unwrap_or_else(|| panic!("{place}: no deadline"));
                let wait = wake.at.saturating_since(self.now);
                let said = Duration::from_millis(number(time, place));
                assert_eq!((wait, wake.why), (said, &why.join(" ")[..]), "{place}");
            }
            ["me", "has", n, "batches"] => {
                let has = self.node.received().batches_done;
                assert_eq!(has, number(n, place), "{place}");
            }
            ["me", "done"] => assert!(self.node.source_done(), "{place}"),
            ["me", "not", "done"] => assert!(!self.node.source_done(), "{place}"),
            ["me", "serves", ref receivers @ ..] => {
                let receivers: Vec<u16> = receivers.iter().map(|n| number(n, place)).collect();
                self.node.serve(&receivers);
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
                let object = vec![0; self.len].into();
                self.node.offer(object, &receivers).unwrap();
                let (mut copy, mut sdu) = (self.node.clone(), [0; 512]);
                if let Some(send) = copy.poll_link(self.now, Classes::ALL, &mut sdu) {
                    self.epoch = header::parse(&sdu[..send.len]).unwrap().head.plan.epoch;
                }
            }
            ["expect", len, "from", source] => {
                self.len = number(len, place);
                self.node.expect(number(source, place), self.len).unwrap();
            }
            _ => panic!("{place}: not understood"),
        }
    }

    fn advance(&mut self, to: Instant) {
        while let Some(wake) = self.node.poll_timeout().filter(|wake| wake.at <= to) {
            self.node.handle_timeout(wake.at);
        }
        self.now = to;
    }

    /// Another node's frame, in the group of node 0.
    fn feed(&mut self, from: &str, kind: &str, fields: &[&str], place: &str) {
        let fields = fields_of(fields, place);
        let field = |name: &str| fields.get(name).copied();
        if let Some(members) = field("members") {
            self.members = members.to_owned();
        }
        let len = field("object").map_or(self.len, |len| number(len, place));
        let packets = len.div_ceil(self.config.payload);
        let batches = packets.div_ceil(self.config.k);
        let object = ObjectId {
            tag: self.tag(len),
            batches: batches as u32,
            k: self.config.k as u8,
            last: (packets - (batches - 1) * self.config.k) as u8,
        };
        let plan = Plan {
            epoch: field("epoch").map_or(self.epoch, |n| number(n, place)),
            number: field("plan").map_or(0, |n| number(n, place)),
            closed: field("closed").is_some(),
            members: set(&self.members, place),
        };
        let mut states = [0; report::STATES_MAX];
        let list = field("states").unwrap_or_default().split(',');
        let list = list
            .filter(|state| !state.is_empty())
            .map(|state| match state {
                "-" => State::Satisfied,
                rank => State::Rank(number(rank, place)),
            });
        let used = report::write(list, &mut states);
        let repr = HeadRepr {
            source: 0,
            object,
            plan: &plan,
            complete: &set(field("complete").unwrap_or_default(), place),
            urge: field("urge").map_or(0, |n| number(n, place)),
            times: None,
            nodes: field("sets").map_or(self.nodes, |n| number(n, place)),
            base: field("base").map_or(0, |n| number(n, place)),
            states: &states[..used],
        };
        let mut sdu = [0; 512];
        let len = match kind {
            "report" => repr.emit_report(&mut sdu).unwrap(),
            "data" => {
                let batch = number(field("batch").unwrap_or("0"), place);
                let next = self.used.entry(batch).or_default();
                let unit = field("e").map_or(*next, |n| number(n, place));
                *next = unit + 1;
                let open = repr
                    .emit_data(batch, self.config.payload, &mut sdu)
                    .unwrap();
                let packets = open.vector.len();
                open.vector.fill(0);
                open.vector[unit % packets] = 1;
                open.payload.fill(0);
                repr.data_len(batch, self.config.payload)
            }
            _ => panic!("{place}: a frame is data or report"),
        };
        let arrival = Arrival {
            from: Address::node(number(from, place)),
            to: Address::BROADCAST,
            sdu: &sdu[..len],
            power: None,
        };
        self.node
            .handle_link(self.now, LinkEvent::Received(arrival));
    }

    /// What a source of the same object would call it: asked of one.
    fn tag(&self, len: usize) -> u32 {
        let links = Arc::new(Links::measured(2, |_, _| 1.0).unwrap());
        let random = Seed(1).stream(Purpose::Node(0));
        let mut source = Node::new(self.config.clone(), 0, links, random).unwrap();
        source.offer(vec![0; len].into(), &[1]).unwrap();
        let mut sdu = [0; 512];
        let send = source.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
        header::parse(&sdu[..send.unwrap().len])
            .unwrap()
            .head
            .object
            .tag
    }

    fn poll(&mut self) -> Option<Vec<u8>> {
        let mut sdu = [0; 512];
        let send = self.node.poll_link(self.now, Classes::ALL, &mut sdu)?;
        let (token, outcome) = (send.token, Outcome::Unconfirmed);
        self.node
            .handle_link(self.now, LinkEvent::Sent { token, outcome });
        Some(sdu[..send.len].to_vec())
    }

    fn expect_frame(&mut self, kind: &str, fields: &[&str], place: &str) {
        let sdu = self
            .poll()
            .unwrap_or_else(|| panic!("{place}: it sends nothing"));
        let Frame { head, data } = header::parse(&sdu).unwrap();
        assert_eq!(kind == "data", data.is_some(), "{place}: it sent {head:?}");
        for (name, said) in fields_of(fields, place) {
            let states = head.report.states().map(|state| match state {
                State::Satisfied => "-".to_owned(),
                State::Rank(rank) => rank.to_string(),
            });
            let found = match name {
                "batch" => data.map_or(0, |data| data.batch).to_string(),
                "plain" => {
                    let ones = data.map(|data| data.vector.iter().filter(|&&c| c != 0).count());
                    if ones == Some(1) { "yes" } else { "no" }.to_owned()
                }
                "base" => head.report.base().to_string(),
                "states" => states.collect::<Vec<_>>().join(","),
                "urge" => head.urge.to_string(),
                "members" => list(&head.plan.members),
                "complete" => list(&head.complete),
                "closed" => if head.plan.closed { "yes" } else { "no" }.to_owned(),
                "told" => if head.told { "yes" } else { "no" }.to_owned(),
                _ => panic!("{place}: no such field"),
            };
            assert_eq!(found, said, "{place}: {name}");
        }
    }
}

fn list(set: &NodeSet) -> String {
    let nodes: Vec<String> = set.iter().map(|node| node.to_string()).collect();
    nodes.join(",")
}

fn set(text: &str, place: &str) -> NodeSet {
    let nodes = text.split(',').filter(|node| !node.is_empty());
    nodes.map(|node| number::<u16>(node, place)).collect()
}

fn fields_of<'a>(words: &[&'a str], place: &str) -> BTreeMap<&'a str, &'a str> {
    let field = |word: &&'a str| {
        word.split_once('=')
            .unwrap_or_else(|| panic!("{place}: {word}"))
    };
    words.iter().map(field).collect()
}

fn number<T: FromStr<Err: Debug>>(text: &str, place: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{place}: {text}: {error:?}"))
}
