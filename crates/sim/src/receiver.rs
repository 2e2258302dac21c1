//! Radios with the power at each of them.

use std::ops::{Deref, DerefMut};

use crate::id::NodeId;
use crate::level::{ALWAYS, Level, Levels};
use crate::radio::{Radio, flag::*};
use crate::rules::Rules;
use crate::{AirTime, Power};

/// All radios and their levels, side by side: a cursor that only adds a signal's power touches no radio.
#[derive(Debug)]
pub(crate) struct Receivers {
    levels: Vec<Level>,
    radios: Vec<Radio>,
}

/// A radio that is looked at: what passes it from now on is examined, until its carrier has been refreshed.
#[derive(Debug)]
pub(crate) struct Receiver<'a> {
    pub(crate) level: &'a mut Level,
    radio: &'a mut Radio,
}

impl Receivers {
    /// Radios that listen on one channel.
    pub(crate) fn new(channel: u8, nodes: usize) -> Receivers {
        Receivers {
            levels: vec![Level::SILENCE; nodes],
            radios: vec![Radio::new(channel); nodes],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.radios.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Radio> {
        self.radios.iter()
    }

    /// A radio, to read what it does.
    #[inline]
    pub(crate) fn radio(&self, node: NodeId) -> &Radio {
        &self.radios[node.index()]
    }

    /// A radio to change or to ask for its carrier.
    #[inline]
    pub(crate) fn look(&mut self, node: NodeId, carrier_sense: Power) -> Receiver<'_> {
        let level = &mut self.levels[node.index()];
        let radio = &mut self.radios[node.index()];
        level.look(radio, carrier_sense);
        Receiver { level, radio }
    }

    /// A radio that receives a frame: its level is the energy whether it is looked at or not.
    #[inline]
    pub(crate) fn locked(&mut self, node: NodeId) -> Receiver<'_> {
        Receiver {
            level: &mut self.levels[node.index()],
            radio: &mut self.radios[node.index()],
        }
    }

    /// The levels, for signals that pass unseen.
    #[inline]
    pub(crate) fn levels(&mut self) -> Levels<'_> {
        (&mut self.levels, &mut self.radios)
    }

    /// Power of all signals present at a node.
    #[cfg(test)]
    pub(crate) fn energy(&self, node: NodeId, carrier_sense: Power) -> Power {
        self.levels[node.index()].total(self.radio(node), carrier_sense)
    }

    /// Whether every signal at a node is examined.
    #[inline]
    pub(crate) fn is_looked_at(&self, node: NodeId) -> bool {
        self.levels[node.index()].is_looked_at()
    }
}

impl Deref for Receiver<'_> {
    type Target = Radio;
    fn deref(&self) -> &Radio {
        self.radio
    }
}

impl DerefMut for Receiver<'_> {
    fn deref_mut(&mut self) -> &mut Radio {
        self.radio
    }
}

impl Receiver<'_> {
    /// Power of everything but the frame being received.
    #[inline]
    pub(crate) fn interference(&self) -> Power {
        self.level.energy.minus(self.lock_power)
    }

    /// [`refresh`](Self::refresh) for a radio that neither receives nor transmits, without a branch on the energy: whether
    /// a faded signal crosses the threshold is random, and no branch predictor guesses it.
    #[inline]
    pub(crate) fn refresh_free(&mut self, at: AirTime, carrier_sense: Power) -> bool {
        let busy = if self.level.energy >= carrier_sense {
            BUSY
        } else {
            0
        };
        let changed = (self.flags ^ busy) & BUSY;
        self.since = if changed != 0 { at } else { self.since };
        self.flags ^= changed;
        self.is_due()
    }

    /// Brings the carrier up to date and returns whether the node must be notified.
    #[inline]
    pub(crate) fn refresh(&mut self, at: AirTime, carrier_sense: Power) -> bool {
        let busy = self.level.energy >= carrier_sense || !self.is_free();
        if busy != self.is(BUSY) {
            self.flags ^= BUSY;
            self.since = at;
        }
        self.is_due()
    }

    /// Brings the carrier of a radio that could receive and receives nothing up to date, and looks away. Returns whether the node must
    /// be notified.
    #[inline]
    pub(crate) fn rest(&mut self, at: AirTime, carrier_sense: Power) -> bool {
        let is_due = self.refresh_free(at, carrier_sense);
        match is_due {
            true => self.level.look_away(ALWAYS),
            false => self.look_away_idle(carrier_sense),
        }
        is_due
    }

    /// The same for a radio that receives on the channel on which signals may pass.
    #[inline]
    pub(crate) fn hold(&mut self, at: AirTime) -> bool {
        if !self.is(BUSY) {
            self.flags |= BUSY;
            self.since = at;
        }
        let is_due = self.is_due();
        let alarm = if is_due { ALWAYS } else { self.harmless };
        self.level.look_away(alarm);
        is_due
    }

    /// From now on weak signals pass a radio that receives nothing unseen, as long as its node need not hear of the carrier.
    #[inline]
    pub(crate) fn look_away(&mut self, at: AirTime, rules: &Rules) {
        // Turning around is judged by time, so the next signal after its end is examined once more.
        if !self.is_idle(rules.home, at) || self.is_due() {
            return self.level.look_away(ALWAYS);
        }
        self.look_away_idle(rules.carrier_sense);
    }

    #[inline]
    fn look_away_idle(&mut self, carrier_sense: Power) {
        let is_busy = self.radio.is(BUSY);
        self.level.look_away_idle(is_busy, carrier_sense);
    }
}
