//! Modulations, and the airtime of a frame. MACs and media must agree on it to the nanosecond, so it is defined here
//! once.

use core::fmt;

use crate::{Bitrate, Duration};

/// A modulation and its payload rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 802.11b, DBPSK with Barker spreading, 1 Mbit/s.
    Dsss1,
    /// 802.11b, DQPSK with Barker spreading, 2 Mbit/s.
    Dsss2,
    /// 802.11b, CCK, 5.5 Mbit/s.
    Cck5,
    /// 802.11b, CCK, 11 Mbit/s.
    Cck11,
    /// 802.15.4 at 2.4 GHz, O-QPSK with 32 chips to a symbol of 4 bits, 250 kbit/s.
    Oqpsk250,
    /// 802.11a and g, OFDM in 20 MHz, BPSK with a code of rate 1/2, 6 Mbit/s.
    Ofdm6,
    /// OFDM, BPSK, 3/4, 9 Mbit/s.
    Ofdm9,
    /// OFDM, QPSK, 1/2, 12 Mbit/s.
    Ofdm12,
    /// OFDM, QPSK, 3/4, 18 Mbit/s.
    Ofdm18,
    /// OFDM, 16-QAM, 1/2, 24 Mbit/s.
    Ofdm24,
    /// OFDM, 16-QAM, 3/4, 36 Mbit/s.
    Ofdm36,
    /// OFDM, 64-QAM, 2/3, 48 Mbit/s.
    Ofdm48,
    /// OFDM, 64-QAM, 3/4, 54 Mbit/s.
    Ofdm54,
    /// 802.11n (HT), one stream in 20 MHz with guard intervals of 800 ns: MCS 0, BPSK, 1/2, 6.5 Mbit/s.
    Ht0,
    /// HT, MCS 1: QPSK, 1/2, 13 Mbit/s.
    Ht1,
    /// HT, MCS 2: QPSK, 3/4, 19.5 Mbit/s.
    Ht2,
    /// HT, MCS 3: 16-QAM, 1/2, 26 Mbit/s.
    Ht3,
    /// HT, MCS 4: 16-QAM, 3/4, 39 Mbit/s.
    Ht4,
    /// HT, MCS 5: 64-QAM, 2/3, 52 Mbit/s.
    Ht5,
    /// HT, MCS 6: 64-QAM, 3/4, 58.5 Mbit/s.
    Ht6,
    /// HT, MCS 7: 64-QAM, 5/6, 65 Mbit/s.
    Ht7,
}

/// The 802.11b synchronisation preamble. Other rates have a single preamble and use `Long`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preamble {
    /// 144 us of preamble and 48 us of header at 1 Mbit/s.
    Long,
    /// 72 us of preamble and 24 us of header at 2 Mbit/s; not for the 1 Mbit/s rate.
    Short,
}

/// How a frame is put on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// The rate of the PSDU.
    pub rate: Rate,
    /// The synchronisation preamble before it.
    pub preamble: Preamble,
    /// The PSDU is an A-MPDU, as HT-SIG's aggregation bit says: MPDUs behind delimiters, each with room for its own check sequence.
    pub aggregate: bool,
}

impl Rate {
    /// The four rates of 802.11b, slowest first.
    pub const DOT11B: [Rate; 4] = [Rate::Dsss1, Rate::Dsss2, Rate::Cck5, Rate::Cck11];

    /// The eight rates of OFDM in 20 MHz (802.11a and g), slowest first.
    pub const OFDM: [Rate; 8] = [
        Rate::Ofdm6,
        Rate::Ofdm9,
        Rate::Ofdm12,
        Rate::Ofdm18,
        Rate::Ofdm24,
        Rate::Ofdm36,
        Rate::Ofdm48,
        Rate::Ofdm54,
    ];

