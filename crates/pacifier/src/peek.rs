//! What a frame is, for traces: of the paper's protocols and of the improved variant.

use crate::frame::{TYPE, VERSION, big_endian};
use crate::improved::header as improved;

/// What a frame is and the batch that it belongs to, without further checks, for traces; `None` for other octets.
pub fn peek(sdu: &[u8]) -> Option<(&'static str, Option<u32>)> {
    let first = *sdu.get(TYPE)?;
    let batch = |from: usize| sdu.get(from..from + 4).map(big_endian);
    match (first >> 4 == VERSION).then_some(first & 15)? {
        1 => Some(("coded", batch(5))),
        2 => Some(("batch_ack", batch(3))),
        3 => Some(("probe", None)),
        4 | 7 => Some(("coded", improved::batch(sdu))),
        5 => Some(("report", None)),
        6 => Some(("data", improved::batch(sdu))),
        _ => None,
    }
}
