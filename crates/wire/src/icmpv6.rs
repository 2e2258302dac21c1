//! ICMPv6: echo, and the errors that a router reports (RFC 4443).

use core::net::Ipv6Addr;

use crate::{Malformed, Writer, checksum, head, ipv6::next};

/// Octets before an echo's data, or before the packet that an error quotes.
pub const HEADER_LEN: usize = 8;

/// An echo message or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Echo request, or reply (4.1, 4.2).
    Echo {
        /// Whether it is the reply.
        reply: bool,
        /// Identifier and sequence number, to match them.
        id: u16,
        /// Number of the request, which the reply repeats.
        sequence: u16,
        /// Arbitrary data, which the reply repeats unchanged.
        data: &'a [u8],
    },
    /// A packet was not delivered: type 1 unreachable, 2 too big, 3 hops used up, 4 not understood.
    Error {
        /// The ICMPv6 type, 1 to 4.
        kind: u8,
        /// The code, which details the type.
        code: u8,
        /// MTU of a type 2, pointer of a type 4, otherwise zero.
        parameter: u32,
        /// The first octets of the packet that was not delivered.
        quote: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads the upper layer of a packet between these addresses. Its checksum must be right.
    pub fn parse(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        upper: &'a [u8],
    ) -> Result<Message<'a>, Malformed> {
        let &[kind, code, _, _, a, b, c, d]: &[u8; HEADER_LEN] = head(upper)?;
        if checksum::of(source, destination, next::ICMPV6, upper) != 0 {
            return Err(Malformed::Illegal);
        }
        let rest = upper.get(HEADER_LEN..).unwrap_or_default();
        match kind {
            128 | 129 => Ok(Message::Echo {
                reply: kind == 129,
                id: u16::from_be_bytes([a, b]),
                sequence: u16::from_be_bytes([c, d]),
                data: rest,
            }),
            1..=4 => Ok(Message::Error {
                kind,
                code,
                parameter: u32::from_be_bytes([a, b, c, d]),
                quote: rest,
            }),
            _ => Err(Malformed::Unsupported),
        }
    }

    /// Writes the message to the front of `upper` and returns its length. Fails if it does not fit.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        upper: &mut [u8],
    ) -> Result<usize, Malformed> {
        let mut writer = Writer::new(upper);
        match *self {
            Message::Echo {
                reply,
                id,
                sequence,
                data,
            } => {
                writer.put(&[128 + u8::from(reply), 0, 0, 0])?;
                writer.put(&id.to_be_bytes())?;
                writer.put(&sequence.to_be_bytes())?;
                writer.put(data)?;
            }
            Message::Error {
                kind,
                code,
                parameter,
                quote,
            } => {
                writer.put(&[kind, code, 0, 0])?;
                writer.put(&parameter.to_be_bytes())?;
                writer.put(quote)?;
            }
        }
        let len = writer.at;
        let upper = upper.get_mut(..len).unwrap_or_default();
        let sum = checksum::of(source, destination, next::ICMPV6, upper);
        if let Some(field) = upper.get_mut(2..4) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P06: echoes of every length from 0 to 16; what is shorter than the header is refused.
    #[test]
    fn p06_short_echoes_are_refused() {
        let (source, destination) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        for len in 0..8usize {
            let echo = Message::Echo {
                reply: false,
                id: 1,
                sequence: 2,
                data: &[5; 8][..len],
            };
            let mut upper = [0; 16];
            let all = echo.emit(source, destination, &mut upper).unwrap();
            assert_eq!(all, 8 + len);
            assert_eq!(Message::parse(source, destination, &upper[..all]), Ok(echo));
            assert!(Message::parse(source, destination, &upper[..len]).is_err());
            assert!(
                echo.emit(source, destination, &mut [0; 16][..all - 1])
                    .is_err()
            );
        }
    }
}
