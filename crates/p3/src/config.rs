//! Parameters: what each one is, its unit, its default and where that comes from.

use core::fmt;

use chappe_core::{Caps, Channel, Duration, Missing};

use crate::seal::Key;
pub use crate::sizes::{
    CHANNELS, FCS_LEN, FRAME_MAX, HEADER_LEN, IMPROVED_PAYLOAD_MAX, NACK_BITS, PAYLOAD_MAX,
    PAYLOAD_MIN, SEGMENT_PAYLOAD_MIN,
};
use crate::sizes::{SHORT_HEADER_LEN, TAG_LEN};
use crate::timing::{Profile, airtime};

/// Least number of node-distinct paths that the paper looks for (its N).
pub const PATHS_WANTED: usize = 6;
/// A link is in the planner's graph if its PRR reaches this both ways. The paper gives no number: our choice.
pub const LINK_THRESHOLD: f64 = 0.9;
/// A relay of the last stage sends to the destination if its PRR there reaches this. The paper has a "predefined
/// threshold" without a number: our choice.
pub const LAST_STAGE_THRESHOLD: f64 = 0.8;

/// Which P³ a node speaks, with the parameters that only this variant has.
#[derive(Clone, Debug, PartialEq)]
pub enum Variant {
    /// As in the paper: two groups, lost packets are sent again, headers of seven octets, no authentication.
    Paper,
    /// Improved: up to three groups, combinations of the lost packets, headers of three octets, tags.
    Improved(Improved),
}

/// Where the tags of packets are, in an improved network with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tagging {
    /// At the end of each frame: a forged one costs its slot.
    #[default]
    Packets,
    /// In the CTRL that ends a segment, each over a block of its packets: four octets more for each packet. A forged frame
    /// is noticed at the CTRL only and costs its block. A [`Gateway`](crate::Gateway) that meets forgers goes on with tags in
    /// each frame.
    Segments,
}

/// Parameters that only the improved variant has.
#[derive(Clone, Debug, PartialEq)]
pub struct Improved {
    /// The network's key; `None` leaves frames unprotected, as in the paper. It costs four octets of each frame.
    pub key: Option<Key>,
    /// Combinations sent beyond those that the destination lacks, since some are lost as well. 2: a round that falls
    /// short costs a turn of the pipeline, some ten frames' time.
    pub repair_margin: u8,
    /// Where a gateway's plans put the tags of packets. Other nodes do as the plan says.
    pub tagging: Tagging,
}

/// The parameters of a node. Those of timing must be the same in all nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which P³. Plans must be of the same variant.
    pub variant: Variant,
    /// Turnaround, gaps and pauses, from which the cycle follows.
    pub profile: Profile,
    /// The channel of the wake-up flood. 26, on which the paper plans its paths.
    pub flood_channel: Channel,
    /// From switching the receiver on to when it hears: receivers are switched on by so much earlier. 0, as simulated radios
    /// hear at once; 41 us for an nRF52840.
    pub ramp_up: Duration,
    /// How often each node sends the plan (Glossy's N_tx). 3.
    pub flood_repeats: u8,
    /// From the end of the flood to the first packet. 1 ms: our choice, five turnarounds.
    pub start_guard: Duration,
    /// A node leaves its transfer after it has heard nothing of it for this time and for the
    /// time of a whole segment, all packets of which might be lost before they reach it; in the improved variant for that of
    /// two questions and their answers. 2 s, in the improved variant 0.6 s: our choices.
    pub idle: Duration,
    /// How long relays and destination stay after a complete transfer, in case the source repeats its CTRL. 1 s,
    /// longer than all repetitions of a CTRL at six hops.
    pub linger: Duration,
    /// How long a node that is not in the plan switches its receiver off. 2 s, about one 59 kB transfer. In the improved
    /// variant 0.8 s: a gateway that has to try again needs other relays then.
    pub rest: Duration,
    /// How long the source waits for a NACK beyond the time that it needs. 1 ms: our choice.
    pub reply_slack: Duration,
    /// How often a source sends the CTRL of a round before it gives up. 9: once and eight times again.
    pub ctrl_attempts: u8,
    /// Rounds without progress after which a source gives up. 8: our choice.
    pub fruitless_rounds: u8,
    /// New packets per round of a long object. 896, in the improved variant 880: one NACK can cover them all. Smaller
    /// devices use 64.
    pub segment: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            variant: Variant::Paper,
            profile: Profile::PAPER,
            flood_channel: Channel(26),
            ramp_up: Duration::ZERO,
            flood_repeats: 3,
            start_guard: Duration::from_millis(1),
            idle: Duration::from_secs(2),
            linger: Duration::from_secs(1),
            rest: Duration::from_secs(2),
            reply_slack: Duration::from_millis(1),
            ctrl_attempts: 9,
            fruitless_rounds: 8,
            segment: 896,
        }
    }
}

