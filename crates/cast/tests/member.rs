//! A member by itself, without a link under it.

use chappe_cast::key::SignKey;
use chappe_cast::manifest::{Cut, Ticket, Way};
use chappe_cast::member::{Member, Settings};
use chappe_cast::roster::Roles;
use chappe_core::{Address, Bitrate, Instant, Purpose, Seed};
use chappe_live::{Neighbour, Statistics};

/// Goal: a sender that reads its files for long sends them all the same. Method: its links are measured and settle; only then
/// the transfer is announced. (It had waited for a link to change, which on a network without losses none does.)
#[test]
fn a_transfer_that_is_announced_late_can_begin() {
    let settings = Settings {
        node: 0,
        name: "late".into(),
        roles: Roles {
            sends: true,
            ..Roles::default()
        },
        verify: None,
        frame_max: 1442,
        memory: 8_000_000,
        rate: Bitrate(10_000_000),
        shared: false,
    };
    let mut member = Member::new(settings, Seed(1).stream(Purpose::Node(0)));
    let statistics = Statistics {
        life: 7,
        neighbours: vec![Neighbour {
            address: Address::node(1),
            life: 8,
            heard: Instant::ZERO,
            from: 1.0,
            to: Some(1.0),
        }],
        ..Statistics::default()
    };
    for second in 1..20 {
        member.observe(Instant::from_millis(1000 * second), &statistics);
    }
    assert!(member.links().is_some());
    let (now, cut) = (
        Instant::from_millis(20_000),
        Cut {
            len: 1_000_000,
            k: 32,
            payload: 1381,
        },
    );
    let ticket = Ticket::sign(
        0,
        (Way::Pacifier, 32),
        cut,
        b"manifest",
        &SignKey::new(&[1; 32]),
    );
    member.announce(now, ticket, b"manifest".to_vec());
    assert!(member.counters(0).is_some(), "a Pacifier node carries it");
}
