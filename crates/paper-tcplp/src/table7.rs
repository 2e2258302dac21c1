//! Table 7: sense-and-send over a day with its interference (8.2.3, 8.2.4), and the radio's time by part.

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_mac::dot15d4::Config;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, beside, line, lines, summary};
use chappe_lab_tcplp::study::sense::{BATCH, Measured, Trial};
use chappe_lab_tcplp::study::{DAY, Frames, Interference, Protocol, READING, STEPS, cost};

/// A row: its name, its trial, and the paper's reliability, radio and processor duty cycle in per cent.
struct Row {
    name: &'static str,
    protocol: Protocol,
    batch: u32,
    frames: Frames,
    paper: Option<[f64; 3]>,
}

const fn row(name: &'static str, protocol: Protocol, batch: u32, paper: Option<[f64; 3]>) -> Row {
    Row {
        name,
        protocol,
        batch,
        frames: Frames::Three,
        paper,
    }
}

const ROWS: [Row; 7] = [
    row("TCPlp", Protocol::Tcp, BATCH, Some([99.3, 2.29, 0.973])),
    row("CoAP", Protocol::Coap, BATCH, Some([99.5, 1.84, 0.834])),
    row(
        "unconfirmed, no batch",
        Protocol::Unconfirmed,
        1,
        Some([93.4, 1.13, 0.52]),
    ),
    row(
        "unconfirmed, batch",
        Protocol::Unconfirmed,
        BATCH,
        Some([95.3, 0.734, 0.30]),
    ),
    row("CoCoA", Protocol::Cocoa, BATCH, None),
    row("improved", Protocol::Improved, BATCH, None),
    Row {
        frames: Frames::Five,
        ..row("improved, five frames", Protocol::Improved, BATCH, None)
    },
];
const TCP: usize = 0;
const COAP: usize = 1;
const ALONE: usize = 2;
const BATCHED: usize = 3;
const IMPROVED: usize = 5;
const IMPROVED_FIVE: usize = 6;

/// The goal of this project for the radio duty cycle of this workload, in per cent (specified in 5.3).
const GOAL: f64 = 1.2;
/// The same with segments of five frames, which carry more data a frame.
const FIVE_GOAL: f64 = 0.9;
/// The improved variant's pause between two frames of a leaf, in frame times, for the sensitivity study.
const PACES: [u32; 5] = [0, 2, 4, 6, 8];

impl Row {
    fn trial(&self, share: f64, rounds: u32) -> Trial {
        Trial {
            batch: self.batch,
            interference: Interference::of(share),
            ..Trial::paper(self.protocol, rounds).with(self.frames)
        }
    }

    /// The radio duty cycle of the ideal protocol with this row's segments, in per cent.
    fn floor(&self) -> f64 {
        let frames = self.protocol.frames(self.frames, BATCH * READING);
        100.0 * cost::roofline(frames, Duration::from_secs(BATCH.into()), 0.0)
    }
}

/// The shares of interference of [`DAY`], each with its number of hours.
fn weights() -> Vec<(f64, f64)> {
    let mut weights: Vec<(f64, f64)> = Vec::new();
    for (place, &(from, share)) in DAY.iter().enumerate() {
        let until = DAY.get(place + 1).map_or(24, |(until, _)| *until);
        let hours = f64::from(until - from);
        match weights.iter_mut().find(|(known, _)| *known == share) {
            Some((_, sum)) => *sum += hours,
            None => weights.push((share, hours)),
        }
    }
    weights
}

