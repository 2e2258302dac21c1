//! The memory of a connection without its buffers, and the page's figures of its code.

use std::mem::size_of;
use std::path::Path;

use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Few, Listener, NewReno, Range, Sent, Socket, Unlimited};

/// The goal is 256 octets a socket and 24 a listener, and on a microcontroller the crate does not compile if a socket
/// is larger. On a 64-bit host its nine pointers and lengths take twice the room, and the heads of its two rings are padded to
/// 8 octets: 256 + 36 + 16, aligned to 8.
#[test]
fn a_socket_fits_its_bound() {
    let wider = size_of::<usize>() - 4;
    let bound = |octets: usize| (octets + 9 * wider + 2 * 2 * wider).next_multiple_of(8);
    println!("Socket<NewReno>    {}", size_of::<Socket<'_, NewReno>>());
    println!("Socket<Unlimited>  {}", size_of::<Socket<'_, Unlimited>>());
    println!("Socket<Few>        {}", size_of::<Socket<'_, Few>>());
    println!("Socket<Any>        {}", size_of::<Socket<'_, Any>>());
    println!("Listener           {}", size_of::<Listener>());
    println!("Config (shared)    {}", size_of::<Config>());
    println!("an entry in flight {}", size_of::<Sent>());
    println!("a range            {}", size_of::<Range>());
    assert!(size_of::<Socket<'_, NewReno>>() <= bound(256));
    assert!(size_of::<Socket<'_, Few>>() <= bound(264));
    assert!(size_of::<Socket<'_, Any>>() <= bound(284));
    assert!(size_of::<Listener>() <= 24);
    assert_eq!(size_of::<Sent>(), 12);
    assert_eq!(size_of::<Range>(), 8);
}

/// docs/tcplp.md states the sizes that `cargo xtask sizes` recorded last.
#[test]
fn the_page_has_the_recorded_sizes() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |name: &str| std::fs::read_to_string(docs.join(name)).expect("it can be read");
    let (record, page) = (read("benchmarks/tcplp-sizes.txt"), read("tcplp.md"));
    for what in [
        " TCP (goal",
        " TCP without any of its",
        " SYN cookies",
        " a socket, without",
    ] {
        let line = record.lines().find(|line| line.contains(what)).expect(what);
        let number = line.split_whitespace().next().expect("a number");
        let thousands = match number.len() {
            0..=3 => number.to_string(),
            len => format!("{},{}", &number[..len - 3], &number[len - 3..]),
        };
        assert!(
            page.contains(&thousands),
            "{thousands} is not on the page: {line}"
        );
    }
}
