//! Reassembly of datagrams.
//!
//! The first fragment arrives first: a link that confirms each frame does not reorder, and a datagram whose first fragment
//! is missing will never be complete. So a further fragment never takes a slot.

use core::net::Ipv6Addr;

use chappe_core::{Address, Duration, Instant};
use chappe_wire::ipv6;
use chappe_wire::sixlowpan::frag::Fragment;

use super::Lost;

/// Units of 8 octets in the largest datagram: 1280 octets, IPv6's minimum MTU, which is the MTU of 6LoWPAN (RFC 4944 4).
const UNITS: usize = ipv6::MTU_MIN / 8;

/// A slot: one datagram that is being reassembled, or none.
#[derive(Clone, Copy, Debug)]
struct Slot<const MTU: usize> {
    packet: [u8; MTU],
    key: Option<Key>,
    /// A bit for each unit that has arrived.
    units: [u32; UNITS / 32],
    octets: u16,
    fragments: u16,
    last: Instant,
}

/// What identifies a datagram on one link (RFC 4944 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    from: Address,
    size: u16,
    tag: u16,
}

/// The slots of an interface.
#[derive(Clone, Debug)]
pub(super) struct Reassembly<const N: usize, const MTU: usize> {
    slots: [Slot<MTU>; N],
}

/// The result of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The datagram is not complete yet.
    Waiting,
    /// The slot with this number holds the whole datagram.
    Complete(usize),
    /// The fragment, or all of its datagram, was dropped.
    Lost(Lost),
}

impl<const MTU: usize> Slot<MTU> {
    const EMPTY: Self = Slot {
        packet: [0; MTU],
        key: None,
        units: [0; UNITS / 32],
        octets: 0,
        fragments: 0,
        last: Instant::ZERO,
    };

    fn has(&self, unit: usize) -> bool {
        let word = self.units.get(unit / 32).copied().unwrap_or(0);
        word & 1 << (unit % 32) != 0
    }

    fn note(&mut self, unit: usize) {
        if let Some(word) = self.units.get_mut(unit / 32) {
            *word |= 1 << (unit % 32);
        }
    }

    /// Source and destination of the packet, whose first fragment has arrived.
    fn ends(&self) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let header = ipv6::Header::parse(&self.packet).ok()?;
        Some((header.source, header.destination))
    }

    /// Puts `part` at `start`.
    fn put(&mut self, now: Instant, size: usize, start: usize, part: &[u8]) -> Result<bool, Lost> {
        let end = start + part.len();
        let whole_units = part.len().is_multiple_of(8) || end == size;
        if part.is_empty() || end > size || !start.is_multiple_of(8) || !whole_units {
            return Err(Lost::Malformed);
        }
        let units = start / 8..end.div_ceil(8);
        let here = units.clone().filter(|&unit| self.has(unit)).count();
        let place = self.packet.get_mut(start..end).ok_or(Lost::TooBig)?;
        if here > 0 {
            // An exact duplicate is harmless; anything else is an attack or an error (RFC 4944 5.3).
            let same = here == units.len() && place == part;
            return if same { Ok(false) } else { Err(Lost::Overlap) };
        }
        place.copy_from_slice(part);
        units.for_each(|unit| self.note(unit));
        self.octets = self.octets.saturating_add(part.len() as u16);
        self.fragments = self.fragments.saturating_add(1);
        self.last = now;
        Ok(usize::from(self.octets) == size)
    }
}

impl<const N: usize, const MTU: usize> Reassembly<N, MTU> {
    pub fn new() -> Self {
        Reassembly {
            slots: [Slot::EMPTY; N],
        }
    }

    /// A first fragment with its headers expanded: `part` is the beginning of the datagram. `lost` is called for datagrams
    /// that are evicted for it.
    pub fn first(
        &mut self,
        now: Instant,
        from: Address,
        fragment: &Fragment,
        part: &[u8],
        slot_idle: Duration,
        mut lost: impl FnMut(Lost),
    ) -> Put {
        if usize::from(fragment.size) > MTU.min(UNITS * 8) {
            return Put::Lost(Lost::TooBig);
        }
        let key = Key {
            from,
            size: fragment.size,
            tag: fragment.tag,
        };
        if let Some(at) = self.find(&key) {
            return self.put(at, now, 0, part);
        }
        self.begin_anew(from, part, &mut lost);
        let Some(at) = self.place_for(now, from, slot_idle, &mut lost) else {
            return Put::Lost(Lost::NoSlot);
        };
        if let Some(slot) = self.slots.get_mut(at) {
            slot.key = Some(key);
            slot.units = [0; UNITS / 32];
            (slot.octets, slot.fragments) = (0, 0);
        }
        self.put(at, now, 0, part)
    }

