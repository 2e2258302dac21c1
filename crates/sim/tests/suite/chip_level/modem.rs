//! O-QPSK with half-sine chips at 2.4 GHz, sample by sample, and a receiver that compares neighbouring chips.
//!
//! Complex baseband, four samples to a chip of 0.5 us. The waveform of a transmitter is evaluated at its own time, so
//! that a displacement need not be a whole number of samples. Noise is white over the 8 MHz that are sampled.
//!
//! A receiver smooths over one chip and finds the chip clock by correlating the preamble. Then one of two takes over. The
//! first takes the sine of the phase step between neighbouring chips and chooses of the 16 symbols the one whose 31
//! steps fit best, without any carrier recovery. The second measures the carrier in the preamble and chooses the symbol
//! whose 32 chips add up, as complex numbers, to the greatest power. Real chips' demodulators are not public; these are
//! of their kinds.

use chappe_core::{Purpose, Seed, Stream};

/// Samples to a chip.
pub const SAMPLES: usize = 4;
/// Chips to a symbol.
pub const CHIPS: usize = 32;
/// The first symbol that must be right: two of the preamble, then SFD.
pub const FIRST_NEEDED: usize = 6;
/// Seconds to a sample.
const STEP: f64 = 0.5e-6 / SAMPLES as f64;
/// Samples before the first signal, so that the clock may be found early.
const LEAD: usize = 2 * SAMPLES;

/// One transmitter as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Amplitude over that of a signal of power 1.
    pub amplitude: f64,
    /// Carrier offset in hertz.
    pub offset: f64,
    /// Displacement in seconds, not negative.
    pub delay: f64,
    /// Carrier phase at the start, in radians.
    pub phase: f64,
    /// Which of the payloads it sends.
    pub payload: usize,
}

/// How symbols are distinguished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Receiver {
    /// By the steps between neighbouring chips.
    Comparing,
    /// By the power of the sum of all chips, after the carrier has been taken from the preamble.
    Adding,
}

/// The chips of the 16 symbols as signs (IEEE 802.15.4-2006, table 24): shifts by four of one sequence, then the same
/// with every other chip turned.
pub struct Modem {
    chips: [[f64; CHIPS]; 16],
    /// Phase step from each chip to the next within a symbol: a quarter turn forwards or backwards.
    steps: [[f64; CHIPS - 1]; 16],
}

/// A normal pair from one pair of draws.
fn normals(random: &mut Stream) -> (f64, f64) {
    let radius = (-2.0 * random.fraction().ln()).sqrt();
    let (sin, cos) = (2.0 * std::f64::consts::PI * random.fraction()).sin_cos();
    (radius * cos, radius * sin)
}

/// Chips turned back by their signs and added up. Even ones are sent in phase, odd ones in quadrature.
fn add_up(signs: &[f64], chips: &[(f64, f64)]) -> (f64, f64) {
    let (mut re, mut im) = (0.0, 0.0);
    for (place, (sign, &(i, q))) in signs.iter().zip(chips).enumerate() {
        let (i, q) = if place % 2 == 0 { (i, q) } else { (q, -i) };
        re += sign * i;
        im += sign * q;
    }
    (re, im)
}

impl Modem {
    pub fn new() -> Modem {
        let base = 0b1101_1001_1100_0011_0101_0010_0010_1110_u32;
        let mut chips = [[0.0; CHIPS]; 16];
        for (symbol, row) in chips.iter_mut().enumerate() {
            let word = base.rotate_right(4 * (symbol as u32 % 8));
            for (place, chip) in row.iter_mut().enumerate() {
                let one = word >> (31 - place) & 1 == 1;
                let turned = symbol >= 8 && place % 2 == 1;
                *chip = if one != turned { 1.0 } else { -1.0 };
            }
        }
        let steps = chips.map(|row| {
            std::array::from_fn(|place| {
                let product = row[place] * row[place + 1];
                if place % 2 == 0 { product } else { -product }
            })
        });
        Modem { chips, steps }
    }

    /// A frame of `octets` random octets behind its preamble, SFD (0xA7) and PHR, as symbols.
    pub fn frame(&self, octets: usize, random: &mut Stream) -> Vec<u8> {
        let mut symbols = vec![0; 8];
        symbols.extend([7, 10, octets as u8 & 15, octets as u8 >> 4 & 15]);
        symbols.extend((0..2 * octets).map(|_| random.below(16) as u8));
        symbols
    }

