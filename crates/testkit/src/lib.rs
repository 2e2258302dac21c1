//! What the tests, examples and benchmarks of several rooms share.
//!
//! ```
//! use chappe_testkit::SplitMix64;
//!
//! let mut random = SplitMix64(7);
//! assert!((0..100).all(|_| random.unit() < 1.0));
//! ```
//!
//! Only development dependencies point here, so a part may use the host's files and allocator where a library of the
//! protocol rooms may not.

pub mod allocation;
pub mod processor;
pub mod random;
pub mod saturated;
pub mod script;
mod skip;

pub use random::SplitMix64;
pub use saturated::{Backlog, Saturated};
pub use skip::{SKIPPED_FILE, skip};
