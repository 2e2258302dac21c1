//! scratch
pub mod compare;
pub mod import;
pub mod input;
pub mod nearest;
pub mod provenance;
pub mod quantity;
pub mod results;
pub mod scenario;
pub mod statistics;
pub mod store;
pub mod table;