    /// A further fragment, which never starts a datagram.
    pub fn further(
        &mut self,
        now: Instant,
        from: Address,
        fragment: &Fragment,
        part: &[u8],
    ) -> Put {
        let key = Key {
            from,
            size: fragment.size,
            tag: fragment.tag,
        };
        match self.find(&key) {
            Some(at) => self.put(at, now, fragment.start(), part),
            None => Put::Lost(Lost::NoFirst),
        }
    }

    fn find(&self, key: &Key) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| slot.key.as_ref() == Some(key))
    }

    fn put(&mut self, at: usize, now: Instant, start: usize, part: &[u8]) -> Put {
        let Some(slot) = self.slots.get_mut(at) else {
            return Put::Lost(Lost::NoSlot);
        };
        let size = slot.key.map_or(0, |key| usize::from(key.size));
        match slot.put(now, size, start, part) {
            Ok(true) => Put::Complete(at),
            Ok(false) => Put::Waiting,
            Err(why) => {
                // RFC 4944, 5.3: an overlap discards the datagram. A fragment with invalid lengths only discards itself.
                if why == Lost::Overlap || slot.fragments == 0 {
                    slot.key = None;
                }
                Put::Lost(why)
            }
        }
    }

    /// A neighbour that starts a datagram with the same source and destination has given up the previous one: it sends one
    /// at a time.
    fn begin_anew(&mut self, from: Address, part: &[u8], lost: &mut impl FnMut(Lost)) {
        let Ok(header) = ipv6::Header::parse(part) else {
            return;
        };
        let ends = Some((header.source, header.destination));
        for slot in &mut self.slots {
            if slot.key.is_some_and(|key| key.from == from) && slot.ends() == ends {
                slot.key = None;
                lost(Lost::Evicted);
            }
        }
    }

    /// A free slot, or one to evict. One neighbour may not have all slots. Datagrams without progress go first, oldest
    /// first; then those that were idle for `slot_idle`.
    fn place_for(
        &mut self,
        now: Instant,
        from: Address,
        slot_idle: Duration,
        lost: &mut impl FnMut(Lost),
    ) -> Option<usize> {
        let of = |slot: &Slot<MTU>| slot.key.is_some_and(|key| key.from == from);
        let own = self.slots.iter().filter(|slot| of(slot)).count();
        // One neighbour gets at most all slots but one, or the only slot.
        let quota = (N - N.min(1)).max(1);
        let free = self.slots.iter().position(|slot| slot.key.is_none());
        if own < quota && free.is_some() {
            return free;
        }
        let silent =
            |slot: &Slot<MTU>| slot.fragments <= 1 || now.saturating_since(slot.last) >= slot_idle;
        let victims =
            self.slots.iter().enumerate().filter(|(_, slot)| {
                slot.key.is_some() && silent(slot) && (own < quota || of(slot))
            });
        // A flood of first fragments evicts itself before it evicts datagrams in progress.
        let (at, _) = victims.min_by_key(|(_, slot)| (slot.fragments > 1, slot.last))?;
        lost(Lost::Evicted);
        Some(at)
    }

    /// The datagram of a complete slot; the slot is free afterwards, its contents stay until the next fragment.
    pub fn take(&mut self, at: usize) -> &[u8] {
        let Some(slot) = self.slots.get_mut(at) else {
            return &[];
        };
        let len = slot.key.take().map_or(0, |key| usize::from(key.size));
        slot.packet.get(..len).unwrap_or_default()
    }

    /// Gives up datagrams that were idle for `idle`.
    pub fn expire(&mut self, now: Instant, idle: Duration, mut lost: impl FnMut(Lost)) {
        for slot in &mut self.slots {
            if slot.key.is_some() && now.saturating_since(slot.last) >= idle {
                slot.key = None;
                lost(Lost::Expired);
            }
        }
    }

    /// When the next datagram will have been idle for `idle`.
    pub fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        let used = self.slots.iter().filter(|slot| slot.key.is_some());
        used.map(|slot| slot.last + idle).min()
    }
}
