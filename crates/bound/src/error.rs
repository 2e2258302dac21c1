//! Errors: invalid input, or a solver that failed.

use std::fmt;

/// An invalid network or question, or a failure of the solver. The values say what was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A network needs at least one node.
    NoNodes,
    /// A table has the wrong number of entries.
    Shape {
        /// The name of the table.
        table: &'static str,
        /// The number of entries required.
        expected: usize,
        /// The number of entries given.
        got: usize,
    },
    /// A probability is not a number in 0..=1.
    Probability {
        /// Of what: `delivery` or `sensing`.
        of: &'static str,
        /// The node that transmits.
        from: usize,
        /// The node that receives.
        to: usize,
        /// The value that was given.
        value: f64,
    },
    /// A time, a rate or a number of transmissions is negative, infinite or not a number (an
    /// airtime must also be above zero).
    Quantity {
        /// The quantity, such as `airtime`.
        what: &'static str,
        /// The node it belongs to.
        node: usize,
        /// The value that was given.
        value: f64,
    },
    /// The gap between frames is negative, infinite or not a number.
    Gap {
        /// The gap that was given, in seconds.
        value: f64,
    },
    /// A node number that the network does not have.
    NoSuchNode {
        /// The node number given.
        node: usize,
        /// The network's nodes are `0..nodes`.
        nodes: usize,
    },
    /// A multicast needs at least one receiver.
    NoReceivers,
    /// A receiver is named twice, or is the source.
    BadReceiver {
        /// The receiver's node number.
        node: usize,
    },
    /// More receivers than the computation over all subsets can take.
    TooManyReceivers {
        /// The number of receivers given.
        got: usize,
        /// The largest number supported.
        limit: usize,
    },
    /// A link from a node to itself.
    LoopLink {
        /// Place of the link in the list.
        link: usize,
        /// The number of that node.
        node: usize,
    },
    /// The rate of a link is not a positive number.
    LinkRate {
        /// Place of the link in the list.
        link: usize,
        /// The rate that was given, in bit/s.
        value: f64,
    },
    /// A question about a mesh needs at least one flow.
    NoFlows,
    /// No sequence of links leads from the source of a flow to its sink, or they are the same node.
    NoRoute {
        /// The source of the flow.
        source: usize,
        /// The sink of the flow.
        sink: usize,
    },
    /// The linear-programming solver stopped without a solution, for this reason.
    Solver(String),
    /// The solver found less than what is proven to be possible, by more than the caller allows.
    Unproven {
        /// The relative gap between the two.
        gap: f64,
        /// The largest gap that the caller allows.
        limit: f64,
    },
    /// This program has no solver: its processor has no atomic access to 64 bits.
    NoSolver,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoNodes => write!(f, "a network needs at least one node"),
            Error::Shape {
                table,
                expected,
                got,
            } => {
                write!(f, "table `{table}` has {got} entries, expected {expected}")
            }
            Error::Probability {
                of,
                from,
                to,
                value,
            } => write!(
                f,
                "{of} probability from {from} to {to} is {value}, expected 0 to 1"
            ),
            Error::Quantity { what, node, value } => {
                write!(f, "{what} of node {node} is {value}")
            }
            Error::Gap { value } => write!(f, "the gap between frames is {value} s"),
            Error::NoSuchNode { node, nodes } => {
                write!(
                    f,
                    "node {node} does not exist, the network has {nodes} nodes"
                )
            }
            Error::NoReceivers => write!(f, "a multicast needs at least one receiver"),
            Error::BadReceiver { node } => {
                write!(f, "receiver {node} is the source or is named twice")
            }
            Error::TooManyReceivers { got, limit } => {
                write!(f, "{got} receivers, at most {limit} are supported here")
            }
            Error::LoopLink { link, node } => {
                write!(f, "link {link} leads from node {node} to itself")
            }
            Error::LinkRate { link, value } => write!(
                f,
                "the rate of link {link} is {value} bit/s, expected more than 0"
            ),
            Error::NoFlows => write!(f, "a mesh bound needs at least one flow"),
            Error::NoRoute { source, sink } => {
                write!(f, "no links lead from node {source} to node {sink}")
            }
            Error::Solver(word) => write!(f, "the linear-programming solver stopped: {word}"),
            Error::Unproven { gap, limit } => write!(
                f,
                "the solver stopped {:.0} % below what is proven, more than {:.0} %",
                100.0 * gap,
                100.0 * limit
            ),
            Error::NoSolver => write!(
                f,
                "no linear-programming solver runs on this processor (32 bits without 64-bit atomics)"
            ),
        }
    }
}

impl std::error::Error for Error {}
