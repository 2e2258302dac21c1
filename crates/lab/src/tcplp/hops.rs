//! Goodput over several hops (7.2): the paper's words, with its pause of 40 ms.

use chappe_bound::closed::lowpan;

use super::flow::{Flow, Measured};
use super::frames::Form;
use super::limits;
use super::paced;
use super::scene::{MSS, Scene};
use super::sheet::{Sheet, beside, line, lines, summary};
use crate::figure::{Claim, Figure};
use crate::run::RunError;

/// The paper's goodput over one to four hops, kbit/s.
const PAPER: [Option<f64>; 5] = [Some(64.1), Some(28.3), Some(19.5), Some(17.5), None];

pub fn make(sheet: &Sheet<'_>) -> Result<Figure, RunError> {
    let hops: Vec<usize> = (1..=if sheet.quick() { 3 } else { 5 }).collect();
    let over = |scene: &dyn Fn(usize) -> Scene| -> Result<Vec<Vec<Measured>>, RunError> {
        let flows: Vec<Flow> = hops
            .iter()
            .map(|&hops| Flow::up(scene(hops), sheet.time()))
            .collect();
        sheet.measure(&flows, Flow::run)
    };
    let paper = over(&Scene::row)?;
    let kept = over(&|hops| paced(Scene::row(hops)))?;
    let corridor = over(&|hops| paced(Scene::corridor(hops, 30.0)))?;
    let kbps = |runs: &[Vec<Measured>], hops: usize| summary(&runs[hops - 1], |run| run.kbps);
    let segments = limits::segments(&Form::TCPLP, MSS, 2);
    let serial = |hops| lowpan::one_by_one(&limits::HAMILTON, &segments, hops) / 1e3;
    let (one, three) = (kbps(&paper, 1), kbps(&kept, 3));
    let as_paper = kbps(&paper, 3);
    let reason = |runs: &[Measured]| {
        let mean = |value: fn(&Measured) -> f64| summary(runs, value).mean;
        format!(
            "of the frames {:.0} % are sent again, of the segments {:.1} % are lost, the round trip is {:.0} ms, timeouts in a minute: {:.1}",
            100.0 * mean(|run| run.frame_loss),
            100.0 * mean(|run| run.segment_loss),
            mean(|run| run.rtt_ms),
            mean(|run| run.timeouts * 60.0 / run.counts.time.as_secs_f64()),
        )
    };
    let mut panel = lines(
        "7.2",
        "goodput over hops, d = 40 ms",
        "kbit/s",
        ("hops", hops.iter().map(usize::to_string).collect()),
        vec![
            beside(line("as the paper", &paper, |run| run.kbps), &PAPER),
            line("paced, seven retries", &kept, |run| run.kbps),
            line("the same in a corridor", &corridor, |run| run.kbps),
        ],
    );
    panel.bound = hops
        .iter()
        .map(|&hops| Some(lowpan::on_the_air(&limits::HAMILTON, &segments, hops) / 1e3))
        .collect();
    Ok(Figure {
        id: "hops",
        title: "goodput over several hops".into(),
        panels: vec![panel],
        claims: vec![
            Claim::new("one hop at the paper's timing and headers: at least 90 kbit/s", Some(64.1), one, "kbit/s", one.mean >= 90.0)
                .because(|| reason(&paper[0])),
            Claim::new("three hops, paced: at least 28 kbit/s", Some(19.5), three, "kbit/s", three.mean >= 28.0)
                .because(|| reason(&kept[2])),
            Claim::new("three hops as the paper: at least what the paper measured", Some(19.5), as_paper, "kbit/s", as_paper.mean >= 19.5)
                .because(|| reason(&paper[2])),
        ],
        notes: vec![
            format!(
                "frames one after the other (6.3, 7.2) make {:.1}, {:.1}, {:.1} and from there on as much; the bound counts only what must not overlap",
                serial(1), serial(2), serial(3)
            ),
            "a row of perfect links in which every second neighbour is hidden; the corridor has motes 30 m apart at -8 dBm".into(),
            "paced: a source leaves its frame two frame times to get out of the way (RFC 8930, 5); seven retries are the standard's most".into(),
        ],
    })
}
