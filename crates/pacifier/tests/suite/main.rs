//! All tests through the public interface, in one program, since linking takes most of a test build.

mod beyond;
mod common;
mod contract;
mod delivery;
mod improved;
mod outer;
mod properties;
mod script;
mod scripts;
mod session;
mod timing;
mod wired;
