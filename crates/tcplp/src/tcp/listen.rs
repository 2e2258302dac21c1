//! The state LISTEN of RFC 9293, in four octets.

use super::segment::{Flags, Segment};

/// A passive socket. It owns no buffers and no connection: for a SYN it accepts, the driver takes a
/// [`Socket`](super::Socket) from its pool and calls [`Socket::accept`](super::Socket::accept).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The port it listens on.
    pub port: u16,
    /// How many more connections it accepts; the driver counts this down and up. At zero, SYNs are dropped, and the
    /// peer's retransmission may find room.
    pub backlog: u16,
}

/// What to do with a segment that reached a listener (RFC 9293 3.10.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A SYN: accept it with a free socket.
    Syn,
    /// An acknowledgement of no existing connection: answer with [`Segment::reset`].
    Refuse,
    /// Drop it silently: a reset, or a segment with nothing to answer.
    Ignore,
}

impl Listener {
    /// Listens on `port` for up to `backlog` connections at a time.
    pub const fn new(port: u16, backlog: u16) -> Listener {
        Listener { port, backlog }
    }

    /// Classifies a segment to this port that belongs to no connection: RST first, then ACK, then SYN, the order of RFC
    /// 9293 3.10.7.2.
    pub fn hear(&self, segment: &Segment<'_>) -> Heard {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            Heard::Ignore
        } else if flags.has(Flags::ACK) {
            Heard::Refuse
        } else if flags.has(Flags::SYN) && !flags.has(Flags::FIN) && self.backlog > 0 {
            Heard::Syn
        } else {
            Heard::Ignore
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Seq;
    use super::super::segment::{Options, Segment};
    use super::*;

    /// Every set of flags: RST first, then ACK, then SYN. SYN with FIN is no genuine opening.
    #[test]
    fn every_set_of_flags_is_judged_in_the_standards_order() {
        let listener = Listener::new(80, 1);
        for bits in 0..=255 {
            let flags = Flags::from_bits(bits);
            let segment = Segment {
                source_port: 1,
                destination_port: 80,
                seq: Seq::new(5),
                ack: Seq::new(6),
                flags,
                window: 0,
                urgent: 0,
                options: Options::default(),
                payload: &[],
            };
            let want = match (flags.has(Flags::RST), flags.has(Flags::ACK)) {
                (true, _) => Heard::Ignore,
                (_, true) => Heard::Refuse,
                _ if bits & 3 == 2 => Heard::Syn,
                _ => Heard::Ignore,
            };
            assert_eq!(listener.hear(&segment), want, "{flags}");
            assert_ne!(Listener::new(80, 0).hear(&segment), Heard::Syn);
        }
    }
}
