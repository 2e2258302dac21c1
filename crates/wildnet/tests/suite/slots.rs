//! Slots on the air: how much fits, how well they stay together, how they begin.

use crate::air;

use air::{Air, Path, light};
use chappe_core::{Address, Duration, Instant, Purpose, Seed};
use chappe_wildnet::{Config, Link, Order, Radio, Recovery, Service, Site, SlotConfig, Turns};

/// Two sites of one radio each.
fn link(slots: SlotConfig, config: Config, km: f64, loss: f64, seed: u64) -> Air<Radio> {
    let addresses = [Address::node(1), Address::node(2)];
    let radio = |i: usize| {
        let random = |purpose| Seed(seed).stream(Purpose::Node(purpose + 10 * i as u32));
        let site = Site::new(slots, 1, random(0));
        let link = Link::new(config, i as u8).unwrap();
        Radio::new(link, site, 0, (addresses[i], addresses[1 - i]), random(1))
    };
    let paths = [(0, 1), (1, 0)].map(|(from, to)| Path {
        from,
        to,
        delay: light(km),
        loss,
    });
    Air::new(vec![radio(0), radio(1)], paths.to_vec(), seed)
}

/// Octets of an IPv4 packet with 1440 octets of UDP payload.
const PACKET: usize = 1468;

/// Keeps the queues of the `senders` full, empties the receivers, and counts what arrives at each.
fn saturate(air: &mut Air<Radio>, senders: &[usize], heard: &mut [usize]) {
    for (node, heard) in heard.iter_mut().enumerate() {
        let mut packet = [0; 2400];
        while air.nodes[node].link.deliver(&mut packet).is_some() {
            *heard += 1;
        }
        if senders.contains(&node) {
            air.with(node, |radio, now| {
                while radio.link.room(1) > 0 {
                    radio.link.offer(now, 1, 0, &[7; PACKET]);
                }
            });
        }
    }
}

fn plain() -> Config {
    Config {
        recovery: Recovery::Acks,
        services: [Service::retries(None); 4],
        frame_max: 1532,
        ..Config::slots()
    }
}

/// Slots in which each frame takes its mean time: the back-off is not random.
fn even(millis: u64) -> SlotConfig {
    let slots = SlotConfig::dot11b(Duration::from_millis(millis));
    SlotConfig {
        gap: slots.mean_gap(),
        backoff: 0,
        guard: Duration::ZERO,
        ..slots
    }
}

/// Goal: slots of T = 20 ms hold 13 packets, so UDP one way gets 13 * 1440 * 8 / (2 T + 2 tau): 3.74, 3.69, 3.62 Mbit/s at
/// 0, 80, 200 km (specs 3.1, set C), flat within 4 %.
#[test]
fn utilisation_follows_the_formula() {
    for (km, expected) in [(8.0, 3.74), (80.0, 3.69), (200.0, 3.62)] {
        let mut air = link(even(20), plain(), km, 0.0, 1);
        let mut heard = vec![0; 2];
        let secs = 10;
        air.run(Duration::from_secs(1), Duration::from_millis(2), |air| {
            saturate(air, &[0], &mut heard)
        });
        heard.fill(0);
        air.run(
            Duration::from_secs(1 + secs),
            Duration::from_millis(2),
            |air| saturate(air, &[0], &mut heard),
        );
        let mbps = heard[1] as f64 * 1440.0 * 8.0 / secs as f64 / 1e6;
        println!(
            "{km} km: {mbps:.3} Mbit/s, expected {expected}; {:?} {:?}",
            air.nodes[0].slots(),
            air.nodes[0].link.counters()
        );
        assert!((mbps / expected - 1.0).abs() < 0.03, "{km} km: {mbps}");
    }
}

/// Constant bit rate from node 0 to node 1. Each arrival gives a delay in milliseconds.
struct Steady {
    next: u64,
    every: u64,
    service: usize,
    delays: Vec<f64>,
    arrived: usize,
}

impl Steady {
    /// 1 Mbit/s of packets of 1440 octets.
    fn new(service: usize) -> Steady {
        Steady {
            next: 1_000_000_000,
            every: 11_520_000,
            service,
            delays: Vec::new(),
            arrived: 0,
        }
    }

