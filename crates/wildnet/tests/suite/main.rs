//! All tests through the public interface, in one program: linking takes most of a test build.

mod air;
mod contract;
mod delivery;
mod long_paths;
mod pair;
mod slots;
