//! Figure 11: the radio duty cycle by hour of the day, of TCPlp and CoAP (8.2.3).

use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, line, lines, summary};
use chappe_lab_tcplp::study::sense::{Measured, Trial};
use chappe_lab_tcplp::study::{Frames, Interference, Protocol, disturbed};

const PROTOCOLS: [Protocol; 3] = [Protocol::Tcp, Protocol::Coap, Protocol::Improved];
/// The hours in which people work: [`DAY`](chappe_lab_tcplp::study::DAY).
const WORK: std::ops::Range<u32> = 9..18;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (hours, rounds): (Vec<u32>, u32) = match context.quick() {
        true => (vec![0, 12, 20], 2),
        // About four minutes of each hour are enough, since interference is constant over an hour.
        false => ((0..24).collect(), 4),
    };
    let trials: Vec<Hour> = PROTOCOLS
        .into_iter()
        .flat_map(|protocol| {
            hours.iter().map(move |&hour| Hour {
                protocol,
                hour,
                rounds,
            })
        })
        .collect();
    let runs = context.measure(&trials, |trial, seed| {
        // Each hour has other random numbers, but the same ones for all protocols.
        trial.of().run(seed.child(u64::from(trial.hour)))
    })?;
    let by: Vec<&[Vec<Measured>]> = runs.chunks(hours.len()).collect();
    let panel = |id: &str, title: &str, value: fn(&Measured) -> f64| {
        let places = hours.iter().map(|hour| format!("{hour} h")).collect();
        let series = PROTOCOLS
            .iter()
            .zip(&by)
            .map(|(protocol, runs)| line(protocol.name(), runs, value));
        lines(id, title, "%", ("hour", places), series.collect())
    };
    Ok(Figure {
        id: "figure11",
        title: "a day of readings, hour by hour".into(),
        panels: vec![
            panel("11", "radio duty cycle", |run| 100.0 * run.radio),
            panel("11 reliability", "readings delivered", |run| {
                100.0 * run.reliability
            }),
        ],
        claims: claims(&hours, &by),
        notes: vec![format!(
            "batches of 64, three frames per segment; {} batches of each hour, with table7's interference: links are disturbed for {} % of the time at night and {} % at noon",
            rounds,
            disturbed(0) * 100.0,
            disturbed(12) * 100.0,
        )],
    })
}

/// The trial of one hour.
struct Hour {
    protocol: Protocol,
    hour: u32,
    rounds: u32,
}

impl Hour {
    fn of(&self) -> Trial {
        Trial {
            interference: Interference::of(disturbed(self.hour)),
            ..Trial::paper(self.protocol, self.rounds).with(Frames::Three)
        }
    }
}

fn claims(hours: &[u32], by: &[&[Vec<Measured>]]) -> Vec<Claim> {
    let [tcp, coap, improved] = by else {
        return Vec::new();
    };
    let mean = |runs: &[Vec<Measured>], which: &dyn Fn(&u32) -> bool| {
        let chosen = hours.iter().zip(runs).filter(|(hour, _)| which(hour));
        let values: Vec<f64> = chosen
            .map(|(_, runs)| summary(runs, |run| run.radio).mean)
            .collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let night = |hour: &u32| disturbed(*hour) == disturbed(0);
    let work = |hour: &u32| WORK.contains(hour);
    let n = tcp.iter().map(Vec::len).sum();
    let quiet = mean(tcp, &night) / mean(coap, &night);
    let busy = mean(tcp, &work) / mean(coap, &work);
    let worst = improved
        .iter()
        .map(|runs| 100.0 * summary(runs, |run| run.radio).mean)
        .fold(0.0, f64::max);
    vec![
        Claim::value(
            "by night CoAP's radio is on shorter than TCP's",
            None,
            quiet,
            n,
            "times CoAP's",
            quiet > 1.0,
        )
        .because(|| format!("TCP's is on {quiet:.2} times as long")),
        Claim::value(
            "while people work TCP's radio is on shorter than CoAP's",
            None,
            busy,
            n,
            "times CoAP's",
            busy < 1.0,
        )
        .because(|| format!("TCP's is on {busy:.2} times as long")),
        Claim::value(
            "improved: the radio duty cycle is at most 1.5 % in every hour",
            None,
            worst,
            n,
            "%",
            worst <= 1.5,
        )
        .as_goal()
        .because(|| format!("it is {worst:.2} % in the worst hour")),
    ]
}
