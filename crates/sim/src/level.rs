//! The power at a receiver, and from where on somebody there wants to know of it.
//!
//! Of all signals that reach a radio, most concern nobody: the radio idles and cannot lock on to something so weak, or it
//! receives a frame so strong that nothing becomes of it. Such a signal only adds its power, here, and takes it away when
//! it ends. The energy is therefore always right, and whoever asks for it needs no sum over the frames in flight.

use crate::{AirTime, Power};

/// What a cursor touches where a signal concerns nobody. Apart from the [`Radio`](crate::radio::Radio), so that the levels
/// of thousands of nodes stay in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Power of all signals present on the radio's channel.
    pub(crate) energy: Power,
    /// Signals that are too weak to lock on to concern nobody as long as the energy stays below this.
    alarm: Power,
    /// When the energy last crossed the carrier sense threshold while nobody looked; zero if it did not.
    crossed: AirTime,
}

/// An alarm that every signal sets off, and one that none does.
pub(crate) const ALWAYS: Power = Power::ZERO;
pub(crate) const NEVER: Power = Power(u64::MAX);

impl Level {
    /// Silence, examined.
    pub(crate) const SILENCE: Level = Level {
        energy: Power::ZERO,
        alarm: ALWAYS,
        crossed: AirTime::ZERO,
    };

    /// A weak signal begins. False, and nothing is changed, if that must be examined.
    #[inline]
    pub(crate) fn rise(&mut self, power: Power, at: AirTime, carrier_sense: Power) -> bool {
        let energy = self.energy.plus(power);
        let passes = energy < self.alarm;
        if passes {
            self.pass(energy, at, carrier_sense);
        }
        passes
    }

    /// A signal ends. False, and nothing is changed, if that must be examined.
    #[inline]
    pub(crate) fn fall(&mut self, power: Power, at: AirTime, carrier_sense: Power) -> bool {
        let passes = self.energy < self.alarm;
        if passes {
            self.pass(self.energy.minus(power), at, carrier_sense);
        }
        passes
    }

    /// No branch depends on the energy: whether a faded signal crosses the threshold is random, and no branch predictor
    /// guesses it.
    #[inline]
    fn pass(&mut self, energy: Power, at: AirTime, carrier_sense: Power) {
        let crosses = (self.energy >= carrier_sense) != (energy >= carrier_sense);
        self.crossed = if crosses { at } else { self.crossed };
        self.energy = energy;
    }

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

    #[cfg(test)]
    pub(crate) fn alarm(&self) -> Power {
        self.alarm
    }
}
