//! A set of packets near the present end of an object, in fixed memory: which are still to be sent, or have come.
//!
//! Packet numbers grow without wrapping here; on the air they are modulo 2^16, or 2^14 in short headers, and
//! [`Window::resolve`] and [`Window::resolve_short`] put them back.

use crate::header::SHORT_SEQUENCE;

/// Packets that a window spans: two segments and the rest of a third. A power of two.
pub const WINDOW: u32 = 2048;
const WORDS: usize = WINDOW as usize / 64;

/// A set of packets in `base..base + WINDOW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    base: u32,
    words: [u64; WORDS],
}

impl Window {
    /// The empty set from packet `base` on.
    pub fn new(base: u32) -> Window {
        Window {
            base,
            words: [0; WORDS],
        }
    }

    /// The first packet that can be in the set.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether the packet lies in the window's span.
    pub fn spans(&self, packet: u32) -> bool {
        packet.checked_sub(self.base).is_some_and(|n| n < WINDOW)
    }

    /// The packet in the window's span with this number on the air, if there is one.
    pub fn resolve(&self, sequence: u16) -> Option<u32> {
        // At most one packet has it: the window is shorter than the 2^16 numbers.
        let ahead = sequence.wrapping_sub(self.base as u16);
        (u32::from(ahead) < WINDOW).then(|| self.base.saturating_add(u32::from(ahead)))
    }

    /// The same for the number in a short header.
    pub fn resolve_short(&self, sequence: u16) -> Option<u32> {
        let ahead = sequence.wrapping_sub(self.base as u16) & SHORT_SEQUENCE;
        (u32::from(ahead) < WINDOW).then(|| self.base.saturating_add(u32::from(ahead)))
    }

    /// Whether the packet is in the set.
    pub fn contains(&self, packet: u32) -> bool {
        let word = self.words.get(word_of(packet)).copied().unwrap_or(0);
        self.spans(packet) && word >> (packet % 64) & 1 == 1
    }

    /// Adds or removes a packet. Ignored outside the window's span.
    pub fn set(&mut self, packet: u32, member: bool) {
        if !self.spans(packet) {
            return;
        }
        if let Some(word) = self.words.get_mut(word_of(packet)) {
            *word = *word & !(1 << (packet % 64)) | u64::from(member) << (packet % 64);
        }
    }

    /// The first packet of the set in `from..end`.
    pub fn next(&self, from: u32, end: u32) -> Option<u32> {
        let end = end.min(self.base.saturating_add(WINDOW));
        let mut at = from.max(self.base);
        while at < end {
            let word = self.words.get(word_of(at)).copied().unwrap_or(0) >> (at % 64);
            if word != 0 {
                let found = at.saturating_add(word.trailing_zeros());
                // A word may reach past the end of the span, into bits of its beginning.
                return (found < end).then_some(found);
            }
            at = (at | 63).saturating_add(1);
        }
        None
    }

    /// Moves the start of the window up to `base` and drops the packets before it.
    pub fn advance(&mut self, base: u32) {
        if base.saturating_sub(self.base) >= WINDOW {
            *self = Window::new(base);
            return;
        }
        while self.base < base {
            self.set(self.base, false);
            self.base += 1;
        }
    }

    /// Moves the start of the window past all leading members and returns it.
    pub fn skip_members(&mut self) -> u32 {
        while self.contains(self.base) {
            self.advance(self.base.saturating_add(1));
        }
        self.base
    }

    /// The set as octets, least significant packet first from `base`.
    pub fn octets(&self) -> impl Iterator<Item = u8> + '_ {
        (0..WINDOW / 8).map(|octet| {
            (0..8).fold(0, |bits, bit| {
                let packet = self.base.saturating_add(octet * 8 + bit);
                bits | u8::from(self.contains(packet)) << bit
            })
        })
    }
}

fn word_of(packet: u32) -> usize {
    (packet % WINDOW / 64) as usize
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use chappe_core::{Purpose, Seed};
    use std::collections::BTreeSet;

    /// Method: the same random operations on a window and on a plain set.
    #[test]
    fn a_window_behaves_like_a_set() {
        let mut random = Seed(3).stream(Purpose::Trial(0));
        let mut window = Window::new(65_000);
        let mut set = BTreeSet::new();
        for _ in 0..20_000 {
            let base = window.base();
            let packet = (base + random.below(2100) as u32).saturating_sub(20);
            match random.below(10) {
                0 => {
                    let to = base + random.below(40) as u32;
                    window.advance(to);
                    set = set.split_off(&to);
                }
                1 => {
                    let mut expected = base;
                    while set.remove(&expected) {
                        expected += 1;
                    }
                    assert_eq!(window.skip_members(), expected);
                }
                2 | 3 => {
                    window.set(packet, false);
                    set.remove(&packet);
                }
                _ => {
                    window.set(packet, true);
                    if (base..base + WINDOW).contains(&packet) {
                        set.insert(packet);
                    }
                }
            }
            let (base, end) = (window.base(), packet.saturating_add(300));
            assert_eq!(window.contains(packet), set.contains(&packet));
            let next = set.range(packet.max(base)..end.max(base)).next().copied();
            assert_eq!(window.next(packet, end), next);
            let near = window.resolve(packet as u16);
            assert_eq!(near, window.spans(packet).then_some(packet));
            let short = window.resolve_short(packet as u16 & SHORT_SEQUENCE);
            assert_eq!(short, window.spans(packet).then_some(packet));
        }
        let first: u8 = window.octets().next().unwrap();
        let bits = (0..8).fold(0, |bits, bit| {
            bits | u8::from(set.contains(&(window.base() + bit))) << bit
        });
        assert_eq!(first, bits);
        window.advance(window.base() + 5000);
        assert_eq!(window.next(0, u32::MAX), None);
    }
}
