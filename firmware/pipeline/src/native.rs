//! Plays the transfer on this machine and prints every frame.

use pipeline::room::{Ticks, Watcher, play};

struct Print;

impl Watcher for Print {
    fn sends(&mut self, at: u64, node: usize, channel: u8, psdu: &[u8]) {
        let octets: String = psdu.iter().map(|octet| format!("{octet:02x}")).collect();
        println!("{at} {node} {channel} {octets}");
    }
}

struct Still;

impl Ticks for Still {
    fn now() -> u32 {
        0
    }
}

fn main() {
    println!("{:?}", play::<Still>(&mut Print));
}