    /// The eight rates of 802.11n with one stream in 20 MHz and long guard intervals (IEEE 802.11-2020, table 19-27), slowest first.
    pub const HT: [Rate; 8] = [
        Rate::Ht0,
        Rate::Ht1,
        Rate::Ht2,
        Rate::Ht3,
        Rate::Ht4,
        Rate::Ht5,
        Rate::Ht6,
        Rate::Ht7,
    ];

    /// Whether it is sent by OFDM: one of [`Rate::OFDM`] or of [`Rate::HT`].
    pub const fn is_ofdm(self) -> bool {
        (self as u8) >= (Rate::Ofdm6 as u8)
    }

    /// Whether it is one of [`Rate::HT`].
    pub const fn is_ht(self) -> bool {
        (self as u8) >= (Rate::Ht0 as u8)
    }

    /// All rates of the standard that this one belongs to, slowest first: those of 802.11b, of OFDM, of HT, or the one of 802.15.4.
    pub const fn family(self) -> &'static [Rate] {
        match self {
            Rate::Oqpsk250 => &[Rate::Oqpsk250],
            rate if rate.is_ht() => &Rate::HT,
            rate if rate.is_ofdm() => &Rate::OFDM,
            _ => &Rate::DOT11B,
        }
    }

    /// Bits per second of the PSDU.
    pub const fn bitrate(self) -> Bitrate {
        match self {
            Rate::Dsss1 => Bitrate(1_000_000),
            Rate::Dsss2 => Bitrate(2_000_000),
            Rate::Cck5 => Bitrate(5_500_000),
            Rate::Cck11 => Bitrate(11_000_000),
            Rate::Oqpsk250 => Bitrate(250_000),
            Rate::Ofdm6 => Bitrate(6_000_000),
            Rate::Ofdm9 => Bitrate(9_000_000),
            Rate::Ofdm12 => Bitrate(12_000_000),
            Rate::Ofdm18 => Bitrate(18_000_000),
            Rate::Ofdm24 => Bitrate(24_000_000),
            Rate::Ofdm36 => Bitrate(36_000_000),
            Rate::Ofdm48 => Bitrate(48_000_000),
            Rate::Ofdm54 => Bitrate(54_000_000),
            Rate::Ht0 => Bitrate(6_500_000),
            Rate::Ht1 => Bitrate(13_000_000),
            Rate::Ht2 => Bitrate(19_500_000),
            Rate::Ht3 => Bitrate(26_000_000),
            Rate::Ht4 => Bitrate(39_000_000),
            Rate::Ht5 => Bitrate(52_000_000),
            Rate::Ht6 => Bitrate(58_500_000),
            Rate::Ht7 => Bitrate(65_000_000),
        }
    }
}

impl Mode {
    /// A mode with the long preamble.
    pub const fn long(rate: Rate) -> Mode {
        Mode {
            rate,
            preamble: Preamble::Long,
            aggregate: false,
        }
    }

    /// A mode with the short preamble; 1 Mbit/s has none (IEEE 802.11-2020, 16.2.2.3) and keeps the long one.
    pub const fn short(rate: Rate) -> Mode {
        let preamble = match rate {
            Rate::Cck5 | Rate::Cck11 | Rate::Dsss2 => Preamble::Short,
            _ => Preamble::Long,
        };
        Mode {
            rate,
            preamble,
            aggregate: false,
        }
    }

    /// The same for an A-MPDU. Only for rates of HT.
    pub const fn aggregated(self) -> Mode {
        Mode {
            aggregate: self.rate.is_ht(),
            ..self
        }
    }

