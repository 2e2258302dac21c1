//! The destination's part of the coded tail.

use chappe_core::{DropReason, Instant};

use crate::config::FRAME_MAX;
use crate::destination::Destination;
use crate::header::Header;
use crate::object::Store;
use crate::plan::Plan;
use crate::repair::{Factors, Sums, Unknowns};
use crate::seal::Nonce;

/// What the destination has of a round's combinations. Improved variant.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// What it received of the round's plain packets, and of their combinations.
    pub sums: Sums,
    /// Combinations in `sums` from which what was received has been taken away, as bits.
    pub heard: u8,
    pub unknowns: Unknowns,
    /// First packet of the segment.
    pub segment: u32,
    /// The round whose frames are due.
    pub round: u8,
    /// The round of the last answer, and whether its successor has begun.
    pub answered: Option<u8>,
    pub begun: bool,
}

impl Tail {
    pub fn new(segment: u32) -> Tail {
        Tail {
            sums: Sums::new(),
            heard: 0,
            unknowns: Unknowns::new(),
            segment,
            round: 0,
            answered: None,
            begun: false,
        }
    }

    pub fn factors(&self, plan: &Plan) -> Factors {
        Factors::new(plan, self.segment, self.round)
    }
}

impl<S: Store> Destination<S> {
    /// A combination: of all packets of the round, to be kept until the CTRL tells how many these are, or of those
    /// that were missing at the last answer.
    pub(crate) fn collect_coded(
        &mut self,
        now: Instant,
        plan: &Plan,
        header: Header,
        psdu: &[u8],
    ) -> Result<(), DropReason> {
        let number = header.sequence as u8;
        if header.round != self.tail.round {
            return Err(DropReason::Stale);
        }
        let mut frame = [0; FRAME_MAX];
        let frame = frame.get_mut(..psdu.len()).ok_or(DropReason::Malformed)?;
        frame.copy_from_slice(psdu);
        let nonce = Nonce::of_coded(plan, self.tail.segment, header.round, number);
        let payload = self
            .form
            .open(&nonce, frame)
            .ok_or(DropReason::Unauthentic)?;
        self.tail.begun = true;
        let factors = self.tail.factors(plan);
        if !self.tail.unknowns.is_empty() {
            let new = self.tail.unknowns.insert(&factors, number, payload);
            self.stay(now);
            self.solve(now, plan);
            return if new {
                Ok(())
            } else {
                Err(DropReason::NotInnovative)
            };
        }
        if number >= self.tail.sums.count() {
            return Err(DropReason::Malformed);
        }
        if self.tail.heard >> number & 1 == 1 {
            return Err(DropReason::Duplicate);
        }
        self.tail.heard |= 1 << number;
        self.tail.sums.cancel(number, payload);
        self.stay(now);
        Ok(())
    }

    /// Stores the missing packets, if the combinations suffice.
    fn solve(&mut self, now: Instant, plan: &Plan) {
        let (have, store, received) = (&mut self.have, &mut self.store, &mut self.received);
        self.tail.unknowns.solve(|packet, payload| {
            let offset = packet.checked_mul(plan.payload() as u32);
            if offset.is_some_and(|offset| store.write(offset, payload)) {
                have.set(packet, true);
                *received = received.saturating_add(1);
            }
        });
        self.have.skip_members();
        self.check_complete(now, plan);
    }

    /// At a CTRL: what the round's combinations say of the packets that are missing before `end`.
    pub(crate) fn use_tail(&mut self, now: Instant, plan: &Plan, end: u32, round: u8) {
        if self.tail.answered == Some(round) {
            return;
        }
        let have = &self.have;
        let missing = (have.base()..end).filter(|packet| !have.contains(*packet));
        if self.tail.unknowns.is_empty() {
            self.tail.unknowns.begin(missing, plan.payload());
            let factors = self.tail.factors(plan);
            for number in 0..self.tail.sums.count() {
                if self.tail.heard >> number & 1 == 1 {
                    let row = self.tail.sums.row(number, plan.payload());
                    self.tail.unknowns.insert(&factors, number, row);
                }
            }
            self.solve(now, plan);
        }
        let repair = plan.improved().map_or(0, |improved| improved.repair);
        self.tail.sums.reset(repair);
        self.tail.heard = 0;
        self.tail.answered = Some(round);
        self.tail.begun = false;
        self.tail.round = round.wrapping_add(1);
        if self.have.base() >= end {
            self.tail.segment = end;
        }
    }
}
