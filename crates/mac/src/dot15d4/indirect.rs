//! Frames held for sleepy children until they ask.

use chappe_core::{Address, DropReason, Instant, LinkNode, Outcome, Wake};

use super::csma::{Job, What};
use super::{Active, Dot15d4};

/// The frames held, oldest first for each child.
#[derive(Debug)]
pub(super) struct Indirect<const N: usize, const CHILDREN: usize> {
    children: [Option<Address>; CHILDREN],
    held: [Held; N],
    /// Number of the next frame held: orders them by age.
    count: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    job: Job,
    number: u32,
    /// Data requests after which all attempts failed.
    polls: u8,
    /// The child asked, and listens until this instant.
    ready_until: Option<Instant>,
    expires: Instant,
}

impl<const N: usize, const CHILDREN: usize> Default for Indirect<N, CHILDREN> {
    fn default() -> Self {
        Indirect {
            children: [None; CHILDREN],
            held: [Held::default(); N],
            count: 0,
        }
    }
}

impl<const N: usize, const CHILDREN: usize> Indirect<N, CHILDREN> {
    pub fn add_child(&mut self, child: Address) -> bool {
        if self.is_child(child) {
            return true;
        }
        match self.children.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(child);
                true
            }
            None => false,
        }
    }

    pub fn is_child(&self, address: Address) -> bool {
        self.children.contains(&Some(address))
    }

    /// Keeps a copy of `job`. False if all places are taken.
    pub fn hold(&mut self, job: &Job, expires: Instant) -> bool {
        let Some(place) = self.held.iter_mut().find(|held| held.job.is_free()) else {
            return false;
        };
        *place = Held {
            job: *job,
            number: self.count,
            polls: 0,
            ready_until: None,
            expires,
        };
        self.count = self.count.wrapping_add(1);
        true
    }

    pub fn job(&self, place: usize) -> Option<&Job> {
        self.held.get(place).map(|held| &held.job)
    }

    pub fn job_mut(&mut self, place: usize) -> Option<&mut Job> {
        self.held.get_mut(place).map(|held| &mut held.job)
    }

    /// The oldest frame of a child.
    fn oldest(&mut self, child: Address) -> Option<&mut Held> {
        let of_child = |held: &&mut Held| !held.job.is_free() && held.job.to == child;
        // Numbers wrap: the age is the distance to the present count.
        let count = self.count;
        self.held
            .iter_mut()
            .filter(of_child)
            .max_by_key(|held| count.wrapping_sub(held.number))
    }

    /// A child asked, and listens until `until`. True if a frame is held for it.
    pub fn asked(&mut self, child: Address, until: Instant) -> bool {
        match self.oldest(child) {
            Some(held) => {
                held.ready_until = Some(until);
                true
            }
            None => false,
        }
    }

    /// Whether a frame is held for `child`.
    pub fn has(&self, child: Address) -> bool {
        self.held
            .iter()
            .any(|held| !held.job.is_free() && held.job.to == child)
    }

    /// Whether its child has another frame waiting behind the one at this place.
    pub fn has_another(&self, place: usize) -> bool {
        let Some(this) = self.job(place) else {
            return false;
        };
        let other = |(at, held): (usize, &Held)| {
            at != place && !held.job.is_free() && held.job.to == this.to
        };
        self.held.iter().enumerate().any(other)
    }

    /// The place of a frame whose child listens now.
    pub fn next_ready(&self, now: Instant) -> Option<usize> {
        self.held.iter().position(|held| {
            !held.job.is_free() && held.ready_until.is_some_and(|until| until > now)
        })
    }

    /// All attempts failed: the frame waits for the child's next request. False after `polls` requests.
    pub fn wait_for_poll(&mut self, place: usize, polls: u8) -> bool {
        let Some(held) = self.held.get_mut(place) else {
            return false;
        };
        held.polls = held.polls.saturating_add(1);
        held.ready_until = None;
        held.job.attempts = 0;
        held.polls < polls
    }

    pub fn done(&mut self, place: usize) {
        if let Some(held) = self.held.get_mut(place) {
            held.ready_until = None;
        }
    }

    pub fn next_expiry(&self) -> Option<Wake> {
        let held = self.held.iter().filter(|held| !held.job.is_free());
        let at = held.map(|held| held.expires).min()?;
        Some(Wake {
            at,
            why: "frame for a child expires",
        })
    }

    /// Removes a frame whose life has ended. The one at `busy` gets more time.
    fn expired(&mut self, now: Instant, busy: Option<usize>) -> Option<(usize, u32, u8)> {
        let late = |held: &Held| !held.job.is_free() && held.expires <= now;
        let place = self.held.iter().position(late)?;
        let held = self.held.get_mut(place)?;
        if busy == Some(place) {
            // Its attempts are in progress, and their outcome is known within a second.
            held.expires = now + chappe_core::Duration::from_secs(1);
            return None;
        }
        match held.job.what.take()? {
            What::Data { token } => Some((place, token, held.job.attempts)),
            What::Request => None,
        }
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
    /// Gives up frames that were held for too long.
    pub(super) fn expire<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        while Wake::due(self.indirect.next_expiry(), now) {
            let busy = match self.active {
                Some(Active::Indirect(place)) => Some(place),
                _ => None,
            };
            if let Some((place, token, attempts)) = self.indirect.expired(now, busy) {
                self.indirect.done(place);
                self.counters.expired += 1;
                self.counters.drops.count(DropReason::Stale);
                self.report(now, token, Outcome::Failed { attempts }, link);
            }
        }
    }
}
