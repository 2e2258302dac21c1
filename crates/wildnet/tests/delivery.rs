//! A link over lossy ways: everything arrives that should, once, in order, in good time, and at what cost.

mod pair;

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_wildnet::{Config, Order, Recovery, Redundancy, Service};
use pair::{Pair, Way, check, packet};

fn millis(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// `count` packets of mixed sizes in `flows` flows from end 0, as fast as they are taken.
fn bulk(pair: &mut Pair, end: usize, count: u32, flows: u8, len: usize) {
    let mut numbers = vec![0; usize::from(flows)];
    let mut random = Seed(3).stream(Purpose::Traffic(0));
    for i in 0..count {
        let flow = (i % u32::from(flows)) as u8;
        let number = &mut numbers[usize::from(flow)];
        let size = if len > 0 { len } else { 8 + random.below(1400) as usize };
        let octets = packet(flow, *number, size);
        pair.ends[end].traffic.push_back((Instant::ZERO, 1, flow, octets));
        *number += 1;
    }
}

/// Goal: whatever is lost, late or doubled on the way, both directions deliver everything once and in order.
#[test]
fn everything_arrives_once_and_in_order() {
    for (seed, loss, burst, late) in [
        (1, 0.0, 0.0, 0.0),
        (2, 0.1, 0.0, 0.0),
        (3, 0.3, 0.0, 0.0),
        (4, 0.5, 0.0, 0.02),
        (5, 0.2, 8.0, 0.0),
        (6, 0.1, 0.0, 0.1),
    ] {
        let ways = [1, 2].map(|way| Way { burst, late, ..Way::new(seed * 10 + way, loss) });
        let mut pair = Pair::new(Config::tunnel(1472), ways);
        bulk(&mut pair, 0, 1500, 5, 0);
        bulk(&mut pair, 1, 300, 2, 0);
        let done = |pair: &Pair| pair.ends[1].heard.len() == 1500 && pair.ends[0].heard.len() == 300;
        pair.run(millis(60_000), done);
        println!("loss {loss} burst {burst}: {} {:?}", pair.now, pair.ends[0].link.counters());
        assert_eq!(check(&pair.ends[1].heard, true), 1500);
        assert_eq!(check(&pair.ends[0].heard, true), 300);
    }
}

/// Goal G1 in theory: a reliable flow gets (1 - p) of the rate, less headers and reports. 95 % at least.
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
        println!("loss {loss}: {share:.3} of the bound, {:?}", pair.ends[0].link.counters());
        assert!(share > 0.95, "{loss}: {share}");
    }
}
