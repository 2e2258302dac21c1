//! What the windows of a host's links may take together.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Octets that the windows of several links may grow by, all together. Clones share them.
#[derive(Clone, Debug)]
pub struct Memory(Arc<AtomicUsize>);

impl Memory {
    /// So many octets for all that share them.
    pub fn new(octets: usize) -> Memory {
        Memory(Arc::new(AtomicUsize::new(octets)))
    }

    /// Octets that no window has taken.
    pub fn left(&self) -> usize {
        self.0.load(Relaxed)
    }

    fn take(&self, octets: usize) -> bool {
        let less = |left: usize| left.checked_sub(octets);
        self.0.fetch_update(Relaxed, Relaxed, less).is_ok()
    }
}

/// What one window has taken. It goes back when the window goes.
#[derive(Debug, Default)]
pub(crate) struct Share {
    of: Option<Memory>,
    taken: usize,
}

impl Share {
    pub fn of(memory: Memory) -> Share {
        Share {
            of: Some(memory),
            taken: 0,
        }
    }

    /// Whether so many octets more may be used, which are then taken. Without a memory to share, always.
    pub fn take(&mut self, octets: usize) -> bool {
        let granted = self.of.as_ref().is_none_or(|memory| memory.take(octets));
        self.taken += if granted { octets } else { 0 };
        granted
    }

    /// Octets that could be taken now.
    pub fn left(&self) -> usize {
        self.of.as_ref().map_or(usize::MAX, Memory::left)
    }
}

/// A copy of a window is another one, which has taken nothing.
impl Clone for Share {
    fn clone(&self) -> Share {
        Share {
            of: self.of.clone(),
            taken: 0,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(memory) = &self.of {
            memory.0.fetch_add(self.taken, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: together, shares never take more than there is, and what a share took comes back once, when it goes.
    #[test]
    fn what_is_taken_comes_back_once() {
        let memory = Memory::new(100);
        let (mut one, mut other) = (Share::of(memory.clone()), Share::of(memory.clone()));
        assert!(one.take(60) && !other.take(60) && other.take(40));
        assert_eq!((memory.left(), other.left()), (0, 0));
        drop(one.clone());
        assert_eq!(memory.left(), 0);
        drop(one);
        assert_eq!(memory.left(), 60);
        drop(other);
        assert_eq!(memory.left(), 100);
        assert!(Share::default().take(usize::MAX));
    }
}
