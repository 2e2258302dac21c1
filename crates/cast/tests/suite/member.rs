//! Members that exchange control frames.

use std::sync::Arc;

use chappe_cast::group::Seat;
use chappe_cast::key::SignKey;
use chappe_cast::manifest::{Cut, Protocol, Ticket, Validity};
use chappe_cast::member::{Member, Settings};
use chappe_cast::roster::{Roles, State};
use chappe_cast::{Kind, Reason, Withdrawal};
use chappe_core::{
    Address, Arrival, Bitrate, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose,
    Seed,
};
use chappe_live::{Neighbour, Statistics};
use chappe_pacifier::Object;

/// Octets of the largest frame: UDP over Ethernet, sealed.
const FRAME_MAX: usize = 1442;

/// Goal: a sender that takes long to read its files can still send them. Method: its links settle before the transfer is
/// announced. (It once waited for a link to change, which never happens on a network without losses.)
#[test]
fn a_transfer_announced_late_can_begin() {
    let mut member = member(0);
    for second in 1..20 {
        member.observe(Instant::from_millis(1000 * second), &hears(0, &[1]));
    }
    assert!(member.links().is_some());
    let now = Instant::from_millis(20_000);
    member.announce(now, ticket(1381), MANIFEST.to_vec());
    assert!(member.counters(0).is_some(), "a Pacifier node carries it");
}

/// Goal: the sender learns over a relay why a receiver has failed. Method: a line of three members; the last one reports
/// each reason, including one of a later version.
#[test]
fn a_sender_reports_why_a_receiver_failed() {
    let mut line = Line::new();
    line.member(0)
        .announce(Instant::ZERO, ticket(1000), MANIFEST.to_vec());
    let id = ticket(1000).id();
    for reason in [Reason::NoRoom, Reason::NameTaken, Reason::Unknown(77)] {
        line.run(Duration::from_secs(3));
        let now = line.now;
        line.member(2).report(now, id, State::Failed(reason), 0);
        line.run(Duration::from_secs(3));
        let record = line.members[0].roster().get(line.now, 2);
        let state = record.and_then(|record| record.transfer(id));
        assert_eq!(state, Some((State::Failed(reason), 0)));
    }
}

/// Goal: members send no frame that is longer than the smallest of them takes, once they know it, also not about many batches. Method: a
/// line whose last member takes 420 octets, and has half of 9,766 batches. (Reports of batches had 1,087 octets, whatever the link's.)
#[test]
fn frames_fit_the_smallest_member() {
    let mut line = Line::new();
    line.members[2] = member_of(2, 420);
    line.run(Duration::from_secs(3));
    let now = line.now;
    assert!(
        line.members
            .iter()
            .all(|member| member.frame_max(now) == 420)
    );
    line.longest = 0;
    let cut = Cut {
        len: 40_000_000,
        k: 32,
        payload: 128,
    };
    let seat = Seat::example(0, 3, 1);
    let terms = (Protocol::Improved, 8);
    // As long as one of so many batches is.
    let manifest = vec![7; 36 * cut.batches() as usize + 100];
    let ticket = Ticket::sign(
        0,
        terms,
        cut,
        &manifest,
        Validity::default(),
        seat.key.sign(),
    );
    line.member(0).announce(now, ticket, manifest);
    line.run(Duration::from_secs(3));
    let held = (0..cut.batches()).map(|batch| batch % 2 == 0).collect();
    let now = line.now;
    line.member(2)
        .report(now, ticket.id(), State::Receiving, 4883);
    line.member(2).join(now, 0, held);
    line.run(Duration::from_secs(5));
    assert_eq!(line.members[0].receivers().len(), 1, "reports arrive");
    assert!((300..=420).contains(&line.longest), "{}", line.longest);
}

