//! The plan of a transfer: who takes part, in which stage and group, and on which channels.
//!
//! One frame holds it. A plan of the paper's variant has 13 octets and 3 per relay, so at most [`RELAYS_MAX`] relays:
//!
//! | octets | field |
//! |---|---|
//! | 1 | transfer (in the frame's header) |
//! | 3 | first packet wanted, not 0 where a transfer is resumed; of a plan that asks, how many sessions back |
//! | 1 | payload of a DATA frame in octets |
//! | 2 | cycle in microseconds |
//! | 1 | hops |
//! | 2, 2 | source, destination |
//! | 1 | order of the channels (0..24), bit 5: improved, bit 6: resumed, bit 7: one group |
//! | 1, 1, 4 | improved variant only: groups (bit 5: long flood, bit 6: thin flood, bit 7: tags of packets are in the CTRL), combinations after a segment (bit 7: asks), session |
//! | 3 each | paper's variant: relay with its number (2), stage (4 bits), group (bit 4), mark (bit 5) |
//! | 1, rest | improved variant: bits of a relay's number, and the relays as bits |
//!
//! The mark of a relay is [`PaperPart::sends`] or [`ImprovedPart::answers`]. The improved variant lists its relays stage by
//! stage and group by group, so it need not name these: each relay is its number, its mark, and a bit for whether
//! another one of the same place follows. With numbers below 256 a frame has room for [`IMPROVED_RELAYS_MAX`] relays,
//! which are three groups over 24 hops. Bits after the last relay are zero.
//!
//! The number of packets is not in the plan: the gateway need not know how large the object is, and the source
//! reports it in its CTRL. Stage h listens on the h-th channel of the order, starting over after four; the source
//! listens on the fourth while it waits for a NACK, which stages 1 to 3 leave free.

use chappe_core::{Duration, Stream};

use crate::channels::ChannelOrder;
use crate::config::{Config, Variant};
use crate::header::Flags;
use crate::part::{ImprovedPart, Marks, PaperPart, Part, Place};
pub use crate::sizes::{
    GROUPS_MAX, HOPS_MAX, IMPROVED_RELAYS_MAX, PACKETS_MAX, PAPER_HOPS_MAX, RELAYS_MAX,
};
use crate::sizes::{
    HEADER_LEN, IMPROVED_PAYLOAD_MAX, PAYLOAD_MAX, PAYLOAD_MIN, SHORT_HEADER_LEN, SUMS_MAX,
    TAG_LEN, blocks_of,
};
use crate::timing::Profile;

mod wire;

pub use wire::relays_max;

/// Slots of a thin flood after which its shares of senders begin anew: a half, a quarter, an eighth. 3: our choice, for up to some sixteen
/// nodes that hear each other equally well.
const DECAY: u8 = 3;

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
    /// Tags of packets are in the CTRL.
    by_segment: bool,
    /// Nodes that have sent the plan once are silent in most slots of the flood.
    thin: bool,
    /// The flood has twice as many turns.
    long: bool,
    /// Begins no transfer, but asks what was heard of the last one.
    asks: bool,
    terms: Terms,
    relays: [Place; IMPROVED_RELAYS_MAX],
    len: u8,
}

/// What a plan says in one variant beyond the places of its relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terms {
    Paper(PaperTerms),
    Improved(ImprovedTerms),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PaperTerms {
    /// The relays with [`PaperPart::sends`].
    senders: Marks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ImprovedTerms {
    /// The relays with [`ImprovedPart::answers`].
    answerers: Marks,
    repair: u8,
    session: u32,
}

/// The fields of a transfer that its caller chooses; the relays come from the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the transfer, different from the last one's.
    pub transfer: u8,
    /// Octets per packet, [`PAYLOAD_MIN`] to [`PAYLOAD_MAX`]; without a tag to [`IMPROVED_PAYLOAD_MAX`].
    pub payload: u8,
    /// The node that has the object.
    pub source: u16,
    /// The node that fetches it.
    pub destination: u16,
    /// The channels of the stages.
    pub channels: ChannelOrder,
}

