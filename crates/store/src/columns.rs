//! The columns of runs: a row for each flow, written and read.

use chappe_results::{Delay, Flow, Run};
use chappe_trace::{Column as Read, Data, NONE};

use crate::table::{Column, Values};

/// The columns that every file of runs has.
pub(crate) fn of(runs: &[&Run]) -> Vec<Column> {
    let rows: Vec<(&Run, &Flow)> = rows(runs).collect();
    let rows = rows.as_slice();
    let delay = |value: fn(&chappe_results::Delay) -> f64| {
        reals(rows, |_, flow| flow.delay_s.as_ref().map(value))
    };
    let mut columns = vec![
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
    ];
    columns.extend(names(rows));
    columns
}

/// The names of the ends, empty where nodes have none: all files of a data set need the same columns.
fn names(rows: &[(&Run, &Flow)]) -> [Column; 2] {
    let all = |name: &str, of: fn(&Flow) -> &Option<String>| {
        let values = rows.iter().map(|(_, flow)| of(flow).clone()).collect();
        Column::new(name, Values::Text(values)).optional()
    };
    [
        all("source_name", |flow| &flow.source_name),
        all("sink_name", |flow| &flow.sink_name),
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

/// The flows of a file's columns, each with its seed; `None` if a column is missing or has a gap where none may be.
pub(crate) fn flows(columns: &[Read]) -> Option<Vec<(u64, Flow)>> {
    let data = |name: &str| columns.iter().find(|column| column.name == name);
    let column = |name: &str| data(name).map(|column| &column.data);
    let whole = |name: &str| match column(name)? {
        Data::Whole(values) if !values.contains(&NONE) => Some(values),
        _ => None,
    };
    let real = |name: &str| match column(name)? {
        Data::Real(values) => Some(values),
        _ => None,
    };
    let word = |name: &str| match column(name)? {
        Data::Word { codes, words } => Some((codes, words)),
        _ => None,
    };
    let seeds = whole("seed")?;
    if seeds.is_empty() {
        // Words of no row have no type.
        return Some(Vec::new());
    }
    let [transfer, source, sink] = ["transfer", "source", "sink"].map(whole);
    let [offered, delivered] = ["offered_bytes", "delivered_bytes"].map(whole);
    let [complete, digest_ok] = ["complete", "digest_ok"].map(whole);
    let [names, protocols, variants] = ["flow", "protocol", "variant"].map(word);
    let (goodput, completion) = (real("goodput_bps")?, real("completion_s"));
    let delays = ["delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s"].map(real);
    let (transfer, source, sink) = (transfer?, source?, sink?);
    let (offered, delivered, complete, digest_ok) = (offered?, delivered?, complete?, digest_ok?);
    let (names, protocols, variants) = (names?, protocols?, variants?);
    let known = |values: Option<&Vec<f64>>, row: usize| {
        let value = values.and_then(|values| values.get(row)).copied();
        value.filter(|value| !value.is_nan())
    };
    let text = |(codes, words): (&Vec<u32>, &Vec<String>), row: usize| {
        Some(words.get(*codes.get(row)? as usize)?.clone())
    };
    let ends = ["source_name", "sink_name"].map(word);
    let one = |row: usize| {
        let [mean, p50, p95, p99] = delays.map(|values| known(values, row));
        let delay = || {
            Some(Delay {
                mean: mean?,
                p50: p50?,
                p95: p95?,
                p99: p99?,
            })
        };
        let [source_name, sink_name] = ends.map(|names| {
            let name = text(names?, row)?;
            (!name.is_empty()).then_some(name)
        });
        let flow = Flow {
            source_name,
            sink_name,
            name: text(names, row)?,
            transfer: *transfer.get(row)? as usize,
            source: *source.get(row)? as usize,
            sink: *sink.get(row)? as usize,
            protocol: text(protocols, row)?,
            variant: text(variants, row)?,
            offered_bytes: *offered.get(row)? as u64,
            delivered_bytes: *delivered.get(row)? as u64,
            complete: *complete.get(row)? == 1,
            digest_ok: *digest_ok.get(row)? == 1,
            completion_s: known(completion, row),
            goodput_bps: known(Some(goodput), row)?,
            delay_s: delay(),
        };
        Some((*seeds.get(row)? as u64, flow))
    };
    (0..seeds.len()).map(one).collect()
}
