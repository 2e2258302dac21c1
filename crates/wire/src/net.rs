//! IP networks in prefix notation (RFC 4632, RFC 4291 2.3).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP network in prefix notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net {
    /// Any address in the network.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub prefix: u8,
}

impl Net {
    /// The network of all IPv4 addresses.
    pub const DEFAULT_V4: Net = Net {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        prefix: 0,
    };
    /// The network of all IPv6 addresses.
    pub const DEFAULT_V6: Net = Net {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        prefix: 0,
    };

    /// Reads `10.0.0.0/24`, or an address alone; `None` if it is neither. The address is kept as it is.
    pub fn parse(text: &str) -> Option<Net> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().ok()?;
        let most = width(address);
        let prefix = prefix.map_or(Some(most), |prefix| prefix.trim().parse().ok())?;
        (prefix <= most).then_some(Net { address, prefix })
    }

    /// Whether an address lies in it.
    pub fn has(&self, address: IpAddr) -> bool {
        width(self.address) == width(address)
            && (bits(self.address) ^ bits(address)) & mask(self.prefix) == 0
    }

    /// The address with this number in the network; `None` if the network is too small.
    pub fn nth(&self, number: u16) -> Option<IpAddr> {
        let spare = u32::from(width(self.address) - self.prefix.min(width(self.address)));
        let most = 1u128.checked_shl(spare).unwrap_or(0).wrapping_sub(1);
        if u128::from(number) > most {
            return None;
        }
        let shift = 128 - u32::from(width(self.address));
        Some(from_bits(
            self.address,
            (bits(self.address) & mask(self.prefix)) | (u128::from(number) << shift),
        ))
    }

    /// The number of an address in the network, if it is one of a node.
    pub fn number(&self, address: IpAddr) -> Option<u16> {
        let shift = 128 - u32::from(width(address));
        let rest = (bits(address) & !mask(self.prefix)) >> shift;
        self.has(address).then(|| u16::try_from(rest).ok())?
    }

    /// The address of all hosts of an IPv4 network, which one of fewer than four addresses has not (RFC 919, RFC 3021).
    pub fn broadcast(&self) -> Option<IpAddr> {
        let last = bits(self.address) | !mask(self.prefix);
        let has = self.address.is_ipv4() && self.prefix < 31;
        has.then(|| from_bits(self.address, last))
    }

    /// The same network by its first address.
    pub fn cut(self) -> Net {
        let address = from_bits(self.address, bits(self.address) & mask(self.prefix));
        Net { address, ..self }
    }
}

impl core::fmt::Display for Net {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn from_bits(like: IpAddr, bits: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from((bits >> 96) as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(bits).into(),
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX
        .checked_shl(128 - u32::from(prefix.min(128)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn addresses_have_numbers_in_a_network() {
        let four = Net::parse("10.77.3.4/16").unwrap();
        assert_eq!(four.to_string(), "10.77.3.4/16");
        assert_eq!(four.cut().to_string(), "10.77.0.0/16");
        assert_eq!(four.nth(258), Some("10.77.1.2".parse().unwrap()));
        assert_eq!(four.number("10.77.1.2".parse().unwrap()), Some(258));
        assert_eq!(four.number("10.78.1.2".parse().unwrap()), None);
        let six = Net::parse("fd77::/64").unwrap();
        assert_eq!(six.nth(5), Some("fd77::5".parse().unwrap()));
        assert_eq!(six.number("fd77::1:0".parse().unwrap()), None);
        assert_eq!(Net::parse("10.0.0.0/30").unwrap().nth(4), None);
        assert!(Net::DEFAULT_V4.has("1.2.3.4".parse().unwrap()));
        assert!(!Net::DEFAULT_V4.has("::1".parse().unwrap()));
        assert_eq!(Net::parse("10.0.0.0/33"), None);
    }

    #[test]
    fn all_hosts_of_a_network_have_an_address() {
        let all = |net| {
            Net::parse(net)
                .unwrap()
                .broadcast()
                .map(|at| at.to_string())
        };
        assert_eq!(all("10.77.3.4/16"), Some("10.77.255.255".into()));
        assert_eq!(all("10.77.3.4/30"), Some("10.77.3.7".into()));
        assert_eq!([all("10.77.3.4/31"), all("fd77::/64")], [None, None]);
    }

    #[test]
    fn networks_contain_their_addresses() {
        let net = Net::parse("10.1.0.0/16").unwrap();
        assert!(net.has("10.1.255.1".parse().unwrap()) && !net.has("10.2.0.1".parse().unwrap()));
        assert!(
            Net::parse("0.0.0.0/0")
                .unwrap()
                .has("1.2.3.4".parse().unwrap())
        );
        assert!(!Net::parse("0.0.0.0/0").unwrap().has("::1".parse().unwrap()));
        assert!(
            Net::parse("fd00::/8")
                .unwrap()
                .has("fd12::1".parse().unwrap())
        );
        assert_eq!(Net::parse("10.0.0.1/33"), None);
    }
}
