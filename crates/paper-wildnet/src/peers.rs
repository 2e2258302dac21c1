//! Today's tunnels over lossy links, compared with bulk acknowledgements and the improved variant.
//!
//! One direction with endless data over two media: the shared 6 Mbit/s with 20 ms of round trip on which the tunnels were
//! measured ([`pipe`](crate::pipe)), and bare slots of 20 ms over 60 km. TCP is this project's. KCP replaces it, as in kcptun,
//! so the rows of KCP carry a stream without TCP above.

use chappe_core::Duration;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Panel};
use chappe_rivals::KcpConfig;
use chappe_wildnet::baseline::fixed_code;
use chappe_wildnet::{Recovery, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::{lines, mbps, tcp_bound};
use chappe_lab_wildnet::pipe::{Pipe, Transport};
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::stream::{fast, fast3};
use chappe_lab_wildnet::trial::Trial;

/// Length of the link with slots, in km.
const KM: f64 = 60.0;
/// TCP throughput of the shared medium without loss, in Mbit/s: 1440 octets of payload for a frame of 1514 and half an
/// acknowledgement of 86.
const PIPE_TCP: f64 = 6.0 * 1440.0 / (1514.0 + 43.0);
/// tinyfecVPN's default code: ten repairs for twenty packets.
const STATIC: Recovery = fixed_code(20, 10);
/// The improved variant's recovery.
const OURS: Recovery = Recovery::Improved { fill: true };
/// The loss at which the tunnels are compared.
const AT: f64 = 0.3;
/// Throughput of the tools at that loss, in percent of their bound: plain cubic, tinyfecVPN with its default, kcptun `fast`
/// without parity and a window of 32, with 10:3 and 128, `fast3` with 10:10 and 32. They are single runs of 10 s, so
/// differences below a tenth mean nothing.
const MEASURED: [f64; 5] = [1.0, 9.0, 31.0, 46.0, 46.0];
/// The allowed difference between our models and the tools, in points. It was set before the first run.
const NEAR: f64 = 12.0;

/// A row of the figure: its transport over the shared medium, and its recovery and traffic over slots.
struct Row {
    name: &'static str,
    pipe: Transport,
    slots: (Recovery, Service, Load),
}

fn rows() -> Vec<Row> {
    let bare = (Recovery::None, Service::retries(Some(0)));
    let tcp = |name, recovery, service| Row {
        name,
        pipe: Transport::Link(recovery, service),
        slots: (recovery, service, Load::Tcp),
    };
    let kcp = |name, config: KcpConfig| Row {
        name,
        pipe: Transport::Kcp(config),
        slots: (bare.0, bare.1, Load::Kcp(config)),
    };
    vec![
        Row {
            name: "plain TCP",
            pipe: Transport::Plain,
            slots: (bare.0, bare.1, Load::Tcp),
        },
        tcp("static code 20:10", STATIC, Service::retries(Some(0))),
        kcp("KCP fast, window 32", fast(32, None)),
        kcp("KCP fast, 10:3, window 128", fast(128, Some((10, 3)))),
        kcp("KCP fast3, 10:10, window 32", fast3(32, Some((10, 10)))),
        tcp(
            "bulk acknowledgements",
            Recovery::Acks,
            Service::retries(None),
        ),
        Row {
            name: "improved",
            // Without slots, the service that `chappe link` gives to such a flow. Slots have no long queue, so no deadline there.
            pipe: Transport::Link(OURS, Service::BULK),
            slots: (OURS, Service::RELIABLE, Load::Tcp),
        },
    ]
}

/// The number of rows for other tools.
const PEERS: usize = 5;

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = match context.quick() {
        true => &[0.0, 0.1, AT],
        false => &[0.0, 0.05, 0.1, 0.2, AT, 0.4, 0.5],
    };
    let rows = rows();
    let time = context.short();
    let piped = over(&rows, losses, |row, loss| {
        context.measure(&[Pipe {
            transport: row.pipe,
            loss,
            time,
        }])
    })?;
    let slotted = over(&rows, losses, |row, loss| {
        context.measure(&[slots(row, loss, time)])
    })?;
    let pipe_bound: Vec<f64> = losses.iter().map(|loss| PIPE_TCP * (1.0 - loss)).collect();
    let slot_bound: Vec<f64> = losses
        .iter()
        .map(|&loss| tcp_bound(false, KM, loss))
        .collect();
    let place = losses.iter().position(|&loss| loss == AT).unwrap_or(0);
    let mut claims = like_the_tools(&rows, &piped, place, pipe_bound[place]);
    claims.extend(better_than_the_tools(
        "6 Mbit/s, 20 ms",
        &piped,
        losses,
        &pipe_bound,
    ));
    claims.extend(better_than_the_tools(
        "slots over 60 km",
        &slotted,
        losses,
        &slot_bound,
    ));
    let panel = |id, title, runs: &[Vec<Runs>], bound: &[f64]| -> Panel {
        let series = rows.iter().zip(runs);
        lines(
            id,
            title,
            "Mbit/s",
            (
                "frames lost",
                losses
                    .iter()
                    .map(|loss| format!("{:.0} %", loss * 100.0))
                    .collect(),
            ),
            series
                .map(|(row, runs)| line(row.name, runs, mbps))
                .collect(),
            bound.iter().copied().map(Some).collect(),
        )
    };
    Ok(Figure {
        id: "peers",
        title: "tunnels over lossy links, one way".into(),
        panels: vec![
            panel("p1", "6 Mbit/s shared by both directions, 20 ms of round trip", &piped, &pipe_bound),
            panel("p2", "slots of 20 ms each way, 60 km", &slotted, &slot_bound),
        ],
        claims,
        notes: vec![
            "KCP replaces TCP, as in kcptun, with kcp-go's rules. The other rows carry this project's TCP (NewReno, SACK; windows of 65,535 octets over slots, of 262,140 over the shared medium), where the measurement used cubic.".into(),
            "Bounds: TCP throughput without loss, times the share of frames that arrive.".into(),
        ],
    })
}

