//! Datagrams being put together.
//!
//! First fragments come first: on a link that confirms each frame nothing overtakes, and a datagram whose first
//! fragment is missing will not be completed. So a further fragment never takes a slot.

use core::net::Ipv6Addr;

use chappe_core::{Address, Duration, Instant};
use chappe_wire::ipv6;
use chappe_wire::sixlowpan::frag::Fragment;

use super::Lost;

/// Units of 8 octets that the largest datagram has: 1280 octets, IPv6's smallest MTU, which nobody on such a link exceeds.
const UNITS: usize = ipv6::MTU_MIN / 8;

/// One datagram.
#[derive(Clone, Copy, Debug)]
struct Slot<const MTU: usize> {
    packet: [u8; MTU],
    key: Option<Key>,
    /// Units that are here.
    units: [u32; UNITS / 32],
    octets: u16,
    fragments: u16,
    last: Instant,
}

/// Whose datagram it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    from: Address,
    size: u16,
    tag: u16,
}

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Reassembly<const N: usize, const MTU: usize> {
    slots: [Slot<MTU>; N],
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// More are needed.
    Waiting,
    /// The slot with this number holds the whole datagram.
    Complete(usize),
    /// It, or all of its datagram, was not used.
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

    /// Source and destination of the packet, whose first fragment is here.
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
            // The same again is harmless; anything else is an attack or a mistake.
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

    /// A first fragment, its headers expanded: `part` is the datagram's beginning. `lost` hears of datagrams that
    /// are given up for it.
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

    /// A further fragment.
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
                // RFC 4944, 5.3: an overlap ends the datagram. A fragment that lies about lengths ends itself only.
                if why == Lost::Overlap || slot.fragments == 0 {
                    slot.key = None;
                }
                Put::Lost(why)
            }
        }
    }

    /// A neighbour that begins a datagram between the same ends has given up the one before: it sends one at a time.
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

    /// A free slot, or one that is given up: one neighbour may not have all of them; then those that have made no
    /// progress, oldest first; then those that have been silent for long.
    fn place_for(
        &mut self,
        now: Instant,
        from: Address,
        slot_idle: Duration,
        lost: &mut impl FnMut(Lost),
    ) -> Option<usize> {
        let of = |slot: &Slot<MTU>| slot.key.is_some_and(|key| key.from == from);
        let own = self.slots.iter().filter(|slot| of(slot)).count();
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
        // What has made no progress goes first.
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

    /// Gives up what has been silent for `idle`.
    pub fn expire(&mut self, now: Instant, idle: Duration, mut lost: impl FnMut(Lost)) {
        for slot in &mut self.slots {
            if slot.key.is_some() && now.saturating_since(slot.last) >= idle {
                slot.key = None;
                lost(Lost::Expired);
            }
        }
    }

    /// When the next one is silent for `idle`.
    pub fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        let used = self.slots.iter().filter(|slot| slot.key.is_some());
        used.map(|slot| slot.last + idle).min()
    }
}
