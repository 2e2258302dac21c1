//! Figure 3: goodput over one hop, by the size of segments (6.1) and of buffers (6.2).

use chappe_bound::closed::lowpan;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::bounds;
use crate::context::{FigureContext, line, lines, summary};
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::{Experiment, Wire};
use chappe_lab_tcplp::frames::Form;
use chappe_lab_tcplp::transport::{MSS, Transport, WINDOW};

/// The most frames of a segment, and the most segments of a buffer.
const MOST: usize = 8;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let sizes: Vec<usize> = context.pick((1..=MOST).collect(), vec![1, 2, 5, 8]);
    let (up, down) = by_size(context, &sizes)?;
    let (send, receive) = by_buffer(context, &sizes)?;
    let place = |size: usize| sizes.iter().position(|&at| at == size);
    let mean = |runs: &[Vec<Measured>], size: usize| {
        place(size).map_or(0.0, |at| summary(&runs[at], |run| run.kbps).mean)
    };
    let bound = |frames: usize| {
        let segments = bounds::segments(&Form::TCPLP, Form::TCPLP.mss(frames), 2);
        lowpan::on_the_air(&bounds::HAMILTON, &segments, 1) / 1e3
    };
    let gain = mean(&up, 5) / mean(&up, 1);
    let further = mean(&up, MOST) / mean(&up, 5);
    let level = mean(&send, 5) / mean(&send, MOST);
    let stop = mean(&receive, 1) / mean(&send, 1);
    let n = context.seeds() as usize;
    let names = |what: &str| sizes.iter().map(|size| format!("{size} {what}")).collect();
    let mut a = lines(
        "3a",
        "goodput by size of segments",
        "kbit/s",
        ("segment", names("frames")),
        vec![
            line("uplink", &up, |run| run.kbps),
            line("downlink", &down, |run| run.kbps),
        ],
    );
    a.bound = sizes.iter().map(|&frames| Some(bound(frames))).collect();
    let mut b = lines(
        "3b",
        "goodput by size of the mote's buffer",
        "kbit/s",
        ("buffer", names("segments")),
        vec![
            line("uplink", &send, |run| run.kbps),
            line("downlink", &receive, |run| run.kbps),
        ],
    );
    b.bound = sizes.iter().map(|_| Some(bound(5))).collect();
    Ok(Figure {
        id: "figure3",
        title: "TCP over one hop".into(),
        panels: vec![a, b],
        claims: vec![
            Claim::value("segments of five frames have 4 to 5 times the goodput of segments of one (Table 1)", Some(4.5), gain, n, "times", (4.0..=5.0).contains(&gain))
                .because(|| format!("the bounds allow {:.1} times: {:.0} and {:.0} kbit/s, with 48 octets in a frame with addresses in line; the rest must be processing time per segment, which motes need and a simulated host does not", bound(5) / bound(1), bound(5), bound(1))),
            Claim::value("eight frames have less than 1.1 times the goodput of five", None, further, n, "times", further < 1.1)
                .because(|| format!("eight frames have {further:.2} times the goodput")),
            Claim::value("four to five segments of buffer are enough: 95 % of the goodput with eight", None, 100.0 * level, n, "%", level >= 0.95)
                .because(|| format!("five segments have {:.0} % of the goodput with eight", 100.0 * level)),
            Claim::value("with a buffer of one segment, downlink (where a full receive buffer is acknowledged at once) is faster than uplink", Some(1.86), stop, n, "times", stop > 1.2)
                .because(|| format!("{:.1} and {:.1} kbit/s", mean(&receive, 1), mean(&send, 1))),
        ],
        notes: vec![
            "3a: two motes; segments fill their frames; addresses in line, timestamps; buffers of 1848 octets, or of four segments if that is more".into(),
            "3b: a server 12 ms behind the border router; the mote's send buffer (uplink) or receive buffer (downlink) varies".into(),
            format!("no pauses between link retries (d = 0); the paper's window is {WINDOW}; the paper's curves are pictures without available values"),
        ],
    })
}

type Runs = Vec<Vec<Measured>>;

fn by_size(context: &FigureContext<'_>, sizes: &[usize]) -> Result<(Runs, Runs), RunError> {
    let experiment = |frames: usize| {
        let mss = Form::TCPLP.mss(frames);
        // The paper's 1848 octets, or four segments if that is more.
        let payload = usize::from(mss) - 12;
        let segments = WINDOW.max(WINDOW * 462 / payload);
        Experiment {
            transport: Transport::tcplp(mss, segments),
            ..plain()
        }
    };
    let trials: Vec<Trial> = sizes
        .iter()
        .map(|&frames| Trial::up(experiment(frames), context.time()))
        .chain(
            sizes
                .iter()
                .map(|&frames| Trial::down(experiment(frames), context.time())),
        )
        .collect();
    both(context, &trials)
}

fn by_buffer(context: &FigureContext<'_>, sizes: &[usize]) -> Result<(Runs, Runs), RunError> {
    let small = Transport::tcplp(MSS, 1).send;
    let experiment = |transport| Experiment {
        wire: Some(Wire::paper(MSS)),
        transport,
        ..plain()
    };
    let send = |segments: usize| Transport {
        send: small * segments,
        ..Transport::tcplp(MSS, MOST)
    };
    let receive = |segments: usize| Transport {
        receive: small * segments,
        ..Transport::tcplp(MSS, MOST)
    };
    let trials: Vec<Trial> = sizes
        .iter()
        .map(|&size| Trial::up(experiment(send(size)), context.time()))
        .chain(
            sizes
                .iter()
                .map(|&size| Trial::down(experiment(receive(size)), context.time())),
        )
        .collect();
    both(context, &trials)
}

fn both(context: &FigureContext<'_>, trials: &[Trial]) -> Result<(Runs, Runs), RunError> {
    let mut up = context.measure(trials, Trial::run)?;
    let down = up.split_off(trials.len() / 2);
    Ok((up, down))
}

/// One hop, without pauses between link retries.
fn plain() -> Experiment {
    let mut experiment = Experiment::row(1);
    experiment.mac.retry_delay = chappe_core::Duration::ZERO;
    experiment
}
