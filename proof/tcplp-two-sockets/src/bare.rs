//! The least that a program has: a start, and moving and comparing memory, which every program does. `tcp.rs` less this
//! is what TCP costs.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "least.rs"]
mod least;

#[cfg(target_os = "none")]
mod program {
    pub fn work() {}
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
