//! The packets of a node: one block of memory, allocated once, with linked lists through it.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::Instant;

/// The end of a list.
const NONE: u16 = u16::MAX;

/// A packet that a node holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub source: u16,
    pub destination: u16,
    pub flow: u16,
    pub number: u32,
    pub epoch: u8,
    /// The number of times it may still be forwarded.
    pub hop_limit: u8,
    /// It goes before packets that are not marked so.
    pub first: bool,
    /// The number of times the link gave it up here.
    pub failures: u8,
    /// Length of the payload in octets.
    pub len: u16,
    /// When it arrived here.
    pub came: Instant,
    /// Its number among the packets of this node: the order of arrival.
    pub order: u64,
}

/// The memory for all packets of a node.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    slots: Vec<Slot>,
    octets: Vec<u8>,
    payload: usize,
    free: List,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    packet: Packet,
    before: u16,
    after: u16,
}

/// A doubly linked list of packets in a [`Store`]. A place belongs to at most one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    first: u16,
    last: u16,
    len: u16,
}

impl Default for List {
    fn default() -> List {
        List {
            first: NONE,
            last: NONE,
            len: 0,
        }
    }
}

impl List {
    pub fn len(&self) -> u16 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place that [`Store::pop_first`] returns next.
    pub fn first(&self) -> Option<u16> {
        (self.len > 0).then_some(self.first)
    }

    pub fn last(&self) -> Option<u16> {
        (self.len > 0).then_some(self.last)
    }
}

impl Store {
    pub fn new(packets: u16, payload: u16) -> Store {
        let count = usize::from(packets);
        let blank = Slot {
            packet: Packet::default(),
            before: NONE,
            after: NONE,
        };
        let mut store = Store {
            slots: vec![blank; count],
            octets: vec![0; count * usize::from(payload)],
            payload: usize::from(payload),
            free: List::default(),
        };
        let mut free = List::default();
        (0..packets).for_each(|place| store.push_last(&mut free, place));
        store.free = free;
        store
    }

    /// The number of free places.
    pub fn room(&self) -> u16 {
        self.free.len
    }

    /// Stores a packet. Its place belongs to no list yet. `None` if there is no room.
    pub fn keep(&mut self, packet: Packet, payload: &[u8]) -> Option<u16> {
        if payload.len() > self.payload {
            return None;
        }
        let mut free = self.free;
        let place = self.pop_first(&mut free)?;
        self.free = free;
        let start = usize::from(place) * self.payload;
        let octets = self.octets.get_mut(start..start + payload.len())?;
        octets.copy_from_slice(payload);
        let len = payload.len() as u16;
        *self.packet_mut(place)? = Packet { len, ..packet };
        Some(place)
    }

    /// Frees a place that belongs to no list.
    pub fn release(&mut self, place: u16) {
        let mut free = self.free;
        self.push_first(&mut free, place);
        self.free = free;
    }

    pub fn packet(&self, place: u16) -> Option<&Packet> {
        self.slots.get(usize::from(place)).map(|slot| &slot.packet)
    }

    pub fn packet_mut(&mut self, place: u16) -> Option<&mut Packet> {
        let slot = self.slots.get_mut(usize::from(place))?;
        Some(&mut slot.packet)
    }

    pub fn payload(&self, place: u16) -> &[u8] {
        let len = self
            .packet(place)
            .map_or(0, |packet| usize::from(packet.len));
        let start = usize::from(place) * self.payload;
        self.octets.get(start..start + len).unwrap_or_default()
    }

    pub fn push_last(&mut self, list: &mut List, place: u16) {
        self.link(place, list.last, NONE);
        match list.last {
            NONE => list.first = place,
            last => self.set_after(last, place),
        }
        list.last = place;
        list.len += 1;
    }

    pub fn push_first(&mut self, list: &mut List, place: u16) {
        self.link(place, NONE, list.first);
        match list.first {
            NONE => list.last = place,
            first => self.set_before(first, place),
        }
        list.first = place;
        list.len += 1;
    }

    /// Inserts a packet behind those at the head of the list that go first, too.
    pub fn push_ahead(&mut self, list: &mut List, place: u16) {
        let later = |other: &u16| self.packet(*other).is_some_and(|packet| !packet.first);
        let Some(next) = self.places(list).find(later) else {
            return self.push_last(list, place);
        };
        let before = match self.slots.get(usize::from(next)) {
            Some(slot) if slot.before != NONE => slot.before,
            _ => return self.push_first(list, place),
        };
        self.link(place, before, next);
        self.set_after(before, place);
        self.set_before(next, place);
        list.len += 1;
    }

