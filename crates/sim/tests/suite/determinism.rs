//! One seed, one run: whatever the thread, the search for neighbours, or who watches.

use chappe_core::Duration;
use chappe_core::{
    Address, Class, Classes, Db, Dbm, Instant, LinkEvent, LinkNode, LinkSend, OverMac, Ppm,
    Purpose, Rate, Seed, TraceEvent, Wake,
};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{
    AirTime, Bursts, Clock, Counters, Fault, Heard, Jammer, Loss, Medium, Motion, Place, Position,
    Profile, RandomWaypoint, Recorder, Search, Sent, Simulator, Waypoint, World, topology,
};

/// Sends broadcasts and unicasts as fast as the MAC lets it.
struct Chatty {
    me: u16,
    nodes: u16,
    count: u32,
}

impl LinkNode for Chatty {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            self.count = self
                .count
                .wrapping_mul(31)
                .wrapping_add(arrival.sdu.len() as u32);
        }
    }
    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.me.is_multiple_of(4))
    }
    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        self.count = self.count.wrapping_add(1);
        let to = match self.count % 3 {
            0 => Address::BROADCAST,
            _ => Address::node((self.me + 1) % self.nodes),
        };
        let len = 100 + (self.count % 900) as usize;
        sdu.get_mut(..len)?.fill(self.count as u8);
        Some(LinkSend {
            to,
            len,
            class: Class::Data,
            mode: None,
            token: self.count,
        })
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

type Node = OverMac<Dot11, Chatty>;

fn node(me: u16, nodes: u16, seed: Seed) -> Box<Node> {
    let random = seed.stream(Purpose::Node(u32::from(me)));
    let mac = Dot11::new(Config::dot11b(Rate::Cck11), Address::node(me), random);
    Box::new(OverMac::new(
        mac,
        Chatty {
            me,
            nodes,
            count: u32::from(me),
        },
    ))
}

/// How many nodes run.
const NODES: u16 = 60;

/// 60 nodes on 2 x 2 km with drifting clocks, a jammer, a crash and a cut link, for half a second.
fn simulator<R: Recorder>(
    seed: u64,
    search: Search,
    profile: &Profile,
    recorder: R,
) -> Simulator<Node, R> {
    let positions = topology::random(usize::from(NODES), 2000.0, 2000.0, Seed(seed));
    let medium = Medium::geometric_by(&positions, profile, Seed(seed), search).unwrap();
    simulator_over(medium, seed, recorder)
}

/// The same over a medium of 60 nodes.
fn simulator_over<R: Recorder>(medium: Medium, seed: u64, recorder: R) -> Simulator<Node, R> {
    let (seed, nodes) = (Seed(seed), NODES);
    let mut world = World::new(medium);
    let mut random = seed.stream(Purpose::Clock);
    let mut clock = || {
        Clock::new(
            Duration::from_nanos(random.below(1 << 30)),
            Ppm(random.normal() * 20.0),
        )
    };
    world.clocks = (0..nodes).map(|_| clock()).collect();
    let jammer = Jammer {
        place: Place::At(Position::new(700.0, 700.0)),
        power: Dbm(10.0),
        channel: None,
        bursts: Bursts::Poisson {
            gap: Duration::from_millis(20),
            on: Duration::from_millis(2),
        },
        lasts: Duration::from_secs(1),
    };
    world.faults = vec![
        (AirTime::from_millis(100), Fault::Jammer(jammer)),
        (AirTime::from_millis(150), Fault::Crash(4)),
        (AirTime::from_millis(200), Fault::CutLink(8, 9)),
        (AirTime::from_millis(250), Fault::Restart(4)),
        (
            AirTime::from_millis(300),
            Fault::Drift {
                node: 12,
                ppm: Ppm(-80.0),
            },
        ),
        (
            AirTime::from_millis(350),
            Fault::CorruptBits {
                node: 13,
                rate: 1e-4,
                detected: false,
            },
        ),
    ];
    let boxes = (0..nodes).map(|me| node(me, nodes, seed)).collect();
    let mut simulator = Simulator::new(world, boxes, seed, recorder).unwrap();
    simulator.set_reviver(move |me| node(me as u16, nodes, seed.child(1)));
    simulator.run_until(AirTime::from_millis(500));
    simulator
}

fn digest(seed: u64, search: Search, profile: &Profile) -> (u64, Counters) {
    let simulator = simulator(seed, search, profile, ());
    (simulator.digest(), simulator.counters().clone())
}

#[test]
fn one_seed_gives_one_digest_in_any_thread() {
    let profile = Profile::chappe_physical();
    let here = digest(1, Search::Grid, &profile);
    assert!(
        here.1.frames > 500 && here.1.receptions > 1000,
        "{:?}",
        here.1
    );
    let threads: Vec<_> = (0..2)
        .map(|_| std::thread::spawn(|| digest(1, Search::Grid, &Profile::chappe_physical())))
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), here);
    }
    assert_ne!(digest(2, Search::Grid, &profile).0, here.0);
}

/// Leaving out what cannot matter is exact: neighbours found through the grid or by looking at all pairs give
/// the same run, with and without shadowing.
#[test]
fn culled_and_brute_force_runs_are_the_same() {
    let others = [
        Profile {
            power: Dbm(7.87),
            power_max: Dbm(7.87),
            ..Profile::glomosim()
        },
        Profile::ns3_yans(),
    ];
    for profile in culling().into_iter().chain(others) {
        let positions = topology::random(60, 2000.0, 2000.0, Seed(3));
        let links = Medium::geometric(&positions, &profile, Seed(3))
            .unwrap()
            .links();
        assert!(links < 60 * 59, "{}: nothing is culled", profile.name);
        assert_eq!(
            digest(3, Search::Grid, &profile),
            digest(3, Search::Brute, &profile),
            "{}",
            profile.name
        );
    }
}

