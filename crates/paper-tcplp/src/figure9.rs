//! Figure 9: sense-and-send by night, without batches and in batches of 64 (8.2.1).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};

use crate::context::{FigureContext, summary};
use chappe_lab_tcplp::study::sense::{BATCH, Measured, Trial};
use chappe_lab_tcplp::study::{Frames, Protocol, READING, cost};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Coap,
    Protocol::Cocoa,
    Protocol::Tcp,
    Protocol::Improved,
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rounds = context.pick(10, 2);
    let trials: Vec<Trial> = [1, BATCH]
        .into_iter()
        .flat_map(|batch| {
            PROTOCOLS.map(|protocol| Trial {
                batch,
                ..Trial::paper(protocol, rounds)
            })
        })
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let (single, batched) = runs.split_at(PROTOCOLS.len());
    let bars = |id: &str, title: &str, value: fn(&Measured) -> f64| {
        let places = PROTOCOLS
            .map(|protocol| protocol.name().to_string())
            .to_vec();
        let of = |name: &str, runs: &[Vec<Measured>]| {
            Series::new(name, runs.iter().map(|runs| summary(runs, value)).collect())
        };
        let series = vec![
            of("each reading at once", single),
            of("batches of 64", batched),
        ];
        Panel::bars(id, title, "%", places, series).on("protocol")
    };
    let floor = PROTOCOLS.map(|protocol| {
        let frames = protocol.frames(Frames::Five, BATCH * READING);
        Some(100.0 * cost::roofline(frames, Duration::from_secs(BATCH.into()), 0.0))
    });
    let mut radio = bars("9a", "radio duty cycle", |run| 100.0 * run.radio);
    radio.bound = floor.to_vec();
    let cpu = bars("9b", "processor duty cycle", |run| 100.0 * run.cpu);
    let reliability = bars("9", "readings delivered", |run| 100.0 * run.reliability);
    Ok(Figure {
        id: "figure9",
        title: "a reading of 82 octets every second, no interference".into(),
        panels: vec![radio, cpu, reliability],
        claims: claims(single, batched),
        notes: vec![
            "segments and CoAP messages of five frames; four minutes between data requests, 100 ms while the leaf expects an answer".into(),
            "the radio counts as awake while it receives, sends, loads a frame or backs off; the bound is the paper's ideal protocol (8.2.2) with 7.2 ms per frame, for batches".into(),
            "the processor's time is for copying frames and processing packets; an operating system's share is not included".into(),
        ],
    })
}

fn claims(single: &[Vec<Measured>], batched: &[Vec<Measured>]) -> Vec<Claim> {
    let mean = |runs: &[Measured], value: fn(&Measured) -> f64| summary(runs, value).mean;
    let all = single.iter().chain(batched).flatten();
    let least = 100.0 * all.map(|run| run.reliability).fold(1.0, f64::min);
    let n = single.iter().chain(batched).map(Vec::len).sum();
    // Indices into PROTOCOLS: 0 is CoAP, 2 is TCPlp, 3 the improved variant.
    let radio = |runs: &[Vec<Measured>], at: usize| mean(&runs[at], |run| run.radio);
    let beside = |runs: &[Vec<Measured>]| radio(runs, 2) / radio(runs, 0);
    let (alone, together) = (beside(single), beside(batched));
    let saved = radio(single, 2) / radio(batched, 2);
    let processor = mean(&single[2], |run| run.cpu) / mean(&batched[2], |run| run.cpu);
    let better = radio(batched, 3) / radio(batched, 2);
    let seeds = batched[2].len();
    vec![
        Claim::value(
            "all protocols deliver all readings",
            Some(100.0),
            least,
            n,
            "%",
            least == 100.0,
        )
        .because(|| format!("the worst run delivered {least:.2} %")),
        Claim::value(
            "with batches, TCP's radio is on about as long as CoAP's: to within a third",
            Some(1.0),
            together,
            seeds,
            "times",
            (0.75..1.34).contains(&together),
        )
        .because(|| format!("{together:.2} times with batches, {alone:.2} times without")),
        Claim::value(
            "batches halve the time that TCP's radio is on, or better",
            None,
            saved,
            seeds,
            "times",
            saved >= 2.0,
        )
        .because(|| format!("it is on {saved:.2} times as long without them")),
        Claim::value(
            "without batches TCP's processor is busy 1.5 times as long, or longer",
            None,
            processor,
            seeds,
            "times",
            processor >= 1.5,
        )
        .because(|| format!("it is busy {processor:.2} times as long without them")),
        Claim::value(
            "improved: the radio is on for at most three quarters of TCPlp's time",
            None,
            better,
            seeds,
            "times",
            better <= 0.75,
        )
        .as_goal()
        .because(|| format!("{better:.2} times TCPlp's")),
    ]
}
