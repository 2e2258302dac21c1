//! The part of a relay in a transfer: its place in the pipeline, and what its variant lets it do there.

use crate::header::Flags;

/// A relay's place in the pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The relay's node number.
    pub node: u16,
    /// Its stage: 1 is next to the source.
    pub stage: u8,
    /// Its group, 0 to 2.
    pub group: u8,
}

/// A relay of the paper's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperPart {
    /// The relay's place in the pipeline.
    pub place: Place,
    /// Whether it sends DATA and CTRL on. False only in the last stage, where its link to the destination is bad
    /// (paper, IV-E). Every relay repeats NACKs.
    pub sends: bool,
}

/// A relay of the improved protocol. It always sends DATA, CODED and CTRL frames on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImprovedPart {
    /// The relay's place in the pipeline.
    pub place: Place,
    /// Whether it repeats the first NACK of a round. Where the source has to ask again, others do.
    pub answers: bool,
}

/// A relay's part, by variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A relay of the paper's protocol.
    Paper(PaperPart),
    /// A relay of the improved protocol.
    Improved(ImprovedPart),
}

impl Part {
    /// The relay's place in the pipeline.
    pub fn place(&self) -> Place {
        match self {
            Part::Paper(part) => part.place,
            Part::Improved(part) => part.place,
        }
    }

    /// Whether it repeats what travels from source to destination.
    pub(crate) fn sends_on(&self) -> bool {
        match self {
            Part::Paper(part) => part.sends,
            Part::Improved(_) => true,
        }
    }

    /// Whether it may repeat a NACK, given whether it has `turned` around at the round's CTRL.
    ///
    /// A NACK of the improved variant names its round under a tag, so a relay that missed the CTRL can help.
    pub(crate) fn takes_nack(&self, turned: bool) -> bool {
        match self {
            Part::Paper(_) => turned,
            Part::Improved(_) => true,
        }
    }

    /// Whether it repeats a NACK that it takes, given the frame's flags.
    ///
    /// In the improved variant one relay per stage answers, since one alone does not beat with others. Where this has failed
    /// before, the flags name all relays, or those of one group.
    pub(crate) fn repeats_nack(&self, flags: Flags) -> bool {
        match self {
            Part::Paper(_) => true,
            Part::Improved(_) if flags.both => true,
            Part::Improved(part) if flags.by_group => part.place.group == flags.group,
            Part::Improved(part) => part.answers,
        }
    }
}

/// One bit for each relay of a plan, in the plan's order. The variant says what a mark means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u128);

impl Marks {
    pub fn set(&mut self, at: usize, marked: bool) {
        self.0 = self.0 & !(1 << at) | u128::from(marked) << at;
    }

    pub fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

// Bit 127 is the last one that the shifts above may name.
const _: () = assert!(crate::sizes::IMPROVED_RELAYS_MAX <= 128);
