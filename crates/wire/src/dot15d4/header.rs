//! The MAC header: parsed, emitted, printed.

use core::fmt;

use super::{Kind, Node, Version};
use crate::{Malformed, Reader, Writer};

/// The header of a frame, as it can be sent.
///
/// Which PAN identifiers a frame carries (IEEE 802.15.4-2015, table 7-2; versions 2003 and 2006 know only the rows
/// of two addresses, of any form, and of one address without compression):
///
/// | destination | source | compression | destination PAN | source PAN |
/// |---|---|---|---|---|
/// | none | none | 0 / 1 | no / yes | no |
/// | any | none | 0 / 1 | yes / no | no |
/// | none | any | 0 / 1 | no | yes / no |
/// | extended | extended | 0 / 1 | yes / no | no |
/// | otherwise both | | 0 / 1 | yes | yes / no |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Beacon, data, acknowledgement or command.
    pub kind: Kind,
    /// The edition of the standard whose rules it follows.
    pub version: Version,
    /// The frame-pending bit: more frames wait for the receiver.
    pub pending: bool,
    /// The receiver must acknowledge the frame.
    pub ack_request: bool,
    /// Sequence number; only version 2015 can omit it.
    pub sequence: Option<u8>,
    /// The receiver's PAN, if given.
    pub destination_pan: Option<u16>,
    /// The receiver's address, if given.
    pub destination: Option<Node>,
    /// The sender's PAN, if given separately from the receiver's.
    pub source_pan: Option<u16>,
    /// The sender's address, if given.
    pub source: Option<Node>,
    /// The auxiliary security header, if the payload is protected.
    pub security: Option<Security>,
}

/// The auxiliary security header (IEEE 802.15.4-2015, 9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Security {
    /// 0 to 7: bits 0 and 1 give the length of the integrity code (0, 4, 8, 16), bit 2 encryption.
    pub level: u8,
    /// The frame counter, which must never repeat under one key.
    pub frame_counter: u32,
    /// The key that protects the frame.
    pub key: KeyId,
}

/// How a frame names its key (IEEE 802.15.4-2015, table 9-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyId {
    /// The receiver knows the key from the addresses.
    Implicit,
    /// An index of the network's key source.
    Index(u8),
    /// A key source of 4 octets and an index.
    Source4([u8; 4], u8),
    /// A key source of 8 octets and an index.
    Source8([u8; 8], u8),
}

/// A frame with a parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    psdu: &'a [u8],
    header: Header,
    payload_at: usize,
}

mod control {
    pub const SECURITY: u16 = 1 << 3;
    pub const PENDING: u16 = 1 << 4;
    pub const ACK_REQUEST: u16 = 1 << 5;
    pub const COMPRESSION: u16 = 1 << 6;
    pub const NO_SEQUENCE: u16 = 1 << 8;
    pub const ELEMENTS: u16 = 1 << 9;
}

/// Which of (destination PAN, source PAN) stand in the header; `None` if the combination is not allowed.
fn pans(
    version: Version,
    compressed: bool,
    to: Option<Node>,
    from: Option<Node>,
) -> Option<(bool, bool)> {
    let both_extended = matches!(
        (to, from),
        (Some(Node::Extended(_)), Some(Node::Extended(_)))
    );
    match (version, to.is_some(), from.is_some(), compressed) {
        (Version::V2015, false, false, _) => Some((compressed, false)),
        (Version::V2015, true, false, _) => Some((!compressed, false)),
        (Version::V2015, false, true, _) => Some((false, !compressed)),
        (Version::V2015, true, true, _) if both_extended => Some((!compressed, false)),
        (_, true, true, _) => Some((true, !compressed)),
        (_, to, from, false) => Some((to, from)),
        (_, _, _, true) => None,
    }
}

impl Header {
    /// A data frame or command inside one network, in the form of 2006 with one PAN identifier.
    pub const fn within(pan: u16, kind: Kind, to: Node, from: Node, sequence: u8) -> Header {
        Header {
            kind,
            version: Version::V2003,
            pending: false,
            ack_request: !matches!(to, Node::BROADCAST),
            sequence: Some(sequence),
            destination_pan: Some(pan),
            destination: Some(to),
            source_pan: None,
            source: Some(from),
            security: None,
        }
    }

