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
/// The octet before the shares in a probe. Padding is zero; 1 was of linear prices.
const MARK: u8 = 2;

/// A node's share of the channel and its congestion price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Airtime, in 1/255 of all.
    airtime: u8,
    /// Price of the channel's time.
    price: Log,
}

/// The cost of a path: seconds of the channel for a packet times prices. [`Cost::NONE`] if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(Log);

/// A value of nearly 2^-32 to 2^32 as its logarithm, exact to 0.04 %. With an alpha of 3, rates of 1 to 1000 packets a second
/// mean prices over nine powers of ten. The code 0 is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Log(u16);

impl Log {
    /// The code of 1.
    const ONE: f64 = 32768.0;
    /// Codes for each doubling.
    const STEPS: f64 = 1024.0;
    /// The largest value; the code above stands for none.
    const MOST: Log = Log(u16::MAX - 1);

    /// Rounds; values out of range saturate, and what is no number is zero.
    fn new(value: f64) -> Log {
        if value.is_nan() || value <= 0.0 {
            return Log(0);
        }
        let code = libm::round(Log::ONE + Log::STEPS * libm::log2(value));
        // A value that is not zero stays above it.
        Log(code.clamp(1.0, f64::from(Log::MOST.0)) as u16)
    }

    fn get(self) -> f64 {
        match self.0 {
            0 => 0.0,
            code => libm::exp2((f64::from(code) - Log::ONE) / Log::STEPS),
        }
    }
}

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
    /// The largest price that a node may ask. Prices within three hops and costs over all hops add up to more.
    pub const PRICE_MAX: f64 = 1e6;

    /// Rounds both; values out of range saturate.
    pub fn new(airtime: f64, price: f64) -> Share {
        Share {
            airtime: libm::round(airtime * 255.0) as u8,
            price: Log::new(price),
        }
    }

    /// The share of the channel that the node uses, 0 to 1.
    pub fn airtime(self) -> f64 {
        f64::from(self.airtime) / 255.0
    }

    /// The node's congestion price.
    pub fn price(self) -> f64 {
        self.price.get()
    }

    fn octets(self) -> [u8; SHARE] {
        let [p0, p1] = self.price.0.to_be_bytes();
        [self.airtime, p0, p1]
    }

    fn read([airtime, p0, p1]: [u8; SHARE]) -> Share {
        let price = Log(u16::from_be_bytes([p0, p1]));
        Share { airtime, price }
    }
}

impl Cost {
    /// No cost is known.
    pub const NONE: Cost = Cost(Log(u16::MAX));

    /// Rounds; values out of range saturate.
    pub fn new(cost: f64) -> Cost {
        Cost(Log::new(cost))
    }

    /// The cost, if it is known.
    pub fn get(self) -> Option<f64> {
        (self != Cost::NONE).then(|| self.0.get())
    }

    fn read(octets: [u8; 2]) -> Cost {
        Cost(Log(u16::from_be_bytes(octets)))
    }

    fn octets(self) -> [u8; 2] {
        self.0.0.to_be_bytes()
    }
}

impl Stamp {
    pub(super) fn parse(octets: &[u8]) -> Result<(Stamp, &[u8]), Malformed> {
        let (&[a, p0, p1, c0, c1], rest) = octets
            .split_first_chunk::<STAMP>()
            .ok_or(Malformed::Short)?;
        let stamp = Stamp {
            share: Share::read([a, p0, p1]),
            cost: Cost::read([c0, c1]),
        };
        Ok((stamp, rest))
    }

    pub(super) fn put(self, writer: &mut Writer<'_>) -> Option<()> {
        writer.put(&self.share.octets())?;
        writer.put(&self.cost.octets())
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
        costs.iter().copied().map(Cost::read)
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
            writer.put(&cost.octets())?;
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
        assert!((Share::new(0.5, 0.1).airtime() - 0.5).abs() < 0.003);
        for value in [1e-9, 1.9e-4, 0.01, 1.0, 700.0, 3e9] {
            let (cost, price) = (Cost::new(value).get(), Share::new(0.0, value).price());
            assert!((price / value - 1.0).abs() < 4e-4, "{value}: {price}");
            assert_eq!(cost, Some(price));
        }
        assert_eq!(Cost::new(0.0).get(), Some(0.0));
        assert_eq!(Cost::new(f64::NAN).get(), Some(0.0));
        assert!(Cost::new(1e-300).get() > Some(0.0));
        assert_eq!(Cost::new(f64::INFINITY).get(), Cost::new(1e99).get());
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
