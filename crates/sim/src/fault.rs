//! Faults and interferers of a scenario.

use chappe_core::{Channel, Dbm, Duration, Mode, Ppm};

use crate::{Error, Position};

/// A fault that strikes at one moment of air time.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The node stops: it loses its state, its deadlines and its waiting frame. A frame on the air is cut short.
    Crash(usize),
    /// A crashed node starts again as a fresh one from the simulator's reviver. Its clock went on meanwhile.
    Restart(usize),
    /// Cuts the link between two nodes in both directions. Frames in flight still arrive.
    CutLink(usize, usize),
    /// Restores a link that was cut.
    RestoreLink(usize, usize),
    /// The node's clock runs at another rate from now on.
    Drift {
        /// The node with the clock.
        node: usize,
        /// The new drift against air time.
        ppm: Ppm,
    },
    /// From now on each bit that the node receives is wrong with a probability; zero ends it.
    CorruptBits {
        /// The node that receives the errors.
        node: usize,
        /// Probability that a bit is wrong.
        rate: f64,
        /// Whether the check sequence detects it, so that the frame fails. Otherwise the node gets a PSDU with
        /// flipped bits.
        detected: bool,
    },
    /// An external transmitter starts.
    Jammer(Jammer),
    /// The node's radio hands over a frame that no node of the network sent, if it listens and receives nothing else. No
    /// signal is on the air: this is an attacker whom only this node hears.
    Forge {
        /// The node that gets the frame.
        node: usize,
        /// What the frame holds.
        forgery: Forgery,
    },
}

/// What a forged frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// Random octets: up to as many as a frame may have.
    Random,
    /// One of the frames that nodes received lately, as it was.
    Replay,
    /// The same with one to eight wrong bits.
    Bent,
}

/// An external transmitter of noise or foreign frames. It hears nothing and does not fade.
#[derive(Clone, Debug, PartialEq)]
pub struct Jammer {
    /// Where the jammer stands.
    pub place: Place,
    /// Transmit power of the jammer.
    pub power: Dbm,
    /// The channel it disturbs; `None` disturbs all of them.
    pub channel: Option<Channel>,
    /// When the jammer transmits.
    pub bursts: Bursts,
    /// How long the jammer is active.
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
    /// Transmits without a pause.
    Constant,
    /// Transmits at the beginning of each period.
    Periodic {
        /// From start to start.
        period: Duration,
        /// How long a burst is.
        on: Duration,
    },
    /// Transmits with exponentially distributed gaps between the end of one burst and the start of the next, drawn from
    /// `Purpose::Interference`.
    Poisson {
        /// Mean gap between two bursts.
        gap: Duration,
        /// How long a burst is.
        on: Duration,
    },
    /// The same with a frame of another network as each burst: receivers lock on to it like on any frame, miss the
    /// preambles of others meanwhile, and report a failed reception when it is destroyed. They recognise one that
    /// arrives whole as foreign and do not deliver it. Needs a stated channel and a geometric medium.
    Frames {
        /// Mean gap between two bursts.
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
            Fault::Crash(node)
            | Fault::Restart(node)
            | Fault::Drift { node, .. }
            | Fault::Forge { node, .. } => known(*node),
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
