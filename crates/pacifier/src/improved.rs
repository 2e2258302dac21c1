//! The improved variant: every frame says what its sender has, and that decides who sends what.
//!
//! Pacifier's relays follow credits, which are promises from delivery ratios measured before the transfer: they
//! repeat what everybody has, stop before everybody has it, and the source learns of either by ACKs from the other
//! end of the network. Here nobody promises anything. Six rules, each in a file:
//!
//! 1. **Ranks in every frame** ([`report`]). A frame names, for the batches in flight, how many independent packets
//!    its sender holds, in few octets. Who has nothing to send but gained something says so in a short report.
//!    Between two words of a neighbour a node counts on with the delivery ratios (`neighbours.rs`), and what it says
//!    does not cover frames that were under way meanwhile; the next word puts it right. How long that is, is a constant on
//!    a radio (`group/recent.rs`), and measured where queues and hosts delay frames (`flight.rs`, `group/timing.rs`).
//! 2. **The most expected innovation goes first** (`group/serving.rs`). A node sends the batch from which its neighbours
//!    gain most, its *worth*: the sum, over neighbours that lack something that it has, of the probability to reach
//!    them. Each frame says what its sender's next one is worth (its *urge*), and where members share a channel a node lets
//!    a neighbour with a larger urge go first. So many batches are in flight, none waits for a badly connected receiver,
//!    and relays that have a batch serve it as the source does. New batches go before old ones of the same worth, as
//!    long as all have room for them; who is about to run out of room is served before that.
//! 3. **One serves, the others wait** (`group/serving.rs`). Of all that hold what a neighbour lacks and reach it about
//!    equally well, the one with the highest rank does it, by lot if there are several, and the source last, since only it
//!    has new batches. Whoever comes after it waits until nobody has been heard doing it for a while. So members that hear
//!    each other do not all repeat the same, and nobody is left to one who cannot hear it.
//! 4. **A relay wants what somebody behind it lacks**, nothing else (`group/hearing.rs`). For what it does not want, or has
//!    no room, it says so: all that a node does not name counts as wanted, and is sent.
//! 5. **Systematic**: the first frames of each batch are its packets, uncoded; all others are combinations.
//! 6. **Completion spreads as gossip** (`group/telling.rs`): the set of complete receivers stands in every frame that has
//!    room for it, or in reports, and is united with what others know. It replaces acknowledgements.
//!
//! Plans (who takes part, whether the source has closed) are taken from nodes nearer to the source only, so a source
//! that starts over is followed without anybody's clock.
//!
//! # What keeps it going
//!
//! Guesses may be wrong for ever if a neighbour's frames do not arrive. A neighbour that has been silent is therefore
//! *doubted*: guesses about it fall back to what it said last, at growing intervals. A node that lacks something
//! repeats its report. Both end with completion, so a finished network is silent.
//!
//! # Limits
//!
//! Batches of 1 to 64 packets. A link that works in one direction only is of no use. Relays hold a window of batches:
//! one that serves a receiver which is more than a window behind holds up those behind it. A receiver whose application
//! keeps the batches is such a relay, too: what it does not hold any more it collects again for those behind it, half of its
//! places for them until it is complete, and then all.

mod config;
mod flight;
mod group;
pub mod header;
mod neighbours;
mod node;
pub mod report;
mod shelf;

pub use config::{Config, Settings};
pub(crate) use node::Node;

/// Most packets in a batch of the variant: a rank takes one octet, beside the runs.
pub const K_MAX: usize = 64;
