//! Results of runs: the document, statistics, comparisons, and figures as data.
//!
//! ```
//! use chappe_results::statistics::Summary;
//!
//! let goodput_kbps = [101.0, 97.0, 104.0];
//! let summary = Summary::of(&goodput_kbps);
//! assert_eq!(summary.n, 3);
//! assert!(summary.interval().is_some_and(|(low, high)| low < 101.0 && 101.0 < high));
//! ```
//!
//! | part | module |
//! |---|---|
//! | one run, one receiver, a document of several runs; units in the names | [`document`] |
//! | which program made a result, on which machine | [`provenance`] |
//! | means with t-intervals | [`statistics`] |
//! | comparisons paired by seed | [`compare`] |
//! | the cells of a sweep, each against a reference | [`sweep`] |
//! | what differs between two results | [`difference`] |
//! | a paper's figure: series with the paper's values and the bound, claims | [`figure`] |
//!
//! **Architecture invariant:** plain data; no result is read or written here, nothing is drawn.

pub mod compare;
pub mod difference;
pub mod document;
pub mod figure;
pub mod provenance;
pub mod statistics;
pub mod sweep;

pub use document::*;
