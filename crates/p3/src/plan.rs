//! The plan of a transfer: who takes part, in which stage and group, and on which channels.
//!
//! One frame holds it, 13 octets and 3 per relay, so at most [`RELAYS_MAX`] relays:
//!
//! | octets | field |
//! |---|---|
//! | 1 | transfer (in the frame's header) |
//! | 3 | first packet wanted; not 0 where a transfer is resumed |
//! | 1 | payload of a DATA frame in octets |
//! | 2 | cycle in microseconds |
//! | 1 | hops |
//! | 2, 2 | source, destination |
//! | 1 | order of the channels (0..24), bit 5: improved, bit 6: resumed, bit 7: one group |
//! | 1, 1, 4 | improved variant only: groups, combinations after a segment, session |
//! | 3 each | relay: number (2), stage (4 bits), group (bits 4 and 6), may send in the last stage (bit 5) |
//!
//! The improved variant has [`IMPROVED_RELAYS_MAX`] relays at most, since its frame also ends in a tag.
//!
//! The number of packets is not in the plan: the gateway need not know how large the object is, and the source says
//! it in its CTRL. Stage h listens on the h-th channel of the order, beginning anew after four; the source listens
//! on the fourth while it waits for a NACK, which stages 1 to 3 leave over.

use chappe_core::{Duration, Stream};

use crate::channels::ChannelOrder;
use crate::config::{Config, LEAN_PAYLOAD_MAX, PAYLOAD_MAX, PAYLOAD_MIN, Profile, Variant};
use crate::header::{Malformed, u16_at, u32_at};
use crate::repair::SUMS_MAX;

/// Most relays that a plan of one frame can name.
pub const RELAYS_MAX: usize = 35;
/// Most relays that a plan of the improved variant can name.
pub const IMPROVED_RELAYS_MAX: usize = 32;
/// Most groups of relays.
pub const GROUPS_MAX: u8 = 3;
/// Most hops: the stage of a relay has four bits.
pub const HOPS_MAX: u8 = 15;
/// Octets of a plan before its relays; the transfer's number, the 13th, is in the header of the frame.
const FIXED: usize = 12;
const RELAY_LEN: usize = 3;
/// Octets of what only the improved variant has.
const IMPROVED_LEN: usize = 6;
/// Bit of the octet with the order of the channels.
const IMPROVED: u8 = 0x20;
/// Packets that can be numbered from the start of an object: 24 bits.
pub const PACKETS_MAX: u32 = 1 << 24;

/// A relay and its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The relay's number.
    pub node: u16,
    /// Its stage: 1 is next to the source.
    pub stage: u8,
    /// Its group, 0 to 2.
    pub group: u8,
    /// In the last stage: whether it sends to the destination. True in other stages. In the improved variant, and in any
    /// stage: whether it is the first to repeat answers; all relays send what goes to the destination.
    pub sends: bool,
}

/// Who takes part in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    transfer: u8,
    first: u32,
    payload: u8,
    cycle_us: u16,
    hops: u8,
    source: u16,
    destination: u16,
    channels: ChannelOrder,
    groups: u8,
    resumed: bool,
    improved: Option<Improved>,
    relays: [Part; RELAYS_MAX],
    len: u8,
}

/// What a plan of the improved variant says beyond the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Improved {
    /// Combinations that the source sends after the plain packets of a segment, 0 to 8. The planner takes what it
    /// expects to be lost.
    pub repair: u8,
    /// Greater in each transfer of this destination: it keeps old frames from being used again.
    pub session: u32,
}

/// What a plan is for; the relays come from the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the transfer; another one than the last.
    pub transfer: u8,
    /// Octets per packet, [`PAYLOAD_MIN`] to [`PAYLOAD_MAX`].
    pub payload: u8,
    /// Where the object is.
    pub source: u16,
    /// Where it goes.
    pub destination: u16,
    /// The channels of the stages.
    pub channels: ChannelOrder,
}

