//! Everything a run starts from but the nodes.

use crate::{AirTime, Clock, Error, Fault, LinkLoss, Medium};

/// The medium, the clocks, the losses of links, the faults.
#[derive(Clone, Debug)]
pub struct World {
    /// What lies between the antennas.
    pub medium: Medium,
    /// One clock for each node; none means ideal ones.
    pub clocks: Vec<Clock>,
    /// What single links lose on top of what the radio loses; at most one for each direction.
    pub link_losses: Vec<LinkLoss>,
    /// What goes wrong, and when; in any order. Faults of one moment strike in the order given.
    pub faults: Vec<(AirTime, Fault)>,
    /// Room for a frame in octets, without check sequence: what a node may write in `poll_radio`.
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
