//! A link over lossy paths: delivery once and in order, delay, and overhead.

use crate::pair;

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_wildnet::{Config, Link, Opportunity, Order, Recovery, Redundancy, Service};
use pair::{Pair, Way, check, packet};

fn millis(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Queues `count` packets in `flows` flows at an end, to be offered as fast as the link accepts them.
fn bulk(pair: &mut Pair, end: usize, count: u32, flows: u8, len: usize) {
    let mut numbers = vec![0; usize::from(flows)];
    let mut random = Seed(3).stream(Purpose::Traffic(0));
    for i in 0..count {
        let flow = (i % u32::from(flows)) as u8;
        let number = &mut numbers[usize::from(flow)];
        let size = if len > 0 {
            len
        } else {
            8 + random.below(1400) as usize
        };
        let octets = packet(flow, *number, size);
        pair.ends[end]
            .traffic
            .push_back((Instant::ZERO, 1, flow, octets));
        *number += 1;
    }
}

/// Goal: whatever is lost, late or repeated on the way, both directions deliver everything once and in order.
#[test]
fn everything_arrives_once_and_in_order() {
    for (seed, loss, burst, late) in [
        (1, 0.0, 0.0, 0.0),
        (2, 0.1, 0.0, 0.0),
        (3, 0.3, 0.0, 0.0),
        (4, 0.5, 0.0, 0.02),
        (5, 0.2, 8.0, 0.0),
        (6, 0.1, 0.0, 0.1),
        (7, 0.1, 0.0, 0.1),
        (8, 0.2, 8.0, 0.0),
    ] {
        let ways = [1, 2].map(|way| Way {
            burst,
            late,
            ..Way::new(seed * 10 + way, loss)
        });
        // Cut packets share frames with whole ones and with parts of others.
        let config = Config {
            fragments: seed % 2 == 0,
            ..Config::tunnel(1472)
        };
        let mut pair = Pair::new(config, ways);
        bulk(&mut pair, 0, 1500, 5, 0);
        bulk(&mut pair, 1, 300, 2, 0);
        let done =
            |pair: &Pair| pair.ends[1].heard.len() == 1500 && pair.ends[0].heard.len() == 300;
        pair.run(millis(60_000), done);
        println!(
            "loss {loss} burst {burst}: {} {:?}",
            pair.now,
            pair.ends[0].link.counters()
        );
        assert_eq!(check(&pair.ends[1].heard, true), 1500);
        assert_eq!(check(&pair.ends[0].heard, true), 300);
        assert!(pair.ends.iter().all(|end| end.link.counters().torn == 0));
    }
}

/// Goal G1: a reliable flow gets at least 95 % of (1 - p) of the rate, less headers and reports.
#[test]
fn goodput_is_near_the_bound() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.1), (4, 0.2), (5, 0.3), (6, 0.5)] {
        let ways = [1, 2].map(|way| Way::new(seed * 10 + way, loss));
        let mut pair = Pair::new(Config::tunnel(1472), ways);
        let len = pair.ends[0].link.config().packet_max();
        bulk(&mut pair, 0, 4000, 1, len);
        pair.run(millis(5_000), |_| false);
        let heard = check(&pair.ends[1].heard, true);
        let share = (heard * len * 8) as f64 / 5.0 / 6e6 / (1.0 - loss);
        println!(
            "loss {loss}: {share:.3} of the bound, {:?}",
            pair.ends[0].link.counters()
        );
        assert!(
            share > if loss > 0.4 { 0.85 } else { 0.95 },
            "{loss}: {share}"
        );
    }
}

/// Goal: nothing is lost or duplicated while loss goes from 0 to 60 % and back, targets change and one direction is dead for
/// a time.
#[test]
fn changes_of_channel_and_targets_lose_nothing() {
    let mut pair = Pair::new(Config::tunnel(1472), [Way::new(31, 0.0), Way::new(32, 0.0)]);
    bulk(&mut pair, 0, 3000, 3, 1000);
    for (until, losses) in [
        (800, [0.0; 2]),
        (2_500, [0.6; 2]),
        (3_500, [0.0; 2]),
        (5_000, [0.0, 1.0]),
        (60_000, [0.1; 2]),
    ] {
        (pair.ways[0].loss, pair.ways[1].loss) = (losses[0], losses[1]);
        let service = Service {
            residual: losses[0] / 10.0 + 0.001,
            deadline: Some(Duration::from_millis(until / 10)),
            ..Service::RELIABLE
        };
        pair.ends[0].link.set_service(1, service);
        pair.run(millis(until), |pair| pair.ends[1].heard.len() == 3000);
        println!(
            "{} heard {} {:?}",
            pair.now,
            pair.ends[1].heard.len(),
            pair.ends[0].link.report()
        );
    }
    assert_eq!(check(&pair.ends[1].heard, true), 3000);
}

