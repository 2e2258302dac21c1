//! DPCLO: a mesh of routers that decide by queue differences, and the paper's evaluation of it (V).

pub mod access;
mod carry;
mod figure2;
mod figure5;
mod figure7;
mod figure8;
mod load;
pub mod mesh;
mod optimum;
mod paper;
mod plan;
mod scene;
mod sheet;
mod station;
mod streams;
mod trial;

pub use paper::PAPER;
pub use plan::{Dpclo, SYSTEM, Variant};

#[cfg(test)]
mod tests;
