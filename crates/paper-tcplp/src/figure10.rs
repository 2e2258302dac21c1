//! Figure 10: sense-and-send with injected loss of packets at the border router (8.2.2).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};

use crate::context::{FigureContext, line, lines, summary};
use chappe_lab_tcplp::study::sense::{BATCH, Measured, Trial};
use chappe_lab_tcplp::study::{Frames, Protocol, READING, cost};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Tcp,
    Protocol::Coap,
    Protocol::Cocoa,
    Protocol::Improved,
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (losses, rounds): (&[u32], u32) =
        context.pick((&[0, 3, 6, 9, 12, 15, 18, 21], 10), (&[0, 9, 21], 3));
    let trials: Vec<Trial> = PROTOCOLS
        .into_iter()
        .flat_map(|protocol| {
            losses.iter().map(move |&loss| Trial {
                loss: f64::from(loss) / 100.0,
                ..Trial::paper(protocol, rounds)
            })
        })
        .collect();
    let runs = context.measure(&trials, Trial::run)?;
    let by: Vec<&[Vec<Measured>]> = runs.chunks(losses.len()).collect();
    let panel = |id: &str, title: &str, unit, value: fn(&Measured) -> f64| {
        let places = losses.iter().map(|loss| format!("{loss} %")).collect();
        let series = PROTOCOLS.iter().zip(&by);
        let series = series.map(|(protocol, runs)| line(protocol.name(), runs, value));
        lines(id, title, unit, ("loss", places), series.collect())
    };
    let floor = |loss: u32| {
        let frames = Protocol::Tcp.frames(Frames::Five, BATCH * READING);
        let time = Duration::from_secs(BATCH.into());
        Some(100.0 * cost::roofline(frames, time, f64::from(loss) / 100.0))
    };
    let mut radio = panel("10c", "radio duty cycle", "%", |run| 100.0 * run.radio);
    radio.bound = losses.iter().map(|&loss| floor(loss)).collect();
    let mut late = panel(
        "10b timeouts",
        "retransmissions after timeouts",
        "per 10 minutes",
        |run| run.timeouts,
    );
    // All of CoAP's retransmissions follow timeouts, so its series would repeat panel 10b.
    late.series.retain(|series| {
        [Protocol::Tcp.name(), Protocol::Improved.name()].contains(&series.name.as_str())
    });
    let panels: Vec<Panel> = vec![
        panel("10a", "readings delivered", "%", |run| {
            100.0 * run.reliability
        }),
        panel(
            "10b",
            "retransmissions of the transport",
            "per 10 minutes",
            |run| run.retransmissions,
        ),
        late,
        radio,
        panel("10d", "processor duty cycle", "%", |run| 100.0 * run.cpu),
    ];
    Ok(Figure {
        id: "figure10",
        title: "readings in batches, with packet loss at the border router both ways".into(),
        panels,
        claims: claims(losses, &by),
        notes: vec![
            "packets are dropped in each direction, after link retries and reassembly; links also lose frames to hidden terminals".into(),
            "the bound is the paper's ideal protocol, which learns of losses at no cost; its frames are TCPlp's".into(),
            "the loss of the paper's testbed without injection is not known; ours is that of the tree's hidden terminals".into(),
        ],
    })
}

