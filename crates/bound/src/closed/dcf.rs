//! IEEE 802.11 DCF with one saturated sender and no contention: airtime per packet, goodput.

use super::arq::delivered;

/// Timing of one link under the distributed coordination function. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dcf {
    /// The slot time of the PHY.
    pub slot_s: f64,
    /// Short interframe space (SIFS).
    pub sifs_s: f64,
    /// DCF interframe space, SIFS + 2 slots.
    pub difs_s: f64,
    /// Preamble and PLCP header, sent ahead of every frame.
    pub preamble_s: f64,
    /// Smallest contention window; the first backoff is uniform in 0..=cw_min slots.
    pub cw_min: u32,
    /// Largest contention window (CWmax), in slots.
    pub cw_max: u32,
    /// Rate of data frames, bit/s.
    pub rate_bps: f64,
    /// Rate of acknowledgements, bit/s.
    pub ack_rate_bps: f64,
    /// MAC header and FCS of a data frame, bits, plus whatever else travels with each payload.
    pub overhead_bits: f64,
    /// Length of an acknowledgement, bits.
    pub ack_bits: f64,
}

impl Dcf {
    /// 802.11 DSSS with the long preamble: slot 20 us, SIFS 10 us, DIFS 50 us, 192 us of preamble
    /// and PLCP header, CW 31 to 1023; acknowledgements at the data rate but at most 2 Mbit/s; 28 octets of
    /// header and FCS, 14 of acknowledgement. Source: IEEE 802.11-2007, clauses 7.2, 15.3.3 and 18.3.3.
    pub fn dsss_long(rate_bps: f64) -> Dcf {
        Dcf {
            slot_s: 20e-6,
            sifs_s: 10e-6,
            difs_s: 50e-6,
            preamble_s: 192e-6,
            cw_min: 31,
            cw_max: 1023,
            rate_bps,
            ack_rate_bps: rate_bps.min(2e6),
            overhead_bits: 28.0 * 8.0,
            ack_bits: 14.0 * 8.0,
        }
    }

    /// The least a frame takes on the air: DIFS, preamble, bits. For strict bounds.
    pub fn frame_min_s(&self, payload_bits: f64) -> f64 {
        self.difs_s + self.data_s(payload_bits)
    }

    /// A broadcast frame with the mean backoff of a lone sender, CWmin / 2 slots.
    pub fn broadcast_s(&self, payload_bits: f64) -> f64 {
        self.frame_min_s(payload_bits) + f64::from(self.cw_min) / 2.0 * self.slot_s
    }

    /// Goodput of a saturated broadcaster at a receiver that loses the part `loss`, bit/s.
    pub fn broadcast_goodput_bps(&self, payload_bits: f64, loss: f64) -> f64 {
        payload_bits * (1.0 - loss) / self.broadcast_s(payload_bits)
    }

    /// Expected seconds per *delivered* packet of a saturated unicast sender, when an attempt fails
    /// with probability `loss` and is repeated at most `retries` times.
    ///
    /// Attempt k waits DIFS and on average CW_k / 2 slots, CW_k = min((CWmin + 1) 2^k - 1, CWmax),
    /// and sends. A success adds SIFS and the acknowledgement; a failure is taken to end one slot
    /// after the acknowledgement would have. Attempt k happens with probability loss^k, and
    /// 1 - loss^(m+1) of the packets arrive. Infinite if nothing does. Rules: IEEE 802.11-2007,
    /// clause 9.2.
    pub fn unicast_s(&self, payload_bits: f64, loss: f64, retries: u32) -> f64 {
        let ack_s = self.preamble_s + self.ack_bits / self.ack_rate_bps;
        let success = self.sifs_s + ack_s;
        let failure = self.sifs_s + self.slot_s + ack_s;
        let mut chance = 1.0;
        let mut total = 0.0;
        let mut window = self.cw_min;
        for _ in 0..=retries {
            let backoff = f64::from(window) / 2.0 * self.slot_s;
            let sent = self.frame_min_s(payload_bits) + backoff;
            total += chance * (sent + (1.0 - loss) * success + loss * failure);
            chance *= loss;
            window = window.saturating_mul(2).saturating_add(1).min(self.cw_max);
        }
        total / delivered(loss, retries)
    }

    /// Goodput of a saturated unicast sender without contention, bit/s.
    pub fn unicast_goodput_bps(&self, payload_bits: f64, loss: f64, retries: u32) -> f64 {
        payload_bits / self.unicast_s(payload_bits, loss, retries)
    }

    fn data_s(&self, payload_bits: f64) -> f64 {
        self.preamble_s + (payload_bits + self.overhead_bits) / self.rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 octets at 2 Mbit/s: 50 + 310 + 192 + 912 + 10 + 192 + 56 = 1722 us, 929 kbit/s.
    #[test]
    fn a_lossless_packet_by_hand() {
        let dcf = Dcf::dsss_long(2e6);
        let seconds = dcf.unicast_s(1600.0, 0.0, 7);
        assert!((seconds - 1722e-6).abs() < 1e-12, "{seconds}");
        assert!((dcf.frame_min_s(1600.0) - 1154e-6).abs() < 1e-12);
        assert!((dcf.broadcast_s(1600.0) - 1464e-6).abs() < 1e-12);
    }

    /// One retry at loss 1/2: first attempt 1722 or 1742 us, second with window 63 (630 us); 3 of 4
    /// packets arrive.
    #[test]
    fn one_retry_by_hand() {
        let dcf = Dcf::dsss_long(2e6);
        let first = 0.5 * 1722.0 + 0.5 * 1742.0;
        let second = first + (630.0 - 310.0);
        let expected = (first + 0.5 * second) / 0.75;
        assert!((dcf.unicast_s(1600.0, 0.5, 1) * 1e6 - expected).abs() < 1e-9);
    }

    #[test]
    fn the_window_stops_growing_and_dead_links_deliver_nothing() {
        let dcf = Dcf::dsss_long(2e6);
        let growth =
            |retries| dcf.unicast_s(1600.0, 0.999_999, retries) * delivered(0.999_999, retries);
        // From the sixth attempt on each costs the same.
        let (a, b, c) = (growth(8), growth(9), growth(10));
        assert!(((c - b) - (b - a)).abs() < 1e-7);
        assert!(dcf.unicast_s(1600.0, 1.0, 7).is_infinite());
    }

    /// The window in slots never exceeds CWmax, and saturated goodput falls with loss.
    #[test]
    fn more_loss_less_goodput() {
        let dcf = Dcf::dsss_long(11e6);
        let mut before = f64::INFINITY;
        for loss in [0.0, 0.1, 0.3, 0.6, 0.9] {
            let goodput = dcf.unicast_goodput_bps(12_000.0, loss, 7);
            assert!(goodput < before && goodput > 0.0);
            before = goodput;
        }
    }
}