    /// Offers packets that are due; returns when the packets that have arrived were offered.
    fn look(&mut self, air: &mut Air<Radio>) -> Vec<u64> {
        let mut came = Vec::new();
        while self.next <= air.now {
            let (at, service) = (self.next, self.service);
            let mut packet = [0; PACKET];
            packet[..8].copy_from_slice(&at.to_be_bytes());
            air.with(0, |radio, now| radio.link.offer(now, service, 0, &packet));
            self.next += self.every;
        }
        let mut packet = [0; 2400];
        while air.nodes[1].link.deliver(&mut packet).is_some() {
            let at = u64::from_be_bytes(packet[..8].try_into().unwrap());
            self.delays.push((air.now - at) as f64 / 1e6);
            self.arrived += 1;
            came.push(at);
        }
        came
    }

    fn mean_and_p99(&mut self) -> (f64, f64) {
        self.delays.sort_by(f64::total_cmp);
        let mean = self.delays.iter().sum::<f64>() / self.delays.len() as f64;
        (mean, self.delays[self.delays.len() * 99 / 100])
    }
}

fn steady(
    slots: SlotConfig,
    config: Config,
    loss: f64,
    service: usize,
    secs: u64,
) -> (f64, f64, f64) {
    let mut air = link(slots, config, 60.0, loss, 4);
    let mut steady = Steady::new(service);
    air.run(
        Duration::from_secs(secs),
        Duration::from_micros(250),
        |air| {
            steady.look(air);
        },
    );
    let (mean, p99) = steady.mean_and_p99();
    println!(
        "loss {loss}: mean {mean:.1} p99 {p99:.1} {:?}",
        air.nodes[0].link.counters()
    );
    let offered = (secs - 1) as f64 * 1e9 / 11_520_000.0;
    (mean, p99, steady.arrived as f64 / offered)
}

/// Goal: the delays of bulk acknowledgements in order, 60 km, 1 Mbit/s, by slot and loss (specs 3.3): means of an
/// independent simulation, within 20 %.
#[test]
fn delays_of_bulk_acknowledgements() {
    for (slot, loss, mean) in [
        (20, 0.0, 8.0),
        (20, 0.1, 17.0),
        (20, 0.3, 51.0),
        (10, 0.3, 20.0),
        (40, 0.3, 128.0),
        (20, 0.5, 125.0),
    ] {
        let (ours, _, arrived) = steady(even(slot), plain(), loss, 1, 60);
        assert!(arrived > 0.98, "{arrived}");
        assert!(
            (ours / mean - 1.0).abs() < 0.2,
            "T {slot} loss {loss}: {ours} against {mean}"
        );
    }
}

/// Goal G10: repairs fill unused slot time. 1 Mbit/s in order at 30 % loss takes 12 ms on average, 40 ms for 99 %.
#[test]
fn repairs_in_unused_slot_time_cut_the_delay() {
    let config = Config {
        services: [Service::retries(None); 4],
        frame_max: 1532,
        ..Config::slots()
    };
    let (mean, p99, arrived) = steady(even(20), config, 0.3, 1, 60);
    assert!(
        mean < 12.0 && p99 < 40.0 && arrived > 0.99,
        "{mean} {p99} {arrived}"
    );
}

/// Goal G4 with a handful of packets a slot: 1 Mbit/s, 20 km, at most 1 % lost within 100 ms, which is two or three rounds.
/// A round begins with a slot. Plans in which it began with the report before left 1.8 %. Packets that wait for none before them get
/// plans of their own rounds, two in turn; before, they took as much redundancy as packets in order.
#[test]
fn targets_are_met_by_a_few_packets_in_slots() {
    let orders = [(Order::Link, [0.45, 0.8]), (Order::None, [0.37, 0.72])];
    let places = [(0.2, 0, 1), (0.2, 0, 2), (0.3, 1, 1), (0.3, 1, 2)];
    for ((order, most), (loss, place, seed)) in orders
        .into_iter()
        .flat_map(|order| places.map(|place| (order, place)))
    {
        let service = Service {
            order,
            residual: 0.01,
            deadline: Some(Duration::from_millis(100)),
            drop_late: true,
            ..Service::retries(None)
        };
        let config = Config {
            recovery: Recovery::Improved { fill: false },
            services: [service; 4],
            ..Config::slots()
        };
        let slots = SlotConfig::dot11b(Duration::from_millis(20));
        let mut air = link(slots, config, 20.0, loss, seed);
        let mut steady = Steady::new(1);
        air.run(Duration::from_secs(60), Duration::from_micros(250), |air| {
            steady.look(air);
        });
        let counters = air.nodes[0].link.counters();
        let lost = 1.0 - counters.delivered as f64 / counters.bodies as f64;
        let overhead = counters.overhead();
        println!("{order:?}, loss {loss}: {lost:.4} lost, overhead {overhead:.3}");
        assert!(
            lost <= 0.01 && overhead < most[place],
            "{loss}: {lost} {overhead}"
        );
    }
}

