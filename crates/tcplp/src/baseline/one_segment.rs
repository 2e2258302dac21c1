//! Stop-and-wait TCP as in uIP: one segment in flight, no options but the MSS, recovery by timeout only.
//!
//! It is [`tcp`](crate::tcp) with nearly everything turned off. Give the socket a flight table of one entry, which limits it
//! to one segment in flight, and these parameters. uIP's own timer ticks each 0.5 s and its first timeout is 3 s.

use chappe_core::Duration;

use crate::tcp::Config;

/// The length of such a socket's flight table.
pub const FLIGHT: usize = 1;

//= tcplp 6.2: simple stacks allow one segment in flight
/// uIP's behaviour in the terms of this TCP.
pub const CONFIG: Config = Config {
    rto_initial: Duration::from_secs(3),
    // RFC 6298's floor; uIP's estimate in whole ticks of 0.5 s cannot be below one.
    rto_min: Duration::from_secs(1),
    // UIP_MAXRTX, UIP_MAXSYNRTX.
    retries_max: 8,
    syn_retries_max: 5,
    // Every segment is acknowledged at once: the sender waits for it.
    delayed_ack: Duration::ZERO,
    ack_every: 1,
    initial_window: 1,
    nagle: false,
    sack: false,
    timestamps: false,
    window_scale: false,
    ecn: false,
    limited_transmit: false,
    rack: false,
    tail_loss_probe: false,
    prr: false,
    undo: false,
    idle_restart: false,
    ..Config::STANDARD
};
