//! Events as the simulator reports them, in few octets.

use chappe_core::{Duration, Mode};
use chappe_sim::{AirTime, Loss, Power};

use crate::label::Label;
use crate::rows::Frame;

/// A frame as it was sent, or a burst of an interferer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sending {
    pub(crate) node: u32,
    pub(crate) number: u32,
    pub(crate) at: AirTime,
    pub(crate) airtime: Duration,
    /// Stands for the octets where identical frames may add up; 0 elsewhere.
    pub(crate) content: u32,
    pub(crate) octets: u32,
    pub(crate) channel: u8,
    pub(crate) label: Label,
}

/// A frame at one receiver, as the simulator reported it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) node: u32,
    pub(crate) from: u32,
    pub(crate) number: u32,
    pub(crate) started: AirTime,
    pub(crate) at: AirTime,
    /// Octets on the air and mode, from which its time on the air follows.
    pub(crate) octets: u32,
    pub(crate) mode: Mode,
    pub(crate) power: Power,
    pub(crate) others: Power,
    pub(crate) outcome: Result<(), Loss>,
}

/// A signal at one receiver that no node can receive: noise, or a frame of another network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) node: u32,
    pub(crate) from: u32,
    pub(crate) number: u32,
    pub(crate) start: AirTime,
    pub(crate) end: AirTime,
    pub(crate) power: Power,
}

impl Sending {
    pub(crate) fn row(&self) -> Frame {
        Frame {
            node: self.node,
            number: self.number,
            start: self.at,
            airtime: self.airtime,
            octets: self.octets,
            channel: self.channel,
            label: self.label,
        }
    }
}
