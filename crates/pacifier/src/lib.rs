//! Pacifier: reliable multicast of one file to many nodes of a lossy wireless mesh, in which the worst-connected receiver
//! does not delay the others.
//!
//! D. Koutsonikolas, Y. C. Hu, C.-C. Wang, "Pacifier: High-Throughput, Reliable Multicast Without 'Crying
//! Babies' in Wireless Mesh Networks". Comments like `//= pacifier III-C` name its sections.
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
//! // The simplest link: it loses nothing and takes no time.
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
//! A node takes part in a network in two steps. Every node runs a [`Prober`] for a while, and the counts of all become
//! [`Links`]. Then every node is a [`Node`] over these links.
//!
//! # The protocols
//!
//! Pacifier combines four ideas; its baselines lack some of them:
//!
//! 1. **A tree.** The union of the shortest-ETX paths to the receivers is a tree; its inner nodes forward the packets that
//!    they overhear from any node. *Credits* ([`credit`](paper::credit)) set how many transmissions a node makes for each
//!    packet heard from a node nearer to the source.
//! 2. **Coding.** The file is cut into batches of k packets. Source and forwarding nodes send random linear
//!    combinations over GF(2^8); any k independent ones decode. No receiver asks for a particular packet.
//! 3. **Rate limiting.** The source waits until it overhears a child before it sends the next packet.
//! 4. **Round-robin batches.** The source leaves a batch when its share is spent or one receiver has it, and
//!    returns to it in the next round for the others. So the worst receiver (the "crying baby") delays no other.
//!
//! | configuration | forwarding nodes | source | batches |
//! |---|---|---|---|
//! | [`paper::Variant::More`] | belts, pruned ([`more`](paper::more)) | as fast as the MAC allows | one after the other |
//! | [`paper::Variant::Tree`] | tree | as fast as the MAC allows | one after the other |
//! | [`paper::Variant::TreeRl`] | tree | waits for its children | one after the other |
//! | [`paper::Variant::Pacifier`] | tree | waits for its children | in turns |
//! | [`improved::Config`] | tree; the node with the largest expected gain goes first | yields to relays with a larger expected gain | all of a window |
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `node`, `config` | [`Node`] and [`Config`]: one of the paper's protocols or the improved variant |
//! | [`paper`] | Pacifier, TREE+RL, TREE, MORE: node, configuration, frames, credits, belts |
//! | [`improved`] | the improved variant: node, configuration, frames |
//! | `common` | [`Common`], the parameters that both have, and [`ConfigError`] |
//! | `links`, [`tree`], `probe` | delivery ratios and shortest paths; the multicast tree; the ETX phase |
//! | [`mod@frame`], `object`, `layout`, `store` | the first octets of all frames; objects, and how they are cut; packets of one batch |
//! | `transfer`, `counters`, `set` | results and errors for the application; counters; [`NodeSet`] |
//!
//! # Where the paper is silent
//!
//! | question | our answer | where |
//! |---|---|---|
//! | direction of ETX | data: 1/p forward, as in its credits; ACK paths: 1/(p there * p back) | [`Links`] |
//! | equal costs | fewer hops, then the smaller node number | [`Links`] |
//! | negative L in eq. 1 | 0 | [`credit`](paper::credit) |
//! | 0/0 in eq. 4 | credit 0 | [`credit`](paper::credit) |
//! | is z_s k rounded? | up: the packet that brings the counter to 0 or below is the last | `paper/source.rs` |
//! | credit at a batch change | restarts at 0 | `paper/relay.rs` |
//! | largest credit counter | none (saturates at 2^54 transmissions) | `paper/relay.rs` |
//! | credit in frames | 1/512 of a transmission, 16 bits, never rounded down to 0 | [`header`](paper::header) |
//! | a late frame of the batch before | useful to receivers; does not flush a relay: frames carry a `turn` | [`header`](paper::header) |
//! | a sender that the list of forwarding nodes lacks | its packet is used but earns no credit | `paper/relay.rs` |
//! | a listed relay without a packet of the batch | sends nothing; credit waits for the first packet | `paper/relay.rs` |
//! | a relay that a new plan no longer lists | stops at once | `paper/relay.rs` |
//! | late ACK for an earlier batch | recorded; that batch's next round is shorter | `paper/source.rs` |
//! | one batch left, round robin | a new round of the same batch; no relay flushes | `paper/source.rs` |
//! | an ACK during the source's wait | may end the batch, but not the wait | `paper/source.rs` |
//! | a link that does not report the end of a broadcast | the wait is as many T_p longer as the pacing's factor, from when the link took the frame | `paper/source.rs` |
//! | how many transmissions the source waits for: the printed sum or what its sentence says | what a packet triggers ([`Pacing`](paper::Pacing)) | `paper/config.rs` |
//! | children of the source that only receive | the source does not wait for them, and not at all if there are no others | `paper/source.rs` |
//! | a receiver that forwards | keeps two buffers: the relay's is flushed, the receiver's is not | `paper/node/inbox.rs` |
//! | an ACK that the MAC confirmed | counts as arrived ([`AckProof`](paper::AckProof)) | `paper/config.rs` |
//! | an ACK whose retries are exhausted | "not ACKed": M, N or a timer resends it | `paper/acks.rs` |
//! | a node overhears nothing | the timer, 200 ms and doubling | `paper/config.rs` |
//! | an ACK lost in a crashed hop | after 320 more frames of its batch the receiver starts over | `paper/config.rs` |
//! | when MORE's pruning counts as having cut a receiver off | its belt takes over twice the transmissions of the unpruned one | [`more`](paper::more) |
//! | a node exactly at MORE's threshold | is kept | [`more`](paper::more) |
//! | who is upstream in merged belts (MORE) | farther from a destination whose belt has both; frames list the destinations | `paper/relay.rs` |
//! | a receiver cut off by MORE's pruning | stays in the group, and MORE never finishes: the paper's Fig. 2 | [`Offered`] |
//! | a receiver without any path | reported by [`Node::offer`] and left out | [`Offered`] |
//! | an empty object | complete at once, without a frame | [`Progress`] |
//!
//! **Architecture invariant:** no code here reads a clock, or depends on the medium, the MAC or the experiment.

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
mod peek;
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
pub use peek::peek;
pub use probe::{ProbeConfig, Prober};
pub use set::NodeSet;
pub use store::K_MAX;
pub use transfer::{ExpectError, OfferError, Offered, Progress};
