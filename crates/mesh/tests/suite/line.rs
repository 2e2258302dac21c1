//! Goal: the mesh carries most of what lossy links can, in time and in order. Method: nodes over the simulator's 802.11 with Linux's
//! TCP as a model, in virtual time; `cargo run --release -p chappe-mesh --example in_virtual_time` prints more.

use chappe_core::Duration;
use chappe_mesh::settings::Hop;

use crate::radio::measure::{Measured, ceilings};
use crate::radio::{Places, Radios};

fn mean(all: &[Measured], value: fn(&Measured) -> f64) -> f64 {
    all.iter().map(value).sum::<f64>() / all.len() as f64
}

/// Three hops of 80 %. Before bursts, TCP got 834 kbit/s, and 95 % of the pings took up to 550 ms.
#[test]
fn a_line_carries_most_of_what_its_links_can() {
    let places = Places::line();
    let all: Vec<Measured> = (21..=25).map(|seed| Measured::of(&places, seed)).collect();
    let [most, ..] = ceilings(3.0, 0.8);
    let (flood, tcp) = (
        mean(&all, |one| one.flood_kbps),
        mean(&all, |one| one.tcp_kbps),
    );
    println!("{all:#?}");
    assert!(flood > 0.8 * most, "{flood} of {most} kbit/s");
    assert!(tcp > 0.55 * most, "{tcp} of {most} kbit/s");
    let late = mean(&all, |one| one.ping_s.1);
    // Five seeds; the goal of 0.1 is met in the mean of 150 (docs/mesh.md). It was 0.167 with bursts of four.
    assert!(late < 0.13, "{late} s");
    assert!(all.iter().all(|one| one.first_s < 4.0));
}

/// Goal: the first answer comes within three seconds of the start. Method: a hundred networks, and eleven of 1500 on which it took 2.5 to
/// 4.6 s with probes each 250 ms and more: where most of a link's first probes are lost it is late, and so are routes over it. (With two
/// reports that a destination is reachable, and not three, nine of a thousand took up to 3.9 s, with one five of a hundred up to six.)
#[test]
fn the_first_answer_waits_for_no_lost_probe_or_update() {
    let first = |seed| {
        let mut radios = Radios::new(&Places::line(), Hop::Broadcast, seed);
        radios.ping(0, 3, Duration::from_millis(200));
        radios.run(Duration::from_secs(7));
        let first = radios.card(0).programs.pings.first;
        first.map_or(f64::INFINITY, |at| at.as_secs_f64())
    };
    let late = [58, 152, 319, 352, 427, 810, 832, 985, 1099, 1104, 1207];
    let mut all: Vec<f64> = (1..=100).chain(late).map(first).collect();
    all.sort_by(f64::total_cmp);
    println!("{all:.1?}");
    assert!(all[55] <= 1.0 && all[110] <= 2.5);
}

/// Goal: a mesh of twelve finds its routes as soon as a small one. Method: ten of them. (It took 3.2 s in the mean, and 4.6 s at most, since
/// larger meshes probe less often.)
#[test]
fn a_mesh_of_twelve_starts_within_two_seconds() {
    for seed in 1..=10 {
        let mut radios = Radios::new(&Places::random(12, 1), Hop::Broadcast, seed);
        radios.ping(0, 11, Duration::from_millis(200));
        radios.run(Duration::from_secs(2));
        assert!(radios.card(0).programs.pings.first.is_some(), "seed {seed}");
    }
}

/// Two relays that hear each other: no less than one path, which two hops of the same channel cannot exceed by a half.
#[test]
fn a_diamond_carries_most_of_what_its_links_can() {
    let places = Places::diamond();
    let all: Vec<Measured> = (21..=23).map(|seed| Measured::of(&places, seed)).collect();
    let [most, _, unicast] = ceilings(2.0, 0.8);
    assert!(
        1.5 * unicast > most,
        "the goal of 1.5 paths is out of reach"
    );
    let flood = mean(&all, |one| one.flood_kbps);
    assert!(flood > 0.8 * most, "{flood} of {most} kbit/s");
    let late = mean(&all, |one| one.ping_s.1);
    assert!(late < 0.1, "{late} s");
}

/// Pings over two hops wait for few bursts, so they need not be short. (With bursts of two it was 0.94.)
#[test]
fn pings_on_a_short_path_leave_bursts_long() {
    let carried = |seed, pings: bool| {
        let mut radios = Radios::new(&Places::diamond(), Hop::Broadcast, seed);
        if pings {
            radios.ping(0, 3, Duration::from_millis(200));
        }
        radios.run(Duration::from_secs(5));
        radios.flood(0, 3, Duration::from_secs(25)) as f64
    };
    let share = |seed| carried(seed, true) / carried(seed, false);
    let mean = (31..=34).map(share).sum::<f64>() / 4.0;
    assert!(mean > 0.95, "{mean}");
}
