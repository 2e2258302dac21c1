//! 802.11n: A-MPDUs on simulated air, and Minstrel over them.

use chappe_core::{Address, Db, Dbm, Duration, Mode, OverMac, Purpose, Rate, Seed};
use chappe_mac::dot11::{Config, Counters, Dot11};
use chappe_sim::{AirTime, Fading, Medium, PathLoss, Position, Profile, Simulator, World};
use chappe_testkit::Saturated;

/// Octets of an SDU, and of its MPDU with QoS control, LLC header and check sequence.
const SDU: usize = 1500;
const MPDU: usize = 26 + 8 + SDU + 4;
/// Frames in an A-MPDU.
const FRAMES: usize = 16;

/// What one saturated sender achieved: its counters, what the receiver handed up, and which outcomes the sender was notified of.
struct Run {
    sender: Counters,
    receiver: Counters,
    received: u64,
    acknowledged: u64,
    failed: u64,
}

impl Run {
    /// Throughput of SDUs at the receiver in Mbit/s.
    fn mbps(&self, seconds: u64) -> f64 {
        self.received as f64 * SDU as f64 * 8e-6 / seconds as f64
    }
}

fn profile() -> Profile {
    Profile {
        fading: Fading::None,
        path_loss: PathLoss::LogDistance {
            exponent: 2.0,
            reference: Db(60.0),
        },
        ..Profile::dot11g_physical()
    }
}

/// `senders` at one metre from a sink, heard by all, whose signal is `snr` above the noise.
fn medium(senders: usize, snr: f64, seed: Seed) -> Medium {
    let profile = profile();
    let power = Dbm(profile.noise.0 + 60.0 + snr);
    let profile = Profile {
        power,
        power_max: power,
        ..profile
    };
    let around = |i: usize| {
        let angle = std::f64::consts::TAU * i as f64 / senders as f64;
        Position::new(angle.cos(), angle.sin())
    };
    let places: Vec<Position> = (0..senders)
        .map(around)
        .chain([Position::new(0.0, 0.0)])
        .collect();
    Medium::geometric(&places, &profile, seed).unwrap()
}

/// Runs saturated senders towards a sink. `A` is the room for frames: 0 sends each by itself.
fn run<const A: usize>(config: Config, senders: usize, snr: f64, seconds: u64) -> Run {
    let seed = Seed(11);
    let sink = Address::node(senders as u16);
    let node = |i: usize| {
        let random = seed.stream(Purpose::Node(i as u32));
        let mac: Dot11<1, _, A> = Dot11::aggregating(config, Address::node(i as u16), random);
        let link = match i < senders {
            true => Saturated::towards(sink, SDU),
            false => Saturated::idle(),
        };
        Box::new(OverMac::new(mac, link))
    };
    let nodes = (0..=senders).map(node).collect();
    let world = World {
        frame_max: Config::ampdu_len(A.max(1)),
        ..World::new(medium(senders, snr, seed))
    };
    let mut simulator = Simulator::new(world, nodes, seed, ()).unwrap();
    simulator.run_until(AirTime::from_secs(seconds));
    let nodes: Vec<_> = simulator.nodes().collect();
    let flows = || nodes.iter().flat_map(|node| &node.link.flows);
    Run {
        sender: *nodes[0].mac.counters(),
        receiver: *nodes[senders].mac.counters(),
        received: nodes[senders].link.received,
        acknowledged: flows().map(|flow| flow.acknowledged).sum(),
        failed: flows().map(|flow| flow.failed).sum(),
    }
}

/// DIFS, the mean back-off of a station alone, and SIFS of 802.11n, in microseconds.
const CONTENTION: f64 = 34.0 + 7.5 * 9.0;
const SIFS: f64 = 16.0;

fn micros(span: Duration) -> f64 {
    span.nanos() as f64 / 1e3
}

/// A saturated pair on a clean channel, frame by frame and in A-MPDUs: the closed forms of the exchange.
#[test]
fn saturated_pairs_reach_the_closed_form() {
    for rate in [Rate::Ht1, Rate::Ht7] {
        let config = Config::of_rate(rate);
        let answer = |octets| micros(config.control.airtime(octets));
        let single = run::<0>(config, 1, 40.0, 4);
        let exchange = micros(Mode::long(rate).airtime(24 + 8 + SDU + 4)) + SIFS + answer(14);
        let expected = SDU as f64 * 8.0 / (CONTENTION + exchange);
        let found = single.mbps(4);
        assert!(
            (found / expected - 1.0).abs() < 0.005,
            "{rate}: {found} {expected}"
        );

        let whole = run::<FRAMES>(config, 1, 40.0, 4);
        // A delimiter and padding for each, and as many as fit into 5.484 ms.
        let subframe = 4 + MPDU.next_multiple_of(4);
        let most = (1..=FRAMES).rev().find(|count| {
            Mode::long(rate).airtime(count * subframe) <= Duration::from_micros(5_484)
        });
        let most = most.unwrap();
        let exchange = micros(Mode::long(rate).airtime(most * subframe)) + SIFS + answer(32);
        let expected = (most * SDU) as f64 * 8.0 / (CONTENTION + exchange);
        let found = whole.mbps(4);
        assert!(
            (found / expected - 1.0).abs() < 0.005,
            "{rate}: {found} {expected}"
        );
        let sent = whole.sender;
        assert_eq!(
            (sent.retries, sent.block_ack_timeouts, whole.failed),
            (0, 0, 0)
        );
        assert_eq!(whole.receiver.duplicates, 0);
    }
}

