use super::*;
use chappe_core::{Purpose, Seed};

fn record(node: u16, number: u32) -> Record {
    Record {
        node,
        life: 5,
        number,
        name: "router".into(),
        roles: Roles {
            receives: true,
            ..Roles::default()
        },
        frame_max: 1400,
        transfers: vec![
            (9, State::Receiving, 100),
            (10, State::Failed(Reason::NameTaken), 0),
        ],
        links: vec![(0, 1.0), (7, 0.2)],
    }
}

fn roster(node: u16) -> Roster {
    Roster::new(Seat::example(node, 10, 1), Roles::default(), 1400)
}

/// A record with the signature of `signer`.
fn signed(record: Record, signer: u16) -> Vec<u8> {
    let mut of = roster(signer);
    of.own = record;
    of.sign_own()
}

fn learn(roster: &mut Roster, now: Instant, record: Record) -> News {
    let (raw, age) = (signed(record.clone(), record.node), Duration::ZERO);
    roster.learn(now, Received { raw: &raw, age }).unwrap()
}

#[test]
fn records_round_trip_and_noise_never_panics() {
    let octets = record(3, 4).encode();
    assert_eq!(Record::decode(&octets), Some(record(3, 4)));
    assert!((0..octets.len()).all(|len| Record::decode(&octets[..len]).is_none()));
    let mut frame = [0; 400];
    let raw = signed(record(3, 4), 3);
    let len = put(&raw, Duration::from_millis(1200), &mut frame).unwrap();
    let (received, rest) = read(&frame[..len]).unwrap();
    assert_eq!((received.raw, rest.len()), (&raw[..], 0));
    assert_eq!(received.age, Duration::from_millis(1200));
    assert!((0..len).all(|len| read(&frame[..len]).is_none()));
    let mut random = Seed(1).stream(Purpose::Trial(0));
    for _ in 0..5000 {
        let mut noise = [0; 100];
        random.fill(&mut noise);
        Record::decode(&noise);
    }
}

/// Goal: a member cannot say in another's name that it has the files. Method: records of member 3, signed by member 4, changed after
/// signing, or of a member that the list does not have; then the genuine one.
#[test]
fn a_member_cannot_speak_for_another() {
    let mut roster = roster(1);
    let mut claim = record(3, 50);
    claim.transfers = vec![(9, State::Complete, 100)];
    let mut bent = signed(record(3, 50), 3);
    bent[20] ^= 1;
    for raw in [signed(claim.clone(), 4), bent, signed(record(77, 1), 4)] {
        let age = Duration::ZERO;
        let news = roster.learn(Instant::ZERO, Received { raw: &raw, age });
        assert!(matches!(news, None | Some(News::None)));
    }
    assert!(roster.forged() >= 2 && roster.others(Instant::ZERO).count() == 0);
    assert_eq!(learn(&mut roster, Instant::ZERO, claim), News::Member);
    let of = roster.get(Instant::ZERO, 3).unwrap().transfer(9);
    assert_eq!(of, Some((State::Complete, 100)));
}

/// Goal: a weak link that comes and goes does not make all members flood a record each time. Method: the links of a record change each
/// 100 ms for ten seconds; then its state changes.
#[test]
fn flapping_links_are_seldom_news() {
    let mut roster = roster(1);
    let mut news = 0;
    for step in 0..100u32 {
        let mut flapping = record(3, step + 1);
        flapping.links.truncate(1 + step as usize % 2);
        let now = Instant::from_millis(100 * u64::from(step));
        news += u32::from(learn(&mut roster, now, flapping) == News::Member);
    }
    assert!((4..=8).contains(&news), "{news}");
    let mut done = record(3, 200);
    done.transfers = vec![(9, State::Complete, 100)];
    let now = Instant::from_millis(10_050);
    assert_eq!(learn(&mut roster, now, done), News::Member);
}

/// Records travel along a line of members, the newest wins, and a record that is not renewed expires.
#[test]
fn records_spread_and_expire() {
    let members = 6;
    let mut line: Vec<Roster> = (0..members).map(roster).collect();
    let at = |millis| Instant::from_millis(1000 + millis);
    let mut frame = [0; 1400];
    for round in 0..members {
        for member in 0..usize::from(members) {
            line[member].renew();
            let now = at(u64::from(round) * 100);
            let len = line[member].write(now, &mut frame);
            for near in [member.wrapping_sub(1), member + 1] {
                let mut rest = &frame[..len];
                while let (Some(listener), Some((received, after))) =
                    (line.get_mut(near), read(rest))
                {
                    listener.learn(now, received).unwrap();
                    rest = after;
                }
            }
        }
    }
    for (node, roster) in (0..).zip(&line) {
        assert_eq!((roster.others(at(600)).count(), roster.forged()), (5, 0));
        assert!(roster.get(at(600), node).is_none());
        assert_eq!(roster.others(at(11_500)).count(), 0);
    }
}

/// Goal: a neighbour whose frames arrive is not declared gone because its records got lost. One that is only heard of
/// expires, and so does one of which only another life is heard.
#[test]
fn a_neighbour_that_is_heard_lives() {
    for (life, there) in [(5, true), (6, false)] {
        let mut roster = roster(1);
        learn(&mut roster, Instant::ZERO, record(3, 1));
        learn(&mut roster, Instant::ZERO, record(4, 1));
        roster.hear(3, life, Instant::from_millis(9000));
        let now = Instant::from_millis(12_000);
        assert_eq!(roster.get(now, 3).is_some(), there);
        assert!(roster.get(now, 4).is_none());
    }
}

#[test]
fn a_restarted_member_supersedes_its_former_record() {
    let mut roster = roster(3);
    roster.own().life = 6;
    for (news, contested) in [(News::Member, 1), (News::None, 1)] {
        assert_eq!(learn(&mut roster, Instant::ZERO, record(3, 50)), news);
        assert_eq!((roster.own().number, roster.contested()), (51, contested));
    }
}

#[test]
fn links_are_what_receivers_report() {
    let mut roster = roster(1);
    roster.own().links = vec![(3, 0.5), (9, 0.9)];
    learn(&mut roster, Instant::ZERO, record(3, 1));
    let links = roster.links(Instant::ZERO).unwrap();
    assert_eq!(links.nodes(), 4);
    assert_eq!(
        (links.ratio(3, 1), links.ratio(0, 3), links.ratio(1, 3)),
        (0.5, 1.0, 0.0)
    );
}
