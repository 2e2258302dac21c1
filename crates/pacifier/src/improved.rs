//! The improved variant: every frame reports what its sender has, and nodes decide from these reports who sends what.
//!
//! Pacifier's relays follow credits, which come from delivery ratios measured before the transfer. Relays therefore repeat
//! packets that all neighbours have, or stop before all have them, and the source learns of either by ACKs from the other
//! end of the network. Nodes of this variant make no promises. Six rules replace the credits:
//!
//! 1. **Ranks in every frame** ([`report`]). For the batches in flight, a frame names how many independent packets its
//!    sender holds, in few octets. A node that has gained packets but has nothing to send sends a short report.
//!    Between two reports of a neighbour, a node estimates its ranks from the delivery ratios (`neighbours.rs`). A report
//!    does not cover frames that were in flight when it was written; the next one corrects the estimate. That time
//!    is a constant on a radio (`group/recent.rs`), and measured where queues and hosts delay frames (`flight.rs`,
//!    `group/timing.rs`).
//! 2. **The most expected innovation goes first** (`group/serving.rs`). A node sends the batch from which its neighbours
//!    gain most, its *worth*: the sum, over neighbours that lack a packet that it has, of the probability to reach
//!    them. Each frame carries the worth of its sender's next one (its *urge*). Where members share a channel, a node
//!    yields to a neighbour with a larger urge. So many batches are in flight, none waits for a badly connected receiver,
//!    and relays that have a batch serve it as the source does. Of two batches of the same worth the new one goes first, as
//!    long as all neighbours have room for it; a batch that makes room for a neighbour about to run out of it goes before both.
//! 3. **One node serves, the others wait** (`group/serving.rs`). Of all nodes that hold what a neighbour lacks and reach it
//!    about equally well, the one with the highest rank serves it. A random draw decides between equal ranks, and the source
//!    comes last, since only it has new batches. Each of the others waits until it has heard no node serve the
//!    neighbour for a while. So members that hear each other do not all repeat the same packets, and a neighbour is never
//!    left to a node that cannot hear it.
//! 4. **A relay wants only what a node behind it lacks** (`group/hearing.rs`). It reports the batches that it does not want,
//!    or has no room for: batches that a node does not name count as wanted, and neighbours send them.
//! 5. **Systematic coding**: the first frames of each batch are its packets, uncoded; all others are combinations.
//! 6. **Completion spreads as gossip** (`group/telling.rs`). The set of complete receivers is in every frame that has
//!    room for it, or in reports; each node merges it with its own. It replaces acknowledgements.
//!
//! A node takes plans (who takes part, whether the source has closed) only from nodes nearer to the source. So a network
//! follows a source that starts over, without comparing clocks.
//!
//! # Liveness
//!
//! Estimates stay wrong if a neighbour's frames do not arrive. A node therefore *doubts* a silent neighbour: its estimates fall back to the neighbour's
//! last report, at first of all batches and then of one at growing intervals (in turns of all). A node that lacks something repeats its report. Both
//! end with completion, so a finished network is silent. Members that have failed are named in reports, and the others find ways without them
//! (`group/gone.rs`).
//!
//! # Late receivers
//!
//! A receiver whose application keeps the batches, and which first hears a batch beyond its places, begins with that one. When it
//! has the rest of the object it collects the earlier batches in a second round, together with others that came late, as
//! from a data carousel. A report's base then moves back, and does not tell how much its sender has.
//!
//! # Turns and the outer code
//!
//! Members of a transfer may send in turns instead ([`turns`], `group/slots.rs`). Batches of an outer code then follow those of the object
//! (`outer.rs`), so that a receiver needs rank in all batches together and no batch has to become complete. A long object has several segments, each with
//! a code of its own (`segments.rs`). A receiver reports no batch that is half a window behind any more, while coded ones of its segment are left. It keeps the
//! packets of a segment until it solves for it: at most those of its batches, of as many coded ones and of [`header::CODED`] more. Objects that the application reads or
//! keeps batch by batch have no outer code.
//!
//! # Limits
//!
//! Batches have 1 to 96 packets. One-way links are not used. A relay holds a window of batches: if it serves a receiver that
//! is more than a window behind, it delays the nodes behind it. A receiver whose application keeps the batches is such
//! a relay, too: it collects batches that it no longer holds again for the nodes behind it, in half of its places until it is
//! complete, and then in all of them.

mod config;
mod fit;
mod flight;
mod group;
pub mod header;
mod kept;
mod narrow;
mod neighbours;
mod node;
mod outer;
mod pairs;
mod places;
pub mod report;
mod segments;
mod shares;
mod shelf;
mod slot;
pub mod turns;

pub use config::{Config, Settings};
pub use narrow::Vector;
pub(crate) use node::Node;

/// Most packets in a batch of this variant: a rank shares its octet with the codes of runs ([`report`]).
pub const K_MAX: usize = 96;