    /// The immediate acknowledgement of frame `sequence`.
    pub const fn ack(sequence: u8, pending: bool) -> Header {
        Header {
            kind: Kind::Ack,
            version: Version::V2003,
            pending,
            ack_request: false,
            sequence: Some(sequence),
            destination_pan: None,
            destination: None,
            source_pan: None,
            source: None,
            security: None,
        }
    }

    /// Reads a header and says where the payload begins.
    pub fn parse(psdu: &[u8]) -> Result<(Header, usize), Malformed> {
        let mut reader = Reader::new(psdu);
        let bits = u16::from_le_bytes(reader.take()?);
        let kind = match bits & 7 {
            0 => Kind::Beacon,
            1 => Kind::Data,
            2 => Kind::Ack,
            3 => Kind::Command,
            _ => return Err(Malformed::Unsupported),
        };
        let version = match bits >> 12 & 3 {
            0 => Version::V2003,
            1 => Version::V2006,
            2 => Version::V2015,
            other => return Err(Malformed::Version(other as u8)),
        };
        let modern = version == Version::V2015;
        if modern && bits & control::ELEMENTS != 0 {
            return Err(Malformed::Unsupported);
        }
        let sequence = match modern && bits & control::NO_SEQUENCE != 0 {
            true => None,
            false => Some(reader.octet()?),
        };
        // Forms without their values yet: what stands on the air depends on both.
        let (to, from) = (form(bits >> 10)?, form(bits >> 14)?);
        let compressed = bits & control::COMPRESSION != 0;
        let (to_pan, from_pan) = pans(version, compressed, to, from).ok_or(Malformed::Illegal)?;
        let destination_pan = pan(&mut reader, to_pan)?;
        let destination = node(&mut reader, to)?;
        let source_pan = pan(&mut reader, from_pan)?;
        let source = node(&mut reader, from)?;
        let security = match (bits & control::SECURITY != 0, version) {
            (false, _) => None,
            (true, Version::V2003) => return Err(Malformed::Unsupported),
            (true, _) => Some(Security::parse(&mut reader)?),
        };
        let header = Header {
            kind,
            version,
            pending: bits & control::PENDING != 0,
            ack_request: bits & control::ACK_REQUEST != 0,
            sequence,
            destination_pan,
            destination,
            source_pan,
            source,
            security,
        };
        Ok((header, reader.at))
    }

    /// Writes the header to the front of `psdu` and returns its length. Fails if it does not fit, or if the
    /// addresses, PAN identifiers and version do not go together.
    pub fn emit(&self, psdu: &mut [u8]) -> Result<usize, Malformed> {
        let here = (self.destination_pan.is_some(), self.source_pan.is_some());
        let fits = |compressed: &bool| {
            pans(self.version, *compressed, self.destination, self.source) == Some(here)
        };
        let compressed = [false, true].into_iter().find(fits);
        let compressed = compressed.ok_or(Malformed::Illegal)?;
        let modern = self.version == Version::V2015;
        if (self.sequence.is_none() && !modern)
            || (self.security.is_some() && self.version == Version::V2003)
        {
            return Err(Malformed::Illegal);
        }
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let bits = self.kind as u16
            | flag(self.security.is_some(), control::SECURITY)
            | flag(self.pending, control::PENDING)
            | flag(self.ack_request, control::ACK_REQUEST)
            | flag(compressed, control::COMPRESSION)
            | flag(self.sequence.is_none(), control::NO_SEQUENCE)
            | mode(self.destination) << 10
            | (self.version as u16) << 12
            | mode(self.source) << 14;
        let mut writer = Writer::new(psdu);
        writer.put(&bits.to_le_bytes())?;
        if let Some(sequence) = self.sequence {
            writer.put(&[sequence])?;
        }
        for (pan, node) in [
            (self.destination_pan, self.destination),
            (self.source_pan, self.source),
        ] {
            if let Some(pan) = pan {
                writer.put(&pan.to_le_bytes())?;
            }
            match node {
                Some(Node::Short(short)) => writer.put(&short.to_le_bytes())?,
                Some(Node::Extended(extended)) => writer.put(&extended.to_le_bytes())?,
                None => {}
            }
        }
        if let Some(security) = self.security {
            security.emit(&mut writer)?;
        }
        Ok(writer.at)
    }
}

