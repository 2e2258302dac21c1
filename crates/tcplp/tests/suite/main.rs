//! All tests through the public interface, in one program, because linking dominates the build time of tests.

mod air;
mod attacks;
mod baseline;
mod differential;
mod flows;
mod goodput;
mod host;
mod lowpan;
mod mesh;
mod properties;
#[path = "support/rival.rs"]
mod rival;
mod row;
mod scripts;
mod size;
mod sleepy;
mod smoltcp;
mod states;
mod study;
mod support;
mod tshark;
