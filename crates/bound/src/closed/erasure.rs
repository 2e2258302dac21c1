//! Erasure channels: the least that coding of any kind must send.

/// Transmissions per packet that no code beats on a channel that loses the part `loss`:
/// 1 / (1 - loss). Capacity of the erasure channel (Elias, "Coding for two noisy channels", 1955).
pub fn floor(loss: f64) -> f64 {
    1.0 / (1.0 - loss)
}

/// Goodput in bit/s that no code beats: (1 - loss) of the useful rate `rate_bps`.
pub fn goodput_bps(rate_bps: f64, loss: f64) -> f64 {
    rate_bps * (1.0 - loss)
}

/// Expected transmissions until *every* receiver has heard at least `batch` of them, so that an
/// ideal code with perfect feedback is done: sum over t >= 0 of 1 - prod over r of
/// P(Binomial(t, 1 - loss_r) >= batch).
///
/// Divided by `batch` it falls to the largest [`floor`] as batches grow; with batch 1 it is
/// [`super::arq::multicast_transmissions`]. Stop-and-wait batches cost at least this. Infinite if a
/// loss is 1; O(result * batch * receivers).
pub fn batch_transmissions(losses: &[f64], batch: u32) -> f64 {
    if losses.iter().any(|&loss| loss >= 1.0) {
        return f64::INFINITY;
    }
    let batch = batch as usize;
    // Per receiver: probability of having heard 0, 1, ... batch - 1 packets so far.
    let mut behind: Vec<Vec<f64>> = losses
        .iter()
        .map(|_| {
            (0..batch)
                .map(|heard| if heard == 0 { 1.0 } else { 0.0 })
                .collect()
        })
        .collect();
    let mut sum = 0.0;
    loop {
        let someone = behind.iter().fold(0.0, |someone, heard| {
            let missing: f64 = heard.iter().sum();
            someone + missing * (1.0 - someone)
        });
        if someone <= 1e-16 * sum || batch == 0 {
            return sum;
        }
        sum += someone;
        for (heard, loss) in behind.iter_mut().zip(losses) {
            for count in (0..batch).rev() {
                let before = if count > 0 { heard[count - 1] } else { 0.0 };
                heard[count] = heard[count] * loss + before * (1.0 - loss);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed::arq::multicast_transmissions;

    #[test]
    fn floors_by_hand() {
        assert_eq!(floor(0.5), 2.0);
        assert_eq!(goodput_bps(1e6, 0.25), 750e3);
    }

    /// One receiver needs exactly batch/(1-p) on average; batches of one are repetition; long
    /// batches come down to the floor.
    #[test]
    fn batches_between_repetition_and_the_floor() {
        assert!((batch_transmissions(&[0.3], 32) - 32.0 / 0.7).abs() < 1e-9);
        let losses = [0.3, 0.1, 0.3];
        let single = batch_transmissions(&losses, 1);
        assert!((single - multicast_transmissions(&losses)).abs() < 1e-12);
        let per_packet = |batch: u32| batch_transmissions(&losses, batch) / f64::from(batch);
        assert!(per_packet(8) > per_packet(32) && per_packet(32) > per_packet(512));
        assert!(per_packet(512) > floor(0.3) && per_packet(512) < 1.03 * floor(0.3));
    }

    /// At 30 % loss, stop-and-wait batches of 32 waste about 8 % with 3 receivers and 16 % with 10,
    /// as an independent simulation of the same ideal code gave.
    #[test]
    fn waste_of_batches_of_32() {
        let waste = |receivers: usize| {
            batch_transmissions(&vec![0.3; receivers], 32) / (32.0 * floor(0.3)) - 1.0
        };
        assert!((0.07..0.10).contains(&waste(3)), "{}", waste(3));
        assert!((0.14..0.18).contains(&waste(10)), "{}", waste(10));
    }
}
