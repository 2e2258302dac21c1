//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod bursts;
mod capture;
mod chip_level;
mod common;
mod crossvalidation;
mod determinism;
mod dot15d4;
mod faults;
mod heads;
mod ht;
mod long_links;
mod motion;
mod physics;
mod reception;
mod synchronous;
