//! Where a source takes its object from, and where a destination puts it.

/// An object that can be read at any offset, repeatedly, and does not change during a transfer.
pub trait Object {
    /// The length of the object in octets.
    fn len(&self) -> u32;

    /// Fills `to` with the octets from `offset` on. Octets past the end are left as they are.
    fn read(&self, offset: u32, to: &mut [u8]);

    /// Whether the object has no octets.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A slice; octets past 2^32 - 1 are not part of it.
impl Object for &[u8] {
    fn len(&self) -> u32 {
        u32::try_from(<[u8]>::len(self)).unwrap_or(u32::MAX)
    }

    fn read(&self, offset: u32, to: &mut [u8]) {
        let rest = self.get(offset as usize..).unwrap_or_default();
        for (to, from) in to.iter_mut().zip(rest) {
            *to = *from;
        }
    }
}

/// Memory for an object, which takes packets in any order. A packet comes again only where the tag of its block was wrong.
pub trait Store {
    /// Puts `octets` at `offset`. Returns false if there is no room or the medium failed; the destination then asks for the packet
    /// again.
    ///
    /// The last packet is padded to full length, and its true end is known later: see [`finish`](Self::finish).
    fn write(&mut self, offset: u32, octets: &[u8]) -> bool;

    /// Fills `to` with the octets at `offset`, which were stored; false where they cannot be read. Only a resumed transfer
    /// whose packets are authenticated by blocks reads, and asks again for what it cannot read.
    fn read(&self, offset: u32, to: &mut [u8]) -> bool;

    /// All octets of the object are stored; those past `len` are padding.
    fn finish(&mut self, len: u32);
}

/// A store in memory that the caller lends. It must have room for whole packets.
#[derive(Debug)]
pub struct Lent<'a> {
    memory: &'a mut [u8],
    len: Option<u32>,
}

impl<'a> Lent<'a> {
    /// A store without packets.
    pub fn new(memory: &'a mut [u8]) -> Lent<'a> {
        Lent { memory, len: None }
    }

    /// The whole object, once it is complete.
    pub fn object(&self) -> Option<&[u8]> {
        self.memory.get(..self.len? as usize)
    }
}

impl Store for Lent<'_> {
    fn write(&mut self, offset: u32, octets: &[u8]) -> bool {
        let rest = self.memory.get_mut(offset as usize..);
        let place = rest.and_then(|rest| rest.get_mut(..octets.len()));
        match place {
            Some(place) => {
                place.copy_from_slice(octets);
                true
            }
            None => false,
        }
    }

    fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        let rest = self.memory.get(offset as usize..);
        let from = rest.and_then(|rest| rest.get(..to.len()));
        from.map(|from| to.copy_from_slice(from)).is_some()
    }

    fn finish(&mut self, len: u32) {
        self.len = Some(len);
    }
}
