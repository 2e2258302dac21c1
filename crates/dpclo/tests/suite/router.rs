//! Goal: a node does what the paper says at each step. Method: frames by hand to one node, and a look at what it sends.

use crate::common;

use chappe_core::{Address, Caps, Class, Classes, Duration, LinkNode, Outcome};
use chappe_dpclo::header::{
    self, Backlog, Count, Data, Frame, Metric, Probe, Queue, Request, Route, Routes,
};
use chappe_dpclo::{Refused, Settings};
use common::bench::{Bench, packet};
use common::{CAPS, at, wants_data};

fn wide() -> Settings {
    let mut settings = Settings::paper();
    settings.next_hops.limit = chappe_dpclo::KMax::Fixed(3);
    settings.next_hops.low = 0.0;
    settings
}

#[test]
fn etx_and_distance_come_from_probes_and_updates() {
    // 10 of 10 there and back: ETX 1; 5 of 10 there: 2.
    let bench = Bench::new(Settings::paper(), &[(1, 10, 3.0), (2, 5, 1.5)]);
    assert_eq!(bench.node.etx(1), Some(1.0));
    assert_eq!(bench.node.etx(2), Some(2.0));
    assert_eq!(bench.node.distance(9), Some(3.5));
    assert_eq!(bench.node.next_hops(9).collect::<Vec<_>>(), [2]);
}

/// Three next hops are opened by full queues one after the other, then the largest price wins: eq. 7.
#[test]
fn the_largest_price_wins() {
    let mut bench = Bench::new(wide(), &[(1, 10, 2.0), (2, 5, 1.5), (3, 10, 4.0)]);
    bench.relay(10);
    for _ in 0..4 {
        (1..=3).for_each(|neighbour| bench.overhear(neighbour, 9.0));
        bench.wait(110);
    }
    assert_eq!(bench.node.next_hops(9).collect::<Vec<_>>(), [1, 2, 3]);
    // Queue 10 here: (10 - 6)/1, (10 - 1)/2, (10 - 5)/1.
    for (neighbour, packets) in [(1, 6.0), (2, 1.0), (3, 5.0)] {
        bench.overhear(neighbour, packets);
    }
    let (send, data) = bench.send().unwrap();
    assert_eq!((send.to, send.class), (Address::node(3), Class::Urgent));
    assert_eq!(data.backlog.packets(), 9.0, "the queue without this packet");
    assert_eq!(data.hop_limit, 19);
    // Late binding: what is heard until the link asks counts. Queue 9 here: (9 - 8)/1, (9 - 1)/2, (9 - 5)/1.
    bench.overhear(1, 8.0);
    let (send, _) = bench.send().unwrap();
    assert_eq!((send.to, send.class), (Address::node(2), Class::Data));
    assert_eq!(bench.node.counters().detours, 2);
}

#[test]
fn no_price_above_zero_sends_nothing_until_a_queue_changes() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    bench.relay(3);
    bench.overhear(1, 3.0);
    assert!(!wants_data(&bench.node), "equal queues");
    bench.overhear(1, 2.5);
    assert!(wants_data(&bench.node));
    assert_eq!(bench.send().unwrap().0.class, Class::Background);
    bench.overhear(1, 7.0);
    assert!(!wants_data(&bench.node));
    // An advertised length is valid for three seconds.
    bench.wait(2900);
    assert!(!wants_data(&bench.node));
    bench.wait(300);
    assert!(wants_data(&bench.node), "silence counts as an empty queue");
}

#[test]
fn probes_tell_queues_too() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    bench.relay(3);
    let told = Queue {
        destination: 9,
        backlog: Backlog::from_packets(8.0),
    };
    let ours = Count {
        node: 0,
        received: 10,
        of: 10,
    };
    let number = bench.probes + 1;
    bench.hear(1, |room| {
        Probe::emit((0, number), [ours].into_iter(), [told].into_iter(), 0, room)
    });
    assert!(!wants_data(&bench.node));
}

