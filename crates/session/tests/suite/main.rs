//! Two hosts without sockets: their handshakes on a network that loses, reorders, repeats and lies.

mod floods;
mod handshakes;
mod hosts;
mod renewal;