/// Why no plan can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No path was given.
    NoPath,
    /// More relays than one frame can name.
    TooManyRelays(usize),
    /// More hops than a stage's four bits can name.
    TooManyHops(usize),
    /// The paths have different lengths, share a node, or pass the source or the destination.
    NotDistinct,
    /// The payload is out of range.
    Payload(u8),
    /// A stage has no relay in one of the groups, or a number is out of range: stages 1 to hops - 1, groups 0 to
    /// groups - 1 of at most three, at most eight combinations.
    Stages,
    /// The configuration is for the faithful variant, the plan is not.
    Variant,
    /// A node's number does not fit 16 bits.
    NodeNumber(usize),
}

impl core::fmt::Display for PlanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PlanError::NoPath => f.write_str("a plan needs at least one path"),
            PlanError::TooManyRelays(n) => write!(
                f,
                "a plan names at most {RELAYS_MAX} relays, these paths have {n}"
            ),
            PlanError::TooManyHops(n) => {
                write!(
                    f,
                    "a plan has at most {HOPS_MAX} hops, these paths have {n}"
                )
            }
            PlanError::NotDistinct => {
                f.write_str("the paths must have one length and no node in common")
            }
            PlanError::Stages => f.write_str(
                "a stage has no relay in one of the groups, or a stage, a group or the repair count is out of range",
            ),
            PlanError::Variant => f.write_str("a plan of stages is for the improved variant"),
            PlanError::Payload(n) => write!(
                f,
                "a payload of {n} octets; it must be {PAYLOAD_MIN} to {PAYLOAD_MAX}"
            ),
            PlanError::NodeNumber(n) => write!(f, "node number {n} does not fit 16 bits"),
        }
    }
}

impl core::error::Error for PlanError {}

impl Plan {
    /// A plan over node-distinct paths of one length, as the planner finds them: each from the first relay to the
    /// last. The paths are shuffled; the first half of them, rounded down, is group 0 (paper, IV-C.3). One path
    /// alone, or two ends without a relay between them, make one group.
    ///
    /// In the last stage, relays send to the destination if `last_prr` reaches `threshold`; in a group where none
    /// does, the best one sends (paper, IV-E).
    pub fn from_paths<P: AsRef<[usize]>>(
        wanted: Wanted,
        profile: &Profile,
        paths: &[P],
        random: &mut Stream,
        threshold: f64,
        last_prr: impl Fn(u16) -> f64,
    ) -> Result<Plan, PlanError> {
        let relays_on_path = paths.first().ok_or(PlanError::NoPath)?.as_ref().len();
        let hops = u8::try_from(relays_on_path + 1)
            .ok()
            .filter(|&hops| hops <= HOPS_MAX)
            .ok_or(PlanError::TooManyHops(relays_on_path + 1))?;
        let count = paths.len().saturating_mul(relays_on_path);
        if count > RELAYS_MAX {
            return Err(PlanError::TooManyRelays(count));
        }
        if !(PAYLOAD_MIN..=PAYLOAD_MAX).contains(&usize::from(wanted.payload)) {
            return Err(PlanError::Payload(wanted.payload));
        }
        let mut plan = Plan {
            transfer: wanted.transfer,
            first: 0,
            payload: wanted.payload,
            cycle_us: (profile.cycle(usize::from(wanted.payload)).nanos() / 1000) as u16,
            hops,
            source: wanted.source,
            destination: wanted.destination,
            channels: wanted.channels,
            groups: if paths.len() < 2 || hops == 1 { 1 } else { 2 },
            resumed: false,
            improved: None,
            relays: [Part::default(); RELAYS_MAX],
            len: 0,
        };
        plan.place(paths, random)?;
        plan.choose_last(threshold, last_prr);
        plan.sound().then_some(plan).ok_or(PlanError::NotDistinct)
    }

