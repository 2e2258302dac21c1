//! x
#![allow(missing_docs)]
pub mod anypath;
pub mod certificate;
pub mod error;
mod feasible;
pub mod graph;
pub mod hyperarc;
mod master;
mod maxflow;
pub mod multicast;
pub mod network;
mod program;
#[cfg(test)]
mod seeded;
pub use error::Error;
pub use multicast::*;
pub use network::Network;
pub use certificate::*;
