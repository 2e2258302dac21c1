//! Figure 10: sense-and-send while packets are lost at the border router (8.2.2).

use chappe_core::Duration;
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};

use super::context::{FigureContext, line, lines, summary};
use super::study::sense::{BATCH, Measured, Trial};
use super::study::{Frames, Protocol, READING, cost};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Tcp,
    Protocol::Coap,
    Protocol::Cocoa,
    Protocol::Improved,
];

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let (losses, rounds): (&[u32], u32) = match context.quick() {
        true => (&[0, 9, 21], 3),
        false => (&[0, 3, 6, 9, 12, 15, 18, 21], 10),
    };
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
        "of these, by timeouts",
        "in 10 minutes",
        |run| run.timeouts,
    );
    // CoAP knows no others.
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
            "in 10 minutes",
            |run| run.retransmissions,
        ),
        late,
        radio,
        panel("10d", "processor duty cycle", "%", |run| 100.0 * run.cpu),
    ];
    Ok(Figure {
        id: "figure10",
        title: "readings in batches, packets lost at the border router both ways".into(),
        panels,
        claims: claims(losses, &by),
        notes: vec![
            "loss is that of whole packets, each way, after link retries and reassembly; links lose what hidden senders take".into(),
            "the bound is the paper's ideal protocol, which knows for nothing what was lost; its frames are TCPlp's".into(),
            "the loss of the paper's testbed without injection is not known; ours has what the tree's hidden senders cost".into(),
        ],
    })
}

fn claims(losses: &[u32], by: &[&[Vec<Measured>]]) -> Vec<Claim> {
    let [tcp, coap, cocoa, improved] = by else {
        return Vec::new();
    };
    // Over the places for which `which` holds.
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
        Claim::value("below 15 % loss TCP delivers nearly all: 99 % or more", Some(100.0), tcp_low, n, "%", tcp_low >= 99.0)
            .because(|| format!("it delivers {tcp_low:.2} %")),
        Claim::value("and so does CoAP", Some(100.0), coap_low, n, "%", coap_low >= 99.0)
            .because(|| format!("it delivers {coap_low:.2} %")),
        Claim::value("beyond 9 % CoCoA does poorly: below 95 %", None, cocoa_high, n, "%", cocoa_high < 95.0)
            .because(|| format!("it delivers {cocoa_high:.1} %: the draft's weak estimator takes no exchange with more than two retransmissions and weighs a quarter, so its timeout stays near CoAP's; which CoCoA the paper ran is not known")),
        Claim::value("beyond 15 % CoAP delivers more than TCP, which backs off further", None, high_coap - high_tcp, n, "%", high_coap > high_tcp)
            .because(|| format!("at {} % TCP delivers {high_tcp:.1} %, CoAP {high_coap:.1} % with {again:.0} retransmissions in 10 minutes: RACK and tail loss probes, which the paper's TCP has not, and a queue that holds what waits; CoAP loses messages that five transmissions did not bring", losses[last])),
        Claim::value("at moderate loss TCP's radio is on about as long as CoAP's, or less", Some(1.0), moderate, n, "times", moderate < 1.05)
            .because(|| format!("{moderate:.2} times")),
        Claim::value("not all of TCP's retransmissions follow timeouts: a fifth or more at 9 % do not", None, 100.0 * others, n, "%", others >= 0.2)
            .because(|| format!("{:.0} % do not", 100.0 * others)),
        Claim::value("goal: every run delivers all readings by TCPlp's TCP, up to 21 % loss", Some(100.0), tcp_all, n, "%", tcp_all == 100.0)
            .because(|| format!("the worst run delivered {tcp_all:.2} %: after several losses in a row its timeout grows to a minute, and the queue beside a batch holds less")),
        Claim::value("goal, improved: every run delivers all readings, up to 21 % loss", Some(100.0), chappe_all, n, "%", chappe_all == 100.0)
            .because(|| format!("the worst run delivered {chappe_all:.2} %")),
        Claim::value("improved: at the highest loss its radio is on for three fifths of TCPlp's time or less", None, variant, n, "times", variant <= 0.6)
            .because(|| format!("{variant:.2} times")),
    ]
}
