//! One to four packets in a slot: what the improved variant takes to bring 30 % of losses down to 1 % in 100 ms, in order and not (goal G4).
//!
//! A plan adds whole repairs, so with few packets it leaves less than it may. Packets that wait for none before them get two plans in
//! turn. So few packets vary much: twenty seeds are run.

use chappe_core::{Duration, SPEED_OF_LIGHT};
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Panel};
use chappe_wildnet::{Order, Recovery, Service};

use crate::context::{FigureContext, Runs};
use crate::panel::lines;
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::scheme::{Load, Scheme, SlotForm};
use chappe_lab_wildnet::trial::Trial;

/// Packets of 1440 octets in each cycle.
const PACKETS: [u32; 4] = [1, 2, 3, 4];
/// Length of the link in km, share of frames lost, and share of packets that may be late or lost.
const KM: f64 = 20.0;
const LOSS: f64 = 0.3;
const TARGET: f64 = 0.01;
/// Length of both slots of a cycle.
const CYCLE: Duration = Duration::from_millis(40);
const SEEDS: u64 = 20;

/// Panels and claims of a figure.
pub fn make(context: &FigureContext<'_>) -> Result<(Vec<Panel>, Vec<Claim>), RunError> {
    let cycle = CYCLE.as_secs_f64() + 2.0 * KM * 1e3 / SPEED_OF_LIGHT;
    let over = |order| {
        let service = Service {
            order,
            residual: TARGET,
            deadline: Some(Duration::from_millis(100)),
            drop_late: true,
            ..Service::retries(None)
        };
        let scheme = Scheme::slots(
            20,
            Recovery::Improved { fill: false },
            service,
            SlotForm::Even,
        );
        let trials = PACKETS.map(|packets| Trial {
            scheme,
            km: KM,
            loss: LOSS,
            load: Load::Steady(f64::from(packets) * 1440.0 * 8.0 / cycle),
            both: false,
            time: context.time(),
        });
        context.measure_over(SEEDS, &trials)
    };
    let runs = [over(Order::Link)?, over(Order::None)?];
    let overhead = |measured: &Measured| 100.0 * measured.overhead;
    let late = |measured: &Measured| 100.0 * measured.late;
    let mean = |runs: &[Runs], value: fn(&Measured) -> f64| -> Vec<f64> {
        runs.iter().map(|runs| summary(runs, value).mean).collect()
    };
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let of_order = |place: usize| -> [f64; 2] {
        let costs = mean(&runs[place], overhead);
        let cost = costs.iter().sum::<f64>() / costs.len() as f64;
        [most(&mean(&runs[place], late)), cost]
    };
    let [ordered, free] = [of_order(0), of_order(1)];
    let n = runs[0][0].len();
    let claims = vec![
        Claim::value(
            "G4: one to four packets in a slot, 30 % of frames lost, 100 ms, in order: at most 1 % of packets late or lost",
            None,
            ordered[0],
            n,
            "% at the most",
            ordered[0] <= 100.0 * TARGET,
        )
        .as_goal(),
        Claim::value(
            "G4: the same in no order",
            None,
            free[0],
            n,
            "% at the most",
            free[0] <= 100.0 * TARGET,
        )
        .as_goal(),
        Claim::value(
            "G4: two plans in turn take less: the mean redundancy in no order, as a share of that in order",
            None,
            free[1] / ordered[1],
            n,
            "times",
            free[1] < ordered[1],
        )
        .as_goal()
        .because(|| format!("{:.0} and {:.0} %", free[1], ordered[1])),
    ];
    let places = || {
        (
            "packets in a slot",
            PACKETS.map(|packets| packets.to_string()).to_vec(),
        )
    };
    let series = |value: fn(&Measured) -> f64| {
        let names = ["in order", "in no order"];
        let rows = names.iter().zip(&runs);
        rows.map(|(name, runs)| line(name, runs, value)).collect()
    };
    let bound = 100.0 * ((1.0 - TARGET) / (1.0 - LOSS) - 1.0);
    let panels = vec![
        lines(
            "15e",
            "improved, few packets in a slot, 30 % down to 1 % in 100 ms: redundancy",
            "%",
            places(),
            series(overhead),
            vec![Some(bound); PACKETS.len()],
        ),
        lines(
            "15f",
            "improved, few packets in a slot: late or lost",
            "%",
            places(),
            series(late),
            Vec::new(),
        ),
    ];
    Ok((panels, claims))
}
