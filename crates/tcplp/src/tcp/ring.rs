//! A ring of octets in memory lent by the caller. Offsets count from the head and wrap around the end.

/// The memory, and the index of its first octet in use. Sums and differences of places cannot overflow: memory is shorter than half of
/// the address space.
#[derive(Debug)]
pub(super) struct Ring<'a> {
    octets: &'a mut [u8],
    head: u32,
}

impl<'a> Ring<'a> {
    pub fn new(octets: &'a mut [u8]) -> Ring<'a> {
        Ring { octets, head: 0 }
    }

    /// Takes the memory out.
    pub fn take(&mut self) -> &'a mut [u8] {
        core::mem::take(&mut self.octets)
    }

    /// The length of the memory in octets.
    pub fn capacity(&self) -> u32 {
        self.octets.len() as u32
    }

    /// The `len` octets from `offset` on, in two parts where they wrap. Both together lie within the capacity.
    pub fn parts(&self, offset: u32, len: u32) -> [&[u8]; 2] {
        let (start, first, rest) = self.cut(offset, len as usize);
        let part = |start: usize, len: usize| self.octets.get(start..start.wrapping_add(len));
        [
            part(start, first).unwrap_or_default(),
            part(0, rest).unwrap_or_default(),
        ]
    }

    /// The same, to be written in place.
    pub fn parts_mut(&mut self, offset: u32, len: u32) -> (&mut [u8], &mut [u8]) {
        let (start, first, rest) = self.cut(offset, len as usize);
        let (low, high) = self.octets.split_at_mut(start);
        (
            high.get_mut(..first).unwrap_or_default(),
            low.get_mut(..rest).unwrap_or_default(),
        )
    }

    /// Writes `data` from `offset` on. Both together lie within the capacity.
    pub fn put(&mut self, offset: u32, data: &[u8]) {
        let (start, first, _) = self.cut(offset, data.len());
        if let Some((left, right)) = data.split_at_checked(first) {
            copy(self.octets, start, left);
            copy(self.octets, 0, right);
        }
    }

    /// Moves the head past `octets`, which are at most the capacity.
    pub fn advance(&mut self, octets: u32) {
        self.head = self.place(octets) as u32;
    }

    /// Puts the head back to the start.
    pub fn reset(&mut self) {
        self.head = 0;
    }

    /// Where a range starts, how much of it lies before the end of the memory, and how much wraps.
    fn cut(&self, offset: u32, len: usize) -> (usize, usize, usize) {
        let start = self.place(offset);
        let first = self.octets.len().saturating_sub(start).min(len);
        (start, first, len.wrapping_sub(first))
    }

    /// The index of the octet at `offset`, which is at most the capacity.
    fn place(&self, offset: u32) -> usize {
        let place = (self.head as usize).wrapping_add(offset as usize);
        match place.checked_sub(self.octets.len()) {
            Some(wrapped) => wrapped,
            None => place,
        }
    }
}

/// Copies `data` into `memory` at `start`; nothing if it does not fit.
pub(super) fn copy(memory: &mut [u8], start: usize, data: &[u8]) {
    if let Some(target) = memory.get_mut(start..start.wrapping_add(data.len())) {
        target.copy_from_slice(data);
    }
}
