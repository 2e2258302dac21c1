//! Invariants after any run, and digests that never change.

mod unseen;

use chappe_core::{
    Channel, Db, Dbm, Duration, Instant, Mode, Purpose, RadioEvent, RadioNode, RadioRequest, Rate,
    Seed, Stream, Transmit, Wake,
};

use crate::id::NodeId;
use crate::{
    AirTime, Bursts, Fading, Fault, Jammer, Medium, Place, Position, Power, Profile, Recorder,
    Simulator, World, topology,
};

/// Asks for anything at any time until `until`, then listens on channel 1.
struct Wild {
    random: Stream,
    next: Instant,
    due: u32,
    until: Instant,
    /// Sends one of three frames at the same instants as all other nodes.
    in_unison: bool,
}

/// One of three frames of 802.15.4 at the next whole 2 ms.
fn in_unison(now: Instant, psdu: &mut [u8]) -> RadioRequest {
    let round = now.nanos() / 2_000_000 + 1;
    psdu[..30].fill((round % 3) as u8);
    RadioRequest::Transmit(Transmit {
        at: Instant::from_nanos(round * 2_000_000),
        len: 30,
        mode: Mode::long(Rate::Oqpsk250),
        power: None,
    })
}

impl RadioNode for Wild {
    fn handle_radio(&mut self, _: Instant, event: RadioEvent<'_>) {
        if matches!(event, RadioEvent::Received(_)) && self.random.chance(0.3) {
            self.due += 1;
        }
    }
    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.due = self.due.checked_sub(1)?;
        if now >= self.until {
            return None;
        }
        Some(match self.random.below(12) {
            0 => RadioRequest::Cancel,
            1 => RadioRequest::Tune(Channel(1 + self.random.below(3) as u8)),
            2 => RadioRequest::Listen(false),
            3 | 4 => RadioRequest::Listen(true),
            5 => RadioRequest::Sense(self.random.chance(0.7)),
            _ => {
                if self.in_unison {
                    return Some(in_unison(now, psdu));
                }
                let len = self.random.below(300) as usize;
                self.random.fill(&mut psdu[..len]);
                let rate = Rate::DOT11B[self.random.below(4) as usize];
                RadioRequest::Transmit(Transmit {
                    at: now.saturating_before(Duration::from_micros(9))
                        + Duration::from_micros(self.random.below(3000)),
                    len,
                    mode: if self.random.chance(0.5) {
                        Mode::long(rate)
                    } else {
                        Mode::short(rate)
                    },
                    power: self
                        .random
                        .chance(0.3)
                        .then(|| Dbm(self.random.fraction() * 30.0)),
                })
            }
        })
    }
    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.next = now + Duration::from_micros(self.random.below(6000));
            self.due += 1 + self.random.below(3) as u32;
        }
    }
    fn poll_timeout(&self) -> Option<Wake> {
        (self.next < self.until).then_some(Wake {
            at: self.next,
            why: "whim",
        })
    }
}

fn wild(node: usize, seed: Seed) -> Box<Wild> {
    let random = seed.stream(Purpose::Node(node as u32));
    let until = Instant::from_millis(400);
    Box::new(Wild {
        random,
        next: Instant::ZERO,
        due: 1,
        until,
        in_unison: false,
    })
}

/// Wild nodes, faults and jammers.
fn build<R: Recorder>(profile: &Profile, seed: u64, recorder: R) -> Simulator<Wild, R> {
    let (seed, nodes) = (Seed(seed), 25);
    let wild = |node, seed| {
        let in_unison = profile.dot15d4.is_some();
        Box::new(Wild {
            in_unison,
            ..*wild(node, seed)
        })
    };
    let positions = topology::random(nodes, 700.0, 700.0, seed);
    let mut world = World::new(Medium::geometric(&positions, profile, seed).unwrap());
    let mut random = seed.stream(Purpose::Fault);
    for step in 0..60u64 {
        let node = random.below(nodes as u64) as usize;
        let fault = match random.below(5) {
            0 => Fault::Crash(node),
            1 => Fault::Restart(node),
            2 => Fault::CutLink(node, (node + 7) % nodes),
            3 => Fault::RestoreLink(node, (node + 7) % nodes),
            _ => Fault::Jammer(Jammer {
                place: Place::At(Position::new(300.0, 300.0)),
                power: Dbm(12.0),
                channel: random.chance(0.5).then_some(Channel(2)),
                bursts: Bursts::Poisson {
                    gap: Duration::from_millis(3),
                    on: Duration::from_micros(700),
                },
                lasts: Duration::from_millis(50),
            }),
        };
        world
            .faults
            .push((AirTime::from_micros(step * 5_000), fault));
    }
    let boxes = (0..nodes).map(|node| wild(node, seed)).collect();
    let mut simulator = Simulator::new(world, boxes, seed, recorder).unwrap();
    let in_unison = profile.dot15d4.is_some();
    simulator.set_reviver(move |node| {
        Box::new(Wild {
            in_unison,
            ..*self::wild(node, seed.child(9))
        })
    });
    simulator
}

