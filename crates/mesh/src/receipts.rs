//! Receipts: ends of a path between which packets do not go both ways tell each other each second how many have arrived. An end of whose packets too few arrive
//! takes another way.
//!
//! A relay that acknowledges packets and passes none on looks perfect to its neighbours, whatever is signed: that its route is as short
//! as it says does not make it forward. Only the ends know. A receipt is tagged with a key that both ends share and no relay knows, so
//! a relay can hold it back and not forge it.
//!
//! ```text
//!  0      1        9         17      25           41
//!  +------+--------+---------+-------+------------+
//!  | zero | number | arrived | heard | tag        |
//!  +------+--------+---------+-------+------------+
//! ```
//!
//! It is a packet of the mesh that is not IP. `number` grows with each receipt to an end, and over restarts. `arrived` counts the
//! packets since its sender started, and `heard` is the newest receipt of its receiver that its sender has. So who gets receipts learns
//! which of its packets and receipts are lost. Who gets none cannot tell which way is broken, and leaves the other end time to find out.

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Duration, Instant};
use chappe_live::{Membership, PairKey};

/// Octets of a receipt.
pub const RECEIPT: usize = BODY + PairKey::TAG;
const BODY: usize = 25;
/// The first octet of a receipt.
const KIND: u8 = 0;
/// The BLAKE3 context of the keys.
const CONTEXT: &str = "chappe mesh 2026-11 receipt";
/// Time between two receipts to an end, and between two looks at it.
const EVERY: Duration = Duration::from_secs(1);
/// What left in all but the last of so many of these times should have arrived. On a loaded line of three hops 95 % of the pings return
/// within a tenth of one (docs/mesh.md).
const LOOKS: usize = 3;
/// A receipt is news for so long.
const NEWS: Duration = Duration::from_secs(2);
/// Without a receipt for so long both ends take another way. One that gets receipts acts two seconds sooner.
const SILENCE: Duration = Duration::from_secs(6);
/// Fewer packets than these are not judged: with half of all packets lost honestly, fewer than a quarter of eight arrive once in 28 times.
const LEAST: u64 = 8;
/// Packets that arrive less often than once of so many sent are not on a path that is only bad.
const FEW: u64 = 4;
/// Ends with which nothing was exchanged for this long are forgotten.
const FORGET: Duration = Duration::from_secs(10);
/// Most ends that a node keeps counts of.
const MOST: usize = 1024;

/// What a node knows of the packets that it sent and received.
#[derive(Debug)]
pub struct Receipts {
    me: u16,
    /// The newest number of a receipt. Those of this life begin with its time, and no end that was forgotten gets one twice.
    written: u64,
    membership: Option<Membership>,
    keys: BTreeMap<u16, PairKey>,
    ends: BTreeMap<u16, End>,
    look_at: Instant,
}

/// A node at the other end of a path.
#[derive(Debug)]
struct End {
    /// Packets to it, and from it, since this node started.
    sent: u64,
    arrived: u64,
    /// The newest receipt that was written, and whether one is due.
    written: u64,
    due: bool,
    /// What its newest receipt said.
    told: Said,
    /// When that came, and when anything did.
    heard: Instant,
    silent_since: Instant,
    /// Packets sent and arrived at the last look.
    before: (u64, u64),
    /// The state at the last looks, the oldest first.
    looks: VecDeque<Look>,
    /// When a packet was last sent or arrived.
    used: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    sent: u64,
    arrived: u64,
    written: u64,
    /// The next hop in use.
    hop: Option<u16>,
}

/// What a receipt says.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    number: u64,
    arrived: u64,
    heard: u64,
}

impl Receipts {
    /// Of node `me`, which started at this time of day in seconds. Without members there are no receipts.
    pub fn new(me: u16, seconds: u32) -> Receipts {
        Receipts {
            me,
            written: u64::from(seconds) << 32,
            membership: None,
            keys: BTreeMap::new(),
            ends: BTreeMap::new(),
            look_at: Instant::ZERO,
        }
    }

    /// The members that may be ends.
    pub fn join(&mut self, membership: Membership) {
        self.membership = Some(membership);
        self.keys.clear();
    }

    /// Whether a node may be a member: without a list every one may.
    pub fn is_member(&self, node: u16) -> bool {
        let list = self.membership.as_ref();
        list.is_none_or(|list| list.members.contains_key(&node))
    }