/// Goal G5: loss jumps from 5 to 40 % and back every two seconds; 1 Mbit/s, 20 km, at most 1 % lost within 111 ms, which is
/// two further rounds. In the first two rounds after a step up, plans expect too little loss. From the third round on the
/// target is kept, except by chance. After a step down redundancy is back after two rounds: the test takes the third to the
/// tenth.
#[test]
fn a_step_of_loss_is_followed_in_two_rounds() {
    const PERIOD: u64 = 2_000;
    // A cycle of 40.13 ms.
    const ROUNDS: u64 = 2 * 40;
    let service = Service {
        residual: 0.01,
        deadline: Some(Duration::from_millis(111)),
        drop_late: true,
        ..Service::retries(None)
    };
    let config = Config {
        recovery: Recovery::Improved { fill: false },
        services: [service; 4],
        ..Config::slots()
    };
    // By time of offer: packets lost and all packets, in the first two rounds after a step up and in the rest at 40 %; then
    // repairs and bodies, in rounds 3 to 10 after a step down and in the second half at 5 %.
    let (mut early, mut later) = ([0; 2], [0; 2]);
    let (mut after, mut settled) = ([0; 2], [0; 2]);
    for seed in 1..=4 {
        let slots = SlotConfig::dot11b(Duration::from_millis(20));
        let mut air = link(slots, config, 20.0, 0.05, seed);
        let mut steady = Steady::new(1);
        let (mut came, mut last) = (Vec::new(), [0; 2]);
        for half in 0..30 {
            let high = half % 2 == 1;
            let loss = if high { 0.4 } else { 0.05 };
            air.paths.iter_mut().for_each(|path| path.loss = loss);
            for part in [ROUNDS, 10 * 40, PERIOD / 2, PERIOD] {
                let until = Duration::from_millis(half * PERIOD + part);
                air.run(until, Duration::from_micros(250), |air| {
                    came.extend(steady.look(air));
                });
                let counters = air.nodes[0].link.counters();
                let now = [counters.repairs + counters.repeats, counters.bodies];
                let spent = [now[0] - last[0], now[1] - last[1]];
                last = now;
                let of = match part {
                    _ if high || half == 0 => continue,
                    400 => &mut after,
                    PERIOD => &mut settled,
                    _ => continue,
                };
                of.iter_mut()
                    .zip(spent)
                    .for_each(|(sum, spent)| *sum += spent);
            }
        }
        let all = (1_000_000_000..59_000_000_000).step_by(11_520_000);
        came.sort_unstable();
        for offered in all {
            let (half, place) = (offered / 1_000_000 / PERIOD, offered / 1_000_000 % PERIOD);
            if half % 2 == 0 {
                continue;
            }
            let of = if place < ROUNDS {
                &mut early
            } else {
                &mut later
            };
            of[0] += u64::from(came.binary_search(&offered).is_err());
            of[1] += 1;
        }
    }
    let share = |of: [u64; 2]| of[0] as f64 / of[1] as f64;
    println!(
        "lost in the first two rounds {:.4}, later {:.4}; redundancy {:.3}, later {:.3}",
        share(early),
        share(later),
        share(after),
        share(settled)
    );
    // 0.9 to 1.4 % in four versions of the program that differ only in random draws: whole blocks are lost together.
    assert!(share(later) <= 0.0175, "{later:?}");
    assert!(share(after) < share(settled) + 0.1, "{after:?} {settled:?}");
}

