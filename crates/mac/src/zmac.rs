//! ZMAC+: a burst of energy claims the channel by priority, and time slots decide among equals.
//!
//! Warrier, Le and Rhee put three levels of priority on Z-MAC (Rhee, Warrier, Aia, Min, "Z-MAC: a hybrid MAC for wireless
//! sensor networks", 2005). For a frame of level q (0 the most urgent):
//!
//! ```text
//!   channel idle    SIFS + q T      burst T         owner:      0 .. To slots            data   SIFS   ACK
//! ----------------|-----------|##############|--- others: To .. Tno slots ---------|##########|----|####|
//!                  heard a burst meanwhile:    heard a frame meanwhile:
//!                  silent for Tno slots        the claim is lost, begin again
//! ```
//!
//! - A station at a less urgent level hears the burst of a more urgent one and **stays silent for its contention
//!   window**. The paper says "backs off"; without that silence it would burst again while the winner still counts.
//! - Two stations of one level burst together and cannot hear each other. The back-off decides: 0 to To slots in the own
//!   time slot, To to Tno in another's.
//! - Bursts reach as far as carrier sense, so they do not order hidden nodes. Only time slots do.
//! - **Notification** ([`Ecn`]): a node that loses frame after frame has its receiver notify the neighbours. A node that
//!   receives frame after frame it cannot decode, or that waits long, notifies its own neighbours. For a while these keep
//!   out of time slots that a node two hops away owns (Z-MAC's high contention level).
//!   That reserves time slots of nodes that have nothing to send. [`Ecn::SPARING`] reserves those of the node that suffers alone.
//! - **Savings** ([`Savings`], none in the paper): a claim for data may carry several frames and has no burst, and a station that heard a
//!   frame end waits for no burst that it might have missed. [`Config::sparing`] has these and the sparing notification.
//! - Routing frames ([`chappe_core::Class::Control`]) claim at level 0 and count as owners in every slot.
//!
//! | class | level |
//! |---|---|
//! | `Control`, `Urgent` | 0 |
//! | `Data` | 1 |
//! | `Background` | 2 |
//!
//! Everything else (ACK, retries, NAV, EIFS, overhearing, late binding) is the station of [`dot11`](crate::dot11); make
//! one with [`Dot11::zmac_plus`](crate::dot11::Dot11::zmac_plus). Time slots come from a colouring in which no two nodes
//! within two hops share one: [`Drand`] finds it by messages, [`colour`] computes it from the whole network.
//!
//! Node clocks are assumed to agree: the synchronisation that Z-MAC adds to data frames is not implemented.

mod config;
pub mod drand;

mod slots;

pub use config::{Config, Ecn, Protects, Savings};
pub use drand::Drand;

pub(crate) use slots::clear_from;
pub use slots::{Schedule, Slot, TWO_HOP_MAX, colour};