/// Goal: the sender's withdrawal reaches a receiver behind a relay, and one that the sender has not signed does not count.
/// Method: a line of three members; first a ticket that another key has signed, then the sender's.
#[test]
fn a_signed_withdrawal_reaches_receivers() {
    let mut line = Line::new();
    let ticket = ticket(1000);
    line.member(0)
        .announce(Instant::ZERO, ticket, MANIFEST.to_vec());
    line.run(Duration::from_secs(5));
    let withdrawn = |line: &Line| {
        let mut tickets = line.members[2].tickets();
        tickets.next().and_then(|ticket| ticket.withdrawn)
    };
    assert_eq!(line.members[2].tickets().count(), 1);
    let forged = ticket.withdraw(Withdrawal::Changed, &SignKey::new(&[2; 32]));
    let news = [&[0xc5, 5, 1][..], &forged.encode()].concat();
    let now = line.now;
    let arrival = Arrival {
        from: Address::node(1),
        to: Address::BROADCAST,
        sdu: &news,
        power: None,
    };
    line.member(2)
        .handle_link(now, LinkEvent::Received(arrival));
    assert_eq!(
        (withdrawn(&line), line.members[2].counts().unsigned),
        (None, 1)
    );
    let real = ticket.withdraw(Withdrawal::Unreadable, Seat::example(0, 3, 1).key.sign());
    line.member(0).revoke(now, real);
    line.run(Duration::from_secs(1));
    assert_eq!(withdrawn(&line), Some(Withdrawal::Unreadable));
    // It is passed on for a while and then forgotten.
    line.run(Duration::from_secs(25));
    assert!(
        line.members
            .iter()
            .all(|member| member.tickets().count() == 0)
    );
}

/// Goal: two members may offer the same files in the same millisecond. Method: a receiver takes them from the one or the other, both of
/// which it hears; the one is to learn that, and the other not. (Both offers had one identifier, so what the receiver told the second
/// sender went to the first one: its data were not expected, the second one waited, and no session ever ended.)
#[test]
fn two_offers_of_one_moment_are_told_apart() {
    for chosen in [0, 1] {
        let mut line = Line::new();
        line.near = [&[1, 2], &[0, 2], &[0, 1]];
        let tickets = [0, 1].map(|source| ticket_of(source, 1000));
        for (source, ticket) in tickets.into_iter().enumerate() {
            line.member(source)
                .announce(Instant::ZERO, ticket, MANIFEST.to_vec());
        }
        line.run(Duration::from_secs(3));
        let (now, ticket) = (line.now, tickets[chosen]);
        line.member(2).report(now, ticket.id(), State::Receiving, 0);
        let nothing = vec![false; ticket.cut.batches() as usize];
        line.member(2).join(now, chosen as u16, nothing);
        line.run(Duration::from_secs(3));
        let state = |source: usize| {
            let record = line.members[source].roster().get(line.now, 2)?;
            Some(record.transfer(tickets[source].id())?.0)
        };
        assert_eq!(line.members[chosen].receivers(), [(2, 0)]);
        assert_eq!(state(chosen), Some(State::Receiving));
        assert_eq!(line.members[1 - chosen].receivers(), []);
        assert_eq!(state(1 - chosen), Some(State::Preparing));
    }
}

/// Goal: members of another version are noticed, and their frames are not taken for others. Method: the first octets of
/// news of version 1, of the version before this one, and of one to come.
#[test]
fn another_version_is_noticed() {
    let mut member = member(2);
    for news in [&[0xc1, 0, 0, 7, 1][..], &[0xc5, 4, 0], &[0xc5, 6, 0]] {
        let arrival = Arrival {
            from: Address::node(1),
            to: Address::BROADCAST,
            sdu: news,
            power: None,
        };
        member.handle_link(Instant::ZERO, LinkEvent::Received(arrival));
    }
    assert_eq!((member.counts().foreign, member.counts().malformed), (3, 0));
}

/// Goal: a transfer that Pacifier can never send ends with the reason; once it waited forever. Method: packets fill the
/// frame, so that the list of forwarders has no room; the receiver is two hops away.
#[test]
fn an_unsendable_transfer_reports_why() {
    for (payload, sendable) in [(1381, true), (FRAME_MAX as u16 - 17 - 32, false)] {
        let mut line = Line::new();
        let ticket = ticket(payload);
        line.run(Duration::from_secs(3));
        let now = line.now;
        line.member(0).announce(now, ticket, MANIFEST.to_vec());
        line.run(Duration::from_secs(3));
        assert_eq!(line.members[2].manifest(0), Some(MANIFEST), "{payload}");
        let now = line.now;
        line.member(2).report(now, ticket.id(), State::Receiving, 0);
        let nothing = vec![false; ticket.cut.batches() as usize];
        line.member(2).join(now, 0, nothing);
        line.run(Duration::from_secs(3));
        let now = line.now;
        assert_eq!(line.members[0].receivers(), [(2, 0)]);
        line.member(0).begin(now, Arc::new(Zeros));
        let obstacle = line.members[0].obstacle();
        assert_eq!(obstacle.is_none(), sendable, "{payload}: {obstacle:?}");
        if let Some(error) = obstacle {
            assert!(error.what.contains("list of forwarding nodes"), "{error}");
            assert_eq!(error.kind, Kind::Failed);
        }
    }
}

