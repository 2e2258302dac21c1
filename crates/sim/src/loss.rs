//! Why a frame was not received: every loss has one reason.

use std::fmt;

/// Why a receiver that was in reach of a frame did not get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Too weak for its preamble to be found, or to be decoded, even without other signals.
    TooWeak,
    /// Its preamble was found, and noise alone destroyed it.
    Noise,
    /// Interference destroyed it, or hid its preamble.
    Collision,
    /// The receiver was locked on to another frame when it began, which may be an identical one that this one adds to.
    PreambleMissed,
    /// The receiver left it for a stronger frame.
    Captured,
    /// The receiver was transmitting, turned around from transmitting, or began to transmit.
    Transmitting,
    /// The receiver was switched off to save energy.
    Asleep,
    /// The receiver had crashed.
    Down,
    /// A fault cut the link.
    LinkCut,
    /// A fault corrupted it, and its check sequence detected that.
    Corrupted,
    /// The receiver was on another channel, or left the channel.
    OtherChannel,
    /// The transmitter crashed before it had sent all of it.
    Truncated,
    /// The receiver aborted it while it arrived.
    Aborted,
    /// The link's own loss process lost it.
    Link,
}

impl Loss {
    const COUNT: usize = 14;

    /// All reasons, in the order of [`Losses::iter`].
    pub const ALL: [Loss; Loss::COUNT] = [
        Loss::TooWeak,
        Loss::Noise,
        Loss::Collision,
        Loss::PreambleMissed,
        Loss::Captured,
        Loss::Transmitting,
        Loss::Asleep,
        Loss::Down,
        Loss::LinkCut,
        Loss::Corrupted,
        Loss::OtherChannel,
        Loss::Truncated,
        Loss::Aborted,
        Loss::Link,
    ];

    /// The reason in `snake_case`, as it stands in results.
    pub const fn name(self) -> &'static str {
        match self {
            Loss::TooWeak => "too_weak",
            Loss::Noise => "noise",
            Loss::Collision => "collision",
            Loss::PreambleMissed => "preamble_missed",
            Loss::Captured => "captured",
            Loss::Transmitting => "transmitting",
            Loss::Asleep => "asleep",
            Loss::Down => "down",
            Loss::LinkCut => "link_cut",
            Loss::Corrupted => "corrupted",
            Loss::OtherChannel => "other_channel",
            Loss::Truncated => "truncated",
            Loss::Aborted => "aborted",
            Loss::Link => "link",
        }
    }

    /// The reason as a sentence, for a capture's comment.
    pub const fn sentence(self) -> &'static str {
        match self {
            Loss::TooWeak => "too weak to be heard",
            Loss::Noise => "destroyed by noise",
            Loss::Collision => "collided with another transmission",
            Loss::PreambleMissed => "missed: the receiver was busy with another frame",
            Loss::Captured => "left by the receiver for a stronger frame",
            Loss::Transmitting => "missed: the receiver was transmitting",
            Loss::Asleep => "missed: the receiver was asleep",
            Loss::Down => "missed: the receiver had crashed",
            Loss::LinkCut => "stopped by a cut link",
            Loss::Corrupted => "corrupted by a fault",
            Loss::OtherChannel => "missed: the receiver was on another channel",
            Loss::Truncated => "cut short: the transmitter crashed",
            Loss::Aborted => "given up by the receiver while it arrived",
            Loss::Link => "lost by the link's own loss process",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many frames were lost at a receiver, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::COUNT]);

impl Losses {
    #[inline]
    pub(crate) fn count(&mut self, why: Loss) {
        self.add(why, 1);
    }

    #[inline]
    pub(crate) fn add(&mut self, why: Loss, times: u64) {
        let counter = &mut self.0[why as usize];
        *counter = counter.wrapping_add(times);
    }

    /// How many were lost for this reason.
    pub fn of(&self, why: Loss) -> u64 {
        self.0[why as usize]
    }

    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        Loss::ALL.into_iter().zip(self.0)
    }

    /// The number of all losses.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_in_the_order_of_their_counters() {
        for (place, why) in Loss::ALL.into_iter().enumerate() {
            assert_eq!(place, why as usize);
        }
    }
}
