//! What frames have after their fixed part: parts that a flag announces, and sets of nodes, which all have one width.

use crate::frame::Malformed;
use crate::set::NodeSet;

/// Octets that have been checked only as far as they were taken.
pub(super) struct Fields<'a> {
    /// The flags of the frame.
    pub flags: u8,
    /// Octets of a set.
    pub width: usize,
    pub rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (slice, rest) = self.rest.split_at_checked(len).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(slice)
    }

    pub fn octets<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (octets, rest) = self.rest.split_first_chunk().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*octets)
    }

    pub fn set(&mut self) -> Result<NodeSet, Malformed> {
        self.slice(self.width).map(NodeSet::from_octets)
    }

    /// Octets that are there only with the flag.
    pub fn announced<const N: usize>(&mut self, flag: u8) -> Result<Option<[u8; N]>, Malformed> {
        match self.flags & flag {
            0 => Ok(None),
            _ => self.octets().map(Some),
        }
    }

    /// A set that is there only with the flag, after a number of `N` octets.
    pub fn numbered_set<const N: usize>(
        &mut self,
        flag: u8,
    ) -> Result<Option<([u8; N], NodeSet)>, Malformed> {
        let Some(number) = self.announced(flag)? else {
            return Ok(None);
        };
        Ok(Some((number, self.set()?)))
    }
}

/// Room for what comes next in a frame. Each part that does not fit gives `None`.
pub(super) struct Room<'a> {
    /// Octets of a set.
    pub width: usize,
    pub rest: &'a mut [u8],
}

impl<'a> Room<'a> {
    fn place(&mut self, len: usize) -> Option<&'a mut [u8]> {
        let (place, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(len)?;
        self.rest = rest;
        Some(place)
    }

    pub fn put(&mut self, octets: &[u8]) -> Option<()> {
        self.place(octets.len())?.copy_from_slice(octets);
        Some(())
    }

    pub fn put_set(&mut self, set: &NodeSet) -> Option<()> {
        set.to_octets(self.place(self.width)?);
        Some(())
    }

    /// Octets that the frame's flags announce, if there are any.
    pub fn announced<const N: usize>(&mut self, octets: Option<[u8; N]>) -> Option<()> {
        octets.map_or(Some(()), |octets| self.put(&octets))
    }

    /// A set that the frame's flags announce, after its number.
    pub fn numbered_set<const N: usize>(&mut self, set: Option<([u8; N], NodeSet)>) -> Option<()> {
        let Some((number, set)) = set else {
            return Some(());
        };
        self.put(&number)?;
        self.put_set(&set)
    }
}
