//! Parameters: what each one is, its unit, its default and where that comes from.

use core::fmt;

use chappe_core::{Caps, Channel, Duration, Missing};

use crate::header::LEAN_LEN;
use crate::plan::Plan;
use crate::seal::{Key, TAG_LEN};
use crate::timing::{Line, airtime};

/// Octets of the frame check sequence, which belongs to the radio (IEEE 802.15.4-2006, 7.2.1.9).
pub const FCS_LEN: usize = 2;
/// Largest PSDU without its check sequence (IEEE 802.15.4-2006, aMaxPHYPacketSize less the FCS).
pub const FRAME_MAX: usize = 127 - FCS_LEN;
/// Octets of the header of every frame. The paper's "7-byte application header".
pub const HEADER_LEN: usize = 7;
/// Largest payload of a DATA frame of the paper: its best size, and what a frame has room for.
pub const PAYLOAD_MAX: usize = FRAME_MAX - HEADER_LEN;
/// Largest payload of the improved variant without authentication; with it, four octets less.
pub const LEAN_PAYLOAD_MAX: usize = FRAME_MAX - LEAN_LEN;
/// Smallest payload: a CTRL frame is as long as a DATA frame and must hold its fields.
pub const PAYLOAD_MIN: usize = 12;
/// The four channels that stand clear of Wi-Fi (paper, III-B).
pub const CHANNELS: [Channel; 4] = [Channel(15), Channel(20), Channel(25), Channel(26)];
/// Bits that a NACK of full length can hold: 118 octets less 4 of fields. A tag takes 32 of them.
pub const NACK_BITS: usize = (PAYLOAD_MAX - 4) * 8;
/// Least number of node-distinct paths that the paper looks for (its N).
pub const PATHS_WANTED: usize = 6;
/// A link is in the planner's graph if its PRR reaches this both ways. The paper gives no number: our choice.
pub const LINK_THRESHOLD: f64 = 0.9;
/// A relay of the last stage sends to the destination if its PRR there reaches this. The paper has a "predefined
/// threshold" without a number: our choice.
pub const LAST_STAGE_THRESHOLD: f64 = 0.8;

/// What a cycle is made of. All relays of a network must have the same profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Between receiving and sending: 12 symbols of 16 us (IEEE 802.15.4-2006, aTurnaroundTime).
    pub turnaround: Duration,
    /// Software and FIFO delay on top of it.
    pub software: Duration,
    /// From the end of a frame of the source to its next one, where three groups leave it free to choose.
    pub source_gap: Duration,
    /// What two groups have beyond a hop's time: a relay that is late by as much still turns around in time.
    pub relay_slack: Duration,
    /// Octets of header of a DATA frame.
    pub header: usize,
    /// What relays take to change their sending channel at a CTRL; the destination waits for it before it answers.
    pub turn_relays: Duration,
    /// What the source takes from a NACK to the next round.
    pub turn_source: Duration,
    /// What a whole transfer costs beside its packets. A prediction; no node reads it.
    pub line: Line,
}

/// Ticks of the TelosB's 4.19 MHz oscillator (2^22 Hz).
const fn splash_ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks * 1_000_000_000 / 4_194_304)
}

impl Profile {
    /// The paper's implementation. 89 us of software make a full cycle 4.537 ms, from which its "effective
    /// rate" of 220.4 kbit/s for 125 octets follows. The line is a least-squares fit of its Table III.
    ///
    /// The pauses at a turn are those of the public code of Splash, on which P3 is built: 2 * 40,000 ticks at relays
    /// and 2 * 60,000 at the source, of a 4.19 MHz clock. That P3 kept them is our inference.
    pub const FAITHFUL: Profile = Profile {
        turnaround: Duration::from_micros(192),
        software: Duration::from_micros(89),
        source_gap: Duration::from_micros(281),
        relay_slack: Duration::ZERO,
        header: HEADER_LEN,
        turn_relays: splash_ticks(80_000),
        turn_source: splash_ticks(120_000),
        line: Line::PAPER,
    };

    /// The standard's turnaround alone; relays and source change their channels within it, so a turn has no pause.
    ///
    /// A source that feeds three groups keeps its transmitter on, and leaves one symbol between two frames, so that the
    /// destination finds the end of the one before the next. Two groups need as much beyond the turnaround: a relay's
    /// start may be off by 0.5 us at each stage, and a radio that is not ready for a preamble misses the frame.
    pub const LEAN: Profile = Profile {
        turnaround: Duration::from_micros(192),
        software: Duration::ZERO,
        source_gap: Duration::from_micros(16),
        relay_slack: Duration::from_micros(16),
        header: LEAN_LEN,
        turn_relays: Duration::ZERO,
        turn_source: Duration::ZERO,
        line: Line::LEAN,
    };