    pub fn pop_first(&mut self, list: &mut List) -> Option<u16> {
        let place = list.first()?;
        self.remove(list, place);
        Some(place)
    }

    pub fn pop_last(&mut self, list: &mut List) -> Option<u16> {
        let place = list.last()?;
        self.remove(list, place);
        Some(place)
    }

    /// Removes a place from the list that it belongs to.
    pub fn remove(&mut self, list: &mut List, place: u16) {
        let Some(&Slot { before, after, .. }) = self.slots.get(usize::from(place)) else {
            return;
        };
        match before {
            NONE => list.first = after,
            before => self.set_after(before, after),
        }
        match after {
            NONE => list.last = before,
            after => self.set_before(after, before),
        }
        list.len = list.len.saturating_sub(1);
        self.link(place, NONE, NONE);
    }

    /// The places of a list, first to last.
    pub fn places(&self, list: &List) -> impl Iterator<Item = u16> + '_ {
        let after = |place: &u16| {
            let slot = self.slots.get(usize::from(*place))?;
            (slot.after != NONE).then_some(slot.after)
        };
        core::iter::successors(list.first(), after)
    }

    fn link(&mut self, place: u16, before: u16, after: u16) {
        if let Some(slot) = self.slots.get_mut(usize::from(place)) {
            (slot.before, slot.after) = (before, after);
        }
    }

    fn set_after(&mut self, place: u16, after: u16) {
        if let Some(slot) = self.slots.get_mut(usize::from(place)) {
            slot.after = after;
        }
    }

    fn set_before(&mut self, place: u16, before: u16) {
        if let Some(slot) = self.slots.get_mut(usize::from(place)) {
            slot.before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use chappe_core::{Purpose, Seed};

    /// Goal: lists never lose or mix places. Method: random operations beside plain queues.
    #[test]
    fn lists_behave_as_plain_queues() {
        let mut random = Seed(1).stream(Purpose::Trial(1));
        let mut store = Store::new(20, 4);
        let mut lists = [List::default(); 3];
        let mut plain: Vec<VecDeque<u32>> = vec![VecDeque::new(); 3];
        for number in 0..20_000u32 {
            let which = random.below(3) as usize;
            let (list, queue) = (&mut lists[which], &mut plain[which]);
            match random.below(5) {
                0 | 1 => {
                    let packet = Packet {
                        number,
                        ..Packet::default()
                    };
                    let Some(place) = store.keep(packet, &number.to_be_bytes()) else {
                        assert_eq!(plain.iter().map(VecDeque::len).sum::<usize>(), 20);
                        continue;
                    };
                    if number.is_multiple_of(2) {
                        store.push_last(list, place);
                        queue.push_back(number);
                    } else {
                        store.push_first(list, place);
                        queue.push_front(number);
                    }
                }
                2 => assert_eq!(
                    release(&mut store, list, Store::pop_first),
                    queue.pop_front()
                ),
                3 => assert_eq!(release(&mut store, list, Store::pop_last), queue.pop_back()),
                _ if !queue.is_empty() => {
                    let at = random.below(queue.len() as u64) as usize;
                    let place = store.places(list).nth(at).unwrap();
                    store.remove(list, place);
                    store.release(place);
                    queue.remove(at);
                }
                _ => {}
            }
            let numbers = store
                .places(&lists[which])
                .map(|p| store.packet(p).unwrap().number);
            assert!(numbers.eq(plain[which].iter().copied()));
        }
    }

    fn release(
        store: &mut Store,
        list: &mut List,
        pop: fn(&mut Store, &mut List) -> Option<u16>,
    ) -> Option<u32> {
        let place = pop(store, list)?;
        let number = store.packet(place).unwrap().number;
        assert_eq!(store.payload(place), number.to_be_bytes());
        store.release(place);
        Some(number)
    }

    #[test]
    fn packets_that_do_not_fit_are_refused() {
        let mut store = Store::new(1, 4);
        assert_eq!(store.keep(Packet::default(), &[0; 5]), None);
        assert!(store.keep(Packet::default(), &[0; 4]).is_some());
        assert_eq!(
            (store.keep(Packet::default(), &[]), store.room()),
            (None, 0)
        );
    }
}
