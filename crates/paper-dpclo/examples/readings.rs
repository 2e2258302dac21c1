//! Why claims of the paper do not hold here, or how it must be read for them to hold: experiments beside its figures.
//!
//! ```text
//! cargo run --release -p chappe-paper-dpclo --example readings -- [figure3|figure4|figure5|figure7|figure8]... [--seeds 8]
//! ```
//!
//! Means over seeds with 95 % intervals. Rates are kbit/s of payload.

#[allow(dead_code, reason = "shared with the figures, which use more of it")]
#[path = "../src/scene.rs"]
mod scene;
#[allow(dead_code, reason = "shared with the figures, which use more of it")]
#[path = "../src/trial.rs"]
mod trial;

use chappe_core::Seed;
use chappe_dpclo::{KMax, RateLaw};
use chappe_lab::run::RunError;
use chappe_lab_dpclo::access::Method;
use chappe_lab_dpclo::mesh::Times;
use chappe_lab_dpclo::plan::Variant;
use chappe_results::statistics::Summary;
use chappe_testkit::Words;
use scene::{E, PaperNetwork, SOURCES};
use trial::{Measured, Trial};

/// Node D of Figure 2 (A).
const D: usize = 3;
/// The figures' own times: those of small networks, and of the one with 108 nodes.
const SMALL: Times = Times {
    begin: 30,
    counted: 130,
    end: 200,
};
const LARGE: Times = Times {
    begin: 45,
    counted: 65,
    end: 125,
};

type Runs = Vec<Measured>;
/// Prints the experiments on one figure, over this many seeds.
type Part = fn(u64) -> Result<(), RunError>;

const USAGE: &str = "readings [figure3|figure4|figure5|figure7|figure8]... [--seeds N]";

fn main() -> Result<(), RunError> {
    let mut words = Words::of_process(USAGE);
    let seeds = words.option("--seeds").unwrap_or(8);
    let parts: [(&str, Part); 5] = [
        ("figure3", figure3),
        ("figure4", figure4),
        ("figure5", figure5),
        ("figure7", figure7),
        ("figure8", figure8),
    ];
    let named = parts.map(|(name, _)| words.flag(name));
    words.end();
    let all = named == [false; 5];
    for ((_, part), named) in parts.into_iter().zip(named) {
        if all || named {
            part(seeds)?;
        }
    }
    Ok(())
}

fn runs(trial: &Trial, seeds: u64) -> Result<Runs, RunError> {
    (1..=seeds).map(|seed| trial.run(Seed(seed))).collect()
}

/// The trial, with RTS before each frame if that is asked.
fn with_rts(mut trial: Trial, rts: bool) -> Trial {
    if rts {
        trial.access = trial.access.with_rts();
    }
    trial
}

fn of(runs: &Runs, value: impl Fn(&Measured) -> f64) -> String {
    shown(&runs.iter().map(value).collect::<Vec<_>>())
}

/// The mean of what two trials with the same seed differ by.
fn paired(a: &Runs, b: &Runs, value: impl Fn(&Measured, &Measured) -> f64) -> String {
    let pairs = a.iter().zip(b).map(|(a, b)| value(a, b));
    shown(&pairs.collect::<Vec<_>>())
}

fn shown(values: &[f64]) -> String {
    let Summary {
        mean,
        ci95,
        min,
        max,
        ..
    } = Summary::of(values);
    format!(
        "{mean:.2} ± {:.2} ({min:.2} to {max:.2})",
        ci95.unwrap_or(0.0)
    )
}

/// F beside D instead of E: is the second path fairer, and what does it cost?
fn figure3(seeds: u64) -> Result<(), RunError> {
    for (name, beside) in [("E", E), ("D", D)] {
        for method in [Method::Dcf, Method::Edca, Method::ZmacPlus] {
            let place = PaperNetwork::Six {
                beside,
                lossy: false,
            };
            let several = Trial::new(place, Variant::Paper, method, SMALL);
            let one = several.clone().with(|s| s.next_hops.limit = KMax::Fixed(1));
            let (one, several) = (runs(&one, seeds)?, runs(&several, seeds)?);
            println!(
                "3: F beside {name}, {}: slower of faster {} with one path, {} with several; total, several of one {}",
                method.label(),
                of(&one, Measured::evenness),
                of(&several, Measured::evenness),
                paired(&several, &one, |a, b| a.total() / b.total()),
            );
        }
    }
    Ok(())
}

