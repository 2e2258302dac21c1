//! A sleepy leaf: when it asks its parent, and how long it listens.
//!
//! The interval between data requests depends on what the layers above expect: long while they expect nothing, short
//! while an answer is due (TCPlp 8.1.1, "Adaptive Duty Cycle").

use chappe_core::{Address, Duration, Expect, Instant, LinkNode, Wake};

use super::{Dot15d4, Sleep};

/// Data requests in a row that were granted and brought no frame, after each of which the leaf asks again soon, whatever it expects:
/// OpenThread's `kQuickPollsAfterTimeout`. (OpenThread asks at once; [`Sleep::short`] later the parent has finished its attempts.)
const BROKEN_MAX: u8 = 5;
/// Data requests in a row without an acknowledgement that are repeated after [`REPEAT`] at the latest: OpenThread's
/// `OPENTHREAD_CONFIG_FAILED_CHILD_TRANSMISSIONS`.
const LOST_MAX: u8 = 4;
/// How long a leaf waits before it repeats a lost request: OpenThread's `OPENTHREAD_CONFIG_MAC_RETX_POLL_PERIOD`.
const REPEAT: Duration = Duration::from_secs(1);

/// How a data request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The parent holds a frame, and the leaf must listen for it.
    Granted,
    /// The parent holds none.
    Empty,
    /// The parent did not acknowledge it.
    Lost,
}

#[derive(Clone, Debug)]
pub(super) struct Leaf {
    sleep: Sleep,
    expect: Expect,
    /// The present interval while something is expected.
    interval: Duration,
    /// When the next data request is due.
    poll_at: Instant,
    /// A request was granted; the leaf listens for the frame until this instant.
    listens_until: Option<Instant>,
    /// A request is being sent.
    asking: bool,
    /// Requests in a row that were granted in vain, and that were not acknowledged.
    broken: u8,
    lost: u8,
}

impl Leaf {
    pub fn new(sleep: Sleep) -> Leaf {
        Leaf {
            sleep,
            expect: Expect::Nothing,
            interval: sleep.short,
            poll_at: Instant::ZERO + sleep.base,
            listens_until: None,
            asking: false,
            broken: 0,
            lost: 0,
        }
    }

    pub fn is_awaiting(&self) -> bool {
        self.listens_until.is_some()
    }

    pub fn next(&self) -> Option<Wake> {
        let poll = (!self.asking && self.listens_until.is_none()).then_some(Wake {
            at: self.poll_at,
            why: "data request due",
        });
        let listen = self.listens_until.map(|at| Wake {
            at,
            why: "no answer to the data request",
        });
        Wake::earlier(poll, listen)
    }

    /// Updates what the layers above expect.
    pub fn expect(&mut self, now: Instant, expect: Expect) {
        if expect == self.expect {
            return;
        }
        let idle = self.expect == Expect::Nothing;
        self.expect = expect;
        match expect {
            Expect::Nothing => self.schedule(now),
            _ if idle => {
                self.interval = self.sleep.short;
                self.schedule(now);
            }
            _ => {}
        }
    }

    fn schedule(&mut self, now: Instant) {
        self.poll_at = now
            + match self.expect {
                Expect::Nothing => self.sleep.base,
                _ => self.interval,
            };
    }

    /// A request is finished. Once it is granted the leaf listens for `wait`.
    pub fn asked(&mut self, now: Instant, asked: Asked, wait: Duration) {
        self.asking = false;
        match asked {
            Asked::Granted => {
                self.lost = 0;
                self.listens_until = Some(now + wait);
                return;
            }
            Asked::Empty => (self.lost, self.broken) = (0, 0),
            Asked::Lost => self.lost = self.lost.saturating_add(1),
        }
        self.in_vain();
        self.schedule(now);
        if asked == Asked::Lost && self.lost <= LOST_MAX {
            self.poll_at = self.poll_at.min(now + REPEAT);
        }
    }

    /// A request was granted, and no frame came. The parent still holds it, so the interval does not grow.
    fn broken(&mut self, now: Instant) {
        self.listens_until = None;
        self.broken = self.broken.saturating_add(1);
        if self.broken <= BROKEN_MAX {
            self.interval = self.sleep.short;
            self.poll_at = now + self.sleep.short;
        } else {
            self.in_vain();
            self.schedule(now);
        }
    }

    /// An own frame was acknowledged. Its answer is more recent than the requests in vain, so an interval that has grown
    /// is reset.
    pub fn sent(&mut self, now: Instant) {
        if self.sleep.growth > 1 && self.expect != Expect::Nothing {
            self.interval = self.sleep.short;
            self.schedule(now);
        }
    }

    fn in_vain(&mut self) {
        let growth = u64::from(self.sleep.growth.max(1));
        self.interval = (self.interval * growth).min(self.sleep.base);
    }

    /// A frame from the parent was received. With `more` it announces another one: the leaf listens for `wait`, or asks
    /// at once if `wait` is `None`.
    pub fn received(&mut self, now: Instant, more: bool, wait: Option<Duration>) {
        self.interval = self.sleep.short;
        (self.lost, self.broken) = (0, 0);
        self.listens_until = match (self.listens_until, wait.filter(|_| more)) {
            (Some(_), Some(wait)) => Some(now + wait),
            _ => None,
        };
        match more {
            true => self.poll_at = now,
            false => self.schedule(now),
        }
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
    /// Handles the leaf's deadlines.
    pub(super) fn leaf_timeout<L: LinkNode>(&mut self, now: Instant, _: &mut L) {
        let Some(leaf) = &mut self.leaf else { return };
        if leaf.listens_until.is_some_and(|until| until <= now) {
            leaf.broken(now);
            self.counters.requests_in_vain += 1;
        }
        let due = !leaf.asking && leaf.listens_until.is_none() && leaf.poll_at <= now;
        if due {
            leaf.asking = true;
            let parent: Address = leaf.sleep.parent;
            self.ask(now, parent);
        }
    }

    /// Sends a data request as soon as possible, whatever is expected. For applications that know of a waiting frame.
    pub fn ask_now(&mut self, now: Instant) {
        if let Some(leaf) = &mut self.leaf {
            leaf.poll_at = leaf.poll_at.min(now);
        }
    }
}
