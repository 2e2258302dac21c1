//! A receiver that adds up a symbol's chips, worked out from tables: identical frames of several transmitters, symbol by
//! symbol, as the chip level has them.
//!
//! A transmitter's waveform, smoothed over a chip and sampled once a chip, is its chips weighted by the pulse at a few lags. So
//! what a candidate symbol collects is a sum over quarters of a symbol and lags of (all transmitters' phasors at that
//! lag) times (how many of eight chips agree), and the second factor stands in a table. The cost hardly depends on the
//! number of transmitters. Clock and carrier are found in the preamble as the chip-level receiver finds them.
//!
//! What is left out: a carrier turns in steps of a quarter symbol (4 us), and noise does not draw each sum. It is weighed by the
//! *margin*, the distance of the sent symbol's sum from the next one's: the margin of a single transmitter of power P is that
//! of the symbol error table at P, and any other sum counts as the power with the same margin.

use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

use crate::Oqpsk;
use crate::synchronous::Signal;

#[cfg(test)]
mod tests;

/// Chips to a symbol, and symbols there are.
const CHIPS: usize = 32;
const SYMBOLS: usize = 16;
/// Parts of a symbol within which no carrier turns.
const QUARTERS: usize = 4;
const PART: usize = CHIPS / QUARTERS;
/// Microseconds to a chip, and to a sample of the receiver.
const CHIP: f64 = 0.5;
const SAMPLE: f64 = 0.125;
/// The farthest lag in chips: frames that add up begin within 8 us of each other.
const LAG_MAX: i32 = 20;
const LAGS: usize = 2 * LAG_MAX as usize + 1;
/// Symbols of the preamble from which the receiver takes its clock and carrier: 1 to 4.
const PREAMBLE: std::ops::Range<usize> = 1..5;

/// The chips of each symbol, the first one in the lowest bit (IEEE 802.15.4-2006, table 24).
const SEQUENCES: [u32; SYMBOLS] = sequences();

const fn sequences() -> [u32; SYMBOLS] {
    let base = 0b1101_1001_1100_0011_0101_0010_0010_1110_u32;
    let mut rows = [0; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let word = base.rotate_right(4 * (symbol as u32 % 8)).reverse_bits();
        rows[symbol] = if symbol < 8 { word } else { word ^ 0xaaaa_aaaa };
        symbol += 1;
    }
    rows
}

/// The preamble's chips, all of symbol 0, as signs for both axes; eight may be read from any of the first 32.
static PREAMBLE_SIGNS: [Phasor; CHIPS + PART] = preamble_signs();

const fn preamble_signs() -> [Phasor; CHIPS + PART] {
    let mut signs = [(-1.0, -1.0); CHIPS + PART];
    let mut chip = 0;
    while chip < signs.len() {
        if SEQUENCES[0] >> (chip % CHIPS) & 1 == 1 {
            signs[chip] = (1.0, 1.0);
        }
        chip += 1;
    }
    signs
}

/// What eight chips in a row add up to for each candidate, in each quarter: by even lags (in phase) and by odd ones, where
/// in-phase chips fall on quadrature ones and every other one counts backwards.
type Agreement = [[[i8; SYMBOLS]; 256]; QUARTERS];
static EVEN: Agreement = agreement(0);
static ODD: Agreement = agreement(0xaa);

const fn agreement(turned: u8) -> Agreement {
    let mut table = [[[0; SYMBOLS]; 256]; QUARTERS];
    let mut quarter = 0;
    while quarter < QUARTERS {
        let mut chips = 0;
        while chips < 256 {
            let mut symbol = 0;
            while symbol < SYMBOLS {
                let sent = (SEQUENCES[symbol] >> (PART * quarter)) as u8;
                let apart = (sent ^ chips as u8 ^ turned).count_ones() as i8;
                table[quarter][chips][symbol] = PART as i8 - 2 * apart;
                symbol += 1;
            }
            chips += 1;
        }
        quarter += 1;
    }
    table
}

