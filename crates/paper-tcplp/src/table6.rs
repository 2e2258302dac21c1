//! Table 6: goodput of TCP compared with simple stacks: one segment in flight, small segments.

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_tcplp::baseline::one_segment;
use chappe_tcplp::tcp;

use crate::context::{FigureContext, beside, line, lines, summary};
use crate::figure5::{SPACING, with_pause};
use crate::improved;
use chappe_lab_tcplp::bulk::{Measured, Trial};
use chappe_lab_tcplp::experiment::{Experiment, Wire};
use chappe_lab_tcplp::frames::Form;
use chappe_lab_tcplp::transport::{MSS, Transport, WINDOW};

/// The numbers of hops: one, and three for the paper's multihop column.
const HOPS: [usize; 2] = [1, 3];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let over = |experiment: &dyn Fn(usize) -> Experiment| -> Result<Vec<Vec<Measured>>, RunError> {
        let trials = HOPS.map(|hops| Trial::up(experiment(hops), context.time()));
        context.measure(&trials, Trial::run)
    };
    let small = Form::TCPLP.mss(1);
    let with = |transport: Transport| {
        move |hops: usize| Experiment {
            transport,
            ..Experiment::corridor(hops, SPACING)
        }
    };
    let one_frame = over(&with(one_segment_of(small)))?;
    let one_frame_far = over(&|hops| Experiment {
        wire: Some(Wire::paper(small)),
        ..with(one_segment_of(small))(hops)
    })?;
    let one_segment = over(&with(one_segment_of(MSS)))?;
    let one_segment_far = over(&|hops| Experiment {
        wire: Some(Wire::paper(MSS)),
        ..with(one_segment_of(MSS))(hops)
    })?;
    let poor = over(&|hops| with_pause(with(Transport::tcplp(small, WINDOW))(hops), 0))?;
    let paper = over(&|hops| Experiment::corridor(hops, SPACING))?;
    let kept = over(&|hops| Experiment::corridor(hops, SPACING).paced())?;
    let ours = over(&|hops| improved::best(Experiment::corridor(hops, SPACING)))?;
    let kbps = |runs: &[Vec<Measured>], at: usize| summary(&runs[at], |run| run.kbps).mean;
    let stop = |at: usize| kbps(&paper, at) / kbps(&one_frame_far, at);
    let gain = [stop(0), stop(1)];
    let n = context.seeds() as usize;
    let mut panel = lines(
        "6",
        "goodput",
        "kbit/s",
        ("hops", HOPS.iter().map(usize::to_string).collect()),
        vec![
            line("one segment of one frame", &one_frame, |run| run.kbps),
            line("to a server", &one_frame_far, |run| run.kbps),
            line("one segment of five", &one_segment, |run| run.kbps),
            line("to a server ", &one_segment_far, |run| run.kbps),
            line("small segments, d = 0", &poor, |run| run.kbps),
            beside(
                line("TCPlp", &paper, |run| run.kbps),
                &[Some(75.0), Some(20.0)],
            ),
            line("paced", &kept, |run| run.kbps),
            line("improved", &ours, |run| run.kbps),
        ],
    );
    panel.kind = chappe_results::figure::PanelKind::Bars;
    panel.bound = HOPS
        .iter()
        .map(|&hops| Some(improved::best_bound(hops)))
        .collect();
    Ok(Figure {
        id: "table6",
        title: "goodput compared with simple stacks".into(),
        panels: vec![panel],
        claims: vec![
            Claim::value("over one hop TCPlp has 5 to 40 times the goodput of a stack with one segment of one frame in flight, to a server that delays its acknowledgements", Some(5.0), gain[0], n, "times", gain[0] >= 5.0)
                .because(|| reason(&paper[0], &one_frame_far[0])),
            Claim::value("over three hops TCPlp has 5 to 40 times the goodput of that stack", Some(5.0), gain[1], n, "times", gain[1] >= 5.0)
                .because(|| reason(&paper[1], &one_frame_far[1])),
            Claim::value("over three hops a paced window has more goodput than one segment in flight", None, kbps(&kept, 1) / kbps(&one_segment, 1), n, "times", kbps(&kept, 1) > kbps(&one_segment, 1))
                .because(|| format!("{:.1} and {:.1} kbit/s: with one segment of five frames in flight, no frame collides with an acknowledgement", kbps(&kept, 1), kbps(&one_segment, 1))),
        ],
        notes: vec![
            format!("motes {SPACING} m apart at -8 dBm, as in Figure 5"),
            "simple stacks: this TCP with one segment in flight, no options, uIP's timers and no delayed acknowledgements; the server delays acknowledgements by up to 40 ms and has a round trip of 12 ms".into(),
            "small segments: a window of four segments of one frame, without pauses, the baseline of Table 1's techniques".into(),
            "the paper's values for other stacks were measured on other platforms, and are not in the text that we have; 75 and 20 kbit/s are TCPlp's".into(),
            "improved: paced, a context for the prefix, TCP headers of 11 octets, an acknowledgement for four segments; the bound is for these segments".into(),
        ],
    })
}

/// TCP as in uIP, with this MSS.
fn one_segment_of(mss: u16) -> Transport {
    let config = tcp::Config {
        // Without timestamps the same MSS has 12 octets more of payload.
        mss,
        delayed_ack: Duration::ZERO,
        ..one_segment::CONFIG
    };
    Transport::new(config, 1)
}

fn reason(ours: &[Measured], simple: &[Measured]) -> String {
    let kbps = |runs: &[Measured]| summary(runs, |run| run.kbps).mean;
    format!(
        "{:.1} and {:.1} kbit/s: on the same radio, with the same timers; the paper compares with other motes and stacks",
        kbps(ours),
        kbps(simple)
    )
}
