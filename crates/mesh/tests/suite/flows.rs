//! What is measured on the twelve nodes of `examples/mesh-12-flows.toml`, in virtual time and on emulated radios.

/// The flows: from which node to which.
pub const TWELVE: [(usize, usize); 4] = [(0, 6), (1, 7), (2, 8), (3, 9)];
