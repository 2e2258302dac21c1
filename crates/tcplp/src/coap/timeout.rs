//! Retransmission timeouts of confirmable messages.

use chappe_core::{Duration, Instant, Stream};

/// Chooses the retransmission timeouts of successive exchanges.
pub trait Timeout {
    /// The timeout of a message's first transmission.
    fn first(&mut self, now: Instant, random: &mut Stream) -> Duration;

    /// The timeout after a retransmission, from the previous and the first timeout of the message.
    fn next(&mut self, before: Duration, first: Duration) -> Duration;

    /// A message was acknowledged `rtt` after its first transmission, after `retransmissions` of them.
    fn confirmed(&mut self, now: Instant, rtt: Duration, retransmissions: u8);
}

/// RFC 7252, 4.2 and 4.8: a random time of 2 to 3 s, doubled at each retransmission, whatever the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard;

/// ACK_TIMEOUT; ACK_RANDOM_FACTOR is 1.5.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);

/// `base` to one and a half times `base`.
pub(super) fn dithered(base: Duration, random: &mut Stream) -> Duration {
    let spread = base.nanos() / 2;
    base + Duration::from_nanos(random.below(spread.saturating_add(1)))
}

impl Timeout for Standard {
    fn first(&mut self, _: Instant, random: &mut Stream) -> Duration {
        dithered(ACK_TIMEOUT, random)
    }

    fn next(&mut self, before: Duration, _: Duration) -> Duration {
        before * 2
    }

    fn confirmed(&mut self, _: Instant, _: Duration, _: u8) {}
}