    /// A packet for a destination was accepted by the router.
    pub fn sent(&mut self, now: Instant, to: u16) {
        if let Some(end) = self.end(now, to) {
            end.sent += 1;
        }
    }

    /// A packet of a source arrived here.
    pub fn arrived(&mut self, now: Instant, from: u16) {
        if let Some(end) = self.end(now, from) {
            end.arrived += 1;
        }
    }

    fn end(&mut self, now: Instant, node: u16) -> Option<&mut End> {
        self.membership.as_ref()?;
        if self.ends.is_empty() {
            self.look_at = now + EVERY;
        }
        if !self.ends.contains_key(&node) && self.ends.len() >= MOST {
            return None;
        }
        let written = self.written;
        let end = self.ends.entry(node).or_insert_with(|| End {
            sent: 0,
            arrived: 0,
            written,
            due: false,
            told: Said::default(),
            heard: now,
            silent_since: now,
            before: (0, 0),
            looks: VecDeque::new(),
            used: now,
        });
        end.used = now;
        Some(end)
    }

    /// Whether a packet that arrived is a receipt, and no host's.
    pub fn is_receipt(packet: &[u8]) -> bool {
        packet.first() == Some(&KIND)
    }

    /// A receipt arrived. False if it is forged or repeated, or nothing was exchanged with its sender lately.
    pub fn on_receipt(&mut self, now: Instant, from: u16, receipt: &[u8]) -> bool {
        let Some((body, tag)) = receipt.split_first_chunk::<BODY>() else {
            return false;
        };
        if !self.ends.contains_key(&from) || !self.has_tagged(from, body, tag) {
            return false;
        }
        let said = Said::read(body);
        let Some(end) = self.ends.get_mut(&from) else {
            return false;
        };
        if said.number <= end.told.number {
            return false;
        }
        if said.number >> 32 != end.told.number >> 32 || said.arrived < end.told.arrived {
            // The other end counts anew: it has started, or forgot this one. What arrived before is not known.
            end.looks.clear();
        }
        (end.told, end.heard, end.silent_since) = (said, now, now);
        true
    }

    /// Looks at all ends; `None` if it is not time. Returns those of the packets to which too few arrive, with the next hop that they
    /// all took; `hop` says which is in use. To be followed by [`write`](Self::write).
    pub fn look(
        &mut self,
        now: Instant,
        hop: impl Fn(u16) -> Option<u16>,
    ) -> Option<Vec<(u16, u16)>> {
        if self.ends.is_empty() || now < self.look_at {
            return None;
        }
        self.look_at = now + EVERY;
        self.ends
            .retain(|_, end| now.saturating_since(end.used) <= FORGET);
        let broken = self.ends.iter_mut().filter_map(|(&node, end)| {
            let hop = hop(node);
            let broken = end.look(now, hop);
            hop.filter(|_| broken).map(|hop| (node, hop))
        });
        Some(broken.collect())
    }

    /// Writes the next receipt that is due; the end that it is for.
    pub fn write(&mut self, receipt: &mut [u8; RECEIPT]) -> Option<u16> {
        let (&to, _) = self.ends.iter().find(|(_, end)| end.due)?;
        let number = self.number();
        let end = self.ends.get_mut(&to)?;
        (end.due, end.written) = (false, number);
        receipt[0] = KIND;
        let words = [end.written, end.arrived, end.told.number];
        for (place, word) in receipt[1..BODY]
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(words)
        {
            *place = word.to_be_bytes();
        }
        let tag = self.tag(to, &receipt[..BODY])?;
        receipt[BODY..].copy_from_slice(&tag);
        Some(to)
    }

    /// The next number of what this node writes to other ends.
    pub(crate) fn number(&mut self) -> u64 {
        self.written += 1;
        self.written
    }

    /// The tag of a body for another member, whose first octet says what it is.
    pub(crate) fn tag(&mut self, to: u16, body: &[u8]) -> Option<[u8; PairKey::TAG]> {
        let key = self.key(to)?;
        Some(key.tag(&tagged(self.me, to, body)))
    }

    /// Whether another member tagged this body for this node.
    pub(crate) fn has_tagged(&mut self, from: u16, body: &[u8], tag: &[u8]) -> bool {
        let tagged = tagged(from, self.me, body);
        let (tag, key) = (tag.try_into().ok(), self.key(from));
        tag.zip(key)
            .is_some_and(|(tag, key)| key.has_tagged(&tagged, tag))
    }