/// Goal: one end restarts. Delivery stays correct, once and in order; only what was in flight is lost, and the flow
/// continues.
#[test]
fn a_restart_loses_only_what_was_in_flight() {
    for (restarted, fragments) in [(0, false), (1, false), (0, true), (1, true)] {
        let config = Config {
            fragments,
            ..Config::tunnel(1472)
        };
        let mut pair = Pair::new(config, [Way::new(41, 0.1), Way::new(42, 0.1)]);
        bulk(&mut pair, 0, 1200, 1, 1000);
        pair.run(millis(700), |_| false);
        let before = pair.ends[1].heard.len();
        pair.ends[restarted].link = chappe_wildnet::Link::new(config, 77).unwrap();
        pair.run(millis(10_000), |_| false);
        let heard = check(&pair.ends[1].heard, true);
        println!(
            "{before} before, {heard} in all; {:?}",
            pair.ends[0].link.counters()
        );
        let under_way = 30 + if restarted == 0 { config.queue } else { 0 };
        assert!(before > 100 && heard >= 1200 - under_way, "{heard}");
    }
}

/// Goal G11: urgent packets overtake a bulk flow that fills a link with 20 % loss.
#[test]
fn urgent_packets_pass_a_full_link() {
    let mut pair = Pair::new(Config::tunnel(1472), [Way::new(51, 0.2), Way::new(52, 0.2)]);
    bulk(&mut pair, 0, 100_000, 1, 1400);
    for i in 0..200 {
        pair.ends[0].traffic.push_front((
            millis(100 + 20 * (199 - i)),
            0,
            9,
            packet(9, 199 - i as u32, 64),
        ));
    }
    let (urgent, bulk): (Vec<_>, Vec<_>) =
        pair.ends[0].traffic.drain(..).partition(|next| next.1 == 0);
    let mut urgent = std::collections::VecDeque::from(urgent);
    pair.ends[0].traffic = bulk.into();
    while let Some((at, service, flow, octets)) = urgent.pop_front() {
        pair.run(at, |_| false);
        assert!(pair.ends[0].link.offer(at, service, flow, &octets));
    }
    pair.run(millis(4_500), |_| false);
    let delays: Vec<_> = pair.ends[1]
        .heard
        .iter()
        .filter(|heard| heard.1 == 9)
        .map(|(at, _, octets)| {
            let number = u64::from(u32::from_be_bytes(octets[..4].try_into().unwrap()));
            at.saturating_since(millis(100 + 20 * number)).as_secs_f64() * 1e3
        })
        .collect();
    let worst = delays
        .iter()
        .fold(0.0, |worst: f64, &delay| worst.max(delay));
    println!("{} of 200, worst {worst:.1} ms", delays.len());
    assert!(
        delays.len() >= 197 && worst < 105.0,
        "{} {worst}",
        delays.len()
    );
}

/// Goal: the paper's block code leaves the residual of the exact binomial sum: 10 + 10 at 30 % loss leave 1 %.
#[test]
fn blocks_leave_the_binomial_residual() {
    let rule = Redundancy::Fixed { data: 1, parity: 1 };
    let config = Config {
        recovery: Recovery::Blocks {
            rule,
            repeat: false,
        },
        services: [Service {
            order: Order::None,
            ..Service::retries(Some(0))
        }; 4],
        bundle: false,
        ..Config::tunnel(1472)
    };
    let mut pair = Pair::new(config, [Way::new(61, 0.3), Way::new(62, 0.0)]);
    let mut offered = 0;
    // Ten packets at a time, then silence: a block of ten.
    for round in 0..10_000u64 {
        for i in 0..10 {
            let octets = packet(0, (round * 10 + i) as u32, 100);
            assert!(pair.ends[0].link.offer(pair.now, 1, 0, &octets));
            offered += 1;
        }
        pair.run(millis(40 * (round + 1)), |_| false);
    }
    let lost = 1.0 - check(&pair.ends[1].heard, false) as f64 / f64::from(offered);
    let channel = chappe_wildnet::gilbert::Channel::independent(0.3);
    let exact = chappe_wildnet::gilbert::Losses::new(&channel, 20).residual(10, 20);
    println!(
        "lost {lost:.4}, exact {exact:.4} {:?} {:?}",
        pair.ends[0].link.counters(),
        pair.ends[1].link.counters()
    );
    // Of 10,000 blocks 170 fail, with a standard deviation of 13, and each loses some six: a standard error of 8 %.
    assert!((lost / exact - 1.0).abs() < 0.2, "{lost} {exact}");
}