#[test]
fn a_class_that_is_not_deserved_is_not_used() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    bench.relay(3);
    let mut room = [0; 512];
    assert!(bench.node.pending().contains(Class::Data));
    let urgent = Classes::only(Class::Urgent);
    assert_eq!(bench.node.poll_link(bench.now, urgent, &mut room), None);
    let low = Classes::only(Class::Background);
    let send = bench.node.poll_link(bench.now, low, &mut room).unwrap();
    assert_eq!(
        send.class,
        Class::Background,
        "what was won for less may be used"
    );
}

/// Where urgent frames have windows of their own, data over good links is urgent; over links that lose most, and on other links, only a
/// queue at its limit is.
#[test]
fn windows_of_their_own_are_used_over_good_links() {
    let class = |hastens: bool, received: u8, packets: u32| {
        let caps = Caps { hastens, ..CAPS };
        let mut bench = Bench::over(&caps, Settings::improved(), &[(1, received, 1.0)]);
        bench.relay(packets);
        bench.send().unwrap().0.class
    };
    assert_eq!(class(true, 10, 1), Class::Urgent);
    assert_eq!(class(true, 3, 1), Class::Urgent, "an ETX of 3.3");
    assert_eq!(class(true, 2, 1), Class::Data, "an ETX of 5");
    assert_eq!(class(true, 2, 20), Class::Urgent);
    assert_eq!(class(false, 10, 1), Class::Data);
    assert_eq!(class(false, 10, 20), Class::Urgent);
}

/// A packet that the link gave up goes first again, and the link is worth less; the second time it is lost.
#[test]
fn failures_charge_the_link_and_cost_the_packet_at_last() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0), (2, 10, 1.2)]);
    bench.relay(2);
    let (send, first) = bench.send().unwrap();
    bench.sent(send.token, Outcome::Failed { attempts: 7 });
    assert!((bench.node.etx(1).unwrap() - (0.9 + 1.6)).abs() < 1e-9);
    assert_eq!(bench.node.queue(9), 2);
    let (send, again) = bench.send().unwrap();
    assert_eq!(again.number, first.number);
    assert_eq!(
        send.to,
        Address::node(2),
        "the route over 1 has become the longer one"
    );
    bench.sent(send.token, Outcome::Failed { attempts: 7 });
    assert_eq!(bench.node.counters().losses.link, 1);
    let (_, next) = bench.send().unwrap();
    assert_ne!(next.number, first.number);
}

#[test]
fn packets_that_went_round_too_often_end_and_detours_do_not() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    let mut relay = |hop_limit| {
        let data = Data {
            first: false,
            hop_limit,
            ..packet(9)
        };
        bench.hear_to(1, Address::node(0), |room| data.emit(b"x", room));
        (bench.node.queue(9), bench.node.counters().losses)
    };
    assert_eq!(relay(20).0, 1);
    let (queue, losses) = relay(20);
    assert_eq!((queue, losses.copies), (1, 1), "a copy");
    assert_eq!(relay(18).0, 2, "the same packet after a detour");
    let (queue, losses) = relay(1);
    assert_eq!((queue, losses.hop_limit), (2, 1));
    assert_eq!(relay(0).1.hop_limit, 2);
}

/// Defect: a relay that had a packet from two neighbours, since an acknowledgement was lost on the way to the first, took it for one that had
/// come back, and dropped its best next hop until that advertised anew. Relays were without a route for ten seconds so.
#[test]
fn a_copy_by_a_detour_costs_no_next_hop() {
    let mut bench = Bench::new(Settings::improved(), &[(1, 10, 1.0), (2, 10, 5.0)]);
    let mut pass = |from: u16, hop_limit: u8| {
        let data = Data {
            hop_limit,
            ..packet(9)
        };
        bench.hear_to(from, Address::node(0), |room| data.emit(b"x", room));
        bench.node.next_hops(9).collect::<Vec<u16>>()
    };
    assert_eq!(pass(7, 20), [1]);
    assert_eq!(pass(8, 19), [1], "by a neighbour of 7");
    assert_ne!(pass(8, 17), [1], "once around");
}

