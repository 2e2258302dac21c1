//! The 802.15.4 part of a profile: receiver, chips, and how channels at 2.4 GHz differ.

use chappe_core::{Db, Dbm, Duration, Purpose, Seed, Stream};

use crate::{Oqpsk, Synchronous};

/// The 802.15.4 half of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot15d4 {
    /// The receiver that decodes its symbols.
    pub oqpsk: Oqpsk,
    /// How channels differ; `None` makes them equal.
    pub selectivity: Option<Selectivity>,
    /// How identical simultaneous frames add up; `None` makes them interference to each other.
    pub synchronous: Option<Synchronous>,
}

/// A radio chip: figures of its data sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// Its name, as in profile names.
    pub name: &'static str,
    /// Power at which one frame of 20 octets in a hundred is lost, in white noise.
    pub sensitivity: Dbm,
    /// The highest transmit power.
    pub power_max: Dbm,
    /// From receiving to transmitting, and back.
    pub turnaround: Duration,
    /// Least time from the end of a frame to the start of the sender's next one.
    pub frame_gap: Duration,
    /// A transmission that waits for an instant starts up to this late.
    pub start_error: Duration,
    /// Default energy threshold of its clear channel assessment.
    pub cca: Dbm,
    /// Margin over another frame on its channel that a frame needs.
    pub co_channel: Db,
    /// Rejection one, two... channels (5 MHz each) away, the worse of both sides. Further channels are not heard.
    pub rejection: &'static [Db],
}

impl Chip {
    /// TI CC2420: 192 us of calibration before either direction (12 symbols). The figures of its data sheet (SWRS041)
    /// are from memory, unchecked: -95 dBm typical, CCA at -77 dBm, co-channel -3 dB, adjacent 45/30 dB, alternate
    /// 54/53 dB. It calibrates before each frame, also after one of its own. The timer that starts frames on its boards has 4.19 MHz
    /// (TelosB), a tick of 239 ns.
    pub const CC2420: Chip = Chip {
        name: "cc2420",
        sensitivity: Dbm(-95.0),
        power_max: Dbm(0.0),
        turnaround: Duration::from_micros(192),
        frame_gap: Duration::from_micros(192),
        start_error: Duration::from_nanos(239),
        cca: Dbm(-77.0),
        co_channel: Db(3.0),
        rejection: &[Db(30.0), Db(53.0)],
    };

    /// Microchip AT86RF233 (sensitivity -101 dBm, +4 dBm); rejection after its predecessor's data sheet (AT86RF231, table
    /// 12-7: 32/35, 48, 54 dB). Turnaround, CCA default and co-channel figure are not from that table: 16 us and
    /// -77 dBm from memory of the data sheet, 3 dB as the CC2420. Between two frames it takes the turnaround, and starts them by a
    /// timer of 16 MHz: judgements.
    pub const AT86RF233: Chip = Chip {
        name: "at86rf233",
        sensitivity: Dbm(-101.0),
        power_max: Dbm(4.0),
        turnaround: Duration::from_micros(16),
        frame_gap: Duration::from_micros(16),
        start_error: Duration::from_nanos(63),
        cca: Dbm(-77.0),
        co_channel: Db(3.0),
        rejection: &[Db(32.0), Db(48.0), Db(54.0)],
    };

    /// Nordic nRF52840: -100 dBm, +8 dBm and 40 us of fast ramp-up, from memory of its product specification. CCA,
    /// co-channel and rejection are those of the AT86RF233, for lack of figures: judgements. After a frame its transmitter stays ready (state TXIDLE) and starts the next one without
    /// another ramp-up; 16 us for the processor to point it at that frame are a judgement. Its timers have 16 MHz.
    pub const NRF52840: Chip = Chip {
        name: "nrf52840",
        sensitivity: Dbm(-100.0),
        power_max: Dbm(8.0),
        turnaround: Duration::from_micros(40),
        ..Chip::AT86RF233
    };

    /// The noise that reproduces the stated sensitivity: one frame of 20 octets in a hundred is lost.
    pub fn noise(&self, oqpsk: Oqpsk) -> Dbm {
        self.sensitivity - oqpsk.sinr_for(20, 0.99)
    }
}

