//! Numbered datagrams, with which a sink detects corruption, duplicates and reordering.

/// A source's next number, or what a sink has received.
#[derive(Clone, Debug, Default)]
pub struct Serial {
    next: u64,
    /// Whether each number was received.
    seen: Vec<bool>,
    last: Option<u64>,
    /// Datagrams that differ from the one sent.
    pub wrong: u64,
    /// Datagrams received more than once.
    pub doubled: u64,
    /// Datagrams received after one with a higher number.
    pub disordered: u64,
}

/// The octet after the number.
fn pattern(number: u64) -> u8 {
    (number as u8).wrapping_mul(31).wrapping_add(7)
}

/// Numbers from here on are corrupt: no run has this many datagrams. It bounds the memory of [`Serial::seen`].
const NUMBER_MAX: u64 = 1 << 32;

impl Serial {
    /// Writes the next number and its pattern into a datagram.
    pub fn stamp(&mut self, datagram: &mut [u8]) {
        if let Some((number, rest)) = datagram.split_first_chunk_mut() {
            *number = self.next.to_be_bytes();
            rest.fill(pattern(self.next));
            self.next += 1;
        }
    }

    /// Checks a received datagram, which should have `len` octets.
    pub fn check(&mut self, datagram: &[u8], len: usize) {
        let split = datagram.split_first_chunk();
        let split = split.map(|(number, rest)| (u64::from_be_bytes(*number), rest));
        let sound = |(number, rest): &(u64, &[u8])| {
            let expected = pattern(*number);
            *number < NUMBER_MAX && rest.iter().all(|octet| *octet == expected)
        };
        let Some((number, _)) = split.filter(|split| datagram.len() == len && sound(split)) else {
            self.wrong += 1;
            return;
        };
        let place = number as usize;
        if place >= self.seen.len() {
            self.seen.resize(place + 1, false);
        }
        self.doubled += u64::from(self.seen[place]);
        let late = self.last.is_some_and(|last| number < last);
        self.disordered += u64::from(late && !self.seen[place]);
        self.seen[place] = true;
        self.last = self.last.max(Some(number));
    }

    /// The number of datagrams sent.
    #[cfg(test)]
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// The number of different datagrams received.
    #[cfg(test)]
    pub fn received(&self) -> u64 {
        self.seen.iter().filter(|seen| **seen).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrupt_duplicate_and_late_datagrams_are_counted() {
        let (mut source, mut sink) = (Serial::default(), Serial::default());
        let mut all: Vec<[u8; 20]> = Vec::new();
        for _ in 0..5 {
            let mut datagram = [0; 20];
            source.stamp(&mut datagram);
            all.push(datagram);
        }
        for number in [0, 2, 1, 1, 3] {
            sink.check(&all[number], 20);
        }
        let mut spoilt = all[4];
        spoilt[13] ^= 1;
        sink.check(&spoilt, 20);
        sink.check(&all[4][..19], 20);
        let counts = (sink.wrong, sink.doubled, sink.disordered);
        assert_eq!((counts, sink.received(), source.sent()), ((2, 1, 1), 4, 5));
    }
}
