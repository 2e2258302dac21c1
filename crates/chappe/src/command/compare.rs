//! `chappe compare`: results beside a reference, paired by seed, and what differs between them.

mod inputs;
mod lab;

use chappe_figures::table::{Table, count, digits, kbit, with_interval};
use chappe_results::compare::{Comparison, Quantity, Verdict, compare, is_of_program};
use chappe_results::difference::{Difference, differences};
use chappe_results::statistics::Ratio;
use chappe_scenario::InputError;
use serde_json::{Value, json};

use crate::cli::Compare;
use crate::failure::{FAILED, Failure};
use crate::terminal::{self, Stream};
use inputs::{Input, Inputs};

/// A result beside the reference.
struct Beside<'a> {
    input: &'a Input,
    differences: Vec<Difference>,
    comparison: Comparison,
}

pub fn run(options: &Compare) -> Result<u8, Failure> {
    let all = match inputs::read(&options.results)? {
        Inputs::Runs(all) => all,
        Inputs::Lab(all) => return lab::run(options, &all),
    };
    let Some((reference, others)) = all.split_first().filter(|(_, others)| !others.is_empty())
    else {
        let error = InputError::new("", "there is one result, and nothing to compare it with");
        return Err(error
            .help("name two results or more, or the folder of a sweep")
            .into());
    };
    let beside: Vec<Beside<'_>> = others
        .iter()
        .map(|input| {
            let mut comparison = compare(&reference.document, &input.document);
            if input.sweep.is_some() && input.sweep == reference.sweep {
                // One sweep files its runs by the program that made them.
                comparison
                    .warnings
                    .retain(|warning| !is_of_program(warning));
            }
            Beside {
                input,
                differences: differences(&reference.document, &input.document, &input.swept),
                comparison,
            }
        })
        .collect();
    refuse(&beside, options.force)?;
    if options.json {
        let json = serde_json::to_string_pretty(&document(reference, &beside)).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print(&text(reference, &beside))?;
    }
    let worse = |beside: &Beside<'_>| {
        beside
            .comparison
            .quantities
            .iter()
            .take(2)
            .any(|quantity| quantity.verdict == Verdict::Worse)
    };
    Ok(if beside.iter().any(worse) { FAILED } else { 0 })
}