/// Goal: more retries trade loss for delay as in the paper's Fig. 12: the points of an independent simulation (specs 3.3).
///
/// Over ten seeds our mean delays lie 6, 3 and 1 % above that simulation's, with standard deviations of 3, 2 and 4 % between
/// seeds. So 15 % leaves three of them, and 3 to 7 ms more delay fail the test; a retry costs a cycle of 40 ms.
#[test]
fn retries_trade_loss_for_delay() {
    for (retries, mean, residual) in [(0, 18.0, 0.3), (1, 34.0, 0.09), (3, 48.0, 0.008)] {
        let config = Config {
            services: [Service::retries(Some(retries)); 4],
            ..plain()
        };
        let (ours, _, arrived) = steady(even(20), config, 0.3, 1, 60);
        println!(
            "{retries} retries: mean {ours:.1} (model {mean}), lost {:.4} (model {residual})",
            1.0 - arrived
        );
        assert!((1.0 - arrived - residual).abs() < 0.1 * residual + 0.006);
        assert!(
            (ours / mean - 1.0).abs() < 0.15,
            "{retries} retries: {ours} against {mean}"
        );
    }
}

/// Goals G3 and G7: saturated both ways at 60 km, slots carry (1 - p) of their capacity up to 30 % loss, each packet once.
#[test]
fn throughput_under_loss() {
    let (any, soon) = (Service::retries(None), Service::RELIABLE);
    // A deadline of five rounds asks for no repairs at 30 %, however full the slots are.
    for (loss, service) in [(0.0, any), (0.1, any), (0.3, any), (0.3, soon), (0.5, any)] {
        let config = Config {
            services: [service; 4],
            frame_max: 1532,
            ..Config::slots()
        };
        let mut air = link(even(20), config, 60.0, loss, 1);
        let mut heard = vec![0; 2];
        air.run(Duration::from_secs(2), Duration::from_millis(2), |air| {
            saturate(air, &[0, 1], &mut heard)
        });
        heard.fill(0);
        air.run(Duration::from_secs(22), Duration::from_millis(2), |air| {
            saturate(air, &[0, 1], &mut heard)
        });
        let share =
            heard.iter().sum::<usize>() as f64 / (2.0 * 13.0 * 20.0 / 0.0404) / (1.0 - loss);
        println!(
            "loss {loss}: {share:.3} of the bound; {:?}",
            air.nodes[0].link.counters()
        );
        assert!(
            share > if loss > 0.4 { 0.9 } else { 0.95 },
            "{loss}: {share}"
        );
    }
}

/// Goal G6: traffic one way in slots that follow the demand gets nearly twice what symmetric slots carry.
#[test]
fn slots_follow_the_demand() {
    let slots = SlotConfig {
        by_demand: true,
        ..even(20)
    };
    let mut air = link(slots, plain(), 60.0, 0.0, 1);
    let mut heard = vec![0; 2];
    air.run(Duration::from_secs(1), Duration::from_millis(2), |air| {
        saturate(air, &[0], &mut heard)
    });
    heard.fill(0);
    air.run(Duration::from_secs(11), Duration::from_millis(2), |air| {
        saturate(air, &[0], &mut heard)
    });
    let mbps = heard[1] as f64 * 1440.0 * 8.0 / 10.0 / 1e6;
    println!("{mbps} Mbit/s, cycle {:?}", air.nodes[0].site().cycle(0));
    assert!(mbps > 6.4, "{mbps}");
}

/// How far, in microseconds, each slot start of two ends lies from the other end's slot plus the propagation delay.
fn slot_errors(air: &mut Air<Radio>, secs: u64, from: u64, light: Duration) -> Vec<f64> {
    let (mut last, mut starts, mut errors) = ([0, 0], [0.0, 0.0], Vec::new());
    air.run(Duration::from_secs(secs), Duration::from_millis(1), |air| {
        for node in 0..2 {
            let turn = air.nodes[node].turn();
            if turn.index == last[node] {
                continue;
            }
            last[node] = turn.index;
            let (ppb, offset) = air.drift[node];
            let local = turn.start.nanos() - offset;
            starts[node] = local as f64 / (1.0 + ppb as f64 / 1e9);
            if air.now > from * 1_000_000_000 {
                let gap = (starts[node] - starts[1 - node]) / 1e3;
                errors.push(gap - 20_000.0 - light.as_secs_f64() * 1e6);
            }
        }
    });
    errors
}

