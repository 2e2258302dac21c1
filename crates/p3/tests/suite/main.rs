//! The tests of the public interface, in one program, since linking takes most of a test build.

mod abuse;
mod blocks;
mod common;
mod contract;
mod dead_group;
mod delivery;
mod improved;
mod pipeline;
mod planner;
mod properties;
mod scripts;
mod simulated;
mod survey;
mod tally;
mod unheard;