/// Refuses results that have nothing in common, and unlike ones unless the user insists.
fn refuse(beside: &[Beside<'_>], force: bool) -> Result<(), Failure> {
    for other in beside {
        let unlike: Vec<&Difference> = other
            .differences
            .iter()
            .filter(|difference| difference.unlike)
            .collect();
        if let (false, Some(first)) = (force, unlike.first()) {
            let more = match unlike.len() {
                1 => String::new(),
                many => format!(" and {} more keys", many - 1),
            };
            let message = format!(
                "{} is another task: `{}` is {} instead of {}{more}",
                other.input.name,
                first.what,
                quoted(&first.b),
                quoted(&first.a)
            );
            let help = "a seed of one is not the same case as that of the other; --force compares them all the same";
            return Err(InputError::new("", message).help(help).into());
        }
        if other.comparison.seeds == 0 {
            let message = "the two results have no seed in common, so there is nothing to pair";
            return Err(InputError::new("", message)
                .help("run both with the same --seeds")
                .into());
        }
        if other.comparison.flows == 0 {
            let message = format!(
                "no receiver of {} is one of the first result's, so there is nothing to pair",
                other.input.name
            );
            return Err(InputError::new("", message)
                .help("they carry different transfers")
                .into());
        }
    }
    Ok(())
}

/// A value in a sentence.
fn quoted(value: &str) -> String {
    const LONG: usize = 40;
    match value {
        "" => "not given".into(),
        value if value.chars().count() > LONG => {
            value.chars().take(LONG).chain("...".chars()).collect()
        }
        value => value.into(),
    }
}

fn document(reference: &Input, beside: &[Beside<'_>]) -> Value {
    let one = |other: &Beside<'_>| {
        let mut value = serde_json::to_value(&other.comparison).unwrap_or_default();
        value["name"] = other.input.name.clone().into();
        value["differences"] = serde_json::to_value(&other.differences).unwrap_or_default();
        value
    };
    match beside {
        // As it was when two results were the most.
        [only] => {
            let mut value = one(only);
            value["reference"] = reference.name.clone().into();
            value
        }
        several => {
            json!({ "reference": reference.name, "results": several.iter().map(one).collect::<Vec<_>>() })
        }
    }
}

fn text(reference: &Input, beside: &[Beside<'_>]) -> String {
    let mut text = format!("A = {}\n", reference.name);
    for (letter, other) in letters().zip(beside) {
        text += &format!(
            "{letter} = {}{}\n",
            other.input.name,
            said(&other.differences)
        );
    }
    let table = match beside {
        [only] => pair(only),
        several => several_rows(reference, several),
    };
    text += "\n";
    if let [only] = beside {
        text += &format!(
            "{} seeds and {} flows in both; ",
            only.comparison.seeds, only.comparison.flows
        );
    }
    text += "intervals of 95 % over seeds, paired\n\n";
    text += &table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    for (letter, other) in letters().zip(beside) {
        text += &remarks(&letter, &other.comparison);
    }
    text + &notes(beside)
}

/// What makes results hard to compare, each sentence once with the results that it is about.
fn notes(beside: &[Beside<'_>]) -> String {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (letter, other) in letters().zip(beside) {
        for warning in &other.comparison.warnings {
            match notes.iter_mut().find(|(known, _)| known == warning) {
                Some((_, letters)) => letters.push(letter.clone()),
                None => notes.push((warning, vec![letter.clone()])),
            }
        }
    }
    let lines = notes.iter().map(|(warning, letters)| {
        // A comparison calls its own two results A and B.
        match (warning.starts_with("A "), warning.strip_prefix("B ")) {
            (true, _) => format!("note: {warning}\n"),
            (false, Some(rest)) => format!("note ({}): {rest}\n", letters.join(", ")),
            (false, None) => format!("note (A and {}): {warning}\n", letters.join(", ")),
        }
    });
    match notes.is_empty() {
        true => String::new(),
        false => "\n".to_string() + &lines.collect::<String>(),
    }
}

/// Names of the results after A: B to Z, then numbers.
fn letters() -> impl Iterator<Item = String> {
    let letters = ('B'..='Z').map(String::from);
    letters.chain((27u32..).map(|number| format!("#{number}")))
}

/// What differs, in lines below a result's name.
fn said(differences: &[Difference]) -> String {
    let line = |difference: &Difference| {
        let unlike = if difference.unlike {
            " (another task)"
        } else {
            ""
        };
        format!(
            "\n      {}: {} -> {}{unlike}",
            difference.what,
            quoted(&difference.a),
            quoted(&difference.b)
        )
    };
    match differences.is_empty() {
        true => "\n      no difference in scenario, program and seeds".into(),
        false => differences.iter().map(line).collect(),
    }
}

fn remarks(letter: &str, comparison: &Comparison) -> String {
    let mut text = String::new();
    let (lost, won) = comparison.lost_and_won;
    if lost + won > 0 {
        text += &format!("{lost} flows finish only in A, {won} only in {letter}\n");
    }
    if comparison.only_a + comparison.only_b > 0 {
        text += &format!(
            "{} seeds are only in A, {} only in {letter}\n",
            comparison.only_a, comparison.only_b
        );
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

/// Two results: a row for each quantity.
fn pair(other: &Beside<'_>) -> Table {
    let mut table = Table::new()
        .words("")
        .numbers("A", 1)
        .numbers("B", 1)
        .numbers("B - A", 0)
        .numbers("B / A", 2)
        .words("B is");
    for quantity in &other.comparison.quantities {
        table.row(row(quantity));
    }
    table
}

/// More than two: a row for each result.
fn several_rows(reference: &Input, beside: &[Beside<'_>]) -> Table {
    let mut table = Table::new()
        .words("")
        .numbers("seeds", 2)
        .numbers("mean kbit/s", 0)
        .numbers("x A", 0)
        .numbers("slowest", 1)
        .numbers("x A", 1)
        .numbers("frames", 3)
        .words("is");
    let first = &reference.document.summary;
    table.row([
        "A".into(),
        reference.document.runs.len().to_string(),
        kbit(first.goodput_bps.mean),
        "1".into(),
        kbit(first.worst_goodput_bps.mean),
        "1".into(),
        count(first.data_transmissions.mean),
        String::new(),
    ]);
    for (letter, other) in letters().zip(beside) {
        let quantity = |place: usize| &other.comparison.quantities[place];
        let against = |place: usize| {
            quantity(place)
                .paired
                .ratio
                .as_ref()
                .map_or_else(|| "-".into(), with_interval_of)
        };
        table.row([
            letter,
            other.comparison.seeds.to_string(),
            kbit(quantity(0).b.mean),
            against(0),
            kbit(quantity(1).b.mean),
            against(1),
            count(quantity(3).b.mean),
            quantity(0).verdict.words().to_string(),
        ]);
    }
    table
}

fn row(quantity: &Quantity) -> [String; 6] {
    let (name, show, scale): (&str, fn(f64) -> String, f64) = match quantity.name {
        "goodput_bps" => ("mean goodput, kbit/s", kbit, 1e-3),
        "worst_goodput_bps" => ("slowest receiver, kbit/s", kbit, 1e-3),
        "delivered_bytes" => ("delivered, kB", |bytes| digits(bytes / 1e3), 1e-3),
        _ => ("data frames sent", count, 1.0),
    };
    let difference = quantity.paired.difference.scaled(scale);
    let ratio = quantity.paired.ratio.as_ref();
    [
        name.to_string(),
        show(quantity.a.mean),
        show(quantity.b.mean),
        with_interval(difference.mean, difference.ci95),
        ratio.map_or_else(String::new, with_interval_of),
        quantity.verdict.words().to_string(),
    ]
}

/// A ratio with its 95 % interval, if it has one.
pub fn with_interval_of(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.2} ({low:.2} to {high:.2})", ratio.mean),
        _ => format!("{:.2}", ratio.mean),
    }
}