/// The half-sine pulse, smoothed over one chip, `micros` from its middle.
fn pulse(micros: f64) -> f64 {
    let taps = [(-2.0, 0.5), (-1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (2.0, 0.5)];
    let half = |at: f64| {
        if at.abs() < CHIP {
            libm::cos(PI * at)
        } else {
            0.0
        }
    };
    taps.iter()
        .map(|&(tap, weight)| weight * half(micros + tap * SAMPLE))
        .sum()
}

/// The lags at which a transmitter displaced by `late` microseconds sounds, with their weights.
fn lags(late: f64) -> impl Iterator<Item = (i32, f64)> {
    let reach = CHIP + 2.0 * SAMPLE;
    let bound = |micros: f64| (micros / CHIP).clamp(f64::from(-LAG_MAX), f64::from(LAG_MAX));
    let first = libm::ceil(bound(-reach - late)) as i32;
    let last = libm::floor(bound(reach - late)) as i32;
    (first..=last).map(move |lag| (lag, pulse(-CHIP * f64::from(lag) - late)))
}

/// A complex number: its real and imaginary part.
type Phasor = (f64, f64);

fn phasor(size: f64, angle: f64) -> Phasor {
    let (sin, cos) = libm::sincos(angle);
    (size * cos, size * sin)
}

#[inline]
fn times(a: Phasor, b: Phasor) -> Phasor {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// One transmitter as the receiver hears it by a clock.
#[derive(Clone, Debug)]
struct Voice {
    /// The middle of the quarter that comes next, and the turn to the one after it.
    now: Phasor,
    step: Phasor,
    sound: Sound,
}

/// The lags at which a transmitter sounds, from the first on.
#[derive(Clone, Copy, Debug)]
struct Sound {
    first_lag: i32,
    count: usize,
    weights: [f64; 4],
}

impl Sound {
    /// Of a transmitter displaced by `late` microseconds.
    fn new(late: f64) -> Sound {
        let mut sound = Sound {
            first_lag: 0,
            count: 0,
            weights: [0.0; 4],
        };
        // The smoothed pulse is a chip and a half long, so there are no more than four.
        for (lag, weight) in lags(late).take(4) {
            if sound.count == 0 {
                sound.first_lag = lag;
            }
            sound.weights[sound.count] = weight;
            sound.count += 1;
        }
        sound
    }

    #[inline]
    fn lags(&self) -> impl Iterator<Item = (i32, f64)> + use<> {
        let Sound {
            first_lag,
            count,
            weights,
        } = *self;
        (0..count).map(move |at| (first_lag + at as i32, weights[at]))
    }
}

/// All transmitters' phasors by lag, in one quarter of a symbol.
#[derive(Clone, Debug)]
struct Mix {
    first: i32,
    last: i32,
    sums: [Phasor; LAGS],
}

impl Mix {
    /// For transmitters that sound like this.
    fn of<'a>(sounds: impl Iterator<Item = &'a Sound>) -> Mix {
        let (mut first, mut last) = (i32::MAX, i32::MIN);
        for sound in sounds.filter(|sound| sound.count > 0) {
            first = first.min(sound.first_lag);
            last = last.max(sound.first_lag + sound.count as i32 - 1);
        }
        Mix {
            first,
            last,
            sums: [(0.0, 0.0); LAGS],
        }
    }

    fn clear(&mut self) {
        if self.first <= self.last {
            self.sums[place(self.first)..=place(self.last)].fill((0.0, 0.0));
        }
    }

    #[inline]
    fn add(&mut self, sound: &Sound, (re, im): Phasor) {
        let first = place(sound.first_lag);
        let sums = &mut self.sums[first..first + sound.count];
        for (sum, weight) in sums.iter_mut().zip(sound.weights) {
            *sum = (sum.0 + re * weight, sum.1 + im * weight);
        }
    }
}

#[inline]
fn place(lag: i32) -> usize {
    (lag + LAG_MAX) as usize
}

/// What a receiver takes from a frame's preamble and keeps to the frame's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Where its clock stands, in microseconds after the first arrival.
    pub clock: f64,
    /// The carrier that it follows, in hertz.
    pub carrier: f64,
}

/// Frames that add up, at a receiver that adds up their chips.
#[derive(Clone, Debug, Default)]
pub struct Chorus {
    signals: Vec<Signal>,
    voices: Vec<Voice>,
    /// Once it has been looked for.
    tuning: Option<Tuning>,
}

impl Chorus {
    /// The chorus of `signals`.
    pub fn new(signals: &[Signal]) -> Chorus {
        let mut chorus = Chorus::default();
        chorus.set(signals);
        chorus
    }

    /// Replaces the signals. Displacements beyond 8 us are cut to that.
    pub fn set(&mut self, signals: &[Signal]) {
        self.set_tuned(signals, None);
    }

    /// Replaces the signals by those of which [`tuning`](Self::tuning) may be known. Looking for it is what costs here, so who
    /// meets the same signals again keeps it.
    pub fn set_tuned(&mut self, signals: &[Signal], tuning: Option<Tuning>) {
        self.signals.clear();
        self.signals.extend_from_slice(signals);
        self.tuning = tuning;
    }

