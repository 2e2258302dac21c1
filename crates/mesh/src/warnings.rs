//! Warnings: an end that leaves a next hop tells the nodes that might send to it, too.
//!
//! A relay that passes nothing on is found by the ends of a path only ([`crate::receipts`]). When the source leaves it, the relay taken instead may
//! hold it for the best way. Then nothing arrives by either, and the source leaves the honest one. And while the other end sends its
//! receipts by it, the source cannot know that its packets arrive.
//!
//! ```text
//!  0      1        9             11    13           29
//!  +------+--------+-------------+-----+------------+
//!  | one  | number | destination | hop | tag        |
//!  +------+--------+-------------+-----+------------+
//! ```
//!
//! It is a packet of the mesh that is not IP, tagged as receipts are, and `number` grows as theirs does. Who warns may lie. So a node follows
//! warnings of ways to their sender, and warnings of neighbours, and of each sender a few a minute. A liar makes its neighbours take other ways to a few
//! destinations, if there are any.

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Duration, Instant};
use chappe_live::PairKey;

use crate::receipts::Receipts;

/// Octets of a warning.
pub const WARNING: usize = BODY + PairKey::TAG;
const BODY: usize = 13;
/// The first octet of a warning. Receipts have zero, and the packets of hosts 0x45 and more.
const KIND: u8 = 1;
/// A node follows so many warnings of a sender in [`WITHIN`].
const FOLLOWED: usize = 4;
/// About as long as a next hop is shunned the first time. For so long nodes that come to be next hops are warned.
const WITHIN: Duration = Duration::from_secs(60);
/// Most nodes whose warnings are remembered.
const HEARD_MOST: usize = 1024;
/// Most next hops of which others are warned; the oldest makes room.
const LEFT_MOST: usize = 64;

/// The warnings that a node got, and those that it gives.
#[derive(Debug, Default)]
pub struct Warnings {
    heard: BTreeMap<u16, Heard>,
    left: VecDeque<Left>,
}

/// A next hop that was left.
#[derive(Debug)]
struct Left {
    warning: Warning,
    at: Instant,
    /// Whether the other end is warned, too.
    to_end: bool,
    /// The next hops that were warned.
    told: Vec<u16>,
}

/// What a node warned of.
#[derive(Debug)]
struct Heard {
    /// The number of its newest warning.
    number: u64,
    /// When its last warnings were followed, the oldest first.
    followed: [Option<Instant>; FOLLOWED],
}

/// What a warning says: packets to `destination` that go by `hop` do not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The node to which packets do not arrive.
    pub destination: u16,
    /// The next hop that its sender has left.
    pub hop: u16,
}

impl Warning {
    /// The packet for a node; `None` if that is no member.
    pub fn write(self, receipts: &mut Receipts, to: u16) -> Option<[u8; WARNING]> {
        let mut warning = [0; WARNING];
        warning[0] = KIND;
        warning[1..9].copy_from_slice(&receipts.number().to_be_bytes());
        warning[9..11].copy_from_slice(&self.destination.to_be_bytes());
        warning[11..BODY].copy_from_slice(&self.hop.to_be_bytes());
        let tag = receipts.tag(to, &warning[..BODY])?;
        warning[BODY..].copy_from_slice(&tag);
        Some(warning)
    }
}

impl Warnings {
    /// Whether a packet that arrived is a warning, and no host's.
    pub fn is_warning(packet: &[u8]) -> bool {
        packet.first() == Some(&KIND)
    }

    /// This node has left a next hop. The other end is warned if it does not know.
    pub fn leave(&mut self, now: Instant, warning: Warning, to_end: bool) {
        self.left.retain(|left| left.warning != warning);
        if self.left.len() >= LEFT_MOST {
            self.left.pop_front();
        }
        self.left.push_back(Left {
            warning,
            at: now,
            to_end,
            told: Vec::new(),
        });
    }

    /// Whom node `me` is to warn of what now, if `hops` are the next hops to a destination. Each next hop is warned once, and the other end whenever the way to
    /// it is new.
    pub fn due(
        &mut self,
        now: Instant,
        me: u16,
        hops: impl Fn(u16) -> Vec<u16>,
    ) -> Vec<(u16, Warning)> {
        self.left
            .retain(|left| now.saturating_since(left.at) < WITHIN);
        let mut due = Vec::new();
        for left in &mut self.left {
            let Warning { destination, hop } = left.warning;
            let hops = hops(destination).into_iter();
            let new = hops.filter(|next| *next != hop && !left.told.contains(next));
            let new: Vec<u16> = new.collect();
            let relays = new.iter().filter(|&&next| next != destination);
            due.extend(relays.map(|&next| (next, left.warning)));
            if left.to_end && !new.is_empty() {
                let warning = Warning {
                    destination: me,
                    hop,
                };
                due.push((destination, warning));
            }
            left.told.extend(new);
        }
        due
    }