/// Where half of all MPDUs are lost, each subframe is lost by itself: the share is the medium's own for a frame of its octets, and the rest
/// of the A-MPDU arrives. Nothing is handed up twice, and nothing acknowledged that was not handed up.
#[test]
fn subframes_are_lost_one_by_one() {
    for snr in [23.0, 23.3, 23.6] {
        let config = Config::of_rate(Rate::Ht7);
        let found = run::<FRAMES>(config, 1, snr, 8);
        let sent = found.sender.data_sent as f64;
        let lost = (found.sender.retries as f64 + found.failed as f64) / sent;
        let seed = Seed(11);
        let octets = 4 + MPDU.next_multiple_of(4);
        let prr = medium(1, snr, seed).prr(0, 1, Mode::long(Rate::Ht7), octets);
        // Four deviations of so many draws, and the frames that are not settled yet.
        let slack = 4.0 * (0.25 / sent).sqrt() + FRAMES as f64 / sent;
        assert!((lost - (1.0 - prr)).abs() < slack, "{snr}: {lost} {prr}");
        assert!(lost > 0.15 && lost < 0.9, "{snr}: {lost}");
        assert!(found.received >= found.acknowledged);
        assert!(found.received <= found.acknowledged + found.failed + FRAMES as u64);
        assert_eq!(
            found.receiver.drops.of(chappe_core::DropReason::Malformed),
            0
        );
    }
}

/// Five senders collide. A missing BlockAck is asked for, and every frame is handed up at most once.
#[test]
fn colliding_aggregates_lose_and_double_nothing() {
    let found = run::<FRAMES>(Config::of_rate(Rate::Ht5), 5, 40.0, 4);
    assert!(found.sender.block_ack_timeouts > 50, "{:?}", found.sender);
    assert!(found.sender.block_ack_requests > 20, "{:?}", found.sender);
    assert!(found.received >= found.acknowledged);
    assert!(found.received <= found.acknowledged + found.failed + 5 * FRAMES as u64);
    // Collisions of five cost some 20 %: the sum stays above 30 of 52 Mbit/s.
    assert!(found.mbps(4) > 30.0, "{}", found.mbps(4));
}

/// A BlockAck that never comes is asked for seven times before the A-MPDU goes again: a request is a hundredth as long.
#[test]
fn a_block_ack_is_asked_for_up_to_the_retry_limit() {
    let config = Config::of_rate(Rate::Ht5);
    let found = run::<FRAMES>(config, 1, -40.0, 1).sender;
    let aggregates = found.aggregates_sent;
    let retries = u64::from(config.retry_short);
    assert!(aggregates > 3, "{found:?}");
    let asked = (aggregates - 1) * retries..=aggregates * retries;
    assert!(asked.contains(&found.block_ack_requests), "{found:?}");
}

/// On channels that do not change Minstrel reaches most of what the best fixed rate does: it looks around with one frame in ten.
#[test]
fn minstrel_comes_near_the_best_fixed_rate() {
    for snr in [8.0, 15.0, 19.0, 24.5, 35.0] {
        let control = |config: Config| Config {
            control: Mode::long(Rate::Ofdm6),
            ..config
        };
        let fixed = |rate| run::<0>(control(Config::of_rate(rate)), 1, snr, 4).mbps(4);
        let best = Rate::HT.into_iter().map(fixed).fold(0.0, f64::max);
        let found = run::<0>(Config::of_rate(Rate::Ht7).with_minstrel(), 1, snr, 4).mbps(4);
        println!("{snr} dB: {found:.1} of {best:.1}");
        assert!(found > 0.85 * best, "{snr}: {found} of {best}");
        let fixed = |rate| run::<FRAMES>(control(Config::of_rate(rate)), 1, snr, 4).mbps(4);
        let best = Rate::HT.into_iter().map(fixed).fold(0.0, f64::max);
        let config = Config::of_rate(Rate::Ht7).with_minstrel();
        let found = run::<FRAMES>(config, 1, snr, 4).mbps(4);
        println!("{snr} dB, A-MPDUs: {found:.1} of {best:.1}");
        assert!(found > 0.88 * best, "{snr}, A-MPDUs: {found} of {best}");
    }
}
