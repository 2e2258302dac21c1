//! The tail of a round at the destination: what it gains from a round's frames beside the packets themselves.
//!
//! In the paper's variant a round has no tail: what is missing is sent again. In the improved one combinations follow
//! the packets, and the destination solves for what is missing.

use chappe_core::DropReason;

use crate::frame::Frames;
use crate::header::Header;
use crate::nack::Shape;
use crate::object::Store;
use crate::plan::Plan;
use crate::repair::{Factors, Sums, Unknowns};
use crate::seal::Nonce;
use crate::sizes::FRAME_MAX;
use crate::stored::Stored;

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
    /// only, and a packet from elsewhere would spoil the equations.
    pub fn takes_packets(&self) -> bool {
        match self {
            Tail::Plain => true,
            Tail::Coded(tail) => tail.unknowns.is_empty(),
        }
    }

    /// Takes in a packet of this round that was stored.
    pub fn add(&mut self, plan: &Plan, packet: u32, payload: &[u8]) {
        if let Tail::Coded(tail) = self {
            tail.add(plan, packet, payload);
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

    /// At a CTRL: the packets of the round before `end` have all been sent.
    pub fn settle<S: Store>(&mut self, stored: &mut Stored<S>, plan: &Plan, end: u32, round: u8) {
        if let Tail::Coded(tail) = self {
            tail.settle(stored, plan, end, round);
        }
    }

    /// The form of the NACK that answers a CTRL.
    pub fn nack(&self, frames: &Frames, plan: &Plan, ctrl: &Header) -> Shape {
        match self {
            // As long as DATA, or longer if it must: the paper gives no length of its own.
            Tail::Plain => Shape {
                len_min: frames.data_len(plan),
                shortest: false,
                deficit: None,
                both: false,
            },
            Tail::Coded(tail) => Shape {
                len_min: 0,
                shortest: true,
                deficit: tail.deficit(),
                // The source asks all relays together where their groups have not brought it an answer.
                both: ctrl.flags.both,
            },
        }
    }
}

/// What the destination has of a round's combinations in the improved variant.
#[derive(Clone, Debug)]
pub(crate) struct CodedTail {
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
    /// Whether a frame of the round after the last answer has come.
    begun: bool,
}

impl CodedTail {
    fn new(plan: &Plan) -> CodedTail {
        let mut sums = Sums::new();
        sums.reset(plan.repair());
        CodedTail {
            sums,
            heard: 0,
            unknowns: Unknowns::new(),
            segment: plan.first(),
            round: 0,
            answered: None,
            begun: false,
        }
    }

    fn factors(&self, plan: &Plan) -> Factors {
        Factors::new(plan, self.segment, self.round)
    }

    fn add(&mut self, plan: &Plan, packet: u32, payload: &[u8]) {
        self.begun = true;
        if self.sums.count() > 0 {
            let factors = self.factors(plan);
            self.sums.add(&factors, packet, payload);
        }
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
        if header.round != self.round {
            return Err(DropReason::Stale);
        }
        let mut frame = [0; FRAME_MAX];
        let frame = frame.get_mut(..psdu.len()).ok_or(DropReason::Malformed)?;
        frame.copy_from_slice(psdu);
        let nonce = Nonce::of_coded(plan, self.segment, header.round, number);
        let payload = frames.open(&nonce, frame).ok_or(DropReason::Unauthentic)?;
        self.begun = true;
        if !self.unknowns.is_empty() {
            let factors = self.factors(plan);
            let new = self.unknowns.insert(&factors, number, payload);
            self.solve(stored, plan);
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
    fn solve<S: Store>(&mut self, stored: &mut Stored<S>, plan: &Plan) {
        self.unknowns.solve(|packet, payload| {
            stored.put(plan, packet, payload);
        });
        stored.have.skip_members();
    }

    /// The CTRL of an earlier round, or one that was answered and followed by its next round, is a replay.
    fn expects(&self, round: u8) -> bool {
        round == self.round || self.answered == Some(round) && !self.begun
    }

    /// What the round's combinations say of the packets that are missing before `end`. The same CTRL, asked again,
    /// changes nothing.
    fn settle<S: Store>(&mut self, stored: &mut Stored<S>, plan: &Plan, end: u32, round: u8) {
        if self.answered == Some(round) {
            return;
        }
        if self.unknowns.is_empty() {
            self.unknowns.begin(stored.missing(end), plan.payload());
            let factors = self.factors(plan);
            for number in 0..self.sums.count() {
                if self.heard >> number & 1 == 1 {
                    let row = self.sums.row(number, plan.payload());
                    self.unknowns.insert(&factors, number, row);
                }
            }
            self.solve(stored, plan);
        }
        self.sums.reset(plan.repair());
        self.heard = 0;
        self.answered = Some(round);
        self.begun = false;
        self.round = round.wrapping_add(1);
        // The source begins a segment only once the one before is complete.
        if stored.have.base() >= end {
            self.segment = end;
        }
    }

    fn deficit(&self) -> Option<u16> {
        (!self.unknowns.is_empty()).then(|| self.unknowns.deficit() as u16)
    }
}
