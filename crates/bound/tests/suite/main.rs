//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod by_hand;
mod fading;
mod interference;
mod properties;
mod support;
