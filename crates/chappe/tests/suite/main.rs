//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod bench;
mod border;
mod command;
mod emulation;
mod examples;
mod mistakes;
mod networks;
mod pages;
mod program;
mod recording;
mod resumed;
mod scratch;
mod sweep;
mod trial;
mod units;