    /// Clock and carrier of these signals, found in the preamble at the first call.
    pub fn tuning(&mut self) -> Tuning {
        if let Some(tuning) = self.tuning {
            return tuning;
        }
        let tuning = self.tune();
        self.tuning = Some(tuning);
        tuning
    }

    /// Looks for clock and carrier.
    fn tune(&self) -> Tuning {
        let latest = self
            .signals
            .iter()
            .map(|signal| signal.arrival)
            .fold(0.0, f64::max);
        // What is the same by every clock: amplitudes, and the turns from quarter to quarter.
        let turning = |signal: &Signal| (libm::sqrt(signal.power), step(signal, 0.0));
        let turning: Vec<(f64, Phasor)> = self.signals.iter().map(turning).collect();
        let mut voices = Vec::with_capacity(turning.len());
        // A chip early to a chip after the last arrival, in samples, as the chip-level receiver looks.
        let samples = -4..=4 + (latest.min(8.0) / SAMPLE) as i32;
        let mut best = (f64::NEG_INFINITY, 0.0);
        let mut heard = [[(0.0, 0.0); PART]; QUARTERS * 4];
        for sample in samples {
            let clock = f64::from(sample) * SAMPLE;
            let by_clock = |(signal, &(amplitude, step)): (&Signal, &(f64, Phasor))| Voice {
                now: start(signal, amplitude, 0.0, clock, PREAMBLE.start),
                step,
                sound: Sound::new(signal.arrival - clock),
            };
            voices.clear();
            voices.extend(self.signals.iter().zip(&turning).map(by_clock));
            let chips = preamble(&mut voices);
            let fit = fit(chips.as_flattened());
            if fit > best.0 {
                (best, heard) = ((fit, clock), chips);
            }
        }
        Tuning {
            clock: best.1,
            carrier: carrier(heard.as_flattened()),
        }
    }

    /// Calls `each` with (symbol, power) for symbols `from..to` of a frame, counted from the first of the preamble, until it
    /// returns false. The power is that of a single transmitter that would be read as well. `sent` are the frame's symbols.
    pub fn symbols(
        &mut self,
        (from, to): (usize, usize),
        sent: impl Fn(usize) -> u8,
        mut each: impl FnMut(usize, f64) -> bool,
    ) {
        self.find_voices(from);
        let mut mix = Mix::of(self.voices.iter().map(|voice| &voice.sound));
        for symbol in from..to {
            let before = if symbol == 0 { 0 } else { sent(symbol - 1) };
            let own = sent(symbol);
            let stream = chips_of(before, own, sent(symbol + 1));
            let mut sums = [[0f32; SYMBOLS]; 2];
            for quarter in 0..QUARTERS {
                mix.clear();
                for voice in &mut self.voices {
                    mix.add(&voice.sound, voice.now);
                    voice.now = times(voice.now, voice.step);
                }
                collect(&mix, quarter, stream, &mut sums);
            }
            if !each(symbol, counts_as(own, &sums)) {
                return;
            }
        }
    }

    /// Where the voices stand when symbol `from` begins.
    fn find_voices(&mut self, from: usize) {
        let Tuning { clock, carrier } = self.tuning();
        self.voices.clear();
        self.voices.extend(self.signals.iter().map(|signal| {
            let amplitude = libm::sqrt(signal.power);
            Voice {
                now: start(signal, amplitude, carrier, clock, from),
                step: step(signal, carrier),
                sound: Sound::new(signal.arrival - clock),
            }
        }));
    }

    /// A power that a single transmitter would need at most to be read as well, whatever the phases: zero where nothing is sure.
    pub(crate) fn sure(&self) -> f64 {
        let amplitudes = self.signals.iter().map(|signal| libm::sqrt(signal.power));
        let strongest = amplitudes.clone().fold(0.0, f64::max);
        let rest = amplitudes.sum::<f64>() - strongest;
        let (least, most) = CLEAN.bounds;
        let left = strongest * least - 2.0 * rest * most;
        // Beside a stronger rest clock and carrier need not be the strongest's.
        if rest > strongest / 8.0 || left <= 0.0 {
            return 0.0;
        }
        left * left / (CLEAN.margin * CLEAN.margin)
    }

