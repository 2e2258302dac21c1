//! The frames of the improved variant in scripts. All of them belong to the group of node 0.

use std::sync::Arc;

use chappe_core::{Classes, Instant, LinkNode, Purpose, Seed};
use chappe_pacifier::improved::K_MAX;
use chappe_pacifier::improved::header::{self, Frame, HeadRepr, ObjectId, Plan};
use chappe_pacifier::improved::report::{self, State};
use chappe_pacifier::{Links, Node, NodeSet};

use super::{Frames, Object, Said, list_of, number};

/// What fields that are not said refer to.
pub struct Improved {
    /// The epoch of the node's own offer; for another's, any will do.
    epoch: u8,
    /// The members that frames name, as said last.
    members: String,
    /// Octets of the object that frames carry, as said last.
    len: usize,
}

impl Default for Improved {
    fn default() -> Improved {
        Improved {
            epoch: 7,
            members: String::new(),
            len: 0,
        }
    }
}

impl Frames for Improved {
    fn offered(&mut self, node: &Node, now: Instant) {
        let (mut copy, mut sdu) = (node.clone(), [0; 512]);
        if let Some(send) = copy.poll_link(now, Classes::ALL, &mut sdu) {
            self.epoch = header::parse(&sdu[..send.len]).unwrap().head.plan.epoch;
        }
    }

    fn write(&mut self, about: &mut Object, frame: Said<'_>, sdu: &mut [u8]) -> usize {
        let place = frame.place;
        if let Some(members) = frame.get("members") {
            members.clone_into(&mut self.members);
        }
        self.len = frame.number("object", about.len);
        let plan = Plan {
            epoch: frame.number("epoch", self.epoch),
            number: frame.number("plan", 0),
            closed: frame.get("closed").is_some(),
            contend: frame.get("contend").is_some(),
            members: set(&self.members, place),
        };
        let mut states = [0; report::STATES_MAX];
        let list = list_of(frame.get("states").unwrap_or_default());
        let list = list.map(|state| match state {
            "-" => State::Satisfied,
            rank => State::Rank(number(rank, place)),
        });
        let used = report::write(list, &mut states);
        let repr = HeadRepr {
            source: 0,
            object: object_id(about, self.len),
            plan: &plan,
            complete: &set(frame.get("complete").unwrap_or_default(), place),
            done: None,
            gone: None,
            urge: frame.number("urge", 0),
            slot: None,
            times: None,
            nodes: frame.number("sets", about.nodes),
            base: frame.number("base", 0),
            states: &states[..used],
        };
        match frame.kind {
            "report" => repr.emit_report(sdu).unwrap(),
            "data" => {
                let batch = frame.number("batch", 0);
                let unit = about.unit(batch, &frame);
                let payload = about.config.common().payload;
                let open = repr.emit_data(batch, payload, sdu).unwrap();
                let packets = open.vector.len();
                open.vector.fill(0);
                open.vector[unit % packets] = 1;
                let octets = about.combination(self.len, batch, open.vector);
                open.payload.copy_from_slice(&octets);
                repr.data_len(batch, payload)
            }
            _ => panic!("{place}: a frame is data or report"),
        }
    }

    fn compare(&mut self, about: &Object, frame: Said<'_>, sdu: &[u8]) {
        let place = frame.place;
        let Frame { head, data } = header::parse(sdu).unwrap();
        let is_data = data.is_some();
        assert_eq!(frame.kind == "data", is_data, "{place}: it sent {head:?}");
        for (&name, &said) in &frame.fields {
            let states = head.report.states().map(|state| match state {
                State::Satisfied => "-".to_owned(),
                State::Rank(rank) => rank.to_string(),
            });
            let yes = |is| if is { "yes" } else { "no" }.to_owned();
            let found = match name {
                "batch" => data.map_or(0, |data| data.batch).to_string(),
                "plain" => {
                    let ones = data.map(|data| {
                        data.vector
                            .expand(&mut [0; K_MAX])
                            .iter()
                            .filter(|&&c| c != 0)
                            .count()
                    });
                    yes(ones == Some(1))
                }
                "base" => head.report.base().to_string(),
                "states" => states.collect::<Vec<_>>().join(","),
                "urge" => head.urge.to_string(),
                "members" => list(&head.plan.members),
                "complete" => list(&head.complete),
                "closed" => yes(head.plan.closed),
                "told" => yes(head.told),
                _ => panic!("{place}: no such field"),
            };
            assert_eq!(found, said, "{place}: {name}");
        }
        if let Some(data) = data {
            let len = self.len.max(about.len);
            let payload = about.combination(len, data.batch, data.vector.expand(&mut [0; K_MAX]));
            let found = data.payload;
            assert_eq!(found, payload, "{place}: payload and vector disagree");
        }
    }
}

/// The object of `len` octets that frames name.
fn object_id(about: &Object, len: usize) -> ObjectId {
    let k = about.config.common().k;
    let packets = len.div_ceil(about.config.common().payload);
    let batches = packets.div_ceil(k);
    ObjectId {
        tag: tag(about, len),
        batches: batches as u32,
        k: k as u8,
        last: (packets - (batches - 1) * k) as u8,
        outer: false,
    }
}

/// What a source of the same object would call it: asked of one.
fn tag(about: &Object, len: usize) -> u32 {
    let links = Arc::new(Links::measured(2, |_, _| 1.0).unwrap());
    let random = Seed(1).stream(Purpose::Node(0));
    let mut source = Node::new(about.config.clone(), 0, links, random).unwrap();
    source.offer(about.octets[..len].into(), &[1]).unwrap();
    let mut sdu = [0; 512];
    let send = source.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
    let frame = header::parse(&sdu[..send.unwrap().len]).unwrap();
    frame.head.object.tag
}

fn list(set: &NodeSet) -> String {
    let nodes: Vec<String> = set.iter().map(|node| node.to_string()).collect();
    nodes.join(",")
}

fn set(text: &str, place: &str) -> NodeSet {
    list_of(text)
        .map(|node| number::<u16>(node, place))
        .collect()
}