/// Profiles with short and long links, with and without shadowing and fading.
fn culling() -> [Profile; 3] {
    [
        Profile {
            floor: Db(3.0),
            ..Profile::chappe_physical()
        },
        Profile {
            floor: Db(0.0),
            shadowing: Db(6.0),
            ..Profile::chappe_physical()
        },
        Profile::ns2_threshold(),
    ]
}

/// Nodes that stay where they are give the run of a medium whose nodes cannot move.
#[test]
fn a_motion_without_movement_is_the_still_network() {
    let positions = topology::random(usize::from(NODES), 2000.0, 2000.0, Seed(3));
    let at = AirTime::ZERO;
    let still = positions.iter().map(|&place| vec![Waypoint { at, place }]);
    let still = Motion::given(still.collect()).unwrap();
    for profile in culling() {
        let moving = Medium::moving(&still, &profile, Seed(3)).unwrap();
        let run = simulator_over(moving, 3, ());
        let (digest, counters) = digest(3, Search::Grid, &profile);
        let same = (run.digest(), run.counters()) == (digest, &counters);
        assert!(same, "{}", profile.name);
    }
}

/// Culling is exact while nodes move: through the grid of older places or by looking at all pairs, by cars and by rockets.
/// At 20 km/s nodes cross 10 km in the half second, so the grid is made again many times.
#[test]
fn culled_and_brute_force_runs_are_the_same_on_the_way() {
    for (profile, speed) in culling()
        .into_iter()
        .zip([[30.0, 60.0], [2e3, 2e4], [2e3, 2e4]])
    {
        let law = RandomWaypoint {
            area: [2000.0, 2000.0],
            speed,
            pause: [0.0, 0.01],
        };
        let motion = law.motion(usize::from(NODES), Seed(3)).unwrap();
        let run = |search| {
            let medium = Medium::moving_by(&motion, &profile, Seed(3), search).unwrap();
            let run = simulator_over(medium, 3, ());
            (run.digest(), run.counters().clone())
        };
        let culled = run(Search::Grid);
        assert!(culled == run(Search::Brute), "{} {speed:?}", profile.name);
        assert!(culled == run(Search::Grid), "a second run");
        let stands = digest(3, Search::Grid, &profile);
        assert_ne!(culled.0, stands.0, "nobody moved");
    }
}

/// A recorder changes nothing, and what it records is the same every time.
#[test]
fn recording_changes_nothing() {
    let profile = Profile::chappe_physical();
    let plain = digest(5, Search::Grid, &profile);
    let watched = || {
        let simulator = simulator(
            5,
            Search::Grid,
            &profile,
            (Pcapng::new(Vec::new(), 60, Losses::All), Log::default()).into_both(),
        );
        let (digest, counters) = (simulator.digest(), simulator.counters().clone());
        let (_, both, _) = simulator.into_parts();
        (digest, counters, both.0.finish().unwrap(), both.1.0)
    };
    let first = watched();
    assert_eq!((first.0, &first.1), (plain.0, &plain.1));
    assert!(first.2.len() > 1_000_000 && first.3.len() > 1000);
    assert!(first == watched());
}

/// A frame that reaches a receiver is received or lost, once, for one reason.
#[test]
fn every_frame_has_one_outcome_at_each_receiver() {
    let profile = Profile::chappe_physical();
    let mut simulator = simulator(6, Search::Grid, &profile, Fates::default());
    // Let what is in the air come down.
    let counters = simulator.counters().clone();
    let fates = std::mem::take(&mut simulator.recorder_mut().0);
    assert_eq!(
        fates.len() as u64,
        counters.receptions + counters.lost.total() - counters.lost.of(Loss::LinkCut)
    );
    let mut seen: Vec<_> = fates
        .iter()
        .map(|&(from, number, node, _)| (from, number, node))
        .collect();
    seen.sort_unstable();
    let all = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), all, "a frame with two fates at one receiver");
    for why in [
        Loss::TooWeak,
        Loss::Collision,
        Loss::Transmitting,
        Loss::PreambleMissed,
        Loss::Down,
    ] {
        assert!(counters.lost.of(why) > 0, "{why} never happened");
    }
}

#[derive(Default)]
struct Fates(Vec<(usize, u64, usize, Result<(), Loss>)>);

impl Recorder for Fates {
    const NODES: bool = false;
    fn heard(&mut self, frame: &Heard<'_>) {
        self.0
            .push((frame.from, frame.number, frame.node, frame.outcome));
    }
}

/// Nodes' own events and deadlines as text.
#[derive(Default)]
struct Log(Vec<String>);

/// Two recorders at once.
struct Both<A, B>(A, B);

trait IntoBoth<A, B> {
    fn into_both(self) -> Both<A, B>;
}

impl<A, B> IntoBoth<A, B> for (A, B) {
    fn into_both(self) -> Both<A, B> {
        Both(self.0, self.1)
    }
}

impl<A: Recorder> Recorder for Both<A, Log> {
    fn sent(&mut self, frame: &Sent<'_>) {
        self.0.sent(frame);
    }
    fn heard(&mut self, frame: &Heard<'_>) {
        self.0.heard(frame);
    }
    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        self.1.0.push(format!("{at} {node} {event:?}"));
    }
    fn woken(&mut self, at: AirTime, node: usize, why: &'static str) {
        self.1.0.push(format!("{at} {node} {why}"));
    }
}
