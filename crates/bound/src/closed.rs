//! Bounds that need no program: one formula, one file, one source each.

pub mod arq;
pub mod chain;
pub mod dcf;
pub mod erasure;
pub mod lowpan;
