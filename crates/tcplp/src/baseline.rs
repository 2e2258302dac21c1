//! The baselines that TCPlp is compared with: applications over CoAP, and a TCP with one segment in flight.
//!
//! | type | what |
//! |---|---|
//! | [`Post`], [`Receive`] | a bulk transfer by CoAP, both ends |
//! | [`Report`] | sense-and-send by CoAP |
//! | [`Fetch`] | gets a page by CoAP, block by block |
//! | [`one_segment`] | the parameters of a stop-and-wait TCP such as uIP's |
//!
//! The applications run on a [`Host`](crate::host::Host), as TCP's do.

mod fetch;
pub mod one_segment;
mod report;
mod transfer;

pub use fetch::Fetch;
pub use report::Report;
pub use transfer::{Post, Receive};
