//! How a source makes up for what was lost: what each round sends after a NACK, by variant.

use crate::config::{Config, Variant};
use crate::plan::Plan;
use crate::repair::UNKNOWN_MAX;
use crate::window::WINDOW;

/// What the next round sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Whether packets of the next segment join.
    pub new_segment: bool,
    /// Whether it sends packets; otherwise combinations of them only.
    pub packets: bool,
    /// Combinations to send after the packets, or in their place.
    pub combinations: u8,
}

/// The way of one variant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recovery {
    /// The paper's: missing packets are sent again, together with the next segment.
    Repeat,
    /// The improved variant's: combinations of what is missing, as many as the destination lacks.
    Combine(Combine),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Combine {
    /// Combinations after the plain packets of a segment.
    repair: u8,
    /// Combinations beyond those that the destination lacks.
    margin: u8,
    /// Combinations that the destination lacks, by its last NACK.
    deficit: u16,
}

impl Recovery {
    pub fn new(config: &Config, plan: &Plan) -> Recovery {
        match &config.variant {
            Variant::Paper => Recovery::Repeat,
            Variant::Improved(improved) => Recovery::Combine(Combine {
                repair: plan.repair(),
                margin: improved.repair_margin,
                deficit: 0,
            }),
        }
    }

    /// Packets after the first missing one that the destination of a resumed transfer may have.
    pub fn span(&self, config: &Config) -> u32 {
        match self {
            Recovery::Repeat => WINDOW,
            // A segment is finished before the next one begins.
            Recovery::Combine(_) => u32::from(config.segment),
        }
    }

    /// The first round of a transfer that is not resumed.
    pub fn first(&self) -> Schedule {
        let combinations = match self {
            Recovery::Repeat => 0,
            Recovery::Combine(combine) => combine.repair,
        };
        Schedule {
            new_segment: true,
            packets: true,
            combinations,
        }
    }

    /// Takes in how many packets or combinations a NACK reports as missing, and returns whether these are fewer than
    /// before.
    pub fn note(&mut self, missing: u16) -> bool {
        match self {
            Recovery::Repeat => false,
            Recovery::Combine(combine) => {
                missing < core::mem::replace(&mut combine.deficit, missing)
            }
        }
    }

    /// The round after a NACK that left `missing` packets, at most one more than [`UNKNOWN_MAX`]. `told` is whether
    /// it covered all packets sent so far.
    pub fn next(&self, told: bool, missing: usize) -> Schedule {
        match self {
            Recovery::Repeat => Schedule {
                new_segment: told,
                packets: true,
                combinations: 0,
            },
            // The sums at both ends are of one segment, so it must be complete before the next one begins.
            Recovery::Combine(combine) if missing == 0 || missing > UNKNOWN_MAX => Schedule {
                new_segment: told && missing == 0,
                packets: true,
                combinations: combine.repair,
            },
            Recovery::Combine(combine) => {
                let wanted = combine.deficit.saturating_add(combine.margin.into());
                Schedule {
                    new_segment: false,
                    packets: false,
                    combinations: wanted.min(255) as u8,
                }
            }
        }
    }
}
