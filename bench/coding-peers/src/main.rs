//! Our codes and other libraries on the same packets, in one run.
//!
//! Every operation handles one batch: encode makes 32 coded packets of 32, decode gets the 32 sources
//! back from 32 coded packets and no source. Codes that are not random linear ones get the same
//! packets (n = 32 data, m = 32 parity, all data lost). What a library must do per batch is timed;
//! what it may keep between batches (plans, tables, working memory) is not, unless the line says so.

#[allow(dead_code, reason = "part of it serves the other benchmark")]
#[path = "../../../crates/coding/benches/coding/measure.rs"]
mod measure;
#[path = "../../../crates/coding/benches/coding/roof.rs"]
mod roof;

mod isal;
mod ours;
mod peers;

use measure::Report;

/// Packets in a batch.
pub const K: usize = 32;
/// Bytes in a packet.
pub const LEN: usize = 1500;
/// Multiply-adds of bytes for a dense 32 x 32 matrix.
pub const MACS: usize = K * K * LEN;

fn main() {
    let filter = std::env::args().nth(1);
    let mut report = Report::new(roof::measure(), filter);
    ours::run(&mut report);
    peers::rlnc(&mut report);
    isal::run(&mut report);
    peers::reed_solomon_simd(&mut report);
    peers::raptorq(&mut report);
}
