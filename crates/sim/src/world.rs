//! Everything that a run starts from, except the nodes.

use crate::{AirTime, Clock, Error, Fault, LinkLoss, Medium};

/// The medium, the clocks, the losses of links and the faults of a run.
#[derive(Clone, Debug)]
pub struct World {
    /// What lies between the antennas.
    pub medium: Medium,
    /// One clock for each node; empty for ideal clocks.
    pub clocks: Vec<Clock>,
    /// Loss processes of single links, on top of the radio's losses; at most one for each direction.
    pub link_losses: Vec<LinkLoss>,
    /// Faults and when they strike, in any order. Faults of one moment strike in the order given.
    pub faults: Vec<(AirTime, Fault)>,
    /// The longest frame in octets, without check sequence: the length of the buffer in `poll_radio`.
    pub frame_max: usize,
}

impl World {
    /// A world with ideal clocks and without faults, for frames of up to 2400 octets.
    pub fn new(medium: Medium) -> World {
        World {
            medium,
            clocks: Vec::new(),
            link_losses: Vec::new(),
            faults: Vec::new(),
            frame_max: 2400,
        }
    }

    pub(crate) fn check(&self, nodes: usize) -> Result<(), Error> {
        let places = self.medium.nodes();
        if places != nodes {
            return Err(Error::NodeCount {
                medium: places,
                nodes,
            });
        }
        if !self.clocks.is_empty() && self.clocks.len() != nodes {
            return Err(Error::ClockCount {
                clocks: self.clocks.len(),
                nodes,
            });
        }
        self.link_losses
            .iter()
            .try_for_each(|loss| loss.check(nodes))?;
        self.faults
            .iter()
            .try_for_each(|(_, fault)| fault.check(nodes))
    }
}
