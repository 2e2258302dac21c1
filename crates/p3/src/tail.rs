//! The tail of a round at the destination: what it gains from a round's frames beside the packets themselves.
//!
//! In the paper's variant a round has no tail: what is missing is sent again. In the improved one combinations follow
//! the packets, and the destination solves for what is missing.

use chappe_core::DropReason;

use crate::blocks::{FAILED_MAX, Tags};
use crate::frame::Frames;
use crate::header::{Header, SHORT_ROUND};
use crate::nack::Shape;
use crate::object::Store;
use crate::plan::Plan;
use crate::repair::{Factors, Sums, Unknowns};
use crate::seal::Nonce;
use crate::sizes::{FRAME_MAX, IMPROVED_PAYLOAD_MAX, NACK_BITS};
use crate::stored::Stored;
use crate::window::WINDOW;

/// What a destination has of a round's combinations, by variant.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a destination has one, and no allocator to box it with"
)]
pub(crate) enum Tail {
    /// The paper's rounds have none.
    Plain,
    /// The improved variant's rounds end with combinations.
    Coded(CodedTail),
}

/// What the destination gained from a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    /// It waits for the CTRL, which says how many packets the round had.
    Kept,
    /// An equation more; perhaps packets were solved for.
    Equation,
    /// Nothing new: earlier combinations imply it.
    Nothing,
}

impl Tail {
    /// That of a transfer's first round.
    pub fn new(plan: &Plan) -> Tail {
        if plan.is_improved() {
            Tail::Coded(CodedTail::new(plan))
        } else {
            Tail::Plain
        }
    }

    /// Whether a packet can be used. Not while equations wait for their solution: the source then sends combinations
    /// only, and a packet from elsewhere would spoil the equations. Nor one of another segment that only its CTRL could prove.
    pub fn takes_packet(&self, packet: u32) -> bool {
        match self {
            Tail::Plain => true,
            Tail::Coded(tail) => {
                let ahead = packet.wrapping_sub(tail.segment);
                let near = tail.tags.is_empty() || ahead < NACK_BITS as u32;
                near && tail.unknowns.is_empty()
            }
        }
    }

    /// Takes in a packet of this round that was stored.
    pub fn add<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        packet: u32,
        payload: &[u8],
    ) {
        match self {
            Tail::Coded(tail) => tail.add(stored, frames, plan, packet, payload),
            Tail::Plain => {
                stored.have.skip_members();
            }
        }
    }

    /// Takes in what an earlier transfer has stored, which this one's CTRL proves again. What cannot be read is missing.
    pub fn recall<S: Store>(&mut self, stored: &mut Stored<S>, frames: &Frames, plan: &Plan) {
        if let Tail::Coded(tail) = self {
            tail.recall(stored, frames, plan);
        }
    }

    /// The blocks that a CTRL has tags of; `None` where packets have tags of their own.
    pub fn blocks(&self) -> Option<&Tags> {
        match self {
            Tail::Coded(tail) if !tail.tags.is_empty() => Some(&tail.tags),
            Tail::Coded(_) | Tail::Plain => None,
        }
    }

    /// Whether so many blocks were wrong that someone forges packets.
    pub fn is_forged(&self) -> bool {
        matches!(self, Tail::Coded(tail) if tail.failed >= FAILED_MAX)
    }

    /// How often the last question came again although it had been answered.
    pub fn unheard(&self) -> u8 {
        match self {
            Tail::Coded(tail) => tail.again,
            Tail::Plain => 0,
        }
    }

    /// Takes a combination of packets from a CODED frame.
    pub fn take<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        header: Header,
        psdu: &[u8],
    ) -> Result<Gain, DropReason> {
        match self {
            Tail::Plain => Err(DropReason::Malformed),
            Tail::Coded(tail) => tail.take(stored, frames, plan, header, psdu),
        }
    }

    /// Whether a CTRL of this round may be answered.
    pub fn expects(&self, round: u8) -> bool {
        match self {
            // The paper answers every CTRL.
            Tail::Plain => true,
            Tail::Coded(tail) => tail.expects(round),
        }
    }

    /// At a CTRL: the packets of the round before its end have all been sent.
    pub fn settle<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        ctrl: Settled,
    ) {
        if let Tail::Coded(tail) = self {
            tail.settle(stored, frames, plan, ctrl);
        }
    }

    /// The form of the NACK that answers a CTRL.
    pub fn nack(&mut self, frames: &Frames, plan: &Plan, ctrl: &Header) -> Shape {
        match self {
            // As long as DATA, or longer if it must: the paper gives no length of its own.
            Tail::Plain => Shape {
                len_min: frames.data_len(plan),
                shortest: false,
                deficit: None,
                both: false,
                group: None,
                left_out: None,
            },
            Tail::Coded(tail) => Shape {
                len_min: 0,
                shortest: true,
                deficit: tail.deficit(),
                // The source asks all relays together where their groups have not brought it an answer.
                both: ctrl.flags.both,
                group: tail.answering(plan, ctrl),
                left_out: ctrl.flags.left_out.filter(|&out| ctrl.flags.group == out),
            },
        }
    }
}