/// The mean over a day, for each seed. `levels` has the runs of each share in the order of [`weights`].
fn over_the_day(levels: &[Vec<Measured>], value: impl Fn(&Measured) -> f64) -> Summary {
    let weights = weights();
    let seeds = levels.first().map_or(0, Vec::len);
    let day = |seed: usize| -> f64 {
        let parts = levels.iter().zip(&weights);
        parts
            .map(|(runs, (_, hours))| value(&runs[seed]) * hours / 24.0)
            .sum()
    };
    Summary::of(&(0..seeds).map(day).collect::<Vec<_>>())
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rounds = context.pick(16, 2);
    let levels = weights();
    let trials: Vec<Trial> = ROWS
        .iter()
        .flat_map(|row| {
            levels
                .iter()
                .map(move |(share, _)| row.trial(*share, rounds))
        })
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let by: Vec<&[Vec<Measured>]> = runs.chunks(levels.len()).collect();
    let bars = |id: &str, title: &str, column: usize, value: fn(&Measured) -> f64| {
        let places = ROWS.iter().map(|row| row.name.to_string()).collect();
        let ours = by
            .iter()
            .map(|levels| over_the_day(levels, value))
            .collect();
        let paper: Vec<Option<f64>> = ROWS
            .iter()
            .map(|row| row.paper.map(|paper| paper[column]))
            .collect();
        Panel::bars(
            id,
            title,
            "%",
            places,
            vec![beside(Series::new("ours", ours), &paper)],
        )
        .on("protocol")
    };
    let mut radio = bars("7 radio", "radio duty cycle", 1, |run| 100.0 * run.radio);
    radio.bound = ROWS.iter().map(|row| Some(row.floor())).collect();
    let mut panels = vec![
        bars("7 reliability", "readings delivered", 0, |run| {
            100.0 * run.reliability
        }),
        radio,
        bars("7 cpu", "processor duty cycle", 2, |run| 100.0 * run.cpu),
        budget(&by),
    ];
    if !context.quick() {
        panels.push(by_share(context, rounds)?);
        panels.push(by_pace(context, rounds)?);
        panels.push(unconfirmed_by_pace(context, rounds)?);
        panels.push(by_step(context, rounds)?);
    }
    Ok(Figure {
        id: "table7",
        title: "a day of readings in batches of 64, three frames per segment".into(),
        panels,
        claims: claims(&by),
        notes: vec![
            format!("each direction of each link is disturbed for a share of the time, in bursts of 200 ms: {}; the paper's interference is not known, so one panel shows its effect", DAY.map(|(hour, share)| format!("{} % from {hour} h", share * 100.0)).join(", ")),
            "hours of equal interference share their runs, weighted by their number; means over four leaves; the radio counts as awake while it receives, sends, loads a frame or backs off".into(),
            "bound: the paper's ideal protocol with the row's segments and no loss, 7.2 ms per frame".into(),
            "the processor's share is a lower bound: copies of frames, and instructions as counted; the paper's includes an operating system".into(),
        ],
    })
}

/// The radio time of a batch by part, with the most interference of the day.
fn budget(by: &[&[Vec<Measured>]]) -> Panel {
    let rows = [TCP, COAP, IMPROVED, IMPROVED_FIVE];
    let worst = weights()
        .iter()
        .enumerate()
        .fold(0, |worst, (at, (share, _))| {
            match *share > weights()[worst].0 {
                true => at,
                false => worst,
            }
        });
    let minute = f64::from(BATCH) / 60.0;
    let frame = cost::FRAME.as_secs_f64() * 1e3;
    let of = |name: &str, value: &dyn Fn(&Measured) -> f64| {
        let ours = rows.map(|row| summary(&by[row][worst], value));
        Series::new(name, ours.to_vec())
    };
    let once = |run: &Measured| run.frames * minute * (1.0 - run.link_retries) * frame;
    let again = |run: &Measured| run.frames * minute * run.link_retries * frame;
    let asking = |run: &Measured| run.requests * minute * cost::REQUEST.as_secs_f64() * 1e3;
    let all = |run: &Measured| run.radio * f64::from(BATCH) * 1e3;
    let rest = |run: &Measured| all(run) - once(run) - again(run) - asking(run);
    Panel::bars(
        "7 budget",
        "radio time of a batch while people work",
        "ms",
        rows.map(|row| ROWS[row].name.to_string()).to_vec(),
        vec![
            of("frames", &once),
            of("frames again", &again),
            of("data requests", &asking),
            of("answers, waiting, back-off", &rest),
            of("all", &all),
        ],
    )
    .on("protocol")
}

