//! Tells the linker where each board's memory is, for the programs that run on it only.

#[path = "../board/link.rs"]
mod link;

fn main() {
    link::link(&["relay", "source", "destination"]);
}
