//! Fragment forwarding without reassembly (RFC 8930), and the relay queue.

use chappe_core::{Address, Duration, Instant};

use super::Lost;

/// The largest SDU of 802.15.4, and so of a queued frame.
pub(super) const SDU_MAX: usize = 118;

/// A datagram whose fragments are forwarded: previous hop and incoming tag, next hop and outgoing tag. An entry
/// of RFC 8930's virtual reassembly buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub from: Address,
    pub tag_in: u16,
    pub size: u16,
    pub next: Address,
    pub tag_out: u16,
    last: Instant,
}

/// A frame in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub next: Address,
    pub len: u8,
    /// The outgoing tag of its datagram, if it is a fragment.
    pub tag: Option<u16>,
    pub sdu: [u8; SDU_MAX],
}

#[derive(Clone, Debug)]
pub(super) struct Forwarding<const N: usize> {
    entries: [Option<Entry>; N],
    /// A ring: `len` frames from `first` on.
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

    /// Frames in the queue.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_full(&self) -> bool {
        self.len >= N
    }

    /// Adds a datagram. It replaces one with the same tag from the same neighbour (the tag was reused), or, if the table is
    /// full, the one that was idle for longest.
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

    /// Removes the datagram with this outgoing tag.
    pub fn forget(&mut self, tag_out: u16) {
        let is = |entry: &mut Entry| entry.tag_out == tag_out;
        for place in &mut self.entries {
            place.take_if(is);
        }
    }

    /// Removes the datagram with this outgoing tag, and its frames in the queue.
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

    /// The place for a new frame at the end of the queue; [`push`](Self::push) it once it is written.
    pub fn vacant(&mut self) -> Option<&mut Queued> {
        if self.is_full() {
            return None;
        }
        self.frames.get_mut((self.first + self.len) % N.max(1))
    }

    pub fn push(&mut self) {
        self.len = (self.len + 1).min(N);
    }

    /// Removes and returns the first frame whose next hop `may` be sent to.
    pub fn take(&mut self, mut may: impl FnMut(Address) -> bool) -> Option<Queued> {
        let ring = N.max(1);
        let number = (0..self.len).find(|number| {
            let frame = self.frames.get((self.first + number) % ring);
            frame.is_some_and(|frame| may(frame.next))
        })?;
        let taken = *self.frames.get((self.first + number) % ring)?;
        // Frames before it move back by one to close the gap; usually there are none.
        for later in (0..number).rev() {
            let moved = *self.frames.get((self.first + later) % ring)?;
            *self.frames.get_mut((self.first + later + 1) % ring)? = moved;
        }
        self.first = (self.first + 1) % ring;
        self.len -= 1;
        Some(taken)
    }

    /// Whether the queue holds a frame whose next hop `may` be sent to.
    pub fn any(&self, mut may: impl FnMut(Address) -> bool) -> bool {
        (0..self.len).any(|number| {
            let frame = self.frames.get((self.first + number) % N.max(1));
            frame.is_some_and(|frame| may(frame.next))
        })
    }

    /// Removes datagrams that were idle for `idle`.
    pub fn expire(&mut self, now: Instant, idle: Duration, mut lost: impl FnMut(Lost)) {
        for place in &mut self.entries {
            let silent = |entry: &mut Entry| now.saturating_since(entry.last) >= idle;
            if place.take_if(silent).is_some() {
                lost(Lost::Expired);
            }
        }
    }

    /// When the next datagram will have been idle for `idle`.
    pub fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        self.entries
            .iter()
            .flatten()
            .map(|entry| entry.last + idle)
            .min()
    }
}