/// The radio duty cycle by share of time that links are disturbed.
fn by_share(context: &FigureContext<'_>, rounds: u32) -> Result<Panel, RunError> {
    let shares = [0.0, 0.01, 0.02, 0.04];
    let rows = [TCP, COAP, IMPROVED];
    let trials: Vec<Trial> = rows
        .iter()
        .flat_map(|&row| shares.map(|share| ROWS[row].trial(share, rounds)))
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let series = rows.iter().zip(runs.chunks(shares.len()));
    let series =
        series.map(|(&row, runs)| line(ROWS[row].name, runs, |run: &Measured| 100.0 * run.radio));
    let places = shares.map(|share| format!("{} %", share * 100.0)).to_vec();
    Ok(lines(
        "7 share",
        "radio duty cycle by share of time that links are disturbed",
        "%",
        ("disturbed", places),
        series.collect(),
    ))
}

/// The radio duty cycle by the improved variant's pause, the one of its parameters that is a judgement.
fn by_pace(context: &FigureContext<'_>, rounds: u32) -> Result<Panel, RunError> {
    let trials = PACES.map(|frames| Trial {
        pace: Some(cost::FRAME * u64::from(frames)),
        ..ROWS[IMPROVED].trial(0.02, rounds)
    });
    let runs = context.measure(&trials, Trial::run)?;
    let places = PACES.map(|frames| format!("{frames} frames")).to_vec();
    let series = vec![line("improved", &runs, |run: &Measured| 100.0 * run.radio)];
    Ok(lines(
        "7 pace",
        "radio duty cycle by a leaf's pause between frames, 2 % disturbed",
        "%",
        ("pause", places),
        series,
    ))
}

/// What unconfirmed batches deliver, and what their radio costs, by the pause that a leaf leaves between its frames: without one its
/// messages collide with each other along the path.
fn unconfirmed_by_pace(context: &FigureContext<'_>, rounds: u32) -> Result<Panel, RunError> {
    let trials = PACES.map(|frames| Trial {
        pace: Some(cost::FRAME * u64::from(frames)),
        ..ROWS[BATCHED].trial(0.0, rounds)
    });
    let runs = context.measure(&trials, Trial::run)?;
    let places = PACES.map(|frames| format!("{frames} frames")).to_vec();
    let series = vec![
        line("readings delivered", &runs, |run: &Measured| {
            100.0 * run.reliability
        }),
        line("radio duty cycle", &runs, |run| 100.0 * run.radio),
    ];
    Ok(lines(
        "7 unconfirmed",
        "unconfirmed batches by a leaf's pause between frames, undisturbed links",
        "%",
        ("pause", places),
        series,
    ))
}

/// The radio duty cycle from TCPlp to the improved variant, step by step, and a step that is not part of it.
fn by_step(context: &FigureContext<'_>, rounds: u32) -> Result<Panel, RunError> {
    let mut trials: Vec<Trial> = (0..STEPS.len())
        .map(|steps| Trial {
            steps,
            ..ROWS[TCP].trial(0.02, rounds)
        })
        .collect();
    // The last step also changes the size of segments, so it is the improved variant's own trial.
    let improved = ROWS[IMPROVED].trial(0.02, rounds);
    trials.push(improved);
    // A pause that bulk transfers of paced sources are better off without ([`improved`](crate::improved)); four leaves are not.
    trials.push(Trial {
        retry_delay: Some(Config::STANDARD.retry_delay),
        ..improved
    });
    let runs = context.measure(&trials, Trial::run)?;
    let names = STEPS.iter().map(|step| format!("and {}", step.name));
    let places = std::iter::once(ROWS[TCP].name.to_string()).chain(names);
    let places = places.chain(["without pauses before link retries".to_string()]);
    let series = vec![
        line("radio duty cycle", &runs, |run: &Measured| {
            100.0 * run.radio
        }),
        line("share of frames that are link retries", &runs, |run| {
            100.0 * run.link_retries
        }),
    ];
    let title = "step by step, 2 % disturbed";
    let panel = Panel::bars("7 steps", title, "%", places.collect(), series);
    Ok(panel.on("step"))
}

