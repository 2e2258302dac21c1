//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod air;
mod baselines;
mod common;
mod contract;
mod extras;
#[path = "common/loaded.rs"]
mod loaded;
mod loops;
mod mesh;
#[path = "common/on_air.rs"]
mod on_air;
mod room;
mod router;
#[path = "common/slotted.rs"]
mod slotted;