/// Goal G9: clocks of +-50 ppm and 90 % of all frames lost: the slots stay together within 50 us.
#[test]
fn slots_stay_together_with_bad_clocks_and_hardly_a_frame() {
    for (seed, loss) in [(1, 0.0), (2, 0.5), (3, 0.9)] {
        let mut air = link(
            SlotConfig::dot11b(Duration::from_millis(20)),
            Config::slots(),
            60.0,
            loss,
            seed,
        );
        air.drift = vec![(50_000, 0), (-50_000, 7_777_777)];
        let errors = slot_errors(&mut air, 20, 5, light(60.0));
        let worst = errors
            .iter()
            .fold(0.0, |worst: f64, error| worst.max(error.abs()));
        println!("loss {loss}: worst of {} slots {worst:.1} us", errors.len());
        assert!(errors.len() > 600 && worst < 50.0, "{loss}: {worst}");
    }
}

/// Goal: two sites that know nothing find each other soon, whatever their phases.
#[test]
fn two_sites_find_each_other() {
    for seed in 0..20 {
        let mut air = link(
            SlotConfig::dot11b(Duration::from_millis(20)),
            Config::slots(),
            100.0,
            0.3,
            seed,
        );
        air.run(
            Duration::from_millis(1_000),
            Duration::from_millis(10),
            |_| {},
        );
        for node in &air.nodes {
            assert!(node.site().is_live(0), "seed {seed}");
        }
        let errors = slot_errors(&mut air, 2, 1, light(100.0));
        assert!(
            errors.iter().all(|error| error.abs() < 1_000.0),
            "seed {seed}: {errors:?}"
        );
    }
}

/// A line of sites: radio 2 i looks right from site i, radio 2 i + 1 left from site i + 1. All on one channel.
fn line(hops: usize, slots: SlotConfig, config: Config, loss: f64, seed: u64) -> Air<Radio> {
    let random = |purpose| Seed(seed).stream(Purpose::Node(purpose));
    let radios = |site: usize| if site == 0 || site == hops { 1 } else { 2 };
    let sites: Vec<_> = (0..=hops)
        .map(|site| Site::new(slots, radios(site), random(100 + site as u32)))
        .collect();
    let mut nodes = Vec::new();
    for hop in 0..hops {
        for (end, site) in [(0, hop), (1, hop + 1)] {
            let place = usize::from(end == 0 && site > 0);
            let (me, peer) = (
                Address::node((2 * hop + end) as u16),
                Address::node((2 * hop + 1 - end) as u16),
            );
            let link = Link::new(config, (2 * hop + end) as u8).unwrap();
            let own = random((2 * hop + end) as u32);
            nodes.push(Radio::new(
                link,
                sites[site].clone(),
                place,
                (me, peer),
                own,
            ));
        }
    }
    let pairs = (0..hops).flat_map(|hop| [(2 * hop, 2 * hop + 1), (2 * hop + 1, 2 * hop)]);
    let mut paths: Vec<_> = pairs
        .map(|(from, to)| Path {
            from,
            to,
            delay: light(10.0),
            loss,
        })
        .collect();
    // The other radio of the same mast hears everything sent there, louder than its own peer.
    for site in 1..hops {
        for (from, to) in [(2 * site - 1, 2 * site), (2 * site, 2 * site - 1)] {
            paths.push(Path {
                from,
                to,
                delay: Duration::ZERO,
                loss: 1.0,
            });
        }
    }
    Air::new(nodes, paths, seed)
}

/// Goal G8: a line of hops on one channel, saturated in one direction, carries what one hop carries, within 5 %.
#[test]
fn hops_cost_no_throughput() {
    let carried = |hops: usize, slots: SlotConfig, loss: f64| {
        let mut air = line(hops, slots, plain(), loss, 7);
        let mut heard = vec![0; 2 * hops];
        let senders: Vec<_> = (0..hops).map(|hop| 2 * hop).collect();
        air.run(Duration::from_secs(8), Duration::from_millis(2), |air| {
            saturate(air, &senders, &mut heard)
        });
        heard.fill(0);
        air.run(Duration::from_secs(18), Duration::from_millis(2), |air| {
            saturate(air, &senders, &mut heard)
        });
        let each: Vec<_> = (0..hops).map(|hop| heard[2 * hop + 1]).collect();
        println!("{hops} hops: {each:?} packets in 10 s");
        *each.iter().min().unwrap()
    };
    let one = carried(1, even(20), 0.0);
    for hops in [2, 3, 6] {
        let least = carried(hops, even(20), 0.0);
        assert!(
            least * 100 >= one * 95,
            "{hops} hops: {least} against {one}"
        );
    }
}

