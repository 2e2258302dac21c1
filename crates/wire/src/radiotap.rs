//! Radiotap: the radio's information about a captured frame, written in front of it (pcap link type 127).
//!
//! ```text
//! +---------+-----+--------+-----------------+-------------------------------------------
//! | version | pad | length | present (bits)  | the present fields, each aligned to its size
//! |    0    |  1  | 2, LE  | 4, LE           |
//! +---------+-----+--------+-----------------+-------------------------------------------
//! bit 0 TSFT       8 octets  microseconds of the sender's or receiver's clock at the first bit
//! bit 1 flags      1         0x02 short preamble, 0x10 the frame ends with its FCS, 0x40 bad FCS
//! bit 2 rate       1         in 500 kbit/s
//! bit 3 channel    2 + 2     MHz; 0x0020 CCK, 0x0080 2.4 GHz
//! bit 4 FHSS       2         not used here, skipped in reading
//! bit 5 signal     1         dBm at the antenna, signed
//! ```
//!
//! radiotap.org, "Defined fields". Alignment counts from the first octet of the header. Bit 31 says that one
//! more word of present bits follows.

use core::fmt;

use chappe_core::{Mode, Preamble, Rate};

use crate::{Malformed, head};

/// Octets that every header written here fits in.
pub const LEN_MAX: usize = 32;

/// A radiotap header, as far as it is supported. Absent fields are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Radiotap {
    /// Microseconds of the capturing clock when the frame's first bit arrived.
    pub tsft: Option<u64>,
    /// Properties of the frame.
    pub flags: Option<Flags>,
    /// Data rate in 500 kbit/s.
    pub rate: Option<u8>,
    /// The channel on which it was received.
    pub channel: Option<Tuned>,
    /// Power at the antenna in whole dBm.
    pub signal: Option<i8>,
}

/// The flags field: bits of the format, known or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

/// The channel field: frequency and modulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuned {
    /// Centre frequency in MHz.
    pub mhz: u16,
    /// Bits of the format: modulation and band.
    pub flags: u16,
}

impl Flags {
    /// Sent with the short preamble.
    pub const SHORT_PREAMBLE: Flags = Flags(0x02);
    /// The frame check sequence follows the frame.
    pub const FCS: Flags = Flags(0x10);
    /// The frame check sequence was bad.
    pub const BAD_FCS: Flags = Flags(0x40);

    /// These flags and those.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Tuned {
    /// The channel of an 802.11 frame at 2.4 GHz, 1 to 14 (IEEE 802.11-2020, clause 15: 2412 MHz and up by 5, the last at 2484).
    pub const fn at_2_4_ghz(channel: u8, rate: Rate) -> Option<Tuned> {
        let mhz = match channel {
            1..=13 => 2407 + 5 * channel as u16,
            14 => 2484,
            _ => return None,
        };
        // 2 GHz spectrum, and CCK or OFDM.
        let flags = if rate.is_ofdm() { 0x00c0 } else { 0x00a0 };
        Some(Tuned { mhz, flags })
    }
}

impl Radiotap {
    /// Rate and preamble of an 802.11 mode; the preamble is a flag.
    pub fn of_mode(mode: Mode) -> Radiotap {
        let rate = match mode.rate {
            Rate::Oqpsk250 => None,
            // HT has a field of its own, which is not written: numbers from 128 on meant an MCS once.
            rate if rate.is_ht() => None,
            // In units of 500 kbit/s.
            rate => u8::try_from(rate.bitrate().0 / 500_000).ok(),
        };
        let flags = match mode.preamble {
            Preamble::Short => Flags::SHORT_PREAMBLE,
            Preamble::Long => Flags::default(),
        };
        Radiotap {
            rate,
            flags: Some(flags),
            ..Radiotap::default()
        }
    }

