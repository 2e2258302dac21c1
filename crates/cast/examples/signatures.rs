//! What a signature in each broadcast would cost: `cargo run --release -p chappe-cast --example signatures`.
//!
//! Times are of one thread; the least of several rounds, since other programs only make a round longer.

use std::hint::black_box;
use std::time::Instant;

use chappe_cast::key::SignKey;

const ROUNDS: usize = 50;
const TIMES: u32 = 100;
/// Octets of a full frame over Ethernet, and of a signature.
const FRAME: usize = 1442;
const SIGNATURE: usize = 64;

fn main() {
    let key = SignKey::new(&[7; 32]);
    let public = key.verify_key();
    let frame = [5; FRAME];
    let signature = key.sign(&frame);
    let sign = least(|| {
        black_box(key.sign(black_box(&frame)));
    });
    let verify = least(|| assert!(public.verifies(black_box(&frame), &signature)));
    println!("Ed25519 over {FRAME} octets: {sign:.1} us to sign, {verify:.1} us to verify");
    for megabits in [1.0, 6.0, 20.0, 100.0, 1000.0] {
        let airtime = (FRAME * 8) as f64 / megabits;
        println!(
            "  at {megabits:6} Mbit/s a frame takes {airtime:8.1} us: a receiver's processor spends {:5.1} % of it, and {:.1} % more octets go out",
            100.0 * verify / airtime,
            100.0 * SIGNATURE as f64 / FRAME as f64
        );
    }
}

/// Microseconds that a call takes in the fastest round.
fn least(mut call: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| call());
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
    });
    rounds.fold(f64::INFINITY, f64::min)
}