/// Long enough for the digests of its batches; members do not read it.
const MANIFEST: &[u8] = &[7; 2000];

/// Member `node`; 0 sends, 2 receives, others relay.
fn member(node: u16) -> Member {
    member_of(node, FRAME_MAX)
}

fn member_of(node: u16, frame_max: usize) -> Member {
    let settings = Settings {
        seat: Seat::example(node, 3, 1),
        roles: Roles {
            sends: node == 0,
            receives: node == 2,
            leaves: false,
        },
        frame_max,
        memory: 8_000_000,
        rate: Bitrate(10_000_000),
        shared: false,
    };
    Member::new(settings, Seed(1).stream(Purpose::Node(node.into())))
}

/// The statistics of member `node`'s link if it receives every frame of these neighbours.
fn hears(node: u16, others: &[u16]) -> Statistics {
    let near = |&node: &u16| Neighbour {
        address: Address::node(node),
        life: u64::from(node) + 7,
        heard: Instant::ZERO,
        from: 1.0,
        to: Some(1.0),
        sent: 0,
    };
    Statistics {
        life: u64::from(node) + 7,
        neighbours: others.iter().map(near).collect(),
        ..Statistics::default()
    }
}

/// A transfer of member 0 in packets of `payload` octets.
fn ticket(payload: u16) -> Ticket {
    ticket_of(0, payload)
}

/// The same of member `source`: the same files, signed in the same millisecond.
fn ticket_of(source: u16, payload: u16) -> Ticket {
    let cut = Cut {
        len: 1_000_000,
        k: 32,
        payload,
    };
    let key = Seat::example(source, 3, 1).key.sign().clone();
    Ticket::sign(
        source,
        (Protocol::Pacifier, 32),
        cut,
        MANIFEST,
        Validity::default(),
        &key,
    )
}

/// An object that is a megabyte of zeros.
#[derive(Debug)]
struct Zeros;

impl Object for Zeros {
    fn size(&self) -> usize {
        1_000_000
    }

    fn read(&self, _: usize, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }
}

/// Three members, each of which hears some others without loss.
struct Line {
    members: [Member; 3],
    /// Whom each hears: in a line the next ones.
    near: [&'static [u16]; 3],
    now: Instant,
    /// The longest frame that any has sent.
    longest: usize,
}

impl Line {
    fn new() -> Line {
        Line {
            members: [0, 1, 2].map(member),
            near: [&[1], &[0, 2], &[1]],
            now: Instant::ZERO,
            longest: 0,
        }
    }

    fn member(&mut self, node: usize) -> &mut Member {
        &mut self.members[node]
    }

    /// Advances in steps of 10 ms, in each of which every member sends its control frames.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(10);
            for (node, near) in (0..).zip(self.near) {
                let member = &mut self.members[usize::from(node)];
                member.observe(self.now, &hears(node, near));
                member.handle_timeout(self.now);
                self.send(node, near);
            }
        }
    }

    fn send(&mut self, node: u16, near: &[u16]) {
        let mut sdu = [0; FRAME_MAX];
        let control = Classes::NONE.with_if(chappe_core::Class::Control, true);
        while let Some(send) =
            self.members[usize::from(node)].poll_link(self.now, control, &mut sdu)
        {
            self.longest = self.longest.max(send.len);
            for &other in near {
                let arrival = Arrival {
                    from: Address::node(node),
                    to: send.to,
                    sdu: &sdu[..send.len],
                    power: None,
                };
                if send.to.is_broadcast() || send.to == Address::node(other) {
                    let heard = LinkEvent::Received(arrival);
                    self.members[usize::from(other)].handle_link(self.now, heard);
                }
            }
            let (token, outcome) = (send.token, Outcome::Unconfirmed);
            let sent = LinkEvent::Sent { token, outcome };
            self.members[usize::from(node)].handle_link(self.now, sent);
        }
    }
}
