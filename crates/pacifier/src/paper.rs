//! The paper's protocols: Pacifier, and what it is compared with. TREE and TREE+RL are Pacifier with parts switched off
//! ([`Variant`]); MORE chooses its forwarding nodes in its own way ([`more`]).
//!
//! | module | holds |
//! |---|---|
//! | `node` | one node in all its roles, frames in and out |
//! | `source`, `plan` | the batch on the air, the source's waiting, the forwarding nodes for those that lack the batch |
//! | `relay` | one batch, the credit counter, combinations |
//! | `receiver` | batches until they are decoded |
//! | `acks` | the ACK cache: overhearing, resending |
//! | [`credit`], [`more`] | transmissions of each node on a tree, and in MORE's belts |
//! | [`header`] | the frames |

mod acks;
mod config;
pub mod credit;
pub mod header;
pub mod more;
mod node;
mod plan;
mod receiver;
mod relay;
mod source;

pub use config::{AckProof, Config, Expects, PaceFrom, Pacing, Variant};
pub(crate) use node::Node;
