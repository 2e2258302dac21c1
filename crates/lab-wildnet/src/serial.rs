//! Numbers in datagrams, so that a sink sees what is wrong, doubled or late.

/// A source's next number, or what a sink has seen.
#[derive(Clone, Debug, Default)]
pub struct Serial {
    next: u64,
    /// By number: whether it came.
    seen: Vec<bool>,
    last: Option<u64>,
    /// Datagrams that differ from what was sent.
    pub wrong: u64,
    /// Datagrams that had come before.
    pub doubled: u64,
    /// Datagrams that came after one with a higher number.
    pub disordered: u64,
}

/// The octet after the number.
fn pattern(number: u64) -> u8 {
    (number as u8).wrapping_mul(31).wrapping_add(7)
}

/// A number that nobody sends: more datagrams than a run of any length has.
const ABSURD: u64 = 1 << 32;

impl Serial {
    /// Writes the next number and what belongs to it into a datagram.
    pub fn stamp(&mut self, datagram: &mut [u8]) {
        if let Some((number, rest)) = datagram.split_first_chunk_mut() {
            *number = self.next.to_be_bytes();
            rest.fill(pattern(self.next));
            self.next += 1;
        }
    }

    /// Looks at a datagram that should have `len` octets.
    pub fn check(&mut self, datagram: &[u8], len: usize) {
        let split = datagram.split_first_chunk();
        let split = split.map(|(number, rest)| (u64::from_be_bytes(*number), rest));
        let sound = |(number, rest): &(u64, &[u8])| {
            let expected = pattern(*number);
            *number < ABSURD && rest.iter().all(|octet| *octet == expected)
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

    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// How many different ones came.
    pub fn came(&self) -> u64 {
        self.seen.iter().filter(|seen| **seen).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_tells_wrong_from_doubled_from_late() {
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
        assert_eq!((counts, sink.came(), source.sent()), ((2, 1, 1), 4, 5));
    }
}
