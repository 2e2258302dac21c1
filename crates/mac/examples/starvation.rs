//! What ZMAC+'s open parameters decide: topologies that starve, swept over burst and time slot, beside DCF and EDCA.
//!
//! ```text
//! cargo run --release -p chappe-mac --example starvation
//! ```
//!
//! Saturated flows over the simulator's radio without capture: a station that receives two frames at once loses both. 802.11b at
//! 2 Mbit/s, 200 octets of payload (an SDU of 212 with its IP header, LLC), 15 us to notice energy; EDCA sends best effort.
//! Each cell holds the flows' rates in kbit/s of payload. A schedule could give every flow half of a link's rate, 430 to
//! 500; the paper gives neither burst nor time slot, so that one line of this table says little.

use chappe_core::{Address, Duration, Mac, OverMac, Purpose, Rate, Seed, Stream};
use chappe_mac::dot11::{self, Category, Dot11, Edca, ZmacPlus};
use chappe_mac::zmac::{self, Schedule, colour};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_testkit::Saturated;

const SDU: usize = 212;
const SECONDS: u64 = 60;

struct Scene {
    name: &'static str,
    links: &'static [(usize, usize)],
    flows: &'static [(usize, usize)],
}

const SCENES: [Scene; 4] = [
    Scene {
        name: "information asymmetry",
        links: &[(0, 1), (1, 2), (2, 3)],
        flows: &[(0, 1), (2, 3)],
    },
    Scene {
        name: "hidden senders",
        links: &[(0, 1), (1, 2)],
        flows: &[(0, 1), (2, 1)],
    },
    Scene {
        name: "adjacent receivers",
        links: &[(0, 1), (1, 2), (2, 3)],
        flows: &[(0, 1), (3, 2)],
    },
    Scene {
        name: "flow in the middle",
        links: &[(0, 1), (2, 3), (4, 5), (0, 2), (2, 4)],
        flows: &[(0, 1), (2, 3), (4, 5)],
    },
];

fn main() {
    print!("{:24}", "");
    for scene in &SCENES {
        print!("{:>24}", scene.name);
    }
    println!();
    let station = dot11::Config::dot11b(Rate::Dsss2);
    let announced = dot11::Config {
        rts_threshold: 0,
        ..station
    };
    for (name, config) in [("DCF", station), ("DCF, RTS", announced)] {
        line(name, |_, _, address, random| {
            Dot11::new(config, address, random)
        });
    }
    line("EDCA", |_, _, address, random| {
        Edca::edca(station, Category::DSSS, address, random)
    });
    let usual = zmac::Config::of_rate(Rate::Dsss2);
    let silent = zmac::Config { ecn: None, ..usual };
    line("ZMAC+ without notices", claims(silent));
    for burst in [20, 40, 212] {
        for slot in [2_500, 10_000, 50_000] {
            let config = zmac::Config {
                beacon: Duration::from_micros(burst),
                slot: Duration::from_micros(slot),
                ..usual
            };
            let name = format!("T {burst} us, slot {} ms", slot as f64 / 1e3);
            line(&name, claims(config));
        }
    }
}

fn claims(config: zmac::Config) -> impl Fn(&Scene, usize, Address, Stream) -> ZmacPlus {
    move |scene, node, address, random| {
        let adjacent =
            |a: usize, b: usize| scene.links.contains(&(a, b)) || scene.links.contains(&(b, a));
        let nodes = nodes(scene);
        let mut slots = vec![0; nodes];
        colour(&(0..nodes).collect::<Vec<_>>(), &mut slots, adjacent);
        let schedule = Schedule::of(node, &slots, adjacent);
        Dot11::zmac_plus(config, schedule, address, random)
    }
}

fn line<M: Mac>(name: &str, make: impl Fn(&Scene, usize, Address, Stream) -> M) {
    print!("{name:24}");
    for scene in &SCENES {
        let rates: Vec<String> = (run(scene, &make).iter())
            .map(|rate| format!("{rate:.0}"))
            .collect();
        print!("{:>24}", rates.join(" "));
    }
    println!();
}

fn nodes(scene: &Scene) -> usize {
    scene
        .links
        .iter()
        .map(|&(a, b)| a.max(b) + 1)
        .max()
        .unwrap_or(0)
}

fn run<M: Mac>(scene: &Scene, make: &impl Fn(&Scene, usize, Address, Stream) -> M) -> Vec<f64> {
    let (seed, nodes) = (Seed(1), nodes(scene));
    let matrix = (scene.links.iter()).fold(Matrix::silent(nodes), |matrix, &(a, b)| {
        matrix.with_link(a, b, 1.0)
    });
    let medium = Medium::matrix(&matrix).expect("the matrix is square");
    let station = |node: usize| {
        let to = scene.flows.iter().find(|flow| flow.0 == node);
        let link = to.map_or(Saturated::idle(), |flow| {
            Saturated::towards(Address::node(flow.1 as u16), SDU)
        });
        let random = seed.stream(Purpose::Node(node as u32));
        let mac = make(scene, node, Address::node(node as u16), random);
        Box::new(OverMac::new(mac, link))
    };
    let stations = (0..nodes).map(station).collect();
    let mut simulator =
        Simulator::new(World::new(medium), stations, seed, ()).expect("the nodes fit the medium");
    simulator.run_until(AirTime::from_secs(SECONDS));
    let rate = |flow: &(usize, usize)| {
        simulator.node(flow.0).link.acknowledged() as f64 * 1.6 / SECONDS as f64
    };
    scene.flows.iter().map(rate).collect()
}
