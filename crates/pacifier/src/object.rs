//! The object of a source, batch by batch: in memory, or read from the application.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::layout::Layout;

/// An object that is too large for memory, or that is generated as it is sent.
///
/// It must not change while it is sent: the source reads a batch again whenever it comes back to it.
pub trait Object: fmt::Debug + Send + Sync {
    /// Octets of the whole object.
    fn size(&self) -> usize;

    /// Fills `into` with the octets from `start` on, all of which the object has; false if they cannot be read,
    /// which stops the source at this batch until they can.
    fn read(&self, start: usize, into: &mut [u8]) -> bool;
}

/// Batches of an [`Object`] kept in memory: the one on the air and those that take turns with it.
const KEPT: usize = 8;

/// An object cut into batches.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    layout: Layout,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    /// In memory. Only the last batch has a copy, padded with zeros.
    Memory { object: Arc<[u8]>, tail: Vec<u8> },
    /// Read when needed. `kept` has the latest batches, the latest first.
    Reader {
        object: Arc<dyn Object>,
        kept: Vec<(u32, Vec<u8>)>,
    },
}

impl Batches {
    /// Cuts an object in memory.
    pub fn new(object: Arc<[u8]>, k: usize, payload: usize) -> Batches {
        let len = object.len();
        let layout = Layout { len, k, payload };
        let last = layout.batches().unwrap_or(0).saturating_sub(1);
        let range = layout.range(last);
        let mut tail = alloc::vec![0; range.len()];
        let rest = object.get(range.start..).unwrap_or_default();
        for (to, from) in tail.iter_mut().zip(rest) {
            *to = *from;
        }
        let from = From::Memory { object, tail };
        Batches { layout, from }
    }

    /// Cuts an object that is read in pieces.
    pub fn read(object: Arc<dyn Object>, k: usize, payload: usize) -> Batches {
        let len = object.size();
        let kept = Vec::with_capacity(KEPT);
        Batches {
            layout: Layout { len, k, payload },
            from: From::Reader { object, kept },
        }
    }

    /// How it is cut.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The whole object in two parts, each of whole packets; `None` if it is not in memory.
    pub fn parts(&self) -> Option<[&[u8]; 2]> {
        let From::Memory { object, tail } = &self.from else {
            return None;
        };
        let last = self.layout.batches()?.saturating_sub(1);
        Some([object.get(..self.layout.range(last).start)?, tail])
    }

    /// The packets of a batch, one after the other, filled up to whole packets; `None` beyond the object, or if
    /// the application cannot read it now.
    pub fn batch(&mut self, batch: u32) -> Option<&[u8]> {
        let range = self.layout.range(batch);
        match &mut self.from {
            From::Memory { tail, .. } if batch.checked_add(1) == self.layout.batches() => {
                Some(tail)
            }
            From::Memory { object, .. } => object.get(range),
            From::Reader { object, kept } => {
                let found = kept.iter().position(|(number, _)| *number == batch);
                match found {
                    Some(place) => kept.get_mut(..=place)?.rotate_right(1),
                    None => {
                        let mut packets = match kept.len() < KEPT {
                            true => Vec::with_capacity(range.len()),
                            false => kept.pop()?.1,
                        };
                        packets.clear();
                        packets.resize(range.len(), 0);
                        let octets = self.layout.octets(batch);
                        if !object.read(range.start, packets.get_mut(..octets)?) {
                            return None;
                        }
                        kept.insert(0, (batch, packets));
                    }
                }
                kept.first().map(|(_, packets)| packets.as_slice())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Counting(usize);

    impl Object for Counting {
        fn size(&self) -> usize {
            self.0
        }

        fn read(&self, start: usize, into: &mut [u8]) -> bool {
            for (place, octet) in (start..).zip(into) {
                *octet = (place % 251) as u8;
            }
            start < 4000
        }
    }

    /// The same object from memory and through a reader gives the same batches, in any order, the last one
    /// filled up with zeros.
    #[test]
    fn reader_and_memory_give_the_same_batches() {
        let len = 3333;
        let whole: Arc<[u8]> = (0..len).map(|place| (place % 251) as u8).collect();
        let mut memory = Batches::new(whole, 4, 50);
        let mut reader = Batches::read(Arc::new(Counting(len)), 4, 50);
        let last = memory.layout().batches().unwrap() - 1;
        for batch in (0..=last).chain([0, last, 3, 0, 5, 16, 2]) {
            let (a, b) = (memory.batch(batch), reader.batch(batch));
            assert!(a.is_some() && a == b, "batch {batch}");
        }
        assert_eq!(memory.batch(last).unwrap().len(), 150);
        assert_eq!(memory.batch(last).unwrap()[133..], [0; 17]);
        assert_eq!(memory.batch(last + 1).unwrap_or_default(), []);
    }

    #[test]
    fn batches_that_cannot_be_read_are_none() {
        let mut reader = Batches::read(Arc::new(Counting(5000)), 4, 50);
        assert!(reader.batch(19).is_some());
        assert!(reader.batch(20).is_none());
        assert!(reader.batch(19).is_some());
    }
}
