//! A mesh router for Linux hosts: the library of `chappe mesh`.
//!
//! placeholder
#![forbid(unsafe_code)]

pub mod air;
pub mod announce;
pub mod answers;
pub mod daemon;
mod exports;
pub mod frame;
pub mod host;
pub mod node;
pub mod packet;
pub mod recovery;
pub mod settings;
pub mod status;
