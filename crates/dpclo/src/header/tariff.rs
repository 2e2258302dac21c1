//! Airtime and prices in probes and data frames.

use super::{Malformed, Writer};

/// Octets of a share.
pub const SHARE: usize = 3;
/// Octets of a share with its node.
pub const FAR: usize = 2 + SHARE;
/// Most nodes two hops away in a probe: of about 25 such nodes, few are active.
pub const FAR_MAX: usize = 24;
/// Octets of a stamp.
pub const STAMP: usize = SHARE + 2;
/// The octet before the shares in a probe. Padding is zero.
const MARK: u8 = 1;

/// A node's share of the channel and its congestion price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Airtime, in 1/255 of all.
    airtime: u8,
    /// Price of the channel's time, in units of 1/4096.
    price: u16,
}

/// The cost of a path: seconds of the channel for a packet times prices. [`Cost::NONE`] if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(u16);

/// What a data frame says of its sender: its share, and the cost of its path to the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The sender's share and price.
    pub share: Share,
    /// The cost from the sender to the frame's destination.
    pub cost: Cost,
}

/// The shares in a probe, in the order of its counts, the costs, in the order of its queues, and the shares of active nodes
/// two hops from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tariff<'a> {
    /// That of the sender.
    pub own: Share,
    shares: &'a [u8],
    costs: &'a [u8],
    far: &'a [u8],
}

impl Share {
    /// The largest price that a share can carry.
    pub const PRICE_MAX: f64 = 15.99;

    /// Rounds both; values out of range saturate.
    pub fn new(airtime: f64, price: f64) -> Share {
        Share {
            airtime: libm::round(airtime * 255.0) as u8,
            price: libm::round(price * 4096.0) as u16,
        }
    }

    /// The share of the channel that the node uses, 0 to 1.
    pub fn airtime(self) -> f64 {
        f64::from(self.airtime) / 255.0
    }

    /// The node's congestion price.
    pub fn price(self) -> f64 {
        f64::from(self.price) / 4096.0
    }

    fn octets(self) -> [u8; SHARE] {
        let [p0, p1] = self.price.to_be_bytes();
        [self.airtime, p0, p1]
    }

    fn read([airtime, p0, p1]: [u8; SHARE]) -> Share {
        let price = u16::from_be_bytes([p0, p1]);
        Share { airtime, price }
    }
}

impl Cost {
    /// No cost is known.
    pub const NONE: Cost = Cost(u16::MAX);

    /// Rounds to 16 us; more than a second counts as a second.
    pub fn new(cost: f64) -> Cost {
        Cost((libm::round(cost / 16e-6) as u16).min(u16::MAX - 1))
    }

    /// The cost, if it is known.
    pub fn get(self) -> Option<f64> {
        (self != Cost::NONE).then_some(f64::from(self.0) * 16e-6)
    }
}

impl Stamp {
    pub(super) fn parse(octets: &[u8]) -> Result<(Stamp, &[u8]), Malformed> {
        let (&[a, p0, p1, c0, c1], rest) = octets
            .split_first_chunk::<STAMP>()
            .ok_or(Malformed::Short)?;
        let stamp = Stamp {
            share: Share::read([a, p0, p1]),
            cost: Cost(u16::from_be_bytes([c0, c1])),
        };
        Ok((stamp, rest))
    }

    pub(super) fn put(self, writer: &mut Writer<'_>) -> Option<()> {
        writer.put(&self.share.octets())?;
        writer.put(&self.cost.0.to_be_bytes())
    }
}

