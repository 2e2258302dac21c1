//! The session with the recorded server on this machine: prints every octet that the client sends.

use tls_session::{RECORDING, Replay, complete, now, session};

fn main() {
    let print = |octets: &[u8]| octets.iter().for_each(|octet| println!("{octet:02x}"));
    let outcome = now(session(Replay::new(RECORDING, print)));
    println!("complete: {}", complete(&outcome));
}