    /// A plan of the improved variant over stages of relays, as [`pipeline`](crate::planner::pipeline) chooses them.
    ///
    /// Each of `parts` is a relay; each stage needs one in each group. One group sends in every second cycle.
    pub fn from_stages(
        wanted: Wanted,
        config: &Config,
        hops: u8,
        groups: u8,
        parts: &[Part],
        improved: Improved,
    ) -> Result<Plan, PlanError> {
        if config.variant != Variant::Improved {
            return Err(PlanError::Variant);
        }
        if parts.len() > IMPROVED_RELAYS_MAX {
            return Err(PlanError::TooManyRelays(parts.len()));
        }
        let payload = usize::from(wanted.payload);
        if !(PAYLOAD_MIN..=config.payload_max()).contains(&payload) {
            return Err(PlanError::Payload(wanted.payload));
        }
        let mut plan = Plan {
            transfer: wanted.transfer,
            first: 0,
            payload: wanted.payload,
            cycle_us: (config.cycle(payload, groups).nanos() / 1000) as u16,
            hops,
            source: wanted.source,
            destination: wanted.destination,
            channels: wanted.channels,
            groups,
            resumed: false,
            improved: Some(improved),
            relays: [Part::default(); RELAYS_MAX],
            len: parts.len() as u8,
        };
        for (place, part) in plan.relays.iter_mut().zip(parts) {
            *place = *part;
        }
        plan.sound().then_some(plan).ok_or(PlanError::Stages)
    }

    //= p3 IV-C.3: the paths are split into two groups at random
    /// Puts the relays of shuffled paths into stages and groups.
    fn place<P: AsRef<[usize]>>(
        &mut self,
        paths: &[P],
        random: &mut Stream,
    ) -> Result<(), PlanError> {
        // Paths without relays (one hop) take no places, however many there are.
        let mut order = [0u8; RELAYS_MAX];
        let order = order.get_mut(..paths.len()).unwrap_or_default();
        for (at, place) in order.iter_mut().enumerate() {
            *place = at as u8;
        }
        random.shuffle(order);
        for (rank, &path) in order.iter().enumerate() {
            let group = u8::from(!self.is_single() && rank >= paths.len() / 2);
            let path = paths.get(usize::from(path)).map_or(&[][..], AsRef::as_ref);
            if path.len() + 1 != usize::from(self.hops) {
                return Err(PlanError::NotDistinct);
            }
            for (stage, &node) in (1..).zip(path) {
                let node = u16::try_from(node).map_err(|_| PlanError::NodeNumber(node))?;
                let place = self.relays.get_mut(usize::from(self.len));
                *place.ok_or(PlanError::TooManyRelays(RELAYS_MAX + 1))? = Part {
                    node,
                    stage,
                    group,
                    sends: true,
                };
                self.len += 1;
            }
        }
        Ok(())
    }

    //= p3 IV-E: in the last stage only relays with a good link to the destination send
    fn choose_last(&mut self, threshold: f64, prr: impl Fn(u16) -> f64) {
        let last = self.hops.saturating_sub(1);
        let len = usize::from(self.len);
        for group in 0..2 {
            let relays = self.relays.get_mut(..len).unwrap_or_default();
            let theirs = |part: &&mut Part| part.stage == last && part.group == group;
            let mut best: Option<(f64, u16)> = None;
            for part in relays.iter_mut().filter(theirs) {
                let reached = prr(part.node);
                part.sends = reached >= threshold;
                if best.is_none_or(|(most, _)| reached > most) {
                    best = Some((reached, part.node));
                }
            }
            let silent = !relays.iter_mut().filter(theirs).any(|part| part.sends);
            for part in relays.iter_mut().filter(theirs) {
                part.sends |= silent && best.is_some_and(|(_, node)| node == part.node);
            }
        }
    }

    /// The same plan with one relay more, beside those of the paths.
    pub fn joined(mut self, part: Part) -> Result<Plan, PlanError> {
        let len = usize::from(self.len);
        let place = self.relays.get_mut(len);
        *place.ok_or(PlanError::TooManyRelays(len + 1))? = part;
        self.len += 1;
        self.sound().then_some(self).ok_or(PlanError::NotDistinct)
    }

