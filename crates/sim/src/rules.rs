//! A profile prepared for the hot path: thresholds as whole zeptowatts, margins as linear ratios.

use chappe_core::{Db, Duration, Mode, Rate};

use crate::error_curve::ErrorCurves;
use crate::{Oqpsk, Power, Profile, Rule, Window};

/// The least power: thresholds below it would let signals without power through.
const LEAST: Power = Power(1);

/// The survival rule in force; see [`Rule`].
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
    pub(crate) noise: Power,
    pub(crate) lock_power: Power,
    pub(crate) lock_ratio: f64,
    /// The least power whose preamble is found over noise alone.
    pub(crate) heard: Power,
    /// Weaker signals are only energy to an idle radio: a cursor passes them without a closer look. Where identical frames
    /// add up this lies 12 dB lower, since sixteen of them may be heard together.
    pub(crate) examined: Power,
    /// Identical frames add up: a radio that receives examines every signal.
    pub(crate) adds_up: bool,
    /// Nothing passes a radio that receives: identical frames add up, or links have losses of their own.
    pub(crate) vigilant: bool,
    /// Powers and bits alone decide: error curves, no identical frames that add up, no losses of links' own.
    pub(crate) plain: bool,
    pub(crate) search: Duration,
    pub(crate) decode_power: Power,
    /// Infinite where nothing captures.
    pub(crate) capture_ratio: f64,
    pub(crate) window: Window,
    pub(crate) carrier_sense: Power,
    pub(crate) vanish: Power,
    pub(crate) turnaround: Duration,
    /// The channel on which radios start, and on which weak signals may pass unexamined.
    pub(crate) home: u8,
    pub(crate) curves: &'static ErrorCurves,
    /// The mode of the frames whose headers make the channel busy.
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
            // No ratio reaches infinity, so no branch is needed for profiles without capture.
            None => (f64::INFINITY, Window::Frame),
        };
        let mut rules = Rules {
            judge,
            heard: Power::ZERO,
            examined: Power::ZERO,
            adds_up: profile
                .dot15d4
                .is_some_and(|radio| radio.synchronous.is_some()),
            vigilant: false,
            plain: false,
            noise: Power::threshold(profile.noise).max(LEAST),
            lock_power: Power::threshold(profile.lock.power),
            lock_ratio: profile.lock.sinr.to_linear(),
            search: profile.search,
            decode_power: Power::threshold(profile.decode_power),
            capture_ratio,
            window,
            carrier_sense: Power::threshold(profile.carrier_sense).max(LEAST),
            // A signal without power is no signal.
            vanish: profile
                .vanish_below
                .map_or(LEAST, |power| Power::threshold(power).max(LEAST)),
            turnaround: profile.turnaround,
            home: profile.channel.0,
            sensed: Mode::long(match profile.dot15d4 {
                Some(_) => Rate::Oqpsk250,
                None => Rate::Dsss1,
            }),
            curves: ErrorCurves::get(profile.dot15d4.map_or(Oqpsk::IeeeE418, |radio| radio.oqpsk)),
        };
        rules.vigilant = rules.adds_up;
        rules.heard = rules.least_heard();
        rules.examined = if rules.adds_up {
            Power(rules.heard.0 >> 4)
        } else {
            rules.heard
        };
        rules
    }

    /// The least power that [`locks`](Self::locks) over noise alone, by bisection. Not from a formula: the cursors skip
    /// what is weaker, so this must agree with `locks` to the last bit.
    fn least_heard(&self) -> Power {
        let (mut low, mut high) = (0, i64::MAX as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.locks(Power(middle), Power::ZERO) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Power(low)
    }

    /// Whether a signal's preamble is found over `interference`.
    #[inline]
    pub(crate) fn locks(&self, power: Power, interference: Power) -> bool {
        power >= self.lock_power
            && power.as_f64() >= self.lock_ratio * self.noise.plus(interference).as_f64()
    }

    /// The probability that a frame arriving with this power survives if no other signal is on the air.
    pub(crate) fn alone(&self, power: Power, mode: Mode, octets: usize) -> f64 {
        if power < self.vanish || power < self.decode_power || !self.locks(power, Power::ZERO) {
            return 0.0;
        }
        let ratio = power.as_f64() / self.noise.as_f64();
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
        let header = self.curves.header(mode);
        header.bits * self.curves.of(header.rate).ln_success(ratio)
    }

    /// The probability that a frame arriving with this power, alone on the air, makes the channel busy: by its energy,
    /// or because its header (with the long preamble) survives and it is received.
    pub(crate) fn sensed(&self, power: Power) -> f64 {
        if power < self.vanish {
            return 0.0;
        }
        if power >= self.carrier_sense {
            return 1.0;
        }
        match self.judge {
            _ if !self.locks(power, Power::ZERO) => 0.0,
            Judge::Curves => {
                let ratio = power.as_f64() / self.noise.as_f64();
                libm::exp(self.ln_header(ratio, self.sensed))
            }
            _ => 1.0,
        }
    }
}

/// Channel of an interferer that reaches every channel.
pub(crate) const EVERY_CHANNEL: u8 = u8::MAX;

/// How much of a signal a receiver one, two... channels away hears: linear factors. Further channels are not heard.
#[derive(Debug)]
pub(crate) struct Rejection(Vec<f64>);

impl Rejection {
    pub(crate) fn new(profile: &Profile) -> Rejection {
        let factor = |&Db(loss): &Db| Db(-loss).to_linear();
        Rejection(profile.rejection.iter().map(factor).collect())
    }

    /// How many channels away a signal still counts.
    #[inline]
    pub(crate) fn reach(&self) -> u8 {
        self.0.len() as u8
    }

    /// Power of a signal on one channel for a radio on another.
    pub(crate) fn across(&self, power: Power, from: u8, to: u8) -> Power {
        if from == to || from == EVERY_CHANNEL {
            return power;
        }
        match self.0.get(usize::from(from.abs_diff(to)) - 1) {
            Some(factor) => Power::rounded_down(power.as_f64() * factor),
            None => Power::ZERO,
        }
    }
}
