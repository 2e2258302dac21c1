//! Figure 6: throughput over the knob.

use super::cells::{Cell, Cells, Scale, Site, System};
use crate::figure::{Claim, Figure, Panel, PanelKind, Series};
use crate::statistics::{Summary, mean};

const SITE: Site = Site::Outdoor;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    let systems: Vec<System> = scale.knobs.iter().map(|&knob| System::Pacifier { knob }).collect();
    scale.cells(SITE, &systems)
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    type Values = fn(&Cells, Site, System) -> Vec<f64>;
    let rows: [(&str, Values); 3] = [("max", Cells::best), ("average", Cells::mean), ("min", Cells::worst)];
    let at = |values: Values, knob: u8| values(cells, SITE, System::Pacifier { knob });
    let series = rows.map(|(name, values)| {
        Series::new(name, scale.knobs.iter().map(|&knob| Summary::of(&at(values, knob))).collect())
    });
    let n = usize::from(scale.scenarios);
    let curve = |values: Values| scale.knobs.iter().map(|&knob| mean(&at(values, knob))).collect::<Vec<f64>>();
    let last_is_best = |curve: &[f64]| curve.last().is_some_and(|last| curve.iter().all(|value| value <= last));
    let first_is_worst = |curve: &[f64]| curve.first().is_some_and(|first| curve.iter().all(|value| value >= first));
    let claim = |text: &str, curve: &[f64], holds| {
        let gain = 100.0 * (curve.last().unwrap_or(&0.0) / curve.first().unwrap_or(&1.0).max(1e-9) - 1.0);
        Claim::value(text, None, gain, n, "%", holds)
    };
    let (best, average, worst) = (curve(Cells::best), curve(Cells::mean), curve(Cells::worst));
    let all_worst = [&best, &average, &worst].into_iter().all(|curve| first_is_worst(curve));
    let better_min = worst.last() > worst.first();
    Figure {
        id: "figure6",
        title: "throughput over the knob".into(),
        panels: vec![Panel {
            id: "6".into(),
            title: "throughput, averaged over scenarios".into(),
            unit: "kbit/s",
            kind: PanelKind::Lines,
            places: scale.knobs.iter().map(|&knob| format!("{}", f64::from(knob) / 100.0)).collect(),
            series: series.to_vec(),
            bound: Vec::new(),
        }],
        claims: vec![
            claim("knob 1 has the highest average; from knob 0 to 1", &average, last_is_best(&average)),
            claim("knob 1 has the highest maximum; from knob 0 to 1", &best, last_is_best(&best)),
            claim("knob 1 has a higher minimum than knob 0; from 0 to 1", &worst, better_min),
            claim("knob 0 is the lowest in maximum, average and minimum", &average, all_worst),
        ],
        notes: Vec::new(),
    }
}