    /// When the next look is due, if there is anything to look at.
    pub fn deadline(&self) -> Option<Instant> {
        (!self.ends.is_empty()).then_some(self.look_at)
    }

    fn key(&mut self, other: u16) -> Option<PairKey> {
        if let Some(key) = self.keys.get(&other) {
            return Some(key.clone());
        }
        let key = self.membership.as_ref()?.pair_key(other, CONTEXT)?;
        if self.keys.len() < MOST {
            self.keys.insert(other, key.clone());
        }
        Some(key)
    }
}

impl End {
    /// Whether the way to this end must be left. Another way is then judged by what goes that way.
    fn look(&mut self, now: Instant, hop: Option<u16>) -> bool {
        let (sent, arrived) = (self.sent - self.before.0, self.arrived - self.before.1);
        self.before = (self.sent, self.arrived);
        // Packets both ways say enough, as those of TCP do. Who has neither packets nor receipts of the other has nothing to say.
        let known = self.arrived > 0 || self.told.number > 0;
        self.due = known && (sent == 0 || arrived == 0);
        if sent > 0 && arrived > 0 && now.saturating_since(self.heard) > NEWS {
            self.silent_since = now;
            self.looks.clear();
            return false;
        }
        self.looks.push_back(Look {
            at: now,
            sent: self.sent,
            arrived: self.told.arrived,
            written: self.written,
            hop,
        });
        if self.looks.len() <= LOOKS {
            return false;
        }
        let Some(first) = self.looks.pop_front() else {
            return false;
        };
        if hop != first.hop || self.looks.iter().any(|look| look.hop != hop) {
            // Which of them lost the packets is not known.
            return false;
        }
        // What left in the last of these times may be on its way still.
        let judged = self.looks.iter().take(LOOKS - 1);
        let sent_until = |until: Instant| {
            let mut counted = judged.clone().filter(|look| look.at <= until);
            counted.next_back().map_or(0, |look| look.sent - first.sent)
        };
        let silence = now.saturating_since(self.heard);
        let broken = match silence <= NEWS {
            true => {
                // The newest receipt does not count what left after it: when packets go both ways, no more receipts come.
                let sent = sent_until(self.heard);
                let arrived = self.told.arrived.saturating_sub(first.arrived);
                // `first` saw this receipt written, which has had the same time as the packets.
                sent >= LEAST && arrived * FEW < sent || self.told.heard < first.written
            }
            false => sent_until(now) >= LEAST && now.saturating_since(self.silent_since) >= SILENCE,
        };
        if broken {
            self.looks.clear();
            (self.heard, self.silent_since) = (now, now);
        }
        broken
    }
}

impl Said {
    fn read(body: &[u8; BODY]) -> Said {
        let [number, arrived, heard] = [1, 9, 17].map(|at: usize| {
            let octets = body[at..].first_chunk::<8>();
            octets.map_or(0, |octets| u64::from_be_bytes(*octets))
        });
        Said {
            number,
            arrived,
            heard,
        }
    }
}

