//! Which peer a destination belongs to: the longest prefix wins, for the price of one look per length that occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::classify::Net;

/// The networks of all peers.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The peer's place by family, length and first address.
    nets: BTreeMap<(bool, u8, u128), usize>,
    /// The lengths that occur, by family, longest last.
    lengths: BTreeSet<(bool, u8)>,
}

impl Routes {
    /// The routes of these networks. Of two equal ones the first counts.
    pub fn new<'a>(nets: impl Iterator<Item = (&'a Net, usize)>) -> Routes {
        let mut routes = Routes::default();
        for (net, place) in nets {
            let (family, bits) = number(net.address);
            let length = net.prefix.min(width(family));
            routes.lengths.insert((family, length));
            let first = masked(family, bits, length);
            routes.nets.entry((family, length, first)).or_insert(place);
        }
        routes
    }

    /// The place of the peer with the longest matching prefix for an address.
    pub fn find(&self, to: IpAddr) -> Option<usize> {
        let (family, bits) = number(to);
        let lengths = self.lengths.range((family, 0)..=(family, u8::MAX)).rev();
        lengths
            .map(|&(_, length)| (family, length, masked(family, bits, length)))
            .find_map(|key| self.nets.get(&key).copied())
    }
}

/// Whether the address is one of IPv6, and its bits.
fn number(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (false, u32::from(address).into()),
        IpAddr::V6(address) => (true, address.into()),
    }
}

const fn width(v6: bool) -> u8 {
    if v6 { 128 } else { 32 }
}

fn masked(v6: bool, bits: u128, length: u8) -> u128 {
    let cut = u32::from(width(v6) - length);
    bits.checked_shr(cut)
        .and_then(|bits| bits.checked_shl(cut))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the longest prefix wins, in each family alone, and the whole of a family is a prefix, too.
    #[test]
    fn the_longest_prefix_wins() {
        let nets = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.3/32",
            "0.0.0.0/0",
            "fd00::/8",
            "fd00::1/128",
        ];
        let nets = nets.map(|text| Net::parse(text).unwrap());
        let routes = Routes::new(nets.iter().zip(0..));
        for (to, place) in [
            ("10.9.9.9", Some(0)),
            ("10.1.9.9", Some(1)),
            ("10.1.2.3", Some(2)),
            ("192.0.2.1", Some(3)),
            ("fd00::2", Some(4)),
            ("fd00::1", Some(5)),
            ("2001:db8::1", None),
        ] {
            assert_eq!(routes.find(to.parse().unwrap()), place, "{to}");
        }
    }
}