/// What a CTRL says of the round that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub round: u8,
    /// One past the last packet sent so far.
    pub end: u32,
    /// The tags of the segment's blocks, where packets have none of their own.
    pub tags: Option<Tags>,
}

/// What a destination has of a round's combinations in the improved variant.
#[derive(Clone, Debug)]
pub(crate) struct CodedTail {
    /// Tags of the segment's blocks, of the packets that are stored.
    tags: Tags,
    /// The last CTRL of this segment.
    told: Option<Settled>,
    /// Whether a block failed in this round, so that its combinations prove nothing.
    spoiled: bool,
    /// Rounds with blocks that failed.
    failed: u8,
    /// What it received of the round's plain packets, and of their combinations.
    sums: Sums,
    /// Combinations in `sums`, as bits.
    heard: u8,
    unknowns: Unknowns,
    /// First packet of the segment.
    segment: u32,
    /// The round whose frames are due.
    round: u8,
    /// The round of the last answer.
    answered: Option<u8>,
    /// How often its question came again.
    again: u8,
    /// The group whose relays answer, once those that answer first have failed.
    voice: Option<u8>,
    /// Whether a frame of the round after the last answer has come.
    begun: bool,
}

impl CodedTail {
    fn new(plan: &Plan) -> CodedTail {
        let mut sums = Sums::new();
        sums.reset(plan.repair());
        CodedTail {
            tags: Tags::new(plan.blocks(), plan.first()),
            told: None,
            spoiled: false,
            failed: 0,
            sums,
            heard: 0,
            unknowns: Unknowns::new(),
            segment: plan.first(),
            round: 0,
            answered: None,
            again: 0,
            voice: None,
            begun: false,
        }
    }

    fn factors(&self, plan: &Plan) -> Factors {
        Factors::new(plan, self.segment, self.round)
    }

