//! One link-layer address type for every radio.

use core::fmt;

/// A link-layer address: an EUI-48, an EUI-64 or a node number, in one comparable value.
///
/// The wire formats turn it into their own octets: 802.11 uses the low 48 bits. The broadcast address is
/// all ones in every format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u64);

/// First octets of the addresses that Chappe gives to numbered nodes: bit 1 of the first octet marks a
/// locally administered address (IEEE 802-2014, 8.2.2).
const LOCAL_PREFIX: u64 = 0x0200_0000_0000;

impl Address {
    /// Every node in range.
    pub const BROADCAST: Address = Address(u64::MAX);

    /// The locally administered EUI-48 of node `number` in a scenario: `02:00:00:00:hh:ll`.
    pub const fn node(number: u16) -> Address {
        Address(LOCAL_PREFIX | number as u64)
    }

    /// An EUI-48 in the order of transmission, first octet first.
    pub const fn from_eui48(octets: [u8; 6]) -> Address {
        let [a, b, c, d, e, f] = octets;
        let value = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        // One value for broadcast, whichever format it came in: layers compare addresses.
        if value == 0xffff_ffff_ffff {
            Address::BROADCAST
        } else {
            Address(value)
        }
    }

    /// The low 48 bits in the order of transmission.
    pub const fn to_eui48(self) -> [u8; 6] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// An EUI-64 or any other number of up to 64 bits.
    pub const fn from_u64(value: u64) -> Address {
        Address(value)
    }

    /// The address as a number.
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The node number, if this is an address made by [`Address::node`].
    pub const fn node_number(self) -> Option<u16> {
        if self.0 & !0xffff == LOCAL_PREFIX {
            Some((self.0 & 0xffff) as u16)
        } else {
            None
        }
    }

    /// Whether this is [`Address::BROADCAST`].
    pub const fn is_broadcast(self) -> bool {
        self.0 == u64::MAX
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node_number() {
            _ if self.is_broadcast() => f.write_str("*"),
            Some(number) => write!(f, "n{number}"),
            None => {
                let [a, b, c, d, e, g] = self.to_eui48();
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_round_trip_through_eui48() {
        for address in [Address::node(0), Address::node(513), Address::BROADCAST] {
            assert_eq!(Address::from_eui48(address.to_eui48()), address);
        }
        assert_eq!(Address::node(513).node_number(), Some(513));
        assert_eq!(Address::BROADCAST.node_number(), None);
    }

    #[test]
    fn addresses_print_short() {
        assert_eq!(Address::node(7).to_string(), "n7");
        assert_eq!(Address::BROADCAST.to_string(), "*");
        assert_eq!(
            Address::from_eui48([0, 0x1b, 2, 3, 4, 5]).to_string(),
            "00:1b:02:03:04:05"
        );
    }
}
