//! Loss that belongs to a link: a two-state process or a recording, on top of the loss of the radio.
//!
//! Interference from networks outside the model comes and goes in bursts of milliseconds to minutes. Here it is a law of
//! one direction of one link. The link's state at a frame's beginning decides first; then the radio does.

use chappe_core::{Duration, Purpose, Seed, Stream};

use crate::id::NodeId;
use crate::{AirTime, Error, LinkTrace};

/// The loss process of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoss {
    /// The transmitting node's number.
    pub from: usize,
    /// The receiving node's number.
    pub to: usize,
    /// When frames are lost.
    pub law: LossLaw,
    /// Share of the lost frames of which not even the preamble is found. The others end in a failed check
    /// sequence, with the receiver busy until then.
    pub unheard: f64,
}

/// When frames are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum LossLaw {
    /// By a state that changes at random times.
    Gilbert(Gilbert),
    /// As recorded: ratios over time, or outcomes of single frames. Ratios hold for frames of any length.
    Trace(LinkTrace),
}

/// Two states, each of which lasts an exponentially distributed time (Gilbert 1960, Elliott 1963, in continuous time).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gilbert {
    /// How long the good state lasts, on average.
    pub good: Duration,
    /// How long the bad state lasts, on average.
    pub bad: Duration,
    /// Probability that a frame that begins in the good state is lost.
    pub good_loss: f64,
    /// The same in the bad state.
    pub bad_loss: f64,
}

impl Gilbert {
    /// A link that loses every frame in its bad state and none in the other: `loss` of the time (0 to 1, both excluded), in
    /// bursts of mean length `burst`.
    pub fn bursts(loss: f64, burst: Duration) -> Gilbert {
        Gilbert {
            good: burst.mul_f64((1.0 - loss) / loss),
            bad: burst,
            good_loss: 0.0,
            bad_loss: 1.0,
        }
    }

    /// Share of the time in the bad state.
    pub fn bad_share(&self) -> f64 {
        let (good, bad) = (self.good.as_secs_f64(), self.bad.as_secs_f64());
        bad / (good + bad)
    }

    /// Mean loss over a long time.
    pub fn loss(&self) -> f64 {
        let bad = self.bad_share();
        self.good_loss * (1.0 - bad) + self.bad_loss * bad
    }
}

impl LinkLoss {
    pub(crate) fn check(&self, nodes: usize) -> Result<(), Error> {
        if self.from >= nodes || self.to >= nodes || self.from == self.to {
            return Err(Error::LinkLoss("its link does not exist"));
        }
        let is_ratio = |ratio: f64| (0.0..=1.0).contains(&ratio);
        match &self.law {
            LossLaw::Gilbert(law) => {
                if law.good == Duration::ZERO || law.bad == Duration::ZERO {
                    return Err(Error::LinkLoss("a state must last longer than nothing"));
                }
                if !is_ratio(law.good_loss) || !is_ratio(law.bad_loss) {
                    return Err(Error::LinkLoss("a probability lies outside 0 to 1"));
                }
            }
            LossLaw::Trace(trace) => trace.check()?,
        }
        match is_ratio(self.unheard) {
            true => Ok(()),
            false => Err(Error::LinkLoss("the unheard share lies outside 0 to 1")),
        }
    }
}

/// The fate of one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Through,
    /// Its preamble is not found.
    Unheard,
    /// It ends in a failed check sequence, of an error this far into it (0 to 1).
    Broken(f64),
}

/// All links' processes as a run goes on.
#[derive(Clone, Debug)]
pub(crate) struct LinkLosses {
    /// One row for each link with a loss process, sorted by link.
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    link: (NodeId, NodeId),
    law: LossLaw,
    unheard: f64,
    /// Draws for the lengths of states, and for frames.
    states: Stream,
    frames: Stream,
    /// The present state of a Gilbert law: which, how many came before it, and when it ends.
    bad: bool,
    step: u64,
    until: AirTime,
    /// The last frame and its fate: reception asks again at a frame's head and end.
    last: (u64, Fate),
}

impl LinkLosses {
    /// The processes of a run, if there are any; one for each link.
    pub(crate) fn new(losses: &[LinkLoss], seed: Seed) -> Result<Option<LinkLosses>, Error> {
        let mut rows: Vec<Row> = losses.iter().map(|loss| Row::new(loss, seed)).collect();
        rows.sort_by_key(|row| row.link);
        if rows.windows(2).any(|pair| pair[0].link == pair[1].link) {
            return Err(Error::LinkLoss("a link has two of them"));
        }
        Ok((!rows.is_empty()).then_some(LinkLosses { rows }))
    }

    /// The fate of the transmitter's frame `number`, which began at `begin`. Frames of a link are asked for in
    /// order; the last one may be asked for again.
    pub(crate) fn fate(&mut self, from: NodeId, to: NodeId, begin: AirTime, number: u64) -> Fate {
        match self.rows.binary_search_by_key(&(from, to), |row| row.link) {
            Ok(place) => self.rows[place].fate(begin, number),
            Err(_) => Fate::Through,
        }
    }
}

impl Row {
    fn new(loss: &LinkLoss, seed: Seed) -> Row {
        let link = (NodeId::of(loss.from), NodeId::of(loss.to));
        let own = seed
            .child(0x6055)
            .child(link.0.number() << 32 | link.1.number());
        let mut row = Row {
            link,
            law: loss.law.clone(),
            unheard: loss.unheard,
            states: own.child(0).stream(Purpose::Fault),
            frames: own.child(1).stream(Purpose::Fault),
            bad: false,
            step: 0,
            until: AirTime::ZERO,
            last: (u64::MAX, Fate::Through),
        };
        if let LossLaw::Gilbert(law) = row.law {
            row.bad = row.states.fraction_at(0) <= law.bad_share();
            // What is left of an exponentially distributed time is distributed like all of it.
            row.until = AirTime::ZERO + row.lasts(law);
        }
        row
    }

    /// How long the present state lasts.
    fn lasts(&self, law: Gilbert) -> Duration {
        let mean = if self.bad { law.bad } else { law.good };
        mean.mul_f64(-libm::log(self.states.fraction_at(self.step + 1)))
    }

    fn fate(&mut self, begin: AirTime, number: u64) -> Fate {
        if self.last.0 == number {
            return self.last.1;
        }
        let loss = match &self.law {
            &LossLaw::Gilbert(law) => {
                while self.until <= begin {
                    self.bad = !self.bad;
                    self.step += 1;
                    // At least a nanosecond, so that the loop ends.
                    self.until = self.until + self.lasts(law).max(Duration::from_nanos(1));
                }
                if self.bad {
                    law.bad_loss
                } else {
                    law.good_loss
                }
            }
            LossLaw::Trace(trace) => trace.ratio(begin, number).map_or(0.0, |ratio| 1.0 - ratio),
        };
        let draw = |which: u64| self.frames.fraction_at(number.wrapping_mul(3) + which);
        let fate = match () {
            // Three draws for each frame, used or not: the next frame's draws stay where they are.
            _ if draw(0) > loss => Fate::Through,
            _ if draw(1) <= self.unheard => Fate::Unheard,
            _ => Fate::Broken(draw(2)),
        };
        self.last = (number, fate);
        fate
    }
}
