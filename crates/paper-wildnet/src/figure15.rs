//! Figure 15: the redundancy for a residual loss, 1 Mbit/s over 20 km (4.6).

use chappe_core::Duration;
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_wildnet::{Recovery, Redundancy, Service};

use crate::context::{FigureContext, Runs};
use crate::few_packets;
use crate::panel::lines;
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Length of slots, in ms, in whose cycle 1 Mbit/s brings ten packets of 1440 octets.
const TEN_MS: u64 = 58;
/// Shares of frames lost.
const LOSSES: [f64; 3] = [0.1, 0.2, 0.3];
/// Targets for the residual loss.
const TARGETS: [f64; 3] = [0.10, 0.05, 0.01];

fn overhead(measured: &Measured) -> f64 {
    100.0 * measured.overhead
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let over = |target: f64, improved: bool| {
        let service = Service {
            residual: target,
            deadline: Some(Duration::from_millis(100)),
            drop_late: true,
            ..Service::retries(if improved { None } else { Some(0) })
        };
        let trials = LOSSES.map(|loss| Trial {
            scheme: Scheme::Slots {
                form: SlotForm::Even,
                slot: Duration::from_millis(20),
                recovery: match improved {
                    true => Recovery::Improved { fill: false },
                    false => Recovery::Blocks {
                        rule: Redundancy::Residual(target),
                        repeat: false,
                    },
                },
                service,
            },
            km: 20.0,
            loss,
            load: Load::Steady(1e6),
            both: false,
            time: context.time(),
        });
        context.measure(&trials)
    };
    let runs = |improved| -> Result<Vec<Vec<Runs>>, RunError> {
        TARGETS
            .iter()
            .map(|&target| over(target, improved))
            .collect()
    };
    let (blocks, improved) = (runs(false)?, runs(true)?);
    let names = TARGETS.map(|target| format!("at most {:.0} % lost", target * 100.0));
    let places: Vec<String> = LOSSES
        .iter()
        .map(|loss| format!("{:.0} %", loss * 100.0))
        .collect();
    let series = |runs: &[Vec<Runs>], value: fn(&Measured) -> f64| {
        names
            .iter()
            .zip(runs)
            .map(|(name, runs)| line(name, runs, value))
            .collect::<Vec<_>>()
    };
    let bound: Vec<Option<f64>> = LOSSES
        .iter()
        .map(|p| Some(100.0 * ((1.0 - TARGETS[2]) / (1.0 - p) - 1.0)))
        .collect();
    let left = |runs: &[Vec<Runs>], target: usize, at: usize| {
        summary(&runs[target][at], |m| m.residual).mean
    };
    let met = |runs: &[Vec<Runs>]| {
        (0..TARGETS.len())
            .flat_map(|target| (0..LOSSES.len()).map(move |at| (target, at)))
            .filter(|&(target, at)| left(runs, target, at) <= TARGETS[target] * 1.25)
            .count()
    };
    let alone = |slot: u64, rule| {
        let recovery = Recovery::Blocks {
            rule,
            repeat: false,
        };
        let trial = Trial {
            scheme: Scheme::slots(slot, recovery, Service::retries(Some(0)), SlotForm::Even),
            km: 20.0,
            loss: LOSSES[2],
            load: Load::Steady(1e6),
            both: false,
            time: context.time(),
        };
        Ok::<Runs, RunError>(context.measure(&[trial])?.swap_remove(0))
    };
    let ten = alone(TEN_MS, Redundancy::Residual(TARGETS[2]))?;
    // 5 repairs for 3 packets and 6 for 4: the fewest that leave 1 % of either.
    let known = alone(20, Redundancy::Fixed { data: 2, parity: 3 })?;
    let stays = |runs: &Runs| summary(runs, |m| m.residual).mean;
    let (few, goals) = few_packets::make(context)?;
    let (of_ten, of_known) = (summary(&ten, overhead), summary(&known, overhead));
    let worst = summary(&blocks[2][2], overhead);
    let ours = summary(&improved[2][2], overhead);
    Ok(Figure {
        id: "figure15",
        title: "redundancy for a residual loss: 1 Mbit/s, 20 km, slots of 20 ms".into(),
        claims: [vec![
            Claim::new(
                "the block code of one slot alone needs 100 % of redundancy to reduce 30 % loss to 1 %, within 15 %: the exact minimum of K = 10 packets, which 1 Mbit/s brings in slots of 58 ms",
                Some(100.0),
                of_ten,
                "%",
                (of_ten.mean - 100.0).abs() <= 15.0 && stays(&ten) <= TARGETS[2] * 1.25,
            )
            .because(|| format!("{:.2} % remain lost", 100.0 * stays(&ten))),
            Claim::new(
                "in slots of 20 ms with K = 3 to 4, the exact minimum is 150 to 167 %, and with it the code meets its target",
                None,
                of_known,
                "%",
                (150.0..=167.0).contains(&of_known.mean) && stays(&known) <= TARGETS[2] * 1.25,
            )
            .because(|| format!("{:.2} % remain lost", 100.0 * stays(&known))),
            Claim::count("the block code meets its target for the residual loss (within a quarter)", None, met(&blocks), 9, met(&blocks) == 9),
            Claim::count("the improved variant meets it with a deadline of 100 ms, two and a half cycles", None, met(&improved), 9, met(&improved) == 9),
            Claim::new(
                "the improved variant needs less than half of the redundancy for 30 % down to 1 %",
                None,
                ours,
                "%",
                ours.mean < worst.mean / 2.0,
            ),
        ], goals].concat(),
        panels: [vec![
            lines("15a", "WiLDNet's code: redundancy", "%", ("frames lost", places.clone()), series(&blocks, overhead), bound.clone()),
            lines("15b", "WiLDNet's code: residual loss", "%", ("frames lost", places.clone()), series(&blocks, |m| 100.0 * m.residual), Vec::new()),
            lines("15c", "improved, deadline of 100 ms: redundancy", "%", ("frames lost", places.clone()), series(&improved, overhead), bound),
            lines("15d", "improved: lost or late", "%", ("frames lost", places), series(&improved, |m| 100.0 * m.residual), Vec::new()),
        ], few].concat(),
        notes: vec![format!("In slots of 20 ms the code uses {:.0} %, where {:.0} would suffice if the loss were known: the cost of an estimate from ten slots of about nine frames.", worst.mean, of_known.mean), "K is 3 to 4 at all points of 15a to 15d: 1 Mbit/s brings 3.5 packets in a cycle.".into(), "The bound is that for 1 %, (1 - q) / (1 - p) - 1, for unlimited blocks. Residual loss is measured on whole runs, and varies because packets are few.".into()],
    })
}