    /// Reads the header in front of `packet` and returns it with the frame behind it.
    pub fn parse(packet: &[u8]) -> Result<(Radiotap, &[u8]), Malformed> {
        let &[version, _, low, high, ..]: &[u8; 8] = head(packet)?;
        if version != 0 {
            return Err(Malformed::Version(version));
        }
        let len = usize::from(u16::from_le_bytes([low, high]));
        let truncated = Malformed::Truncated {
            needed: len.max(8),
            found: packet.len(),
        };
        let (header, frame) = packet.split_at_checked(len).ok_or(truncated)?;
        let mut fields = Fields::new(header).ok_or(truncated)?;
        let radiotap = fields.read().ok_or(truncated)?;
        Ok((radiotap, frame))
    }

    /// Writes the header to the front of `buffer` and returns its length, at most [`LEN_MAX`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, Malformed> {
        let mut writer = Writer {
            bytes: [0; LEN_MAX],
            len: 8,
            present: 0,
        };
        if let Some(tsft) = self.tsft {
            writer.field(0, 8, &tsft.to_le_bytes());
        }
        if let Some(flags) = self.flags {
            writer.field(1, 1, &[flags.0]);
        }
        if let Some(rate) = self.rate {
            writer.field(2, 1, &[rate]);
        }
        if let Some(channel) = self.channel {
            let ([a, b], [c, d]) = (channel.mhz.to_le_bytes(), channel.flags.to_le_bytes());
            writer.field(3, 2, &[a, b, c, d]);
        }
        if let Some(signal) = self.signal {
            writer.field(5, 1, &signal.to_le_bytes());
        }
        writer.finish(buffer)
    }
}

/// Reads present fields in order.
struct Fields<'a> {
    header: &'a [u8],
    place: usize,
    present: u32,
}

impl<'a> Fields<'a> {
    /// Finds the end of the present words.
    fn new(header: &'a [u8]) -> Option<Fields<'a>> {
        let (mut place, mut first) = (4usize, None);
        loop {
            let word = u32::from_le_bytes(*header.get(place..)?.first_chunk()?);
            place += 4;
            let present = *first.get_or_insert(word);
            if word >> 31 == 0 {
                return Some(Fields {
                    header,
                    place,
                    present,
                });
            }
        }
    }

    fn read(&mut self) -> Option<Radiotap> {
        let tsft = self.field::<8>(0, 8)?.map(u64::from_le_bytes);
        let flags = self.field::<1>(1, 1)?.map(|[flags]| Flags(flags));
        let rate = self.field::<1>(2, 1)?.map(|[rate]| rate);
        let channel = self.field::<4>(3, 2)?.map(|[a, b, c, d]| Tuned {
            mhz: u16::from_le_bytes([a, b]),
            flags: u16::from_le_bytes([c, d]),
        });
        self.field::<2>(4, 1)?;
        let signal = self.field::<1>(5, 1)?.map(i8::from_le_bytes);
        Some(Radiotap {
            tsft,
            flags,
            rate,
            channel,
            signal,
        })
    }

    /// `None` if the header ends too early, `Some(None)` if the field is absent.
    fn field<const N: usize>(&mut self, bit: u32, align: usize) -> Option<Option<[u8; N]>> {
        if self.present >> bit & 1 == 0 {
            return Some(None);
        }
        let start = self.place.next_multiple_of(align);
        let value = *self.header.get(start..)?.first_chunk()?;
        self.place = start + N;
        Some(Some(value))
    }
}

/// Collects present fields in order.
struct Writer {
    bytes: [u8; LEN_MAX],
    len: usize,
    present: u32,
}

impl Writer {
    fn field(&mut self, bit: u32, align: usize, value: &[u8]) {
        let start = self.len.next_multiple_of(align);
        // All fields together take 8 + 8 + 1 + 1 + 4 + 1 octets and padding: they always fit.
        if let Some(place) = self.bytes.get_mut(start..start + value.len()) {
            place.copy_from_slice(value);
            self.len = start + value.len();
            self.present |= 1 << bit;
        }
    }

