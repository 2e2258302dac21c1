//! Programs of async tasks on simulated 802.15.4.

mod datagrams;
mod island;
mod names;
#[cfg(feature = "smoltcp")]
mod smoltcp;
mod streams;
#[cfg(feature = "tls")]
mod tls;
