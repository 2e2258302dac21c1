//! Repetition: how many transmissions a packet takes when losses are repaired by sending it again.

/// Expected transmissions of a packet until it and its acknowledgement get through: 1 / (df dr).
///
/// `forward` and `reverse` are delivery probabilities. De Couto, Aguayo, Bicket, Morris, "A
/// high-throughput path metric for multi-hop wireless routing", MobiCom 2003 (ETX). Infinite on a
/// dead link.
pub fn etx(forward: f64, reverse: f64) -> f64 {
    1.0 / (forward * reverse)
}

/// Expected transmissions with at most `retries` repetitions, loss probability `loss` each:
/// (1 - loss^(m+1)) / (1 - loss), whether or not the packet gets through in the end.
pub fn transmissions(loss: f64, retries: u32) -> f64 {
    // Summed term by term: exact also at loss 1, where the closed form is 0/0.
    let mut chance = 1.0;
    (0..=retries).fold(0.0, |sum, _| {
        let next = sum + chance;
        chance *= loss;
        next
    })
}

/// Probability that one of 1 + `retries` transmissions gets through: 1 - loss^(m+1).
pub fn delivered(loss: f64, retries: u32) -> f64 {
    1.0 - loss.powf(f64::from(retries) + 1.0)
}

/// Expected transmissions of one packet until every receiver has it, when it is broadcast again
/// until then: sum over t >= 0 of 1 - prod over receivers (1 - loss^t).
///
/// The expectation of the largest of independent geometric variables, by its tail: after t
/// transmissions some receiver still misses the packet. This is the floor of any multicast that repairs
/// by plain repetition with perfect feedback; coding needs only [`super::erasure::floor`]. Infinite if
/// a loss is 1. The tail is cut where it is below 1e-17 of the sum.
pub fn multicast_transmissions(losses: &[f64]) -> f64 {
    if losses.iter().any(|&loss| loss >= 1.0) {
        return f64::INFINITY;
    }
    let mut missing: Vec<f64> = vec![1.0; losses.len()];
    let mut sum = 0.0;
    loop {
        // 1 - prod(1 - m), without the cancellation that small m would cause.
        let someone = missing
            .iter()
            .fold(0.0, |someone, missing| someone + missing * (1.0 - someone));
        if someone <= 1e-17 * sum {
            return sum;
        }
        sum += someone;
        missing
            .iter_mut()
            .zip(losses)
            .for_each(|(missing, loss)| *missing *= loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_by_hand() {
        assert_eq!(etx(0.5, 0.5), 4.0);
        assert_eq!(transmissions(0.0, 7), 1.0);
        assert_eq!(transmissions(1.0, 7), 8.0);
        assert_eq!(transmissions(0.5, 2), 1.75);
        assert_eq!(delivered(0.5, 2), 0.875);
    }

    /// One receiver is the geometric mean 1/(1-p). Two at 1/2: 8/3, a textbook value. Ten receivers
    /// at 10 %, term by term: 1 + 0.6513 + 0.0956 + 0.0100 + 0.0010 + ...
    #[test]
    fn multicast_by_repetition() {
        assert!((multicast_transmissions(&[0.75]) - 4.0).abs() < 1e-12);
        assert!((multicast_transmissions(&[0.5, 0.5]) - 8.0 / 3.0).abs() < 1e-12);
        assert!((multicast_transmissions(&[0.1; 10]) - 1.758).abs() < 5e-4);
        assert_eq!(multicast_transmissions(&[0.0, 0.0]), 1.0);
        assert!(multicast_transmissions(&[0.5, 1.0]).is_infinite());
    }
}
