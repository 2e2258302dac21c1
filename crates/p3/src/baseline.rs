//! What P³ is compared with in its paper.

pub mod pip;
