//! Results of the lab beside each other: figure by figure, and the claims that were won or lost.

use std::collections::BTreeMap;

use chappe_figures::table::Table;
use chappe_results::statistics::{Ratio, ratio};
use chappe_scenario::InputError;
use serde_json::{Value, json};

use super::inputs::LabInput;
use super::with_interval_of;
use crate::cli::Compare;
use crate::failure::{FAILED, Failure};
use crate::terminal::{self, Stream};

/// One figure in two results.
struct Pair {
    name: String,
    points: usize,
    same: usize,
    ratio: Option<Ratio>,
    lost: Vec<String>,
    won: Vec<String>,
}

/// A figure's points by panel, series and place; whether each claim holds.
#[derive(Default)]
struct Points {
    values: BTreeMap<String, f64>,
    claims: BTreeMap<String, bool>,
}

/// Every other result beside the first one. Points of a figure are not independent, so a ratio's interval only says how much they
/// agree; the verdict is that of the claims.
pub fn run(options: &Compare, all: &[Vec<LabInput>]) -> Result<u8, Failure> {
    let Some((reference, others)) = all.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Err(
            InputError::new("", "there is one result, and nothing to compare it with").into(),
        );
    };
    let (first, mut worse, mut documents) = (figures(reference), false, Vec::new());
    for other in others {
        let differences = differences(reference, other);
        if let (false, Some(unlike)) = (
            options.force,
            differences.iter().find(|(_, _, _, unlike)| *unlike),
        ) {
            let message = format!(
                "{} is unlike {}: {} is {} instead of {}",
                name(other),
                name(reference),
                unlike.0,
                unlike.2,
                unlike.1
            );
            return Err(InputError::new("", message)
                .help("--force compares them all the same")
                .into());
        }
        let second = figures(other);
        let pairs: Vec<Pair> = first
            .iter()
            .filter_map(|(name, a)| Some(pair(name, a, second.get(name)?)))
            .collect();
        if pairs.is_empty() {
            return Err(InputError::new("", "the results have no figure in common").into());
        }
        worse |= pairs.iter().any(|pair| !pair.lost.is_empty());
        match options.json {
            true => documents.push(document((reference, other), &differences, &pairs)),
            false => terminal::print(&text((reference, other), &differences, &pairs))?,
        }
    }
    if options.json {
        let json = json!({ "comparisons": documents });
        terminal::print(&(serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"))?;
    }
    Ok(if worse { FAILED } else { 0 })
}

fn name(papers: &[LabInput]) -> &str {
    papers.first().map_or("", |paper| &paper.name)
}

/// What, in A, in B, and whether it makes them unlike.
type Differs = (String, String, String, bool);

fn differences(a: &[LabInput], b: &[LabInput]) -> Vec<Differs> {
    let (Some(a), Some(b)) = (a.first(), b.first()) else {
        return Vec::new();
    };
    let keys = [
        ("quick", true),
        ("seed", true),
        ("chappe", false),
        ("commit", false),
        ("machine", false),
    ];
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_string)
    };
    let differ = keys
        .into_iter()
        .filter(|(key, _)| a.document[*key] != b.document[*key]);
    differ
        .map(|(key, unlike)| {
            (
                key.to_string(),
                text(&a.document[key]),
                text(&b.document[key]),
                unlike,
            )
        })
        .collect()
}

fn figures(papers: &[LabInput]) -> BTreeMap<String, Points> {
    let mut all: BTreeMap<String, Points> = BTreeMap::new();
    for paper in papers {
        for figure in paper.document["figures"].as_array().into_iter().flatten() {
            let words = |value: &Value| value.as_str().unwrap_or_default().to_string();
            let points = all
                .entry(format!(
                    "{} {}",
                    words(&paper.document["paper"]),
                    words(&figure["figure"])
                ))
                .or_default();
            for row in figure["rows"].as_array().into_iter().flatten() {
                let key = [&row["panel"], &row["series"], &row["place"]]
                    .map(words)
                    .join(" / ");
                points
                    .values
                    .extend(row["ours"]["mean"].as_f64().map(|mean| (key, mean)));
            }
            for claim in figure["claims"].as_array().into_iter().flatten() {
                let holds = claim["claim"]["holds"] == true
                    && (claim["claim"]["goal"] == true || claim["reproduces_number"] != false);
                points.claims.insert(words(&claim["claim"]["text"]), holds);
            }
        }
    }
    all
}

fn pair(name: &str, a: &Points, b: &Points) -> Pair {
    let both: Vec<(f64, f64)> = a
        .values
        .iter()
        .filter_map(|(key, value)| Some((*value, *b.values.get(key)?)))
        .collect();
    let positive: Vec<(f64, f64)> = both
        .iter()
        .copied()
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let changed = |was: bool| {
        let changed = a.claims.iter().filter(|(text, held)| {
            **held == was && b.claims.get(*text).is_some_and(|holds| *holds != was)
        });
        changed.map(|(text, _)| text.clone()).collect()
    };
    Pair {
        name: name.to_string(),
        points: both.len(),
        same: both.iter().filter(|(a, b)| a == b).count(),
        ratio: ratio(&positive),
        lost: changed(true),
        won: changed(false),
    }
}

fn text((a, b): (&[LabInput], &[LabInput]), differences: &[Differs], pairs: &[Pair]) -> String {
    let mut text = format!("A = {}\nB = {}\n", name(a), name(b));
    for (what, in_a, in_b, _) in differences {
        text += &format!("      {what}: {in_a} -> {in_b}\n");
    }
    let mut table = Table::new()
        .words("figure")
        .numbers("points", 1)
        .numbers("equal", 1)
        .numbers("B / A", 0)
        .numbers("claims lost", 0)
        .numbers("won", 0);
    for pair in pairs {
        table.row([
            pair.name.clone(),
            pair.points.to_string(),
            pair.same.to_string(),
            pair.ratio
                .as_ref()
                .map_or_else(|| "-".into(), with_interval_of),
            pair.lost.len().to_string(),
            pair.won.len().to_string(),
        ]);
    }
    let (width, colour) = (
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    text += &format!(
        "\n{}\nRatios are geometric means over a figure's positive points, which are not independent.\n",
        table.render(width, colour)
    );
    for (word, claims) in [
        ("lost", (|pair| &pair.lost) as fn(&Pair) -> &Vec<String>),
        ("won", |pair| &pair.won),
    ] {
        for pair in pairs {
            text += &claims(pair)
                .iter()
                .map(|claim| format!("{word}: {}: {claim}\n", pair.name))
                .collect::<String>();
        }
    }
    text
}

fn document((a, b): (&[LabInput], &[LabInput]), differences: &[Differs], pairs: &[Pair]) -> Value {
    let differences = differences
        .iter()
        .map(|(what, a, b, unlike)| json!({ "what": what, "a": a, "b": b, "unlike": unlike }));
    let figures = pairs.iter().map(|pair| {
        json!({ "figure": pair.name, "points": pair.points, "equal": pair.same, "ratio": pair.ratio, "lost": pair.lost, "won": pair.won })
    });
    json!({
        "reference": name(a),
        "name": name(b),
        "differences": differences.collect::<Vec<_>>(),
        "figures": figures.collect::<Vec<_>>(),
    })
}