    /// A warning arrived. `None` if it is forged or repeated, or its sender has warned too often.
    pub fn on_warning(
        &mut self,
        now: Instant,
        receipts: &mut Receipts,
        from: u16,
        packet: &[u8],
    ) -> Option<Warning> {
        let (body, tag) = packet.split_first_chunk::<BODY>()?;
        let number = u64::from_be_bytes(*body[1..].first_chunk()?);
        if !receipts.has_tagged(from, body, tag) {
            return None;
        }
        if !self.heard.contains_key(&from) && self.heard.len() >= HEARD_MOST {
            return None;
        }
        let heard = self.heard.entry(from).or_insert(Heard {
            number: 0,
            followed: [None; FOLLOWED],
        });
        let [oldest, ..] = heard.followed;
        let often = oldest.is_some_and(|at| now.saturating_since(at) < WITHIN);
        if number <= heard.number || often {
            return None;
        }
        heard.number = number;
        heard.followed.rotate_left(1);
        heard.followed[FOLLOWED - 1] = Some(now);
        let word = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
        Some(Warning {
            destination: word(9),
            hop: word(11),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_live::Membership;

    fn receipts(me: u16) -> Receipts {
        let mut receipts = Receipts::new(me, 1000);
        receipts.join(Membership::example(me, 5, 3));
        receipts
    }

    const WARNED: Warning = Warning {
        destination: 4,
        hop: 2,
    };

    /// Goal: a warning is followed once, and by whom it is for. Method: it comes again, to another node, from another node, cut short, and with each
    /// octet changed.
    #[test]
    fn forged_and_repeated_warnings_are_refused() {
        let (mut sender, mut relay) = (receipts(1), receipts(3));
        let warning = WARNED.write(&mut sender, 3).unwrap();
        assert!(Warnings::is_warning(&warning) && !Receipts::is_receipt(&warning));
        let mut warnings = Warnings::default();
        for at in 0..WARNING {
            let mut forged = warning;
            forged[at] ^= 1;
            assert_eq!(
                warnings.on_warning(Instant::ZERO, &mut relay, 1, &forged),
                None
            );
            assert_eq!(
                warnings.on_warning(Instant::ZERO, &mut relay, 1, &warning[..at]),
                None
            );
        }
        assert_eq!(
            warnings.on_warning(Instant::ZERO, &mut relay, 2, &warning),
            None
        );
        let mut other = receipts(4);
        assert_eq!(
            Warnings::default().on_warning(Instant::ZERO, &mut other, 1, &warning),
            None
        );
        let mut take = || warnings.on_warning(Instant::ZERO, &mut relay, 1, &warning);
        assert_eq!(take(), Some(WARNED));
        assert_eq!(take(), None);
    }

    /// Goal: a node that warns all the time is believed four times a minute.
    #[test]
    fn a_node_is_believed_a_few_times_a_minute() {
        let (mut sender, mut relay) = (receipts(1), receipts(3));
        let mut warnings = Warnings::default();
        let taken = (0..180).filter(|&second| {
            let warning = WARNED.write(&mut sender, 3).unwrap();
            let now = Instant::from_millis(1000 * second);
            warnings.on_warning(now, &mut relay, 1, &warning).is_some()
        });
        let taken: Vec<u64> = taken.collect();
        assert_eq!(taken, [0, 1, 2, 3, 60, 61, 62, 63, 120, 121, 122, 123]);
    }

    /// Goal: who comes to be a next hop within a minute is warned once, and the other end once for each new way. Method: the ways change by hand.
    #[test]
    fn new_next_hops_are_warned() {
        let mut warnings = Warnings::default();
        warnings.leave(Instant::ZERO, WARNED, true);
        let back = Warning {
            destination: 1,
            hop: 2,
        };
        type Step<'a> = (u64, &'a [u16], &'a [(u16, Warning)]);
        let steps: [Step<'_>; 6] = [
            (0, &[], &[]),
            (1, &[2], &[]),
            (2, &[3], &[(3, WARNED), (4, back)]),
            (3, &[3], &[]),
            (4, &[3, 4], &[(4, back)]),
            (60, &[0], &[]),
        ];
        for (second, hops, due) in steps {
            let now = Instant::from_millis(1000 * second);
            assert_eq!(warnings.due(now, 1, |_| hops.to_vec()), due, "{second}");
        }
        warnings.leave(Instant::ZERO, WARNED, false);
        assert_eq!(
            warnings.due(Instant::ZERO, 1, |_| vec![3, 4]),
            [(3, WARNED)]
        );
        for destination in 0..1000 {
            let warning = Warning {
                destination,
                hop: 2,
            };
            warnings.leave(Instant::ZERO, warning, true);
        }
        assert_eq!(warnings.left.len(), LEFT_MOST);
    }

    #[test]
    fn strangers_are_neither_warned_nor_believed() {
        let mut alone = Receipts::new(1, 1000);
        assert!(WARNED.write(&mut alone, 3).is_none());
        assert!(WARNED.write(&mut receipts(1), 77).is_none());
    }
}