impl<'a> Tariff<'a> {
    /// Reads what follows the queues of a probe. `None`: it is padding.
    pub(super) fn parse(tail: &'a [u8], counts: usize, queues: usize) -> Option<Tariff<'a>> {
        let (&[mark, a, p0, p1], rest) = tail.split_first_chunk::<{ 1 + SHARE }>()?;
        let (shares, rest) = rest.split_at_checked(counts * SHARE)?;
        let (costs, rest) = rest.split_at_checked(queues * 2)?;
        let (&count, rest) = rest.split_first()?;
        let far = rest.get(..usize::from(count) * FAR)?;
        (mark == MARK && usize::from(count) <= FAR_MAX).then_some(Tariff {
            own: Share::read([a, p0, p1]),
            shares,
            costs,
            far,
        })
    }

    /// The shares of the nodes in the probe's counts.
    pub fn shares(&self) -> impl Iterator<Item = Share> + 'a {
        let (shares, _) = self.shares.as_chunks::<SHARE>();
        shares.iter().copied().map(Share::read)
    }

    /// The costs to the destinations of the probe's queues.
    pub fn costs(&self) -> impl Iterator<Item = Cost> + 'a {
        let (costs, _) = self.costs.as_chunks::<2>();
        costs.iter().map(|&octets| Cost(u16::from_be_bytes(octets)))
    }

    /// Active nodes two hops from the sender, with their shares.
    pub fn far(&self) -> impl Iterator<Item = (u16, Share)> + 'a {
        let (entries, _) = self.far.as_chunks::<FAR>();
        let entry = |&[n0, n1, a, p0, p1]: &[u8; FAR]| {
            (u16::from_be_bytes([n0, n1]), Share::read([a, p0, p1]))
        };
        entries.iter().map(entry)
    }

    /// Writes a tariff behind the queues of a probe, at `start` in `room`. Returns where it ends.
    pub fn emit(
        own: Share,
        shares: impl Iterator<Item = Share>,
        costs: impl Iterator<Item = Cost>,
        far: impl Iterator<Item = (u16, Share)>,
        (start, room): (usize, &mut [u8]),
    ) -> Option<usize> {
        let mut writer = Writer { room, len: start };
        writer.put(&[MARK])?;
        writer.put(&own.octets())?;
        for share in shares {
            writer.put(&share.octets())?;
        }
        for cost in costs {
            writer.put(&cost.0.to_be_bytes())?;
        }
        let at = writer.len;
        writer.put(&[0])?;
        let mut count = 0u8;
        for (node, share) in far.take(FAR_MAX) {
            writer.put(&node.to_be_bytes())?;
            writer.put(&share.octets())?;
            count += 1;
        }
        *writer.room.get_mut(at)? = count;
        Some(writer.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_costs_saturate() {
        assert_eq!(Share::new(2.0, -1.0), Share::new(1.0, 0.0));
        assert_eq!(Share::new(0.0, 1e9).price(), 65535.0 / 4096.0);
        assert!((Share::new(0.5, 0.1).airtime() - 0.5).abs() < 0.003);
        assert_eq!(Cost::new(9.0).get(), Some(65534.0 * 16e-6));
        assert_eq!(Cost::new(f64::NAN).get(), Some(0.0));
        assert_eq!(Cost::NONE.get(), None);
    }

    #[test]
    fn padding_is_no_tariff() {
        let shares = [Share::new(0.5, 1.0), Share::new(0.25, 2.0)];
        let mut room = [0; 40];
        let end = Tariff::emit(
            shares[0],
            shares.into_iter(),
            [Cost::NONE].into_iter(),
            [(700, shares[1])].into_iter(),
            (3, &mut room),
        );
        assert_eq!(end, Some(3 + 1 + 3 * SHARE + 2 + 1 + FAR));
        let tariff = Tariff::parse(&room[3..], 2, 1).unwrap();
        assert_eq!(tariff.own, shares[0]);
        assert!(tariff.shares().eq(shares) && tariff.costs().eq([Cost::NONE]));
        assert!(tariff.far().eq([(700, shares[1])]));
        assert_eq!(Tariff::parse(&room[3..10], 2, 1), None);
        assert_eq!(Tariff::parse(&[0; 40], 2, 1), None);
    }
}