/// Goal G4: with 1, 2 and 4 further rounds before the deadline, 30 % loss comes down to 1 % with an overhead of at most 0.75,
/// 0.52 and 0.45, in the whole protocol and not only in the plan.
#[test]
fn targets_are_met_at_the_least_overhead() {
    for (rounds, most) in [(1u64, 0.75), (2, 0.52), (4, 0.45)] {
        // A slot of 8 packets each 100 ms and feedback in between: a round takes 50 ms.
        let deadline = Duration::from_millis(24 + 50 * rounds);
        let service = Service {
            order: Order::None,
            deadline: Some(deadline),
            rounds: 0,
            residual: 0.01,
            retries: None,
            drop_late: true,
            every_path: false,
        };
        let config = Config {
            services: [service; 4],
            turns: true,
            bundle: false,
            recovery: Recovery::Improved { fill: false },
            ..Config::tunnel(1472)
        };
        let (offered, heard, overhead) = in_turns(config, 0.3, 3000);
        let lost = 1.0 - heard as f64 / offered as f64;
        println!("{rounds} rounds: overhead {overhead:.3}, lost {lost:.4}");
        assert!(
            overhead <= most && lost <= 0.01,
            "{rounds}: {overhead} {lost}"
        );
    }
}

/// Two ends take turns of 25 ms, with 8 packets offered before each: packets offered and delivered, and the overhead.
fn in_turns(config: Config, loss: f64, turns: u64) -> (u64, usize, f64) {
    let mut ends = [1, 2].map(|epoch| chappe_wildnet::Link::new(config, epoch).unwrap());
    ends.iter_mut()
        .for_each(|end| end.set_round(Duration::from_millis(50), Duration::from_millis(12)));
    let mut random = Seed(11).stream(Purpose::Trial(1));
    let (mut offered, mut heard, mut frame) = (0, 0, [0; 2400]);
    for turn in 0..turns * 2 {
        let (now, speaker) = (millis(25 * (turn + 1)), (turn % 2) as usize);
        if speaker == 0 && turn < turns * 2 - 40 {
            for _ in 0..8 {
                ends[0].offer(now, 1, 0, &packet(0, offered as u32, 100));
                offered += 1;
            }
        }
        ends[speaker].begin_slot(now);
        for _ in 0..60 {
            let Some(len) =
                ends[speaker].poll(now, chappe_wildnet::Opportunity::ALWAYS, &mut frame)
            else {
                break;
            };
            // Reports always arrive: other tests lose them.
            if speaker == 1 || !random.chance(loss) {
                ends[1 - speaker].handle(now, &frame[..len]).unwrap();
            }
        }
        while ends[1].deliver(&mut frame).is_some() {
            heard += 1;
        }
    }
    (offered, heard, ends[0].counters().overhead())
}

/// Goal: copies shorten the delay of small packets, such as TCP's acknowledgements, in bursts of losses, beside full packets
/// the other way. The 95th percentile falls by an eighth on average of six runs (single runs: by 6 to 25 %). Every packet still
/// arrives once and in order.
#[test]
fn copies_bring_small_packets_through_bursts() {
    let slow = |copies: usize, seed: u64| {
        let ways = [1, 2].map(|way| Way {
            burst: 4.0,
            ..Way::new(seed + way, 0.3)
        });
        let config = Config {
            copies,
            ..Config::tunnel(1472)
        };
        let mut pair = Pair::new(config, ways);
        let each = |i: u32| Instant::ZERO + Duration::from_millis(6) * u64::from(i);
        for i in 0..3000 {
            let small = (each(i), 1, 1, packet(1, i, 12));
            let full = (each(i), 1, 2, packet(2, i, 1400));
            pair.ends[0].traffic.push_back(small);
            pair.ends[1].traffic.push_back(full);
        }
        let done = |pair: &Pair| pair.ends[1].heard.len() == 3000;
        pair.run(millis(60_000), done);
        assert_eq!(check(&pair.ends[1].heard, true), 3000);
        let counters = pair.ends[0].link.counters();
        assert_eq!(counters.copies > 0, copies > 0, "{counters:?}");
        let mut delays: Vec<Duration> = pair.ends[1]
            .heard
            .iter()
            .map(|(at, _, octets)| {
                at.saturating_since(each(u32::from_be_bytes(octets[..4].try_into().unwrap())))
            })
            .collect();
        delays.sort_unstable();
        println!(
            "copies {copies}: median {} 95 % {}",
            delays[1500], delays[2850]
        );
        delays[2850]
    };
    let all = |copies| (1..=6).fold(Duration::ZERO, |sum, seed| sum + slow(copies, 10 * seed));
    let (without, with) = (all(0), all(64));
    assert!(with * 8 < without * 7, "{with} instead of {without}");
}

