//! Figure 8: flows that come and go between any two of 108 nodes (V-D2).

use chappe_core::{Duration, Purpose, Seed, Stream as Random};
use chappe_sim::Medium;

use super::access::{Access, Method};
use super::load::Pace;
use super::mesh::{Setup, Stream, Times, What, run};
use super::plan::Variant;
use super::scene::{Links, MODE, PAYLOAD, Place};
use super::sheet::{Sheet, lines};
use super::streams::Stack;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::{Summary, mean};

/// What is compared.
const SYSTEMS: [(&str, Variant, Method); 4] = [
    ("DPCLO", Variant::Paper, Method::ZmacPlus),
    ("TCP", Variant::Tcp, Method::Dcf),
    ("TCP-FeW", Variant::TcpFew, Method::Dcf),
    ("Fusion", Variant::Fusion, Method::Edca),
];

/// So many of them in short runs.
const QUICK: usize = 2;

/// Time between two flows' begins: Weibull with this shape and mean; the paper's numbers are not given. A shape below one:
/// flows come in bunches, as in Meng and others' traces of a campus (MobiCom 2004).
const SHAPE: f64 = 0.7;
const MEAN_S: f64 = 8.0;
/// How long a flow lasts: log-normal with this median and deviation. With both four flows run at a time, on average.
const MEDIAN_S: f64 = 20.0;
const SIGMA: f64 = 1.0;
/// A flow lasts at least so long: a rate that begins at five packets a second says nothing in less.
const LEAST_S: f64 = 2.0;

/// Hops that are told apart; more count as the last.
const HOPS: [&str; 5] = ["1", "2", "3", "4", "5 and more"];
/// From here on a way is long.
const LONG: usize = 3;

/// A flow with its length in hops and its goodput.
type Carried = (u16, f64);

//= dpclo V-D2: many to many, throughput over the length of the way
pub fn make(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let systems = if sheet.quick() {
        &SYSTEMS[..QUICK]
    } else {
        &SYSTEMS
    };
    let runs = sheet.each(systems, 1, |&(_, variant, method), seed| {
        one(variant, method, seconds(sheet), seed)
    })?;
    let pooled: Vec<Vec<Carried>> = runs.into_iter().map(|runs| runs.concat()).collect();
    let series = systems.iter().zip(&pooled);
    let series = series.map(|((name, ..), flows)| Series::new(name, by_hops(flows)));
    let long = |flows: &Vec<Carried>| {
        let long = flows.iter().filter(|(hops, _)| usize::from(*hops) > LONG);
        mean(&long.map(|(_, kbps)| *kbps).collect::<Vec<_>>())
    };
    let longest: Vec<f64> = pooled.iter().map(long).collect();
    let count = pooled[0]
        .iter()
        .filter(|(hops, _)| usize::from(*hops) > LONG)
        .count();
    let mut claims = Vec::new();
    for (place, (name, ..)) in systems.iter().enumerate().skip(1) {
        claims.push(Claim::value(
            &format!("flows over four hops and more get more by DPCLO than by {name}"),
            None,
            100.0 * longest[0] / longest[place],
            count,
            "% of it",
            longest[0] > longest[place],
        ));
    }
    Ok(Figure {
        id: "figure8",
        title: "flows between any two of 108 nodes, by the length of their way".into(),
        panels: vec![lines(
            "8",
            "mean goodput of a flow",
            "kbit/s",
            ("hops", HOPS.map(String::from).to_vec()),
            series.collect(),
        )],
        claims,
        notes: vec![format!(
            "{} s of flows on one network, {} flows; the paper has 800 s; arrivals Weibull ({SHAPE}, mean {MEAN_S} s), durations log-normal (median {MEDIAN_S} s, sigma {SIGMA}), both ours: the paper's numbers are not given",
            seconds(sheet),
            pooled[0].len()
        )],
    })
}

/// For how long flows come.
fn seconds(sheet: &Sheet<'_>) -> u64 {
    if sheet.quick() { 20 } else { 160 }
}

fn by_hops(flows: &[Carried]) -> Vec<Summary> {
    let at = |place: usize| {
        let of_length = |hops: u16| usize::from(hops).clamp(1, HOPS.len()) == place + 1;
        let here = flows.iter().filter(|(hops, _)| of_length(*hops));
        Summary::of(&here.map(|(_, kbps)| *kbps).collect::<Vec<_>>())
    };
    (0..HOPS.len()).map(at).collect()
}

/// The same flows for every system on one seed.
fn one(
    variant: Variant,
    method: Method,
    seconds: u64,
    seed: Seed,
) -> Result<Vec<Carried>, RunError> {
    let scene = Place::Large.scene(seed)?;
    let times = Times {
        begin: 30,
        counted: 30,
        end: 30 + seconds,
    };
    let drawn = draw(&scene.medium, times, seed);
    let setup = Setup {
        settings: variant.settings(),
        access: Access::new(method, MODE),
        stack: Stack::paper(variant == Variant::TcpFew),
        streams: drawn
            .iter()
            .map(|(stream, _)| Stream {
                what: match variant.is_tcp() {
                    true => What::Endless,
                    false => What::Datagrams(Pace::Full, PAYLOAD),
                },
                ..stream.clone()
            })
            .collect(),
    };
    let (measured, _) = run(&setup, &scene.medium, times, seed)?;
    let flows = measured.iter().zip(&drawn);
    let carried = flows.map(|(of, (stream, hops))| {
        // What is on its way when the source stops counts, too: ten seconds more are looked at.
        let lasted = stream.end.saturating_since(stream.begin).as_secs_f64();
        let octets = of.octets((stream.begin, stream.end + Duration::from_secs(10)));
        (*hops, octets as f64 * 8.0 / lasted / 1e3)
    });
    Ok(carried.collect())
}

/// Flows and the length of their ways in hops.
fn draw(medium: &Medium, times: Times, seed: Seed) -> Vec<(Stream, u16)> {
    let mut random = seed.child(8).stream(Purpose::Traffic(0));
    let links = Links::at(medium.positions());
    let nodes = medium.nodes() as u64;
    let end = Times::at(times.end);
    let (mut at, mut flows) = (Times::at(times.begin), Vec::new());
    loop {
        at += Duration::from_secs_f64(weibull(&mut random));
        let lasts = MEDIAN_S * libm::exp(SIGMA * random.normal());
        let until = at + Duration::from_secs_f64(lasts.max(LEAST_S));
        let source = random.below(nodes);
        let sink = (source + 1 + random.below(nodes - 1)) % nodes;
        if at + Duration::from_secs_f64(LEAST_S) >= end {
            return flows;
        }
        let hops = links.hops(sink as usize)[source as usize];
        let stream = Stream {
            source: source as u16,
            sink: sink as u16,
            what: What::Endless,
            begin: at,
            end: until.min(end),
        };
        flows.push((stream, hops));
    }
}

/// A Weibull time of [`SHAPE`] and [`MEAN_S`].
fn weibull(random: &mut Random) -> f64 {
    let scale = MEAN_S / libm::tgamma(1.0 + 1.0 / SHAPE);
    scale * libm::pow(random.exponential(), 1.0 / SHAPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of 20,000 times is that asked for, within three standard errors (the deviation is 1.46 means).
    #[test]
    fn times_have_their_mean() {
        let mut random = Seed(1).stream(Purpose::Trial(1));
        let times: Vec<f64> = (0..20_000).map(|_| weibull(&mut random)).collect();
        assert!((mean(&times) / MEAN_S - 1.0).abs() < 3.0 * 1.46 / 141.0);
    }
}
