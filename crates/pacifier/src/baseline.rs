//! What the paper compares Pacifier with. TREE and TREE+RL are Pacifier with parts switched off
//! ([`Variant`](crate::Variant)); MORE chooses its forwarding nodes in its own way.

pub mod more;
