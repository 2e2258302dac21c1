//! A subframe of an A-MPDU: where it stands in its PSDU.

use chappe_wire::dot11::ampdu::Subframes;

/// A block acknowledgement has as many bits. What stands behind so many subframes is part of the last.
pub(crate) const PARTS_MAX: usize = 64;

/// A subframe's octets in its PSDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Finds the subframes of a PSDU.
pub(crate) fn find(psdu: &[u8], parts: &mut Vec<Part>) {
    parts.clear();
    for (from, _) in Subframes::new(psdu).take(PARTS_MAX) {
        if let Some(last) = parts.last_mut() {
            last.to = from;
        }
        let to = psdu.len();
        parts.push(Part { from, to });
    }
}
