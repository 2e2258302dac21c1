//! A signal at one receiver.

use crate::id::NodeId;
use crate::{AirTime, Power};

/// A signal at one receiver.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The node that the signal reaches.
    pub node: usize,
    /// When the first bit arrives.
    pub start: AirTime,
    /// The signal's power at this receiver.
    pub power: Power,
}

/// One receiver of a frame in flight. Sixteen octets, four to a cache line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    pub(crate) receiver: NodeId,
    /// Propagation delay in nanoseconds, in 32 bits: 4 s, or 1.2 million km.
    pub(crate) delay: u32,
    /// On the frame's channel.
    pub(crate) power: Power,
}

impl Arrival {
    /// What a recorder sees of it, for a signal that leaves its antenna at `begin`.
    #[inline]
    pub fn at(&self, begin: AirTime) -> At {
        At {
            node: self.receiver.index(),
            start: self.time(begin),
            power: self.power,
        }
    }

    /// When a bit that leaves the transmitter at `sent` is here.
    #[inline]
    pub(crate) fn time(&self, sent: AirTime) -> AirTime {
        AirTime(sent.0 + u64::from(self.delay))
    }
}

/// How many of a frame's arrivals, nearest first, a bit that leaves the transmitter at `sent` reaches until `last`. It is known
/// to reach the first `known`, and all in the end after `latest`.
#[inline]
pub(crate) fn timely(
    (arrivals, latest): (&[Arrival], u32),
    known: usize,
    sent: AirTime,
    last: AirTime,
) -> usize {
    // The last arrival itself may be far in memory.
    if sent.0 + u64::from(latest) <= last.0 {
        return arrivals.len();
    }
    // One after another: where other events come in between, they mostly come soon.
    let rest = arrivals.get(known..).unwrap_or_default().iter();
    known
        + rest
            .take_while(|arrival| arrival.time(sent) <= last)
            .count()
}
