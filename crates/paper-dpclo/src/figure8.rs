//! Figure 8: flows that come and go between any two of 108 nodes (V-D2).

use chappe_core::{Duration, Purpose, Seed, Stream as Random};
use chappe_sim::Medium;

use crate::context::FigureContext;
use crate::scene::{Links, MODE, PAYLOAD, PaperNetwork};
use crate::series::lines;
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::{Access, Method};
use chappe_lab_dpclo::load::Pace;
use chappe_lab_dpclo::mesh::{MeshSpec, Stream, StreamKind, Times, run};
use chappe_lab_dpclo::plan::Variant;
use chappe_lab_dpclo::streams::Stack;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::{Summary, mean};

/// The systems of the comparison.
const SYSTEMS: [(&str, Variant, Method); 5] = [
    ("DPCLO", Variant::Paper, Method::ZmacPlus),
    ("TCP", Variant::Tcp, Method::Dcf),
    ("TCP-FeW", Variant::TcpFew, Method::Dcf),
    ("Fusion", Variant::Fusion, Method::Edca),
    ("improved", Variant::Improved, Method::ZmacPlus),
];

/// The number of systems in short runs.
const QUICK: usize = 2;

/// Interarrival times of flows: Weibull with this shape and mean; the paper does not give its numbers. With a shape below
/// one, flows arrive in bursts, as in the campus traces of Meng and others (MobiCom 2004).
const SHAPE: f64 = 0.7;
const MEAN_S: f64 = 8.0;
/// Durations of flows: log-normal with this median and deviation. On average, four flows are active.
const MEDIAN_S: f64 = 20.0;
const SIGMA: f64 = 1.0;
/// The least duration of a flow: rates start at five packets a second, so shorter flows would have no meaningful goodput.
const LEAST_S: f64 = 2.0;

/// Classes of path lengths; longer paths count in the last.
const HOPS: [&str; 5] = ["1", "2", "3", "4", "5 and more"];
/// Paths with more hops than this are long.
const LONG: usize = 3;

/// The path length of a flow in hops, and its goodput in kbit/s.
type Carried = (u16, f64);

//= dpclo V-D2: many to many, throughput over the length of the way
pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let systems = if context.trials.quick() {
        &SYSTEMS[..QUICK]
    } else {
        &SYSTEMS
    };
    let runs = context
        .trials
        .measure(systems, 1, |&(_, variant, method), seed| {
            one(variant, method, seconds(context), seed)
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
    let others = systems.iter().enumerate().skip(1);
    let others = others.filter(|(_, (_, variant, _))| *variant != Variant::Improved);
    for (place, (name, ..)) in others {
        claims.push(Claim::value(
            &format!("flows over four or more hops get more with DPCLO than with {name}"),
            None,
            100.0 * longest[0] / longest[place],
            count,
            "% of it",
            longest[0] > longest[place],
        ));
    }
    if let Some(ours) = pooled.get(4) {
        let all =
            |flows: &Vec<Carried>| mean(&flows.iter().map(|(_, kbps)| *kbps).collect::<Vec<_>>());
        claims.push(
            Claim::value(
                "the improved variant's flows get twice as much as DPCLO's",
                None,
                100.0 * all(ours) / all(&pooled[0]),
                ours.len(),
                "% of it",
                all(ours) >= 2.0 * all(&pooled[0]),
            )
            .as_goal(),
        );
    }
    Ok(Figure {
        id: "figure8",
        title: "flows between any two of 108 nodes, by path length".into(),
        panels: vec![lines(
            "8",
            "mean goodput of a flow",
            "kbit/s",
            ("hops", HOPS.map(String::from).to_vec()),
            series.collect(),
        )],
        claims,
        notes: vec![format!(
            "{} s of flows on one network, {} flows; the paper has 800 s; arrivals Weibull ({SHAPE}, mean {MEAN_S} s), durations log-normal (median {MEDIAN_S} s, sigma {SIGMA}), both our choice: the paper does not give its numbers",
            seconds(context),
            pooled[0].len()
        )],
    })
}

/// How long flows arrive, in seconds.
fn seconds(context: &FigureContext<'_>) -> u64 {
    if context.trials.quick() { 20 } else { 160 }
}

fn by_hops(flows: &[Carried]) -> Vec<Summary> {
    let at = |place: usize| {
        let of_length = |hops: u16| usize::from(hops).clamp(1, HOPS.len()) == place + 1;
        let here = flows.iter().filter(|(hops, _)| of_length(*hops));
        Summary::of(&here.map(|(_, kbps)| *kbps).collect::<Vec<_>>())
    };
    (0..HOPS.len()).map(at).collect()
}

/// Runs one system. All systems have the same flows on the same seed.
fn one(
    variant: Variant,
    method: Method,
    seconds: u64,
    seed: Seed,
) -> Result<Vec<Carried>, RunError> {
    let scene = PaperNetwork::Large.scene(seed)?;
    let times = Times {
        begin: 30,
        counted: 30,
        end: 30 + seconds,
    };
    let drawn = draw(&scene.medium, times, seed);
    let spec = MeshSpec {
        settings: variant.settings(),
        access: variant.access(Access::new(method, MODE)),
        stack: Stack::paper(variant == Variant::TcpFew),
        streams: drawn
            .iter()
            .map(|(stream, _)| Stream {
                kind: match variant.is_tcp() {
                    true => StreamKind::Endless,
                    false => StreamKind::Datagrams(Pace::Full, PAYLOAD),
                },
                ..stream.clone()
            })
            .collect(),
    };
    let (measured, _) = run(&spec, &scene.medium, times, seed)?;
    let flows = measured.iter().zip(&drawn);
    let carried = flows.map(|(of, (stream, hops))| {
        // Packets that are in the network when the source stops count too, if they arrive within ten seconds.
        let lasted = stream.end.saturating_since(stream.begin).as_secs_f64();
        let octets = of.octets((stream.begin, stream.end + Duration::from_secs(10)));
        (*hops, octets as f64 * 8.0 / lasted / 1e3)
    });
    Ok(carried.collect())
}

/// Draws flows, with their path lengths in hops.
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
            kind: StreamKind::Endless,
            begin: at,
            end: until.min(end),
        };
        flows.push((stream, hops));
    }
}

/// Draws a Weibull time with [`SHAPE`] and [`MEAN_S`].
fn weibull(random: &mut Random) -> f64 {
    let scale = MEAN_S / libm::tgamma(1.0 + 1.0 / SHAPE);
    scale * libm::pow(random.exponential(), 1.0 / SHAPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of 20,000 times is right within three standard errors (the deviation is 1.46 means).
    #[test]
    fn interarrival_times_have_their_mean() {
        let mut random = Seed(1).stream(Purpose::Trial(1));
        let times: Vec<f64> = (0..20_000).map(|_| weibull(&mut random)).collect();
        assert!((mean(&times) / MEAN_S - 1.0).abs() < 3.0 * 1.46 / 141.0);
    }
}