    /// From the end of a received frame to the start of its repetition.
    pub const fn gap(&self) -> Duration {
        Duration::from_nanos(self.turnaround.nanos() + self.software.nanos())
    }
}

/// Which P³.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As in the paper: two groups, a NACK for each round, headers of seven octets, no authentication.
    Faithful,
    /// Improved: a coded tail, up to three groups, headers of three octets.
    Improved,
}

/// The parameters of a node. Those of timing must be the same in all nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which P³. The plan must be for the same one.
    pub variant: Variant,
    /// The network's key; `None` leaves frames unprotected, as in the paper. It costs four octets of each frame, and
    /// belongs to [`Variant::Improved`].
    pub key: Option<Key>,
    /// The timing.
    pub profile: Profile,
    /// The channel of the wake-up flood. 26, on which the paper plans its paths.
    pub flood_channel: Channel,
    /// How often each node sends the plan (Glossy's N_tx). 3.
    pub flood_repeats: u8,
    /// From the end of the flood to the first packet. 1 ms: our choice, five turnarounds.
    pub start_guard: Duration,
    /// A node that hears nothing of its transfer for so long, and for the time of a whole segment in which all
    /// packets might be lost before they reach it, leaves it. 2 s: our choice.
    pub idle: Duration,
    /// How long relays and destination stay after a complete transfer, in case that the source repeats its
    /// question. 1 s, longer than all repetitions of a CTRL at six hops.
    pub linger: Duration,
    /// How long a node that is not in the plan switches its receiver off. 2 s, about one 59 kB transfer.
    pub rest: Duration,
    /// What the source waits for a NACK beyond the time that it needs. 1 ms: our choice.
    pub reply_slack: Duration,
    /// How often a source sends the CTRL of a round before it gives up. 9: once and eight times again.
    pub ctrl_attempts: u8,
    /// How many rounds that brought nothing a source makes before it gives up. 8: our choice.
    pub fruitless_rounds: u8,
    /// New packets per round of a long object. 896, in the improved variant 880: one NACK can tell of them all. Smaller
    /// devices take 64.
    pub segment: u16,
    /// How many combinations are sent beyond those that the destination lacks, since some are lost as well. 2: a lost
    /// one costs a turn of the pipeline, some ten frames' time. Improved variant.
    pub repair_margin: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            variant: Variant::Faithful,
            key: None,
            profile: Profile::FAITHFUL,
            flood_channel: Channel(26),
            flood_repeats: 3,
            start_guard: Duration::from_millis(1),
            idle: Duration::from_secs(2),
            linger: Duration::from_secs(1),
            rest: Duration::from_secs(2),
            reply_slack: Duration::from_millis(1),
            ctrl_attempts: 9,
            fruitless_rounds: 8,
            segment: 896,
            repair_margin: 2,
        }
    }
}

/// Relays of one group must start within this of each other (paper, II: constructive interference).
const START_ERROR_MAX: Duration = Duration::from_nanos(500);

impl Config {
    /// The improved variant, with authentication if there is a key.
    ///
    /// Relays and destination stay a fifth of a second after the end: the source asks three times in it.
    pub fn improved(key: Option<Key>) -> Config {
        Config {
            variant: Variant::Improved,
            key,
            profile: Profile::LEAN,
            linger: Duration::from_millis(200),
            segment: 880,
            ..Config::default()
        }
    }

    /// Octets of a DATA frame beside its payload and the radio's check sequence.
    pub const fn overhead(&self) -> usize {
        match (self.variant, &self.key) {
            (Variant::Faithful, _) => HEADER_LEN,
            (Variant::Improved, None) => LEAN_LEN,
            (Variant::Improved, Some(_)) => LEAN_LEN + TAG_LEN,
        }
    }

    /// The largest payload of a DATA frame: 118 octets in the paper's frames and with authentication, otherwise 122.
    pub const fn payload_max(&self) -> usize {
        FRAME_MAX - self.overhead()
    }

    /// Bits that a NACK of this variant can hold, and with it the longest segment: 912, with a key 880.
    pub const fn nack_bits(&self) -> usize {
        match self.key {
            Some(_) => NACK_BITS - TAG_LEN * 8,
            None => NACK_BITS,
        }
    }

    /// Octets of the frame of this plan.
    pub fn plan_len(&self, plan: &Plan) -> usize {
        let tag = if self.key.is_some() { TAG_LEN } else { 0 };
        HEADER_LEN + plan.encoded_len() + tag
    }