fn claims(by: &[&[Vec<Measured>]]) -> Vec<Claim> {
    let day = |row: usize, value: fn(&Measured) -> f64| over_the_day(by[row], value);
    let reliability = |row| day(row, |run| 100.0 * run.reliability);
    let radio = |row| day(row, |run| 100.0 * run.radio);
    let cpu = |row| day(row, |run| 100.0 * run.cpu);
    let (tcp, coap) = (radio(TCP), radio(COAP));
    let n = tcp.n;
    let (delivered, confirmed) = (reliability(TCP), reliability(COAP));
    let (alone, batched) = (reliability(ALONE), reliability(BATCHED));
    let price = tcp.mean / radio(BATCHED).mean;
    let work = cpu(TCP).mean / cpu(BATCHED).mean;
    let beside = tcp.mean / coap.mean;
    let most = tcp.mean / ROWS[TCP].floor();
    let (ours, five) = (radio(IMPROVED), radio(IMPROVED_FIVE));
    let losing = day(BATCHED, |run| 100.0 * run.packet_loss).mean;
    let again = 100.0 * day(BATCHED, |run| run.link_retries).mean;
    let kept = reliability(IMPROVED);
    vec![
        Claim::new("TCPlp delivers 99 % of the readings or more", Some(99.3), delivered, "%", delivered.mean >= 99.0)
            .because(|| format!("it delivers {:.2} %", delivered.mean)),
        Claim::new("CoAP delivers 99 % of the readings or more", Some(99.5), confirmed, "%", confirmed.mean >= 99.0)
            .because(|| format!("it delivers {:.2} %", confirmed.mean)),
        Claim::new("without confirmation and without batches, 1 to 10 % of the readings are lost", Some(93.4), alone, "%", (90.0..=99.0).contains(&alone.mean))
            .because(|| format!("{:.1} % arrive", alone.mean)),
        Claim::new("without confirmation, with batches, 1 to 10 % of the readings are lost", Some(95.3), batched, "%", (90.0..=99.0).contains(&batched.mean))
            .because(|| format!("{:.1} % arrive: the leaf sends a batch of messages without a pause, {again:.0} % of its frames are link retries, and {losing:.0} % of its packets are lost, most of them to hidden terminals along the path; with a pause of two frame times between its frames nearly all arrive (the panel of unconfirmed batches)", batched.mean)),
        Claim::value("TCP's radio is on three times as long as with unconfirmed batches, to within a half", Some(3.12), price, n, "times", (2.0..=4.7).contains(&price))
            .because(|| format!("{price:.2} times: here the frames of unconfirmed batches collide with each other, which costs more radio time")),
        Claim::value("TCP's processor is busy three times as long as with unconfirmed batches, to within a half", Some(3.24), work, n, "times", (2.0..=4.7).contains(&work))
            .because(|| format!("{work:.2} times: the operating system's timers and polls are not included")),
        Claim::value("TCP's radio is on longer than CoAP's, by up to a half", Some(1.24), beside, n, "times", (1.0..=1.5).contains(&beside))
            .because(|| format!("{beside:.2} times")),
        Claim::value("TCPlp's radio is on less than four times as long as the ideal protocol's", Some(3.4), most, n, "times", most < 4.0)
            .because(|| format!("{most:.2} times")),
        Claim::new("goal, improved: the radio is on for at most 1.2 % of the time", None, ours, "%", ours.mean <= GOAL).as_goal()
            .because(|| format!("{:.3} %: the table of the radio time of a batch shows the parts", ours.mean)),
        Claim::new("improved, with segments of five frames: the radio is on for at most 1.2 % of the time", None, five, "%", five.mean <= GOAL).as_goal()
            .because(|| format!("{:.3} %", five.mean)),
        Claim::new("goal, improved, with segments of five frames: the radio is on for at most 0.9 % of the time", None, five, "%", five.mean <= FIVE_GOAL).as_goal()
            .because(|| format!("{:.3} %", five.mean)),
        Claim::new("goal, improved: all readings are delivered", Some(99.3), kept, "%", kept.min > 100.0 - 1e-6).as_goal()
            .because(|| format!("the worst day delivered {:.2} %", kept.min)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of a day add up to 24 hours, and the mean of a constant is that constant.
    #[test]
    fn hours_of_a_day_are_weighted() {
        assert_eq!(weights(), [(0.005, 10.0), (0.02, 9.0), (0.01, 5.0)]);
        let run = Measured {
            radio: 0.5,
            ..Measured::default()
        };
        let levels = vec![vec![run, run]; 3];
        let day = over_the_day(&levels, |run| run.radio);
        assert!((day.mean - 0.5).abs() < 1e-12 && day.n == 2);
    }
}
