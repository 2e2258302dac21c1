//! How much memory a connection takes, without its buffers.

use std::mem::size_of;

use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Cubic, Few, Listener, NewReno, Range, Sent, Socket, Unlimited};

/// The goal is 256 octets a socket and 24 a listener. On a 64-bit host pointers and lengths take twice the room of a
/// microcontroller's (nine words here), so that the bound there is 256 + 36.
#[test]
fn a_socket_fits_its_bound() {
    let words = 9 * (size_of::<usize>() - 4);
    println!("Socket<NewReno>    {}", size_of::<Socket<'_, NewReno>>());
    println!("Socket<Unlimited>  {}", size_of::<Socket<'_, Unlimited>>());
    println!("Socket<Few>        {}", size_of::<Socket<'_, Few>>());
    println!("Socket<Cubic>      {}", size_of::<Socket<'_, Cubic>>());
    println!("Socket<Any>        {}", size_of::<Socket<'_, Any>>());
    println!("Listener           {}", size_of::<Listener>());
    println!("Config (shared)    {}", size_of::<Config>());
    println!("an entry in flight {}", size_of::<Sent>());
    println!("a range            {}", size_of::<Range>());
    assert!(size_of::<Socket<'_, NewReno>>() <= 256 + words);
    assert!(size_of::<Socket<'_, Few>>() <= 264 + words);
    assert!(size_of::<Listener>() <= 24);
    assert_eq!(size_of::<Sent>(), 12);
    assert_eq!(size_of::<Range>(), 8);
}
