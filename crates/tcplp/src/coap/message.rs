//! Messages: the wire format, parsed and written.
//!
//! ```text
//! version 2 | type 2 | token length 4 | code 8 | message id 16      4 octets
//! token (0 to 8) | options: delta 4, length 4, (extensions), value ... | 0xff | payload
//! ```
//! RFC 7252, 3.

use core::fmt;

/// The type of a message (RFC 7252, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CON: the receiver must acknowledge or reset it.
    Confirmable,
    /// NON: sent once, without an acknowledgement.
    NonConfirmable,
    /// ACK: acknowledges a confirmable message, and may carry the response.
    Ack,
    /// RST: the receiver could not process the message.
    Reset,
}

/// A method or a response code: three bits of class, five of detail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u8);

/// The token that matches a response to its request (RFC 7252, 5.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    octets: [u8; 8],
    len: u8,
}

/// The value of a Block1 or Block2 option (RFC 7959, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// NUM: the number of the block, in units of the block size.
    pub number: u32,
    /// M: whether more blocks follow.
    pub more: bool,
    /// SZX: the size exponent, 0 to 6; the block has 2^(szx + 4) octets.
    pub szx: u8,
}

/// A parsed message; its structure is valid to the end of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Confirmable, non-confirmable, acknowledgement or reset.
    pub kind: Kind,
    /// The method of a request, or the code of a response.
    pub code: Code,
    /// The message ID, which matches ACK and RST, and detects duplicates.
    pub id: u16,
    /// The token; empty in messages without a code.
    pub token: Token,
    options: &'a [u8],
    /// The payload behind the marker; may be empty.
    pub payload: &'a [u8],
}

/// Why octets are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short, or a length that reaches beyond the end.
    Truncated,
    /// The version is not 1 (RFC 7252, 3).
    Version,
    /// A value that RFC 7252 reserves.
    Reserved,
}

/// Option numbers (RFC 7252, 5.10 and RFC 7959, 2.1).
pub mod option {
    /// Uri-Host: the host of the request's URI (RFC 7252, 5.10.1).
    pub const URI_HOST: u16 = 3;
    /// Uri-Port: the port of the request's URI (RFC 7252, 5.10.1).
    pub const URI_PORT: u16 = 7;
    /// ETag: distinguishes states of a resource (RFC 7252, 5.10.6).
    pub const ETAG: u16 = 4;
    /// Observe: registration in a request, a sequence number in a notification (RFC 7641, 2).
    pub const OBSERVE: u16 = 6;
    /// Uri-Path: one segment of the path (RFC 7252, 5.10.1).
    pub const URI_PATH: u16 = 11;
    /// Content-Format: the media type of the payload (RFC 7252, 5.10.3).
    pub const CONTENT_FORMAT: u16 = 12;
    /// Max-Age: for how many seconds a response is fresh (RFC 7252, 5.10.5).
    pub const MAX_AGE: u16 = 14;
    /// Uri-Query: one argument of the query (RFC 7252, 5.10.1).
    pub const URI_QUERY: u16 = 15;
    /// Accept: the media type that the client prefers (RFC 7252, 5.10.4).
    pub const ACCEPT: u16 = 17;
    /// Block2: the block of a response, or the one requested (RFC 7959, 2.1).
    pub const BLOCK2: u16 = 23;
    /// Size2: the size of the whole response in octets (RFC 7959, 4).
    pub const SIZE2: u16 = 28;
    /// Block1: the block of a request (RFC 7959, 2.1).
    pub const BLOCK1: u16 = 27;
}

impl Code {
    /// 0.00, Empty: an acknowledgement or reset alone, or a ping.
    pub const EMPTY: Code = Code(0);
    /// Method 0.01, GET: read a resource.
    pub const GET: Code = Code(1);
    /// Method 0.02, POST: deliver a body to a resource.
    pub const POST: Code = Code(2);
    /// Method 0.03, PUT: treated like POST.
    pub const PUT: Code = Code(3);
    /// Response 2.04, Changed: a POST or PUT succeeded.
    pub const CHANGED: Code = Code(2 << 5 | 4);
    /// Response 2.05, Content: the answer to a GET.
    pub const CONTENT: Code = Code(2 << 5 | 5);
    /// Response 2.31, Continue: send the next block (RFC 7959, 2.9.1).
    pub const CONTINUE: Code = Code(2 << 5 | 31);
    /// Response 4.00, Bad Request: here, a block beyond the end.
    pub const BAD_REQUEST: Code = Code(4 << 5);
    /// Response 4.02, Bad Option: a critical option is not understood.
    pub const BAD_OPTION: Code = Code(4 << 5 | 2);
    /// Response 4.04, Not Found: no resource at this path.
    pub const NOT_FOUND: Code = Code(4 << 5 | 4);
    /// Response 4.05, Method Not Allowed.
    pub const NOT_ALLOWED: Code = Code(4 << 5 | 5);
    /// Response 4.08, Request Entity Incomplete: a block is missing (RFC 7959, 2.9.2).
    pub const INCOMPLETE: Code = Code(4 << 5 | 8);
    /// Response 4.13, Request Entity Too Large.
    pub const TOO_LARGE: Code = Code(4 << 5 | 13);