    /// The probability that all symbols that a receiver needs of a frame of `octets` survive: two of the preamble, SFD,
    /// PHR and PSDU. `noise` has the unit of the powers; `content` says which frame it is.
    pub fn success(&mut self, content: u64, octets: usize, noise: f64) -> f64 {
        let mut product = 1.0;
        let sent = |symbol| symbol_of(content, octets, symbol);
        self.symbols((6, 12 + 2 * octets), sent, |_, power| {
            product *= 1.0 - Oqpsk::SymbolSoft.symbol_error(power / noise);
            product > 1e-9
        });
        product
    }
}

/// Adds eight chips of the preamble from number `first` on to what the receiver samples.
#[inline]
fn add_preamble(sampled: &mut [Phasor; PART], first: i32, voice: Phasor) {
    let signs = &PREAMBLE_SIGNS[(first & (CHIPS as i32 - 1)) as usize..][..PART];
    // Even chips are sent in phase, odd ones in quadrature.
    let turned = (-voice.1, voice.0);
    let (here, next) = match first & 1 {
        0 => (voice, turned),
        _ => (turned, voice),
    };
    for (pair, signs) in sampled.chunks_exact_mut(2).zip(signs.chunks_exact(2)) {
        pair[0].0 += signs[0].0 * here.0;
        pair[0].1 += signs[0].1 * here.1;
        pair[1].0 += signs[1].0 * next.0;
        pair[1].1 += signs[1].1 * next.1;
    }
}

/// The chips of the preamble's symbols 1 to 4, without noise.
fn preamble(voices: &mut [Voice]) -> [[Phasor; PART]; QUARTERS * 4] {
    let mut chips = [[(0.0, 0.0); PART]; QUARTERS * 4];
    // One quarter for all voices, so that its eight sums stay in registers.
    for (number, chunk) in chips.iter_mut().enumerate() {
        let mut sums = [(0.0, 0.0); PART];
        for voice in voices.iter_mut() {
            for (lag, weight) in voice.sound.lags() {
                let first = (number * PART) as i32 + lag;
                add_preamble(
                    &mut sums,
                    first,
                    (voice.now.0 * weight, voice.now.1 * weight),
                );
            }
            voice.now = times(voice.now, voice.step);
        }
        *chunk = sums;
    }
    chips
}

/// The angle by which a signal turns against a carrier in so many microseconds.
fn turn(signal: &Signal, carrier: f64, micros: f64) -> f64 {
    TAU * (signal.offset - carrier) * micros * 1e-6
}

/// A signal's phasor in the middle of the first quarter of symbol `from`.
fn start(signal: &Signal, amplitude: f64, carrier: f64, clock: f64, from: usize) -> Phasor {
    // Chip n is sampled (n + 1) chips after the clock.
    let middle = clock + CHIP * ((from * CHIPS) as f64 + 0.5 * (PART + 1) as f64);
    phasor(amplitude, signal.phase + turn(signal, carrier, middle))
}

/// A signal's turn from quarter to quarter.
fn step(signal: &Signal, carrier: f64) -> Phasor {
    phasor(1.0, turn(signal, carrier, CHIP * PART as f64))
}

/// The chips of three symbols in a row, the first in the lowest bit.
fn chips_of(before: u8, own: u8, after: u8) -> u128 {
    let of = |symbol: u8| u128::from(SEQUENCES[usize::from(symbol & 15)]);
    of(before) | of(own) << CHIPS | of(after) << (2 * CHIPS)
}

/// Adds what each candidate collects in one quarter (real and imaginary).
#[inline]
fn collect(mix: &Mix, quarter: usize, stream: u128, sums: &mut [[f32; SYMBOLS]; 2]) {
    let begin = (CHIPS + PART * quarter) as i32;
    for lag in mix.first..=mix.last {
        let (re, im) = mix.sums[place(lag)];
        let window = (stream >> (begin + lag)) as u8;
        // An odd lag swaps the axes.
        let (table, re, im) = match lag & 1 {
            0 => (&EVEN, re as f32, im as f32),
            _ => (&ODD, -im as f32, re as f32),
        };
        let agree = &table[quarter][usize::from(window)];
        let [sums_re, sums_im] = sums;
        for candidate in 0..SYMBOLS {
            let count = f32::from(agree[candidate]);
            sums_re[candidate] += re * count;
            sums_im[candidate] += im * count;
        }
    }
}

/// How far the sent symbol's sum stands above the greatest of the others.
fn margin(own: u8, sums: &[[f32; SYMBOLS]; 2]) -> f64 {
    let (mut mine, mut most) = (0f32, 0f32);
    for (candidate, (re, im)) in sums[0].iter().zip(&sums[1]).enumerate() {
        let power = re * re + im * im;
        match candidate == usize::from(own) {
            true => mine = power,
            false if power > most => most = power,
            false => {}
        }
    }
    f64::from(mine.sqrt() - most.sqrt())
}