    /// The pipeline's cycle T_c for this payload: from one frame of the source to its next one, the time of one hop
    /// for two groups, and for three only a frame and [`Profile::source_gap`].
    pub const fn cycle(&self, payload: usize, groups: u8) -> Duration {
        let len = self.overhead() + payload;
        match groups {
            3.. => Duration::from_nanos(airtime(len).nanos() + self.profile.source_gap.nanos()),
            _ => Duration::from_nanos(
                self.profile.slot(len).nanos() + self.profile.relay_slack.nanos(),
            ),
        }
    }

    /// From a frame at one stage to its repetition at the next.
    pub fn hop_time(&self, plan: &Plan) -> Duration {
        self.profile.slot(self.overhead() + plan.payload())
    }

    /// From one frame of the source to its next where all relays of a stage are one group: each must receive and send.
    pub fn single_period(&self, plan: &Plan) -> Duration {
        let (hop, cycle) = (self.hop_time(plan), plan.cycle());
        if hop > cycle { hop * 2 } else { cycle * 2 }
    }

    /// How long a node of a transfer with this cycle waits in silence.
    pub fn patience(&self, cycle: Duration) -> Duration {
        self.idle + cycle * u64::from(self.segment)
    }

    /// Whether a node with these parameters can work on such a radio.
    pub fn check(&self, caps: &Caps) -> Result<(), ConfigError> {
        if self.key.is_some() && self.variant == Variant::Faithful {
            return Err(ConfigError::KeyOfFaithful);
        }
        caps.need_frame(FRAME_MAX).map_err(ConfigError::Radio)?;
        if !caps.schedules {
            return Err(ConfigError::Radio(Missing::Scheduling));
        }
        if caps.start_error > START_ERROR_MAX {
            return Err(ConfigError::StartError(caps.start_error));
        }
        let counts = [
            ("flood_repeats", u64::from(self.flood_repeats), 1, 16),
            ("ctrl_attempts", u64::from(self.ctrl_attempts), 1, 255),
            ("fruitless_rounds", u64::from(self.fruitless_rounds), 1, 255),
            (
                "segment",
                u64::from(self.segment),
                1,
                self.nack_bits() as u64,
            ),
            ("repair_margin", u64::from(self.repair_margin), 0, 16),
        ];
        for (name, value, min, max) in counts {
            if value < min || value > max {
                return Err(ConfigError::Range {
                    name,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }
}

/// Why a node cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The radio lacks an ability.
    Radio(Missing),
    /// The radio's start times are too coarse for synchronous transmissions.
    StartError(Duration),
    /// The paper's frames have no room for a tag: a key belongs to the improved variant.
    KeyOfFaithful,
    /// A parameter is out of range.
    Range {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u64,
        /// What it may be at least.
        min: u64,
        /// What it may be at most.
        max: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Radio(missing) => missing.fmt(f),
            ConfigError::StartError(error) => write!(
                f,
                "synchronous transmissions start within {START_ERROR_MAX} of each other, but this radio is off by up to {error}"
            ),
            ConfigError::KeyOfFaithful => f.write_str(
                "frames of the faithful variant carry no tag; take the improved variant, or no key",
            ),
            ConfigError::Range {
                name,
                value,
                min,
                max,
            } => write!(f, "{name} is {value}; it must be {min} to {max}"),
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: Caps = Caps {
        frame_max: FRAME_MAX,
        schedules: true,
        start_error: Duration::from_nanos(250),
        reports_power: false,
        overhears: true,
        confirms_broadcast: true,
    };

    #[test]
    fn radios_that_cannot_are_refused() {
        let config = Config::default();
        assert_eq!(config.check(&RADIO), Ok(()));
        let short = Caps {
            frame_max: 100,
            ..RADIO
        };
        let missing = Missing::FrameSize {
            needed: 125,
            available: 100,
        };
        assert_eq!(config.check(&short), Err(ConfigError::Radio(missing)));
        let whenever = Caps {
            schedules: false,
            ..RADIO
        };
        let missing = ConfigError::Radio(Missing::Scheduling);
        assert_eq!(config.check(&whenever), Err(missing));
        let coarse = Duration::from_micros(1);
        let late = Caps {
            start_error: coarse,
            ..RADIO
        };
        assert_eq!(config.check(&late), Err(ConfigError::StartError(coarse)));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for segment in [0, 913] {
            let config = Config {
                segment,
                ..Config::default()
            };
            assert!(matches!(
                config.check(&RADIO),
                Err(ConfigError::Range {
                    name: "segment",
                    ..
                })
            ));
        }
        let lean = Config {
            key: Some(Key::new([1; 16])),
            ..Config::default()
        };
        assert_eq!(lean.check(&RADIO), Err(ConfigError::KeyOfFaithful));
        assert_eq!(Config::improved(lean.key).check(&RADIO), Ok(()));
    }
}
