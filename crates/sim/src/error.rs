//! Errors of a world or medium, found before a run.

use std::fmt;

/// A configuration that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The medium and the simulator have different numbers of nodes.
    NodeCount {
        /// Places in the medium.
        medium: usize,
        /// Nodes passed to the simulator.
        nodes: usize,
    },
    /// More nodes than fit into an event's key: at most 65,535.
    TooManyNodes(usize),
    /// A position is not a number, or a profile's power is.
    NotFinite(&'static str),
    /// The matrix or a trace is malformed.
    Matrix(&'static str),
    /// An antenna is malformed, or there is not one for each node.
    Antenna(&'static str),
    /// A link's loss process is malformed, or its link does not exist.
    LinkLoss(&'static str),
    /// There are clocks for some nodes, but not for all.
    ClockCount {
        /// Clocks in the world.
        clocks: usize,
        /// Nodes passed to the simulator.
        nodes: usize,
    },
    /// A node's way is impossible, or there is not one for each node.
    Motion(&'static str),
    /// A fault names a node that does not exist.
    FaultNode(usize),
    /// A fault does not fit this medium or has impossible numbers.
    Fault(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NodeCount { medium, nodes } => {
                write!(
                    f,
                    "the medium has places for {medium} nodes, but {nodes} were given"
                )
            }
            Error::TooManyNodes(nodes) => {
                write!(f, "{nodes} nodes: at most 65535 can be simulated")
            }
            Error::NotFinite(what) => write!(f, "{what} is not a finite number"),
            Error::Matrix(what) => write!(f, "matrix: {what}"),
            Error::Antenna(what) => write!(f, "antenna: {what}"),
            Error::LinkLoss(what) => write!(f, "link loss: {what}"),
            Error::ClockCount { clocks, nodes } => {
                write!(
                    f,
                    "{clocks} clocks for {nodes} nodes: give one for each, or none for ideal ones"
                )
            }
            Error::Motion(what) => write!(f, "motion: {what}"),
            Error::FaultNode(node) => write!(f, "a fault names node {node}, which does not exist"),
            Error::Fault(what) => write!(f, "fault: {what}"),
        }
    }
}

impl std::error::Error for Error {}
