//! Packets that arrive in parts, at the receiver.
//!
//! A sender cuts a packet where a body is full or a slot ends, and puts its rest at the front of the flow's next body. A flow has at
//! most one packet that is not complete, so the memory is at most a packet for each flow, taken when the flow's first part comes.
//! Parts that do not follow one another, since a body was given up or an end has started over, are dropped and counted.

use alloc::vec::Vec;

use crate::body::Part;

/// The packets that lack their rest.
#[derive(Clone, Debug)]
pub(crate) struct Fragments {
    /// One for each flow that has ever had a part, at most [`FLOWS`](crate::FLOWS).
    open: Vec<Open>,
    packet_max: usize,
    /// Packets of which a part came and another one did not.
    pub torn: u64,
}

#[derive(Clone, Debug)]
struct Open {
    flow: usize,
    /// The number in the flow of the body with the latest part; `None` if no packet is open.
    last: Option<u16>,
    octets: Vec<u8>,
}

impl Fragments {
    pub fn new(packet_max: usize) -> Fragments {
        Fragments {
            open: Vec::new(),
            packet_max,
            torn: 0,
        }
    }

    /// Nothing of what is open is completed any more.
    pub fn clear(&mut self) {
        for open in &mut self.open {
            self.torn += u64::from(open.last.take().is_some());
        }
    }

    /// Takes the next part of a flow, from its body with this number: the packet that it completes, if any.
    pub fn join<'a>(&'a mut self, flow: usize, number: u16, part: Part<'a>) -> Option<&'a [u8]> {
        let place = self.open.iter().position(|open| open.flow == flow);
        let before = place.and_then(|place| self.open.get(place)?.last);
        if part.is_whole() {
            if let Some(open) = place.and_then(|place| self.open.get_mut(place)) {
                self.torn += u64::from(open.last.take().is_some());
            }
            return Some(part.octets);
        }
        let place = place.unwrap_or_else(|| {
            self.open.push(Open {
                flow,
                last: None,
                octets: Vec::new(),
            });
            self.open.len() - 1
        });
        let open = self.open.get_mut(place)?;
        let follows = before == Some(number.wrapping_sub(1));
        if part.is_rest != follows {
            // A rest without its front, or a front in place of the rest that should come.
            self.torn += u64::from(before.is_some() || part.is_rest);
            open.last = None;
        }
        if part.is_rest && !follows {
            return None;
        }
        if !part.is_rest {
            open.octets.clear();
        }
        if open.octets.len() + part.octets.len() > self.packet_max {
            // Longer than any packet of ours: the peer has other settings.
            self.torn += 1;
            open.last = None;
            return None;
        }
        open.octets.extend_from_slice(part.octets);
        open.last = part.goes_on.then_some(number);
        match part.goes_on {
            true => None,
            false => Some(&open.octets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FLOWS;
    use alloc::string::String;
    use chappe_core::{Purpose, Seed};

    /// A part as a script writes it: `|` at the front for a rest, at the end if its rest follows.
    fn part(script: &str) -> Part<'_> {
        Part {
            octets: script.trim_matches('|').as_bytes(),
            is_rest: script.starts_with('|'),
            goes_on: script.ends_with('|'),
        }
    }

    /// What comes of parts with their flow and body number, and how many packets were torn.
    fn check(script: &[(usize, u16, &str)], packets: &[&str], torn: u64) {
        let mut fragments = Fragments::new(8);
        let mut came = Vec::new();
        for &(flow, number, text) in script {
            let packet = fragments.join(flow, number, part(text));
            came.extend(packet.map(|octets| String::from_utf8(octets.to_vec()).unwrap()));
        }
        fragments.clear();
        assert_eq!(
            (came, fragments.torn),
            (packets.iter().map(|&packet| packet.into()).collect(), torn),
            "{script:?}"
        );
    }

    /// Parts are joined exactly if they follow one another, whatever is missing, repeated or out of order.
    #[test]
    fn only_parts_that_follow_one_another_are_joined() {
        check(
            &[(0, 1, "ab"), (0, 1, "cd|"), (0, 2, "|ef"), (0, 2, "gh")],
            &["ab", "cdef", "gh"],
            0,
        );
        // Over three bodies, and over the end of the numbers.
        check(
            &[(0, 65535, "a|"), (0, 0, "|b|"), (0, 1, "|c")],
            &["abc"],
            0,
        );
        // Flows do not meet.
        check(
            &[
                (0, 1, "a|"),
                (5, 2, "|x"),
                (5, 3, "y|"),
                (0, 2, "|b"),
                (5, 4, "|z"),
            ],
            &["ab", "yz"],
            1,
        );
        // The middle, the front, or the rest is missing.
        check(&[(0, 1, "a|"), (0, 3, "|c"), (0, 3, "d")], &["d"], 1);
        check(&[(0, 2, "|b"), (0, 2, "c")], &["c"], 1);
        check(&[(0, 1, "a|"), (0, 2, "b"), (0, 3, "|c")], &["b"], 2);
        check(&[(0, 1, "a|"), (0, 2, "b|"), (0, 3, "|c")], &["bc"], 1);
        // A rest that comes twice, and one from the body of its front.
        check(&[(0, 1, "a|"), (0, 2, "|b"), (0, 2, "|b")], &["ab"], 1);
        check(&[(0, 1, "a|"), (0, 1, "|b")], &[], 1);
        // Longer than a packet may be, and one that never ends.
        check(&[(0, 1, "abcde|"), (0, 2, "|fghi"), (0, 3, "x")], &["x"], 1);
        check(&[(0, 1, "a|")], &[], 1);
    }

    /// Whatever a peer sends, no packet is longer than allowed and the memory is a packet for each flow.
    #[test]
    fn garbage_takes_a_packet_of_memory_for_each_flow() {
        let mut random = Seed(7).stream(Purpose::Trial(0));
        let mut fragments = Fragments::new(100);
        for _ in 0..100_000 {
            let octets = &[0; 120][..random.below(121) as usize];
            let part = Part {
                octets,
                is_rest: random.chance(0.5),
                goes_on: random.chance(0.8),
            };
            let (flow, number) = (random.below(FLOWS as u64) as usize, random.below(3) as u16);
            let whole = part.is_whole();
            let packet = fragments.join(flow, number, part);
            assert!(packet.is_none_or(|packet| whole || packet.len() <= 100));
        }
        assert!(fragments.open.len() <= FLOWS && fragments.torn > 0);
        let octets: usize = fragments.open.iter().map(|open| open.octets.len()).sum();
        assert!(octets <= 100 * FLOWS);
    }
}
