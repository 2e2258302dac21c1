//! The check of parameters, and its errors.

use core::fmt;

use chappe_core::{Caps, Duration, Missing};

use super::{Matching, RateLaw, Scheme, Settings};
use crate::header;

impl Settings {
    /// Checks that all values are within their limits and that the link can carry the frames.
    pub fn check(&self, caps: &Caps) -> Result<(), ConfigError> {
        let (room, probes) = (&self.room, &self.probes);
        let matching = |of: fn(Matching) -> Duration| match self.scheme {
            Scheme::Dclo(law) => of(law).nanos() / 1_000_000,
            _ => 1,
        };
        let counts = [
            ("room.destinations", u64::from(room.destinations)),
            ("room.neighbours", u64::from(room.neighbours)),
            ("room.packets", u64::from(room.packets)),
            ("room.payload", u64::from(room.payload)),
            ("room.flows", u64::from(room.flows)),
            ("room.sources", u64::from(room.sources)),
            ("room.seen", u64::from(room.seen)),
            ("probes.interval", probes.interval.nanos() / 1_000_000),
            ("probes.window", u64::from(probes.window)),
            ("probes.least", u64::from(probes.least)),
            ("routing.period", self.routing.period.nanos() / 1_000_000),
            ("routing.lost_after", u64::from(self.routing.lost_after)),
            ("routing.hop_limit", u64::from(self.routing.hop_limit)),
            ("next_hops.every", self.next_hops.every.nanos() / 1_000_000),
            ("queues.limit", u64::from(self.queues.limit)),
            ("queues.failures_max", u64::from(self.queues.failures_max)),
            ("matching.interval", matching(|law| law.interval)),
            ("matching.exchange", matching(|law| law.exchange)),
            ("matching.retry", matching(|law| law.retry)),
        ];
        if let Some(&(name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero { name });
        }
        let large = [
            ("probes.window", u64::from(probes.window), 63),
            ("room.packets", u64::from(room.packets), 0xfffe),
            ("room.destinations", u64::from(room.destinations), 0xfffe),
            // The eighth bit of its octet marks packets that go first.
            ("routing.hop_limit", u64::from(self.routing.hop_limit), 127),
            ("queues.limit", u64::from(self.queues.limit), 4000),
            ("queues.reserve", u64::from(self.queues.reserve), 4000),
        ];
        if let Some(&(name, given, most)) = large.iter().find(|(_, given, most)| given > most) {
            return Err(ConfigError::TooLarge { name, given, most });
        }
        self.check_shares()?;
        let probe = header::PROBE
            + header::COUNT * usize::from(room.neighbours)
            + header::QUEUE * header::QUEUES_MAX;
        let (probe, data) = match self.rate {
            RateLaw::Airtime(_) => (
                probe
                    + 2
                    + header::FAR * header::FAR_MAX
                    + header::SHARE * (1 + usize::from(room.neighbours))
                    + 2 * header::QUEUES_MAX,
                header::DATA + header::STAMP,
            ),
            _ => (probe, header::DATA),
        };
        let data = data + usize::from(room.payload);
        caps.need_frame(probe.max(probes.octets).max(data))
            .map_err(ConfigError::Link)
    }

