//! The request for a newer sequence number.

use super::{KIND_REQUEST, Malformed, REQUEST, VERSION, Writer};

/// A request for a route with this sequence number or a newer one (RFC 8966, 4.6.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How often it may still be forwarded, this transmission included.
    pub hop_limit: u8,
    /// The node that the route leads to, and that numbers it.
    pub destination: u16,
    /// The least sequence number that helps.
    pub seq: u16,
    /// Whether no packet waits for the destination: the request may wait for a frame to ride in.
    pub idle: bool,
}

/// The bit of the hop limit's octet that says so.
const IDLE: u8 = 0x80;

impl Request {
    pub(super) fn parse(octets: &[u8]) -> Result<Request, Malformed> {
        let (&[_, hop_limit, d0, d1, s0, s1], _) = octets
            .split_first_chunk::<REQUEST>()
            .ok_or(Malformed::Short)?;
        Ok(Request {
            hop_limit: hop_limit & !IDLE,
            idle: hop_limit & IDLE != 0,
            destination: u16::from_be_bytes([d0, d1]),
            seq: u16::from_be_bytes([s0, s1]),
        })
    }

    /// Writes the request. Returns its length, or `None` if the buffer is too small.
    pub fn emit(&self, room: &mut [u8]) -> Option<usize> {
        let mut writer = Writer { room, len: 0 };
        let idle = if self.idle { IDLE } else { 0 };
        writer.put(&[
            VERSION << 4 | KIND_REQUEST,
            self.hop_limit.min(!IDLE) | idle,
        ])?;
        writer.put(&self.destination.to_be_bytes())?;
        writer.put(&self.seq.to_be_bytes())?;
        Some(writer.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Frame, parse};

    #[test]
    fn requests_match_the_layout() {
        let request = Request {
            hop_limit: 31,
            destination: 0x0102,
            seq: 0x0304,
            idle: false,
        };
        let mut room = [0; 6];
        assert_eq!(request.emit(&mut room), Some(6));
        assert_eq!(room, [0x17, 31, 1, 2, 3, 4]);
        assert_eq!(parse(&room), Ok(Frame::Request(request)));
        assert_eq!(parse(&room[..5]), Err(Malformed::Short));
        assert_eq!(request.emit(&mut room[..5]), None);
        let idle = Request {
            idle: true,
            ..request
        };
        assert_eq!(idle.emit(&mut room), Some(6));
        assert_eq!((room[1], parse(&room)), (0x9f, Ok(Frame::Request(idle))));
    }
}