    fn finish(mut self, buffer: &mut [u8]) -> Result<usize, Malformed> {
        let ([low, high], [a, b, c, d]) =
            ((self.len as u16).to_le_bytes(), self.present.to_le_bytes());
        if let Some(start) = self.bytes.first_chunk_mut() {
            *start = [0, 0, low, high, a, b, c, d];
        }
        let found = buffer.len();
        let needed = self.len;
        let (Some(to), Some(from)) = (buffer.get_mut(..needed), self.bytes.get(..needed)) else {
            return Err(Malformed::Truncated { needed, found });
        };
        to.copy_from_slice(from);
        Ok(needed)
    }
}

impl fmt::Display for Radiotap {
    /// `tsft=12us 11 Mbit/s short 2437 MHz -70 dBm fcs`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags.unwrap_or_default();
        f.write_str("radiotap")?;
        if let Some(tsft) = self.tsft {
            write!(f, " tsft={tsft}us")?;
        }
        if let Some(rate) = self.rate {
            write!(f, " {} Mbit/s", f32::from(rate) / 2.0)?;
        }
        if let Some(channel) = self.channel {
            write!(f, " {} MHz", channel.mhz)?;
        }
        if let Some(signal) = self.signal {
            write!(f, " {signal} dBm")?;
        }
        for (flag, name) in [
            (Flags::SHORT_PREAMBLE, " short"),
            (Flags::FCS, " fcs"),
            (Flags::BAD_FCS, " bad-fcs"),
        ] {
            f.write_str(if flags.contains(flag) { name } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Purpose, Seed};
    use std::string::ToString;

    #[test]
    fn fields_are_aligned_to_their_size() {
        let header = Radiotap {
            rate: Some(22),
            channel: Tuned::at_2_4_ghz(6, Rate::Cck11),
            signal: Some(-70),
            ..Radiotap::default()
        };
        let mut bytes = [0; LEN_MAX];
        let len = header.emit(&mut bytes).unwrap();
        let expected = [0, 0, 15, 0, 0x2c, 0, 0, 0, 22, 0, 0x85, 0x09, 0xa0, 0, 0xba];
        assert_eq!(bytes[..len], expected);
        assert_eq!(header.to_string(), "radiotap 11 Mbit/s 2437 MHz -70 dBm");
    }

    /// Every combination of present fields comes back, with the frame behind it.
    #[test]
    fn round_trips() {
        for set in 0..32u32 {
            let has = |bit: u32| set >> bit & 1 == 1;
            let header = Radiotap {
                tsft: has(0).then_some(u64::MAX - 5),
                flags: has(1).then_some(Flags::FCS.with(Flags::BAD_FCS)),
                rate: has(2).then_some(11),
                channel: if has(3) {
                    Tuned::at_2_4_ghz(14, Rate::Cck11)
                } else {
                    None
                },
                signal: has(4).then_some(-128),
            };
            let mut bytes = [9; 40];
            let len = header.emit(&mut bytes).unwrap();
            assert!(len <= LEN_MAX);
            assert_eq!(
                Radiotap::parse(&bytes[..len + 2]),
                Ok((header, &[9, 9][..]))
            );
            assert!(header.emit(&mut bytes[..len - 1]).is_err());
        }
    }

    /// A header of a Linux card: two present words, FHSS and fields beyond ours.
    #[test]
    fn more_present_words_are_skipped() {
        let packet = [
            0, 0, 22, 0, 0x34, 0, 0, 0x80, 1, 0, 0, 0, 4, 7, 7, 0xb0, 5, 5, 5, 5, 5, 5, 1, 2,
        ];
        let (header, frame) = Radiotap::parse(&packet).unwrap();
        assert_eq!((header.rate, header.signal), (Some(4), Some(-80)));
        assert_eq!(frame, [1, 2]);
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut random = Seed(3).stream(Purpose::Trial(0));
        let mut bytes = [0; 48];
        for round in 0..20_000 {
            let len = random.below(49) as usize;
            random.fill(&mut bytes[..len]);
            if round % 2 == 0 {
                bytes[..4].copy_from_slice(&[0, 0, random.below(49) as u8, 0]);
            }
            if let Ok((header, _)) = Radiotap::parse(&bytes[..len]) {
                assert!(header.to_string().starts_with("radiotap"));
            }
        }
    }
}