    /// What arrives: all signals and noise of power `1 / snr` in 2 MHz.
    pub fn air(
        &self,
        payloads: &[Vec<u8>],
        signals: &[Signal],
        snr: f64,
        random: &mut Stream,
    ) -> Vec<(f64, f64)> {
        let symbols = payloads.iter().map(Vec::len).max().unwrap_or(0);
        let late = signals.iter().map(|s| s.delay).fold(0.0, f64::max);
        let len = LEAD + (symbols * CHIPS + 4) * SAMPLES + (late / STEP) as usize;
        let deviation = (SAMPLES as f64 / snr / 2.0).sqrt();
        let noise = |_| {
            let (i, q) = normals(random);
            (deviation * i, deviation * q)
        };
        let mut air: Vec<(f64, f64)> = (0..len).map(noise).collect();
        for signal in signals {
            self.add(&mut air, &payloads[signal.payload], signal);
        }
        air
    }

    /// Adds one transmitter's waveform.
    fn add(&self, air: &mut [(f64, f64)], symbols: &[u8], signal: &Signal) {
        let chips: Vec<f64> = symbols
            .iter()
            .flat_map(|&symbol| self.chips[usize::from(symbol)])
            .collect();
        let shift = signal.delay / STEP;
        let first = shift.ceil() as usize;
        let part = first as f64 - shift;
        // A chip lasts two chip times; at each moment an even one (in phase) and an odd one (in quadrature) sound.
        let pulse: [f64; 2 * SAMPLES] = std::array::from_fn(|n| {
            (std::f64::consts::PI * (n as f64 + part) / (2 * SAMPLES) as f64).sin()
        });
        let turn = 2.0 * std::f64::consts::PI * signal.offset * STEP;
        let (turn_sin, turn_cos) = turn.sin_cos();
        let at = signal.phase + turn * first as f64;
        let (mut sin, mut cos) = at.sin_cos();
        let room = air.iter_mut().skip(LEAD + first);
        for (n, sample) in room.take((chips.len() + 1) * SAMPLES).enumerate() {
            let (chip, inside) = (n / SAMPLES, n % SAMPLES);
            let now = chips.get(chip).map_or(0.0, |c| c * pulse[inside]);
            let before = chip
                .checked_sub(1)
                .and_then(|place| chips.get(place))
                .map_or(0.0, |c| c * pulse[inside + SAMPLES]);
            let (i, q) = if chip % 2 == 0 {
                (now, before)
            } else {
                (before, now)
            };
            sample.0 += signal.amplitude * (i * cos - q * sin);
            sample.1 += signal.amplitude * (i * sin + q * cos);
            (cos, sin) = (
                cos * turn_cos - sin * turn_sin,
                cos * turn_sin + sin * turn_cos,
            );
        }
    }

    /// Smooths over one chip and takes every fourth sample from `clock` on.
    fn chips_at(&self, air: &[(f64, f64)], clock: usize, count: usize) -> Vec<(f64, f64)> {
        let tap = |at: usize| air.get(at).copied().unwrap_or((0.0, 0.0));
        (0..count)
            .map(|chip| {
                let middle = clock + (chip + 1) * SAMPLES;
                let ends = (tap(middle - 2), tap(middle + 2));
                let inner = [tap(middle - 1), tap(middle), tap(middle + 1)];
                let sum = |axis: fn((f64, f64)) -> f64| {
                    0.5 * (axis(ends.0) + axis(ends.1)) + inner.map(axis).iter().sum::<f64>()
                };
                (sum(|s| s.0), sum(|s| s.1))
            })
            .collect()
    }

    /// How well each of the 16 symbols fits 32 chips.
    fn fits(&self, chips: &[(f64, f64)]) -> [f64; 16] {
        let mut found = [0.0; CHIPS - 1];
        for (step, pair) in found.iter_mut().zip(chips.windows(2)) {
            *step = pair[1].1 * pair[0].0 - pair[1].0 * pair[0].1;
        }
        self.steps
            .map(|steps| steps.iter().zip(&found).map(|(a, b)| a * b).sum())
    }

    /// How well each of the 16 symbols fits 32 chips for a receiver that adds the chips up as complex numbers over the
    /// whole symbol and looks at the power of the sum.
    fn sums(&self, chips: &[(f64, f64)]) -> [f64; 16] {
        self.chips.map(|row| {
            let (re, im) = add_up(&row, chips);
            re * re + im * im
        })
    }