/// Relays of one group must start within this of each other (paper, II: constructive interference).
const START_ERROR_MAX: Duration = Duration::from_nanos(500);

impl Config {
    /// The improved variant, with authentication if there is a key.
    ///
    /// Relays and destination stay for a fifth of a second after the end, in which the source asks three times. Nodes give up
    /// a silent transfer early, since a [`Gateway`](crate::Gateway) tries again.
    pub fn improved(key: Option<Key>) -> Config {
        Config {
            variant: Variant::Improved(Improved {
                key,
                repair_margin: 2,
                tagging: Tagging::Packets,
            }),
            profile: Profile::IMPROVED,
            linger: Duration::from_millis(200),
            idle: Duration::from_millis(600),
            rest: Duration::from_millis(800),
            segment: 880,
            ..Config::default()
        }
    }

    /// The same with the tags of packets elsewhere. The paper's variant has none.
    pub fn tagged_by(mut self, tagging: Tagging) -> Config {
        if let Variant::Improved(improved) = &mut self.variant {
            improved.tagging = tagging;
        }
        self
    }

    /// Whether plans of this node put the tags of packets into the CTRL.
    pub(crate) const fn tags_segments(&self) -> bool {
        match &self.variant {
            Variant::Improved(improved) => {
                improved.key.is_some() && matches!(improved.tagging, Tagging::Segments)
            }
            Variant::Paper => false,
        }
    }

    /// Octets of the tag that ends each frame; 0 without authentication. Frames of packets have none where the CTRL has them.
    pub const fn tag_len(&self) -> usize {
        match &self.variant {
            Variant::Improved(Improved { key: Some(_), .. }) => TAG_LEN,
            Variant::Improved(Improved { key: None, .. }) | Variant::Paper => 0,
        }
    }

    /// Octets of a DATA frame beside its payload and the radio's check sequence.
    pub const fn overhead(&self) -> usize {
        let header = match self.variant {
            Variant::Paper => HEADER_LEN,
            Variant::Improved(_) => SHORT_HEADER_LEN,
        };
        let tag = if self.tags_segments() {
            0
        } else {
            self.tag_len()
        };
        header + tag
    }

    /// The largest payload of a DATA frame: 118 octets in the paper's frames and with a tag in each frame, otherwise 122.
    pub const fn payload_max(&self) -> usize {
        FRAME_MAX - self.overhead()
    }

    /// Bits that a NACK of this variant can hold, and with it the longest segment: 912, with a key 880.
    pub const fn nack_bits(&self) -> usize {
        NACK_BITS - self.tag_len() * 8
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

    /// Checks the parameters, and that the radio has the abilities that they need.
    pub fn check(&self, caps: &Caps) -> Result<(), ConfigError> {
        caps.need_frame(FRAME_MAX).map_err(ConfigError::Radio)?;
        if !caps.schedules {
            return Err(ConfigError::Radio(Missing::Scheduling));
        }
        if caps.start_error > START_ERROR_MAX {
            return Err(ConfigError::StartError(caps.start_error));
        }
        let margin = match &self.variant {
            Variant::Paper => 0,
            Variant::Improved(improved) => improved.repair_margin,
        };
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
            ("repair_margin", u64::from(margin), 0, 16),
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

/// Why a node cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The radio lacks an ability that P³ needs.
    Radio(Missing),
    /// The radio's start times are too coarse for synchronous transmissions.
    StartError(Duration),
    /// A parameter is out of range.
    Range {
        /// The name of the parameter.
        name: &'static str,
        /// Its value in the configuration.
        value: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
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
        hastens: false,
    };

    #[test]
    fn radios_without_the_needed_abilities_are_refused() {
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
        let key = Some(Key::new([1; 16]));
        let mut improved = Config::improved(key);
        assert_eq!(improved.check(&RADIO), Ok(()));
        improved.variant = Variant::Improved(Improved {
            key,
            repair_margin: 17,
            tagging: Tagging::Packets,
        });
        assert!(matches!(
            improved.check(&RADIO),
            Err(ConfigError::Range {
                name: "repair_margin",
                ..
            })
        ));
    }
}
