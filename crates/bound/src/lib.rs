//! What the network could carry at best: linear programs with proofs, and closed formulas.
//!
//! Every result of Chappe is printed beside a bound, so that "how much is left" has an answer that
//! does not depend on which protocols happened to be compared. This crate computes the bounds from
//! plain tables of a [`Network`]: delivery probabilities, airtimes, how surely who senses whom. It knows no
//! protocol, no clock and no file.
//!
//! ```
//! use chappe_bound::{Medium, Network, Options, multicast};
//!
//! // A source, two relays, a receiver; everyone senses everyone; 7 ms and 1500 bytes per frame.
//! let mut delivery = vec![0.0; 16];
//! for (from, to, p) in [(0, 1, 0.5), (0, 2, 0.5), (1, 3, 0.9), (2, 3, 0.9), (0, 3, 0.1)] {
//!     delivery[from * 4 + to] = p;
//! }
//! let network = Network::new(delivery, vec![7e-3; 4], 1500, vec![1.0; 16])?;
//!
//! let bound = multicast(&network, 0, &[3], &Options::default())?;
//! // No protocol exceeds 759 kbit/s; network coding at these forwarding rates gets there.
//! assert!((bound.goodput_bps() / 1e3 - 759.0).abs() < 0.5);
//! assert!(bound.gap() < 1e-4 && bound.transmissions[1] > 0.0);
//!
//! // The proof needs no solver: anyone can check it.
//! assert_eq!(bound.certificate.bound_fps(&network), bound.certified_fps);
//! # Ok::<(), chappe_bound::Error>(())
//! ```
//!
//! # The parts
//!
//! - [`multicast()`]: the bound for a set of receivers at one rate (the *worst receiver*), under one
//!   of four assumptions about the [`Medium`]; [`single_receivers`]: each receiver alone.
//! - [`mean_bound_exact`], [`mean_bound_cheap`]: the bound on mean throughput when receivers may
//!   finish one after another.
//! - [`Certificate`]: the dual proof that comes with every bound.
//! - [`fluid_rate`], [`max_flow`]: what given forwarding rates carry without collisions and with
//!   endless batches: the ceiling of a credit rule.
//! - [`mesh`](mod@mesh): several unicast flows over links with a conflict graph: the sum, the smallest or the
//!   product of their rates, with a schedule, a proven gap and the bottleneck.
//! - [`anypath`](mod@anypath): the single-receiver bound of one collision domain, in closed form.
//! - [`closed`]: DCF, chains, erasure channels, repetition.
//! - [`sensing`]: what sets of nodes can have on the air when frames are sensed by chance.
//! - [`graph`], [`hyperarc`]: the combinatorial parts, usable alone.
//!
//! # What a bound assumes
//!
//! Losses of one frame are independent between receivers and do not depend on other traffic; only
//! long-run averages count; node i's frames take `airtime_s(i)`; feedback and headers are free. A real
//! run has less of all of these, so it stays below, if the airtimes are the minimal ones and the
//! run keeps the assumption of the chosen [`Medium`].
//!
//! # Not supported
//!
//! Several multicasts at once, cumulative interference (conflicts are pairs of links), correlated losses, several
//! channels or bit rates per node, multi-packet reception, finite-length effects of coding (but
//! see [`closed::erasure::batch_transmissions`]).

pub mod anypath;
pub mod certificate;
pub mod closed;
pub mod error;
mod feasible;
mod flows;
pub mod fluid;
pub mod graph;
pub mod hyperarc;
mod master;
mod maxflow;
pub mod mean;
pub mod medium;
pub mod mesh;
pub mod multicast;
pub mod network;
mod program;
mod scout;
pub mod sensing;

pub use certificate::{Certificate, Prices};
pub use error::Error;
pub use fluid::{Fluid, fluid_rate, max_flow};
pub use mean::{MeanBound, mean_bound_cheap, mean_bound_exact};
pub use medium::Medium;
pub use mesh::{
    CliqueBound, Conflict, Mesh, MeshBound, MeshCertificate, MeshFlow, MeshLink, MeshOptions,
    Objective, clique_bound, mesh_bound,
};
pub use multicast::{Bound, Options, multicast, single_receivers};
pub use network::Network;
pub use sensing::{SensedSet, overfull_sets};