/// What is tagged: both ends, and the body.
fn tagged(from: u16, to: u16, body: &[u8]) -> Vec<u8> {
    [&from.to_be_bytes(), &to.to_be_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn receipts(me: u16) -> Receipts {
        let mut receipts = Receipts::new(me, 1000);
        receipts.join(Membership::example(me, 5, 3));
        receipts
    }

    /// Ten packets a second from 1 to 2. At which seconds each end leaves its way, if the way there and the way back lose everything in
    /// these seconds.
    fn left(there: impl Fn(u64) -> bool, back: impl Fn(u64) -> bool) -> [Vec<u64>; 2] {
        let mut ends = [receipts(1), receipts(2)];
        let mut left = [Vec::new(), Vec::new()];
        for ms in (0..30_000).step_by(100) {
            let lost = [there(ms / 1000), back(ms / 1000)];
            ends[0].sent(at(ms), 2);
            if !lost[0] {
                ends[1].arrived(at(ms), 1);
            }
            for (from, to) in [(0, 1), (1, 0)] {
                let Some(broken) = ends[from].look(at(ms), |_| Some(9)) else {
                    continue;
                };
                if !broken.is_empty() {
                    left[from].push(ms / 1000);
                }
                let mut receipt = [0; RECEIPT];
                while ends[from].write(&mut receipt).is_some() {
                    let node = from as u16 + 1;
                    let taken = !lost[from] && ends[to].on_receipt(at(ms), node, &receipt);
                    assert!(lost[from] || taken || ms < 1500, "{ms}");
                    assert!(
                        lost[from] || !ends[to].on_receipt(at(ms), node, &receipt),
                        "repeated"
                    );
                }
            }
        }
        left
    }

    /// Goal: an end leaves a way that carries nothing within four seconds, and within seven if nothing comes back either. No end leaves a way
    /// that works, or loses every second packet.
    #[test]
    fn a_way_that_carries_nothing_is_left() {
        let (never, from_ten) = (|_| false, |second| second >= 10);
        assert_eq!(left(never, never), [vec![], vec![]]);
        let [there, back] = left(from_ten, never);
        assert!(
            (12..=14).contains(&there[0]) && back.is_empty(),
            "{there:?} {back:?}"
        );
        assert!(
            there.windows(2).all(|two| two[1] - two[0] >= 3),
            "judged anew: {there:?}"
        );
        let [there, back] = left(never, from_ten);
        assert!(
            (12..=14).contains(&back[0]) && there.iter().all(|&at| at > 14),
            "{there:?} {back:?}"
        );
        let [there, _] = left(from_ten, from_ten);
        assert!((15..=16).contains(&there[0]), "{there:?}");
        let [there, _] = left(|_| true, |_| true);
        assert!((6..=7).contains(&there[0]), "{there:?}");
    }

    /// Goal: packets that begin to go both ways while receipts still come are not judged by those, which do not count them. Method: both ends
    /// send to each other for a second, are silent, and go on ten times as often at any part of a second.
    #[test]
    fn old_receipts_judge_no_new_packets() {
        for begin in (4_000..6_000).step_by(70) {
            let mut ends = [receipts(1), receipts(2)];
            for ms in (0..12_000).step_by(10) {
                let talks = (1_000..2_000).contains(&ms) && ms % 100 == 0 || ms >= begin;
                for (from, to) in [(0, 1), (1, 0)] {
                    let numbers = [1, 2];
                    if talks {
                        ends[from].sent(at(ms), numbers[to]);
                        ends[to].arrived(at(ms), numbers[from]);
                    }
                    let left = ends[from].look(at(ms), |_| Some(9)).unwrap_or_default();
                    assert!(left.is_empty(), "begins at {begin}: left at {ms}");
                    let mut receipt = [0; RECEIPT];
                    while ends[from].write(&mut receipt).is_some() {
                        assert!(ends[to].on_receipt(at(ms), numbers[from], &receipt));
                    }
                }
            }
        }
    }

    /// A relay that is a member, too, cannot make a receipt, nor use one for other ends.
    #[test]
    fn forged_receipts_are_refused() {
        let (mut source, mut sink, mut relay) = (receipts(1), receipts(2), receipts(3));
        source.sent(at(0), 2);
        source.sent(at(0), 4);
        sink.arrived(at(0), 1);
        relay.arrived(at(0), 1);
        let written = |end: &mut Receipts| {
            let mut receipt = [0; RECEIPT];
            assert_eq!(end.look(at(1000), |_| Some(9)), Some(vec![]));
            assert_eq!(
                (end.write(&mut receipt), end.write(&mut [0; RECEIPT])),
                (Some(1), None)
            );
            receipt
        };
        let (honest, forged) = (written(&mut sink), written(&mut relay));
        let now = at(1000);
        assert!(!source.on_receipt(now, 2, &forged) && !source.on_receipt(now, 4, &honest));
        for place in 0..RECEIPT {
            let mut broken = honest;
            broken[place] ^= 1;
            assert!(!source.on_receipt(now, 2, &broken), "octet {place}");
        }
        for len in 0..RECEIPT {
            assert!(!source.on_receipt(now, 2, &honest[..len]));
        }
        assert!(source.on_receipt(now, 2, &honest) && !source.on_receipt(now, 2, &honest));
        // Nothing was exchanged with this one.
        assert!(!source.on_receipt(now, 3, &forged));
    }

    #[test]
    fn ends_are_forgotten_and_bounded() {
        let mut all = receipts(1);
        for node in 0..60_000 {
            all.sent(at(0), node);
        }
        assert_eq!(all.ends.len(), MOST);
        all.look(at(11_000), |_| None);
        assert_eq!(all.deadline(), None);
    }
}
