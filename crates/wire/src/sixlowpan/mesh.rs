//! The mesh header (RFC 4944, 5.2): originator and final destination of a frame, below IP.
//!
//! ```text
//! 10 | V | F | hops left, 4 bits | (deep: 8 bits, if the hops are 0xf) | originator | final destination
//! ```
//! V and F say whether an address has 16 bits (1) or 64 (0).

use crate::dot15d4::Node;
use crate::{Malformed, Reader, Writer};

/// A mesh header: originator, final destination, hops left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// The number of links it may still pass.
    pub hops_left: u8,
    /// The node that sent the frame first.
    pub originator: Node,
    /// The node that receives it in the end.
    pub destination: Node,
}

impl Mesh {
    /// Reads a header and says where its contents begin.
    pub fn parse(payload: &[u8]) -> Result<(Mesh, usize), Malformed> {
        let mut reader = Reader::new(payload);
        let first = reader.octet()?;
        if first >> 6 != 0b10 {
            return Err(Malformed::Unsupported);
        }
        let hops_left = match first & 15 {
            15 => reader.octet()?,
            hops => hops,
        };
        let originator = node(&mut reader, first & 1 << 5 != 0)?;
        let destination = node(&mut reader, first & 1 << 4 != 0)?;
        let mesh = Mesh {
            hops_left,
            originator,
            destination,
        };
        Ok((mesh, reader.at))
    }

    /// Writes the header to the front of `payload` and returns its length. Fails if it does not fit.
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, Malformed> {
        let short = |node: Node, bit: u8| match node {
            Node::Short(_) => 1 << bit,
            Node::Extended(_) => 0,
        };
        let flags = 0x80 | short(self.originator, 5) | short(self.destination, 4);
        let mut writer = Writer::new(payload);
        writer.put(&[flags | self.hops_left.min(15)])?;
        if self.hops_left >= 15 {
            writer.put(&[self.hops_left])?;
        }
        for node in [self.originator, self.destination] {
            match node {
                Node::Short(short) => writer.put(&short.to_be_bytes())?,
                Node::Extended(extended) => writer.put(&extended.to_be_bytes())?,
            }
        }
        Ok(writer.at)
    }
}

fn node(reader: &mut Reader<'_>, short: bool) -> Result<Node, Malformed> {
    Ok(match short {
        true => Node::Short(u16::from_be_bytes(reader.take()?)),
        false => Node::Extended(u64::from_be_bytes(reader.take()?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        let nodes = [Node::Short(0x1234), Node::Extended(0x0102_0304_0506_0708)];
        for hops_left in [0, 14, 15, 255] {
            for originator in nodes {
                for destination in nodes {
                    let mesh = Mesh {
                        hops_left,
                        originator,
                        destination,
                    };
                    let mut payload = [0; 32];
                    let len = mesh.emit(&mut payload).unwrap();
                    assert_eq!(Mesh::parse(&payload), Ok((mesh, len)));
                    for cut in 0..len {
                        assert!(Mesh::parse(&payload[..cut]).is_err());
                        assert!(mesh.emit(&mut [0; 32][..cut]).is_err(), "P14");
                    }
                }
            }
        }
    }
}
