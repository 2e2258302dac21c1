//! Goodput under loss: against the paper's model, against the best that any protocol with such a window could do, and by
//! congestion control.

use crate::support;

use chappe_core::{Duration, Purpose, Seed};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Endpoint, NewReno, Unlimited};

use support::host::{Host, Sizes, address};
use support::network::{Faults, Network};

const PORT: u16 = 80;
/// Linux's minimum RTO (TCP_RTO_MIN); RFC 8961 allows it where round trips are measured.
const RTO_MIN: Duration = Duration::from_millis(200);
/// Octets of a transfer.
const OCTETS: usize = 400_000;

/// A path: half its round trip, and how long an octet takes.
#[derive(Clone, Copy)]
struct Path {
    delay: Duration,
    octet: Duration,
}

/// About 190 ms and 1 Mbit/s: the round trip of the paper's three hops, where the window is the limit.
const LONG: Path = Path {
    delay: Duration::from_millis(90),
    octet: Duration::from_micros(8),
};
/// About 100 kbit/s, as one hop of 802.15.4 has: four segments fill it, eight have as much again to spare.
const NARROW: Path = Path {
    delay: Duration::from_millis(5),
    octet: Duration::from_micros(75),
};

/// Goodput in kbit/s with a window of `segments` segments of 462 octets, when each packet is lost with this probability.
fn goodput(path: Path, segments: usize, loss: f64, congestion: Any, seed: u64) -> f64 {
    let config = Config {
        mss: 474,
        rto_min: RTO_MIN,
        ..Config::STANDARD
    };
    let sizes = Sizes {
        send: 462 * segments,
        receive: 462 * segments,
        ranges: segments,
        flight: segments + 2,
    };
    let hosts = [1, 2].map(|n| Host::new(n, config, sizes, congestion));
    let faults = Faults {
        loss,
        delay: path.delay,
        octet: path.octet,
        ..Faults::default()
    };
    let mut network = Network::new(hosts, faults, seed);
    network.hosts[1].listen(PORT, 10);
    let (start, data) = (network.now, [7; 4_000]);
    network.hosts[0].connect(start, 50_000, Endpoint::new(address(2), PORT));
    let limit = start + Duration::from_secs(24 * 3600);
    let (mut written, mut read) = (0, 0);
    while read < OCTETS {
        // The applications are never the bottleneck.
        network.step_with(limit, |side, host| {
            let Some(socket) = host.sockets.first_mut() else {
                return;
            };
            match side {
                0 => written += socket.write(&data[..data.len().min(OCTETS - written)]),
                _ => read += socket.read(&mut [0; 4_000]),
            }
        });
        assert!(network.now < limit);
    }
    OCTETS as f64 * 8.0 / network.now.saturating_since(start).as_secs_f64() / 1000.0
}

/// The mean of some seeds.
fn mean(path: Path, segments: usize, loss: f64, congestion: Any) -> f64 {
    const SEEDS: u64 = 6;
    let one = |seed| goodput(path, segments, loss, congestion, seed);
    (0..SEEDS).map(one).sum::<f64>() / SEEDS as f64
}

/// The share of an ideal protocol: selective repeat, simulated in slots. It learns of each loss exactly one round trip after
/// sending, loses no acknowledgement, and never reduces its window of `window` segments, on a path that this window just
/// fills.
fn ideal(window: usize, loss: f64) -> f64 {
    let mut random = Seed(1).stream(Purpose::Trial(0));
    let slots = 400_000usize;
    let mut sent = vec![None; slots];
    let (mut base, mut next) = (0, 0);
    let mut there = std::collections::BTreeSet::new();
    let mut again = std::collections::VecDeque::new();
    for slot in 0..slots {
        if let Some(Some((segment, arrived))) = slot.checked_sub(window).map(|then| sent[then]) {
            match arrived {
                true => drop(there.insert(segment)),
                false => again.push_back(segment),
            }
            while there.remove(&base) {
                base += 1;
            }
        }
        let segment = again.pop_front().or_else(|| {
            let new = (next < base + window).then_some(next);
            next += usize::from(new.is_some());
            new
        });
        sent[slot] = segment.map(|segment| (segment, !random.chance(loss)));
    }
    base as f64 / slots as f64
}

/// The goodput as a share of the lossless goodput.
fn share(path: Path, segments: usize, loss: f64, congestion: Any) -> f64 {
    mean(path, segments, loss, congestion) / mean(path, segments, 0.0, congestion)
}

/// Equation 1 of the TCPlp paper, B = MSS / (RTT (1/w + 2p)), as a share: acknowledgements are lost here as often as data,
/// which the model leaves out. Above 10 % timeouts rule, and the model, which has none, does not apply.
#[test]
fn goodput_under_loss_follows_the_papers_model() {
    for segments in [4usize, 8] {
        for loss in [0.01, 0.03, 0.06, 0.1] {
            let model = 1.0 / (1.0 + 2.0 * loss * segments as f64);
            let ideal = ideal(segments, loss);
            let share = |congestion| share(LONG, segments, loss, congestion);
            let newreno = share(Any::NewReno(NewReno));
            println!(
                "190 ms, w={segments} p={loss}: NewReno {newreno:.3} model {model:.3} ideal {ideal:.3}"
            );
            assert!(newreno > 0.65 * model, "{newreno:.3}, model {model:.3}");
        }
    }
}

/// Over one hop, where four segments fill the link, a loss of 6 % leaves 0.68 of the goodput with a window of four, and 0.8
/// with one of eight.
#[test]
fn one_hop_keeps_its_goodput_at_six_per_cent_loss() {
    for (segments, goal) in [(4, 0.68), (8, 0.8)] {
        for (name, congestion) in [
            ("NewReno", Any::NewReno(NewReno)),
            ("none", Any::Unlimited(Unlimited)),
        ] {
            let share = share(NARROW, segments, 0.06, congestion);
            println!("100 kbit/s, w={segments}: {name} {share:.3} (goal {goal})");
            assert!(share >= goal, "{name} with {segments}: {share:.3}");
        }
    }
}

/// Where the window is the limit, no protocol keeps 0.8 with eight segments.
#[test]
fn no_protocol_keeps_four_fifths_where_the_window_limits() {
    assert!(ideal(8, 0.06) < 0.8);
}
