//! Detection of duplicate packets.
//!
//! A link that loses an acknowledgement sends a packet again, perhaps to another neighbour. A packet may also return to a
//! node that has forwarded it. The first is a copy and is dropped, the second is a detour and is kept: a copy has the same
//! hop limit, a detour a smaller one.

use alloc::vec::Vec;

use chappe_core::Instant;

/// Recently forwarded packets. If two share a place the older one is forgotten: a copy may then pass, but no packet is
/// falsely taken for a copy.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    keys: Vec<Option<Key>>,
}

/// The shortest loop that is recognised, in hops. A packet that was here one hop before has not come back: an acknowledgement was lost
/// on the way to this node, and the packet was sent to a common neighbour, too. After two hops it comes from the node that it was sent to,
/// whom it gives away by itself.
const LOOP_MIN: u8 = 3;
/// The longest. Only lies and restarts make loops, and those are short: the one who lies attracts his neighbours.
const LOOP_MAX: u8 = 8;

/// The fields that identify a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub source: u16,
    pub flow: u16,
    pub number: u32,
    pub epoch: u8,
    pub hop_limit: u8,
}

impl Seen {
    pub fn new(places: u16) -> Seen {
        let mut keys = Vec::new();
        keys.resize(usize::from(places.max(1)), None);
        Seen { keys }
    }

    /// Records a packet. True if it was recorded before.
    pub fn enter(&mut self, key: Key) -> bool {
        let places = self.keys.len() as u64;
        let place = key.mixed().checked_rem(places).unwrap_or(0) as usize;
        let Some(slot) = self.keys.get_mut(place) else {
            return false;
        };
        slot.replace(key) == Some(key)
    }

    /// Whether the same packet was recorded one hop before.
    pub fn has_copy(&self, key: Key) -> bool {
        let places = self.keys.len() as u64;
        let before = Key {
            hop_limit: key.hop_limit.saturating_add(1),
            ..key
        };
        let place = before.mixed().checked_rem(places).unwrap_or(0) as usize;
        self.keys.get(place) == Some(&Some(before))
    }

    /// Whether the same packet was recorded [`LOOP_MIN`] to [`LOOP_MAX`] hops before: it has come back.
    pub fn has_returned(&self, key: Key) -> bool {
        let places = self.keys.len() as u64;
        (LOOP_MIN..=LOOP_MAX).any(|hops| {
            let before = Key {
                hop_limit: key.hop_limit.saturating_add(hops),
                ..key
            };
            let place = before.mixed().checked_rem(places).unwrap_or(0) as usize;
            self.keys.get(place) == Some(&Some(before))
        })
    }

    /// Removes a packet that was not accepted after all: if it comes again, it is new.
    pub fn forget(&mut self, key: Key) {
        let places = self.keys.len() as u64;
        let place = key.mixed().checked_rem(places).unwrap_or(0) as usize;
        if let Some(slot) = self.keys.get_mut(place)
            && *slot == Some(key)
        {
            *slot = None;
        }
    }
}

impl Key {
    fn mixed(&self) -> u64 {
        let long =
            u64::from(self.source) << 48 | u64::from(self.flow) << 32 | u64::from(self.number);
        let short = u64::from(self.epoch) << 8 | u64::from(self.hop_limit);
        // Fibonacci hashing (Knuth, vol. 3, 6.4): the high bits depend on all of the key.
        let mixed =
            (long ^ short.wrapping_mul(0xff51_afd7_ed55_8ccd)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed >> 24
    }
}

/// The packets of one flow whose destination is this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncomingFlow {
    pub source: u16,
    pub flow: u16,
    epoch: u8,
    /// The previous epoch, whose late packets are dropped.
    past: Option<u8>,
    /// Every number below this one was delivered or given up.
    pub next: u32,
    /// The highest number received.
    highest: u32,
    /// The numbers received, one bit each, the highest one in bit 0 of the first word.
    came: [u64; WORDS],
    used: Instant,
}

/// Words of the window: 1024 numbers. Older packets are dropped.
const WORDS: usize = 16;
const WINDOW: u32 = WORDS as u32 * 64;

/// How a packet relates to its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A packet that was not received before.
    New,
    /// A packet that was received before.
    Copy,
    /// A packet from before the window or from a past epoch.
    Old,
}

/// The flows whose destination is this node.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    flows: Vec<IncomingFlow>,
    most: usize,
}

impl Flows {
    pub fn new(most: u16) -> Flows {
        let most = usize::from(most);
        Flows {
            flows: Vec::with_capacity(most),
            most,
        }
    }

    /// Records a packet. In a full table a new flow replaces the least recently used one.
    pub fn enter(
        &mut self,
        now: Instant,
        (source, flow): (u16, u16),
        epoch: u8,
        number: u32,
    ) -> Arrival {
        if let Some(known) = self.find_mut(source, flow) {
            return known.enter(now, epoch, number);
        }
        let fresh = IncomingFlow::new(now, (source, flow), epoch, number);
        if self.flows.len() < self.most {
            self.flows.push(fresh);
        } else if let Some(oldest) = self.flows.iter_mut().min_by_key(|flow| flow.used) {
            *oldest = fresh;
        }
        Arrival::New
    }

    pub fn find_mut(&mut self, source: u16, flow: u16) -> Option<&mut IncomingFlow> {
        let is = |known: &&mut IncomingFlow| (known.source, known.flow) == (source, flow);
        self.flows.iter_mut().find(is)
    }
}