    /// Whether it is a success response, class 2.
    pub const fn is_success(self) -> bool {
        self.0 >> 5 == 2
    }

    /// Whether it is a response, 2.00 to 5.31.
    pub const fn is_response(self) -> bool {
        matches!(self.0 >> 5, 2 | 4 | 5)
    }

    /// Whether it is a request, 0.01 to 0.31.
    pub const fn is_request(self) -> bool {
        self.0 >> 5 == 0 && self.0 != 0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 >> 5, self.0 & 31)
    }
}

impl Token {
    /// A token of four octets.
    pub const fn new(number: u32) -> Token {
        let [a, b, c, d] = number.to_be_bytes();
        Token {
            octets: [a, b, c, d, 0, 0, 0, 0],
            len: 4,
        }
    }

    /// The octets of the token: none to eight.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Block {
    /// The block size in octets.
    pub const fn size(&self) -> usize {
        1 << (self.szx + 4)
    }

    fn parse(value: &[u8]) -> Option<Block> {
        let bits = match *value {
            [] => 0,
            [a] => u32::from(a),
            [a, b] => u32::from(u16::from_be_bytes([a, b])),
            [a, b, c] => u32::from_be_bytes([0, a, b, c]),
            _ => return None,
        };
        let szx = (bits & 7) as u8;
        (szx < 7).then_some(Block {
            number: bits >> 4,
            more: bits & 8 != 0,
            szx,
        })
    }
}

impl<'a> Message<'a> {
    /// Parses a message and validates the structure of all its options.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let (&[first, code, a, b], rest) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
        if first >> 6 != 1 {
            return Err(Malformed::Version);
        }
        let kind = match first >> 4 & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Ack,
            _ => Kind::Reset,
        };
        let len = usize::from(first & 15);
        if len > 8 {
            return Err(Malformed::Reserved);
        }
        let (token, rest) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        let mut octets = [0; 8];
        octets
            .iter_mut()
            .zip(token)
            .for_each(|(to, &from)| *to = from);
        let mut walk = Options { rest, number: 0 };
        while walk.step()?.is_some() {}
        let options = rest.get(..rest.len() - walk.rest.len());
        let payload = match walk.rest {
            [] => &[],
            // A marker without a payload is an error (RFC 7252, 3).
            [_] => return Err(Malformed::Reserved),
            [_, payload @ ..] => payload,
        };
        // RFC 7252, 4.1: an Empty message has no token, options or payload.
        if code == 0 && bytes.len() > 4 {
            return Err(Malformed::Reserved);
        }
        Ok(Message {
            kind,
            code: Code(code),
            id: u16::from_be_bytes([a, b]),
            token: Token {
                octets,
                len: len as u8,
            },
            options: options.unwrap_or_default(),
            payload,
        })
    }

    /// The options as (number, value), in ascending order.
    pub fn options(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut walk = Options {
            rest: self.options,
            number: 0,
        };
        core::iter::from_fn(move || walk.step().ok().flatten())
    }

    /// The Block1 option, if present and valid.
    pub fn block1(&self) -> Option<Block> {
        self.block(option::BLOCK1)
    }

    /// The Block2 option, if present and valid.
    pub fn block2(&self) -> Option<Block> {
        self.block(option::BLOCK2)
    }

    fn block(&self, option: u16) -> Option<Block> {
        let (_, value) = self.options().find(|(number, _)| *number == option)?;
        Block::parse(value)
    }

    /// Whether a critical option (an odd number) is present that this client and server do not understand (RFC 7252, 5.4.1).
    pub fn unknown_critical(&self) -> bool {
        let known = [option::URI_PATH, option::BLOCK2, option::BLOCK1];
        self.options()
            .any(|(number, _)| number % 2 == 1 && !known.contains(&number))
    }
}

