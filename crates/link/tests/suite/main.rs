//! All tests of the public interface in one program, because linking is most of a test build.

mod air;
mod bonding;
mod busy;
mod fairness;
mod introduction;
mod paths;
mod peers;
mod pings;
mod share;
mod starts;
mod strangers;
mod streams;
