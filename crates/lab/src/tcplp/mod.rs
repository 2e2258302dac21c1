//! TCPlp: TCP on motes. [`scene`] is the network that its experiments run on.

mod ground;
mod lln;
pub mod scene;
pub mod station;
