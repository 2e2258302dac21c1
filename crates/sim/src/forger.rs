//! Forged frames of a fault: what an attacker says whom a single radio hears.

use std::collections::VecDeque;

use chappe_core::{Mode, Purpose, Rate, Seed, Stream};

use crate::Forgery;

/// The attacker remembers this many frames that nodes received.
const REMEMBERED: usize = 8;
/// Most bits that are wrong in a bent frame.
const BENT_MAX: u64 = 8;

/// Makes forged frames, each by its fault's number: one forgery does not change another.
#[derive(Debug)]
pub(crate) struct Forger {
    stream: Stream,
    /// Rate and preamble of frames that copy no other.
    usual: Mode,
    frame_max: usize,
    heard: VecDeque<(Vec<u8>, Mode)>,
    forged: Vec<u8>,
}

impl Forger {
    /// An attacker of a run with frames of at most `frame_max` octets, on 802.15.4 or on 802.11.
    pub(crate) fn new(seed: Seed, is_dot15d4: bool, frame_max: usize) -> Forger {
        let rate = if is_dot15d4 {
            Rate::Oqpsk250
        } else {
            Rate::Dsss2
        };
        Forger {
            stream: seed.stream(Purpose::Fault),
            usual: Mode::long(rate),
            frame_max,
            heard: VecDeque::with_capacity(REMEMBERED),
            forged: Vec::new(),
        }
    }

    /// A node received a frame: the attacker did too.
    pub(crate) fn overhear(&mut self, psdu: &[u8], mode: Mode) {
        // The oldest one's memory is used again.
        let oldest = (self.heard.len() == REMEMBERED).then(|| self.heard.pop_front());
        let (mut copy, _) = oldest.flatten().unwrap_or((Vec::new(), mode));
        copy.clear();
        copy.extend_from_slice(psdu);
        self.heard.push_back((copy, mode));
    }

    /// The frame of fault `number`. Before any frame was heard it is a random one.
    pub(crate) fn forge(&mut self, number: usize, forgery: Forgery) -> (&[u8], Mode) {
        let mut random = Seed(self.stream.at(number as u64)).stream(Purpose::Fault);
        let place = random.below(self.heard.len() as u64) as usize;
        let copied = self.heard.get(place).filter(|_| forgery != Forgery::Random);
        self.forged.clear();
        let Some((psdu, mode)) = copied else {
            let len = 1 + random.below(self.frame_max as u64) as usize;
            self.forged.resize(len, 0);
            random.fill(&mut self.forged);
            return (&self.forged, self.usual);
        };
        self.forged.extend_from_slice(psdu);
        if forgery == Forgery::Bent && !self.forged.is_empty() {
            for _ in 0..=random.below(BENT_MAX) {
                let bit = random.below(self.forged.len() as u64 * 8) as usize;
                self.forged[bit / 8] ^= 1 << (bit % 8);
            }
        }
        (&self.forged, *mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: Mode = Mode::long(Rate::Cck11);

    fn forger() -> Forger {
        Forger::new(Seed(3), false, 100)
    }

    #[test]
    fn frames_are_random_until_one_was_heard() {
        let mut forger = forger();
        let (first, mode) = forger.forge(0, Forgery::Replay);
        let first = first.to_vec();
        assert!((1..=100).contains(&first.len()) && mode != MODE);
        assert_eq!(forger.forge(0, Forgery::Random).0, first);
        assert_ne!(forger.forge(1, Forgery::Random).0, first);
    }

    #[test]
    fn replayed_frames_are_whole_and_bent_ones_are_not() {
        let mut forger = forger();
        for octet in 0..20 {
            forger.overhear(&[octet; 30], MODE);
        }
        for number in 0..50 {
            let (replayed, mode) = forger.forge(number, Forgery::Replay);
            assert_eq!((replayed, mode), (&[replayed[0]; 30][..], MODE));
            assert!((12..20).contains(&replayed[0]), "only the last ones");
            let whole = [replayed[0]; 30];
            let (bent, _) = forger.forge(number, Forgery::Bent);
            let wrong = |(a, b): (&u8, &u8)| (a ^ b).count_ones();
            // Two of its bits may be the same one, which is then right again.
            let wrong: u32 = bent.iter().zip(&whole).map(wrong).sum();
            assert!(wrong <= 8 && bent.len() == 30);
        }
    }
}