/// Goal: lost markers cost what the paper says. Each idles a quarter of a slot, so 30 % loss leaves about 0.93 of the
/// cycles. Lost stamps cost nothing.
#[test]
fn lost_markers_cost_cycles_and_lost_stamps_do_not() {
    let cycles = |turns: Turns, loss: f64| {
        let slots = SlotConfig { turns, ..even(20) };
        let config = Config {
            recovery: Recovery::None,
            ..plain()
        };
        let mut air = link(slots, config, 10.0, loss, 3);
        let mut heard = vec![0; 2];
        air.run(Duration::from_secs(2), Duration::from_millis(2), |air| {
            saturate(air, &[0, 1], &mut heard)
        });
        let before = air.nodes[0].slots().slots;
        air.run(Duration::from_secs(32), Duration::from_millis(2), |air| {
            saturate(air, &[0, 1], &mut heard)
        });
        air.nodes[0].slots().slots - before
    };
    let markers = Turns::Markers { timeout: 5 };
    let (clean, lossy) = (cycles(markers, 0.0), cycles(markers, 0.3));
    let ratio = lossy as f64 / clean as f64;
    println!("markers: {clean} cycles, {lossy} at 30 % loss: {ratio:.3}");
    assert!((ratio - 0.93).abs() < 0.03, "{ratio}");
    let (clean, lossy) = (cycles(Turns::Stamps, 0.0), cycles(Turns::Stamps, 0.3));
    assert!(clean - lossy <= 1, "{clean} {lossy}");
}

/// 2P: turns by markers, and no recovery.
fn two_p() -> (SlotConfig, Config) {
    let slots = SlotConfig {
        turns: Turns::Markers { timeout: 5 },
        ..even(20)
    };
    let config = Config {
        recovery: Recovery::None,
        ..plain()
    };
    (slots, config)
}

/// 2P recovers: after two seconds without a frame, both ends send independently; they take turns again as soon as frames come
/// through. An idle link loses no more cycles to lost markers than a full one.
#[test]
fn ends_with_markers_find_each_other_again() {
    let (slots, config) = two_p();
    let cycles = |senders: &'static [usize], loss: f64, deaf: bool, seed: u64| {
        let mut air = link(slots, config, 60.0, loss, seed);
        let mut heard = vec![0; 2];
        let mut run = |air: &mut Air<Radio>, until: u64| {
            let until = Duration::from_millis(until);
            air.run(until, Duration::from_millis(2), |air| {
                saturate(air, senders, &mut heard)
            });
        };
        run(&mut air, 2_000);
        if deaf {
            air.paths.iter_mut().for_each(|path| path.loss = 1.0);
            run(&mut air, 4_000);
            air.paths.iter_mut().for_each(|path| path.loss = loss);
        }
        let before = air.nodes[0].slots().slots;
        run(&mut air, 24_000);
        (air.nodes[0].slots().slots - before) as f64
    };
    for seed in 1..=8 {
        // 20 s of cycles of 40 ms and the round-trip propagation time, less what the search takes.
        let found = cycles(&[0, 1], 0.0, true, seed);
        assert!(found > 0.97 * 20_000.0 / 40.4, "{seed}: {found}");
        let idle = cycles(&[], 0.3, false, seed) / cycles(&[], 0.0, false, seed);
        assert!((idle - 0.93).abs() < 0.03, "{seed}: {idle}");
    }
}

/// 2P starts in turns: a marker that is heard before the first turn ends no turn of this end, so it does not send two in a row.
#[test]
fn ends_with_markers_take_turns_from_the_first_one() {
    let (slots, config) = two_p();
    for seed in 1..=16 {
        let mut air = link(slots, config, 60.0, 0.0, seed);
        let mut starts = [vec![], vec![]];
        air.run(Duration::from_secs(1), Duration::from_millis(1), |air| {
            for (node, starts) in air.nodes.iter().zip(&mut starts) {
                let start = node.turn().start;
                if node.turn().index > 0 && starts.last() != Some(&start) {
                    starts.push(start);
                }
            }
        });
        for starts in starts {
            let mut pairs = starts.windows(2);
            // Between two turns lies the peer's, or the longer wait for it.
            let apart = |pair: &[Instant]| pair[1].saturating_since(pair[0]) >= slots.length * 2;
            assert!(pairs.all(apart) && starts.len() > 20, "{seed}: {starts:?}");
        }
    }
}