/// Stages of relays for a plan of the improved variant, as [`pipeline`](crate::planner::pipeline) chooses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages<'a> {
    /// Hops from source to destination.
    pub hops: u8,
    /// Groups that take turns, 1 to 3. One group alone sends in every second cycle.
    pub groups: u8,
    /// The relays; each stage needs one in each group.
    pub parts: &'a [ImprovedPart],
    /// Combinations that the source sends after the plain packets of a segment, 0 to 8: as many as the planner
    /// expects to be lost.
    pub repair: u8,
    /// Greater in each transfer of this destination, so that old frames cannot be replayed.
    pub session: u32,
}

/// Why no plan can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The list of paths is empty.
    NoPath,
    /// More relays than one frame can name.
    TooManyRelays(usize),
    /// More hops than the four bits of a stage in the paper's variant can name.
    TooManyHops(usize),
    /// The paths have different lengths, share a node, or pass the source or the destination.
    NotDistinct,
    /// The payload is out of range.
    Payload(u8),
    /// A stage has no relay in one of the groups, or a number is out of range: stages 1 to hops - 1, groups 0 to
    /// groups - 1 of at most three, at most eight combinations.
    Stages,
    /// The plan and the configuration, or the relay that joins, are of different variants.
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
                "one frame has no room for a plan with {n} relays; the paper's has at most {RELAYS_MAX}"
            ),
            PlanError::TooManyHops(n) => {
                write!(
                    f,
                    "a plan of paths has at most {PAPER_HOPS_MAX} hops, these have {n}"
                )
            }
            PlanError::NotDistinct => {
                f.write_str("the paths must have one length and no node in common")
            }
            PlanError::Stages => f.write_str(
                "a stage has no relay in one of the groups, or a stage, a group or the repair count is out of range",
            ),
            PlanError::Variant => f.write_str("paths make a plan of the paper's variant, stages one of the improved variant"),
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
    /// last. The paths are shuffled; the first half of them, rounded down, is group 0 (paper, IV-C.3). A single path,
    /// or two ends without a relay between them, make one group.
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
            .filter(|&hops| hops <= PAPER_HOPS_MAX)
            .ok_or(PlanError::TooManyHops(relays_on_path + 1))?;
        let count = paths.len().saturating_mul(relays_on_path);
        if count > RELAYS_MAX {
            return Err(PlanError::TooManyRelays(count));
        }
        if !(PAYLOAD_MIN..=PAYLOAD_MAX).contains(&usize::from(wanted.payload)) {
            return Err(PlanError::Payload(wanted.payload));
        }
        let cycle = profile.cycle(usize::from(wanted.payload));
        let groups = if paths.len() < 2 || hops == 1 { 1 } else { 2 };
        let mut plan = Plan::empty(wanted, cycle, hops, groups);
        plan.place(paths, random)?;
        let senders = plan.senders(threshold, last_prr);
        plan.terms = Terms::Paper(PaperTerms { senders });
        plan.sound().then_some(plan).ok_or(PlanError::NotDistinct)
    }

    /// A plan of the improved variant over stages of relays.
    pub fn from_stages(
        wanted: Wanted,
        config: &Config,
        stages: Stages<'_>,
    ) -> Result<Plan, PlanError> {
        let Stages {
            hops,
            groups,
            parts,
            repair,
            session,
        } = stages;
        if config.variant == Variant::Paper {
            return Err(PlanError::Variant);
        }
        if parts.len() > IMPROVED_RELAYS_MAX {
            return Err(PlanError::TooManyRelays(parts.len()));
        }
        let payload = usize::from(wanted.payload);
        let no_tag = config.tags_segments() && blocks_of(payload) == 0;
        if no_tag || !(PAYLOAD_MIN..=config.payload_max()).contains(&payload) {
            return Err(PlanError::Payload(wanted.payload));
        }
        let mut plan = Plan::empty(wanted, config.cycle(payload, groups), hops, groups);
        let mut answerers = Marks::default();
        // In the order of the frame, in which the octets imply stage and group.
        let places = (1..hops).flat_map(|stage| (0..groups).map(move |group| (stage, group)));
        let sorted = places.flat_map(|(stage, group)| {
            let here =
                move |part: &&ImprovedPart| (part.place.stage, part.place.group) == (stage, group);
            parts.iter().filter(here)
        });
        let mut len = 0;
        for (at, (place, part)) in plan.relays.iter_mut().zip(sorted).enumerate() {
            *place = part.place;
            answerers.set(at, part.answers);
            len = at + 1;
        }
        // A part that has no place among the stages and groups.
        if len != parts.len() {
            return Err(PlanError::Stages);
        }
        plan.len = len as u8;
        plan.terms = Terms::Improved(ImprovedTerms {
            answerers,
            repair,
            session,
        });
        plan.by_segment = config.tags_segments();
        if plan.encoded_len() > wire::BODY_MAX {
            return Err(PlanError::TooManyRelays(parts.len()));
        }
        plan.sound().then_some(plan).ok_or(PlanError::Stages)
    }

    /// A plan of the paper's variant without relays.
    fn empty(wanted: Wanted, cycle: Duration, hops: u8, groups: u8) -> Plan {
        Plan {
            transfer: wanted.transfer,
            first: 0,
            payload: wanted.payload,
            cycle_us: (cycle.nanos() / 1000) as u16,
            hops,
            source: wanted.source,
            destination: wanted.destination,
            channels: wanted.channels,
            groups,
            resumed: false,
            by_segment: false,
            thin: false,
            long: false,
            asks: false,
            terms: Terms::Paper(PaperTerms::default()),
            relays: [Place::default(); IMPROVED_RELAYS_MAX],
            len: 0,
        }
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
        // Indices are shuffled, not paths: they fit fixed memory.
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
                let place = place.filter(|_| usize::from(self.len) < RELAYS_MAX);
                *place.ok_or(PlanError::TooManyRelays(RELAYS_MAX + 1))? =
                    Place { node, stage, group };
                self.len += 1;
            }
        }
        Ok(())
    }

    //= p3 IV-E: in the last stage only relays with a good link to the destination send
    /// The relays that send on. A group of the last stage without a good link keeps its best one, or nothing of it
    /// would arrive.
    fn senders(&self, threshold: f64, prr: impl Fn(u16) -> f64) -> Marks {
        let last = self.hops.saturating_sub(1);
        let mut senders = Marks::default();
        for (at, place) in self.relays().iter().enumerate() {
            senders.set(at, place.stage != last);
        }
        for group in 0..2 {
            let mut best: Option<(f64, usize)> = None;
            let mut silent = true;
            let theirs = |place: &Place| place.stage == last && place.group == group;
            let relays = self.relays().iter().enumerate();
            for (at, place) in relays.filter(|(_, place)| theirs(place)) {
                let reached = prr(place.node);
                let sends = reached >= threshold;
                senders.set(at, sends);
                silent &= !sends;
                if best.is_none_or(|(most, _)| reached > most) {
                    best = Some((reached, at));
                }
            }
            if let Some((_, at)) = best.filter(|_| silent) {
                senders.set(at, true);
            }
        }
        senders
    }

    /// The same plan with one relay more, beside those of the paths.
    pub fn joined(mut self, part: PaperPart) -> Result<Plan, PlanError> {
        let Terms::Paper(terms) = &mut self.terms else {
            return Err(PlanError::Variant);
        };
        let len = usize::from(self.len);
        let place = self.relays.get_mut(len).filter(|_| len < RELAYS_MAX);
        *place.ok_or(PlanError::TooManyRelays(len + 1))? = part.place;
        terms.senders.set(len, part.sends);
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

    /// The same plan for another attempt: under another transfer number and, in the improved variant, in this later session.
    pub fn again(mut self, transfer: u8, session: u32) -> Plan {
        self.transfer = transfer;
        if let Terms::Improved(terms) = &mut self.terms {
            terms.session = session;
        }
        self
    }

    /// The same plan with a tag in each frame: packets are shorter by it, and frames as long as before.
    pub fn tagged_by_packet(mut self) -> Plan {
        if core::mem::take(&mut self.by_segment) {
            self.payload = self.payload.saturating_sub(TAG_LEN as u8);
        }
        self
    }

    /// The same plan with a thin flood, or without.
    ///
    /// Each node repeats a plan at once with all others that heard it, and receivers lose frames of many equally strong senders. In
    /// a thin flood a node sends once at once, and then in half, a quarter and an eighth of the slots in turn, which differ from node to node
    /// and from session to session: one of these suits each receiver, however many it hears (Decay: Bar-Yehuda, Goldreich, Itai, On the
    /// time-complexity of broadcast in multi-hop radio networks, JCSS 45, 1992).
    pub fn thinly(mut self, thin: bool) -> Plan {
        self.thin = thin && self.is_improved();
        self
    }

    /// The same plan with a long flood, or without: nodes send it twice as often, and it reaches as many hops more as they repeat it. The
    /// way of a flood is on one channel, and may have more hops than the plan's.
    pub fn at_length(mut self, long: bool) -> Plan {
        self.long = long && self.is_improved();
        self
    }

    /// Whether its flood is long.
    pub fn is_long(&self) -> bool {
        self.long
    }

    /// The same plan as a question: its nodes begin no transfer, but tell what they heard of their last one, if it was one of this many
    /// sessions before.
    pub fn asking(mut self, back: u32) -> Plan {
        self.asks = self.is_improved();
        self.first = back.min(PACKETS_MAX - 1);
        self
    }

    /// Whether its nodes begin no transfer, but tell what they heard of the last one.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether it asks of the transfer in this session.
    pub(crate) fn asks_of(&self, session: u32) -> bool {
        let own = self.session().unwrap_or_default();
        let before = own.saturating_sub(self.first)..own;
        self.asks && session > 0 && before.contains(&session)
    }

    /// How often each node sends the plan in its flood.
    pub(crate) fn flood_repeats(&self, config: &Config) -> u8 {
        config.flood_repeats.saturating_mul(1 + u8::from(self.long))
    }

    /// Whether nodes that have sent the plan once choose their further slots.
    pub(crate) fn is_thin(&self) -> bool {
        self.thin
    }

    /// Whether `node`, which has sent the plan once, is silent in a slot of the flood.
    pub(crate) fn rests(&self, node: u16, slot: u8) -> bool {
        let session = self.session().unwrap_or_default();
        let key = u64::from(session) << 32 | u64::from(node) << 8 | u64::from(slot);
        // A multiplicative hash: the golden ratio of 2^64 (Knuth, The Art of Computer Programming 3, 6.4).
        let level = 1 + u32::from(slot % DECAY);
        self.thin && key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - level) != 0
    }

    /// Whether packets are authenticated by blocks, with tags in the CTRL, and not each by itself.
    #[inline]
    pub fn tags_segments(&self) -> bool {
        self.by_segment
    }

    /// Blocks of a segment that the CTRL carries tags of; none where each frame carries its own.
    pub(crate) fn blocks(&self) -> usize {
        if self.tags_segments() {
            blocks_of(self.payload())
        } else {
            0
        }
    }

    /// The number of the transfer, which all its frames carry.
    pub fn transfer(&self) -> u8 {
        self.transfer
    }

    /// The first packet that is wanted.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Payload of a DATA frame in octets.
    pub fn payload(&self) -> usize {
        usize::from(self.payload)
    }

    /// The pipeline's cycle T_c: from one frame of the source to its next.
    pub fn cycle(&self) -> Duration {
        Duration::from_micros(u64::from(self.cycle_us))
    }

    /// Hops between source and destination.
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// The source's node number.
    pub fn source(&self) -> u16 {
        self.source
    }

    /// The destination's node number.
    pub fn destination(&self) -> u16 {
        self.destination
    }

    /// The order in which the stages use the channels.
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

    /// Whether the plan is of the improved variant.
    pub fn is_improved(&self) -> bool {
        matches!(self.terms, Terms::Improved(_))
    }

    /// Combinations that the source sends after the plain packets of a segment; the paper's sends none.
    pub fn repair(&self) -> u8 {
        match self.terms {
            Terms::Paper(_) => 0,
            Terms::Improved(terms) => terms.repair,
        }
    }

    /// The session, which only plans of the improved variant have.
    pub fn session(&self) -> Option<u32> {
        match self.terms {
            Terms::Paper(_) => None,
            Terms::Improved(terms) => Some(terms.session),
        }
    }

    /// Whether the destination has packets already, so that the source asks first.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The places of the relays, in the plan's order.
    pub fn relays(&self) -> &[Place] {
        self.relays.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The part of a relay, if it has one.
    pub fn part_of(&self, node: u16) -> Option<Part> {
        let mut relays = self.relays().iter().enumerate();
        let (at, &place) = relays.find(|(_, place)| place.node == node)?;
        Some(match self.terms {
            Terms::Paper(terms) => Part::Paper(PaperPart {
                place,
                sends: terms.senders.has(at),
            }),
            Terms::Improved(terms) => Part::Improved(ImprovedPart {
                place,
                answers: terms.answerers.has(at),
            }),
        })
    }

    /// Octets of the plan's frame.
    pub fn frame_len(&self, config: &Config) -> usize {
        HEADER_LEN + self.encoded_len() + config.tag_len()
    }

    /// From a frame at one stage to its repetition at the next.
    pub fn hop_time(&self, config: &Config) -> Duration {
        let tag = if self.tags_segments() {
            0
        } else {
            config.tag_len()
        };
        let header = match self.terms {
            Terms::Paper(_) => HEADER_LEN,
            Terms::Improved(_) => SHORT_HEADER_LEN,
        };
        config.profile.slot(header + self.payload() + tag)
    }

    /// From one frame of the source to its next where all relays of a stage are one group: each must receive and send.
    pub fn single_period(&self, config: &Config) -> Duration {
        // With three groups a cycle is shorter than a hop, and with two it may be longer by a slack.
        let (hop, cycle) = (self.hop_time(config), self.cycle());
        if hop > cycle { hop * 2 } else { cycle * 2 }
    }

    /// From one frame of the source to its next where two groups of three take turns: a relay has two of these for
    /// receiving and sending, as in a plan for two groups.
    pub fn pair_period(&self, config: &Config) -> Duration {
        let (hop, cycle) = (
            self.hop_time(config) + config.profile.relay_slack,
            self.cycle(),
        );
        if hop > cycle { hop } else { cycle }
    }

    /// From a frame of the source with these flags to its next one.
    pub(crate) fn period(&self, config: &Config, flags: Flags) -> Duration {
        match flags.left_out {
            _ if flags.both => self.single_period(config),
            Some(_) if self.groups == 3 => self.pair_period(config),
            _ => self.cycle(),
        }
    }

    /// Whether the plan can work: fields in range, nodes distinct, each stage with relays in every group, and in
    /// each of these one that sends on.
    fn sound(&self) -> bool {
        let (payload_max, groups_max, relays_max, hops_max) = match self.terms {
            Terms::Paper(_) => (PAYLOAD_MAX, 2, RELAYS_MAX, PAPER_HOPS_MAX),
            Terms::Improved(_) => (
                IMPROVED_PAYLOAD_MAX,
                GROUPS_MAX,
                IMPROVED_RELAYS_MAX,
                HOPS_MAX,
            ),
        };
        let payload = (PAYLOAD_MIN..=payload_max).contains(&self.payload());
        // A CTRL as long as the packets has room for a tag.
        let payload = payload && (!self.tags_segments() || blocks_of(self.payload()) > 0);
        let hops = (1..=hops_max).contains(&self.hops);
        let groups = (1..=groups_max).contains(&self.groups);
        let relays = self.relays();
        let sizes = usize::from(self.repair()) <= SUMS_MAX && relays.len() <= relays_max;
        let ends = self.source != self.destination;
        if !payload || !hops || !groups || !sizes || !ends || self.cycle_us == 0 {
            return false;
        }
        let distinct = relays.iter().enumerate().all(|(at, place)| {
            let before = relays.get(..at).unwrap_or_default();
            let end = place.node == self.source || place.node == self.destination;
            !end && !before.iter().any(|other| other.node == place.node)
        });
        let placed = relays
            .iter()
            .all(|place| place.stage >= 1 && place.stage < self.hops && place.group < self.groups);
        let sends_on = |at: usize| match self.terms {
            Terms::Paper(terms) => terms.senders.has(at),
            Terms::Improved(_) => true,
        };
        let groups = 0..self.groups;
        let staffed = (1..self.hops).all(|stage| {
            groups.clone().all(|group| {
                let works = |place: &Place| place.stage == stage && place.group == group;
                let mut relays = relays.iter().enumerate();
                relays.any(|(at, place)| works(place) && sends_on(at))
            })
        });
        distinct && placed && staffed
    }
}

#[cfg(test)]
mod tests;
