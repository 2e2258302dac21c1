//! The receiving half of KCP: segments in order, and the acknowledgements to send.

use alloc::vec;
use alloc::vec::Vec;

use super::config::KcpConfig;
use super::segment::before;
use crate::store::Store;

/// The receive window, and what is to be acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    bodies: Store,
    /// The number of the segment at each place.
    held: Vec<Option<u32>>,
    window: u32,
    /// The segment being read, octets of it already read, and the first segment that is missing.
    read: u32,
    offset: usize,
    next: u32,
    /// Numbers and timestamps to acknowledge.
    owed: Vec<(u32, u32)>,
    /// Whether the window was full when it was last announced.
    pub closed: bool,
}

impl Receiver {
    pub fn new(config: &KcpConfig, longest: usize) -> Receiver {
        let places = usize::from(config.receive_window).next_power_of_two();
        Receiver {
            bodies: Store::new(places, longest),
            held: vec![None; places],
            window: config.receive_window.into(),
            read: 0,
            offset: 0,
            next: 0,
            owed: Vec::with_capacity(2 * places),
            closed: false,
        }
    }

    /// All segments before this number have arrived.
    pub fn una(&self) -> u32 {
        self.next
    }

    /// Segments that the window still accepts.
    pub fn room(&self) -> u16 {
        let unread = self.next.wrapping_sub(self.read);
        self.window.saturating_sub(unread).min(u16::MAX.into()) as u16
    }

    /// Takes a segment; true if it is new. A segment outside the window is not acknowledged, so the peer sends it again.
    pub fn on_push(&mut self, number: u32, stamp: u32, data: &[u8]) -> bool {
        if !before(number, self.read.wrapping_add(self.window)) {
            return false;
        }
        // Duplicates are acknowledged too, since the first acknowledgement may be lost. The bound keeps a peer from growing it.
        if self.owed.len() < self.owed.capacity() {
            self.owed.push((number, stamp));
        }
        let place = number as usize & self.held.len().wrapping_sub(1);
        let Some(held) = self.held.get_mut(place) else {
            return false;
        };
        if before(number, self.next) || *held == Some(number) || !self.bodies.put(place, &[data]) {
            return false;
        }
        *held = Some(number);
        while self.holds(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        true
    }

    fn holds(&self, number: u32) -> bool {
        let place = number as usize & self.held.len().wrapping_sub(1);
        let in_window = number.wrapping_sub(self.read) < self.window;
        in_window && self.held.get(place) == Some(&Some(number))
    }

    /// Reads the stream to the front of `octets`; returns the number of octets.
    pub fn read(&mut self, octets: &mut [u8]) -> usize {
        let mut total = 0;
        while before(self.read, self.next) {
            let place = self.read as usize & self.held.len().wrapping_sub(1);
            let data = self
                .bodies
                .get(place)
                .get(self.offset..)
                .unwrap_or_default();
            let space = octets.get_mut(total..).unwrap_or_default();
            let len = data.len().min(space.len());
            if let (Some(to), Some(from)) = (space.get_mut(..len), data.get(..len)) {
                to.copy_from_slice(from);
            }
            total += len;
            if len < data.len() {
                self.offset += len;
                break;
            }
            (self.read, self.offset) = (self.read.wrapping_add(1), 0);
        }
        total
    }

    /// Whether an acknowledgement is owed.
    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The acknowledgements to send: number and timestamp.
    pub fn owed(&self) -> &[(u32, u32)] {
        &self.owed
    }

    /// Forgets the acknowledgements, which have been sent.
    pub fn settle(&mut self) {
        self.owed.clear();
    }
}