/// Packets of 1500 octets both ways that fill equal slots, each checked for order and octets, with a small packet back for every
/// two, as TCP has it.
struct Exchange {
    sent: [u32; 2],
    heard: [u32; 2],
}

impl Exchange {
    const LEN: usize = 1500;

    fn packet(number: u32) -> [u8; Self::LEN] {
        let mut packet = [number as u8; Self::LEN];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet[1400..1404].copy_from_slice(&number.to_be_bytes());
        packet
    }

    fn look(&mut self, air: &mut Air<Radio>) {
        for node in 0..2 {
            air.with(node, |radio, now| {
                let mut packet = [0; 2400];
                while let Some(delivery) = radio.link.deliver(&mut packet) {
                    if delivery.flow == 1 {
                        assert_eq!(packet[..delivery.len], [3; 52]);
                        continue;
                    }
                    let expected = Self::packet(self.heard[node]);
                    assert_eq!(
                        packet[..delivery.len],
                        expected,
                        "after {}",
                        self.heard[node]
                    );
                    self.heard[node] += 1;
                    if self.heard[node].is_multiple_of(2) {
                        radio.link.offer(now, 1, 1, &[3; 52]);
                    }
                }
                while radio.link.room(2) > 0 {
                    radio.link.offer(now, 2, 0, &Self::packet(self.sent[node]));
                    self.sent[node] += 1;
                }
            });
        }
    }

    /// Packets for each slot over ten seconds.
    fn run(fragments: bool, loss: f64, seed: u64) -> (f64, Air<Radio>) {
        let config = Config {
            bundle: true,
            fragments,
            ..Config::slots()
        };
        let slots = SlotConfig::dot11b(Duration::from_millis(20));
        let mut air = link(slots, config, 20.0, loss, seed);
        let mut exchange = Exchange {
            sent: [0; 2],
            heard: [0; 2],
        };
        let slots = |air: &Air<Radio>| air.nodes.iter().map(|node| node.slots().slots).sum::<u64>();
        let mut look = |air: &mut Air<Radio>| exchange.look(air);
        air.run(Duration::from_secs(1), Duration::from_millis(1), &mut look);
        let before = slots(&air);
        let heard = exchange.heard;
        let mut look = |air: &mut Air<Radio>| exchange.look(air);
        air.run(Duration::from_secs(11), Duration::from_millis(1), &mut look);
        let heard: u32 = (0..2).map(|i| exchange.heard[i] - heard[i]).sum();
        (f64::from(heard) / (slots(&air) - before) as f64, air)
    }
}

/// Goal: nothing of a slot is lost but its guard, the frames' headers and gaps, and the acknowledgements' octets. 19.9 ms hold 13
/// frames, each with 220 us of gap and back-off, 192 us of preamble, and headers of 36 (802.11), 18 (link), 16 (report) and 3 (body)
/// octets. A packet has 2 more, and half an acknowledgement of 54. What is left of a slot is shorter than the shortest frame.
#[test]
fn parts_of_packets_fill_slots() {
    let octet = 8.0 / 11.0;
    let frame = 412.0 + (36.0 + 18.0 + 16.0 + 3.0) * octet;
    let bound = (19_900.0 - 13.0 * frame) / ((1502.0 + 27.0) * octet);
    for seed in 1..=3 {
        let [whole, cut] = [false, true].map(|fragments| Exchange::run(fragments, 0.0, seed).0);
        println!("{whole:.3} packets to a slot, with parts {cut:.3}, bound {bound:.3}");
        assert!(cut > 0.985 * bound && cut < 1.01 * bound, "{cut}");
        assert!(cut > 1.03 * whole, "{cut} {whole}");
    }
}

/// Whatever is lost, each packet arrives once, whole and in its order, and parts cost no throughput.
#[test]
fn packets_in_parts_arrive_over_lossy_slots() {
    for (loss, seed) in [(0.1, 1), (0.3, 2), (0.5, 3)] {
        let [whole, cut] = [false, true].map(|fragments| Exchange::run(fragments, loss, seed));
        println!(
            "loss {loss}: {:.3} packets to a slot, with parts {:.3}",
            whole.0, cut.0
        );
        assert!(cut.0 > whole.0, "{loss}: {} {}", cut.0, whole.0);
        assert!(
            cut.1
                .nodes
                .iter()
                .all(|node| node.link.counters().torn == 0)
        );
    }
}
