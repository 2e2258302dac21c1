//! UDP (RFC 768) over IPv6, where the checksum is not optional (RFC 8200, 8.1).

use core::net::Ipv6Addr;

use crate::{Malformed, Writer, checksum, head, ipv6::next};

/// Octets of the header.
pub const HEADER_LEN: usize = 8;

/// A UDP datagram, without its length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The port of the sender.
    pub source_port: u16,
    /// The port of the receiver.
    pub destination_port: u16,
    /// The octets behind the header.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads the upper layer of a packet between these addresses. Its stated length must be the real one, and its
    /// checksum right.
    pub fn parse(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        upper: &'a [u8],
    ) -> Result<Datagram<'a>, Malformed> {
        let &[a, b, c, d, e, f, g, h]: &[u8; HEADER_LEN] = head(upper)?;
        let stated = usize::from(u16::from_be_bytes([e, f]));
        let unsummed = [g, h] == [0, 0];
        if stated != upper.len()
            || unsummed
            || checksum::of(source, destination, next::UDP, upper) != 0
        {
            return Err(Malformed::Illegal);
        }
        Ok(Datagram {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            payload: upper.get(HEADER_LEN..).unwrap_or_default(),
        })
    }

    /// Writes header, payload and checksum to the front of `upper` and returns the length. Fails if it does not fit.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        upper: &mut [u8],
    ) -> Result<usize, Malformed> {
        let len = HEADER_LEN + self.payload.len();
        let stated = u16::try_from(len).map_err(|_| Malformed::Illegal)?;
        let mut writer = Writer::new(upper);
        writer.put(&self.source_port.to_be_bytes())?;
        writer.put(&self.destination_port.to_be_bytes())?;
        writer.put(&stated.to_be_bytes())?;
        writer.put(&[0; 2])?;
        writer.put(self.payload)?;
        seal(
            source,
            destination,
            upper.get_mut(..len).unwrap_or_default(),
        );
        Ok(len)
    }
}

/// Writes the checksum into a datagram that stands in `upper`, its checksum field zero.
pub fn seal(source: Ipv6Addr, destination: Ipv6Addr, upper: &mut [u8]) {
    // A sum of zero is sent as all ones (RFC 768).
    let sum = match checksum::of(source, destination, next::UDP, upper) {
        0 => 0xffff,
        sum => sum,
    };
    if let Some(field) = upper.get_mut(6..8) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> (Ipv6Addr, Ipv6Addr) {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
    }

    #[test]
    fn a_datagram_reads_back_and_needs_its_room() {
        let (source, destination) = addresses();
        let datagram = Datagram {
            source_port: 5683,
            destination_port: 61616,
            payload: b"hello",
        };
        let mut upper = [0; 13];
        assert_eq!(datagram.emit(source, destination, &mut upper), Ok(13));
        let back = Datagram::parse(source, destination, &upper);
        assert_eq!(back, Ok(datagram));
        assert!(datagram.emit(source, destination, &mut [0; 12]).is_err());
    }

    /// P07: the length in the header against the length that IPv6 gave, all orders; and every flipped bit is found.
    #[test]
    fn p07_lengths_and_checksums_must_agree() {
        let (source, destination) = addresses();
        let datagram = Datagram {
            source_port: 1,
            destination_port: 2,
            payload: &[7; 9],
        };
        let mut upper = [0; 20];
        let len = datagram.emit(source, destination, &mut upper).unwrap();
        for other in 0..=20 {
            let found = Datagram::parse(source, destination, &upper[..other]);
            assert_eq!(found.is_ok(), other == len, "{other}");
        }
        for bit in 0..len * 8 {
            let mut bent = upper;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(Datagram::parse(source, destination, &bent[..len]).is_err());
        }
    }
}
