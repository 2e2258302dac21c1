//! What exists once for each path to the peer.
//!
//! A link may have several paths: two uplinks, or Wi-Fi beside a mobile network. Bodies and their numbers are common to all of
//! them; frames are numbered, reported and measured on each path by itself. So a gap in the numbers of a path is a loss,
//! however much later its frames arrive than those of another path.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// Most paths of one link.
pub const PATHS: usize = 8;

/// A frame that was sent: its path, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub path: u8,
    pub number: u32,
}

impl FrameId {
    /// No frame: what a place holds that was never used.
    pub const NONE: FrameId = FrameId { path: 0, number: 0 };
}

/// A value for each path, one of which is selected: the one that a frame or a report has just come on, or that is to send. As
/// long as there is one path, it is the selected one.
#[derive(Clone, Debug)]
pub(crate) struct Paths<T> {
    first: T,
    more: Vec<T>,
    at: usize,
}

impl<T> Paths<T> {
    /// The value of a link's only path.
    pub fn one(first: T) -> Paths<T> {
        Paths {
            first,
            more: Vec::new(),
            at: 0,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.more.len()
    }

    /// Which one is selected.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Selects one. Without effect if there is no such path.
    pub fn select(&mut self, path: usize) {
        if path < self.count() {
            self.at = path;
        }
    }

    /// Adds the value of a further path.
    pub fn push(&mut self, value: T) {
        self.more.push(value);
    }

    /// A path's value; that of the first one if there is no such path.
    pub fn of(&self, path: usize) -> &T {
        let more = path.checked_sub(1).and_then(|place| self.more.get(place));
        more.unwrap_or(&self.first)
    }

    /// The same, to change it.
    pub fn of_mut(&mut self, path: usize) -> &mut T {
        let more = path
            .checked_sub(1)
            .and_then(|place| self.more.get_mut(place));
        more.unwrap_or(&mut self.first)
    }

    /// All values in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        core::iter::once(&self.first).chain(&self.more)
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        core::iter::once(&mut self.first).chain(&mut self.more)
    }
}

impl<T> Deref for Paths<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.of(self.at)
    }
}

impl<T> DerefMut for Paths<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.of_mut(self.at)
    }
}
