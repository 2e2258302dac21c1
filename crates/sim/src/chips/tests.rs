//! The receiver's shortcuts against their plain forms, bit for bit.

use chappe_core::{Purpose, Seed};

use super::*;

/// One to eight signals: levels over 30 dB, arrivals together, within a chip or up to 8 us apart.
fn draw(number: u64) -> Vec<Signal> {
    let mut random = Seed(number).stream(Purpose::Fading);
    let count = 1 + random.below(8);
    let spread = [0.0, 0.5, 8.0][random.below(3) as usize];
    (0..count)
        .map(|_| Signal {
            power: libm::pow(10.0, -3.0 * random.fraction()),
            offset: 40e3 * (random.fraction() - 0.5),
            arrival: spread * random.fraction(),
            phase: TAU * random.fraction(),
        })
        .collect()
}

/// What a chorus says of some symbols of a frame, as bits.
fn heard(chorus: &mut Chorus, symbols: (usize, usize)) -> Vec<u64> {
    let mut powers = Vec::new();
    let sent = |symbol| symbol_of(7, 40, symbol);
    chorus.symbols(symbols, sent, |_, power| {
        powers.push(power.to_bits());
        true
    });
    powers
}

/// A receiver that keeps clock and carrier from one stretch of a frame to the next hears what one hears that looks for them
/// in each stretch.
#[test]
fn a_kept_tuning_changes_nothing() {
    let (mut kept, mut anew) = (Chorus::default(), Chorus::default());
    for number in 0..300 {
        let signals = draw(number);
        let mut tuning = None;
        for symbols in [(10, 13), (13, 14), (14, 30), (30, 92)] {
            kept.set_tuned(&signals, tuning);
            anew.set(&signals);
            assert_eq!(
                heard(&mut kept, symbols),
                heard(&mut anew, symbols),
                "draw {number}, symbols {symbols:?}"
            );
            tuning = Some(kept.tuning());
        }
        assert_eq!(tuning, Some(anew.tuning()), "draw {number}");
    }
}

/// The preamble's chips are a sum over signals, chips and lags, in that order of additions for each chip.
#[test]
fn the_preamble_is_the_plain_sum() {
    for number in 0..300 {
        let signals = draw(number);
        let clock = SAMPLE * (number % 12) as f64 - CHIP;
        let voice = |signal: &Signal| Voice {
            now: start(signal, libm::sqrt(signal.power), 0.0, clock, PREAMBLE.start),
            step: step(signal, 0.0),
            sound: Sound::new(signal.arrival - clock),
        };
        let mut voices: Vec<Voice> = signals.iter().map(voice).collect();
        let found = preamble(&mut voices);
        for (place, &chip) in found.as_flattened().iter().enumerate() {
            assert_eq!(chip, plain(&signals, clock, place), "draw {number}");
        }
    }
}

/// One chip of the preamble by definition.
fn plain(signals: &[Signal], clock: f64, place: usize) -> Phasor {
    let mut sum = (0.0, 0.0);
    for signal in signals {
        let amplitude = libm::sqrt(signal.power);
        let mut now = start(signal, amplitude, 0.0, clock, PREAMBLE.start);
        (0..place / PART).for_each(|_| now = times(now, step(signal, 0.0)));
        for (lag, weight) in lags(signal.arrival - clock) {
            let source = place as i32 + lag;
            let bit = SEQUENCES[0] >> source.rem_euclid(CHIPS as i32) & 1;
            let sign = if bit == 1 { 1.0 } else { -1.0 };
            let voice = (now.0 * weight, now.1 * weight);
            let (re, im) = match source.rem_euclid(2) {
                0 => voice,
                _ => (-voice.1, voice.0),
            };
            sum = (sum.0 + sign * re, sum.1 + sign * im);
        }
    }
    sum
}
