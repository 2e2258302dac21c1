//! KCP segments as they follow one another in a datagram, little-endian (`protocol.txt`).
//!
//! ```text
//! 0       4     5     6     8      12     16     20     24
//! | conv  | cmd | frg | wnd |  ts  |  sn  | una  | len  | data
//! ```

/// Octets before the data.
pub(crate) const HEADER: usize = 24;

/// Whether `a` comes before `b`, both modulo 2^32: segment numbers and timestamps.
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) > u32::MAX / 2
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Data with the number `sn`.
    Push,
    /// Acknowledges segment `sn`; `ts` is the timestamp of its transmission.
    Ack,
    /// Asks for the window.
    Ask,
    /// Announces the window, which every header holds.
    Tell,
}

impl Command {
    const fn code(self) -> u8 {
        match self {
            Command::Push => 81,
            Command::Ack => 82,
            Command::Ask => 83,
            Command::Tell => 84,
        }
    }

    fn of(code: u8) -> Option<Command> {
        let all = [Command::Push, Command::Ack, Command::Ask, Command::Tell];
        all.into_iter().find(|command| command.code() == code)
    }
}

/// One segment, header and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub conv: u32,
    pub command: Command,
    /// Segments that the sender of this one still accepts.
    pub window: u16,
    /// Time of transmission by the sender's clock, ms; an acknowledgement returns that of its segment.
    pub stamp: u32,
    pub number: u32,
    /// All numbers before this one have arrived at the sender.
    pub una: u32,
    pub data: &'a [u8],
}

impl<'a> Segment<'a> {
    /// The first segment of a datagram and what follows it; `None` if there is none.
    pub fn parse(datagram: &'a [u8]) -> Option<(Segment<'a>, &'a [u8])> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>()?;
        let word = |at: usize| {
            let octets = header.get(at..at + 4)?.first_chunk()?;
            Some(u32::from_le_bytes(*octets))
        };
        let [_, _, _, _, code, fragment, low, high, ..] = *header;
        let (data, rest) = rest.split_at_checked(word(20)? as usize)?;
        // `frg` numbers the fragments of a message; a stream has none.
        let command = Command::of(code).filter(|_| fragment == 0)?;
        let segment = Segment {
            conv: word(0)?,
            command,
            window: u16::from_le_bytes([low, high]),
            stamp: word(8)?,
            number: word(12)?,
            una: word(16)?,
            data,
        };
        Some((segment, rest))
    }

    /// Length of the segment in octets.
    pub fn len(&self) -> usize {
        HEADER + self.data.len()
    }

    /// Writes it to the front of `octets`; `None` if it does not fit.
    pub fn emit(&self, octets: &mut [u8]) -> Option<usize> {
        let len = self.len();
        let (header, data) = octets.get_mut(..len)?.split_at_mut_checked(HEADER)?;
        let [low, high] = self.window.to_le_bytes();
        let words = [
            self.conv,
            u32::from_le_bytes([self.command.code(), 0, low, high]),
            self.stamp,
            self.number,
            self.una,
            self.data.len() as u32,
        ];
        for (to, word) in header.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        data.copy_from_slice(self.data);
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_the_way() {
        let segment = Segment {
            conv: 0x0102_0304,
            command: Command::Push,
            window: 500,
            stamp: 77,
            number: 9,
            una: 8,
            data: b"tower",
        };
        let mut octets = [0; 40];
        let len = segment.emit(&mut octets).unwrap();
        assert_eq!(len, 29);
        assert_eq!(octets[..8], [4, 3, 2, 1, 81, 0, 244, 1]);
        let (read, rest) = Segment::parse(&octets[..len]).unwrap();
        assert_eq!((read, rest.len()), (segment, 0));
        for short in 0..len {
            assert!(Segment::parse(&octets[..short]).is_none(), "{short}");
        }
        octets[4] = 80;
        assert!(Segment::parse(&octets[..len]).is_none());
        assert!(segment.emit(&mut octets[..28]).is_none());
    }
}
