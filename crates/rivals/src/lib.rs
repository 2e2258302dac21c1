//! Other people's protocols that experiments compare with.
//!
//! A rival is here if it is neither this project's own protocol nor one that a reproduced paper defines: those live with
//! the protocol that they are compared with (`chappe_wildnet::baseline`, `chappe_mac::dot11`). Each is written from its
//! specification and source, without clock or I/O, so that it runs on the same simulated links as everything else.
//!
//! ```
//! use chappe_core::{Duration, Instant};
//! use chappe_rivals::{Kcp, KcpConfig};
//!
//! let config = KcpConfig::fast3();
//! let (mut here, mut there) = (Kcp::new(config)?, Kcp::new(config)?);
//! let (mut now, mut datagram, mut octets) = (Instant::ZERO, [0; 1500], [0; 16]);
//! assert_eq!(here.write(now, b"towers"), 6);
//! now += Duration::from_millis(10); // data leaves with a flush, every 10 ms
//! here.handle_timeout(now);
//! while let Some(len) = here.poll(&mut datagram) {
//!     now += Duration::from_millis(10);
//!     there.handle(now, &datagram[..len]);
//! }
//! assert_eq!(there.read(&mut octets), 6);
//! # Ok::<(), chappe_rivals::KcpError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`kcp`] | KCP by its own rules and by kcp-go's, with kcptun's static parity |
//!
//! **Architecture invariant:** nothing here reads a clock or knows the medium. Only experiments and their tests use this crate.
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

extern crate alloc;

pub mod kcp;
mod store;

pub use kcp::{Kcp, KcpConfig, KcpCounters, KcpError, KcpNode, KcpRules};
