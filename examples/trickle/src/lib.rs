//! A flood by Trickle timers: the worked example of `docs/write-a-protocol.md`.
//!
//! [`protocol`] is the protocol, a value without clock or I/O; [`system`] joins it with 802.11 so that scenarios can name
//! it. `cargo run --release -p trickle` carries a file over a random mesh.
//!
//! ```
//! use chappe_core::{Purpose, Seed};
//! use trickle::protocol::Node;
//!
//! let node = Node::with_object(b"a file", Seed(1).stream(Purpose::Node(0)));
//! assert_eq!(node.object(), Some(&b"a file"[..]));
//! ```

pub mod protocol;
pub mod system;
