//! The access categories of EDCA: how urgent a class of traffic is towards the others.

use chappe_core::{Class, Classes, Duration};

/// What one access category contends with (IEEE 802.11-2020, 10.23.2). Four of them make an EDCA station, least
/// urgent first; of two that reach their boundary together, the later one in the array transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// The classes of the link node whose frames it sends.
    pub classes: Classes,
    /// Slots from SIFS to where its back-off begins: AIFS = SIFS + AIFSN slots (10.23.2.4).
    pub aifsn: u8,
    /// First contention window.
    pub cw_min: u16,
    /// Largest contention window.
    pub cw_max: u16,
    /// For how long it may go on with a SIFS between its frames once it has the medium; zero: one frame.
    pub txop: Duration,
}

impl Category {
    /// The default parameters for DSSS (aCWmin = 31, aCWmax = 1023), from dot11EDCATable (table 9-155): background,
    /// best effort, video, voice. They take [`Class::Background`], [`Class::Data`], [`Class::Urgent`] and
    /// [`Class::Control`] in this order.
    pub const DSSS: [Category; 4] = [
        Category::of(Class::Background, 7, (31, 1023), 0),
        Category::of(Class::Data, 3, (31, 1023), 0),
        Category::of(Class::Urgent, 2, (15, 31), 6_016),
        Category::of(Class::Control, 2, (7, 15), 3_264),
    ];

    /// A category of one class; its TXOP limit in microseconds.
    pub const fn of(class: Class, aifsn: u8, window: (u16, u16), txop_us: u64) -> Category {
        Category {
            classes: Classes::only(class),
            aifsn,
            cw_min: window.0,
            cw_max: window.1,
            txop: Duration::from_micros(txop_us),
        }
    }
}