/// How the static gain of a link differs between channels: multipath, frozen in frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selectivity {
    /// Bandwidth over which the gain stays correlated: the correlation of the complex gain at a distance of `d` is
    /// `exp(-d / coherence)`. In hertz.
    pub coherence: f64,
    /// Power of the direct path over that of all others (Rician factor, linear); zero is Rayleigh.
    pub direct: f64,
}

/// The first channel at 2.4 GHz (IEEE 802.15.4-2006, 6.1.2.1).
pub const CHANNEL_MIN: u8 = 11;
/// The last channel at 2.4 GHz.
pub const CHANNEL_MAX: u8 = 26;
const SPACING: f64 = 5e6;
/// Scattered amplitudes beyond this many deviations are cut. Without a bound on the gain, no reach of links could be stated.
const SCATTER_MAX: f64 = 4.0;

/// Centre of a channel in hertz (IEEE 802.15.4-2006, 6.1.2.1).
pub fn carrier(channel: u8) -> f64 {
    2.405e9 + SPACING * (f64::from(channel) - f64::from(CHANNEL_MIN))
}

impl Selectivity {
    /// The gain between two nodes on a channel in dB, the same in both directions. `stream` is read by position; the
    /// complex gain walks from channel to channel, so that the correlation is an exponential.
    pub(crate) fn gain(self, stream: &Stream, a: u32, b: u32, channel: u8) -> f64 {
        let step = libm::exp(-SPACING / self.coherence.max(1.0));
        let fresh = libm::sqrt(1.0 - step * step);
        let (mut re, mut im) = (0.0, 0.0);
        for at in CHANNEL_MIN..=channel.clamp(CHANNEL_MIN, CHANNEL_MAX) {
            let (x, y) = pair(stream, a, b, at);
            let (keep, add) = if at == CHANNEL_MIN {
                (0.0, 1.0)
            } else {
                (step, fresh)
            };
            (re, im) = (keep * re + add * x, keep * im + add * y);
        }
        let amplitude = libm::sqrt(re * re + im * im);
        let cut = (SCATTER_MAX / amplitude.max(SCATTER_MAX)).min(1.0);
        let (re, im) = (re * cut + libm::sqrt(self.direct), im * cut);
        10.0 * libm::log10(((re * re + im * im) / (self.direct + 1.0)).max(1e-12))
    }

    /// The largest gain there can be, in dB.
    pub(crate) fn gain_max(self) -> f64 {
        20.0 * libm::log10(libm::sqrt(self.direct) + SCATTER_MAX)
            - 10.0 * libm::log10(self.direct + 1.0)
    }

    /// The stream that belongs to a medium's seed.
    pub(crate) fn stream(seed: Seed) -> Stream {
        seed.child(0x15_04).stream(Purpose::Shadowing)
    }
}

/// A complex normal number of power 1 for an unordered pair and channel.
fn pair(stream: &Stream, a: u32, b: u32, channel: u8) -> (f64, f64) {
    let (low, high) = (u64::from(a.min(b)), u64::from(a.max(b)));
    let position = low << 40 | high << 16 | u64::from(channel) << 1;
    let radius = libm::sqrt(-libm::log(stream.fraction_at(position)));
    let angle = 2.0 * std::f64::consts::PI * stream.fraction_at(position | 1);
    (radius * libm::cos(angle), radius * libm::sin(angle))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean power one, the same both ways, and a correlation of the complex gain that shows in the powers: for a
    /// Rayleigh law it is the square of the amplitudes', exp(-2 d / Bc).
    #[test]
    fn channels_are_correlated_as_stated() {
        let law = Selectivity {
            coherence: 10e6,
            direct: 0.0,
        };
        let stream = Selectivity::stream(Seed(3));
        let n = 20_000;
        let power =
            |link: u32, channel| 10f64.powf(law.gain(&stream, link, link + 40_000, channel) / 10.0);
        assert_eq!(law.gain(&stream, 1, 2, 20), law.gain(&stream, 2, 1, 20));
        for (apart, expected) in [(1, (-1.0f64).exp()), (3, (-3.0f64).exp())] {
            let (mut mean, mut product) = (0.0, 0.0);
            for link in 0..n {
                let (x, y) = (power(link, 15), power(link, 15 + apart));
                mean += x;
                product += (x - 1.0) * (y - 1.0);
            }
            assert!((mean / f64::from(n) - 1.0).abs() < 0.04);
            let found = product / f64::from(n);
            assert!(
                (found - expected).abs() < 0.05,
                "{apart} {found} {expected}"
            );
        }
    }
}
