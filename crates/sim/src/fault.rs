//! What goes wrong on purpose.

use chappe_core::{Channel, Dbm, Duration, Mode, Ppm};

use crate::{Error, Position};

/// A fault, struck at one moment of air time.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The node stops: it loses its state, its deadlines and its waiting frame. A frame on the air is cut short.
    Crash(usize),
    /// A crashed node starts again as a fresh one from the simulator's reviver. Its clock went on meanwhile.
    Restart(usize),
    /// No signal passes between two nodes any more, in either direction; frames on their way arrive still.
    CutLink(usize, usize),
    /// Signals pass again.
    RestoreLink(usize, usize),
    /// The node's clock runs at another rate from now on.
    Drift {
        /// Whose.
        node: usize,
        /// Against air time.
        ppm: Ppm,
    },
    /// From now on each bit of what the node receives is wrong with a probability; zero ends it.
    CorruptBits {
        /// The receiver.
        node: usize,
        /// Per bit.
        rate: f64,
        /// Whether the check sequence shows it: the frame then fails. Otherwise bits of the PSDU handed to the
        /// node are flipped.
        detected: bool,
    },
    /// An external transmitter begins.
    Jammer(Jammer),
}

/// An external transmitter of noise or foreign frames. It hears nothing and does not fade.
#[derive(Clone, Debug, PartialEq)]
pub struct Jammer {
    /// Where it stands.
    pub place: Place,
    /// Its transmit power.
    pub power: Dbm,
    /// The channel it disturbs; `None` disturbs all of them.
    pub channel: Option<Channel>,
    /// When it transmits.
    pub bursts: Bursts,
    /// How long it keeps doing so.
    pub lasts: Duration,
}

/// Where a jammer stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// At a position, in a geometric medium.
    At(Position),
    /// In reach of these nodes, in a matrix.
    Over(Vec<usize>),
}

/// When a jammer transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// All the time.
    Constant,
    /// At the beginning of each period.
    Periodic {
        /// From start to start.
        period: Duration,
        /// How long a burst is.
        on: Duration,
    },
    /// With exponentially distributed gaps between the end of one burst and the start of the next, drawn from
    /// `Purpose::Interference`.
    Poisson {
        /// Mean gap.
        gap: Duration,
        /// How long a burst is.
        on: Duration,
    },
    /// The same with a frame of another network as each burst: receivers lock on to it like on any frame, miss the
    /// preambles of others meanwhile, and tell their node of a failed one when it is destroyed. One that
    /// arrives whole they know for another network's and tell nobody. Needs a channel of its own and a geometric medium.
    Frames {
        /// Mean gap.
        gap: Duration,
        /// How the frames are sent.
        mode: Mode,
        /// Their length, check sequence included.
        octets: usize,
    },
}

impl Fault {
    pub(crate) fn check(&self, nodes: usize) -> Result<(), Error> {
        let known = |node: usize| {
            if node < nodes {
                Ok(())
            } else {
                Err(Error::FaultNode(node))
            }
        };
        match self {
            Fault::Crash(node) | Fault::Restart(node) | Fault::Drift { node, .. } => known(*node),
            Fault::CutLink(a, b) | Fault::RestoreLink(a, b) => known(*a).and(known(*b)),
            Fault::CorruptBits { node, rate, .. } => match (0.0..=1.0).contains(rate) {
                true => known(*node),
                false => Err(Error::Fault("a bit error rate lies outside 0 to 1")),
            },
            Fault::Jammer(jammer) => {
                if let Place::Over(reached) = &jammer.place {
                    reached.iter().try_for_each(|&node| known(node))?;
                }
                let empty = match jammer.bursts {
                    Bursts::Constant => false,
                    Bursts::Periodic { period, on } => on == Duration::ZERO || period < on,
                    Bursts::Poisson { on, .. } => on == Duration::ZERO,
                    Bursts::Frames { octets, .. } => octets == 0,
                };
                let frames = matches!(jammer.bursts, Bursts::Frames { .. });
                if frames && (jammer.channel.is_none() || matches!(jammer.place, Place::Over(_))) {
                    return Err(Error::Fault(
                        "foreign frames need a channel and a geometric medium",
                    ));
                }
                if empty || !jammer.power.0.is_finite() {
                    return Err(Error::Fault(
                        "a jammer's bursts are empty or longer than their period",
                    ));
                }
                Ok(())
            }
        }
    }
}