/// A cursor over the encoded options.
#[derive(Clone, Copy)]
struct Options<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> Options<'a> {
    /// The next option; `None` at the payload marker, which stays in `rest`, or at the end.
    fn step(&mut self) -> Result<Option<(u16, &'a [u8])>, Malformed> {
        let Some((&first, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        if first == 0xff {
            return Ok(None);
        }
        let (delta, rest) = extended(first >> 4, rest)?;
        let (len, rest) = extended(first & 15, rest)?;
        let (value, rest) = rest
            .split_at_checked(usize::from(len))
            .ok_or(Malformed::Truncated)?;
        self.number = self.number.checked_add(delta).ok_or(Malformed::Reserved)?;
        self.rest = rest;
        Ok(Some((self.number, value)))
    }
}

/// Decodes an option delta or length: a nibble and its extension (RFC 7252, 3.1).
fn extended(nibble: u8, rest: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    match nibble {
        0..=12 => Ok((u16::from(nibble), rest)),
        13 => {
            let (&octet, rest) = rest.split_first().ok_or(Malformed::Truncated)?;
            Ok((u16::from(octet) + 13, rest))
        }
        14 => {
            let (octets, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
            let value = u16::from_be_bytes(*octets).checked_add(269);
            Ok((value.ok_or(Malformed::Reserved)?, rest))
        }
        _ => Err(Malformed::Reserved),
    }
}

/// Writes a message: header, then options in ascending order, then the payload.
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
    number: u16,
}

impl<'b> Writer<'b> {
    /// Begins a message. `None`, here and below: the buffer is too short.
    pub fn new(
        buffer: &'b mut [u8],
        kind: Kind,
        code: Code,
        id: u16,
        token: Token,
    ) -> Option<Writer<'b>> {
        let mut writer = Writer {
            buffer,
            at: 0,
            number: 0,
        };
        let [a, b] = id.to_be_bytes();
        writer.put(&[1 << 6 | (kind as u8) << 4 | token.len, code.0, a, b])?;
        writer.put(token.octets())?;
        Some(writer)
    }

    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.at.checked_add(octets.len())?;
        self.buffer.get_mut(self.at..end)?.copy_from_slice(octets);
        self.at = end;
        Some(())
    }

    /// Appends an option. None here is longer than 12 octets or has a delta above 268.
    pub fn option(&mut self, number: u16, value: &[u8]) -> Option<()> {
        let delta = number.checked_sub(self.number)?;
        self.number = number;
        let len = u8::try_from(value.len()).ok().filter(|len| *len <= 12)?;
        match delta {
            0..=12 => self.put(&[(delta as u8) << 4 | len])?,
            13..=268 => self.put(&[13 << 4 | len, (delta - 13) as u8])?,
            _ => return None,
        }
        self.put(value)
    }

    /// Appends a [`option::BLOCK1`] or [`option::BLOCK2`].
    pub fn block(&mut self, option: u16, block: Block) -> Option<()> {
        let bits = block.number << 4 | u32::from(block.more) << 3 | u32::from(block.szx);
        self.number(option, bits)
    }

    /// Appends an option with an unsigned value, in as few octets as possible (RFC 7252, 3.2).
    pub fn number(&mut self, option: u16, value: u32) -> Option<()> {
        let octets = value.to_be_bytes();
        let skip = (value.leading_zeros() / 8).min(4) as usize;
        self.option(option, octets.get(skip..).unwrap_or_default())
    }

    /// Appends the payload; an empty one has no marker.
    pub fn payload(&mut self, payload: &[u8]) -> Option<()> {
        if payload.is_empty() {
            return Some(());
        }
        self.put(&[0xff])?;
        self.put(payload)
    }

    /// Reserves room for a payload of `len` octets, to be written in place.
    pub fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if len > 0 {
            self.put(&[0xff])?;
        }
        let (start, end) = (self.at, self.at.checked_add(len)?);
        let room = self.buffer.get_mut(start..end)?;
        self.at = end;
        Some(room)
    }

    /// Octets written so far.
    #[allow(
        clippy::len_without_is_empty,
        reason = "a message has at least a header"
    )]
    pub fn len(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7252, appendix A, figure 16, with POST: header 0x44 0x02, token, option by hand.
    #[test]
    fn a_message_by_hand() {
        let mut buffer = [0; 64];
        let token = Token::new(0x0102_0304);
        let mut writer =
            Writer::new(&mut buffer, Kind::Confirmable, Code::POST, 0x7d34, token).unwrap();
        writer.option(option::URI_PATH, b"r").unwrap();
        let block = Block {
            number: 3,
            more: true,
            szx: 5,
        };
        writer.block(option::BLOCK1, block).unwrap();
        writer.payload(b"hi").unwrap();
        let len = writer.len();
        let expected = [
            0x44, 2, 0x7d, 0x34, 1, 2, 3, 4, 0xb1, b'r', 0xd1, 3, 0x3d, 0xff, b'h', b'i',
        ];
        assert_eq!(buffer[..len], expected);
        let message = Message::parse(&buffer[..len]).unwrap();
        assert_eq!((message.token, message.id), (token, 0x7d34));
        assert_eq!(message.block1(), Some(block));
        assert_eq!(message.payload, b"hi");
        assert!(!message.unknown_critical());
        for cut in 0..len {
            // Cut between options it is a message still; never a panic.
            let _ = Message::parse(&buffer[..cut]);
        }
    }

    /// Every first octet of version 1 and its neighbours, every nibble pair in the first option, at every length.
    #[test]
    fn hostile_octets_do_not_panic() {
        for first in 0x3f..=0x80u8 {
            for nibbles in 0..=255u8 {
                let mut bytes = [0xee; 24];
                (bytes[0], bytes[4 + usize::from(first & 15).min(8)]) = (first, nibbles);
                for len in 0..bytes.len() {
                    if let Ok(message) = Message::parse(&bytes[..len]) {
                        assert!(message.options().count() <= 24);
                        let _ = (message.block1(), message.unknown_critical());
                    }
                }
            }
        }
    }
}
