//! x
#![allow(missing_docs)]
pub mod anypath;
pub mod certificate;
pub mod closed;
pub mod error;
mod feasible;
pub mod fluid;
pub mod graph;
pub mod hyperarc;
mod master;
mod maxflow;
pub mod mean;
pub mod multicast;
pub mod network;
mod program;
mod scout;
#[cfg(test)]
mod seeded;

pub use certificate::{Certificate, Prices};
pub use error::Error;
pub use fluid::{Fluid, fluid_rate, max_flow};
pub use mean::{MeanBound, mean_bound_cheap, mean_bound_exact};
pub use multicast::{Bound, Medium, Options, multicast, single_receivers};
pub use network::Network;
