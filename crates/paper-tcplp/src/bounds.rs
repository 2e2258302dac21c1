//! The frames and segments that the bounds of TCPlp's goodput are computed from.

use chappe_bound::closed::lowpan::{Frame, Segments};

use chappe_lab_tcplp::frames::Form;

/// Hamilton's radio: 0.96 ms to load each frame over SPI, which gives the 7.2 ms of the paper's Figure 4a.
pub const HAMILTON: Frame = Frame::dot15d4(960e-6);

/// A radio with a second frame buffer, or one that reads memory directly.
pub const BUFFERED: Frame = Frame::dot15d4(0.0);

/// TCP's header: 20 octets, and 12 of timestamps.
const HEADER: usize = 32;

/// Segments of an MSS with timestamps, as the encoder writes them; one ACK acknowledges `each` of them.
pub fn segments(form: &Form, mss: u16, each: usize) -> Segments {
    let frames = form.octets(20 + usize::from(mss));
    let ack = form.octets(HEADER);
    let sum = |octets: &[usize]| octets.iter().sum::<usize>() as f64;
    Segments {
        // The mean suffices, since a frame's time is linear in its octets.
        frames: sum(&frames) / frames.len().max(1) as f64,
        count: frames.len() as f64,
        payload: f64::from(mss) - 12.0,
        each: each as f64,
        ack: sum(&ack),
    }
}

/// The paper's count (6.3): five full frames of 127 octets for 462, an acknowledgement of 81.
pub const PAPER: Segments = Segments {
    frames: 127.0,
    payload: 462.0,
    count: 5.0,
    each: 2.0,
    ack: 81.0,
};
