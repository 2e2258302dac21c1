//! Plays the transfer here and prints what every node sends.

use chappe_core::Instant;
use p3_relay::{Role, Watcher, play};

struct Printer;

impl Watcher for Printer {
    fn sends(&mut self, at: Instant, role: Role, channel: u8, psdu: &[u8]) {
        let octets: String = psdu.iter().map(|octet| format!("{octet:02x}")).collect();
        println!("{} {role:?} {channel} {octets}", at.nanos());
    }
}

fn main() {
    println!("{:?}", play(1, &mut Printer));
}