/// An address mode's form, its value still zero.
fn form(mode: u16) -> Result<Option<Node>, Malformed> {
    match mode & 3 {
        0 => Ok(None),
        2 => Ok(Some(Node::Short(0))),
        3 => Ok(Some(Node::Extended(0))),
        _ => Err(Malformed::Illegal),
    }
}

fn mode(node: Option<Node>) -> u16 {
    match node {
        None => 0,
        Some(Node::Short(_)) => 2,
        Some(Node::Extended(_)) => 3,
    }
}

fn pan(reader: &mut Reader<'_>, present: bool) -> Result<Option<u16>, Malformed> {
    match present {
        true => Ok(Some(u16::from_le_bytes(reader.take()?))),
        false => Ok(None),
    }
}

fn node(reader: &mut Reader<'_>, form: Option<Node>) -> Result<Option<Node>, Malformed> {
    Ok(match form {
        None => None,
        Some(Node::Short(_)) => Some(Node::Short(u16::from_le_bytes(reader.take()?))),
        Some(Node::Extended(_)) => Some(Node::Extended(u64::from_le_bytes(reader.take()?))),
    })
}

impl Security {
    /// Octets of the integrity code: 0, 4, 8 or 16.
    pub const fn mic_len(&self) -> usize {
        match self.level & 3 {
            0 => 0,
            1 => 4,
            2 => 8,
            _ => 16,
        }
    }

