//! A trial and its result: what runs with a seed, and what is measured.

use chappe_core::{Duration, Seed};
use chappe_lab::run::RunError;

/// The time before measuring begins: slots synchronise, and TCP leaves slow start.
pub const WARM_UP: Duration = Duration::from_secs(2);

/// What one run of a trial measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Payload delivered at all ends together, in bit/s.
    pub bps: f64,
    /// Mean delay of delivered datagrams in s (UDP), or mean round-trip time of pings.
    pub delay: f64,
    /// The 99th percentile of that delay, in s.
    pub p99: f64,
    /// Mean difference between the delays of consecutive datagrams, in s. RFC 3550's estimate (6.4.1), which iperf prints,
    /// tends to it.
    pub jitter: f64,
    /// Share of the offered datagrams that never arrived (UDP).
    pub residual: f64,
    /// Share of the offered datagrams that arrived after the class's deadline, or never (UDP). For pings, the share that took
    /// longer than two cycles.
    pub late: f64,
    /// Share of the datagrams taken by a DCF that never arrived, warm-up included.
    pub undelivered: f64,
    /// Frames sent for each packet, minus one (slots).
    pub overhead: f64,
    /// Share of the settled bodies that the sender gave up (slots).
    pub given_up: f64,
    /// The longest time from the end of the first mast's slot to its next one, minus a slot's length, in s (slots over
    /// several hops).
    pub idle: f64,
    /// Lost frames whose preamble an interferer hid.
    pub hidden: u64,
    /// Lost frames that an interferer corrupted after their preamble.
    pub destroyed: u64,
}

/// A trial that runs with one seed at a time.
pub trait Experiment: Sync {
    /// Simulates the trial with `seed`. Fails if the description is inconsistent.
    fn run(&self, seed: Seed) -> Result<Measured, RunError>;
}