    fn check_shares(&self) -> Result<(), ConfigError> {
        let (law, any) = (self.rate, f64::MAX);
        let reports = self.extras.reports;
        let free_min = match self.scheme {
            Scheme::Fusion(fusion) => fusion.free_min,
            _ => 0.0,
        };
        let mut ranges = [
            ("probes.jitter", self.probes.jitter, 0.0, 0.9),
            ("probes.damping", self.probes.damping, 0.0, 1.0),
            ("probes.etx_max", self.probes.etx_max, 1.0, 100.0),
            ("probes.ratio_min", self.probes.ratio_min, 0.001, 1.0),
            ("next_hops.beta", self.next_hops.beta, 0.0, 1.0),
            ("next_hops.high", self.next_hops.high, 0.0, any),
            ("next_hops.low", self.next_hops.low, 0.0, any),
            ("priorities.high", self.priorities.high, 0.0, any),
            ("priorities.medium", self.priorities.medium, 0.0, any),
            (
                "priorities.hasty",
                self.priorities.hasty.unwrap_or(0.0),
                0.0,
                any,
            ),
            ("extras.bias", self.extras.bias, 0.0, 1000.0),
            ("extras.smoothing", self.extras.smoothing, 0.0, 0.99),
            (
                "extras.reports.share",
                reports.map_or(0.0, |law| law.share),
                0.0,
                1.0,
            ),
            (
                "extras.reports.change",
                reports.map_or(1.0, |law| law.change),
                0.1,
                1000.0,
            ),
            ("fusion.free_min", free_min, 0.0, 1.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
        ];
        let [.., first, second, third, fourth, fifth] = &mut ranges;
        match law {
            RateLaw::Queue(law) => {
                *first = ("rate.step", law.step, 0.0, any);
                *second = ("rate.start", law.start, law.floor, law.ceiling);
                *third = ("rate.floor", law.floor, 0.001, law.ceiling);
            }
            RateLaw::Price(law) => *first = ("rate.gain", law.gain, 0.001, any),
            RateLaw::Overheard(law) => {
                *first = ("rate.most", law.most, 1.0, 1000.0);
                *second = ("rate.floor", law.floor, 0.001, any);
            }
            RateLaw::Airtime(law) => {
                *first = ("rate.load", law.load, 0.01, 100.0);
                *second = ("rate.floor", law.floor, 1e-4, law.ceiling);
                *third = ("rate.start", law.start, 0.1, 1000.0);
                *fourth = ("rate.fairness", law.fairness, 0.5, 8.0);
                *fifth = ("rate.bucket", law.bucket, 1.0, 1000.0);
            }
            RateLaw::Unlimited => {}
        }
        let outside =
            |&&(_, given, least, most): &&(&str, f64, f64, f64)| !(least..=most).contains(&given);
        match ranges.iter().find(outside) {
            Some(&(name, given, least, most)) => Err(ConfigError::Range {
                name,
                given,
                least,
                most,
            }),
            None => Ok(()),
        }
    }
}

/// Why a configuration is not valid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// A number or time that must be at least 1 (1 ms) is not.
    Zero {
        /// The parameter's name, such as `queues.limit`.
        name: &'static str,
    },
    /// A number is above its limit.
    TooLarge {
        /// The parameter's name, such as `queues.limit`.
        name: &'static str,
        /// The value that was given.
        given: u64,
        /// The largest value allowed.
        most: u64,
    },
    /// A number is outside its range.
    Range {
        /// The parameter's name, such as `queues.limit`.
        name: &'static str,
        /// The value that was given.
        given: f64,
        /// The smallest value allowed.
        least: f64,
        /// The largest value allowed.
        most: f64,
    },
    /// The link lacks an ability that is needed.
    Link(Missing),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Zero { name } => write!(f, "{name} must be at least 1 (times: 1 ms)"),
            ConfigError::TooLarge { name, given, most } => {
                write!(f, "{name} = {given} is more than {most}")
            }
            ConfigError::Range {
                name,
                given,
                least,
                most,
            } => write!(f, "{name} = {given} is not between {least} and {most}"),
            ConfigError::Link(missing) => missing.fmt(f),
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps {
        frame_max: 2296,
        schedules: false,
        start_error: Duration::ZERO,
        reports_power: false,
        overhears: true,
        confirms_broadcast: true,
        hastens: false,
    };

    #[test]
    fn the_named_settings_are_valid() {
        for settings in [
            Settings::paper(),
            Settings::improved(),
            Settings::shortest_path(),
            Settings::fusion(),
            Settings::dclo(),
        ] {
            assert_eq!(settings.check(&CAPS), Ok(()));
        }
    }

    #[test]
    fn values_out_of_range_are_named() {
        let check = |change: fn(&mut Settings)| {
            let mut settings = Settings::paper();
            change(&mut settings);
            settings.check(&CAPS).unwrap_err()
        };
        assert_eq!(
            check(|s| s.room.flows = 0),
            ConfigError::Zero { name: "room.flows" }
        );
        assert!(matches!(
            check(|s| s.probes.window = 64),
            ConfigError::TooLarge {
                name: "probes.window",
                ..
            }
        ));
        assert!(matches!(
            check(|s| s.next_hops.beta = f64::NAN),
            ConfigError::Range {
                name: "next_hops.beta",
                ..
            }
        ));
        assert!(matches!(
            check(|s| s.room.payload = 2290),
            ConfigError::Link(Missing::FrameSize { needed: 2306, .. })
        ));
    }
}
