//! Goal: on any network and under any faults, the object is correct, or the transfer is reported incomplete and the
//! packets that arrived are correct. Method: seeded random networks through planner, plan and machines; seeded faults.

use crate::common;

use chappe_core::{Channel, Duration, Purpose, Seed};
use chappe_p3::planner::{LinkGraph, Measurement, choose_length, largest_path_set};
use chappe_p3::{ChannelOrder, Plan, Profile, Wanted};
use common::faults::{assert_right, under_faults};
use common::{DESTINATION, Net, SOURCE, Setting, finish, object, start};

/// Nodes in a square; links fade with distance, differently on each channel. Half of all nodes are not in the plan.
fn scattered(seed: u64) -> (Setting, impl Fn(Channel, usize, usize) -> f64 + Clone) {
    let nodes = 60;
    let mut random = Seed(seed).stream(Purpose::Topology);
    let at: Vec<(f64, f64)> = (0..nodes)
        .map(|_| (random.fraction(), random.fraction()))
        .collect();
    let shadow = Seed(seed).stream(Purpose::Shadowing);
    let prr = move |channel: Channel, from: usize, to: usize| {
        let (dx, dy) = (at[from].0 - at[to].0, at[from].1 - at[to].1);
        let place = (u64::from(channel.0) << 32) + ((from * nodes + to) as u64);
        let good = 0.9 + shadow.fraction_at(place) * 0.12;
        let reach = (0.34 - dx.hypot(dy)) * 25.0;
        if from == to {
            0.0
        } else {
            good.min(1.0) * reach.clamp(0.0, 1.0)
        }
    };
    // Setting counts relays by path; any way to 60 nodes will do.
    let setting = Setting {
        hops: 3,
        paths: 29,
        seed,
        ..Setting::default()
    };
    assert_eq!(setting.nodes(), nodes);
    (setting, prr)
}

#[test]
fn planned_transfers_over_random_networks_complete() {
    let (mut tried, mut complete, mut rates) = (0, 0, Vec::new());
    for seed in 0..40 {
        let (setting, prr) = scattered(seed);
        let mut random = Seed(seed).stream(Purpose::Trial(0));
        let nodes = setting.nodes();
        // The planner sees a measurement of channel 26.
        let mut measured = vec![0.0; nodes * nodes];
        for from in 0..nodes {
            for to in 0..nodes {
                let sample = Measurement::PAPER.sample(prr(Channel(26), from, to), &mut random);
                measured[from * nodes + to] = sample;
            }
        }
        let link = |from: usize, to: usize| measured[from * nodes + to];
        let graph = LinkGraph::from_prr(nodes, 0.9, link);
        let found = choose_length(&graph, SOURCE, DESTINATION, 6, 3, |hops| {
            largest_path_set(&graph, SOURCE, DESTINATION, hops, 2_000)
        });
        let Some((hops, mut found)) =
            found.filter(|(hops, found)| *hops >= 2 && found.paths.len() >= 4)
        else {
            continue;
        };
        found.paths.truncate(35 / (hops - 1));
        let wanted = Wanted {
            transfer: 3,
            payload: 118,
            source: SOURCE as u16,
            destination: DESTINATION as u16,
            channels: ChannelOrder::random(&mut random),
        };
        let last = |node: u16| link(node.into(), DESTINATION);
        let profile = Profile::PAPER;
        let plan =
            Plan::from_paths(wanted, &profile, &found.paths, &mut random, 0.8, last).unwrap();
        let object = object(59_000, seed);
        let fresh = (0..nodes).map(|node| setting.fresh(node, object));
        let mut net = Net::new(fresh.collect(), Box::new(prr), seed);
        let begun = net.clock(DESTINATION);
        start(&mut net, plan, None);
        let progress = finish(&mut net, Duration::from_secs(60));
        assert_right(&mut net, object, 118, &format!("seed {seed}"));
        tried += 1;
        if let Some(completed) = progress.completed {
            let seconds = completed.saturating_since(begun).as_secs_f64();
            rates.push(59_000.0 * 8.0 / seconds);
            complete += 1;
        } else {
            let (ended, counts) = (net.source(SOURCE).ended(), net.source(SOURCE).counts());
            println!("seed {seed}: {hops} hops, {progress:?}, {ended:?}, {counts:?}");
        }
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{complete} of {tried} complete; bit/s {:.0} to {:.0}",
        rates[0],
        rates[complete - 1]
    );
    assert!(
        tried >= 10 && complete * 10 >= tried * 9,
        "{complete} of {tried}"
    );
}

#[test]
fn faults_never_corrupt_an_object() {
    let (complete, incomplete) = under_faults(0..150, (35, 4), |_, _| Setting::default());
    assert!(complete > 30 && incomplete > 10, "{complete} {incomplete}");
}
