//! Frame durations of 802.11n and ac (IEEE 802.11-2020, clauses 17, 19 and 21).

/// Octets of TCP payload in an MPDU.
pub const PAYLOAD: u64 = 1448;
/// Octets of an MPDU as a subframe: 1500 of IP, 8 of LLC, 26 of QoS header, 4 of check sequence, 4 of delimiter, padded to a
/// multiple of four.
const SUBFRAME: u64 = 1544;
/// The most MPDUs that one block ACK reports.
pub const BLOCK: u64 = 64;
/// The most octets of an A-MPDU of 802.11n (9.7).
const HT_OCTETS: u64 = 65_535;
/// The longest frame that drivers build, preamble included, in ns (ath9k's table of 4 ms: 32,172 octets at 65 Mbit/s).
const LONGEST: u64 = 4_000_000;

/// The rate and format of data frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phy {
    /// Name of the modulation and coding scheme, its width, and its rate.
    pub name: &'static str,
    /// Data bits of a symbol, and its duration in ns.
    bits: u64,
    symbol: u64,
    /// Duration of the preamble in ns.
    preamble: u64,
    /// The most octets of an A-MPDU.
    octets: u64,
    /// The longest ACK timeout that ath9k's registers hold at this width (`dynack.c`), in ns. ath9k has no 80 MHz, so that
    /// row uses the value of 40 MHz.
    pub register: u64,
}

/// The four PHYs of the figure (specs 2.3).
pub const PHYS: [Phy; 4] = [
    // One stream of 20 MHz: legacy preamble 20, HT-SIG 8, HT-STF 4, one HT-LTF 4.
    phy("MCS7 HT20 65", (260, 4_000), 36_000, HT_OCTETS, 600_000),
    phy("MCS15 HT20 130", (520, 4_000), 40_000, HT_OCTETS, 600_000),
    phy("MCS15 HT40 300", (1_080, 3_600), 40_000, HT_OCTETS, 300_000),
    // Legacy 20, VHT-SIG-A 8, STF 4, two LTF 8, SIG-B 4; A-MPDUs of up to a megabyte.
    phy("VHT80 MCS8 780", (2_808, 3_600), 44_000, 1 << 20, 300_000),
];

const fn phy(
    name: &'static str,
    (bits, symbol): (u64, u64),
    preamble: u64,
    octets: u64,
    register: u64,
) -> Phy {
    Phy {
        name,
        bits,
        symbol,
        preamble,
        octets,
        register,
    }
}

impl Phy {
    /// Duration of an A-MPDU of `mpdus` MPDUs, in ns. Its data field adds 16 service bits and 6 tail bits.
    pub fn airtime(&self, mpdus: u64) -> u64 {
        self.preamble + (8 * SUBFRAME * mpdus + 22).div_ceil(self.bits) * self.symbol
    }

    /// The most MPDUs that fit into one A-MPDU by octets, duration and block ACK.
    pub fn most(&self) -> u64 {
        let fits = |mpdus: &u64| mpdus * SUBFRAME <= self.octets && self.airtime(*mpdus) <= LONGEST;
        (1..=BLOCK).take_while(fits).last().unwrap_or(1)
    }

    /// The data rate in Mbit/s.
    pub fn rate(&self) -> f64 {
        1e3 * self.bits as f64 / self.symbol as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A-MPDUs as specified: 21 MPDUs in 4 ms at 65 Mbit/s, 42 in 64 KiB, 64 in a block ACK.
    #[test]
    fn ampdu_sizes_follow_the_standard() {
        assert_eq!(PHYS.map(|phy| phy.most()), [20, 41, 42, 64]);
        assert_eq!(
            PHYS.map(|phy| phy.rate().round()),
            [65.0, 130.0, 300.0, 780.0]
        );
        // One MPDU at 65 Mbit/s: 12,374 bits are 48 symbols.
        assert_eq!(PHYS[0].airtime(1), 36_000 + 48 * 4_000);
    }
}
