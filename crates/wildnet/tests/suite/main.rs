//! All tests through the public interface, in one program: linking takes most of a test build.

mod air;
mod contract;
mod delivery;
mod pair;
mod slots;
