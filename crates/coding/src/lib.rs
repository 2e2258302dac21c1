//! Arithmetic in GF(2^8), random linear network coding and a systematic erasure code, for packets.
//! No allocator, no clock, no random generator: memory and random bytes come from the caller.
//!
//! A batch travels from a source over a relay to a receiver. The relay recodes without decoding.
//!
//! ```
//! use chappe_coding::{Batch, Encoder, Rows, Shape};
//! # let mut state = 1u64;
//! # let mut random = |bytes: &mut [u8]| for byte in bytes {
//! #     state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//! #     *byte = (state >> 56) as u8;
//! # };
//! let shape = Shape::new(4, 6)?; // four packets of six bytes
//! let file = b"Chappe's towers, 1794...";
//! let source = Encoder::new(Rows::new(shape, file)?)?;
//! let mut relay = Batch::<4, _>::new(shape, [0; 24])?;
//! let mut receiver = Batch::<4, _>::new(shape, [0; 24])?;
//!
//! let (mut coefficients, mut payload) = ([0; 4], [0; 6]);
//! while !receiver.is_full() {
//!     source.encode_random(&mut random, &mut coefficients, &mut payload)?;
//!     let _ = relay.insert(&coefficients, &payload);
//!     relay.recode(&mut random, &mut coefficients, &mut payload)?;
//!     let _ = receiver.insert(&coefficients, &payload);
//! }
//! receiver.decode()?;
//! assert_eq!(receiver.into_payloads(), *file);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The types
//!
//! | type | what it does |
//! |---|---|
//! | [`Encoder`] | source: makes coded packets from borrowed source packets |
//! | [`Batch`] | relay and receiver: stores packets, recodes at any rank, decodes |
//! | [`Basis`] | the coefficient side of a batch alone: rank and innovation, no payload |
//! | [`Precoded`] | a packet made in advance and updated by late arrivals |
//! | [`Erasure`] | n data + m parity packets, any n of them suffice |
//! | [`Outer`] | coded batches: combinations of all packets of an object |
//! | [`Equations`] | solves for packets from equations in them |
//! | [`Kernel`] | the instruction set in use, and the raw operations |
//! | [`Shape`], [`Rows`], [`RowsMut`] | packets in a flat buffer |
//! | [`field`] | single elements |
//!
//! # Network coding in one paragraph
//!
//! A coded packet is a sum of source packets, each multiplied by a field element; it carries those
//! *coefficients*. Sums of sums are again such sums, so a relay can *recode* without decoding. A
//! packet is *innovative* for a node if its coefficients are linearly independent of those that
//! the node has; the number of independent ones is the *rank*. At rank k, the number of packets in
//! the batch, the node can solve for the sources. Innovation is decided from the coefficients
//! alone, so a redundant packet costs nanoseconds. The payload of an innovative one is stored as
//! received: elimination touches only rows of 2k bytes, which end up as the inverse matrix, and
//! one pass over the payloads then gives all sources.
//!
//! # Wire format
//!
//! Four things are fixed permanently, because nodes of different versions must agree on them.
//!
//! 1. **The field** is GF(2) modulo x^8 + x^4 + x^3 + x^2 + 1 ([`field::POLYNOMIAL`], 0x11d). A byte
//!    is an element, its bit i the coefficient of x^i. This polynomial, and not that of AES
//!    (0x11b), because it is the one of the field's erasure codes: RFC 5510 (Reed-Solomon FEC) and
//!    RFC 8681 (random linear codes) prescribe it and ISA-L computes in it, so an independent
//!    implementation can check ours byte for byte; and x generates its multiplicative group. AES's
//!    polynomial has a dedicated instruction (`GF2P8MULB`), but that is no gain: the affine
//!    instruction multiplies in any polynomial as fast and takes the coefficient from memory
//!    without a shuffle. Where a product of bytes by bytes is needed, two elements' names are
//!    changed to AES's field and the product's back, by one affine instruction each.
//! 2. **A coefficient vector** is one byte per source packet, in order; the systematic packet i has
//!    1 at i and 0 elsewhere ([`unit()`]). The all-zero vector is never sent.
//! 3. **The erasure code's matrix**: parity row i has (n + j) / (n + i + j) for data packet j, where
//!    n, n + i and j are field elements and + is exclusive or.
//! 4. **The outer code's coefficients**: outputs of SplitMix64, as [`Outer`]'s file says.
//!
//! # Supported
//!
//! - Batches of 1 to 255 packets, a coefficient vector of any content, packets of any length;
//! - systematic packets and reading of source packets before the batch is full;
//! - erasure codes with n + m <= 256;
//! - GFNI with 512-bit and 256-bit registers, AVX-512BW, AVX2, SSSE3, NEON and plain Rust, chosen at run time,
//!   all giving the same bytes.
//!
//! # Not supported
//!
//! - Other fields, sparse or banded coefficients, sliding windows;
//! - packets of different lengths in one batch (pad them);
//! - error correction: a corrupted packet corrupts its batch, so check frames before inserting
//!   them;
//! - constant time: table look-ups depend on the coefficients, which are not secret.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(
        dead_code,
        reason = "tables and accessors that only the vector kernels use"
    )
)]

#[cfg(test)]
extern crate std;

mod basis;
mod batch;
mod draw;
mod encoder;
mod erasure;
mod error;
pub mod field;
mod kernel;
mod matrix;
mod outer;
mod portable;
mod rows;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod simd;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "scalar.rs"]
mod simd;

pub use basis::{Basis, Insertion, MAX_BATCH};
pub use batch::{Batch, Precoded};
pub use draw::non_zero;
pub use encoder::{Encoder, unit};
pub use erasure::{Erasure, ReconstructError};
pub use error::BatchError;
pub use kernel::Kernel;
pub use outer::{Equations, MAX_SOURCES, Outer};
pub use rows::{MAX_ROWS, Rows, RowsMut, Shape, ShapeError};
