//! Plays both transfers here and prints every segment.

use chappe_core::Instant;
use tcplp_two_sockets::{End, Watcher, play};

struct Printer;

impl Watcher for Printer {
    fn sends(&mut self, at: Instant, end: End, segment: &[u8]) {
        let octets: String = segment.iter().map(|octet| format!("{octet:02x}")).collect();
        println!("{} {end:?} {octets}", at.nanos());
    }
}

fn main() {
    for lost in [17, 0] {
        println!("{:?}", play(lost, &mut Printer));
    }
}
