//! Bianchi's model of a saturated cell (IEEE JSAC 18(3), 2000), with EIFS after a collision.

use chappe_core::Duration;
use chappe_mac::dot11::Config;

/// Saturation throughput and conditional collision probability.
pub struct Model {
    pub kbps: f64,
    pub collision: f64,
}

/// `n` saturated stations in one cell, infinitely many retries, `propagation` from each to each.
///
/// A collision occupies the channel for the longest frame in it and EIFS, which is SIFS, an ACK and DIFS: the
/// bystanders wait that long, and the senders for their timeout and DIFS.
pub fn saturation(
    n: usize,
    config: &Config,
    sdu: usize,
    rts: bool,
    propagation: Duration,
) -> Model {
    let seconds = |span: Duration| span.as_secs_f64();
    let flight = seconds(propagation);
    let (slot, sifs) = (seconds(config.slot), seconds(config.sifs));
    let difs = sifs + 2.0 * slot;
    let data = seconds(config.data.airtime(24 + sdu + 4));
    let ack = seconds(config.control.airtime(14));
    let request = seconds(config.control.airtime(20));
    let exchange = data + sifs + ack + difs + 2.0 * flight;
    let (success, collision) = if rts {
        let before = request + sifs + ack + sifs + 2.0 * flight;
        (before + exchange, request + sifs + ack + difs + flight)
    } else {
        (exchange, exchange - flight)
    };
    let window = f64::from(config.cw_min) + 1.0;
    let stages = ((f64::from(config.cw_max) + 1.0) / window).log2().round() as i32;
    let others = n as i32 - 1;
    let (tau, p) = fixed_point(window, stages, others);
    let idle = (1.0 - tau).powi(n as i32);
    let one = n as f64 * tau * (1.0 - tau).powi(others);
    let mean = idle * slot + one * success + (1.0 - idle - one) * collision;
    Model {
        kbps: one * sdu as f64 * 8.0 / mean / 1e3,
        collision: p,
    }
}

/// Attempt and collision probability. The attempt probability falls with the collision probability, which
/// grows with it: bisection finds where they meet.
fn fixed_point(window: f64, stages: i32, others: i32) -> (f64, f64) {
    // Bianchi's (7) with the geometric sum written out, so that p = 1/2 needs no care.
    let attempt = |p: f64| {
        let sum: f64 = (0..stages).map(|stage| (2.0 * p).powi(stage)).sum();
        2.0 / (1.0 + window + p * window * sum)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = 0.5 * (low + high);
        if 1.0 - (1.0 - attempt(p)).powi(others) > p {
            low = p;
        } else {
            high = p;
        }
    }
    (attempt(low), low)
}