/// The power of a single transmitter with this margin.
fn counts_as(own: u8, sums: &[[f32; SYMBOLS]; 2]) -> f64 {
    let amplitude = margin(own, sums).max(0.0) / CLEAN.margin;
    amplitude * amplitude
}

/// Margins of a single transmitter of amplitude 1.
struct Clean {
    /// The mean one, at the exact clock.
    margin: f64,
    /// The least one within a sample of the clock, and the most that a transmitter adds to any candidate's sum.
    bounds: (f64, f64),
}

static CLEAN: LazyLock<Clean> = LazyLock::new(|| {
    let (mut mean, mut least) = (0.0, f64::INFINITY);
    for late in [0.0, -SAMPLE, -SAMPLE / 2.0, SAMPLE / 2.0, SAMPLE] {
        for word in 0..16u32.pow(3) {
            let [before, own, after] = [word >> 8, word >> 4 & 15, word & 15].map(|s| s as u8);
            let (sound, mut sums) = (Sound::new(late), [[0f32; SYMBOLS]; 2]);
            let mut mix = Mix::of([&sound].into_iter());
            mix.add(&sound, (1.0, 0.0));
            let stream = chips_of(before, own, after);
            (0..QUARTERS).for_each(|quarter| collect(&mix, quarter, stream, &mut sums));
            let margin = margin(own, &sums);
            least = f64::min(least, margin);
            if late == 0.0 {
                mean += margin / 4096.0;
            }
        }
    }
    let most = (0..=16).map(|step| {
        let late = f64::from(step) * CHIP / 16.0;
        lags(late).map(|(_, weight)| weight).sum::<f64>() * CHIPS as f64
    });
    Clean {
        margin: mean,
        bounds: (least, most.fold(0.0, f64::max)),
    }
});

/// How well the preamble fits: the sine of the phase step between neighbouring chips, as the chip clock is found.
fn fit(chips: &[Phasor]) -> f64 {
    let sign = |chip: usize| {
        if SEQUENCES[0] >> chip & 1 == 1 {
            1.0
        } else {
            -1.0
        }
    };
    let of_symbol = |symbol: &[Phasor]| -> f64 {
        let steps = symbol.windows(2).enumerate().map(|(at, pair)| {
            let turned = if at % 2 == 0 { 1.0 } else { -1.0 };
            turned * sign(at) * sign(at + 1) * (pair[1].1 * pair[0].0 - pair[1].0 * pair[0].1)
        });
        steps.sum()
    };
    chips.chunks(CHIPS).map(of_symbol).sum()
}

/// The carrier in hertz: the phase step between neighbouring halves of the preamble's symbols.
fn carrier(chips: &[Phasor]) -> f64 {
    const HALF: usize = CHIPS / 2;
    let sum = |(number, part): (usize, &[Phasor])| -> Phasor {
        let first = number % 2 * HALF;
        part.iter()
            .enumerate()
            .fold((0.0, 0.0), |sum, (at, &(i, q))| {
                let sign = if SEQUENCES[0] >> (first + at) & 1 == 1 {
                    1.0
                } else {
                    -1.0
                };
                let (re, im) = if at % 2 == 0 { (i, q) } else { (q, -i) };
                (sum.0 + sign * re, sum.1 + sign * im)
            })
    };
    let sums: Vec<Phasor> = chips.chunks(HALF).enumerate().map(sum).collect();
    let turn = sums.windows(2).fold((0.0, 0.0), |turn: Phasor, pair| {
        let ((a, b), (c, d)) = (pair[0], pair[1]);
        (turn.0 + a * c + b * d, turn.1 + a * d - b * c)
    });
    libm::atan2(turn.1, turn.0) / (TAU * HALF as f64 * CHIP * 1e-6)
}

/// A symbol of a frame: preamble, SFD (0xA7), PHR, then a PSDU that `content` stands for. Which octets it has matters to no
/// receiver, since radios of this standard do not whiten, only that all transmitters send the same.
pub(crate) fn symbol_of(content: u64, octets: usize, symbol: usize) -> u8 {
    match symbol {
        0..8 => 0,
        8 => 7,
        9 => 10,
        10 => octets as u8 & 15,
        11 => octets as u8 >> 4 & 15,
        _ => {
            // A finaliser as of SplitMix64 over eight symbols at once.
            let word = content ^ (symbol as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (word >> (4 * (symbol % 8) + 20)) as u8 & 15
        }
    }
}
