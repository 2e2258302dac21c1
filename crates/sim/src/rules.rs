//! A profile made ready for the hot path: thresholds as whole zeptowatts and plain ratios.

use chappe_core::{Db, Dbm, Mode, Rate};

use crate::error_curve::ErrorCurves;
use crate::power::MILLIWATT;
use crate::{Oqpsk, Profile, Rule, Window};

/// Which of the survival rules is in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Judge {
    Curves,
    Threshold(f64),
    Pairwise(f64),
    Overlap,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) judge: Judge,
    pub(crate) noise: u64,
    pub(crate) lock_power: u64,
    pub(crate) lock_ratio: f64,
    /// The least power whose preamble is found over noise alone.
    pub(crate) heard: u64,
    /// Signals under this are nothing but energy to an idle radio. Where identical frames add up, that lies 12 dB lower.
    pub(crate) glides: u64,
    pub(crate) decode_power: u64,
    /// Infinite where nothing captures.
    pub(crate) capture_ratio: f64,
    pub(crate) window: Window,
    pub(crate) carrier_sense: u64,
    pub(crate) vanish: u64,
    pub(crate) turnaround: u64,
    pub(crate) curves: &'static ErrorCurves,
    /// How the frames are sent whose headers make the channel busy.
    sensed: Mode,
}

impl Rules {
    pub(crate) fn new(profile: &Profile) -> Rules {
        let judge = match profile.rule {
            Rule::ErrorCurves => Judge::Curves,
            Rule::SnrThreshold(ratio) => Judge::Threshold(ratio.to_linear()),
            Rule::Pairwise(ratio) => Judge::Pairwise(ratio.to_linear()),
            Rule::Overlap => Judge::Overlap,
        };
        let (capture_ratio, window) = match profile.capture {
            Some(capture) => (capture.margin.to_linear(), capture.window),
            None => (f64::INFINITY, Window::Frame),
        };
        let mut rules = Rules {
            judge,
            heard: 0,
            glides: 0,
            noise: threshold(profile.noise).max(1),
            lock_power: threshold(profile.lock.power),
            lock_ratio: profile.lock.sinr.to_linear(),
            decode_power: threshold(profile.decode_power),
            capture_ratio,
            window,
            carrier_sense: threshold(profile.carrier_sense).max(1),
            // A signal of no power is no signal.
            vanish: profile.vanish_below.map_or(0, threshold).max(1),
            turnaround: profile.turnaround.nanos(),
            sensed: Mode::long(match profile.dot15d4 {
                Some(_) => Rate::Oqpsk250,
                None => Rate::Dsss1,
            }),
            curves: ErrorCurves::get(profile.dot15d4.map_or(Oqpsk::IeeeE418, |radio| radio.oqpsk)),
        };
        rules.heard = rules.least_heard();
        let adds_up = profile
            .dot15d4
            .is_some_and(|radio| radio.synchronous.is_some());
        rules.glides = if adds_up {
            rules.heard >> 4
        } else {
            rules.heard
        };
        rules
    }

    /// Whether a preamble is found grows with its power: halve the numbers.
    fn least_heard(&self) -> u64 {
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.locks(middle, 0) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Whether a signal's preamble is found over `interference`.
    #[inline]
    pub(crate) fn locks(&self, power: u64, interference: u64) -> bool {
        power >= self.lock_power
            && power as f64 >= self.lock_ratio * self.noise.wrapping_add(interference) as f64
    }

    /// The probability that a frame arriving with this power survives if nobody else is on the air.
    pub(crate) fn alone(&self, power: u64, mode: Mode, octets: usize) -> f64 {
        if power < self.vanish || power < self.decode_power || !self.locks(power, 0) {
            return 0.0;
        }
        let ratio = power as f64 / self.noise as f64;
        match self.judge {
            Judge::Curves => match self.ln_alone(ratio, mode, octets) {
                ln if ln > -1e-12 => 1.0,
                ln => libm::exp(ln),
            },
            Judge::Threshold(needed) => f64::from(ratio >= needed),
            Judge::Pairwise(_) | Judge::Overlap => 1.0,
        }
    }

    /// The logarithm of the probability that header and payload survive at one ratio throughout.
    pub(crate) fn ln_alone(&self, ratio: f64, mode: Mode, octets: usize) -> f64 {
        let payload = octets as f64 * 8.0 * self.curves.of(mode.rate).ln_success(ratio);
        payload + self.ln_header(ratio, mode)
    }

    /// The logarithm of the probability that the PHY header survives at one ratio throughout.
    pub(crate) fn ln_header(&self, ratio: f64, mode: Mode) -> f64 {
        let (header_bits, header_rate, _) = self.curves.header(mode);
        header_bits * self.curves.of(header_rate).ln_success(ratio)
    }

    /// The probability that a frame arriving with this power, alone on the air, makes the channel busy: by its energy,
    /// or because its header (with the long preamble) survives and it is received.
    pub(crate) fn sensed(&self, power: u64) -> f64 {
        if power < self.vanish {
            return 0.0;
        }
        if power >= self.carrier_sense {
            return 1.0;
        }
        match self.judge {
            _ if !self.locks(power, 0) => 0.0,
            Judge::Curves => {
                let ratio = power as f64 / self.noise as f64;
                libm::exp(self.ln_header(ratio, self.sensed))
            }
            _ => 1.0,
        }
    }
}

/// A threshold in zeptowatts. Not capped as signals are: one above every signal must stay there.
fn threshold(power: Dbm) -> u64 {
    libm::round(power.to_milliwatt().0 * MILLIWATT) as u64
}

/// Linear factors of the rejection of neighbouring channels.
pub(crate) fn rejection(profile: &Profile) -> Vec<f64> {
    profile
        .rejection
        .iter()
        .map(|&Db(loss)| Db(-loss).to_linear())
        .collect()
}