    /// The time on the air before the first bit of the PSDU: preamble and PHY header.
    ///
    /// 802.11b: IEEE 802.11-2020, 16.2.2 (144 + 48 us long, 72 + 24 us short). OFDM: 16 us of training and a SIGNAL symbol of
    /// 4 us (17.3.2.2). HT: these, HT-SIG of 8 us and training of 8 us (mixed format, 19.3.2). 802.15.4: 8 preamble symbols, 2 of SFD, 2 of PHR, of 16 us each (IEEE 802.15.4-2006, 6.3 and 6.5).
    pub const fn header_time(self) -> Duration {
        match (self.rate, self.preamble) {
            (Rate::Oqpsk250, _) => Duration::from_micros(12 * 16),
            (rate, _) if rate.is_ht() => Duration::from_micros(16 + 4 + 8 + 8),
            (rate, _) if rate.is_ofdm() => Duration::from_micros(16 + 4),
            (_, Preamble::Long) => Duration::from_micros(192),
            (_, Preamble::Short) => Duration::from_micros(96),
        }
    }

    /// The time a frame of `bytes` octets (FCS included) is on the air.
    ///
    /// 802.11b counts whole microseconds (TXTIME, IEEE 802.11-2020, 16.3.4), OFDM whole symbols of 4 us, in which 16 bits of
    /// SERVICE precede the frame and 6 of tail follow it (17.4.3; for HT 19.4.3). The 6 us of silence behind each OFDM frame at 2.4 GHz
    /// (18.3.2.4) are not counted: nothing is on the air.
    pub const fn airtime(self, bytes: usize) -> Duration {
        let bits = bytes as u64 * 8;
        let header = self.header_time().nanos();
        let payload = match self.rate {
            Rate::Oqpsk250 => self.rate.bitrate().time_of(bits).nanos(),
            rate if rate.is_ofdm() => {
                let symbol = 4 * rate.bitrate().0 / 1_000_000;
                (16 + bits + 6).div_ceil(symbol) * 4_000
            }
            _ => (bits * 1_000_000).div_ceil(self.rate.bitrate().0) * 1_000,
        };
        Duration::from_nanos(header + payload)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bitrate().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// specs: ACK of 14 octets 304 us at 1 Mbit/s, 248 us at 2; DATA of 1500 + 28 at 11 Mbit/s 1304 us by TXTIME.
    #[test]
    fn airtime_matches_the_standards() {
        let us = Duration::from_micros;
        assert_eq!(Mode::long(Rate::Dsss1).airtime(14), us(304));
        assert_eq!(Mode::long(Rate::Dsss2).airtime(14), us(248));
        assert_eq!(Mode::long(Rate::Dsss2).airtime(1536), us(6336));
        assert_eq!(Mode::long(Rate::Cck11).airtime(1528), us(192 + 1112));
        assert_eq!(Mode::short(Rate::Cck11).airtime(1528), us(96 + 1112));
        assert_eq!(Mode::short(Rate::Dsss1).header_time(), us(192));
        assert_eq!(Mode::long(Rate::Oqpsk250).airtime(127), us(4256));
        // By hand: ceil((16 + 112 + 6) / 24) = 6 symbols, ceil(12310 / 216) = 57.
        assert_eq!(Mode::long(Rate::Ofdm6).airtime(14), us(20 + 24));
        assert_eq!(Mode::short(Rate::Ofdm54).airtime(1536), us(20 + 228));
        // By hand: ceil(134 / 26) = 6 symbols, ceil(12310 / 260) = 48.
        assert_eq!(Mode::long(Rate::Ht0).airtime(14), us(36 + 24));
        assert_eq!(Mode::long(Rate::Ht7).airtime(1536), us(36 + 192));
        // Bits of a symbol: IEEE 802.11-2020, table 19-27.
        for (rate, bits) in Rate::HT
            .into_iter()
            .zip([26, 52, 78, 104, 156, 208, 234, 260])
        {
            assert_eq!(rate.bitrate().0 * 4, bits * 1_000_000);
            assert!(rate.is_ofdm() && rate.is_ht() && rate.family() == Rate::HT);
        }
        assert!(
            Rate::OFDM
                .into_iter()
                .all(|rate| rate.is_ofdm() && !rate.is_ht())
        );
        assert!(!Rate::DOT11B.into_iter().any(Rate::is_ofdm) && !Rate::Oqpsk250.is_ofdm());
    }
}
