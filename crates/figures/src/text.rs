//! Figures as text: a table for each panel, then the claims.

use chappe_results::figure::{Claim, Figure, Panel, PanelKind};
use chappe_results::statistics::Summary;

use crate::table::{Table, digits, with_interval};

/// The figure as text, at most `width` columns wide where the tables allow it.
pub fn text(figure: &Figure, width: usize, colour: bool) -> String {
    let mut text = format!("{}: {}\n", figure.id, figure.title);
    for panel in &figure.panels {
        text += &format!("\n{} {} ({})\n", panel.id, panel.title, panel.unit);
        text += &table(panel).render(width, colour);
    }
    text += "\n";
    for claim in &figure.claims {
        text += &line(claim, colour);
    }
    for note in &figure.notes {
        text += &format!("  note: {note}\n");
    }
    text
}

fn table(panel: &Panel) -> Table {
    let mut table = Table::new().words(panel.axis);
    for series in &panel.series {
        table = table.numbers(&series.name, 0);
    }
    let has_paper = panel
        .series
        .iter()
        .any(|series| series.paper.iter().any(Option::is_some));
    let has_bound = panel.bound.iter().any(Option::is_some);
    let has_worst = panel.worst_bound.iter().any(Option::is_some);
    if has_bound {
        let of = match panel.bounded.as_slice() {
            [] => "bound".to_string(),
            series => format!("bound, {}", series.join(", ")),
        };
        table = table.numbers(&of, 1);
    }
    if has_worst {
        table = table.numbers("bound, worst receiver", 1);
    }
    if has_paper {
        table = table.words("paper");
    }
    for (place, label) in panel.places.iter().enumerate() {
        let mut cells = vec![label.clone()];
        let many = |summary: &Summary| panel.kind != PanelKind::Cdf && summary.n > 1;
        cells.extend(panel.series.iter().map(|series| match &series.ours[place] {
            summary if many(summary) => with_interval(summary.mean, summary.ci95),
            summary => digits(summary.mean),
        }));
        if has_bound {
            cells.push(
                panel
                    .bound
                    .get(place)
                    .copied()
                    .flatten()
                    .map_or_else(String::new, digits),
            );
        }
        if has_worst {
            cells.push(
                panel
                    .worst_bound
                    .get(place)
                    .copied()
                    .flatten()
                    .map_or_else(String::new, digits),
            );
        }
        if has_paper {
            let said = panel.series.iter().filter_map(|series| {
                series.paper[place].map(|value| format!("{} {}", series.name, digits(value)))
            });
            cells.push(said.collect::<Vec<String>>().join(", "));
        }
        if label == "mean" {
            table.bold_row(cells)
        } else {
            table.row(cells)
        }
    }
    table
}

fn line(claim: &Claim, colour: bool) -> String {
    let mark = match (claim.goal, claim.holds) {
        (false, true) => "holds",
        (false, false) => "does not hold",
        (true, true) => "met",
        (true, false) => "missed",
    };
    let mark = match (claim.holds, colour) {
        (true, true) => format!("\u{1b}[32m{mark}\u{1b}[0m{:1$}", "", 15 - mark.len()),
        (false, true) => format!("\u{1b}[33m{mark}\u{1b}[0m{:1$}", "", 15 - mark.len()),
        (_, false) => format!("{mark:<15}"),
    };
    let unit = if claim.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", claim.unit)
    };
    let paper = claim
        .paper
        .map_or_else(|| "no number".into(), |paper| digits(paper) + &unit);
    let ours = match claim.interval {
        Some((low, high)) => {
            let [mean, low, high] = [claim.ours.mean, low, high].map(digits);
            format!("{mean} ({low} to {high})")
        }
        None => with_interval(claim.ours.mean, claim.ours.ci95),
    };
    let averages = claim
        .of_averages
        .map_or_else(String::new, |of| format!(" ({} of averages)", digits(of)));
    let count = match claim.unit {
        "" => format!(" of {}", claim.ours.n),
        _ => format!("{unit}{averages}, n={}", claim.ours.n),
    };
    let off = match (claim.reproduces(), claim.off()) {
        (Some(false), Some(off)) => format!("; {:+.0} % off the paper's number", 100.0 * off),
        _ => String::new(),
    };
    let why = claim
        .why
        .as_ref()
        .map_or_else(String::new, |why| format!("                 why: {why}\n"));
    format!(
        "  {mark}{}\n                 paper {paper}, ours {ours}{count}{off}\n{why}",
        claim.text
    )
}
