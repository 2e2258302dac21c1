//! Traffic classes: a ping on a link that bulk traffic fills (goal G11; section 3.4).

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_wildnet::{Recovery, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::{delay, lines, mbps};
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Length of the link in km.
const KM: f64 = 60.0;
/// The share of frames lost for which the goal is set.
const AT: f64 = 0.2;
/// Two cycles of two slots of 20 ms and the propagation delays, in ms.
const GOAL_MS: f64 = 80.8;

/// Slots of equal length, filled from both ends.
fn scheme(recovery: Recovery, service: Service) -> Scheme {
    Scheme::slots(20, recovery, service, SlotForm::Even)
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let losses: &[f64] = match context.quick() {
        true => &[0.0, AT],
        false => &[0.0, 0.1, AT, 0.3],
    };
    let ours = scheme(Recovery::Improved { fill: true }, Service::RELIABLE);
    let over = |scheme, beside, apart| {
        let at = |&loss: &f64| Trial {
            scheme,
            km: KM,
            loss,
            load: Load::Ping { beside, apart },
            both: true,
            time: context.time(),
        };
        context.measure(&losses.iter().map(at).collect::<Vec<_>>())
    };
    let rows: [(&str, Vec<Runs>); 4] = [
        ("WiLDNet", over(Scheme::WILDNET, true, false)?),
        ("improved, one class", over(ours, true, false)?),
        ("improved, a class for pings", over(ours, true, true)?),
        ("the same without bulk traffic", over(ours, false, true)?),
    ];
    let places: Vec<String> = losses
        .iter()
        .map(|loss| format!("{:.0} %", loss * 100.0))
        .collect();
    let panel = |id, title, unit, rows: &[(&str, Vec<Runs>)], value: fn(&Measured) -> f64| {
        let series = rows.iter().map(|(name, runs)| line(name, runs, value));
        let axis = ("frames lost", places.clone());
        lines(id, title, unit, axis, series.collect(), Vec::new())
    };
    let place = losses.iter().position(|&loss| loss == AT).unwrap_or(0);
    let of = |row: usize, value: fn(&Measured) -> f64| summary(&rows[row].1[place], value);
    let (late, mean) = (of(2, late), [1, 2].map(|row| of(row, delay).mean));
    let bulk = [1, 2].map(|row| of(row, mbps).mean);
    let n = rows[2].1[place].len();
    Ok(Figure {
        id: "classes",
        title: "a ping on a link that bulk traffic fills both ways, 60 km, slots of 20 ms".into(),
        claims: vec![
            Claim::new(
                &format!("G11: 20 % lost on a full link: 99 % of pings return within two cycles, {GOAL_MS} ms; the share later or never"),
                None,
                late,
                "%",
                late.mean <= 1.0,
            ).as_goal(),
            Claim::value(
                "without a separate class, pings take at least twice as long on average",
                None,
                mean[0] / mean[1],
                n,
                "times",
                mean[0] >= 2.0 * mean[1],
            ).as_goal()
            .because(|| format!("{:.0} and {:.0} ms", mean[0], mean[1])),
            Claim::value(
                "the class of pings costs bulk traffic at most 5 %",
                None,
                100.0 * (1.0 - bulk[1] / bulk[0]),
                n,
                "%",
                bulk[1] >= 0.95 * bulk[0],
            ).as_goal(),
        ],
        panels: vec![
            panel("g1", "round-trip time of pings: mean", "ms", &rows, delay),
            panel("g2", "round-trip time of pings: 99 % within", "ms", &rows, |m| 1e3 * m.p99),
            panel("g3", "pings that return after two cycles, or never", "%", &rows, self::late),
            panel("g4", "bulk traffic, both ways", "Mbit/s", &rows[..3], mbps),
        ],
        notes: vec![
            "Pings of 84 octets every 97 ms. Their separate class has a deadline of one cycle each way for all but half a per cent, for which the controller sends copies. Bulk traffic is reliable and in order, and so is all traffic in one class.".into(),
        ],
    })
}

fn late(measured: &Measured) -> f64 {
    100.0 * measured.late
}
