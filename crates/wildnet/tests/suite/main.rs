//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod air;
mod contract;
mod delivery;
mod pair;
mod slots;
