//! The access categories of EDCA and their parameters.

use chappe_core::{Class, Classes, Duration, Rate};

/// The parameters of one access category (IEEE 802.11-2020, 10.23.2). An EDCA station has four, least urgent first.
/// If two reach their boundary together, the later one in the array transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// The classes of link frames that it sends.
    pub classes: Classes,
    /// Slots from SIFS to where its back-off begins: AIFS = SIFS + AIFSN slots (10.23.2.4).
    pub aifsn: u8,
    /// CWmin, in slots: a back-off is drawn from 0 to this.
    pub cw_min: u16,
    /// CWmax, in slots: retries double the window up to this.
    pub cw_max: u16,
    /// TXOP limit: how long it may send frames a SIFS apart once it has the medium. Zero: one frame.
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

    /// The same for OFDM (aCWmin = 15, aCWmax = 1023). TXOP limits are those of Linux (`ieee80211_set_wmm_default`, net/mac80211/util.c), which
    /// keeps the standard's of 2012.
    pub const OFDM: [Category; 4] = [
        Category::of(Class::Background, 7, (15, 1023), 0),
        Category::of(Class::Data, 3, (15, 1023), 0),
        Category::of(Class::Urgent, 2, (7, 15), 3_008),
        Category::of(Class::Control, 2, (3, 7), 1_504),
    ];

    /// The default parameters for stations whose data have this rate.
    pub const fn of_rate(rate: Rate) -> [Category; 4] {
        match rate.is_ofdm() {
            true => Category::OFDM,
            false => Category::DSSS,
        }
    }

    /// Whether an urgent frame waits for less than other data at these categories, after collisions, too
    /// ([`Caps::hastens`](chappe_core::Caps::hastens)). Each class has the first category that takes it.
    pub fn hastens(categories: &[Category]) -> bool {
        let of = |class| categories.iter().find(|one| one.classes.contains(class));
        let (Some(urgent), Some(data)) = (of(Class::Urgent), of(Class::Data)) else {
            return false;
        };
        urgent.cw_min < data.cw_min && urgent.cw_max < data.cw_max
    }

    /// A category for one class; `window` is (CWmin, CWmax), the TXOP limit is in microseconds.
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
