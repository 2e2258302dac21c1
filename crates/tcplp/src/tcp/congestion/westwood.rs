//! The window after a loss is what the path has shown that it carries, not half of what was tried: TCP Westwood
//! (C. Casetti, M. Gerla, S. Mascolo, M. Y. Sanadidi, R. Wang, "TCP Westwood: End-to-End Congestion Control for
//! Wired/Wireless Networks", Wireless Networks 8, 2002).
//!
//! On radio links most losses are noise, and halving a window of four segments for each of them leaves the link idle. The
//! threshold is set to rate times smallest round trip, what fills the path and no queue. The rate is taken over the last
//! round trip measured, what was in flight divided by it, so that nothing has to be remembered: the threshold is the
//! flight times smallest over last round trip. A queue in the path lengthens round trips, and the window falls by
//! just what stands in it.
//!
//! A smallest round trip that was itself measured through a full queue makes this too bold; a mark is a sure sign and
//! halves the window like everywhere else (RFC 3168 6.1.2).

use super::{Acked, Congestion, NewReno, Reduction, Signal, Window, halved, share};

/// TCP Westwood.
#[derive(Clone, Copy, Debug, Default)]
pub struct Westwood;

impl Congestion for Westwood {
    /// As in the standard.
    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        NewReno.acked(window, acked);
    }

    fn reduced(&mut self, reduction: &Reduction) -> u32 {
        let &Reduction {
            flight,
            mss,
            signal,
            rtt,
            min_rtt,
            ..
        } = reduction;
        if signal == Signal::Mark || rtt == 0 {
            return halved(flight, mss);
        }
        let carried = share(flight, min_rtt.min(rtt), rtt);
        // Only whole segments are sent: a window of 3.9 is one of 3.
        let segments = carried.div_ceil(mss.max(1));
        segments.max(2).saturating_mul(mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_falls_by_what_stands_in_the_queue() {
        let reduced = |min_rtt, rtt, signal| {
            let reduction = Reduction {
                rtt,
                min_rtt,
                ..Reduction::of(4000, 500, signal)
            };
            Westwood.reduced(&reduction)
        };
        assert_eq!(reduced(100_000, 100_000, Signal::Loss), 4000);
        assert_eq!(reduced(100_000, 160_000, Signal::Loss), 2500);
        assert_eq!(reduced(100_000, 900_000, Signal::Timeout), 1000);
        assert_eq!(reduced(100_000, 100_000, Signal::Mark), 2000);
        assert_eq!(reduced(0, 0, Signal::Loss), 2000);
    }
}
