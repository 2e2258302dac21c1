//! CUBIC (RFC 9438) in whole numbers: for peers on Ethernet and for border routers; on windows of less than
//! about ten segments it equals its Reno-friendly region.
//!
//! `W(t) = C (t - K)^3 + W_max` with C = 0.4 segments/s³ and a decrease to 0.7 of the window. Time is in
//! milliseconds, windows are in octets; the cube is taken of at most 100 s, where it exceeds any window.

use chappe_core::Instant;

use super::{Acked, Congestion, Reduction, Window, slow_start};

/// CUBIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// Window before the last reduction, octets, lowered for fast convergence (RFC 9438 4.7).
    w_max: u32,
    /// Window at the start of this epoch of congestion avoidance.
    w_start: u32,
    /// What Reno would have by now (RFC 9438 4.3).
    w_est: u32,
    /// `w_max` before the last reduction, to undo it.
    w_max_before: u32,
    /// When the epoch began, ms on the clock modulo 2^32; `None` until congestion avoidance begins.
    epoch: Option<u32>,
    /// Time from there to the plateau, ms.
    k: u32,
}

/// Beyond this many milliseconds from the plateau the curve is taken as flat: it exceeds any window.
const REACH: u32 = 100_000;

impl Congestion for Cubic {
    fn started(&mut self) {
        *self = Cubic::default();
    }

    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        let rest = slow_start(window, acked);
        if rest == 0 {
            return;
        }
        let mss = acked.mss.max(1);
        let now = milliseconds(acked.now);
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now, window.cwnd, mss),
        };
        // Reno's growth with CUBIC's decrease: alpha = 3 (1 - 0.7) / (1 + 0.7) = 9/17 segments a window, and one
        // once the old window is reached again.
        let earned = u64::from(mss) * u64::from(rest) / u64::from(window.cwnd.max(1));
        let (numerator, denominator) = if self.w_est < self.w_max {
            (9, 17)
        } else {
            (1, 1)
        };
        let grown = (earned * numerator / denominator) as u32;
        self.w_est = self.w_est.saturating_add(grown);
        // RFC 9438 4.2: aim where the curve will be one round trip ahead, at most half as much again.
        let t = now.wrapping_sub(epoch).saturating_add(acked.srtt / 1000);
        let high = window.cwnd.saturating_add(window.cwnd / 2);
        let target = self.curve(t, mss).clamp(window.cwnd, high);
        let step =
            u64::from(target - window.cwnd) * u64::from(rest) / u64::from(window.cwnd.max(1));
        window.cwnd = window.cwnd.saturating_add(step as u32).max(self.w_est);
    }

    fn reduced(&mut self, reduction: &Reduction) -> u32 {
        let cwnd = reduction.window.cwnd.min(reduction.flight);
        self.w_max_before = self.w_max;
        self.w_max = if cwnd < self.w_max {
            tenths(cwnd, 17) / 2
        } else {
            cwnd
        };
        self.epoch = None;
        tenths(cwnd, 7).max(reduction.mss.saturating_mul(2))
    }

    fn undone(&mut self) {
        self.w_max = self.w_max_before;
        self.epoch = None;
    }
}

impl Cubic {
    fn begin(&mut self, now: u32, cwnd: u32, mss: u32) -> u32 {
        self.epoch = Some(now);
        (self.w_start, self.w_est) = (cwnd, cwnd);
        self.w_max = self.w_max.max(cwnd);
        // K = cube root of (W_max - W_start) / C, in ms: (distance / mss) * 2.5 s³ * 10^9 ms³/s³.
        let distance = u64::from(self.w_max - cwnd);
        self.k = cube_root(distance.saturating_mul(2_500_000_000) / u64::from(mss));
        now
    }

    /// The curve `t` ms into the epoch, in octets.
    fn curve(&self, t: u32, mss: u32) -> u32 {
        let away = u64::from(t.abs_diff(self.k).min(REACH));
        let cube = away * away * away;
        // C mss (ms/1000)^3 = 2/5 * mss * cube / 10^9; the cube is at most 10^15 and the product below 2^64.
        let offset = (cube / 1000).saturating_mul(u64::from(mss) * 2) / 5_000_000;
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        if t < self.k {
            self.w_max.saturating_sub(offset)
        } else {
            self.w_max.saturating_add(offset)
        }
    }
}

fn tenths(octets: u32, count: u32) -> u32 {
    (u64::from(octets) * u64::from(count) / 10) as u32
}

fn milliseconds(now: Instant) -> u32 {
    (now.nanos() / 1_000_000) as u32
}

/// The largest number whose cube is at most `n`, bit by bit.
fn cube_root(n: u64) -> u32 {
    let mut root: u64 = 0;
    for bit in (0..22).rev() {
        let next = root | 1 << bit;
        if next.saturating_mul(next).saturating_mul(next) <= n {
            root = next;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::super::Signal;
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        for root in [0u64, 1, 2, 3, 10, 999, 1 << 20, 2_642_245] {
            assert_eq!(u64::from(cube_root(root * root * root)), root);
            if root > 1 {
                assert_eq!(u64::from(cube_root(root * root * root - 1)), root - 1);
            }
        }
    }

    /// RFC 9438 4.2 with numbers: from 70 to 100 segments of 1000 octets K = cbrt(30 / 0.4) = 4.217 s; half-way,
    /// at 2.108 s, the curve stands at 100 - 0.4 * 2.1085^3 = 96.25 segments.
    #[test]
    fn the_curve_goes_through_its_known_points() {
        let mut cubic = Cubic {
            w_max: 100_000,
            ..Cubic::default()
        };
        cubic.begin(0, 70_000, 1000);
        assert_eq!(cubic.k, 4217);
        assert!(cubic.curve(0, 1000).abs_diff(70_000) < 20);
        assert!(cubic.curve(2_108, 1000).abs_diff(96_250) < 20);
        assert_eq!(cubic.curve(4_217, 1000), 100_000);
        assert!(cubic.curve(8_434, 1000).abs_diff(130_000) < 20);
        assert!(cubic.curve(u32::MAX, 1000) > 100_000_000);
    }

    fn loss(window: &Window, flight: u32) -> Reduction {
        Reduction {
            window: *window,
            ..Reduction::of(flight, 1000, Signal::Loss)
        }
    }

    #[test]
    fn a_window_grows_along_the_curve() {
        let mut cubic = Cubic::default();
        let mut window = Window {
            cwnd: 100_000,
            ssthresh: u32::MAX,
            acked: 0,
        };
        window.ssthresh = cubic.reduced(&loss(&window, 100_000));
        assert_eq!(window.ssthresh, 70_000);
        window.cwnd = window.ssthresh;
        // 4.2 s of round trips of 100 ms, each acknowledging a window in pieces of two segments.
        for trip in 0..42u64 {
            let mut left = window.cwnd;
            while left > 0 {
                let acked = Acked {
                    now: Instant::from_millis(trip * 100),
                    octets: left.min(2000),
                    mss: 1000,
                    srtt: 100_000,
                    after_timeout: false,
                };
                left -= acked.octets;
                cubic.acked(&mut window, &acked);
            }
        }
        assert!((97_000..=101_000).contains(&window.cwnd), "{}", window.cwnd);
        let second = cubic.reduced(&loss(&window, 80_000));
        assert_eq!((second, cubic.w_max), (56_000, 68_000));
        cubic.undone();
        assert!(cubic.w_max >= 100_000);
    }
}
