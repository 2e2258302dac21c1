//! The frame format.
//!
//! ```text
//!  0      1      3      5       7         12       14
//!  +------+------+------+-------+---------+--------+- - - - - - - - - - - -+---------------+---------+
//!  | kind | from |  to  | epoch | counter | length | whole epoch 8, serial 4 | sealed octets | trailer |
//!  +------+------+------+-------+---------+--------+- - - - - - - - - - - -+---------------+---------+
//!                                                    hello and handshake
//! ```
//!
//! All fields are big-endian.
//!
//! - `kind` has the version in its upper four bits. Its lowest bits are the type, and bit 3 is set while the sender cannot
//!   read its receive queue fast enough.
//! - `from` and `to` are node numbers. From 65,280 on, `to` means all nodes, and its low octet is the generation of the
//!   sender's key.
//! - `epoch` names the sender's life: the low 16 bits of a random number drawn at its start. Hellos and handshakes carry all 64,
//!   and the serial of the group's list of members that the sender has.
//! - `counter` never repeats in an epoch among frames of one kind (a hello counts as a broadcast). In a unicast frame
//!   its low octet counts the attempts, and the rest is the frame's number.
//! - `length` counts the sealed octets, because Ethernet pads short frames.
//!
//! The trailer is the cipher's tag. A hello has a stamp behind it, and a handshake has a stamp only: a keyed digest of the whole
//! frame under the group's key, so that strangers cost no public-key operation. A notice is not sealed, since those who need it
//! have an old key; its trailer is a plain digest. The fields before the sealed octets are authenticated as well.

/// Octets of the header, in every frame.
pub const HEADER: usize = 14;
/// Octets of the authentication tag at the end: ChaCha20-Poly1305 (RFC 8439).
pub const TAG: usize = 16;
/// Octets of a stamp.
pub const STAMP: usize = 16;
/// Octets of the whole epoch and of the serial behind the header.
pub const EPOCH: usize = 8 + 4;
/// The first number that means all nodes.
pub const ALL: u16 = 0xff00;
/// The largest counter: the field has 40 bits.
pub const COUNTER_MAX: u64 = (1 << 40) - 1;

/// Version 1 had one key for all members; version 2 hashed handshakes with BLAKE2s; broadcasts of version 3 had no echo, and those of
/// version 4 could not ask for one.
const VERSION: u8 = 5;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SDU for all neighbours.
    Broadcast,
    /// An SDU for one neighbour, whose driver confirms it.
    Unicast,
    /// The confirmation of a unicast frame.
    Confirmation,
    /// Link measurements; see [`hello`](crate::hello).
    Hello,
    /// A message of a Noise handshake; see [`handshake`](crate::handshake).
    Handshake,
    /// The key of the sender's broadcasts for one neighbour, or the confirmation of one.
    Key,
    /// A piece of a newer list of members; see [`notice`](crate::notice).
    Notice,
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
    /// The destination's node number, or [`ALL`] and the generation of the key.
    pub to: u16,
    /// The low 16 bits of the sender's epoch.
    pub epoch: u16,
    /// The frame's counter, which is also its nonce.
    pub counter: u64,
    /// Number of sealed octets.
    pub length: u16,
}

impl Kind {
    /// The types in the order of their codes.
    const TYPES: [Kind; 7] = [
        Kind::Broadcast,
        Kind::Unicast,
        Kind::Confirmation,
        Kind::Hello,
        Kind::Handshake,
        Kind::Key,
        Kind::Notice,
    ];

    /// Octets in the clear before the sealed ones.
    pub fn clear(self) -> usize {
        match self {
            Kind::Hello | Kind::Handshake => HEADER + EPOCH,
            _ => HEADER,
        }
    }

    /// Octets behind the sealed ones.
    pub fn trailer(self) -> usize {
        match self {
            Kind::Hello => TAG + STAMP,
            _ => TAG,
        }
    }

    /// The counter space. Kinds with the same number share one counter.
    pub fn space(self) -> u8 {
        match self {
            Kind::Broadcast | Kind::Hello => 0,
            Kind::Unicast => 1,
            Kind::Confirmation => 2,
            Kind::Handshake | Kind::Key | Kind::Notice => 3,
        }
    }

    fn is_for_all(self) -> bool {
        matches!(self, Kind::Broadcast | Kind::Hello | Kind::Notice)
    }
}

impl Header {
    /// Writes the header to the front of `frame`; false if there is no room.
    pub fn emit(&self, frame: &mut [u8]) -> bool {
        let Some(head) = frame.first_chunk_mut::<HEADER>() else {
            return false;
        };
        head[0] = VERSION << 4 | u8::from(self.pressed) << 3 | self.kind as u8;
        head[1..3].copy_from_slice(&self.from.to_be_bytes());
        head[3..5].copy_from_slice(&self.to.to_be_bytes());
        head[5..7].copy_from_slice(&self.epoch.to_be_bytes());
        head[7..12].copy_from_slice(&self.counter.to_be_bytes()[3..]);
        head[12..14].copy_from_slice(&self.length.to_be_bytes());
        true
    }

    /// Reads a header. `None` if the version or type is unknown, the frame is shorter than its length field says, the
    /// sender is no node's number, or type and destination disagree.
    pub fn parse(frame: &[u8]) -> Option<Header> {
        let head = frame.first_chunk::<HEADER>()?;
        if head[0] >> 4 != VERSION {
            return None;
        }
        let kind = *Kind::TYPES.get(usize::from(head[0] & 7))?;
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
        let sound = (header.to >= ALL) == kind.is_for_all() && header.from < ALL;
        (there && sound).then_some(header)
    }

    /// Octets of the whole frame, trailer included.
    pub fn frame_len(&self) -> usize {
        self.kind.clear() + usize::from(self.length) + self.kind.trailer()
    }

    /// The generation of the sender's key that seals a broadcast or hello.
    pub fn generation(&self) -> u8 {
        self.to as u8
    }
}

/// Whether a frame is one of version 1, whose members share one key.
pub fn is_former(frame: &[u8]) -> bool {
    let kinds = frame
        .first()
        .is_some_and(|first| first >> 4 == 1 && first & 7 <= 3);
    kinds && frame.len() >= HEADER + TAG
}

/// The whole epoch and the serial in a hello or handshake, not authenticated; `None` if the frame is too short.
pub fn epoch_and_serial(frame: &[u8]) -> Option<(u64, u32)> {
    let clear = frame.get(HEADER..HEADER + EPOCH)?;
    let (epoch, serial) = clear.split_first_chunk()?;
    let serial = serial.first_chunk()?;
    Some((u64::from_be_bytes(*epoch), u32::from_be_bytes(*serial)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn header(kind: Kind) -> Header {
        let for_all = kind.is_for_all();
        Header {
            pressed: kind == Kind::Unicast,
            kind,
            from: 1,
            to: if for_all { ALL | 7 } else { 2 },
            epoch: 0xbeef,
            counter: COUNTER_MAX - 1,
            length: 9,
        }
    }

    #[test]
    fn headers_round_trip_with_padding() {
        for kind in Kind::TYPES {
            let mut frame = [0xaa; 80];
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
        // Seven of 128 first octets, and a length that fits.
        assert!(taken < 20, "{taken}");
    }
}
