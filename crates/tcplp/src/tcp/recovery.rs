//! The state of loss recovery: its phases, and what undo and rate reduction remember.
//!
//! ```text
//!            lost segment seen              all sent before it acknowledged
//!   Open ------------------------> Fast ------------------------------------> Open
//!    |  mark echoed (RFC 3168)      |
//!    +-------> Reduced --> Open     |  timeout
//!    +------------------------------+------> Loss --> Open
//! ```

use super::Seq;

/// The phase of loss recovery and congestion response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No recovery: slow start or congestion avoidance.
    #[default]
    Open,
    /// The window was reduced after an ECN mark, or after a loss that a probe repaired, until a round trip has passed.
    Reduced,
    /// Fast recovery (RFC 6582, RFC 6675).
    Fast,
    /// Recovery from a timeout, in slow start.
    Loss,
}

/// The variables of a recovery. Counts of octets saturate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// The `recover` of RFC 6582: recovery ends when this is acknowledged.
    pub recover: Seq,
    /// prr_delivered and prr_out: octets delivered and sent since recovery began; and RecoverFS (RFC 6937 3).
    pub(super) delivered: u32,
    pub(super) sent: u32,
    pub(super) flight: u32,
    /// cwnd and ssthresh from before the reduction, to undo it.
    pub(super) undo_cwnd: u32,
    pub(super) undo_ssthresh: u32,
    /// TSval of the first retransmission (RFC 3522 3.2).
    pub(super) stamp: u32,
    /// Retransmissions that no D-SACK has reported as duplicates (RFC 3708).
    pub(super) undo_left: u16,
    /// Duplicate acknowledgements in a row, counted without SACK only.
    pub duplicates: u8,
    /// The phase that the sender is in.
    pub phase: Phase,
}

impl Recovery {
    /// The state at the start of a connection. `recover` is the initial sequence number (RFC 6582 3.2).
    pub fn new(iss: Seq) -> Recovery {
        Recovery {
            recover: iss,
            ..Recovery::default()
        }
    }
}
