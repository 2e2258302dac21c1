//! scratch
pub mod compare;
pub mod demo;
pub mod doctor;
pub mod draw;
pub mod figure;
pub mod import;
pub mod input;
pub mod nearest;
pub mod pacifier;
pub mod plan;
pub mod provenance;
pub mod quantity;
pub mod results;
pub mod run;
pub mod scenario;
pub mod session;
pub mod statistics;
pub mod store;

pub mod table;
