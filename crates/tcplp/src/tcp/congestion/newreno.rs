//! The standard's additive increase and multiplicative decrease (RFC 5681), counted in octets (RFC 3465).

use super::{Acked, Congestion, Window, halved, slow_start};

/// RFC 5681 with appropriate byte counting. The socket itself does NewReno's fast recovery (RFC 6582).
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

    fn reduced(&mut self, flight: u32, mss: u32) -> u32 {
        halved(flight, mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(octets: u32) -> Acked {
        Acked {
            octets,
            mss: 100,
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
        assert_eq!(NewReno.reduced(800, 100), 400);
        assert_eq!(NewReno.reduced(300, 100), 200);
    }
}
