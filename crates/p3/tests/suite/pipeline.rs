//! Goal: the improved planner's pipelines deliver the predicted share, and more than random choices. Method: seeded random
//! networks whose links differ from channel to channel, measured by sampling; whole transfers over an ideal air.

use crate::common;

use chappe_core::{Channel, Duration, Purpose, Seed};
use chappe_p3::config::CHANNELS;
use chappe_p3::planner::{
    LinkGraph, Links, Measurement, Wish, choose_length, largest_path_set, pipeline,
};
use chappe_p3::{Config, Key, Plan, Profile, Wanted};
use common::{DESTINATION, SOURCE, Setting, finish, object, start};

const NODES: usize = 60;

/// Nodes in a square. A quarter of the links has a separate quality on each channel, as in the paper's Table I.
fn network(seed: u64) -> impl Fn(Channel, usize, usize) -> f64 + Clone {
    let mut random = Seed(seed).stream(Purpose::Topology);
    let at: Vec<(f64, f64)> = (0..NODES)
        .map(|_| (random.fraction(), random.fraction()))
        .collect();
    let shadow = Seed(seed).stream(Purpose::Shadowing);
    move |channel: Channel, from: usize, to: usize| {
        let (dx, dy) = (at[from].0 - at[to].0, at[from].1 - at[to].1);
        let link = (from * NODES + to) as u64;
        let own = shadow.fraction_at(link) < 0.25;
        let quality = match own && channel != Channel(26) {
            true => shadow.fraction_at((u64::from(channel.0) << 32) + link),
            false => 0.93 + shadow.fraction_at((1 << 40) + link) * 0.1,
        };
        let reach = (0.34 - dx.hypot(dy)) * 25.0;
        if from == to {
            0.0
        } else {
            quality.min(1.0) * reach.clamp(0.0, 1.0)
        }
    }
}

/// Links as measured by 100 beacons per node and channel.
struct Measured(Vec<f64>);

impl Measured {
    fn new(prr: impl Fn(Channel, usize, usize) -> f64, seed: u64) -> Measured {
        let mut random = Seed(seed).stream(Purpose::Trial(0));
        let measurement = Measurement {
            beacons: 100,
            channels: 4,
            ..Measurement::PAPER
        };
        let mut shares = Vec::new();
        for channel in CHANNELS {
            for from in 0..NODES {
                for to in 0..NODES {
                    shares.push(measurement.sample(prr(channel, from, to), &mut random));
                }
            }
        }
        Measured(shares)
    }
}

impl Links for Measured {
    fn nodes(&self) -> usize {
        NODES
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let index = CHANNELS.iter().position(|&known| known == channel).unwrap();
        self.0[(index * NODES + from) * NODES + to]
    }
}

fn wanted(payload: usize) -> Wanted {
    Wanted {
        transfer: 1,
        payload: payload as u8,
        source: SOURCE as u16,
        destination: DESTINATION as u16,
        channels: Default::default(),
    }
}

/// Runs a plan; goodput in bit/s, the share of the first pass that arrived is not asked for. 0 if incomplete.
fn goodput(
    plan: Plan,
    config: Config,
    prr: impl Fn(Channel, usize, usize) -> f64 + 'static,
) -> f64 {
    let object = object(59_000, 1);
    let setting = Setting {
        hops: 3,
        paths: 29,
        config,
        ..Setting::default()
    };
    assert_eq!(setting.nodes(), NODES);
    let nodes = (0..NODES).map(|node| setting.fresh(node, object)).collect();
    let mut net = common::Net::new(nodes, Box::new(prr), 3);
    start(&mut net, plan, None);
    let begun = net.clock(DESTINATION);
    let progress = finish(&mut net, Duration::from_secs(60));
    match progress.completed {
        Some(at) => {
            assert!(net.destination(DESTINATION).store().bytes == object);
            59_000.0 * 8.0 / at.saturating_since(begun).as_secs_f64()
        }
        None => 0.0,
    }
}

