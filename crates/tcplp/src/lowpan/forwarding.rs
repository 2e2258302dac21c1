//! Datagrams that pass through, without being put together (RFC 8930), and the queue of frames that wait.

use chappe_core::{Address, Duration, Instant};

use super::Lost;

/// Largest SDU of 802.15.4: what a queued frame may have.
pub(super) const SDU_MAX: usize = 118;

/// A datagram of which fragments pass: from whom and under which tag they come, to whom and under which they go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub from: Address,
    pub tag_in: u16,
    pub size: u16,
    pub next: Address,
    pub tag_out: u16,
    last: Instant,
}

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub next: Address,
    pub len: u8,
    /// The tag under which its datagram goes on, if it is a fragment.
    pub tag: Option<u16>,
    pub sdu: [u8; SDU_MAX],
}

#[derive(Clone, Debug)]
pub(super) struct Forwarding<const N: usize> {
    entries: [Option<Entry>; N],
    /// A queue in a ring: `first`, then `len` frames.
    frames: [Queued; N],
    first: usize,
    len: usize,
}

impl Queued {
    pub fn sdu(&self) -> &[u8] {
        self.sdu.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl<const N: usize> Forwarding<N> {
    pub fn new() -> Self {
        let empty = Queued {
            next: Address::BROADCAST,
            len: 0,
            tag: None,
            sdu: [0; SDU_MAX],
        };
        Forwarding {
            entries: [None; N],
            frames: [empty; N],
            first: 0,
            len: 0,
        }
    }

    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_full(&self) -> bool {
        self.len >= N
    }

    /// Remembers a datagram. An old one with the same tag of the same neighbour is forgotten (the tag is used anew);
    /// with no room left, the one that has been silent for longest.
    pub fn remember(
        &mut self,
        now: Instant,
        (from, tag_in, size): (Address, u16, u16),
        (next, tag_out): (Address, u16),
        mut lost: impl FnMut(Lost),
    ) {
        let entry = Entry {
            from,
            tag_in,
            size,
            next,
            tag_out,
            last: now,
        };
        let same = |entry: &Entry| entry.from == from && entry.tag_in == tag_in;
        let age = |place: &Option<Entry>| match place {
            Some(entry) if same(entry) => (0, Instant::ZERO),
            None => (1, Instant::ZERO),
            Some(entry) => (2, entry.last),
        };
        let place = self.entries.iter_mut().min_by_key(|place| age(place));
        if let Some(place) = place
            && place.replace(entry).is_some()
        {
            lost(Lost::Evicted);
        }
    }

    /// The entry for a further fragment.
    pub fn find(&mut self, now: Instant, from: Address, tag: u16, size: u16) -> Option<Entry> {
        let entry = self
            .entries
            .iter_mut()
            .flatten()
            .find(|entry| (entry.from, entry.tag_in, entry.size) == (from, tag, size))?;
        entry.last = now;
        Some(*entry)
    }

    /// Forgets the datagram that goes on under this tag.
    pub fn forget(&mut self, tag_out: u16) {
        let is = |entry: &mut Entry| entry.tag_out == tag_out;
        for place in &mut self.entries {
            place.take_if(is);
        }
    }

    /// Forgets it and what of it waits. Says how many frames that were.
    pub fn abandon(&mut self, tag_out: u16) {
        self.forget(tag_out);
        let mut kept = 0;
        for number in 0..self.len {
            let Some(&frame) = self.frames.get((self.first + number) % N.max(1)) else {
                continue;
            };
            if frame.tag != Some(tag_out)
                && let Some(place) = self.frames.get_mut((self.first + kept) % N.max(1))
            {
                *place = frame;
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// The place for a new frame at the queue's end; [`push`](Self::push) it when it is written.
    pub fn vacant(&mut self) -> Option<&mut Queued> {
        if self.is_full() {
            return None;
        }
        self.frames.get_mut((self.first + self.len) % N.max(1))
    }

    pub fn push(&mut self) {
        self.len = (self.len + 1).min(N);
    }

    /// Copies out the first frame that `may` go, and closes the gap.
    pub fn take(&mut self, mut may: impl FnMut(Address) -> bool) -> Option<Queued> {
        let ring = N.max(1);
        let number = (0..self.len).find(|number| {
            let frame = self.frames.get((self.first + number) % ring);
            frame.is_some_and(|frame| may(frame.next))
        })?;
        let taken = *self.frames.get((self.first + number) % ring)?;
        // Those before it move up by one; usually there are none.
        for later in (0..number).rev() {
            let moved = *self.frames.get((self.first + later) % ring)?;
            *self.frames.get_mut((self.first + later + 1) % ring)? = moved;
        }
        self.first = (self.first + 1) % ring;
        self.len -= 1;
        Some(taken)
    }

    /// Whether a frame waits that `may` go.
    pub fn any(&self, mut may: impl FnMut(Address) -> bool) -> bool {
        (0..self.len).any(|number| {
            let frame = self.frames.get((self.first + number) % N.max(1));
            frame.is_some_and(|frame| may(frame.next))
        })
    }

    /// Forgets datagrams that have been silent for `idle`.
    pub fn expire(&mut self, now: Instant, idle: Duration, mut lost: impl FnMut(Lost)) {
        for place in &mut self.entries {
            let silent = |entry: &mut Entry| now.saturating_since(entry.last) >= idle;
            if place.take_if(silent).is_some() {
                lost(Lost::Expired);
            }
        }
    }

    /// When the next one is silent for `idle`.
    pub fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        self.entries
            .iter()
            .flatten()
            .map(|entry| entry.last + idle)
            .min()
    }
}