    /// Carrier offset in radians to a chip: the phase step between neighbouring halves of preamble symbols 1 to 4. It
    /// is found up to 62 kHz.
    fn carrier(&self, chips: &[(f64, f64)]) -> f64 {
        let half = CHIPS / 2;
        let sum = |number: usize, part: &[(f64, f64)]| {
            let row = &self.chips[0][number % 2 * half..];
            add_up(&row[..half.min(part.len())], part)
        };
        let halves = chips.chunks(half).enumerate().skip(2).take(8);
        let sums: Vec<(f64, f64)> = halves.map(|(number, part)| sum(number, part)).collect();
        let (mut re, mut im) = (0.0, 0.0);
        for pair in sums.windows(2) {
            let ((a, b), (c, d)) = (pair[0], pair[1]);
            re += a * c + b * d;
            im += a * d - b * c;
        }
        im.atan2(re) / half as f64
    }

    /// Where the chip clock stands: the sample at which preamble symbols 1 to 4 fit best, up to `late` seconds after
    /// the first signal.
    pub fn clock(&self, air: &[(f64, f64)], late: f64) -> usize {
        let range = LEAD - SAMPLES..=LEAD + SAMPLES + (late / STEP) as usize;
        let fit = |clock: usize| -> f64 {
            let chips = self.chips_at(air, clock + CHIPS * SAMPLES, 4 * CHIPS);
            chips.chunks(CHIPS).map(|symbol| self.fits(symbol)[0]).sum()
        };
        let best = range.map(|clock| (fit(clock), clock));
        best.max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(LEAD, |best| best.1)
    }

    /// The symbols that a receiver reads. The one that adds chips up turns them back by `carrier` radians to a chip.
    fn read(
        &self,
        receiver: Receiver,
        air: &[(f64, f64)],
        (clock, symbols): (usize, usize),
        carrier: impl FnOnce(&[(f64, f64)]) -> f64,
    ) -> Vec<u8> {
        let mut chips = self.chips_at(air, clock, symbols * CHIPS);
        if receiver == Receiver::Adding {
            let turn = carrier(&chips);
            for (place, (i, q)) in chips.iter_mut().enumerate() {
                let (sin, cos) = (-turn * place as f64).sin_cos();
                (*i, *q) = (*i * cos - *q * sin, *i * sin + *q * cos);
            }
        }
        let best = |fits: [f64; 16]| {
            let place = (0..16).max_by(|&a, &b| fits[a].total_cmp(&fits[b]));
            place.unwrap_or(0) as u8
        };
        let fits = |symbol| match receiver {
            Receiver::Comparing => self.fits(symbol),
            Receiver::Adding => self.sums(symbol),
        };
        chips
            .chunks(CHIPS)
            .map(|symbol| best(fits(symbol)))
            .collect()
    }

    /// Symbol errors of a single transmitter in `symbols` random symbols at a ratio, without carrier offset and
    /// with a perfect clock.
    pub fn symbol_errors(
        &self,
        receiver: Receiver,
        snr: f64,
        symbols: usize,
        random: &mut Stream,
    ) -> usize {
        let mut errors = 0;
        for _ in 0..symbols.div_ceil(500) {
            let sent: Vec<u8> = (0..500).map(|_| random.below(16) as u8).collect();
            let signal = Signal {
                amplitude: 1.0,
                offset: 0.0,
                delay: 0.0,
                phase: 2.0 * std::f64::consts::PI * random.fraction(),
                payload: 0,
            };
            let air = self.air(std::slice::from_ref(&sent), &[signal], snr, random);
            let read = self.read(receiver, &air, (LEAD, sent.len()), |_| 0.0);
            errors += read.iter().zip(&sent).filter(|(a, b)| a != b).count();
        }
        errors
    }

    /// Whether a receiver gets payload 0 of these signals: preamble's end, SFD, PHR and PSDU all right.
    pub fn receives(
        &self,
        receiver: Receiver,
        octets: usize,
        signals: &[Signal],
        snr: f64,
        random: &mut Stream,
    ) -> bool {
        let payloads = signals.iter().map(|s| s.payload).max().unwrap_or(0) + 1;
        let frames: Vec<_> = (0..payloads).map(|_| self.frame(octets, random)).collect();
        let air = self.air(&frames, signals, snr, random);
        let late = signals.iter().map(|s| s.delay).fold(0.0, f64::max);
        let clock = self.clock(&air, late);
        let carrier = |chips: &[(f64, f64)]| self.carrier(chips);
        let read = self.read(receiver, &air, (clock, frames[0].len()), carrier);
        read[FIRST_NEEDED..] == frames[0][FIRST_NEEDED..]
    }
}

/// Random numbers of one experiment.
pub fn stream(number: u32) -> Stream {
    Seed(154).stream(Purpose::Trial(number))
}
