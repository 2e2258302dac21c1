//! The yes-or-no facts of a connection, one bit each, and two small numbers in the bits above them.

/// A set of facts.
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

    /// Takes the bits out; whether one of them was set.
    pub fn take(&mut self, bits: u32) -> bool {
        let had = self.has(bits);
        self.clear(bits);
        had
    }
}

/// Where a small number stands: how far up, and its largest value, all ones.
#[derive(Clone, Copy)]
pub struct Place {
    shift: u32,
    max: u8,
}

/// Why the connection ended; 0 if it did not, or in order.
pub const FAILURE: Place = Place { shift: 25, max: 7 };
/// The shift of the peer's windows, 0 to 14.
pub const SCALE: Place = Place { shift: 28, max: 15 };

// Negotiated on the SYN.

/// Both ends use SACK.
pub const SACK: u32 = 1;
/// Both ends use timestamps.
pub const TIMESTAMPS: u32 = 1 << 1;
/// Both ends scale windows.
pub const WINDOW_SCALE: u32 = 1 << 2;
/// Both ends use ECN.
pub const ECN: u32 = 1 << 3;

// To be sent at the next poll.

/// A SYN, or a SYN-ACK.
pub const SYN_NOW: u32 = 1 << 4;
/// An acknowledgement.
pub const ACK_NOW: u32 = 1 << 5;
/// A reset.
pub const RST_NOW: u32 = 1 << 6;
/// The first segment in flight, whatever the congestion window says.
pub const FORCE: u32 = 1 << 7;
/// A tail loss probe.
pub const PROBE_NOW: u32 = 1 << 8;
/// A window probe, or a small segment after all.
pub const PERSIST_NOW: u32 = 1 << 9;
/// A keep-alive.
pub const KEEP_ALIVE_NOW: u32 = 1 << 10;

/// All that would still be sent.
pub const PENDING: u32 =
    SYN_NOW | ACK_NOW | RST_NOW | FORCE | PROBE_NOW | PERSIST_NOW | KEEP_ALIVE_NOW;

// How things stand.

/// The SYN was sent more than once.
pub const SYN_RETRANSMITTED: u32 = 1 << 12;
/// The application closed; a FIN follows its data.
pub const FIN_QUEUED: u32 = 1 << 13;
/// The FIN is sent: SND.NXT is past it.
pub const FIN_SENT: u32 = 1 << 14;
/// The place of the peer's FIN is known.
pub const FIN_KNOWN: u32 = 1 << 15;
/// The application will not read any more.
pub const DEAF: u32 = 1 << 16;
/// One octet past SND.NXT was sent as a window probe and may be acknowledged.
pub const PROBED_WINDOW: u32 = 1 << 17;
/// A tail loss probe is out, and its outcome not known.
pub const PROBED_TAIL: u32 = 1 << 18;
/// That probe was a retransmission.
pub const PROBE_RETRANSMITTED: u32 = 1 << 19;
/// The last reduction may still prove spurious.
pub const UNDO: u32 = 1 << 20;
/// Congestion marks are echoed until the peer says that it reacted.
pub const ECHO_MARK: u32 = 1 << 21;
/// The next new data tells the peer that we reacted.
pub const SAY_REDUCED: u32 = 1 << 22;
/// A retransmission of this recovery has been stamped.
pub const STAMPED: u32 = 1 << 23;
/// The SYN that we answered asked for ECN.
pub const ECN_OFFERED: u32 = 1 << 24;
