//! The frame format.
//!
//! ```text
//!  0      1      3      5       7         12       14
//!  +------+------+------+-------+---------+--------+- - - - - - -+---------------+-----+
//!  | kind | from |  to  | epoch | counter | length | whole epoch | sealed octets | tag |
//!  +------+------+------+-------+---------+--------+- - - - - - -+---------------+-----+
//!                                                    hello only                    16
//! ```
//!
//! All fields are big-endian.
//!
//! - `kind` has the version in its upper four bits. Its lowest bits are the type, and bit 3 is set while the sender cannot
//!   read its receive queue fast enough.
//! - `from` and `to` are node numbers; 65,535 means all nodes.
//! - `epoch` names the sender's life: the low 16 bits of a random number drawn at its start. A hello carries all 64.
//! - `counter` never repeats in an epoch among frames of one kind (a hello counts as a broadcast). In a unicast frame
//!   its low octet counts the attempts, and the rest is the frame's number.
//! - `length` counts the sealed octets, because Ethernet pads short frames.
//!
//! The fields before the sealed octets are authenticated. The sealed octets are also encrypted.

/// Octets of the header, in every frame.
pub const HEADER: usize = 14;
/// Octets of the authentication tag at the end: ChaCha20-Poly1305 (RFC 8439).
pub const TAG: usize = 16;
/// Octets of the whole epoch, which a hello has behind the header.
pub const EPOCH: usize = 8;
/// The node number that addresses all nodes.
pub const BROADCAST: u16 = u16::MAX;
/// The largest counter: the field has 40 bits.
pub const COUNTER_MAX: u64 = (1 << 40) - 1;

const VERSION: u8 = 1;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SDU for all neighbours.
    Broadcast,
    /// An SDU for one neighbour, whose driver confirms it.
    Unicast,
    /// The confirmation of a unicast frame.
    Confirmation,
    /// Challenge and link measurements; see [`hello`](crate::hello).
    Hello,
}

/// The decoded header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the sender's receive queue stands: neighbours should send less.
    pub pressed: bool,
    /// The type of the frame.
    pub kind: Kind,
    /// The sender's node number.
    pub from: u16,
    /// The destination's node number, or [`BROADCAST`].
    pub to: u16,
    /// The low 16 bits of the sender's epoch.
    pub epoch: u16,
    /// The frame's counter, which is also its nonce.
    pub counter: u64,
    /// Number of sealed octets.
    pub length: u16,
}

impl Kind {
    /// Octets in the clear before the sealed ones.
    pub fn clear(self) -> usize {
        match self {
            Kind::Hello => HEADER + EPOCH,
            _ => HEADER,
        }
    }

    /// The counter space. Kinds with the same number share one counter.
    pub fn space(self) -> u8 {
        match self {
            Kind::Broadcast | Kind::Hello => 0,
            Kind::Unicast => 1,
            Kind::Confirmation => 2,
        }
    }
}

impl Header {
    /// Writes the header to the front of `frame`; false if there is no room.
    pub fn emit(&self, frame: &mut [u8]) -> bool {
        let Some(head) = frame.first_chunk_mut::<HEADER>() else {
            return false;
        };
        let kind = match self.kind {
            Kind::Broadcast => 0,
            Kind::Unicast => 1,
            Kind::Confirmation => 2,
            Kind::Hello => 3,
        };
        head[0] = VERSION << 4 | u8::from(self.pressed) << 3 | kind;
        head[1..3].copy_from_slice(&self.from.to_be_bytes());
        head[3..5].copy_from_slice(&self.to.to_be_bytes());
        head[5..7].copy_from_slice(&self.epoch.to_be_bytes());
        head[7..12].copy_from_slice(&self.counter.to_be_bytes()[3..]);
        head[12..14].copy_from_slice(&self.length.to_be_bytes());
        true
    }

    /// Reads a header. `None` if the version or type is unknown, the frame is shorter than its length field says, the
    /// sender is the broadcast number, or type and destination disagree.
    pub fn parse(frame: &[u8]) -> Option<Header> {
        let head = frame.first_chunk::<HEADER>()?;
        let kind = match (head[0] >> 4, head[0] & 7) {
            (VERSION, 0) => Kind::Broadcast,
            (VERSION, 1) => Kind::Unicast,
            (VERSION, 2) => Kind::Confirmation,
            (VERSION, 3) => Kind::Hello,
            _ => return None,
        };
        let [_, f0, f1, t0, t1, e0, e1, c0, c1, c2, c3, c4, l0, l1] = *head;
        let header = Header {
            pressed: head[0] & 8 != 0,
            kind,
            from: u16::from_be_bytes([f0, f1]),
            to: u16::from_be_bytes([t0, t1]),
            epoch: u16::from_be_bytes([e0, e1]),
            counter: u64::from_be_bytes([0, 0, 0, c0, c1, c2, c3, c4]),
            length: u16::from_be_bytes([l0, l1]),
        };
        let there = frame.len() >= header.frame_len();
        let for_all = matches!(kind, Kind::Broadcast | Kind::Hello);
        let sound = (header.to == BROADCAST) == for_all && header.from != BROADCAST;
        (there && sound).then_some(header)
    }

    /// Octets of the whole frame, tag included.
    pub fn frame_len(&self) -> usize {
        self.kind.clear() + usize::from(self.length) + TAG
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn header(kind: Kind) -> Header {
        let for_all = matches!(kind, Kind::Broadcast | Kind::Hello);
        Header {
            pressed: kind == Kind::Unicast,
            kind,
            from: 1,
            to: if for_all { BROADCAST } else { 2 },
            epoch: 0xbeef,
            counter: COUNTER_MAX - 1,
            length: 9,
        }
    }

    #[test]
    fn headers_round_trip_with_padding() {
        let kinds = [
            Kind::Broadcast,
            Kind::Unicast,
            Kind::Confirmation,
            Kind::Hello,
        ];
        for kind in kinds {
            let mut frame = [0xaa; 60];
            assert!(header(kind).emit(&mut frame));
            assert_eq!(Header::parse(&frame), Some(header(kind)));
            let len = header(kind).frame_len();
            assert!((0..len).all(|len| Header::parse(&frame[..len]).is_none()));
        }
        assert!(!header(Kind::Unicast).emit(&mut [0; HEADER - 1]));
    }

    /// Noise never panics, and hardly any of it looks like a frame.
    #[test]
    fn noise_is_rejected() {
        let mut stream = Seed(1).stream(Purpose::Trial(0));
        let mut taken = 0;
        for _ in 0..10_000 {
            let mut noise = [0; 64];
            stream.fill(&mut noise);
            taken += usize::from(Header::parse(&noise).is_some());
        }
        assert!(taken < 20, "{taken}");
    }
}
