//! The standard's additive increase and multiplicative decrease (RFC 5681), counted in octets (RFC 3465).

use super::{Acked, Congestion, Reduction, Window, halved, slow_start};

/// RFC 5681 with appropriate byte counting. Its fast recovery, NewReno's, is the socket's.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno;

impl Congestion for NewReno {
    /// One segment more for each window acknowledged (RFC 3465 2.1).
    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        let rest = slow_start(window, acked);
        window.acked = window.acked.saturating_add(rest);
        if rest > 0 && window.acked >= window.cwnd {
            window.acked -= window.cwnd;
            window.cwnd = window.cwnd.saturating_add(acked.mss);
        }
    }

    fn reduced(&mut self, reduction: &Reduction) -> u32 {
        halved(reduction.flight, reduction.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Signal;
    use super::*;
    use chappe_core::Instant;

    fn acked(octets: u32) -> Acked {
        Acked {
            now: Instant::ZERO,
            octets,
            mss: 100,
            srtt: 0,
            after_timeout: false,
        }
    }

    #[test]
    fn slow_start_counts_at_most_two_segments_an_acknowledgement() {
        let mut window = Window {
            cwnd: 200,
            ssthresh: u32::MAX,
            acked: 0,
        };
        NewReno.acked(&mut window, &acked(50));
        assert_eq!(window.cwnd, 250);
        NewReno.acked(&mut window, &acked(500));
        assert_eq!(window.cwnd, 450);
        let after_timeout = Acked {
            after_timeout: true,
            ..acked(500)
        };
        NewReno.acked(&mut window, &after_timeout);
        assert_eq!(window.cwnd, 550);
    }

    #[test]
    fn avoidance_adds_one_segment_a_window() {
        let mut window = Window {
            cwnd: 400,
            ssthresh: 400,
            acked: 0,
        };
        for (octets, cwnd) in [(200, 400), (200, 500), (400, 500), (100, 600)] {
            NewReno.acked(&mut window, &acked(octets));
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn a_loss_halves_the_flight_down_to_two_segments() {
        let loss = Reduction::of(800, 100, Signal::Loss);
        assert_eq!(NewReno.reduced(&loss), 400);
        let timeout = Reduction::of(300, 100, Signal::Timeout);
        assert_eq!(NewReno.reduced(&timeout), 200);
    }
}
