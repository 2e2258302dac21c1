//! Fractional window increment: TCP-FeW (K. Nahm, A. Helmy, C.-C. J. Kuo, "TCP over multihop 802.11 networks:
//! issues and performance enhancement", MobiHoc 2005).
//!
//! One more segment per round trip is too much for a chain of radios, whose best window is a few segments: the
//! window overshoots, and MAC losses follow. FeW adds `alpha` segments per round trip instead, with
//! 0 < alpha <= 1. Slow start and the reaction to loss stay the same.

use super::{Acked, Congestion, Window, halved, slow_start};

/// TCP-FeW: NewReno with a fraction of a segment as the increment of each round trip.
#[derive(Clone, Copy, Debug)]
pub struct Few {
    /// The increment alpha, in thousandths of a segment a round trip. Default 10 (alpha = 0.01), the value the
    /// DPCLO paper compares with.
    pub per_mille: u16,
    /// Octets of increase earned and not yet whole, in thousandths.
    owed: u32,
}

impl Few {
    /// An increment of `per_mille` thousandths of a segment a round trip, 1 to 1000.
    pub const fn new(per_mille: u16) -> Few {
        Few { per_mille, owed: 0 }
    }
}

impl Default for Few {
    fn default() -> Few {
        Few::new(10)
    }
}

impl Congestion for Few {
    fn started(&mut self) {
        self.owed = 0;
    }

    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        let rest = slow_start(window, acked);
        window.acked = window.acked.saturating_add(rest);
        if rest > 0 && window.acked >= window.cwnd {
            window.acked -= window.cwnd;
            let earned = u32::from(self.per_mille).saturating_mul(acked.mss);
            self.owed = self.owed.saturating_add(earned);
            window.cwnd = window.cwnd.saturating_add(self.owed / 1000);
            self.owed %= 1000;
        }
    }

    fn reduced(&mut self, flight: u32, mss: u32) -> u32 {
        halved(flight, mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With alpha = 0.01 the window needs 100 round trips to grow by a segment.
    #[test]
    fn a_hundred_round_trips_add_one_segment() {
        let mut few = Few::default();
        let mut window = Window {
            cwnd: 1848,
            ssthresh: 1848,
            acked: 0,
        };
        for _ in 0..100 {
            let acked = Acked {
                octets: window.cwnd,
                mss: 462,
                after_timeout: false,
            };
            few.acked(&mut window, &acked);
        }
        assert_eq!(window.cwnd, 1848 + 462);
    }
}
