//! The cost for a mote: the time of its processor and of its radio, and the least that any protocol needs.

use chappe_core::Duration;

use super::super::lln::NodeCounts;

/// The time of a frame of 127 octets on the paper's radio, from load to acknowledgement (figure 4a).
pub const FRAME: Duration = Duration::from_micros(7200);

/// The time of a data request of 12 octets: 3.136 ms as for every frame, and 32 us for each octet (specified in 5.2).
pub const REQUEST: Duration = Duration::from_micros(3136 + 32 * 12);

/// Seconds to copy a full frame between processor and radio: the part of the paper's 7.2 ms that is not the standard's CSMA-CA
/// (specified in 5.2). The processor copies (4.2), and again for each attempt, since the radio has one buffer for both
/// directions.
const COPY: f64 = 960e-6;
/// The clock of Hamilton's processor, in Hz.
const CLOCK: f64 = 48e6;
/// Instructions for a packet sent (write and send a segment with data) and for one received (process an acknowledgement), as
/// `cargo xtask sizes` counted them on a Cortex-M4 (`docs/benchmarks/tcplp-sizes.txt`). The instructions of 6LoWPAN and MAC
/// are not included. CoAP is assumed to need the same number.
const SENDING: f64 = 1299.0 + 3926.0;
const TAKING: f64 = 3100.0;

/// Share of `time` for which the processor is busy: it copies frames, and processes packets at one instruction per cycle. The
/// operating system's timers, threads and sensing are not included, so a mote's duty cycle is higher.
pub fn cpu(counts: &NodeCounts, time: Duration) -> f64 {
    let sent = counts.data_sent + counts.requests_sent;
    let copies = (sent + counts.data_received) as f64 * COPY;
    let (packets, taken) = (counts.packets_sent as f64, counts.packets_received as f64);
    let work = (packets * SENDING + taken * TAKING) / CLOCK;
    (copies + work) / time.as_secs_f64()
}

/// The radio duty cycle of the paper's ideal protocol (8.2.2). It sends `frames` frames in `time`, retransmits those of lost
/// packets without any feedback, and does nothing else. A frame takes the paper's 7.2 ms.
pub fn roofline(frames: u32, time: Duration, loss: f64) -> f64 {
    f64::from(frames) / (1.0 - loss) * FRAME.as_secs_f64() / time.as_secs_f64()
}

/// The frames of a batch of `octets`, in segments of `segment` octets with `frames` frames each. The last segment may be
/// shorter.
pub fn frames(octets: u32, segment: u32, frames: u32) -> u32 {
    let (whole, rest) = (octets / segment, octets % segment);
    whole * frames + (rest * frames).div_ceil(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's 0.63 to 0.70 %: 5248 octets in 64 s, in segments of five frames with 462 octets. As specified: 11.36 to 12
    /// segments, 0.639 to 0.675 %.
    #[test]
    fn ideal_protocol_matches_the_papers_values() {
        let count = frames(64 * 82, 462, 5);
        assert_eq!(count, 57);
        let share = roofline(count, Duration::from_secs(64), 0.0);
        assert!((0.00639..0.00675).contains(&share), "{share}");
        assert!((roofline(count, Duration::from_secs(64), 0.5) / share - 2.0).abs() < 1e-9);
    }
}