/// Measures each row at each loss.
fn over(
    rows: &[Row],
    losses: &[f64],
    measure: impl Fn(&Row, f64) -> Result<Vec<Runs>, RunError>,
) -> Result<Vec<Vec<Runs>>, RunError> {
    let mut all = Vec::new();
    for row in rows {
        let mut of = Vec::new();
        for &loss in losses {
            of.extend(measure(row, loss)?);
        }
        all.push(of);
    }
    Ok(all)
}

fn slots(row: &Row, loss: f64, time: Duration) -> Trial {
    let (recovery, service, load) = row.slots;
    Trial {
        scheme: Scheme::slots(20, recovery, service, SlotForm::Even),
        km: KM,
        loss,
        load,
        both: false,
        time,
    }
}

/// Claims that our models of the tools get what the tools were measured to get.
fn like_the_tools(rows: &[Row], runs: &[Vec<Runs>], place: usize, bound: f64) -> Vec<Claim> {
    let share =
        |measured: &chappe_lab_wildnet::experiment::Measured| 100.0 * mbps(measured) / bound;
    let of = rows.iter().zip(runs).zip(MEASURED);
    of.map(|((row, runs), measured)| {
        let ours = summary(&runs[place], share);
        Claim::new(
            &format!("30 % lost, 20 ms: {} gets what its tool was measured to get, {measured} % of the bound, within {NEAR} points", row.name),
            None,
            ours,
            "%",
            (ours.mean - measured).abs() <= NEAR,
        )
    })
    .collect()
}

/// Claims that compare WiLDNet with the best of the tools.
fn better_than_the_tools(
    medium: &str,
    runs: &[Vec<Runs>],
    losses: &[f64],
    bound: &[f64],
) -> Vec<Claim> {
    let mean = |row: usize, at: usize| summary(&runs[row][at], mbps).mean;
    let [acks, ours] = [PEERS, PEERS + 1];
    let low: Vec<usize> = (0..losses.len()).filter(|&at| losses[at] <= AT).collect();
    let shares: Vec<f64> = low
        .iter()
        .map(|&at| 100.0 * mean(ours, at) / bound[at])
        .collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let at = losses.iter().position(|&loss| loss == AT).unwrap_or(0);
    let best = (0..PEERS).map(|row| mean(row, at)).fold(0.0, f64::max);
    let by_loss = || {
        let all: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
        format!("by loss: {} %", all.join(", "))
    };
    vec![
        Claim::value(
            &format!(
                "{medium}: the improved variant gets at least 90 % of the bound up to 30 % loss"
            ),
            None,
            least,
            runs[ours][0].len(),
            "% at the least",
            least >= 90.0,
        )
        .because(by_loss),
        Claim::value(
            &format!(
                "{medium}: at 30 % loss, the improved variant gets at least 1.5 times what the best tool gets"
            ),
            None,
            mean(ours, at) / best,
            runs[ours][at].len(),
            "times",
            mean(ours, at) >= 1.5 * best,
        ),
        Claim::value(
            &format!(
                "{medium}: at 30 % loss, bulk acknowledgements get more than any of the tools"
            ),
            None,
            mean(acks, at) / best,
            runs[acks][at].len(),
            "times",
            mean(acks, at) > best,
        ),
    ]
}
