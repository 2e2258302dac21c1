//! Pacifier: one file to many nodes of a lossy wireless mesh, whole and without waiting for the worst of them.
//!
//! D. Koutsonikolas, Y. C. Hu, C.-C. Wang, "Pacifier: High-Throughput, Reliable Multicast Without 'Crying
//! Babies' in Wireless Mesh Networks". Comments like `//= pacifier III-C` name its sections.
//!
//! Four ideas, each a part that can be left out ([`Variant`]):
//!
//! 1. **A tree.** The shortest-ETX paths to the receivers make a tree; its inner nodes forward whatever they
//!    overhear, from whomever. How much is laid down by *credits* ([`credit`]): so many transmissions for each
//!    packet heard from a node nearer to the source.
//! 2. **Coding.** The file is cut into batches of k packets. Source and forwarding nodes send random linear
//!    combinations over GF(2^8); any k independent ones decode. Nobody asks for a particular packet.
//! 3. **Rate limiting.** The source waits until it overhears a child before it sends the next packet.
//! 4. **Round-robin batches.** The source leaves a batch when its share is spent or one receiver has it, and
//!    comes back to it in the next round for the others. So the worst receiver (the "crying baby") delays nobody.
//!
//! | [`Variant`] | forwarding nodes | source | batches |
//! |---|---|---|---|
//! | `More` | belts, pruned ([`baseline::more`]) | as fast as the MAC allows | one after the other |
//! | `Tree` | tree | as fast as the MAC allows | one after the other |
//! | `TreeRl` | tree | waits for its children | one after the other |
//! | `Pacifier` | tree | waits for its children | in turns |
//! | `Improved` | tree; who promises most goes first ([`improved`]) | lets relays with more to give go first | all of a window |
//!
//! A network's life: every node runs a [`Prober`] for a while; the counts of all become [`Links`]; then every node
//! is a [`Node`] over these links.
//!
//! ```
//! use std::sync::Arc;
//! use chappe_core::{Address, Arrival, Classes, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed};
//! use chappe_pacifier::{Config, Links, Node};
//!
//! let links = Arc::new(Links::new(2, vec![0.0, 0.9, 0.9, 0.0])?);
//! let node = |me| {
//!     let random = Seed(1).stream(Purpose::Node(u32::from(me)));
//!     Node::new(Config::default(), me, links.clone(), random)
//! };
//! let (mut source, mut receiver) = (node(0)?, node(1)?);
//! let file: Arc<[u8]> = vec![7; 100_000].into();
//! source.offer(file.clone(), &[1])?;
//! receiver.expect(0, file.len())?;
//!
//! // The world's simplest link: it loses nothing and takes no time.
//! let (now, mut sdu) = (Instant::ZERO, [0; 2304]);
//! while !source.source_done() {
//!     let mut carry = |from: &mut Node, to: &mut Node| {
//!         let Some(send) = from.poll_link(now, Classes::ALL, &mut sdu) else { return };
//!         let (from_address, sdu) = (Address::node(from.number()), &sdu[..send.len]);
//!         let arrival = Arrival { from: from_address, to: send.to, sdu, power: None };
//!         to.handle_link(now, LinkEvent::Received(arrival));
//!         let outcome = match send.to.is_broadcast() {
//!             true => Outcome::Unconfirmed,
//!             false => Outcome::Acknowledged { attempts: 1 },
//!         };
//!         from.handle_link(now, LinkEvent::Sent { token: send.token, outcome });
//!     };
//!     carry(&mut source, &mut receiver);
//!     carry(&mut receiver, &mut source);
//! }
//! assert_eq!(receiver.object(), Some(&file[..]));
//! assert_eq!(receiver.received().batches_done, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where the paper is silent
//!
//! | question | our answer | where |
//! |---|---|---|
//! | direction of ETX | data: 1/p forward, as in its credits; ACK paths: 1/(p there * p back) | [`Links`] |
//! | equal costs | fewer hops, then the smaller node number | [`Links`] |
//! | negative L in eq. 1 | 0 | [`credit`] |
//! | 0/0 in eq. 4 | credit 0 | [`credit`] |
//! | is z_s k rounded? | up: the packet that brings the counter to 0 or below is the last | `source.rs` |
//! | credit at a batch change | starts again at 0 | `relay.rs` |
//! | largest credit counter | none (saturates at 2^54 transmissions) | `relay.rs` |
//! | credit in frames | 1/512 of a transmission, 16 bits, never rounded down to nothing | [`header`] |
//! | a late frame of the batch before | useful to receivers; does not flush a relay: frames carry a `turn` | [`header`] |
//! | a sender that is not in the list | its packet is used and earns no credit | `relay.rs` |
//! | on duty, but no packet of the batch yet | sends nothing; credit waits for the first packet | `relay.rs` |
//! | off duty in a new plan | stops at once | `relay.rs` |
//! | late ACK for an earlier batch | noted; that batch's next round is shorter | `source.rs` |
//! | one batch left, round robin | a new round of the same batch; nobody flushes | `source.rs` |
//! | an ACK during the source's wait | may end the batch, does not end the wait | `source.rs` |
//! | a link that does not report the end of a broadcast | the wait is 8 T_p longer, from when the link took the frame | `source.rs` |
//! | children of the source that only receive | not waited for; if there are no others there is no wait | `source.rs` |
//! | a receiver that forwards | keeps two buffers: the relay's is flushed, the receiver's is not | `node/inbox.rs` |
//! | an ACK that the MAC confirmed | has arrived ([`AckProof`]) | `config.rs` |
//! | an ACK that the MAC gave up | "not ACKed": M, N or a timer resend it | `acks.rs` |
//! | nothing is overheard at all | the timer, 200 ms and doubling | `config.rs` |
//! | an ACK lost in a crashed hop | after 320 more frames of its batch the receiver starts over | `config.rs` |
//! | exactly at MORE's threshold | stays | [`baseline::more`] |
//! | who is upstream in merged belts (MORE) | farther from a destination whose belt has both; frames list the destinations | `relay.rs` |
//! | a receiver cut off by MORE's pruning | stays, and MORE never finishes: the paper's Fig. 2 | [`Offered`] |
//! | a receiver without any path | reported by [`Node::offer`] and left out | [`Offered`] |
//! | an empty object | complete at once, without a frame | [`Progress`] |
//!
//! **Architecture invariant:** nothing here reads a clock or knows the medium, the MAC, or that it is measured.

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

mod common;
mod config;
mod counters;
pub mod frame;
pub mod improved;
mod layout;
mod links;
mod node;
mod object;
pub mod paper;
mod probe;
mod set;
mod store;
mod transfer;
pub mod tree;

pub use common::{Common, ConfigError};
pub use config::Config;
pub use counters::Counters;
pub use links::{Links, LinksError, NODES_MAX, Paths};
pub use node::Node;
pub use object::Object;
pub use probe::{ProbeConfig, Prober};
pub use set::NodeSet;
pub use store::K_MAX;
pub use transfer::{ExpectError, OfferError, Offered, Progress};
