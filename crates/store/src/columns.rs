//! The columns of runs: a row for each flow.

use chappe_results::{Flow, Run};

use crate::table::{Column, Values};

/// The columns that every file of runs has.
pub(crate) fn of(runs: &[&Run]) -> Vec<Column> {
    let rows: Vec<(&Run, &Flow)> = rows(runs).collect();
    let rows = rows.as_slice();
    let delay = |value: fn(&chappe_results::Delay) -> f64| {
        reals(rows, |_, flow| flow.delay_s.as_ref().map(value))
    };
    vec![
        Column::new("seed", whole(rows, |run, _| run.seed)),
        Column::new("transfer", whole(rows, |_, flow| flow.transfer as u64)),
        Column::new("flow", text(rows, |flow| &flow.name)),
        Column::new("source", whole(rows, |_, flow| flow.source as u64)),
        Column::new("sink", whole(rows, |_, flow| flow.sink as u64)),
        Column::new("protocol", text(rows, |flow| &flow.protocol)),
        Column::new("variant", text(rows, |flow| &flow.variant)),
        Column::new("offered_bytes", whole(rows, |_, flow| flow.offered_bytes)),
        Column::new(
            "delivered_bytes",
            whole(rows, |_, flow| flow.delivered_bytes),
        ),
        Column::new("complete", yes(rows, |flow| flow.complete)),
        Column::new("digest_ok", yes(rows, |flow| flow.digest_ok)),
        Column::new("completion_s", reals(rows, |_, flow| flow.completion_s)).optional(),
        Column::new("goodput_bps", reals(rows, |_, flow| Some(flow.goodput_bps))),
        Column::new("delay_mean_s", delay(|delay| delay.mean)).optional(),
        Column::new("delay_p50_s", delay(|delay| delay.p50)).optional(),
        Column::new("delay_p95_s", delay(|delay| delay.p95)).optional(),
        Column::new("delay_p99_s", delay(|delay| delay.p99)).optional(),
        Column::new(
            "bound_goodput_bps",
            reals(rows, |run, flow| {
                Some(run.bounds.get(flow.transfer)?.goodput_bps)
            }),
        )
        .optional(),
        Column::new(
            "bound_fraction",
            reals(rows, |run, flow| {
                Some(run.bounds.get(flow.transfer)?.fraction)
            }),
        )
        .optional(),
    ]
}

/// Every flow with its run.
pub(crate) fn rows<'a>(runs: &'a [&'a Run]) -> impl Iterator<Item = (&'a Run, &'a Flow)> {
    runs.iter()
        .flat_map(|run| run.flows.iter().map(move |flow| (*run, flow)))
}

fn whole(rows: &[(&Run, &Flow)], value: impl Fn(&Run, &Flow) -> u64) -> Values {
    Values::Whole(
        rows.iter()
            .map(|(run, flow)| value(run, flow) as i64)
            .collect(),
    )
}

fn reals(rows: &[(&Run, &Flow)], value: impl Fn(&Run, &Flow) -> Option<f64>) -> Values {
    Values::Real(rows.iter().map(|(run, flow)| value(run, flow)).collect())
}

fn yes(rows: &[(&Run, &Flow)], value: impl Fn(&Flow) -> bool) -> Values {
    Values::Yes(rows.iter().map(|(_, flow)| value(flow)).collect())
}

fn text(rows: &[(&Run, &Flow)], value: impl Fn(&Flow) -> &String) -> Values {
    Values::Text(
        rows.iter()
            .map(|(_, flow)| Some(value(flow).clone()))
            .collect(),
    )
}
