//! Upper bounds on the capacity of a wireless network: linear programs with proofs, and closed formulas.
//!
//! Chappe prints every result beside a bound, so the remaining gain does not depend on the protocols
//! that happened to be compared. This crate computes bounds from plain tables of a [`Network`]:
//! delivery probabilities, airtimes, and the probabilities that nodes sense each other. It knows no
//! protocol, no clock and no file.
//!
//! ```
//! use chappe_bound::{Medium, Network, Options, multicast};
//!
//! // A source, two relays, a receiver; all nodes sense each other; 7 ms and 1500 bytes per frame.
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
//! // Checking the proof needs no solver.
//! assert_eq!(bound.certificate.bound_fps(&network), bound.certified_fps);
//! # Ok::<(), chappe_bound::Error>(())
//! ```
//!
//! # The parts
//!
//! - [`multicast()`]: the bound for a set of receivers at one rate (the *worst receiver*), under one
//!   of four assumptions about the [`Medium`]; [`single_receivers`]: each receiver alone.
//! - [`interference`](mod@interference): the same bound when frames on the air together disturb each other, whatever the MAC.
//! - [`mean_bound_exact`], [`mean_bound_cheap`]: the bound on mean throughput when receivers may
//!   finish one after another.
//! - [`Certificate`]: the dual proof that comes with every bound.
//! - [`fluid_rate`], [`max_flow`]: the rates of given forwarding rates without collisions and with
//!   infinite batches: the upper limit of a credit rule.
//! - [`mesh`](mod@mesh): several unicast flows over links with a conflict graph: the sum, the smallest or the
//!   product of their rates, with a schedule, a proven gap and the bottleneck.
//! - [`anypath`](mod@anypath): the single-receiver bound of one collision domain, in closed form.
//! - [`closed`]: DCF, chains, erasure channels, repetition.
//! - [`sensing`]: the airtime of sets of nodes when frames are sensed at random.
//! - [`graph`], [`hyperarc`]: the combinatorial parts, usable separately.
//!
//! # What a bound assumes
//!
//! Losses of one frame are independent between receivers and do not depend on other traffic; only
//! long-run averages count; node i's frames take `airtime_s(i)`; feedback and headers are free. A real
//! run is worse in all of these, so it stays below the bound, if the airtimes are minimal and the
//! run satisfies the assumption of the chosen [`Medium`].
//!
//! # Not supported
//!
//! Several multicasts at once, cumulative interference in a mesh (its conflicts are pairs of links), correlated losses, several
//! channels or bit rates per node, multi-packet reception, finite-length effects of coding (but
//! see [`closed::erasure::batch_transmissions`]).

pub mod anypath;
pub mod certificate;
mod circulation;
pub mod closed;
pub mod error;
mod feasible;
mod flows;
pub mod fluid;
pub mod graph;
pub mod hyperarc;
pub mod interference;
mod master;
mod maxflow;
pub mod mean;
pub mod medium;
pub mod mesh;
pub mod multicast;
pub mod network;
mod order;
mod program;
mod scout;
pub mod sensing;

pub use certificate::{Certificate, Prices};
pub use error::Error;
pub use fluid::{Fluid, fluid_rate, max_flow};
pub use interference::{Heaviest, Interference, Rayleigh, Schedule, ScheduleOptions, schedule};
pub use mean::{MeanBound, mean_bound_cheap, mean_bound_exact};
pub use medium::Medium;
pub use mesh::{
    CliqueBound, Conflict, Mesh, MeshBound, MeshCertificate, MeshFlow, MeshLink, MeshOptions,
    Objective, clique_bound, mesh_bound,
};
pub use multicast::{Bound, Options, multicast, single_receivers};
pub use network::Network;
pub use sensing::{SensedSet, overfull_sets};
