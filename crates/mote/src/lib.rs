//! TCP, UDP and DNS for async firmware: the sockets of `embedded-io-async` and `embedded-nal-async` over `chappe-tcplp`, and
//! the task that drives a radio. `no_std`, no allocation; any executor will do.
//!
//! ```
//! use chappe_mote::{Clock, Error, Radio, Runner, Stack, TcpListener};
//! use embedded_io_async::{Read, Write};
//!
//! /// A task of the program: answers each line by its length.
//! async fn answer<K: Clock>(stack: &Stack<'_, K>) -> Result<(), Error> {
//!     let listener = TcpListener::bind(stack, 7)?;
//!     loop {
//!         let mut socket = listener.accept().await;
//!         let mut line = [0; 64];
//!         while let Ok(len @ 1..) = socket.read(&mut line).await {
//!             socket.write_all(&[len as u8]).await?;
//!         }
//!     }
//! }
//!
//! /// The other one: frames and timers.
//! async fn network<K: Clock, R: Radio>(stack: &Stack<'_, K>, radio: R) {
//!     Runner::new(stack, radio).run().await;
//! }
//! ```
//!
//! | type | what |
//! |---|---|
//! | [`Stack`] | a node that several tasks of one executor share |
//! | [`Runner`] | carries frames and time between the stack and a [`Radio`] |
//! | [`TcpSocket`], [`TcpListener`] | TCP; a socket is `Read`, `Write`, and what `TcpConnect` returns |
//! | [`UdpSocket`] | UDP; also by `UdpStack` |
//! | [`Sockets`], [`Place`], [`Mailbox`] | the memory that the program lends |
//! | [`Clock`] | time; `EmbassyClock` with the feature `embassy-time` |
//! | [`DnsError`] | names, by `embedded_nal_async::Dns`, with the feature `dns` |
//! | [`Island`] | a program of tasks as a node of a simulator, with the feature `island`, which allocates |
//! | `tls` | a client of TLS 1.3 with a pre-shared key, with the feature `tls` |
//! | `smoltcp_device` | smoltcp's sockets over our 6LoWPAN, and ours over its devices, with the feature `smoltcp` |
//!
//! `tests/suite` runs two such programs on simulated 802.15.4; `firmware/thermometer` is a whole one.

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

#[cfg(feature = "island")]
extern crate alloc;

mod clock;
#[cfg(feature = "dns")]
mod dns;
mod error;
#[cfg(feature = "island")]
mod island;
mod mailbox;
mod nal;
mod radio;
mod runner;
#[cfg(feature = "smoltcp")]
pub mod smoltcp_device;
mod sockets;
mod stack;
mod tcp;
#[cfg(feature = "tls")]
pub mod tls;
mod udp;
mod waker;

pub use clock::Clock;
#[cfg(feature = "embassy-time")]
pub use clock::EmbassyClock;
#[cfg(feature = "dns")]
pub use dns::DnsError;
pub use error::Error;
#[cfg(feature = "island")]
pub use island::{Air, Antenna, Island, Task, Virtual};
pub use mailbox::Mailbox;
pub use radio::{Event, Radio, What};
pub use runner::Runner;
pub use sockets::{Place, Sockets};
pub use stack::{Mote, Sharing, Stack};
pub use tcp::{TcpListener, TcpReader, TcpSocket, TcpWriter};
pub use udp::UdpSocket;