#[test]
fn learned_pipelines_beat_random_ones() {
    let (mut ours, mut theirs, mut predicted) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..24 {
        let prr = network(seed);
        let links = Measured::new(prr.clone(), seed);
        let config = Config::improved(Some(Key::new([7; 16])));
        let Some(found) = pipeline(&links, SOURCE, DESTINATION, &config, &Wish::default()) else {
            continue;
        };
        if found.hops < 2 {
            continue;
        }
        let plan = found.plan(wanted(118), &config, 1).unwrap();
        let rate = goodput(plan, config, prr.clone());
        println!(
            "seed {seed}: {} hops, {} groups, {} relays, {:?}, tail {}, {:.0} predicted, {rate:.0} bit/s",
            found.hops,
            found.groups,
            found.parts.len(),
            found.prediction,
            found.repair,
            found.goodput_bps
        );
        ours.push(rate);
        predicted.push(found.goodput_bps);
        let graph = LinkGraph::from_prr(NODES, 0.9, |a, b| links.prr(Channel(26), a, b));
        let paths = choose_length(&graph, SOURCE, DESTINATION, 6, 3, |hops| {
            largest_path_set(&graph, SOURCE, DESTINATION, hops, 2_000)
        });
        let Some((_, mut paths)) = paths else {
            continue;
        };
        let mut random = Seed(seed).stream(Purpose::Trial(1));
        let channels = chappe_p3::ChannelOrder::random(&mut random);
        paths.paths.truncate(8);
        let last = |node: u16| links.prr(Channel(26), node.into(), DESTINATION);
        let wanted = Wanted {
            channels,
            ..wanted(118)
        };
        let profile = Profile::PAPER;
        let plan = Plan::from_paths(wanted, &profile, &paths.paths, &mut random, 0.8, last);
        theirs.push(plan.map_or(0.0, |plan| goodput(plan, Config::default(), prr)));
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "improved: {} routes, mean {:.0}, least {:.0}; predicted {:.0}",
        ours.len(),
        mean(&ours),
        least(&ours),
        mean(&predicted)
    );
    println!(
        "faithful: {} routes, mean {:.0}, least {:.0}",
        theirs.len(),
        mean(&theirs),
        least(&theirs)
    );
    assert!(ours.len() >= 15);
}

/// Nodes abreast in columns; a link of one column is good, one of two columns at the edge of its reach, where channels differ.
struct Corridor {
    columns: usize,
}

const ABREAST: usize = 5;

impl Links for Corridor {
    fn nodes(&self) -> usize {
        self.columns * ABREAST + 2
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        let last = self.nodes() - 1;
        let column = |node: usize| match node {
            0 => 0,
            node if node == last => self.columns + 1,
            node => (node - 1) / ABREAST + 1,
        };
        let index = CHANNELS.iter().position(|&known| known == channel).unwrap();
        match column(from).abs_diff(column(to)) {
            _ if from == to => 0.0,
            0 | 1 => 1.0,
            // Each such link works on one channel of the four, so that no long way works with any order of them.
            2 if (from + to) % CHANNELS.len() == index => 0.9,
            _ => 0.0,
        }
    }
}

/// Goal: the planner chooses the length of the way. Method: a corridor whose shortest way, of links at the edge of their
/// reach, has half as many hops as the one of good links.
#[test]
fn the_planner_takes_a_longer_way_of_better_links() {
    let config = Config::improved(Some(Key::new([7; 16])));
    for (columns, least) in [(5, 200_000.0), (11, 190_000.0), (23, 150_000.0)] {
        let links = Corridor { columns };
        let (source, destination) = (links.nodes() - 1, 0);
        let found = pipeline(&links, source, destination, &config, &Wish::default()).unwrap();
        println!(
            "{columns} columns: {} hops, {} groups, {} relays, {:.0} bit/s predicted",
            found.hops,
            found.groups,
            found.parts.len(),
            found.goodput_bps
        );
        assert_eq!(usize::from(found.hops), columns + 1);
        assert!(found.goodput_bps > least, "{}", found.goodput_bps);
        // One frame has room for it, and comes back as it was.
        let wanted = Wanted {
            source: source as u16,
            ..wanted(118)
        };
        let plan = found.plan(wanted, &config, 1).unwrap();
        let mut body = [0; 125];
        let body = &mut body[..plan.encoded_len()];
        plan.emit(body).unwrap();
        assert_eq!(Plan::parse(1, body), Ok(plan));
    }
}

/// Three columns of six relays between the ends. The source hears the relays in `mute` on channel 26 only, on which the last column does not
/// reach the destination, and its packets reach these relays a little better than the others.
struct OneWay {
    mute: [usize; 3],
}

impl Links for OneWay {
    fn nodes(&self) -> usize {
        20
    }

    fn prr(&self, channel: Channel, from: usize, to: usize) -> f64 {
        // Node 0 is the source, 1 to 6 the first column, 19 the destination. Four hops use all channels, and stage 4 that of the source.
        let column = |node: usize| node.div_ceil(6);
        let near = column(from).abs_diff(column(to)) == 1;
        match near {
            true if to == 0 && self.mute.contains(&from) && channel != Channel(26) => 0.0,
            true if to == 19 && channel == Channel(26) => 0.0,
            true if from == 0 && !self.mute.contains(&to) => 0.85,
            true => 1.0,
            false => 0.0,
        }
    }
}

/// Goal: the way back counts as much as its loss costs. Method: three of six relays never reach the source. Three groups of these three
/// deliver the most packets and no answer; before, an answer was worth ten packets of 500, and these three were taken.
#[test]
fn some_relay_of_the_first_stage_is_heard_by_the_source() {
    for mute in [[1, 2, 3], [4, 5, 6], [1, 3, 5]] {
        let config = Config::improved(Some(Key::new(*b"chappe simulates")));
        let found = pipeline(&OneWay { mute }, 0, 19, &config, &Wish::default()).unwrap();
        let prediction = found.prediction;
        assert!(
            prediction.answered > 0.8 && prediction.delivered > 0.9,
            "{mute:?}: {prediction:?}"
        );
    }
}
