//! Unicast frames that await confirmation.
//!
//! UDP confirms nothing, and a packet socket does not report the card's acknowledgements. So the neighbour's driver
//! confirms every unicast frame, and the sender repeats it until it is confirmed or the attempts are spent. Without
//! that, `Outcome::Acknowledged` would claim more than is known.

use chappe_core::{Class, Classes, Duration, Instant};

/// Most unconfirmed unicast frames at a time.
const OUTSTANDING_MAX: usize = 32;

/// When a unicast frame is repeated, and when it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Transmissions of a frame, at least 1. Default 7, the 802.11 short retry limit (IEEE 802.11-2020,
    /// dot11ShortRetryLimit).
    pub attempts: u8,
    /// The wait for a confirmation after the first transmission. It doubles with each repeat, up to 8 times the first.
    /// Default 20 ms: some 25 frames of 1500 octets at 20 Mbit/s, queued in both directions together.
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

/// The unconfirmed unicast frames.
#[derive(Debug)]
pub struct Outstanding {
    retries: Retries,
    frames: Vec<Waiting>,
}

/// One unconfirmed unicast frame.
#[derive(Debug)]
pub struct Waiting {
    /// The frame's number, unique in this life.
    pub number: u32,
    /// The neighbour's node number.
    pub to: u16,
    /// The node's token, for the report of the outcome.
    pub token: u32,
    /// The class of the frame.
    pub class: Class,
    /// The SDU, in the clear: each attempt is sealed anew, under another nonce.
    pub sdu: Vec<u8>,
    /// Number of transmissions so far.
    pub attempts: u8,
    due: Instant,
}

impl Outstanding {
    /// No frame waits yet.
    pub fn new(retries: Retries) -> Outstanding {
        Outstanding {
            retries,
            frames: Vec::with_capacity(OUTSTANDING_MAX),
        }
    }

    /// The classes that the node may send. When no further frame can wait, these are the classes of which no frame
    /// waits, so that a neighbour that has left does not block the other classes.
    pub fn allowed(&self) -> Classes {
        if self.frames.len() < OUTSTANDING_MAX {
            return Classes::ALL;
        }
        let waits = |class| self.frames.iter().any(|frame| frame.class == class);
        let free = Class::BY_URGENCY.into_iter().filter(|&class| !waits(class));
        free.fold(Classes::NONE, Classes::with)
    }

    /// Notes the first transmission of a frame.
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

    /// `from` confirms frame `number`. Returns the frame's token and attempts, or `None` if no such frame waits.
    pub fn confirmed(&mut self, from: u16, number: u32) -> Option<(u32, u8)> {
        let is = |frame: &Waiting| frame.number == number && frame.to == from;
        let place = self.frames.iter().position(is)?;
        let frame = self.frames.swap_remove(place);
        Some((frame.token, frame.attempts))
    }

    /// Removes a frame whose last attempt went unconfirmed. Returns its token and attempts.
    pub fn next_expired(&mut self, now: Instant) -> Option<(u32, u8)> {
        let spent = self.retries.attempts;
        let is = |frame: &Waiting| frame.due <= now && frame.attempts >= spent;
        let place = self.frames.iter().position(is)?;
        let frame = self.frames.swap_remove(place);
        Some((frame.token, frame.attempts))
    }

    /// A frame that is due for a repeat. Its timer is set anew.
    pub fn next_retry(&mut self, now: Instant) -> Option<&Waiting> {
        let Retries { attempts, wait } = self.retries;
        let is = |frame: &&mut Waiting| frame.due <= now && frame.attempts < attempts;
        let frame = self.frames.iter_mut().find(is)?;
        let times = 1u64 << frame.attempts.min(3);
        frame.attempts += 1;
        frame.due = now + Duration::from_nanos(wait.nanos().saturating_mul(times));
        Some(frame)
    }

    /// When the earliest timer fires.
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
    fn waits_double_until_the_frame_is_given_up() {
        let wait = Duration::from_millis(10);
        let mut frames = Outstanding::new(Retries { attempts: 3, wait });
        frames.add(ms(0), 5, 1, (77, Class::Control), b"x");
        for (due, attempts) in [(10, 2), (30, 3)] {
            assert_eq!(frames.deadline(), Some(ms(due)));
            assert!(frames.next_retry(ms(due - 1)).is_none());
            assert_eq!(
                frames.next_retry(ms(due)).map(|frame| frame.attempts),
                Some(attempts)
            );
            assert!(frames.next_retry(ms(due)).is_none());
            assert_eq!(frames.next_expired(ms(due)), None);
        }
        assert!(frames.next_retry(ms(70)).is_none());
        assert_eq!(frames.next_expired(ms(69)), None);
        assert_eq!(frames.next_expired(ms(70)), Some((77, 3)));
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
    fn an_absent_neighbour_blocks_only_the_class_of_its_frames() {
        let mut frames = Outstanding::new(Retries::default());
        for number in 0..OUTSTANDING_MAX as u32 {
            assert_eq!(frames.allowed(), Classes::ALL);
            frames.add(ms(0), number, 1, (0, Class::Control), b"x");
        }
        assert!(!frames.allowed().contains(Class::Control));
        assert!(frames.allowed().contains(Class::Data));
    }
}
