//! Networks given by measurements instead of positions: delivery ratios, carrier sensing, and traces.

use crate::{AirTime, Error};

/// Delivery ratios and carrier sensing between `n` nodes.
///
/// A frame is delivered with the link's ratio if no audible frame overlaps it at the receiver; any overlap destroys it. A
/// transmitter is audible if it is sensed or delivers anything. There is no propagation delay.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// `prr[i][j]`: the probability that `j` receives a frame of `i`, in `0..=1`. The diagonal is ignored.
    pub prr: Vec<Vec<f64>>,
    /// `senses[i][j]`: whether `j` finds the channel busy while `i` transmits. Receiving a frame makes it busy too.
    pub senses: Vec<Vec<bool>>,
    /// Length of the frames that the ratios were measured with, in octets, check sequence included. Other lengths get
    /// `prr^(octets / measured)`; with `None` the ratio holds for every length.
    pub measured_octets: Option<usize>,
    /// Traces that replace the ratio on single links, from `i` to `j`.
    pub traces: Vec<((usize, usize), LinkTrace)>,
}

/// A recording of one link.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkTrace {
    /// The delivery ratio from each moment on, in order of time. Before the first one it is the matrix's.
    Steps(Vec<(AirTime, f64)>),
    /// Whether the n-th frame of the transmitter got through; starts again at its end.
    Packets(Vec<bool>),
}

impl Matrix {
    /// A matrix without links.
    pub fn silent(nodes: usize) -> Matrix {
        Matrix {
            prr: vec![vec![0.0; nodes]; nodes],
            senses: vec![vec![false; nodes]; nodes],
            ..Matrix::default()
        }
    }

    /// This matrix with a link between `a` and `b`, delivered and sensed in both directions.
    pub fn with_link(mut self, a: usize, b: usize, prr: f64) -> Matrix {
        for (from, to) in [(a, b), (b, a)] {
            self.prr[from][to] = prr;
            self.senses[from][to] = true;
        }
        self
    }

    /// Checks shapes, ranges and the order of traces.
    pub(crate) fn check(&self) -> Result<usize, Error> {
        let nodes = self.prr.len();
        let square = self.prr.iter().all(|row| row.len() == nodes)
            && self.senses.len() == nodes
            && self.senses.iter().all(|row| row.len() == nodes);
        if !square {
            return Err(Error::Matrix(
                "prr and senses must be square and of one size",
            ));
        }
        if self
            .prr
            .iter()
            .flatten()
            .any(|ratio| !(0.0..=1.0).contains(ratio))
        {
            return Err(Error::Matrix("a delivery ratio lies outside 0 to 1"));
        }
        for ((from, to), trace) in &self.traces {
            if *from >= nodes || *to >= nodes || from == to {
                return Err(Error::Matrix("a trace is for a link that does not exist"));
            }
            trace.check()?;
        }
        Ok(nodes)
    }
}

impl LinkTrace {
    /// Checks ranges and order.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            LinkTrace::Steps(steps) => {
                if !steps.is_sorted_by_key(|&(at, _)| at) {
                    return Err(Error::Matrix("the steps of a trace are out of order"));
                }
                if steps.iter().any(|(_, ratio)| !(0.0..=1.0).contains(ratio)) {
                    return Err(Error::Matrix("a traced delivery ratio lies outside 0 to 1"));
                }
            }
            LinkTrace::Packets(packets) if packets.is_empty() => {
                return Err(Error::Matrix("a packet trace is empty"));
            }
            LinkTrace::Packets(_) => {}
        }
        Ok(())
    }

    /// The delivery ratio of the transmitter's frame `number` that starts at `at`; `None` leaves it to the matrix.
    pub(crate) fn ratio(&self, at: AirTime, number: u64) -> Option<f64> {
        match self {
            LinkTrace::Steps(steps) => {
                let next = steps.partition_point(|&(from, _)| from <= at);
                steps.get(next.checked_sub(1)?).map(|&(_, ratio)| ratio)
            }
            LinkTrace::Packets(packets) => {
                let place = number.checked_rem(packets.len() as u64)? as usize;
                packets.get(place).map(|&through| f64::from(through))
            }
        }
    }
}
