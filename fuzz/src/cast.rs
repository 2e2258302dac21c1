//! What members of `chappe cast` read from strangers: tickets, manifests, receipts and lists of members.

use chappe_cast::group::Group;
use chappe_cast::manifest::{Cut, Manifest, Ticket};
use chappe_cast::receipt::Receipt;

/// Reads the octets as each of them. What is sound comes back when it is written again.
pub fn feed(bytes: &[u8]) {
    if let Some(ticket) = Ticket::decode(bytes) {
        assert_eq!(Ticket::decode(&ticket.encode()), Some(ticket));
    }
    let cut = Cut {
        len: bytes.first().map_or(1, |&first| u64::from(first) * 100),
        k: 8,
        payload: 100,
    };
    if let Ok(manifest) = Manifest::decode(bytes, &cut) {
        let octets = manifest.encode().expect("it was read");
        assert_eq!(Manifest::decode(&octets, &cut).ok(), Some(manifest));
    }
    if let Some(receipt) = Receipt::decode(bytes) {
        assert_eq!(Receipt::decode(&receipt.encode()), Some(receipt));
    }
    let _ = Group::parse(bytes);
}