    /// The same plan for what is left of an object from packet `first` on, under another transfer number. The source
    /// then asks what is missing before it sends anything.
    pub fn resumed(mut self, transfer: u8, first: u32) -> Plan {
        self.transfer = transfer;
        self.first = first.min(PACKETS_MAX - 1);
        self.resumed = true;
        self
    }

    /// The number of the transfer.
    pub fn transfer(&self) -> u8 {
        self.transfer
    }

    /// The first packet that is wanted.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Octets per packet.
    pub fn payload(&self) -> usize {
        usize::from(self.payload)
    }

    /// The cycle T_c.
    pub fn cycle(&self) -> Duration {
        Duration::from_micros(u64::from(self.cycle_us))
    }

    /// Hops between source and destination.
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// The source's number.
    pub fn source(&self) -> u16 {
        self.source
    }

    /// The destination's number.
    pub fn destination(&self) -> u16 {
        self.destination
    }

    /// The order of the channels.
    pub fn channels(&self) -> ChannelOrder {
        self.channels
    }

    /// Whether all relays of a stage are one group, so that the source sends in every second cycle only.
    pub fn is_single(&self) -> bool {
        self.groups == 1
    }

    /// How many groups of relays take turns, 1 to 3.
    pub fn groups(&self) -> u8 {
        self.groups
    }

    /// What only a plan of the improved variant has.
    pub fn improved(&self) -> Option<Improved> {
        self.improved
    }

    /// The session; 0 in the faithful variant.
    pub fn session(&self) -> u32 {
        self.improved.map_or(0, |improved| improved.session)
    }