#[test]
fn a_full_queue_refuses_with_a_reason() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    bench.relay(12);
    assert_eq!(bench.node.queue(9), 10);
    assert_eq!(bench.node.counters().losses.queue_full, 2);
    let now = bench.now;
    assert_eq!(bench.node.offer(now, 9, 1, b"own"), Err(Refused::Full));
    assert_eq!(bench.node.offer(now, 0, 1, b"own"), Err(Refused::Own));
    assert_eq!(
        bench.node.offer(now, 9, 1, &[0; 1501]),
        Err(Refused::TooLong { most: 1500 })
    );
    assert_eq!(bench.node.counters().refused_full, 1);
}

#[test]
fn the_rate_spaces_packets_and_wakes_the_application() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    let begin = bench.now;
    assert_eq!(bench.node.offer(begin, 9, 1, b"a"), Ok(()));
    let until = begin + Duration::from_millis(200);
    assert_eq!(
        bench.node.offer(begin, 9, 1, b"b"),
        Err(Refused::Rate { until })
    );
    assert_eq!(bench.node.rate(9), Some(5.0));
    let wake = bench.node.poll_timeout().unwrap();
    assert!(wake.at <= until);
    bench.wait(200);
    assert_eq!(bench.node.offer(until, 9, 1, b"b"), Ok(()));
    // One packet waits at the first look, before none did: it grew by 2 in half a second.
    bench.wait(310);
    assert_eq!(bench.node.rate(9), Some(1.0));
}

#[test]
fn its_own_number_in_a_neighbours_update_is_passed() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    let entry = Route {
        destination: 0,
        seq: 1000,
        metric: Metric::from_etx(1.0),
        via: 0,
    };
    bench.hear(1, |room| Routes::emit(&mut [entry].into_iter(), room));
    let end = bench.now + Duration::from_millis(1100);
    let mut told = None;
    while let Some(wake) = bench.node.poll_timeout().filter(|wake| wake.at <= end) {
        bench.now = wake.at;
        bench.node.handle_timeout(wake.at);
        let mut room = [0; 512];
        while let Some(send) =
            bench
                .node
                .poll_link(wake.at, Classes::only(Class::Control), &mut room)
        {
            if let Ok(Frame::Routes(routes)) = header::parse(&room[..send.len]) {
                told = routes.iter().find(|route| route.destination == 0);
            }
        }
    }
    assert_eq!(told.map(|route| route.seq), Some(1002));
}

#[test]
fn packets_for_this_node_are_handed_out_once() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    for number in [0, 2, 1, 2] {
        let data = Data {
            number,
            ..packet(0)
        };
        bench.hear_to(1, Address::node(0), |room| {
            data.emit(&[number as u8; 3], room)
        });
    }
    let mut buffer = [0; 2];
    let numbers: Vec<u32> = std::iter::from_fn(|| bench.node.poll_delivery(&mut buffer))
        .map(|delivery| {
            assert_eq!(delivery.len, 2, "cut to the buffer");
            delivery.number
        })
        .collect();
    assert_eq!(numbers, [0, 2, 1], "the paper leaves the order to others");
    assert_eq!(bench.node.counters().losses.copies, 1);
    assert!(at(0) < bench.now);
}