impl IncomingFlow {
    fn new(now: Instant, (source, flow): (u16, u16), epoch: u8, number: u32) -> IncomingFlow {
        let mut came = [0; WORDS];
        if let Some(first) = came.first_mut() {
            *first = 1;
        }
        IncomingFlow {
            source,
            flow,
            epoch,
            past: None,
            // A flow begins at 0. One whose first packets were missed begins at the present number.
            next: if number < WINDOW { 0 } else { number },
            highest: number,
            came,
            used: now,
        }
    }

    fn enter(&mut self, now: Instant, epoch: u8, number: u32) -> Arrival {
        if Some(epoch) == self.past {
            return Arrival::Old;
        }
        if epoch != self.epoch {
            let past = Some(self.epoch);
            *self = IncomingFlow::new(now, (self.source, self.flow), epoch, number);
            self.past = past;
            return Arrival::New;
        }
        self.used = now;
        let ahead = number.wrapping_sub(self.highest);
        if ahead != 0 && ahead < 1 << 31 {
            self.shift(ahead);
            self.highest = number;
        }
        let back = self.highest.wrapping_sub(number);
        let (word, bit) = (back as usize / 64, 1u64 << (back % 64));
        match self.came.get_mut(word) {
            None => Arrival::Old,
            Some(word) if *word & bit != 0 => Arrival::Copy,
            Some(word) => {
                *word |= bit;
                Arrival::New
            }
        }
    }

    /// Makes room for newer numbers.
    fn shift(&mut self, by: u32) {
        let (words, bits) = ((by / 64) as usize, by % 64);
        let old = self.came;
        for (at, word) in self.came.iter_mut().enumerate() {
            let from = |at: Option<usize>| at.and_then(|at| old.get(at)).copied().unwrap_or(0);
            let (low, high) = (from(at.checked_sub(words)), from(at.checked_sub(words + 1)));
            *word = low << bits | high.checked_shr(64 - bits).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use chappe_core::{Purpose, Seed};

    const KEY: Key = Key {
        source: 1,
        flow: 2,
        number: 3,
        epoch: 0,
        hop_limit: 9,
    };

    #[test]
    fn a_copy_is_not_a_detour_and_a_short_detour_no_loop() {
        let mut seen = Seen::new(64);
        assert!(!seen.enter(KEY));
        assert!(seen.enter(KEY));
        let later = |hops: u8| Key {
            hop_limit: KEY.hop_limit - hops,
            ..KEY
        };
        let returned = (0..=9).filter(|&hops| seen.has_returned(later(hops)));
        assert_eq!(returned.collect::<Vec<u8>>(), [3, 4, 5, 6, 7, 8]);
        let detour = later(2);
        assert!(!seen.enter(detour));
        seen.forget(detour);
        assert!(!seen.enter(detour));
    }

    #[test]
    fn keys_spread_over_the_places() {
        let mut seen = Seen::new(512);
        let kept = |seen: &Seen| seen.keys.iter().flatten().count();
        (0..256).for_each(|number| assert!(!seen.enter(Key { number, ..KEY })));
        // Thrown at random, 256 of 512 places would be taken by 512 (1 - e^-0.5) = 201.
        assert!(kept(&seen) >= 190, "{}", kept(&seen));
        let mut seen = Seen::new(512);
        (0..32).for_each(|hop_limit| assert!(!seen.enter(Key { hop_limit, ..KEY })));
        assert!(kept(&seen) >= 28, "{}", kept(&seen));
    }

    /// Goal: the window knows exactly the last 1024 numbers. Method: random numbers beside a set.
    #[test]
    fn a_flow_knows_what_has_come() {
        let mut random = Seed(1).stream(Purpose::Trial(2));
        let (mut flows, mut came) = (Flows::new(1), BTreeSet::new());
        let (mut base, mut highest) = (u32::MAX - 3000, 0u64);
        let offset = u64::from(base);
        for _ in 0..20_000 {
            base = base.wrapping_add(random.below(3) as u32);
            let number = base
                .wrapping_sub(random.below(1500) as u32)
                .wrapping_add(1400);
            let long = offset + u64::from(number.wrapping_sub(offset as u32));
            if number.wrapping_sub(offset as u32) > 1 << 31 {
                continue;
            }
            highest = highest.max(long);
            let want = match (highest - long >= 1024, !came.insert(long)) {
                (true, _) => Arrival::Old,
                (_, true) => Arrival::Copy,
                _ => Arrival::New,
            };
            assert_eq!(flows.enter(Instant::ZERO, (1, 1), 0, number), want);
        }
    }

    #[test]
    fn a_source_that_starts_over_is_new_and_a_silent_flow_makes_room() {
        let mut flows = Flows::new(2);
        let at = Instant::from_millis;
        assert_eq!(flows.enter(at(0), (1, 0), 0, 5), Arrival::New);
        assert_eq!(flows.enter(at(1), (1, 0), 1, 5), Arrival::New);
        assert_eq!(flows.enter(at(2), (1, 0), 1, 5), Arrival::Copy);
        assert_eq!(flows.enter(at(2), (1, 0), 0, 6), Arrival::Old);
        assert_eq!(flows.enter(at(3), (2, 0), 0, 0), Arrival::New);
        assert_eq!(flows.enter(at(4), (1, 0), 1, 6), Arrival::New);
        assert_eq!(flows.enter(at(5), (3, 0), 0, 0), Arrival::New);
        assert!(flows.find_mut(2, 0).is_none() && flows.find_mut(1, 0).is_some());
    }
}
