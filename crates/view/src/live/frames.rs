//! Frames of a daemon that has a simulated air: its newest, with what became of each, as it hands them over and as the page gets them.
//!
//! The daemon's answer is JSON: for each of its two tables an object of columns, each with its values as `whole`, `real`, or `codes` of
//! `words`. No value is `null`.

use chappe_trace::{Column, Data, NONE, Table, Tables};
use serde_json::{Map, Value, json};

/// The tables that a daemon hands over.
const TABLES: [&str; 2] = ["frames", "receptions"];
/// Columns that hold times, and those that hold rows of `frames`.
const TIMES: [&str; 2] = ["start_ns", "known_ns"];
const ROWS: [&str; 2] = ["frame", "culprit"];
/// Rows of a table that are read at most. A daemon has fewer.
const MOST: usize = 1 << 16;

/// A daemon's newest frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frames {
    /// What the daemon's clock showed when it answered, in nanoseconds.
    pub now_ns: i64,
    /// `frames` and `receptions`, as `chappe_trace` names their columns, in the order of their starts.
    pub tables: Vec<Table>,
}

/// A daemon's answer: `run` at `now_ns` of its clock.
pub fn write(run: &Tables, now_ns: u64) -> String {
    let tables = TABLES.iter().filter_map(|name| run.table(name));
    let tables: Map<String, Value> = tables
        .map(|table| (table.name.clone(), columns(table)))
        .collect();
    json!({ "now_ns": now_ns, "tables": tables }).to_string()
}

fn columns(table: &Table) -> Value {
    let whole = |value: i64| (value != NONE).then_some(value);
    let column = |column: &Column| {
        let data = match &column.data {
            Data::Whole(values) => {
                json!({ "whole": values.iter().map(|&value| whole(value)).collect::<Vec<_>>() })
            }
            // JSON has no NaN; `null` is written for it.
            Data::Real(values) => json!({ "real": values }),
            Data::Word { codes, words } => json!({ "codes": codes, "words": words }),
        };
        (column.name.clone(), data)
    };
    Value::Object(table.columns.iter().map(column).collect())
}

impl Frames {
    /// Reads a daemon's answer. `None` if it is none.
    pub fn read(answer: &str) -> Option<Frames> {
        let json: Value = serde_json::from_str(answer).ok()?;
        let tables = TABLES
            .iter()
            .map(|name| table(name, json.get("tables")?.get(*name)?));
        let tables: Vec<Table> = tables.collect::<Option<_>>()?;
        // The page relies on these.
        let whole = |table: &Table, name: &str| matches!(table.column(name), Some(Data::Whole(_)));
        let [sent, met] = tables.as_slice() else {
            return None;
        };
        let complete = [
            "node",
            "number",
            "start_ns",
            "airtime_ns",
            "octets",
            "channel",
        ]
        .iter()
        .all(|name| whole(sent, name))
            && ["frame", "node", "from", "start_ns", "known_ns", "culprit"]
                .iter()
                .all(|name| whole(met, name))
            && matches!(sent.column("kind"), Some(Data::Word { .. }))
            && matches!(met.column("outcome"), Some(Data::Word { .. }));
        complete.then_some(Frames {
            now_ns: json.get("now_ns")?.as_i64()?,
            tables,
        })
    }

    /// The same with `ahead_ns` more on its clock, from zero on; nodes have the numbers that `place` gives them, and rows of others are left
    /// out.
    pub fn shown(&self, ahead_ns: i64, place: impl Fn(i64) -> Option<u32>) -> Vec<Table> {
        let mut kept: Vec<Option<i64>> = Vec::new();
        let mut shown = Vec::new();
        for table in &self.tables {
            let values = |name: &str| match table.column(name) {
                Some(Data::Whole(values)) => values.as_slice(),
                _ => &[],
            };
            let (starts, nodes) = (values("start_ns"), values("node"));
            let senders = match table.name.as_str() {
                "receptions" => values("from"),
                _ => nodes,
            };
            let there: Vec<bool> = (0..table.rows())
                .map(|row| {
                    let begun = starts[row].saturating_add(ahead_ns) >= 0;
                    begun && place(nodes[row]).is_some() && place(senders[row]).is_some()
                })
                .collect();
            if table.name == "frames" {
                let mut next = 0;
                kept = there
                    .iter()
                    .map(|&there| {
                        next += i64::from(there);
                        there.then_some(next - 1)
                    })
                    .collect();
            }
            let changed = |column: &Column| {
                let number = |value: i64| match column.name.as_str() {
                    _ if value == NONE => NONE,
                    name if TIMES.contains(&name) => value.saturating_add(ahead_ns),
                    name if ROWS.contains(&name) => {
                        let row = usize::try_from(value).ok().and_then(|row| *kept.get(row)?);
                        row.unwrap_or(NONE)
                    }
                    "node" | "from" | "to" => place(value).map_or(NONE, Into::into),
                    _ => value,
                };
                Column {
                    name: column.name.clone(),
                    data: of_rows(&column.data, &there, number),
                }
            };
            shown.push(Table {
                name: table.name.clone(),
                columns: table.columns.iter().map(changed).collect(),
            });
        }
        shown
    }
}

/// The rows of a column that are `there`, whole numbers as `number` makes them.
fn of_rows(data: &Data, there: &[bool], number: impl Fn(i64) -> i64) -> Data {
    fn pick<T: Copy>(values: &[T], there: &[bool]) -> Vec<T> {
        let rows = values.iter().zip(there);
        rows.filter(|(_, there)| **there)
            .map(|(&value, _)| value)
            .collect()
    }
    match data {
        Data::Whole(values) => Data::Whole(pick(values, there).into_iter().map(number).collect()),
        Data::Real(values) => Data::Real(pick(values, there)),
        Data::Word { codes, words } => Data::Word {
            codes: pick(codes, there),
            words: words.clone(),
        },
    }
}

fn table(name: &str, json: &Value) -> Option<Table> {
    let columns = json.as_object()?.iter().map(|(name, json)| {
        Some(Column {
            name: name.clone(),
            data: data(json)?,
        })
    });
    let columns: Vec<Column> = columns.collect::<Option<_>>()?;
    let rows = columns.first().map_or(0, |column| column.data.len());
    let even = columns.iter().all(|column| column.data.len() == rows);
    (even && rows <= MOST).then(|| Table {
        name: name.to_owned(),
        columns,
    })
}

fn data(json: &Value) -> Option<Data> {
    let values = |key: &str| json.get(key).and_then(Value::as_array);
    if let Some(values) = values("whole") {
        let whole = |value: &Value| match value {
            Value::Null => Some(NONE),
            value => value.as_i64(),
        };
        return Some(Data::Whole(
            values.iter().map(whole).collect::<Option<_>>()?,
        ));
    }
    if let Some(values) = values("real") {
        let real = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        return Some(Data::Real(values.iter().map(real).collect()));
    }
    let words: Vec<String> = values("words")?
        .iter()
        .map(|word| word.as_str().map(str::to_owned))
        .collect::<Option<_>>()?;
    let code = |value: &Value| {
        let code = u32::try_from(value.as_u64()?).ok()?;
        ((code as usize) < words.len()).then_some(code)
    };
    let codes = values("codes")?.iter().map(code).collect::<Option<_>>()?;
    Some(Data::Word { codes, words })
}
