//! The power at a receiver, and from where on its radio must be looked at.
//!
//! Of all signals that reach a radio, most do not matter to it: it idles and cannot lock on to something so weak, or it
//! receives a frame so strong that they do it no harm. Such a signal only adds its power, here, and takes it away when
//! it ends. The energy is therefore always right, and whoever asks for it needs no sum over the frames in flight.

use crate::arrival::Arrival;
use crate::{AirTime, Power};

/// What a cursor touches where a signal does not matter. Apart from the [`Radio`](crate::radio::Radio), so that the levels
/// of thousands of nodes stay in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Power of all signals present on the radio's channel.
    pub(crate) energy: Power,
    /// Signals that are too weak to lock on to do not matter as long as the energy stays below this.
    alarm: Power,
    /// When the energy last crossed the carrier sense threshold while the radio was not looked at; zero if it did not.
    crossed: AirTime,
}

/// An alarm that every signal sets off, and one that none does.
pub(crate) const ALWAYS: Power = Power::ZERO;
pub(crate) const NEVER: Power = Power(u64::MAX);

impl Level {
    /// No signal is present, and the first one is examined.
    pub(crate) const SILENCE: Level = Level {
        energy: Power::ZERO,
        alarm: ALWAYS,
        crossed: AirTime::ZERO,
    };

    /// From now on every signal is examined. Returns when the energy last crossed the carrier sense threshold unseen, if
    /// it did.
    #[inline]
    pub(crate) fn look(&mut self) -> Option<AirTime> {
        self.alarm = ALWAYS;
        let crossed = std::mem::replace(&mut self.crossed, AirTime::ZERO);
        (crossed != AirTime::ZERO).then_some(crossed)
    }

    /// From now on weak signals pass unseen while the energy stays below `alarm`.
    #[inline]
    pub(crate) fn look_away(&mut self, alarm: Power) {
        self.alarm = alarm;
    }

    /// Whether every signal is examined.
    #[inline]
    pub(crate) fn is_looked_at(&self) -> bool {
        self.alarm == ALWAYS
    }

    #[cfg(test)]
    pub(crate) fn alarm(&self) -> Power {
        self.alarm
    }
}

/// Which signals may pass unseen, if the levels let them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// When the bit in question left its transmitter.
    pub(crate) sent: AirTime,
    /// Signals of this power or more are examined.
    pub(crate) weaker: Power,
    pub(crate) carrier_sense: Power,
}

impl Passage {
    /// Signals begin, one after another, as long as they pass unseen. Returns how many did.
    #[inline]
    pub(crate) fn rise(self, levels: &mut [Level], arrivals: &[Arrival]) -> usize {
        // What lacks an energy to the threshold, less one: of energies above it this wraps to more than any signal has.
        let below = self.carrier_sense.0.wrapping_sub(1);
        self.run(levels, arrivals, |level, power| {
            let energy = level.energy.plus(power);
            let crosses = below.wrapping_sub(level.energy.0) < power.0;
            (energy, energy < level.alarm, crosses)
        })
    }

    /// Signals end, one after another, as long as they pass unseen. Returns how many did.
    #[inline]
    pub(crate) fn fall(self, levels: &mut [Level], arrivals: &[Arrival]) -> usize {
        let below = self.carrier_sense.0.wrapping_sub(1);
        self.run(levels, arrivals, |level, power| {
            let energy = level.energy.minus(power);
            let crosses = below.wrapping_sub(energy.0) < power.0;
            (energy, level.energy < level.alarm, crosses)
        })
    }

    #[inline]
    fn run(
        self,
        levels: &mut [Level],
        arrivals: &[Arrival],
        next: impl Fn(&Level, Power) -> (Power, bool, bool),
    ) -> usize {
        let sent = self.sent;
        let mut rest = arrivals.iter();
        while let [arrival, ..] = rest.as_slice() {
            let Some(level) = levels.get_mut(arrival.receiver.index()) else {
                break;
            };
            let (energy, passes, crosses) = next(level, arrival.power);
            // One branch: which of the two stops it is random.
            if !(passes & (arrival.power < self.weaker)) {
                break;
            }
            if crosses {
                // Does not wrap: the time was compared with a limit.
                level.crossed = AirTime(sent.0.wrapping_add(u64::from(arrival.delay)));
            }
            level.energy = energy;
            rest.next();
        }
        arrivals.len() - rest.len()
    }
}