    /// Whether the payload is encrypted.
    pub const fn encrypts(&self) -> bool {
        self.level & 4 != 0
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Security, Malformed> {
        let control = reader.octet()?;
        // Bits 5 and 6: a suppressed counter, or a slot number in its place; bit 7 is reserved.
        if control & 0xe0 != 0 {
            return Err(Malformed::Unsupported);
        }
        let frame_counter = u32::from_le_bytes(reader.take()?);
        let key = match control >> 3 & 3 {
            0 => KeyId::Implicit,
            1 => KeyId::Index(reader.octet()?),
            2 => KeyId::Source4(reader.take()?, reader.octet()?),
            _ => KeyId::Source8(reader.take()?, reader.octet()?),
        };
        Ok(Security {
            level: control & 7,
            frame_counter,
            key,
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) -> Result<(), Malformed> {
        let mode = match self.key {
            KeyId::Implicit => 0,
            KeyId::Index(_) => 1,
            KeyId::Source4(..) => 2,
            KeyId::Source8(..) => 3,
        };
        writer.put(&[self.level & 7 | mode << 3])?;
        writer.put(&self.frame_counter.to_le_bytes())?;
        match self.key {
            KeyId::Implicit => Ok(()),
            KeyId::Index(index) => writer.put(&[index]),
            KeyId::Source4(source, index) => {
                writer.put(&source)?;
                writer.put(&[index])
            }
            KeyId::Source8(source, index) => {
                writer.put(&source)?;
                writer.put(&[index])
            }
        }
    }
}

impl<'a> Frame<'a> {
    /// Reads a frame without its check sequence.
    pub fn new(psdu: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        let (header, payload_at) = Header::parse(psdu)?;
        Ok(Frame {
            psdu,
            header,
            payload_at,
        })
    }

    /// The parsed header of the frame.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The octets of the MAC header, as received.
    pub fn header_octets(&self) -> &'a [u8] {
        self.psdu.get(..self.payload_at).unwrap_or_default()
    }

    /// What follows the header; protected if the header says so.
    pub fn payload(&self) -> &'a [u8] {
        self.psdu.get(self.payload_at..).unwrap_or_default()
    }
}

impl fmt::Display for Frame<'_> {
    /// `Data 0001 > 0002 seq=7 len=105 ack?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        write!(f, "{}", header.kind)?;
        if let Some(source) = header.source {
            write!(f, " {source}")?;
        }
        if let Some(destination) = header.destination {
            write!(f, " > {destination}")?;
        }
        if let Some(sequence) = header.sequence {
            write!(f, " seq={sequence}")?;
        }
        write!(f, " len={}", self.payload().len())?;
        for (set, text) in [
            (header.ack_request, " ack?"),
            (header.pending, " pending"),
            (header.security.is_some(), " secured"),
        ] {
            if set {
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    const SHORT: Node = Node::Short(0x1234);
    const EXTENDED: Node = Node::Extended(0x0011_2233_4455_6677);

    /// Octets of a data frame as tshark 4.0 decodes it: PAN 0xabcd, 0x0002 to 0x0001, sequence 7.
    #[test]
    fn a_data_frame_by_hand() {
        let (to, from) = (Node::Short(1), Node::Short(2));
        let header = Header::within(0xabcd, Kind::Data, to, from, 7);
        let mut psdu = [0; 32];
        assert_eq!(header.emit(&mut psdu), Ok(9));
        assert_eq!(
            psdu[..9],
            [0x61, 0x88, 7, 0xcd, 0xab, 0x01, 0x00, 0x02, 0x00]
        );
        let frame = Frame::new(&psdu[..12]).unwrap();
        assert_eq!(frame.to_string(), "Data 0002 > 0001 seq=7 len=3 ack?");
        let mut ack = [0; 3];
        assert_eq!(Header::ack(7, true).emit(&mut ack), Ok(3));
        assert_eq!(ack, [0x12, 0x00, 7]);
    }

    /// Every combination of addresses, PAN identifiers and version: what can be emitted reads back the same.
    #[test]
    fn what_can_be_emitted_reads_back() {
        let nodes = [None, Some(SHORT), Some(EXTENDED)];
        let pans = [None, Some(0xabcd)];
        let mut emitted = 0;
        for version in [Version::V2003, Version::V2006, Version::V2015] {
            for destination in nodes {
                for source in nodes {
                    for destination_pan in pans {
                        for source_pan in pans {
                            let header = Header {
                                version,
                                destination,
                                source,
                                destination_pan,
                                source_pan,
                                ..Header::ack(1, false)
                            };
                            let mut psdu = [0; 64];
                            if let Ok(len) = header.emit(&mut psdu) {
                                emitted += 1;
                                assert_eq!(Header::parse(&psdu[..len]), Ok((header, len)));
                            }
                        }
                    }
                }
            }
        }
        // Rows of the table: 2003 and 2006 allow 1 + 2 + 2 + 4 x 2 of them each, 2015 2 + 4 + 4 + 2 + 6.
        assert_eq!(emitted, 13 + 13 + 18);
    }

    #[test]
    fn security_headers_read_back() {
        for (key, len) in [
            (KeyId::Implicit, 5),
            (KeyId::Index(1), 6),
            (KeyId::Source4([1, 2, 3, 4], 5), 10),
            (KeyId::Source8([1, 2, 3, 4, 5, 6, 7, 8], 9), 14),
        ] {
            let security = Security {
                level: 5,
                frame_counter: 0xdead_beef,
                key,
            };
            let header = Header {
                version: Version::V2006,
                security: Some(security),
                ..Header::within(1, Kind::Data, SHORT, EXTENDED, 9)
            };
            let mut psdu = [0; 64];
            let all = header.emit(&mut psdu).unwrap();
            assert_eq!(all, 2 + 1 + 2 + 2 + 8 + len);
            assert_eq!(Header::parse(&psdu[..all]), Ok((header, all)));
            for cut in 0..all {
                assert!(Header::parse(&psdu[..cut]).is_err(), "{cut}");
                assert!(header.emit(&mut [0; 64][..cut]).is_err(), "P14: {cut}");
            }
        }
    }

    /// P13: every frame control, every length of a buffer of any content: no panic, and what is understood is
    /// emitted as the same octets unless a reserved bit was set.
    #[test]
    fn p13_every_frame_control_at_every_length() {
        let body: Vec<u8> = (0..127u8).map(|i| i.wrapping_mul(37) & 0x1f).collect();
        for control in 0..=u16::MAX {
            let mut psdu = body.clone();
            psdu[..2].copy_from_slice(&control.to_le_bytes());
            let whole = Header::parse(&psdu);
            let need = whole.map_or(0, |(_, len)| len);
            for len in 0..=40 {
                let cut = Header::parse(&psdu[..len]);
                match whole {
                    Ok(_) if len >= need => assert_eq!(cut, whole),
                    Ok(_) => assert!(matches!(cut, Err(Malformed::Truncated { .. }))),
                    Err(_) => assert!(cut.is_err()),
                }
            }
            let Ok((header, len)) = whole else { continue };
            let mut again = [0; 64];
            assert_eq!(header.emit(&mut again), Ok(len), "{control:04x}");
            assert_eq!(again[2..len], psdu[2..len], "{control:04x}");
        }
    }
}