/// If there are more queues than fit a probe, it carries the longest.
#[test]
fn a_probe_tells_the_longest_queues() {
    let mut bench = Bench::new(Settings::paper(), &[(1, 10, 1.0)]);
    for destination in 0..12 {
        for number in 0..1 + u32::from(destination * 5 % 9) {
            let data = Data {
                number,
                flow: destination,
                ..packet(20 + destination)
            };
            bench.hear_to(5, Address::node(0), |room| data.emit(b"x", room));
        }
    }
    let mut told = None;
    while told.is_none() {
        bench.now = bench.node.poll_timeout().unwrap().at;
        bench.node.handle_timeout(bench.now);
        let mut room = [0; 512];
        let control = Classes::only(Class::Control);
        while let Some(send) = bench.node.poll_link(bench.now, control, &mut room) {
            if let Ok(Frame::Probe(probe)) = header::parse(&room[..send.len]) {
                told = Some(
                    probe
                        .queues()
                        .map(|queue| queue.backlog.packets())
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
    // Lengths 1 6 2 7 3 8 4 9 5 1 6 2.
    assert_eq!(told.unwrap(), [9.0, 8.0, 7.0, 6.0, 6.0, 5.0, 4.0, 3.0]);
}

/// Goal: a node that has had many conversations can have another one, and one that returns under an old name is not taken for
/// copies of itself. Method: twice a hundred names where there is room for 64; the numbers of a name never go back.
#[test]
fn flows_come_and_go_for_ever() {
    let mut bench = Bench::new(Settings::shortest_path(), &[(1, 10, 1.0)]);
    let mut last = std::collections::BTreeMap::new();
    for round in 0..2 {
        for flow in 0..100 {
            for _ in 0..3 {
                assert_eq!(bench.node.offer(bench.now, 9, flow, b"x"), Ok(()));
                bench.node.handle_timeout(bench.now);
                bench.silence();
                let (send, data) = bench.send().unwrap();
                bench.sent(send.token, Outcome::Acknowledged { attempts: 1 });
                let before = last.insert(data.flow, data.number);
                assert!(before.is_none_or(|before| data.number > before), "{round}");
            }
            bench.now += Duration::from_millis(1);
        }
    }
}

/// What leaves at the present moment: requests, and how many other frames before them.
fn requests(bench: &mut Bench) -> Vec<(Request, usize)> {
    let (mut room, mut others, mut found) = ([0; 512], 0, Vec::new());
    while bench.node.pending().contains(Class::Control) || others > 0 {
        let control = Classes::only(Class::Control);
        let Some(send) = bench.node.poll_link(bench.now, control, &mut room) else {
            break;
        };
        match header::parse(&room[..send.len]) {
            Ok(Frame::Request(request)) => found.push((request, others)),
            _ => others += 1,
        }
    }
    found
}

/// Goal: a request that no packet waits for rides with a probe or an update, and one that a packet waits for leaves at once. Method: a
/// neighbour's route grows until it is not feasible; a packet comes never, before that, or after it.
#[test]
fn requests_that_no_packet_waits_for_ride() {
    for comes in [None, Some(true), Some(false)] {
        let mut settings = Settings::paper();
        settings.routing.patience = Duration::from_secs(3);
        let mut bench = Bench::new(settings, &[(1, 10, 2.0)]);
        bench.wait(3000);
        if comes == Some(true) {
            bench.relay(1);
        }
        let farther = Route {
            destination: 9,
            seq: 2,
            metric: Metric::from_etx(9.0),
            via: 9,
        };
        bench.hear(1, |room| Routes::emit(&mut [farther].into_iter(), room));
        assert_eq!(bench.node.distance(9), None, "not feasible");
        if comes == Some(false) {
            bench.relay(1);
        }
        let at_once = requests(&mut bench);
        if comes.is_some() {
            assert!(
                matches!(at_once[..], [(Request { idle: false, .. }, 0)]),
                "{at_once:?}"
            );
            continue;
        }
        let mut found = at_once;
        for _ in 0..400 {
            bench.now += Duration::from_millis(10);
            bench.node.handle_timeout(bench.now);
            found.extend(requests(&mut bench));
        }
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|(request, others)| request.idle && *others > 0),
            "{found:?}"
        );
    }
}

/// Goal: a node asks for a newer number while packets leave, before the old one has expired, and no sooner than needed.
/// Method: two neighbours with routes, which say nothing new for 35 s.
#[test]
fn routes_in_use_are_renewed() {
    for (renews, busy) in [(true, true), (true, false), (false, true)] {
        let mut settings = Settings::improved();
        settings.routing.renews = renews;
        let neighbours = [(1, 10, 2.0), (2, 10, 8.0)];
        let mut bench = Bench::new(settings, &neighbours);
        let mut found = Vec::new();
        for number in 0..35 {
            if busy && number % 5 == 0 {
                let data = Data {
                    number,
                    ..packet(9)
                };
                bench.hear_to(5, Address::node(0), |room| data.emit(b"relayed", room));
                let (send, _) = bench.send().expect("a packet and a route");
                bench.sent(send.token, Outcome::Acknowledged { attempts: 1 });
            }
            bench.probe(&neighbours);
            for _ in 0..100 {
                bench.now += Duration::from_millis(10);
                bench.node.handle_timeout(bench.now);
                found.extend(
                    requests(&mut bench)
                        .into_iter()
                        .map(|(request, _)| (number, request)),
                );
            }
        }
        assert_eq!(bench.node.next_hops(9).next(), Some(1), "not expired yet");
        assert_eq!(!found.is_empty(), renews && busy, "{found:?}");
        let early = |&(second, request): &(u32, Request)| second >= 29 && request.seq == 4;
        assert!(found.iter().all(early), "{found:?}");
    }
}

/// Defect: a neighbour whose queue was full, and whose last frames were not heard, held up all who waited for its room for three seconds.
#[test]
fn a_neighbour_that_is_not_heard_any_more_counts_as_empty_soon() {
    let mut bench = Bench::new(Settings::improved(), &[(1, 10, 1.0)]);
    bench.relay(3);
    bench.overhear(1, 40.0);
    assert!(!wants_data(&bench.node), "its queue is longer");
    bench.wait(400);
    assert!(!wants_data(&bench.node));
    bench.wait(200);
    assert!(wants_data(&bench.node));
}

/// Goal: a packet that finds no route asks for one within two seconds, although probes are three seconds apart. Method: neighbours
/// withdraw their routes just after the node's probe.
#[test]
fn packets_do_not_wait_for_a_probe_to_ask() {
    let neighbours = [(1, 10, 2.0), (2, 10, 8.0)];
    let mut bench = Bench::new(Settings::improved(), &neighbours);
    for _ in 0..30 {
        bench.probe(&neighbours);
        bench.wait(1000);
    }
    let probes = bench.node.counters().probes_sent;
    while bench.node.counters().probes_sent == probes {
        bench.wait(10);
        bench.silence();
    }
    let gone = |via| Route {
        destination: 9,
        seq: 2,
        metric: Metric::NONE,
        via,
    };
    for neighbour in [1, 2] {
        bench.hear(neighbour, |room| {
            Routes::emit(&mut [gone(neighbour)].into_iter(), room)
        });
    }
    let sent = bench.node.counters().requests_sent;
    bench.relay(1);
    bench.wait(2000);
    assert!(bench.node.counters().requests_sent > sent);
}

/// Defect: a source whose route had expired before its first packet asked no node, and one whose neighbours had no route either, neither: it
/// waited for the next update, up to a minute. Method: neighbours say nothing new for 50 s, and withdraw their routes or do not.
#[test]
fn packets_without_a_route_ask_any_neighbour() {
    for (waits, withdrawn) in [(true, false), (true, true), (false, true)] {
        let neighbours = [(1, 10, 2.0), (2, 10, 8.0)];
        let mut bench = Bench::new(Settings::improved(), &neighbours);
        let second = |bench: &mut Bench| {
            bench.probe(&neighbours);
            bench.wait(1000);
        };
        (0..50).for_each(|_| second(&mut bench));
        let gone = Route {
            destination: 9,
            seq: 2,
            metric: Metric::NONE,
            via: 1,
        };
        for neighbour in [1, 2].into_iter().filter(|_| withdrawn) {
            bench.hear(neighbour, |room| {
                Routes::emit(&mut [gone].into_iter(), room)
            });
        }
        assert_eq!(bench.node.next_hops(9).next(), None);
        bench.silence();
        bench.relay(u32::from(waits));
        let sent = bench.node.counters().requests_sent;
        (0..5).for_each(|_| second(&mut bench));
        let asked = bench.node.counters().requests_sent - sent;
        assert_eq!(asked >= 2, waits, "{asked}");
    }
}
