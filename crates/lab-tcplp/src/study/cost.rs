//! What a mote pays: how long its radio is awake and its processor busy, and what it could not do without.

use chappe_core::Duration;

use super::super::lln::NodeCounts;

/// A frame of 127 octets from load to acknowledgement on the paper's radio (figure 4a).
pub const FRAME: Duration = Duration::from_micros(7200);

/// A data request of 12 octets on it: 3.136 ms as for every frame, and 32 us for each octet (specified in 5.2).
pub const REQUEST: Duration = Duration::from_micros(3136 + 32 * 12);

/// Copying a full frame between processor and radio: what the paper's 7.2 ms leave beside the standard's CSMA-CA (specified
/// in 5.2). The processor does the copying (4.2), for each attempt anew, since the radio has one buffer for both directions.
const COPY: f64 = 960e-6;
/// Hamilton's processor, Hz.
const CLOCK: f64 = 48e6;
/// Instructions for a packet sent and one received: writing and sending a segment with data, taking an acknowledgement, as
/// `cargo xtask sizes` counted them on a Cortex-M4 (`docs/benchmarks/tcplp-sizes.txt`). What 6LoWPAN and MAC take was not
/// counted, nor CoAP, which is taken to need no less.
const SENDING: f64 = 1299.0 + 5115.0;
const TAKING: f64 = 3803.0;

/// Share of `time` for which the processor is busy: copying frames, and working on packets, at an instruction a cycle. It
/// leaves out what an operating system takes for timers, threads and sensing, so it is less than what a mote shows.
pub fn cpu(counts: &NodeCounts, time: Duration) -> f64 {
    let sent = counts.data_sent + counts.requests_sent;
    let copies = (sent + counts.data_received) as f64 * COPY;
    let (packets, taken) = (counts.packets_sent as f64, counts.packets_received as f64);
    let work = (packets * SENDING + taken * TAKING) / CLOCK;
    (copies + work) / time.as_secs_f64()
}

/// The paper's ideal protocol (8.2.2): it sends each of `frames` frames in `time`, those of lost packets again without having
/// been told, and does nothing else. Share of the time, by the paper's 7.2 ms a frame.
pub fn roofline(frames: u32, time: Duration, loss: f64) -> f64 {
    f64::from(frames) / (1.0 - loss) * FRAME.as_secs_f64() / time.as_secs_f64()
}

/// Frames that a batch of `octets` takes in segments of `segment` octets, `frames` frames each; the last one is shorter.
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
    fn the_ideal_protocol_is_the_papers() {
        let count = frames(64 * 82, 462, 5);
        assert_eq!(count, 57);
        let share = roofline(count, Duration::from_secs(64), 0.0);
        assert!((0.00639..0.00675).contains(&share), "{share}");
        assert!((roofline(count, Duration::from_secs(64), 0.5) / share - 2.0).abs() < 1e-9);
    }
}
