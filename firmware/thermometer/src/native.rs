//! Plays the visit on this machine and prints every frame.

use thermometer::room::{Watcher, play};

struct Print;

impl Watcher for Print {
    fn sends(&mut self, at: u64, node: usize, psdu: &[u8]) {
        let octets: String = psdu.iter().map(|octet| format!("{octet:02x}")).collect();
        println!("{at} {node} {octets}");
    }
}

fn main() {
    println!("{:?}", play(&mut Print, || 0));
}
