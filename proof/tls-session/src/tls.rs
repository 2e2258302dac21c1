//! A session over a socket of which nothing is known: its size less that of `bare` is what TLS takes of flash.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../tcplp-two-sockets/src/least.rs"]
mod least;

#[cfg(target_os = "none")]
mod program {
    use core::hint::black_box;

    use tls_session::{Replay, complete, now, session};

    pub fn work() {
        let wire = Replay::new(black_box(&[]), |octets: &[u8]| {
            black_box(octets);
        });
        black_box(complete(&now(session(wire))));
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
