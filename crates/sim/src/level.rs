//! The power at a receiver, and from where on its radio must be looked at.
//!
//! Of all signals that reach a radio, most do not matter to it: it idles and cannot lock on to something so weak, or it
//! receives a frame so strong that they do it no harm. Such a signal only adds its power, here, and takes it away when
//! it ends. The energy is therefore always right, and whoever asks for it needs no sum over the frames in flight.

use std::slice;

use crate::arrival::Arrival;
use crate::{AirTime, Power};

/// What a cursor touches where a signal does not matter. Apart from the [`Radio`](crate::radio::Radio), so that the levels
/// of thousands of nodes stay in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Power of all signals present on the radio's channel, over the [`Unseen::base`], which is zero while the radio is looked at.
    pub(crate) energy: Power,
    /// Signals that are too weak to lock on to pass unseen as long as `energy` stays below this; zero while the radio is looked at.
    /// A sum that falls below the base wraps to more than any width.
    width: Power,
}

/// What stands beside a level while signals pass the radio unseen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    /// Where the band of energies begins in which signals pass.
    base: Power,
    /// When the energy last crossed the carrier sense threshold; zero if it did not, [`EXAMINED`] if that is for no cursor to note.
    crossed: AirTime,
    /// Since when the channel has been busy or idle. Here, since a [`Radio`](crate::radio::Radio) has no room for it.
    pub(crate) since: AirTime,
}

/// Stands for a radio that is examined when its energy leaves the band.
const EXAMINED: AirTime = AirTime::MAX;

/// An alarm that every signal sets off, and one that none does.
pub(crate) const ALWAYS: Power = Power::ZERO;
pub(crate) const NEVER: Power = Power(u64::MAX);

impl Level {
    /// No signal is present, and the first one is examined.
    pub(crate) const SILENCE: Level = Level {
        energy: Power::ZERO,
        width: ALWAYS,
    };

    /// From now on every signal is examined. Returns when the energy last crossed the carrier sense threshold unseen, if
    /// it did.
    #[inline]
    pub(crate) fn look(&mut self, unseen: &mut Unseen) -> Option<AirTime> {
        self.energy = self.energy.plus(unseen.base);
        self.width = ALWAYS;
        unseen.base = Power::ZERO;
        let crossed = std::mem::replace(&mut unseen.crossed, EXAMINED);
        (crossed != AirTime::ZERO && crossed != EXAMINED).then_some(crossed)
    }

    /// From now on weak signals pass a radio that is looked at unseen, while the energy stays below `alarm`.
    #[inline]
    pub(crate) fn look_away(&mut self, alarm: Power) {
        self.width = if self.energy < alarm { alarm } else { ALWAYS };
    }

    /// From now on weak signals pass a radio that is looked at unseen, while the energy stays on its side of the carrier sense
    /// threshold. If `follow` is set, also when it crosses that, which is then noted.
    #[inline]
    pub(crate) fn look_away_from(
        &mut self,
        unseen: &mut Unseen,
        carrier_sense: Power,
        follow: bool,
    ) {
        self.rest_at(unseen, self.energy, carrier_sense);
        unseen.crossed = if follow { AirTime::ZERO } else { EXAMINED };
    }

    /// Sets the band to that side of the threshold on which `energy` is.
    #[inline]
    fn rest_at(&mut self, unseen: &mut Unseen, energy: Power, carrier_sense: Power) {
        let is_below = energy < carrier_sense;
        unseen.base = if is_below { Power::ZERO } else { carrier_sense };
        self.energy = energy.minus(unseen.base);
        self.width = if is_below {
            carrier_sense
        } else {
            NEVER.minus(carrier_sense)
        };
    }

    /// Whether every signal is examined.
    #[inline]
    pub(crate) fn is_looked_at(&self) -> bool {
        self.width == ALWAYS
    }
}

impl Unseen {
    /// Nothing passed.
    pub(crate) const NOTHING: Unseen = Unseen {
        base: Power::ZERO,
        crossed: EXAMINED,
        since: AirTime::ZERO,
    };

    #[inline]
    pub(crate) fn energy(&self, level: Level) -> Power {
        level.energy.plus(self.base)
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

/// The levels of all radios, and what stands beside them.
pub(crate) type Levels<'a> = (&'a mut [Level], &'a mut [Unseen]);

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
        (levels, unseen): Levels<'_>,
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
            let unseen = &mut unseen[arrival.receiver.index()];
            if unseen.crossed == EXAMINED {
                return Some(arrival);
            }
            // Does not wrap: the time was compared with a limit.
            unseen.crossed = AirTime(sent.0.wrapping_add(u64::from(arrival.delay)));
            let energy = energy.plus(unseen.base);
            level.rest_at(unseen, energy, self.carrier_sense);
        }
        None
    }
}