/// Goal: after a host was nearly silent under bursts of losses, TCP's acknowledgements need few repairs. During the silence a
/// loss became known only with the next packet. Plans that kept such long rounds would add twenty repairs to each packet.
#[test]
fn after_a_silence_rounds_are_short_again() {
    for seed in 1..=6 {
        let ways = [1, 2].map(|way| Way {
            burst: 4.0,
            ..Way::new(10 * seed + way, 0.3)
        });
        let mut config = Config::tunnel(1472);
        config.services[1] = Service::BULK;
        let mut pair = Pair::new(config, ways);
        let rare = |i: u32| Instant::ZERO + Duration::from_millis(700) * u64::from(i);
        let often = |i: u32| rare(40) + Duration::from_millis(6) * u64::from(i);
        for i in 0..40 {
            let small = (rare(i), 1, 1, packet(1, i, 12));
            pair.ends[0].traffic.push_back(small);
        }
        for i in 0..2000 {
            let small = (often(i), 1, 1, packet(1, 40 + i, 12));
            let full = (often(i), 1, 2, packet(2, i, 1400));
            pair.ends[0].traffic.push_back(small);
            pair.ends[1].traffic.push_back(full);
        }
        let done = |pair: &Pair| pair.ends[1].heard.len() == 2040;
        pair.run(millis(90_000), done);
        assert_eq!(check(&pair.ends[1].heard, true), 2040);
        let counters = pair.ends[0].link.counters();
        println!(
            "{seed}: {} bodies, {} repairs",
            counters.bodies, counters.repairs
        );
        assert!(counters.repairs < counters.bodies / 2, "{counters:?}");
    }
}

/// Goal: while the peer is heard, probes do not back off. The path to it is dead for a time; with back-off the link would
/// stall for seconds after the path works again.
#[test]
fn probes_do_not_back_off_while_the_peer_is_heard() {
    for heal in (3_000..5_000).step_by(130) {
        let mut pair = Pair::new(Config::tunnel(1500), [Way::new(1, 0.0), Way::new(2, 0.0)]);
        let first = (millis(0), 2, 0, packet(0, 0, 100));
        pair.ends[1].traffic.push_back(first);
        pair.run(millis(500), |_| false);
        pair.ways[1].loss = 1.0;
        pair.ends[1]
            .traffic
            .push_back((millis(600), 2, 0, packet(0, 1, 100)));
        for i in 0..50 {
            pair.ends[0].traffic.push_back((
                millis(600 + 100 * u64::from(i)),
                2,
                0,
                packet(0, i, 100),
            ));
        }
        pair.run(millis(heal), |_| false);
        pair.ways[1].loss = 0.0;
        pair.run(millis(heal + 3_000), |pair| pair.ends[0].heard.len() == 2);
        let took = pair.now.saturating_since(millis(heal));
        assert_eq!(pair.ends[0].heard.len(), 2);
        // A round trip, and the time from a frame of the peer to the next probe.
        assert!(
            took <= Duration::from_millis(200),
            "{took:?} after {heal} ms"
        );
    }
}

/// Goal: a later packet of a short exchange does not stall at 50 % loss. The first reports show few losses, since they count
/// what came through.
#[test]
fn a_short_history_does_not_count_as_a_good_path() {
    let mut slow = 0;
    for seed in 0..600 {
        let ways = [Way::new(2 * seed, 0.5), Way::new(2 * seed + 1, 0.5)];
        let mut pair = Pair::new(Config::tunnel(1500), ways);
        bulk(&mut pair, 0, 8, 1, 1000);
        let [early, late] = [0, 6_000].map(|at| (millis(at), 2, 0, packet(0, (at > 0).into(), 60)));
        pair.ends[1].traffic.extend([early, late]);
        pair.run(millis(14_000), |pair| pair.ends[0].heard.len() == 2);
        slow += u32::from(pair.now > millis(7_000));
    }
    // Probe timeouts back off only if losses explain the silence with at most one chance in a hundred.
    assert!(slow <= 6, "{slow} of 600 took more than a second");
}

