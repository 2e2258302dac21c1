//! Figure 9: sense-and-send by night, reading by reading and in batches of 64 (8.2.1).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel, Series};

use super::context::{FigureContext, summary};
use super::study::sense::{BATCH, Measured, Trial};
use super::study::{Frames, Protocol, READING, cost};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Coap,
    Protocol::Cocoa,
    Protocol::Tcp,
    Protocol::Improved,
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rounds = if context.quick() { 2 } else { 10 };
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
        title: "readings of 82 octets each second, no interference".into(),
        panels: vec![radio, cpu, reliability],
        claims: claims(single, batched),
        notes: vec![
            "segments of five frames, CoAP messages of as many; four minutes between data requests, 100 ms while an answer is due".into(),
            "the radio counts as awake while it receives, sends, is loaded or backs off; the bound is the paper's ideal protocol (8.2.2) by its 7.2 ms a frame, for batches".into(),
            "the processor copies frames and works on packets here; an operating system's share is not in it".into(),
        ],
    })
}

fn claims(single: &[Vec<Measured>], batched: &[Vec<Measured>]) -> Vec<Claim> {
    let mean = |runs: &[Measured], value: fn(&Measured) -> f64| summary(runs, value).mean;
    let all = single.iter().chain(batched).flatten();
    let least = 100.0 * all.map(|run| run.reliability).fold(1.0, f64::min);
    let n = single.iter().chain(batched).map(Vec::len).sum();
    // TCPlp stands behind CoAP and CoCoA.
    let radio = |runs: &[Vec<Measured>], at: usize| mean(&runs[at], |run| run.radio);
    let beside = |runs: &[Vec<Measured>]| radio(runs, 2) / radio(runs, 0);
    let (alone, together) = (beside(single), beside(batched));
    let saved = radio(single, 2) / radio(batched, 2);
    let processor = mean(&single[2], |run| run.cpu) / mean(&batched[2], |run| run.cpu);
    let better = radio(batched, 3) / radio(batched, 2);
    let seeds = batched[2].len();
    vec![
        Claim::value(
            "all readings are delivered, by all protocols",
            Some(100.0),
            least,
            n,
            "%",
            least == 100.0,
        )
        .because(|| format!("the worst run delivered {least:.2} %")),
        Claim::value(
            "TCP's radio is on about as long as CoAP's: within a third, in batches",
            Some(1.0),
            together,
            seeds,
            "times",
            (0.75..1.34).contains(&together),
        )
        .because(|| format!("{together:.2} times in batches, {alone:.2} times reading by reading")),
        Claim::value(
            "batches save TCP's radio half of its time or more",
            None,
            saved,
            seeds,
            "times",
            saved >= 2.0,
        )
        .because(|| format!("it is on {saved:.2} times as long without them")),
        Claim::value(
            "and the processor's",
            None,
            processor,
            seeds,
            "times",
            processor >= 1.5,
        )
        .because(|| format!("it works {processor:.2} times as long without them")),
        Claim::value(
            "improved: the improved variant's radio sleeps more: at most three quarters of the time",
            None,
            better,
            seeds,
            "times",
            better <= 0.75,
        )
        .because(|| format!("{better:.2} times TCPlp's")),
    ]
}
