//! The power at a receiver, and from where on its radio must be looked at.
//!
//! Of all signals that reach a radio, most do not matter to it: it idles and cannot lock on to something so weak, or it
//! receives a frame so strong that they do it no harm. Such a signal only adds its power, here, and takes it away when
//! it ends. The energy is therefore always right, and whoever asks for it needs no sum over the frames in flight.

use std::slice;

use crate::arrival::Arrival;
use crate::radio::{Radio, flag::*};
use crate::{AirTime, Power};

/// What a cursor touches where a signal does not matter. Apart from the [`Radio`](crate::radio::Radio), so that the levels
/// of thousands of nodes stay in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Power of all signals present on the radio's channel; where signals pass an idle radio unseen whose channel is busy, less the carrier
    /// sense threshold.
    pub(crate) energy: Power,
    /// Signals that are too weak to lock on to pass unseen as long as `energy` stays below this; zero while the radio is looked at.
    /// A sum that falls below the threshold wraps to more than any width.
    width: Power,
}

/// An alarm that every signal sets off, and one that none does.
pub(crate) const ALWAYS: Power = Power::ZERO;
pub(crate) const NEVER: Power = Power(u64::MAX);

impl Level {
    /// No signal is present, and the first one is examined.
    pub(crate) const SILENCE: Level = Level {
        energy: Power::ZERO,
        width: ALWAYS,
    };

    /// From now on every signal is examined.
    #[inline]
    pub(crate) fn look(&mut self, radio: &Radio, carrier_sense: Power) {
        self.energy = self.total(radio, carrier_sense);
        self.width = ALWAYS;
    }

    /// Power of all signals present on the radio's channel.
    #[inline]
    pub(crate) fn total(&self, radio: &Radio, carrier_sense: Power) -> Power {
        let is_above = !self.is_looked_at() && radio.lock.is_none() && radio.is(BUSY);
        let base = if is_above { carrier_sense } else { Power::ZERO };
        self.energy.plus(base)
    }

    /// From now on weak signals pass a radio that is looked at unseen, while the energy stays below `alarm`.
    #[inline]
    pub(crate) fn look_away(&mut self, alarm: Power) {
        self.width = if self.energy < alarm { alarm } else { ALWAYS };
    }

    /// From now on weak signals pass an idle radio that is looked at unseen, while the energy stays on its side of the carrier sense
    /// threshold.
    #[inline]
    pub(crate) fn look_away_idle(&mut self, is_busy: bool, carrier_sense: Power) {
        let (base, width) = match is_busy {
            true => (carrier_sense, NEVER.minus(carrier_sense)),
            false => (Power::ZERO, carrier_sense),
        };
        self.energy = self.energy.minus(base);
        self.width = width;
    }

    /// A signal changes the energy to `energy`, which is on the other side. If no one has to hear of that, it is noted in the
    /// radio; returns false if the radio has to be examined.
    #[inline]
    fn cross(
        &mut self,
        radio: &mut Radio,
        energy: Power,
        (at, carrier_sense): (AirTime, Power),
    ) -> bool {
        if self.is_looked_at() || !radio.lock.is_none() || radio.is(SENSING) {
            return false;
        }
        let was_busy = radio.is(BUSY);
        self.energy = match was_busy {
            true => energy.plus(carrier_sense),
            false => energy,
        };
        self.look_away_idle(!was_busy, carrier_sense);
        radio.flags ^= BUSY;
        radio.since = at;
        true
    }

    /// Whether every signal is examined.
    #[inline]
    pub(crate) fn is_looked_at(&self) -> bool {
        self.width == ALWAYS
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

/// The levels of all radios, and the radios.
pub(crate) type Levels<'a> = (&'a mut [Level], &'a mut [Radio]);

impl Passage {
    /// Signals begin, one after another, as long as they pass unseen. Returns the first that does not.
    #[inline]
    pub(crate) fn rise<'a>(
        self,
        levels: Levels<'_>,
        arrivals: &mut slice::Iter<'a, Arrival>,
    ) -> Option<&'a Arrival> {
        self.run(levels, arrivals, Power::plus)
    }

    /// Signals end, one after another, as long as they pass unseen. Returns the first that does not.
    #[inline]
    pub(crate) fn fall<'a>(
        self,
        levels: Levels<'_>,
        arrivals: &mut slice::Iter<'a, Arrival>,
    ) -> Option<&'a Arrival> {
        self.run(levels, arrivals, Power::minus)
    }

    #[inline]
    fn run<'a>(
        self,
        (levels, radios): Levels<'_>,
        arrivals: &mut slice::Iter<'a, Arrival>,
        change: impl Fn(Power, Power) -> Power,
    ) -> Option<&'a Arrival> {
        let sent = self.sent;
        for arrival in arrivals {
            let Some(level) = levels.get_mut(arrival.receiver.index()) else {
                return Some(arrival);
            };
            if arrival.power >= self.weaker {
                return Some(arrival);
            }
            let energy = change(level.energy, arrival.power);
            if energy < level.width {
                level.energy = energy;
                continue;
            }
            let radio = &mut radios[arrival.receiver.index()];
            // Does not wrap: the time was compared with a limit.
            let at = AirTime(sent.0.wrapping_add(u64::from(arrival.delay)));
            if !level.cross(radio, energy, (at, self.carrier_sense)) {
                return Some(arrival);
            }
        }
        None
    }
}
