//! The configuration of a ZMAC+ station, each value with its source.

use chappe_core::{Class, Duration, Rate};

use crate::dot11::Config as Station;

/// How a ZMAC+ station contends. The paper leaves `beacon`, `slot`, both windows and notification open: print them with
/// every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Frames, rates, slot time, SIFS, retry limits. Its windows, `aifsn`, `difs_backoff` and `difs_after_timeout` are
    /// ignored.
    pub station: Station,
    /// Length of a burst, and the step between levels: T. 20 us, a DSSS slot time, is enough to detect energy and turn
    /// around; one that carries a PLCP header takes 212 us. Not given in the paper. A burst no longer than the station's
    /// `cca_time` would not be detected.
    pub beacon: Duration,
    /// Wait before the burst of level 0. SIFS, as in the paper: an ACK begins at the same instant, so a station that did
    /// not decode the data frame bursts over it. A longer wait protects ACKs and costs that much per frame.
    pub wait: Duration,
    /// Length of a time slot. Z-MAC's 50 ms hold several packets of its slower radio; 10 ms hold six frames of 200 octets
    /// at 2 Mbit/s. Not given in the paper.
    pub slot: Duration,
    /// To: the owner of a time slot draws fewer than this many back-off slots. 8 (Z-MAC).
    pub owner_window: u16,
    /// Tno: all others draw from `owner_window` to fewer than this. 32 (Z-MAC).
    pub window: u16,
    /// What a station saves of what claims cost.
    pub savings: Savings,
    /// Notification of contention; `None`: every node may use every time slot at all times.
    pub ecn: Option<Ecn>,
}

/// Explicit contention notification: when a node notifies, and how its neighbours respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecn {
    /// Failed attempts of one frame after which its sender asks its receiver to notify: the rival is hidden. Ours.
    pub failures: u8,
    /// Undecodable frames in a row, without one for this station in between, after which it notifies: its neighbours do
    /// not hear each other. Ours.
    pub undecodable: u8,
    /// How long a frame waits for the channel before its sender notifies: the neighbours leave it no gap. Z-MAC measures
    /// the time of the back-off; the value is ours.
    pub wait: Duration,
    /// How long a node that receives a notification keeps out of the slots of nodes two hops away: 10 s (Z-MAC).
    pub lasts: Duration,
    /// The least time between two notifications of one node, or after one that it received. Ours. It must be well below
    /// `lasts`, since notifications get lost. A sufferer whose receiver was not heard to pass its notification on does not wait: it
    /// sends one at each failure until then, or until a frame is acknowledged.
    pub again: Duration,
    /// Keep out of the last part of a time slot before a barred one, since an exchange would reach into it: this long,
    /// but half a time slot at most.
    /// An exchange of 1536 octets at 2 Mbit/s after the longest back-off takes 7.3 ms, one of 248 octets 2.2 ms.
    pub guard: Duration,
    /// Whose time slots are kept free.
    pub protects: Protects,
    /// Whether a station keeps time slots free for a sufferer that it hears, too, when the receiver of lost frames asks for it. Such a
    /// station is not the rival that these frames met, since it waits while they are sent. Ours.
    pub heard_too: bool,
}

/// Whose time slots stations leave free after a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protects {
    /// Those of every node two hops away, whether it sends or not (Z-MAC).
    TwoHops,
    /// Those of the station that suffers. Its notifications name them, in four octets more, and whoever hears of it keeps out of them.
    /// Undecodable frames cause no notification: their senders notify. Ours.
    Sufferer,
}

/// What a station saves of what claims cost. Neither Z-MAC nor the paper has any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savings {
    /// How long it may send frames a SIFS apart once a claim for data has won the channel, as a category of EDCA does. Zero: one frame.
    pub txop: Duration,
    /// Whether a station that begins to listen when a frame ends that it heard or sent itself knows that it missed no burst. Otherwise
    /// it first waits for the contention window of one: 0.64 ms at every relay whose queue was empty.
    pub attentive: bool,
    /// Whether only level 0 bursts. Bursts reach as far as carrier sense, and end the claims of stations there, whether their sender wins the
    /// channel or not. Data then counts its back-off slots from where its burst would have begun. Background traffic waits for the
    /// windows of data before that.
    pub burstless: bool,
}

impl Savings {
    /// One frame for each claim.
    pub const NONE: Savings = Savings {
        txop: Duration::ZERO,
        attentive: false,
        burstless: false,
    };

    /// All. 6,016 us is the TXOP limit of EDCA's video (IEEE 802.11-2020, table 9-155).
    pub const ALL: Savings = Savings {
        txop: Duration::from_micros(6_016),
        attentive: true,
        burstless: true,
    };
}

impl Ecn {
    /// Z-MAC's, as far as it says.
    pub const Z_MAC: Ecn = Ecn {
        failures: 3,
        undecodable: 8,
        wait: Duration::from_millis(50),
        lasts: Duration::from_secs(10),
        again: Duration::from_millis(100),
        guard: Duration::from_micros(2200),
        protects: Protects::TwoHops,
        heard_too: true,
    };

    /// For the station that suffers alone: of a frame that is about to be given up (the sixth of seven attempts has failed), or one that
    /// waits for long. In two networks of hidden nodes three failures gave the weaker flow no more, and a second between notifications a
    /// third (`sparing_notification_ends_starvation`); without a wait the flow in the middle starves.
    pub const SPARING: Ecn = Ecn {
        failures: 6,
        wait: Duration::from_millis(200),
        protects: Protects::Sufferer,
        heard_too: false,
        ..Ecn::Z_MAC
    };
}

impl Config {
    /// Frames of this rate with bursts of 20 us, time slots of 10 ms, Z-MAC's windows and notification.
    pub fn of_rate(data: Rate) -> Config {
        let station = Station::of_rate(data);
        Config {
            station,
            beacon: Duration::from_micros(20),
            wait: station.sifs,
            slot: Duration::from_millis(10),
            owner_window: 8,
            window: 32,
            savings: Savings::NONE,
            ecn: Some(Ecn::Z_MAC),
        }
    }

    /// The same with notifications for the station that suffers, all savings, and windows that are four slots shorter than Z-MAC's. Between
    /// the frames of a rival that counts 20 slots at most no notification fits (408 us), and hidden senders get nothing; with 27 they have
    /// as much as with 31 (`sparing_notification_ends_starvation`).
    pub fn sparing(self) -> Config {
        Config {
            ecn: Some(Ecn::SPARING),
            savings: Savings::ALL,
            owner_window: 4,
            window: 28,
            ..self
        }
    }

    /// The level of a class: 0 to 2.
    pub(crate) fn level(class: Class) -> u64 {
        match class {
            Class::Control | Class::Urgent => 0,
            Class::Data => 1,
            Class::Background => 2,
        }
    }
}
