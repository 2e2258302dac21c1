//! Hostile input for every parser and for the state machines of MACs and protocols.
//!
//! A target is a function that takes any octets and panics if the code under it breaks a promise: it panics itself,
//! it reads back something else than it wrote, it never comes to an end. The same functions serve three drivers:
//!
//! - `cargo test -p chappe-fuzz` feeds each a few thousand random and mutated inputs, the same ones each time;
//! - `cargo run --release -p chappe-fuzz --bin campaign` goes on for a given time, and counts;
//! - `cargo +nightly fuzz run tcp --features libfuzzer` searches for new ones, guided by coverage.
//!
//! [`TARGETS`] lists them.

mod cast;
mod coding;
mod corpus;
mod machines;
mod nodes;
mod play;
mod protocols;
mod scenario;
mod standards;
pub mod tcp;

pub use corpus::{corpus, input, stream};

/// A target: any octets go in.
pub type Feed = fn(&[u8]);

/// All of them, by name: parsers of standards, of our own formats, and machines.
pub const TARGETS: [(&str, Feed); 25] = [
    ("captures", standards::captures),
    ("dot11", standards::dot11),
    ("dot15d4", standards::dot15d4),
    ("lowpan", standards::lowpan),
    ("compressed-tcp", standards::compressed_tcp),
    ("internet", standards::internet),
    ("segments", standards::segments),
    ("coap", standards::coap),
    ("pacifier", protocols::pacifier),
    ("p3", protocols::p3),
    ("dpclo", protocols::dpclo),
    ("wildnet", protocols::wildnet),
    ("mesh", protocols::mesh),
    ("cast", cast::feed),
    ("scenario", scenario::feed),
    ("tcp", tcp::feed),
    ("coding", coding::feed),
    ("dot11-mac", |bytes| drop(machines::dot11(bytes))),
    ("dot15d4-mac", |bytes| drop(machines::dot15d4(bytes))),
    ("pacifier-nodes", |bytes| drop(machines::pacifier(bytes))),
    ("dpclo-routers", |bytes| drop(machines::dpclo(bytes))),
    ("p3-relays", |bytes| drop(machines::p3_relay(bytes))),
    ("p3-sources", |bytes| drop(machines::p3_source(bytes))),
    ("wildnet-slots", |bytes| {
        drop(machines::wildnet_slots(bytes))
    }),
    ("wildnet-links", |bytes| drop(machines::wildnet_link(bytes))),
];

/// Feeds a target, for the programs of `cargo fuzz`. Panics if there is none of this name.
pub fn feed(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(own, _)| *own == name);
    target.expect("a target of this name").1(bytes);
}
