//! Goal: a node that has no room is sent nothing, what was on its way all the same finds a place, and neighbours that do not
//! overhear hear of queues at a bounded price. Method: frames by hand to one node.

use crate::common;

use chappe_core::{Address, Class, Classes, LinkNode, Outcome};
use chappe_dpclo::header::{self, Backlog, Data, Frame, ROOM_MAX, Report, Reported};
use chappe_dpclo::{Refused, Reports, Settings};
use common::bench::{Bench, packet};
use common::{DEAF, wants_data};

fn with_credits(least: u8) -> Settings {
    let mut settings = Settings::paper();
    settings.extras.credits = least;
    settings
}

/// A neighbour's packet for 9 to another node, which carries an empty queue and the neighbour's room.
fn set_room(bench: &mut Bench, from: u16, room: u8) {
    let data = Data { room, ..packet(9) };
    bench.hear_to(from, Address::node(77), |octets| data.emit(b"x", octets));
}

#[test]
fn who_told_of_too_little_room_gets_nothing() {
    for (least, room, sends) in [(0, 0, true), (1, 0, false), (1, 1, true), (5, 4, false)] {
        let mut bench = Bench::new(with_credits(least), &[(1, 10, 1.0)]);
        bench.relay(3);
        set_room(&mut bench, 1, room);
        assert_eq!(wants_data(&bench.node), sends, "{least} {room}");
        // What was said holds as long as a queue's length does.
        bench.wait(3100);
        assert!(wants_data(&bench.node));
    }
}

/// The destination takes everything: it has no queue for itself, whatever its packets tell.
#[test]
fn the_destination_needs_no_room() {
    let mut bench = Bench::new(with_credits(1), &[(1, 10, 1.0), (9, 10, 0.0)]);
    bench.relay(3);
    set_room(&mut bench, 9, 0);
    assert_eq!(bench.send().unwrap().0.to, Address::node(9));
}

/// Packets sent to a neighbour, from here or from others, reduce its advertised room.
#[test]
fn packets_take_room_until_the_next_word() {
    let mut bench = Bench::new(with_credits(1), &[(1, 10, 1.0)]);
    bench.relay(6);
    set_room(&mut bench, 1, 3);
    for _ in 0..2 {
        let (send, _) = bench.send().unwrap();
        bench.sent(send.token, Outcome::Acknowledged { attempts: 1 });
    }
    assert!(wants_data(&bench.node));
    bench.hear_to(5, Address::node(1), |room| packet(9).emit(b"x", room));
    assert!(!wants_data(&bench.node));
    set_room(&mut bench, 1, 1);
    assert!(wants_data(&bench.node));
}

/// Neighbours may fill the reserve, the node's own application may not; packets tell what is left.
#[test]
fn the_reserve_is_for_what_neighbours_send() {
    let mut settings = Settings::paper();
    settings.queues.reserve = 4;
    let mut bench = Bench::new(settings, &[(1, 10, 1.0)]);
    bench.relay(12);
    let now = bench.now;
    assert_eq!(bench.node.offer(now, 9, 1, b"own"), Err(Refused::Full));
    assert_eq!(bench.node.counters().losses.queue_full, 0);
    let (_, data) = bench.send().unwrap();
    assert_eq!((data.room, data.backlog.packets()), (3, 11.0));
    for number in 20..30 {
        let data = Data {
            number,
            ..packet(9)
        };
        bench.hear_to(5, Address::node(0), |room| data.emit(b"more", room));
    }
    assert_eq!(bench.node.queue(9), 14);
    assert_eq!(bench.node.counters().losses.queue_full, 7);
}

#[test]
fn much_room_is_told_as_the_most_that_fits() {
    let mut settings = Settings::paper();
    settings.queues.reserve = 100;
    let mut bench = Bench::new(settings, &[(1, 10, 1.0)]);
    bench.relay(1);
    assert_eq!(bench.send().unwrap().1.room, ROOM_MAX);
}

fn reporting(share: f64) -> Settings {
    let mut settings = Settings::paper();
    settings.extras.reports = Some(Reports {
        share,
        change: 2.0,
        around: 84,
    });
    settings
}

/// The reports that a node has to send now.
fn reports(bench: &mut Bench) -> Vec<Reported> {
    let mut octets = [0; 512];
    let mut found = Vec::new();
    let control = Classes::only(Class::Control);
    while let Some(send) = bench.node.poll_link(bench.now, control, &mut octets) {
        assert_eq!(send.to, Address::BROADCAST);
        if let Ok(Frame::Report(report)) = header::parse(&octets[..send.len]) {
            found.extend(report.queues());
        }
    }
    found
}

/// A queue that has changed by two packets is reported, one that has changed by one is not; where the link overhears, none is.
#[test]
fn changed_queues_are_reported_on_links_that_do_not_overhear() {
    let mut bench = Bench::over(&DEAF, reporting(1.0), &[(1, 10, 1.0)]);
    bench.relay(1);
    assert_eq!(reports(&mut bench), []);
    bench.relay(2);
    let two = Reported {
        destination: 9,
        backlog: Backlog::from_packets(2.0),
        room: 8,
    };
    assert_eq!(reports(&mut bench), [two]);
    assert_eq!(reports(&mut bench), [], "said once");
    let mut bench = Bench::new(reporting(1.0), &[(1, 10, 1.0)]);
    bench.relay(5);
    assert_eq!(reports(&mut bench), []);
}

#[test]
fn a_report_counts_as_if_it_were_overheard() {
    let mut bench = Bench::over(&DEAF, reporting(0.01), &[(1, 10, 1.0)]);
    bench.relay(3);
    let told = Reported {
        destination: 9,
        backlog: Backlog::from_packets(8.0),
        room: 2,
    };
    assert!(wants_data(&bench.node));
    bench.hear(1, |room| Report::emit([told].into_iter(), room));
    assert!(!wants_data(&bench.node));
    assert_eq!(bench.node.counters().reports_heard, 1);
}

/// Goal: reports take no more than their share. Method: two thousand packets pass, the queue swings by many packets all the
/// time; the octets on the air, 84 a frame included, are a tenth of all others', but for the two reports that may be saved up.
#[test]
fn reports_stay_within_their_share() {
    let mut bench = Bench::over(&DEAF, reporting(0.1), &[(1, 10, 1.0)]);
    let (mut others, mut told) = (0, 0);
    for number in 0..2000 {
        let data = Data {
            number,
            ..packet(9)
        };
        bench.hear_to(5, Address::node(0), |room| data.emit(&[0; 200], room));
        others += 216 + 84;
        told += reports(&mut bench).len() * (7 + 84);
        if number % 8 == 7 {
            while let Some((send, _)) = bench.send() {
                others += send.len + 84;
                bench.sent(send.token, Outcome::Acknowledged { attempts: 1 });
                told += reports(&mut bench).len() * (7 + 84);
            }
        }
    }
    let (least, most) = (others / 20, others / 10 + 2 * 91);
    assert!((least..=most).contains(&told), "{told} of {others}");
}