    fn add<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        packet: u32,
        payload: &[u8],
    ) {
        self.begun = true;
        if self.sums.count() > 0 {
            let factors = self.factors(plan);
            self.sums.add(&factors, packet, payload);
        }
        if self.tags.is_empty() {
            stored.have.skip_members();
        } else {
            count(&mut self.tags, frames, plan, packet, payload);
        }
    }

    fn recall<S: Store>(&mut self, stored: &mut Stored<S>, frames: &Frames, plan: &Plan) {
        if self.tags.is_empty() {
            return;
        }
        let base = stored.have.base();
        for packet in base..base.saturating_add(WINDOW) {
            if !stored.have.contains(packet) {
                continue;
            }
            let near = packet.wrapping_sub(self.segment) < NACK_BITS as u32;
            let mut octets = [0; IMPROVED_PAYLOAD_MAX];
            let payload = octets.get_mut(..plan.payload()).unwrap_or_default();
            if near && stored.read(plan, packet, payload) {
                count(&mut self.tags, frames, plan, packet, payload);
            } else {
                stored.drop(packet);
            }
        }
    }

    /// Forgets the packets of blocks that are wrong, as only a CTRL can tell, and moves on where the segment is whole.
    fn check<S: Store>(&mut self, stored: &mut Stored<S>) {
        let Some(Settled {
            end,
            tags: Some(told),
            ..
        }) = self.told
        else {
            return;
        };
        // No packet behind the end is genuine.
        let limit = self.segment.saturating_add(NACK_BITS as u32);
        (end..limit).for_each(|packet| stored.drop(packet));
        let has = |packet: u32| stored.have.contains(packet);
        let failed = self.tags.failed(&told, end, has);
        failed.packets(end).for_each(|packet| stored.drop(packet));
        if stored.missing(end).next().is_none() {
            stored.have.advance(end);
        }
        self.spoiled |= !failed.is_empty();
    }

    /// A combination of the packets that were missing at the last answer; or else of all packets of the round, kept
    /// until the CTRL reports how many these are.
    fn take<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        header: Header,
        psdu: &[u8],
    ) -> Result<Gain, DropReason> {
        let number = header.sequence as u8;
        if header.round != self.round & SHORT_ROUND {
            return Err(DropReason::Stale);
        }
        let mut frame = [0; FRAME_MAX];
        let frame = frame.get_mut(..psdu.len()).ok_or(DropReason::Malformed)?;
        frame.copy_from_slice(psdu);
        let nonce = Nonce::of_coded(plan, self.segment, self.round, number);
        let payload = frames
            .open(plan, &nonce, frame)
            .ok_or(DropReason::Unauthentic)?;
        self.begun = true;
        if !self.unknowns.is_empty() {
            let factors = self.factors(plan);
            let new = self.unknowns.insert(&factors, number, payload);
            self.solve(stored, frames, plan);
            return Ok(if new { Gain::Equation } else { Gain::Nothing });
        }
        if number >= self.sums.count() {
            return Err(DropReason::Malformed);
        }
        if self.heard >> number & 1 == 1 {
            return Err(DropReason::Duplicate);
        }
        self.heard |= 1 << number;
        self.sums.cancel(number, payload);
        Ok(Gain::Kept)
    }

    /// Stores the missing packets, if the combinations suffice.
    fn solve<S: Store>(&mut self, stored: &mut Stored<S>, frames: &Frames, plan: &Plan) {
        let tags = &mut self.tags;
        self.unknowns.solve(|packet, payload| {
            if stored.put(plan, packet, payload) && !tags.is_empty() {
                count(tags, frames, plan, packet, payload);
            }
        });
        if self.tags.is_empty() {
            stored.have.skip_members();
        } else {
            self.check(stored);
        }
    }

    /// The CTRL of an earlier round, or one that was answered and followed by its next round, is a replay.
    fn expects(&self, round: u8) -> bool {
        round == self.round || self.answered == Some(round) && !self.begun
    }

    /// What the round's combinations say of the packets that are missing before `end`. The same CTRL, asked again,
    /// changes nothing.
    fn settle<S: Store>(
        &mut self,
        stored: &mut Stored<S>,
        frames: &Frames,
        plan: &Plan,
        ctrl: Settled,
    ) {
        let Settled { round, end, .. } = ctrl;
        if self.answered == Some(round) {
            self.again = self.again.saturating_add(1);
            return;
        }
        (self.told, self.again) = (Some(ctrl), 0);
        self.check(stored);
        // A wrong packet is in the sums as well, so these then say nothing of the missing ones.
        if self.unknowns.is_empty() && !self.spoiled {
            self.unknowns.begin(stored.missing(end), plan.payload());
            let factors = self.factors(plan);
            for number in 0..self.sums.count() {
                if self.heard >> number & 1 == 1 {
                    let row = self.sums.row(number, plan.payload());
                    self.unknowns.insert(&factors, number, row);
                }
            }
            self.solve(stored, frames, plan);
        }
        if core::mem::take(&mut self.spoiled) {
            self.failed = self.failed.saturating_add(1);
            // The source goes by what the answer reports as missing, and so do the next combinations.
            self.unknowns.begin(stored.missing(end), plan.payload());
        }
        self.sums.reset(plan.repair());
        self.heard = 0;
        self.answered = Some(round);
        self.begun = false;
        self.round = round.wrapping_add(1);
        // The source begins a segment only once the one before is complete.
        if stored.have.base() >= end {
            self.segment = end;
            self.tags = Tags::new(plan.blocks(), end);
            self.told = None;
        }
    }

    /// The group that answers, where a question came again. The relays that answer first may be deaf since the flood, and where
    /// all answer at once those of a stage can drown each other. The group that brought the question works, so it is first; the
    /// one whose answer was heard stays.
    fn answering(&mut self, plan: &Plan, ctrl: &Header) -> Option<u8> {
        if ctrl.flags.both {
            return None;
        }
        if self.again > 0 {
            let next = |failed: u8| (failed + 1) % plan.groups().max(1);
            self.voice = Some(self.voice.map_or(ctrl.flags.group, next));
        }
        self.voice
    }

    fn deficit(&self) -> Option<u16> {
        (!self.unknowns.is_empty()).then(|| self.unknowns.deficit() as u16)
    }
}

/// Takes a packet into the tag of its block.
fn count(tags: &mut Tags, frames: &Frames, plan: &Plan, packet: u32, payload: &[u8]) {
    let mut octets = [0; IMPROVED_PAYLOAD_MAX];
    if let Some(octets) = octets.get_mut(..payload.len()) {
        octets.copy_from_slice(payload);
        tags.toggle(packet, frames.tag_of_packet(plan, packet, octets));
    }
}
