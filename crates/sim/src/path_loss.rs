//! Path loss over distance.

use std::f64::consts::PI;

use chappe_core::{Db, SPEED_OF_LIGHT};

/// A law of path loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Free space: `(4 pi d / lambda)^2` (H. T. Friis, 1946).
    Friis {
        /// Carrier frequency in hertz.
        hertz: f64,
    },
    /// Free space up to the crossover distance `4 pi ht hr / lambda`, then `d^4 / (ht hr)^2`, where the wave
    /// reflected by the ground cancels the direct one. Both laws agree at the crossover.
    TwoRayGround {
        /// Carrier frequency in hertz.
        hertz: f64,
        /// Height of both antennas above the ground in metres.
        height: f64,
    },
    /// `reference + 10 exponent log10(d / 1 m)`.
    LogDistance {
        /// Loss exponent; 2 is free space.
        exponent: f64,
        /// Loss at one metre.
        reference: Db,
    },
}

impl PathLoss {
    /// The loss over `metres`, at least 0 dB: very short distances lose nothing.
    pub fn loss(&self, metres: f64) -> Db {
        let metres = metres.max(1e-3);
        let loss = match *self {
            PathLoss::Friis { hertz } => friis(hertz, metres),
            PathLoss::TwoRayGround { hertz, height } if metres <= crossover(hertz, height) => {
                friis(hertz, metres)
            }
            PathLoss::TwoRayGround { height, .. } => {
                40.0 * libm::log10(metres) - 40.0 * libm::log10(height)
            }
            PathLoss::LogDistance {
                exponent,
                reference,
            } => reference.0 + 10.0 * exponent * libm::log10(metres),
        };
        Db(loss.max(0.0))
    }

    /// A distance beyond which the loss is greater than `loss`, found by bisection; at most 10,000 km.
    pub fn reach(&self, loss: Db) -> f64 {
        let (mut near, mut far) = (1e-3, 1e7);
        if self.loss(far) <= loss {
            return far;
        }
        for _ in 0..100 {
            let middle = 0.5 * (near + far);
            if self.loss(middle) <= loss {
                near = middle;
            } else {
                far = middle;
            }
        }
        // Slightly more, so that rounding never omits a link that exists.
        far * (1.0 + 1e-9)
    }
}

/// The distance in metres from which the two-ray law differs from free space.
pub fn crossover(hertz: f64, height: f64) -> f64 {
    4.0 * PI * height * height * hertz / SPEED_OF_LIGHT
}

fn friis(hertz: f64, metres: f64) -> f64 {
    20.0 * libm::log10(4.0 * PI * metres * hertz / SPEED_OF_LIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two-ray loss at 2.4 GHz and 1.5 m, from the physics report (4.3), to its last digit. 226 m is the
    /// crossover, where the table's 0.1 dB rounding applies as everywhere.
    #[test]
    fn two_ray_losses_match_the_table() {
        let law = PathLoss::TwoRayGround {
            hertz: 2.4e9,
            height: 1.5,
        };
        let table = [
            (50.0, 74.0),
            (100.0, 80.1),
            (150.0, 83.6),
            (200.0, 86.1),
            (226.0, 87.1),
            (250.0, 88.9),
            (300.0, 92.0),
            (460.0, 99.5),
        ];
        for (metres, loss) in table {
            assert!(
                (law.loss(metres).0 - loss).abs() < 0.06,
                "{metres} m: {}",
                law.loss(metres)
            );
        }
        assert!((crossover(2.4e9, 1.5) - 226.4).abs() < 0.1);
        assert!((crossover(914e6, 1.5) - 86.2).abs() < 0.1);
    }

    #[test]
    fn the_two_laws_meet_at_the_crossover() {
        let distance = crossover(914e6, 1.5);
        let law = PathLoss::TwoRayGround {
            hertz: 914e6,
            height: 1.5,
        };
        let step = law.loss(distance * 1.000_001) - law.loss(distance);
        assert!(step.0.abs() < 1e-4, "{step}");
    }

    #[test]
    fn nothing_within_the_loss_lies_beyond_its_reach() {
        let laws = [
            PathLoss::Friis { hertz: 2.4e9 },
            PathLoss::TwoRayGround {
                hertz: 2.4e9,
                height: 1.5,
            },
            PathLoss::LogDistance {
                exponent: 3.0,
                reference: Db(46.6777),
            },
        ];
        for law in laws {
            for loss in [60.0, 87.0, 99.5, 130.0] {
                let reach = law.reach(Db(loss));
                assert!(law.loss(reach) > Db(loss), "{law:?} {loss}");
                assert!(law.loss(reach * 0.999_999) <= Db(loss), "{law:?} {loss}");
            }
        }
    }
}