/// Goal: without turns and with half of all frames lost both ways, repairs save at least a fifth of the packets that mere
/// retransmission brings late, and cost at most 2 % of the throughput. (Blocks that shared one deadline saved 59 % and cost
/// 7.5 %.)
#[test]
fn repairs_save_what_would_be_late() {
    let run = |recovery| {
        let (mut share, mut late, mut all) = (0.0, 0, 0);
        for seed in 0..6 {
            let ways = [1, 2].map(|way| Way::new(seed * 10 + way, 0.5));
            // It counts beyond the path's 10 ms.
            let service = Service {
                order: Order::None,
                deadline: Some(Duration::from_millis(190)),
                ..Service::RELIABLE
            };
            let config = Config {
                recovery,
                services: [service; 4],
                reordering: 0,
                ..Config::tunnel(1472)
            };
            let mut pair = Pair::new(config, ways);
            let len = pair.ends[0].link.config().packet_max();
            bulk(&mut pair, 0, 3_000, 1, len);
            pair.run(millis(8_000), |_| false);
            let heard = &pair.ends[1].heard;
            share += (check(heard, false) * len * 8) as f64 / 8.0 / 6e6 / 0.5 / 6.0;
            late += slow(heard, millis(200).saturating_since(Instant::ZERO));
            all += heard.len();
        }
        (share, late as f64 / all as f64)
    };
    let (bare, kept) = (run(Recovery::Acks), run(Recovery::Improved { fill: false }));
    println!("of the bound and late: {bare:?} bare, {kept:?} promised");
    assert!(kept.1 < 0.8 * bare.1, "{bare:?} {kept:?}");
    assert!(kept.0 > 0.98 * bare.0, "{bare:?} {kept:?}");
}

/// Number of packets of one flow that took longer than `most`, without waiting for others. The time of a first transmission is
/// unknown here, but later packets were sent after it. So it lies at least one one-way delay before the first arrival of a
/// later packet.
fn slow(heard: &[(Instant, u8, Vec<u8>)], most: Duration) -> usize {
    let mut newest: Vec<(u32, Instant)> = Vec::new();
    let mut late = 0;
    for (at, _, octets) in heard {
        let number = u32::from_be_bytes(octets[..4].try_into().unwrap());
        if newest.last().is_none_or(|last| last.0 < number) {
            newest.push((number, *at));
            continue;
        }
        let place = newest.partition_point(|one| one.0 < number);
        let took = at.saturating_since(newest[place].1) + Duration::from_millis(10);
        late += usize::from(took > most);
    }
    late
}

/// A new packet of the most urgent class leaves before what is sent again for another class, and before its repairs: 20 of 40 bulk
/// packets are lost and reported. It used to wait for all of them.
#[test]
fn an_urgent_packet_goes_before_the_repetitions_of_other_classes() {
    let services = [
        Service::PROMPT,
        Service::RELIABLE,
        Service::RELIABLE,
        Service {
            // Soon enough that the repetitions get repairs as well.
            deadline: Some(Duration::from_millis(60)),
            ..Service::RELIABLE
        },
    ];
    let config = Config {
        services,
        ..Config::tunnel(1400)
    };
    let (mut here, mut there) = (Link::new(config, 1).unwrap(), Link::new(config, 2).unwrap());
    let (mut frame, mut heard) = ([0; 1400], [0; 1400]);
    for _ in 0..40 {
        assert!(here.offer(millis(0), 3, 0, &[7; 1300]));
    }
    let mut sent = 0;
    while let Some(len) = here.poll(millis(1), Opportunity::ALWAYS, &mut frame) {
        if !(10..30).contains(&sent) {
            there.handle(millis(11), &frame[..len]).unwrap();
        }
        sent += 1;
    }
    assert_eq!(sent, 40);
    let len = there.poll(millis(30), Opportunity::ALWAYS, &mut frame);
    here.handle(millis(40), &frame[..len.expect("a report is due")])
        .unwrap();
    assert_eq!(here.lost_count(), 20);
    while there.deliver(&mut heard).is_some() {}

    assert!(here.offer(millis(40), 0, 1, &[9; 84]));
    let len = here.poll(millis(40), Opportunity::ALWAYS, &mut frame);
    there.handle(millis(50), &frame[..len.unwrap()]).unwrap();
    let delivery = there.deliver(&mut heard).expect("it came first");
    assert_eq!((delivery.flow, &heard[..delivery.len]), (1, &[9; 84][..]));
    // A less urgent packet waits, as before.
    assert!(here.offer(millis(40), 3, 2, &[5; 84]));
    let len = here.poll(millis(40), Opportunity::ALWAYS, &mut frame);
    there.handle(millis(50), &frame[..len.unwrap()]).unwrap();
    assert_eq!(here.lost_count(), 19);
}
