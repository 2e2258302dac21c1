//! The reduced models of 802.15.4 held against a chip-level simulation of our own.

mod modem;

use chappe_sim::Oqpsk;
use modem::{Modem, Signal, stream};

/// Prints the symbol error table of `error_curve`: a million symbols to a point.
#[test]
#[ignore = "takes minutes; prints the table"]
fn print_symbol_errors() {
    let modem = Modem::new();
    let symbols = 1_000_000;
    for half in -20..=10 {
        let db = f64::from(half) * 0.5;
        let errors = modem.symbol_errors(
            10f64.powf(db / 10.0),
            symbols,
            &mut stream((half + 100) as u32),
        );
        println!(
            "({db:.1}, {errors}), // {:.6}",
            errors as f64 / symbols as f64
        );
    }
}

/// The table in the crate is what this simulation yields: 20,000 symbols at points on and between its own.
#[test]
fn the_symbol_error_table_is_this_receivers() {
    let (modem, symbols) = (Modem::new(), 20_000);
    for (number, db) in [-8.0, -5.0, -3.25, -2.0, -0.75, 0.5]
        .into_iter()
        .enumerate()
    {
        let ratio = 10f64.powf(db / 10.0);
        let expected = Oqpsk::NoncoherentSoft.symbol_error(ratio);
        let errors = modem.symbol_errors(ratio, symbols, &mut stream(number as u32));
        let found = errors as f64 / symbols as f64;
        let deviation = (expected * (1.0 - expected) / symbols as f64).sqrt();
        assert!(
            (found - expected).abs() < 4.5 * deviation,
            "{db} {found} {expected}"
        );
    }
}

/// Whole frames, clock recovery included, survive as often as header and payload by the table: the clock costs
/// nothing that matters.
#[test]
fn frames_survive_as_their_symbols() {
    let (modem, frames) = (Modem::new(), 400);
    for (number, (octets, prr)) in [(20, 0.3), (20, 0.8), (127, 0.5)].into_iter().enumerate() {
        let ratio = Oqpsk::NoncoherentSoft.sinr_for(octets, prr).to_linear();
        let mut random = stream(20 + number as u32);
        let signal = Signal {
            amplitude: 1.0,
            offset: 3e3,
            delay: 0.0,
            phase: 1.0,
            payload: 0,
        };
        let got = (0..frames)
            .filter(|_| modem.receives(octets, &[signal], ratio, &mut random))
            .count() as f64;
        let found = got / f64::from(frames);
        // Four standard errors, and two points for the clock.
        let allowed = 4.0 * (prr * (1.0 - prr) / f64::from(frames)).sqrt() + 0.02;
        assert!((found - prr).abs() < allowed, "{octets} {prr} {found}");
    }
}