    /// Whether the destination has packets already, so that the source asks first.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The relays.
    pub fn relays(&self) -> &[Part] {
        self.relays.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The part of a relay, if it has one.
    pub fn part_of(&self, node: u16) -> Option<Part> {
        self.relays().iter().copied().find(|part| part.node == node)
    }

    /// Octets of the plan in a frame.
    pub fn encoded_len(&self) -> usize {
        self.fixed_len() + RELAY_LEN * usize::from(self.len)
    }

    fn fixed_len(&self) -> usize {
        FIXED + self.improved.map_or(0, |_| IMPROVED_LEN)
    }

    /// Writes the plan to the front of a frame's body; `None` if that is too short.
    pub fn emit(&self, body: &mut [u8]) -> Option<()> {
        let body = body.get_mut(..self.encoded_len())?;
        let (fixed, relays) = body.split_at_mut_checked(self.fixed_len())?;
        let (fixed, improved) = fixed.split_at_mut_checked(FIXED)?;
        let [first0, first1, first2, _] = self.first.to_le_bytes();
        let [cycle0, cycle1] = self.cycle_us.to_le_bytes();
        let [source0, source1] = self.source.to_le_bytes();
        let [destination0, destination1] = self.destination.to_le_bytes();
        let order = self.channels.number()
            | if self.improved.is_some() { IMPROVED } else { 0 }
            | u8::from(self.resumed) << 6
            | u8::from(self.is_single()) << 7;
        if let Some(Improved { repair, session }) = self.improved {
            let [s0, s1, s2, s3] = session.to_le_bytes();
            improved.copy_from_slice(&[self.groups, repair, s0, s1, s2, s3]);
        }
        fixed.copy_from_slice(&[
            first0,
            first1,
            first2,
            self.payload,
            cycle0,
            cycle1,
            self.hops,
            source0,
            source1,
            destination0,
            destination1,
            order,
        ]);
        for (place, part) in relays.chunks_exact_mut(RELAY_LEN).zip(self.relays()) {
            let [low, high] = part.node.to_le_bytes();
            place.copy_from_slice(&[
                low,
                high,
                part.stage & 15
                    | (part.group & 1) << 4
                    | u8::from(part.sends) << 5
                    | (part.group & 2) << 5,
            ]);
        }
        Some(())
    }

    /// Reads the body of a PLAN frame of this transfer and checks all of it.
    pub fn parse(transfer: u8, body: &[u8]) -> Result<Plan, Malformed> {
        let (fixed, rest) = body.split_at_checked(FIXED).ok_or(Malformed)?;
        let [first0, first1, first2, payload, _, _, hops, .., order] = *fixed else {
            return Err(Malformed);
        };
        let number = |at| u16_at(fixed, at).ok_or(Malformed);
        let single = order >> 7 == 1;
        let (improved, groups, rest) = if order & IMPROVED == 0 {
            (None, if single { 1 } else { 2 }, rest)
        } else {
            let (fields, rest) = rest.split_at_checked(IMPROVED_LEN).ok_or(Malformed)?;
            let [groups, repair, ..] = *fields else {
                return Err(Malformed);
            };
            let session = u32_at(fields, 2).ok_or(Malformed)?;
            (Some(Improved { repair, session }), groups, rest)
        };
        let whole = rest.len().is_multiple_of(RELAY_LEN);
        let count = rest.len() / RELAY_LEN;
        if !whole || count > RELAYS_MAX || single != (groups == 1) {
            return Err(Malformed);
        }
        let mut plan = Plan {
            transfer,
            first: u32::from_le_bytes([first0, first1, first2, 0]),
            payload,
            cycle_us: number(4)?,
            hops,
            source: number(7)?,
            destination: number(9)?,
            channels: ChannelOrder::new(order & 0x1f).ok_or(Malformed)?,
            groups,
            resumed: order >> 6 & 1 == 1,
            improved,
            relays: [Part::default(); RELAYS_MAX],
            len: count as u8,
        };
        for (part, octets) in plan.relays.iter_mut().zip(rest.chunks_exact(RELAY_LEN)) {
            let place = octets.get(2).copied().filter(|bits| *bits < 128);
            let place = place.ok_or(Malformed)?;
            *part = Part {
                node: u16_at(octets, 0).ok_or(Malformed)?,
                stage: place & 15,
                group: place >> 4 & 1 | place >> 5 & 2,
                sends: place >> 5 & 1 == 1,
            };
        }
        plan.sound().then_some(plan).ok_or(Malformed)
    }

    /// Whether the plan can work: fields in range, nodes distinct, each stage with relays, in both groups if there
    /// are two, and a sender to the destination in each of them.
    fn sound(&self) -> bool {
        let (payload_max, groups_max, relays_max) = match self.improved {
            None => (PAYLOAD_MAX, 2, RELAYS_MAX),
            Some(_) => (LEAN_PAYLOAD_MAX, GROUPS_MAX, IMPROVED_RELAYS_MAX),
        };
        let payload = (PAYLOAD_MIN..=payload_max).contains(&self.payload());
        let hops = (1..=HOPS_MAX).contains(&self.hops);
        let groups = (1..=groups_max).contains(&self.groups);
        let repair = self.improved.map_or(0, |improved| improved.repair);
        let sizes = usize::from(repair) <= SUMS_MAX && self.relays().len() <= relays_max;
        let ends = self.source != self.destination;
        if !payload || !hops || !groups || !sizes || !ends || self.cycle_us == 0 {
            return false;
        }
        let relays = self.relays();
        let distinct = relays.iter().enumerate().all(|(at, part)| {
            let before = relays.get(..at).unwrap_or_default();
            let end = part.node == self.source || part.node == self.destination;
            !end && !before.iter().any(|other| other.node == part.node)
        });
        let placed = relays
            .iter()
            .all(|part| part.stage >= 1 && part.stage < self.hops && part.group < self.groups);
        let groups = 0..self.groups;
        let staffed = (1..self.hops).all(|stage| {
            groups.clone().all(|group| {
                let works = |part: &Part| part.stage == stage && part.group == group;
                let sends = |part: &Part| part.sends || self.improved.is_some();
                relays.iter().any(|part| works(part) && sends(part))
            })
        });
        distinct && placed && staffed
    }
}

#[cfg(test)]
mod tests;