fn run(profile: &Profile, seed: u64) {
    let mut simulator = build(profile, seed, ());
    simulator.run_until(AirTime::from_millis(1000));
    check_silence(&mut simulator, profile.name);
}

/// Goal: powers add up and return exactly to zero. Method: wild nodes, faults and jammers, every rule, channels
/// with partial rejection; when the air is silent every receiver's sum must be zero, nothing may be locked, every
/// slot free and the queue empty.
fn check_silence(simulator: &mut Simulator<Wild>, name: &str) {
    assert!(
        simulator.counters().frames > 1000,
        "{name}: {}",
        simulator.counters().frames
    );
    assert!(
        simulator.counters().receptions > 10,
        "{name}: {}",
        simulator.counters().receptions
    );
    let air = &mut simulator.engine.air;
    for node in 0..simulator.nodes.all().len() {
        let radio = air.receiver(NodeId::of(node));
        assert_eq!(
            radio.level.energy,
            Power::ZERO,
            "{name}: energy is left at node {node}"
        );
        assert!(radio.lock.is_none(), "{name}: node {node} still receives");
        assert!(
            !radio.is(crate::radio::flag::BUSY | crate::radio::flag::TRANSMITTING),
            "{name}: node {node}"
        );
    }
    assert_eq!(air.frames().flying().count(), 0, "{name}");
    assert_eq!(
        simulator.engine.queue.waiting(),
        0,
        "{name}: events are left"
    );
}

#[test]
fn no_energy_is_left_when_the_air_is_silent() {
    let rejection = vec![Db(10.0), Db(25.0)];
    for seed in 0..6 {
        for name in Profile::NAMES {
            let profile = Profile::named(name).unwrap();
            let fading = if seed % 2 == 0 {
                Fading::Rayleigh
            } else {
                profile.fading
            };
            run(
                &Profile {
                    rejection: rejection.clone(),
                    fading,
                    shadowing: Db(4.0),
                    ..profile
                },
                seed,
            );
        }
    }
}

/// The same where identical frames add up, with nodes that start a little late, crash and change channels meanwhile.
#[test]
fn no_energy_is_left_of_synchronous_transmissions() {
    for seed in 0..8 {
        let mut profile = Profile::named("cc2420-indoor").unwrap();
        profile.path_loss = crate::PathLoss::LogDistance {
            exponent: 2.0,
            reference: Db(40.2),
        };
        profile.channel = Channel(1);
        if let Some(synchronous) = profile
            .dot15d4
            .as_mut()
            .and_then(|r| r.synchronous.as_mut())
        {
            synchronous.jitter = Duration::from_micros(6);
        }
        run(&profile, seed);
    }
}

/// Fixed on every machine and in every build. If one of these changes, so does every digest in every result file, and the
/// change log must say why.
#[test]
fn digests_are_the_same_everywhere() {
    let digests: Vec<u64> = Profile::NAMES
        .into_iter()
        .map(|name| {
            let profile = Profile {
                shadowing: Db(4.0),
                ..Profile::named(name).unwrap()
            };
            let positions = topology::random(12, 400.0, 400.0, Seed(1));
            let world = World::new(Medium::geometric(&positions, &profile, Seed(1)).unwrap());
            let boxes = (0..12).map(|node| wild(node, Seed(1))).collect();
            let mut simulator = Simulator::new(world, boxes, Seed(1), ()).unwrap();
            simulator.run_until(AirTime::from_millis(400));
            simulator.digest()
        })
        .collect();
    assert_eq!(digests, DIGESTS, "{digests:x?}");
}
const DIGESTS: [u64; 4] = [
    0xefc2_17cf_9055_118d,
    0x7b18_21a0_26c5_bdb5,
    0xe40d_fa0a_b77b_5df9,
    0xd3b4_6a35_072e_d01e,
];

/// A run in many steps is the run in one.
#[test]
fn runs_do_not_depend_on_their_steps() {
    let build = || {
        let positions = topology::random(10, 300.0, 300.0, Seed(1));
        let world = World::new(
            Medium::geometric(&positions, &Profile::chappe_physical(), Seed(1)).unwrap(),
        );
        Simulator::new(
            world,
            (0..10).map(|node| wild(node, Seed(1))).collect(),
            Seed(1),
            (),
        )
        .unwrap()
    };
    let (mut one, mut many, mut asked) = (build(), build(), build());
    one.run_until(AirTime::from_millis(300));
    let mut random = Seed(1).stream(Purpose::Trial(0));
    while many.now() < AirTime::from_millis(300) {
        let step = Duration::from_nanos(1 + random.below(20_000));
        many.run_until((many.now() + step).min(AirTime::from_millis(300)));
    }
    let mut times = 0;
    asked.run_while(AirTime::from_millis(300), |_| {
        times += 1;
        true
    });
    assert!(times > 100 && times <= 301, "{times}");
    assert_eq!(
        (one.digest(), one.counters()),
        (many.digest(), many.counters())
    );
    assert_eq!(
        (one.digest(), one.counters(), one.now()),
        (asked.digest(), asked.counters(), asked.now())
    );
    asked.run_while(AirTime::from_millis(900), |simulator| {
        simulator.counters().frames < 100
    });
    assert!(asked.now() < AirTime::from_millis(900));
}
