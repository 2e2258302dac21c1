//! Forged timestamps: TS.Recent is the one value of a connection that a single accepted segment can move by half its range, after
//! which PAWS drops every segment of the peer.

use chappe_core::HostNode;
use chappe_tcplp::tcp::{Config, Flags, Options, Segment, Seq, State, Timestamps};

use super::support::host::{Host, Sizes};
use super::{at, deliver, drain, established_with, segment};

/// The peer's timestamp clock at the start.
const CLOCK: u32 = 1000;
/// How far ahead a forged timestamp is: nearly half the range, so that the peer's own are old for 22 days.
pub const FAR: u32 = 0x7000_0000;
const DAY: u64 = 24 * 3600 * 1000;

fn stamped(value: u32) -> Options {
    Options {
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Options::default()
    }
}

fn open() -> (Host, Seq) {
    let options = Options {
        mss: Some(1000),
        sack_permitted: true,
        ..stamped(CLOCK)
    };
    established_with(Config::STANDARD, Sizes::default(), options)
}

/// The peer's 1000 octets with its own clock. Returns how many the host has then.
fn honest(host: &mut Host, now: u64, next: Seq) -> u32 {
    let data = [1; 1000];
    let genuine = Segment {
        options: stamped(CLOCK + now as u32),
        ..segment(Seq::new(1001), next, &data)
    };
    deliver(host, at(now), &genuine);
    drain(host, at(now));
    host.sockets[0].info().unread
}

/// One forged segment of each kind that an attacker without the acknowledgement number can send, each to a connection of its own; then the
/// peer goes on. Returns how many kinds there are, and the answers to all.
pub fn forge(ahead: u32) -> (usize, usize) {
    let x = [9; 10];
    let kinds: [(&str, Flags, u32, u32); 9] = [
        ("old data, wild ACK", Flags::ACK, 1, 0x4000_0000),
        ("old data, no ACK flag", Flags::NONE, 1, 0),
        ("RST with data over RCV.NXT", Flags::RST, 996, 0),
        ("RST with data below RCV.NXT", Flags::RST, 500, 0),
        ("SYN with data over RCV.NXT", Flags::SYN, 996, 0),
        ("data at RCV.NXT, wild ACK", Flags::ACK, 1001, 0x4000_0000),
        ("data at RCV.NXT, no ACK flag", Flags::NONE, 1001, 0),
        ("data over RCV.NXT, wild ACK", Flags::ACK, 996, 0x4000_0000),
        ("old data, ACK of the future", Flags::ACK, 1, 1),
    ];
    let mut answers = 0;
    for (what, flags, seq, ack) in kinds {
        let (mut host, next) = open();
        let first = [0; 1000];
        let genuine = Segment {
            options: stamped(CLOCK + 10),
            ..segment(Seq::new(1), next, &first)
        };
        deliver(&mut host, at(10), &genuine);
        host.handle_timeout(at(150));
        drain(&mut host, at(150));
        let forged = Segment {
            flags,
            options: stamped(CLOCK + 160 + ahead),
            ..segment(Seq::new(seq), next + ack, &x)
        };
        deliver(&mut host, at(160), &forged);
        answers += drain(&mut host, at(160)).len();
        assert_eq!(honest(&mut host, 170, next), 2000, "{what} {ahead:#x}");
        assert_eq!(host.sockets[0].state(), State::Established, "{what}");
    }
    (kinds.len(), answers)
}

/// Control: the same segments with the peer's clock.
#[test]
fn one_forged_segment_does_not_end_a_connection() {
    for ahead in [0, FAR] {
        let (kinds, answers) = forge(ahead);
        assert!(answers <= kinds);
    }
}

/// A half-open connection: its first timestamp comes with the SYN; a forged ACK with a wrong number must not move it.
#[test]
fn a_half_open_connection_keeps_the_timestamp_of_its_syn() {
    let mut host = Host::new(1, Config::STANDARD, Sizes::default(), Default::default());
    host.listen(80, 1);
    let syn = Segment {
        flags: Flags::SYN,
        options: stamped(CLOCK),
        ..segment(Seq::new(0), Seq::new(0), &[])
    };
    deliver(&mut host, at(1), &syn);
    let next = super::sent(&mut host, at(1)).pop().expect("a SYN-ACK").0 + 1;
    let forged = Segment {
        options: stamped(CLOCK + FAR),
        ..segment(Seq::new(1), next + 77, &[])
    };
    deliver(&mut host, at(2), &forged);
    drain(&mut host, at(2));
    let genuine = Segment {
        options: stamped(CLOCK + 2),
        ..segment(Seq::new(1), next, &[])
    };
    deliver(&mut host, at(3), &genuine);
    assert_eq!(host.sockets[0].state(), State::Established);
}

/// After a silence of more than 24 days the peer's clock may have wrapped, and PAWS takes any timestamp (RFC 7323 5.5); before, not.
/// Method: the peer's timestamp goes back by one tick after 0 to 2500 days.
#[test]
fn paws_rests_after_24_days_however_long_the_silence() {
    for days in (0..=24)
        .chain(25..60)
        .chain((60..2500).step_by(3))
        .chain(825..870)
    {
        let (mut host, next) = open();
        let data = [1; 10];
        let older = Segment {
            options: stamped(CLOCK - 1),
            ..segment(Seq::new(1), next, &data)
        };
        let now = 2 + days * DAY;
        deliver(&mut host, at(now), &older);
        let taken = host.sockets[0].info().unread == 10;
        assert_eq!(taken, days > 24, "{days} days");
    }
}
