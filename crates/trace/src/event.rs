//! Events as the simulator reports them, in few octets.

use chappe_core::{Duration, Mode, Rate};
use chappe_sim::{AirTime, Loss, Power};

use crate::label::{HEAD, Label, Labeller};
use crate::rows::Frame;

/// A frame as it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) node: u32,
    pub(crate) number: u32,
    pub(crate) at: AirTime,
    pub(crate) airtime: Duration,
    /// Stands for the octets where identical frames may add up; 0 elsewhere.
    pub(crate) content: u32,
    pub(crate) octets: u32,
    pub(crate) mode: Mode,
    pub(crate) channel: u8,
    pub(crate) len: u8,
    pub(crate) head: [u8; HEAD],
}

impl Default for Sending {
    fn default() -> Sending {
        Sending {
            node: 0,
            number: 0,
            at: AirTime::ZERO,
            airtime: Duration::ZERO,
            content: 0,
            octets: 0,
            mode: Mode::long(Rate::Dsss1),
            channel: 0,
            len: 0,
            head: [0; HEAD],
        }
    }
}

/// A frame at one receiver, as the simulator reported it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) node: u32,
    pub(crate) from: u32,
    pub(crate) number: u32,
    pub(crate) started: AirTime,
    pub(crate) at: AirTime,
    /// In nanoseconds: 4 s at most.
    pub(crate) airtime: u32,
    pub(crate) power: Power,
    pub(crate) others: Power,
    pub(crate) outcome: Result<(), Loss>,
}

impl Sending {
    pub(crate) fn row(&self, labeller: Labeller) -> Frame {
        let head = &self.head[..usize::from(self.len)];
        let label: Label = labeller(self.mode.rate, head);
        Frame {
            node: self.node,
            number: self.number,
            start: self.at,
            airtime: self.airtime,
            octets: self.octets,
            channel: self.channel,
            label,
        }
    }
}