/// ETX with three classes of priority, which its division lowers, and with one.
fn figure4(seeds: u64) -> Result<(), RunError> {
    let place = PaperNetwork::Six {
        beside: E,
        lossy: true,
    };
    for method in [Method::Edca, Method::Dcf, Method::ZmacPlus] {
        for classes in ["three classes", "one class"] {
            let with = Trial::new(place, Variant::Paper, method, SMALL).with(|settings| {
                if classes == "one class" {
                    // No price is so high, and every one is above zero.
                    (settings.priorities.high, settings.priorities.medium) = (1e9, 0.0);
                }
            });
            let without = with.clone().with(|settings| settings.probes.etx_max = 1.0);
            let (with, without) = (runs(&with, seeds)?, runs(&without, seeds)?);
            let gain = |flow: usize| paired(&with, &without, |a, b| a.kbps[flow] / b.kbps[flow]);
            println!(
                "4: {}, {classes}: with ETX A-E {}, D-F {} of without; lost {} and {}",
                method.label(),
                gain(0),
                gain(1),
                of(&with, |run| run.lost),
                of(&without, |run| run.lost),
            );
        }
    }
    Ok(())
}

/// Sources that DPCLO limits beside sources that send as fast as the queue takes packets, and TCP.
fn figure5(seeds: u64) -> Result<(), RunError> {
    for (name, place) in [
        ("A", PaperNetwork::Asymmetry),
        ("D", PaperNetwork::Receivers),
    ] {
        for (source, variant) in [
            ("DPCLO", Variant::Paper),
            ("unlimited", Variant::ShortestPath),
            ("TCP", Variant::Tcp),
        ] {
            for (method, rts) in [
                (Method::ZmacPlus, false),
                (Method::Edca, false),
                (Method::Edca, true),
            ] {
                let trial = with_rts(Trial::new(place, variant, method, SMALL), rts);
                let runs = runs(&trial, seeds)?;
                println!(
                    "5{name}: {source}, {}{}: first of second {}, slower of faster {}, seconds with three times the other {}",
                    method.label(),
                    if rts { ", RTS" } else { "" },
                    of(&runs, |run| run.kbps[0] / run.kbps[1].max(1e-9)),
                    of(&runs, Measured::evenness),
                    of(&runs, |run| run.lopsided),
                );
            }
        }
    }
    Ok(())
}

/// TCP with RTS before each frame, as ns-2 has it unless told otherwise, and sources of which none is beside the sink.
fn figure7(seeds: u64) -> Result<(), RunError> {
    for (hops, rts) in [(3, false), (2, false), (1, false), (1, true)] {
        for (name, variant, method) in [
            ("TCP", Variant::Tcp, Method::Dcf),
            ("TCP-FeW", Variant::TcpFew, Method::Dcf),
            ("DPCLO", Variant::Paper, Method::ZmacPlus),
            ("Fusion", Variant::Fusion, Method::Edca),
        ] {
            let trial = Trial::new(PaperNetwork::Beyond(hops), variant, method, LARGE);
            let runs = runs(&with_rts(trial, rts), seeds)?;
            let delays = |run: &Measured| {
                let mut known: Vec<f64> = run
                    .delays
                    .iter()
                    .copied()
                    .filter(|delay| delay.is_finite())
                    .collect();
                known.sort_by(f64::total_cmp);
                known.last().copied().unwrap_or(f64::NAN)
                    / known.get(known.len() / 2).copied().unwrap_or(f64::NAN)
            };
            println!(
                "7: {hops} hops and more, {name}, {}{}: total {}, Jain {}, slowest of the mean {}, nearest of all {}, sources with more than the \
                 nearest {}, worst delay of the median {}",
                method.label(),
                if rts { ", RTS" } else { "" },
                of(&runs, Measured::total),
                of(&runs, Measured::jain),
                of(&runs, |run| run.least() * SOURCES as f64 / run.total()),
                of(&runs, |run| run.kbps[SOURCES - 1] / run.total()),
                of(&runs, |run| {
                    let nearest = run.kbps[SOURCES - 1];
                    run.kbps.iter().filter(|&&kbps| kbps > nearest).count() as f64
                }),
                of(&runs, delays),
            );
        }
    }
    Ok(())
}

/// Flows of 20 s, the median of Figure 8: rates that grow faster beside TCP.
fn figure8(seeds: u64) -> Result<(), RunError> {
    let times = Times {
        counted: LARGE.begin,
        end: LARGE.begin + 20,
        ..LARGE
    };
    for (name, variant, factor) in [
        ("DPCLO", Variant::Paper, 1.0),
        ("DPCLO, ten times the step", Variant::Paper, 10.0),
        ("TCP", Variant::Tcp, 1.0),
    ] {
        let method = match variant {
            Variant::Tcp => Method::Dcf,
            _ => Method::ZmacPlus,
        };
        let trial = Trial::new(PaperNetwork::Large, variant, method, times).with(|settings| {
            if let RateLaw::Queue(law) = &mut settings.rate {
                law.step *= factor;
            }
        });
        let runs = runs(&trial, seeds)?;
        let far = |run: &Measured| run.kbps[..4].iter().sum::<f64>() / 4.0;
        println!(
            "8: {name}, 20 s: the four farthest sources {} each, total {}",
            of(&runs, far),
            of(&runs, Measured::total),
        );
    }
    Ok(())
}