fn claims(losses: &[u32], by: &[&[Vec<Measured>]]) -> Vec<Claim> {
    let [tcp, coap, cocoa, improved] = by else {
        return Vec::new();
    };
    // The least mean reliability over the loss rates for which `which` holds.
    let least = |runs: &[Vec<Measured>], which: fn(u32) -> bool| {
        let places = losses.iter().zip(runs).filter(|(loss, _)| which(**loss));
        let means = places.map(|(_, runs)| 100.0 * summary(runs, |run| run.reliability).mean);
        means.fold(100.0, f64::min)
    };
    let all = |runs: &[Vec<Measured>]| {
        let worst = runs.iter().flatten().map(|run| run.reliability);
        100.0 * worst.fold(1.0, f64::min)
    };
    let n = tcp.iter().map(Vec::len).sum();
    let low = |loss| loss < 15;
    let (tcp_low, coap_low) = (least(tcp, low), least(coap, low));
    let cocoa_high = least(cocoa, |loss| loss > 9);
    let (tcp_all, chappe_all) = (all(tcp), all(improved));
    let last = losses.len() - 1;
    let at = |runs: &[Vec<Measured>], place: usize, value: fn(&Measured) -> f64| {
        summary(&runs[place], value).mean
    };
    let (high_tcp, high_coap) = (
        100.0 * at(tcp, last, |run| run.reliability),
        100.0 * at(coap, last, |run| run.reliability),
    );
    let middle = losses.iter().position(|&loss| loss == 9).unwrap_or(last);
    let moderate = at(tcp, middle, |run| run.radio) / at(coap, middle, |run| run.radio);
    let others =
        1.0 - at(tcp, middle, |run| run.timeouts) / at(tcp, middle, |run| run.retransmissions);
    let variant = at(improved, last, |run| run.radio) / at(tcp, last, |run| run.radio);
    let again = at(coap, last, |run| run.retransmissions);
    vec![
        Claim::value("below 15 % loss TCP delivers nearly all readings: 99 % or more", Some(100.0), tcp_low, n, "%", tcp_low >= 99.0)
            .because(|| format!("it delivers {tcp_low:.2} %")),
        Claim::value("below 15 % loss CoAP delivers nearly all readings: 99 % or more", Some(100.0), coap_low, n, "%", coap_low >= 99.0)
            .because(|| format!("it delivers {coap_low:.2} %")),
        Claim::value("above 9 % loss CoCoA delivers few readings: below 95 %", None, cocoa_high, n, "%", cocoa_high < 95.0)
            .because(|| format!("it delivers {cocoa_high:.1} %: the draft's weak estimator ignores exchanges with more than two retransmissions and has a weight of a quarter, so its timeout stays near CoAP's; the paper's version of CoCoA is not known")),
        Claim::value("above 15 % loss CoAP delivers more than TCP, whose timeout grows longer", None, high_coap - high_tcp, n, "%", high_coap > high_tcp)
            .because(|| format!("at {} % TCP delivers {high_tcp:.1} %, CoAP {high_coap:.1} % with {again:.0} retransmissions per 10 minutes: this TCP has RACK and tail loss probes, which the paper's does not, and a queue for the readings that wait; CoAP loses a message after five transmissions", losses[last])),
        Claim::value("at moderate loss TCP's radio is on about as long as CoAP's, or shorter", Some(1.0), moderate, n, "times", moderate < 1.05)
            .because(|| format!("{moderate:.2} times")),
        Claim::value("a fifth or more of TCP's retransmissions at 9 % loss do not follow timeouts", None, 100.0 * others, n, "%", others >= 0.2)
            .because(|| format!("{:.0} % do not", 100.0 * others)),
        Claim::value("goal: TCPlp's TCP delivers all readings in every run, up to 21 % loss", Some(100.0), tcp_all, n, "%", tcp_all == 100.0).as_goal()
            .because(|| format!("the worst run delivered {tcp_all:.2} %: after several consecutive losses its timeout grows to a minute, and the queue has no room for a minute's readings besides a batch")),
        Claim::value("goal, improved: all readings are delivered in every run, up to 21 % loss", Some(100.0), chappe_all, n, "%", chappe_all == 100.0).as_goal()
            .because(|| format!("the worst run delivered {chappe_all:.2} %")),
        Claim::value("improved: at the highest loss the radio is on for at most three fifths of TCPlp's time", None, variant, n, "times", variant <= 0.6).as_goal()
            .because(|| format!("{variant:.2} times")),
    ]
}
