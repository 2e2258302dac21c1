//! The flags of a connection, one bit each, and two small numbers in the bits above them: 32 bits in all, where
//! booleans would take an octet each.

/// A set of flags, and the small numbers beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits(u32);

impl Bits {
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub fn set(&mut self, bits: u32) {
        self.0 |= bits;
    }

    pub fn clear(&mut self, bits: u32) {
        self.0 &= !bits;
    }

    pub fn put(&mut self, bits: u32, on: bool) {
        if on { self.set(bits) } else { self.clear(bits) }
    }

    /// The small number at `place`.
    pub fn number(self, place: Place) -> u8 {
        (self.0 >> place.shift) as u8 & place.max
    }

    /// Sets the small number at `place`.
    pub fn set_number(&mut self, place: Place, number: u8) {
        self.clear(u32::from(place.max) << place.shift);
        self.set(u32::from(number.min(place.max)) << place.shift);
    }

    /// Clears the bits and returns whether one of them was set.
    pub fn take(&mut self, bits: u32) -> bool {
        let had = self.has(bits);
        self.clear(bits);
        had
    }
}

/// The bit of a mechanism; 0, which is never set, if the crate is built without it. Its code is then dropped by the compiler.
const fn only(feature: bool, bit: u32) -> u32 {
    if feature { bit } else { 0 }
}

/// The place of a small number: its shift, and its largest value (all ones).
#[derive(Clone, Copy)]
pub struct Place {
    shift: u32,
    max: u8,
}

/// The [`Failure`](super::Failure) that ended the connection; 0 if there was none.
pub const FAILURE: Place = Place { shift: 25, max: 7 };
/// The shift of the peer's windows, 0 to 14.
pub const SCALE: Place = Place {
    shift: 28,
    max: only(cfg!(feature = "window-scale"), 15) as u8,
};

// Negotiated on the SYN.

/// Both ends use SACK.
pub const SACK: u32 = only(cfg!(feature = "sack"), 1);
/// Both ends use timestamps.
pub const TIMESTAMPS: u32 = only(cfg!(feature = "timestamps"), 1 << 1);
/// Both ends scale windows.
pub const WINDOW_SCALE: u32 = only(cfg!(feature = "window-scale"), 1 << 2);
/// Both ends use ECN.
pub const ECN: u32 = only(cfg!(feature = "ecn"), 1 << 3);

// To be sent by the next `poll_segment`.

/// A SYN, or a SYN-ACK.
pub const SYN_NOW: u32 = 1 << 4;
/// An acknowledgement, at once.
pub const ACK_NOW: u32 = 1 << 5;
/// A reset, before anything else.
pub const RST_NOW: u32 = 1 << 6;
/// The first lost segment, whatever the congestion window says.
pub const FORCE: u32 = 1 << 7;
/// A tail loss probe.
pub const PROBE_NOW: u32 = only(cfg!(feature = "rack"), 1 << 8);
/// A window probe, or a segment smaller than silly-window avoidance allows.
pub const PERSIST_NOW: u32 = 1 << 9;
/// A keep-alive probe (RFC 9293 3.8.4).
pub const KEEP_ALIVE_NOW: u32 = only(cfg!(feature = "keep-alive"), 1 << 10);

/// Everything above: cleared when the connection ends.
pub const PENDING: u32 =
    SYN_NOW | ACK_NOW | RST_NOW | FORCE | PROBE_NOW | PERSIST_NOW | KEEP_ALIVE_NOW;

// The state of the connection beside its RFC 9293 state.

/// The connection began by the peer's SYN.
pub const PASSIVE: u32 = 1 << 11;
/// The SYN was sent more than once.
pub const SYN_RETRANSMITTED: u32 = 1 << 12;
/// The application closed its direction; a FIN follows its data.
pub const FIN_QUEUED: u32 = 1 << 13;
/// The FIN is sent: SND.NXT is past it.
pub const FIN_SENT: u32 = 1 << 14;
/// The sequence number of the peer's FIN is known; data before it may be missing.
pub const FIN_KNOWN: u32 = 1 << 15;
/// The application has closed the connection and reads no more: further data is answered by a reset.
pub const READ_CLOSED: u32 = 1 << 16;
/// One octet past SND.NXT was sent as a window probe and may be acknowledged.
pub const PROBED_WINDOW: u32 = 1 << 17;
/// A tail loss probe is in flight and its outcome is unknown (TLP.end_seq is set).
pub const PROBED_TAIL: u32 = only(cfg!(feature = "rack"), 1 << 18);
/// That probe was a retransmission (TLP.is_retrans).
pub const PROBE_RETRANSMITTED: u32 = only(cfg!(feature = "rack"), 1 << 19);
/// The last window reduction can still be undone.
pub const UNDO: u32 = only(cfg!(feature = "undo"), 1 << 20);
/// ECE is set on every segment until the peer sends CWR (RFC 3168 6.1.3).
pub const SEND_ECE: u32 = only(cfg!(feature = "ecn"), 1 << 21);
/// The next new data carries CWR (RFC 3168 6.1.2).
pub const SEND_CWR: u32 = only(cfg!(feature = "ecn"), 1 << 22);
/// The TSval of this recovery's first retransmission is recorded.
pub const STAMPED: u32 = only(cfg!(feature = "undo"), 1 << 23);
/// The SYN that we answered asked for ECN.
pub const ECN_OFFERED: u32 = only(cfg!(feature = "ecn"), 1 << 24);
