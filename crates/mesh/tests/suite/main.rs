//! Nodes in virtual time: what a mesh carries, survives, and refuses.

mod abuse;
mod field;
mod line;
mod mesh;
mod radio;
