//! Unicast frames that wait for their confirmation.
//!
//! UDP confirms nothing, and a packet socket does not say what the card heard. So every unicast frame is confirmed
//! by the neighbour's own driver, and sent again until it is or the attempts are spent: only then is
//! `Outcome::Acknowledged` the truth.

use chappe_core::{Class, Classes, Duration, Instant};

/// Most unicast frames on their way at a time.
const OUTSTANDING_MAX: usize = 32;

/// When to send again, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Transmissions of a frame, at least 1. Default 7, the 802.11 short retry limit (IEEE 802.11-2020,
    /// dot11ShortRetryLimit).
    pub attempts: u8,
    /// The wait for a confirmation after the first transmission; twice as long after each further one, up to 8
    /// times. Default 20 ms, some 25 frames of 1500 octets at 20 Mbit/s queued on the way there and back.
    pub wait: Duration,
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            attempts: 7,
            wait: Duration::from_millis(20),
        }
    }
}

/// The unicast frames on their way.
#[derive(Debug)]
pub struct Outstanding {
    retries: Retries,
    frames: Vec<Waiting>,
}

/// One of them.
#[derive(Debug)]
pub struct Waiting {
    /// Its number.
    pub number: u32,
    /// For whom.
    pub to: u16,
    /// The node's token.
    pub token: u32,
    /// How urgent.
    pub class: Class,
    /// Its SDU, sealed anew for each attempt.
    pub sdu: Vec<u8>,
    /// Transmissions so far.
    pub attempts: u8,
    due: Instant,
}

impl Outstanding {
    /// None yet.
    pub fn new(retries: Retries) -> Outstanding {
        Outstanding {
            retries,
            frames: Vec::with_capacity(OUTSTANDING_MAX),
        }
    }

    /// The classes that may be asked for: all, but when no further frame can wait, none of those that wait, so
    /// that a neighbour who has left holds up nobody's data.
    pub fn allowed(&self) -> Classes {
        if self.frames.len() < OUTSTANDING_MAX {
            return Classes::ALL;
        }
        let waits = |class| self.frames.iter().any(|frame| frame.class == class);
        let free = Class::BY_URGENCY.into_iter().filter(|&class| !waits(class));
        free.fold(Classes::NONE, Classes::with)
    }

    /// A frame goes out for the first time.
    pub fn add(
        &mut self,
        now: Instant,
        number: u32,
        to: u16,
        (token, class): (u32, Class),
        sdu: &[u8],
    ) {
        let (attempts, due) = (1, now + self.retries.wait);
        let sdu = sdu.to_vec();
        self.frames.push(Waiting {
            number,
            to,
            token,
            class,
            sdu,
            attempts,
            due,
        });
    }

    /// `from` confirms frame `number`: its token and how many attempts it took, or `None` if nothing waits for it.
    pub fn confirmed(&mut self, from: u16, number: u32) -> Option<(u32, u8)> {
        let is = |frame: &Waiting| frame.number == number && frame.to == from;
        let place = self.frames.iter().position(is)?;
        let frame = self.frames.swap_remove(place);
        Some((frame.token, frame.attempts))
    }

    /// A frame whose time and attempts are spent: its token and the attempts.
    pub fn given_up(&mut self, now: Instant) -> Option<(u32, u8)> {
        let spent = self.retries.attempts;
        let is = |frame: &Waiting| frame.due <= now && frame.attempts >= spent;
        let place = self.frames.iter().position(is)?;
        let frame = self.frames.swap_remove(place);
        Some((frame.token, frame.attempts))
    }

    /// A frame that must be sent again now; its next time is set.
    pub fn again(&mut self, now: Instant) -> Option<&Waiting> {
        let Retries { attempts, wait } = self.retries;
        let is = |frame: &&mut Waiting| frame.due <= now && frame.attempts < attempts;
        let frame = self.frames.iter_mut().find(is)?;
        let times = 1u64 << frame.attempts.min(3);
        frame.attempts += 1;
        frame.due = now + Duration::from_nanos(wait.nanos().saturating_mul(times));
        Some(frame)
    }

    /// When the next one is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.frames.iter().map(|frame| frame.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// 10 ms, then 20, 40: three attempts, and given up at 70.
    #[test]
    fn waits_double_until_it_is_given_up() {
        let wait = Duration::from_millis(10);
        let mut frames = Outstanding::new(Retries { attempts: 3, wait });
        frames.add(ms(0), 5, 1, (77, Class::Control), b"x");
        for (due, attempts) in [(10, 2), (30, 3)] {
            assert_eq!(frames.deadline(), Some(ms(due)));
            assert!(frames.again(ms(due - 1)).is_none());
            assert_eq!(
                frames.again(ms(due)).map(|frame| frame.attempts),
                Some(attempts)
            );
            assert!(frames.again(ms(due)).is_none());
            assert_eq!(frames.given_up(ms(due)), None);
        }
        assert!(frames.again(ms(70)).is_none());
        assert_eq!(frames.given_up(ms(69)), None);
        assert_eq!(frames.given_up(ms(70)), Some((77, 3)));
        assert_eq!(frames.deadline(), None);
    }

    #[test]
    fn only_the_addressee_confirms() {
        let mut frames = Outstanding::new(Retries::default());
        frames.add(ms(0), 5, 1, (77, Class::Control), b"x");
        assert_eq!(frames.confirmed(2, 5), None);
        assert_eq!(frames.confirmed(1, 4), None);
        assert_eq!(frames.confirmed(1, 5), Some((77, 1)));
        assert_eq!(frames.confirmed(1, 5), None);
    }

    #[test]
    fn a_neighbour_who_has_left_holds_up_its_class_only() {
        let mut frames = Outstanding::new(Retries::default());
        for number in 0..OUTSTANDING_MAX as u32 {
            assert_eq!(frames.allowed(), Classes::ALL);
            frames.add(ms(0), number, 1, (0, Class::Control), b"x");
        }
        assert!(!frames.allowed().contains(Class::Control));
        assert!(frames.allowed().contains(Class::Data));
    }
}
