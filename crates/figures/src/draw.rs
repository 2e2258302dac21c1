//! Draws figures as SVG: bars with whiskers, lines, and distributions. The same panels always give the same bytes.
//!
//! Colours are those of Okabe and Ito, which are distinct for any colour vision; markers and dashes repeat the distinction.
//! A hollow diamond in a series' colour is the paper's value of it, a dashed line is the bound. Places that are numbers stand to
//! scale, values that differ much have a logarithmic scale, and series at one place stand beside each other. The figure's notes are
//! part of the drawing.

use std::fmt::Write as _;

use crate::axis::{Places, Scale, step};
use crate::table::digits;
use chappe_results::figure::{Figure, Panel, PanelKind, QUANTILES};

const WIDTH: f64 = 760.0;
const PANEL: f64 = 270.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 44.0;
const TITLE: f64 = 34.0;
/// Height of a line of the key.
const FOOT: f64 = 17.0;

const COLOURS: [&str; 8] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#222222", "#c9b800",
];
const DASHES: [&str; 8] = [
    "none",
    "7 3",
    "2 3",
    "9 3 2 3",
    "4 4",
    "1 2",
    "14 3",
    "6 2 1 2 1 2",
];
/// Mean width of a letter of the text.
const LETTER: f64 = 6.8;
/// By how much labels that are too long for their places turn, in degrees.
const SLANT: f64 = 40.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:14px}\
.m{fill:#555}.g{stroke:#ddd}.a{stroke:#222;fill:none}.w{fill:none}.b{stroke:#777;stroke-dasharray:3 3}\
.p{fill:#fff;stroke-width:2}.bg{fill:#fff}";
/// Colour of whiskers on bars.
const INK: &str = "#222222";
/// How far apart series at one place stand in a panel of lines, in pixels.
const DODGE: f64 = 7.0;
/// Half the length of a bound at a number on a scale, in pixels.
const BOUND: f64 = 30.0;
/// Intervals are drawn up to this multiple of the largest value.
const WIDE: f64 = 1.8;

/// The figure as an SVG document.
pub fn draw(figure: &Figure) -> String {
    let key = key(figure);
    let heights = figure.panels.iter().map(|panel| PANEL + below(panel));
    let foot = TITLE + heights.sum::<f64>();
    let height = foot + FOOT * (key.len() as f64 + 0.5);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
        escape(&format!("{}: {}", figure.id, figure.title)),
    );
    let _ = writeln!(
        svg,
        "<text class=\"t\" x=\"12\" y=\"22\">{}</text>",
        escape(&format!("{}: {}", figure.id, figure.title))
    );
    let mut top = TITLE;
    for panel in &figure.panels {
        let _ = writeln!(svg, "<g transform=\"translate(0 {top:.0})\">");
        top += PANEL + below(panel);
        match panel.kind {
            PanelKind::Bars => bars(&mut svg, panel),
            PanelKind::Lines => lines(&mut svg, panel),
            PanelKind::Cdf => distribution(&mut svg, panel),
        }
        svg.push_str("</g>\n");
    }
    for (line, words) in key.iter().enumerate() {
        let y = foot + FOOT * (line as f64 + 0.8);
        let _ = writeln!(
            svg,
            "<text class=\"m\" x=\"12\" y=\"{y:.1}\">{}</text>",
            escape(words)
        );
    }
    svg + "</svg>\n"
}

/// The legend of the signs in this figure's drawing, then its notes, in lines.
fn key(figure: &Figure) -> Vec<String> {
    let any = |has: &dyn Fn(&Panel) -> bool| figure.panels.iter().any(has);
    let drawn = |panel: &Panel| panel.kind != PanelKind::Cdf;
    let has_interval = |panel: &Panel| {
        let mut series = panel.series.iter();
        series.any(|series| (0..panel.places.len()).any(|place| series.interval(place).is_some()))
    };
    let has_paper = |panel: &Panel| {
        panel
            .series
            .iter()
            .any(|series| series.paper.iter().any(Option::is_some))
    };
    let mut key = Vec::new();
    if any(&|panel| drawn(panel) && has_interval(panel)) {
        key.push(
            "whiskers: 95 % interval of the mean over networks; one that ends in an arrow goes on"
                .to_string(),
        );
    }
    let letters = ((WIDTH - 24.0) / LETTER) as usize;
    let mut whose: Vec<String> = Vec::new();
    for panel in figure.panels.iter().filter(|panel| drawn(panel)) {
        let bound = bound_of(panel);
        if panel.bound.iter().any(Option::is_some) && !whose.contains(&bound) {
            whose.push(bound);
        }
    }
    key.extend(whose.iter().flat_map(|words| wrapped(words, letters)));
    if any(&|panel| drawn(panel) && has_paper(panel)) {
        key.push("diamond: the paper's value of the series of its colour".into());
    }
    if any(&|panel| !drawn(panel) && has_paper(panel)) {
        key.push(
            "diamond: a number in the paper's text, at the quantile that it is compared with"
                .into(),
        );
    }
    let notes = figure
        .notes
        .iter()
        .flat_map(|note| wrapped(&format!("note: {note}"), letters));
    key.extend(notes);
    key
}

/// Says which series a panel's bound is of.
fn bound_of(panel: &Panel) -> String {
    match panel.bounded.is_empty() {
        true => "bound (dashed): for what the panel's title names first; the notes say more".into(),
        false => format!(
            "bound (dashed): of {} only; others may exceed it",
            panel.bounded.join("; ")
        ),
    }
}

/// A sentence in lines of at most `letters` letters.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let full = lines[last].chars().count() + 1 + word.chars().count() > letters;
        match (lines[last].is_empty(), full) {
            (true, _) => lines[last].push_str(word),
            (false, true) => lines.push(word.to_string()),
            (false, false) => lines[last] += &format!(" {word}"),
        }
    }
    lines
}

/// The plotting area of a panel, and how values map to it.
struct Frame {
    scale: Scale,
}

impl Frame {
    fn y(&self, value: f64) -> f64 {
        PANEL - BOTTOM - self.scale.share(value) * (PANEL - BOTTOM - TOP)
    }
}

/// The place of a share of the width.
fn x_of(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// The scale of a panel's values with its ticks.
fn values(panel: &Panel) -> (Scale, Vec<f64>) {
    let means = panel
        .series
        .iter()
        .flat_map(|series| series.ours.iter().map(|value| value.mean));
    let paper = panel
        .series
        .iter()
        .flat_map(|series| series.paper.iter().copied().flatten());
    let points: Vec<f64> = means
        .chain(paper)
        .filter(|value| value.is_finite())
        .collect();
    let most = points.iter().copied().fold(0.0, f64::max);
    let ends = panel
        .series
        .iter()
        .flat_map(|series| (0..series.ours.len()).filter_map(|place| series.interval(place)));
    // One wide interval must not flatten the rest: it ends in an arrow.
    let end = ends
        .map(|(_, high)| high)
        .filter(|high| high.is_finite())
        .fold(0.0, f64::max);
    let mut high = end.min(WIDE * most).max(most);
    if panel.kind == PanelKind::Lines {
        // A bound just above the curves is shown whole.
        let near = panel
            .bound
            .iter()
            .flatten()
            .copied()
            .filter(|bound| *bound <= 1.5 * most);
        high = near.fold(high, f64::max);
    }
    let low = lowest(panel);
    let smallest = points.iter().copied().fold(f64::INFINITY, f64::min);
    Scale::round(
        low,
        high,
        smallest,
        panel.kind == PanelKind::Lines && low == 0.0,
    )
}

/// Title, legend, axes and grid.
fn scaffold(
    svg: &mut String,
    panel: &Panel,
    (scale, ticks): (Scale, Vec<f64>),
    unit: &str,
) -> Frame {
    let frame = Frame { scale };
    let unit = if scale.log {
        format!("{unit}, logarithmic")
    } else {
        unit.to_string()
    };
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"16\"><tspan font-weight=\"600\">{}</tspan> {} <tspan class=\"m\">({})</tspan></text>",
        escape(&panel.id),
        escape(&panel.title),
        escape(&unit)
    );
    for value in ticks {
        let y = frame.y(value);
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"m\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            round(value)
        );
    }
    legend(svg, panel);
    frame
}

fn round(value: f64) -> String {
    let places = if value.abs() < 0.1 { 4 } else { 2 };
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn legend(svg: &mut String, panel: &Panel) {
    let (mut x, mut y) = (LEFT, 32.0);
    for (index, series) in panel.series.iter().enumerate() {
        let width = 40.0 + LETTER * series.name.chars().count() as f64;
        if x > LEFT && x + width > WIDTH {
            (x, y) = (LEFT, y + 15.0);
        }
        let colour = COLOURS[index % COLOURS.len()];
        match panel.kind {
            PanelKind::Bars => {
                let _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{:.0}\" width=\"12\" height=\"10\" fill=\"{colour}\"/>",
                    y - 5.0
                );
            }
            PanelKind::Lines | PanelKind::Cdf => {
                let dash = DASHES[index % DASHES.len()];
                let _ = write!(
                    svg,
                    "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.0}\" y2=\"{y:.0}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
                    x - 6.0,
                    x + 14.0
                );
            }
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            x + 18.0,
            y + 4.0,
            escape(&series.name)
        );
        x += width;
    }
    if panel
        .series
        .iter()
        .any(|series| series.paper.iter().any(Option::is_some))
    {
        diamond(svg, (x + 6.0, y), INK);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\">the paper's</text>",
            x + 18.0,
            y + 4.0
        );
    }
}

/// The length of a panel's longest label, and whether labels are too long for their places. Of numbers to scale some labels are
/// left out instead.
fn longest_label(panel: &Panel) -> (f64, bool) {
    let lengths = panel.places.iter().map(|label| label.chars().count());
    let longest = lengths.max().unwrap_or(0) as f64 * LETTER;
    let space = (WIDTH - LEFT - RIGHT) / panel.places.len().max(1) as f64;
    let named = panel.kind != PanelKind::Cdf && !Places::of(panel).to_scale;
    (longest, named && longest > space)
}

/// The height that a panel needs below for rotated labels.
fn below(panel: &Panel) -> f64 {
    match longest_label(panel) {
        (longest, true) => (longest * SLANT.to_radians().sin()).ceil(),
        _ => 0.0,
    }
}

fn places(svg: &mut String, panel: &Panel, at: &Places) {
    let (_, slanted) = longest_label(panel);
    let mut free = 0.0;
    for (label, share) in panel.places.iter().zip(&at.at) {
        let (x, y) = (x_of(*share), PANEL - BOTTOM + 18.0);
        let half = label.chars().count() as f64 * LETTER / 2.0;
        if at.to_scale {
            let _ = writeln!(
                svg,
                "<path class=\"a\" d=\"M{x:.1} {:.1}v4\"/>",
                PANEL - BOTTOM
            );
            if x - half < free {
                continue;
            }
            free = x + half + LETTER;
        }
        let turn = match slanted {
            true => format!("end\" transform=\"rotate(-{SLANT} {x:.1} {y:.1})"),
            false => "middle".into(),
        };
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{turn}\">{}</text>",
            escape(label)
        );
    }
    let log = if at.log { " (logarithmic)" } else { "" };
    let _ = writeln!(
        svg,
        "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{log}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        PANEL - BOTTOM + 34.0 + below(panel),
        escape(panel.axis)
    );
}

/// The lowest value that a panel must show: zero, or negative means and ends of their intervals.
fn lowest(panel: &Panel) -> f64 {
    let values = panel.series.iter().flat_map(|series| &series.ours);
    let ends = values
        .filter(|value| value.mean < 0.0)
        .map(|value| value.mean - value.ci95.unwrap_or(0.0));
    ends.fold(0.0, f64::min)
}

fn bars(svg: &mut String, panel: &Panel) {
    let frame = scaffold(svg, panel, values(panel), panel.unit);
    let at = Places::of(panel);
    let zero = frame.y(0.0);
    let group = at.gap * (WIDTH - LEFT - RIGHT);
    let width = group * 0.8 / panel.series.len().max(1) as f64;
    for (index, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        for (place, value) in series
            .ours
            .iter()
            .enumerate()
            .filter(|(_, value)| value.mean.is_finite())
        {
            let x = x_of(at.at[place]) - group * 0.4 + index as f64 * width;
            let y = frame.y(value.mean);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"><title>{}: {}</title></rect>",
                y.min(zero),
                (width - 1.0).max(1.0),
                (zero - y).abs(),
                escape(&series.name),
                digits(value.mean)
            );
            whisker(svg, &frame, x + width / 2.0, series.interval(place), INK);
            if let Some(paper) = series.paper[place] {
                diamond(svg, (x + width / 2.0, frame.y(paper)), colour);
            }
        }
    }
    places(svg, panel, &at);
    bounds(svg, panel, &frame, &at);
    axis(svg);
}

/// The bound over each group, or a note where it lies above the drawing.
fn bounds(svg: &mut String, panel: &Panel, frame: &Frame, at: &Places) {
    // Over a group of bars, but a short stroke at a number on a scale, and never outside the axes.
    let group = at.gap * (WIDTH - LEFT - RIGHT);
    let half = if at.to_scale {
        (group * 0.45).min(BOUND)
    } else {
        group * 0.45
    };
    let known: Vec<(usize, f64)> = panel
        .bound
        .iter()
        .enumerate()
        .filter_map(|(place, bound)| Some((place, (*bound)?)))
        .collect();
    for &(place, bound) in known.iter().filter(|(_, bound)| *bound <= frame.scale.high) {
        let (x, y) = (x_of(at.at[place]), frame.y(bound));
        let _ = writeln!(
            svg,
            "<line class=\"b\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            (x - half).max(LEFT),
            (x + half).min(WIDTH - RIGHT)
        );
    }
    let above = known
        .iter()
        .map(|(_, bound)| *bound)
        .filter(|bound| *bound > frame.scale.high);
    let (low, high) = above.fold((f64::INFINITY, 0.0f64), |(low, high), b| {
        (low.min(b), high.max(b))
    });
    if high > 0.0 {
        let _ = writeln!(
            svg,
            "<text class=\"m\" x=\"{:.1}\" y=\"16\" text-anchor=\"end\">bound {} to {} {}, above the drawing</text>",
            WIDTH - RIGHT,
            digits(low),
            digits(high),
            escape(panel.unit)
        );
    }
}

fn lines(svg: &mut String, panel: &Panel) {
    let frame = scaffold(svg, panel, values(panel), panel.unit);
    let at = Places::of(panel);
    // Series stand beside each other at each place, at most a whisker's width apart and never in the next place.
    let count = panel.series.len().max(1) as f64;
    let dodge = (at.gap * (WIDTH - LEFT - RIGHT) / (count + 1.0)).min(DODGE);
    for (index, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let aside = (index as f64 - (count - 1.0) / 2.0) * dodge;
        let known = series
            .ours
            .iter()
            .enumerate()
            .filter(|(_, value)| value.mean.is_finite());
        let points: Vec<(usize, f64, f64)> = known
            .map(|(place, value)| (place, x_of(at.at[place]) + aside, frame.y(value.mean)))
            .collect();
        stroke(
            svg,
            &points.iter().map(|(_, x, y)| (*x, *y)).collect::<Vec<_>>(),
            index,
        );
        for &(place, x, y) in &points {
            whisker(svg, &frame, x, series.interval(place), colour);
            marker(svg, x, y, index);
            if let Some(paper) = series.paper[place] {
                diamond(svg, (x, frame.y(paper)), colour);
            }
        }
    }
    places(svg, panel, &at);
    bounds(svg, panel, &frame, &at);
    axis(svg);
}

/// Shares of samples over their values: the value axis lies below, the share axis to the left.
fn distribution(svg: &mut String, panel: &Panel) {
    let frame = scaffold(
        svg,
        panel,
        Scale::round(0.0, 0.95, 0.0, false),
        "share of samples",
    );
    let samples = panel
        .series
        .iter()
        .flat_map(|series| series.samples.iter().copied());
    let paper = panel
        .series
        .iter()
        .flat_map(|series| series.paper.iter().copied().flatten());
    let most = samples.chain(paper).fold(1e-9, f64::max);
    let step = step(most);
    let right = (most / step).ceil() * step;
    let x_of = |value: f64| LEFT + value / right * (WIDTH - LEFT - RIGHT);
    let mut value = 0.0;
    while value <= right * 1.0001 {
        let _ = writeln!(
            svg,
            "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x_of(value),
            PANEL - BOTTOM + 18.0,
            round(value)
        );
        value += step;
    }
    let _ = writeln!(
        svg,
        "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        WIDTH - RIGHT,
        PANEL - BOTTOM + 34.0,
        escape(panel.unit)
    );
    for (index, series) in panel.series.iter().enumerate() {
        let mut sorted = series.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let mut points = vec![(x_of(0.0), frame.y(0.0))];
        for (rank, value) in sorted.iter().enumerate() {
            let (before, after) = (
                rank as f64 / sorted.len() as f64,
                (rank + 1) as f64 / sorted.len() as f64,
            );
            points.push((x_of(*value), frame.y(before)));
            points.push((x_of(*value), frame.y(after)));
        }
        points.push((x_of(right), frame.y(1.0)));
        stroke(svg, &points, index);
        for ((_, p), value) in QUANTILES.iter().zip(&series.paper) {
            if let Some(value) = value {
                diamond(
                    svg,
                    (x_of(*value), frame.y(*p)),
                    COLOURS[index % COLOURS.len()],
                );
            }
        }
    }
    axis(svg);
}

fn stroke(svg: &mut String, points: &[(f64, f64)], index: usize) {
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>",
        path.join(" "),
        COLOURS[index % COLOURS.len()],
        DASHES[index % DASHES.len()]
    );
}

fn marker(svg: &mut String, x: f64, y: f64, index: usize) {
    let colour = COLOURS[index % COLOURS.len()];
    let _ = match index % 3 {
        0 => writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>"
        ),
        1 => writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{colour}\"/>",
            x - 4.0,
            y - 4.0
        ),
        _ => writeln!(
            svg,
            "<path d=\"M{x:.1} {:.1}l5 9h-10z\" fill=\"{colour}\"/>",
            y - 5.0
        ),
    };
}

/// An interval; an end outside the drawing is an arrow.
fn whisker(svg: &mut String, frame: &Frame, x: f64, interval: Option<(f64, f64)>, colour: &str) {
    let Some((low, high)) = interval.filter(|(low, high)| low.is_finite() && high.is_finite())
    else {
        return;
    };
    let end = |value: f64, inside: bool, back: f64| {
        let y = frame.y(value);
        match inside {
            true => format!("M{:.1} {y:.1}h6", x - 3.0),
            false => format!(
                "M{:.1} {2:.1}L{x:.1} {y:.1}L{:.1} {2:.1}",
                x - 3.0,
                x + 3.0,
                y + back
            ),
        }
    };
    let ends = [
        end(low, low >= frame.scale.low, -5.0),
        end(high, high <= frame.scale.high, 5.0),
    ];
    let _ = writeln!(
        svg,
        "<path class=\"w\" stroke=\"{colour}\" d=\"M{x:.1} {:.1}V{:.1}{}\"/>",
        frame.y(low),
        frame.y(high),
        ends.concat()
    );
}

fn diamond(svg: &mut String, (x, y): (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<path class=\"p\" stroke=\"{colour}\" d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\"/>",
        y - 5.0
    );
}

fn axis(svg: &mut String) {
    let _ = writeln!(
        svg,
        "<path class=\"a\" d=\"M{LEFT} {TOP}V{0}H{1}\"/>",
        PANEL - BOTTOM,
        WIDTH - RIGHT
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_results::figure::Series;
    use chappe_results::statistics::Summary;

    fn figure(kind: PanelKind) -> Figure {
        let series = Series {
            name: "A & B".into(),
            ours: vec![Summary::of(&[1.0, 2.0]), Summary::of(&[40.0])],
            paper: vec![Some(3.0), None],
            samples: vec![1.0, 2.0, 40.0],
            intervals: Vec::new(),
        };
        let panel = Panel {
            id: "1".into(),
            title: "t <1>".into(),
            unit: "kbit/s",
            kind,
            axis: "scenario",
            places: vec!["a".into(), "b".into()],
            series: vec![series],
            bound: vec![Some(20.0), Some(1000.0)],
            bounded: Vec::new(),
            worst_bound: Vec::new(),
        };
        Figure {
            id: "figure1",
            title: "f".into(),
            panels: vec![panel],
            claims: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Every kind closes its elements, escapes text, and contains no not-a-number.
    #[test]
    fn drawings_are_well_formed() {
        for kind in [PanelKind::Bars, PanelKind::Lines, PanelKind::Cdf] {
            let svg = draw(&figure(kind));
            assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            assert!(svg.contains("A &amp; B") && svg.contains("t &lt;1&gt;"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg, draw(&figure(kind)));
        }
        assert!(draw(&figure(PanelKind::Bars)).contains("above the drawing"));
    }

    /// Names of many series wrap to a second line, labels that do not fit are rotated and make the drawing taller, and a
    /// panel of lines shows the bound and the paper's values.
    #[test]
    fn nothing_overlaps_and_lines_have_bounds() {
        let plain = draw(&figure(PanelKind::Lines));
        assert!(plain.contains("class=\"b\"") && plain.contains("class=\"p\""));
        let mut crowded = figure(PanelKind::Lines);
        let panel = &mut crowded.panels[0];
        panel.series = vec![panel.series[0].clone(); 8];
        for series in &mut panel.series {
            series.name = "a name of some length".into();
        }
        panel.places = ["short", &"long ".repeat(20)].map(String::from).to_vec();
        let svg = draw(&crowded);
        assert!(svg.contains("y=\"51\">a name of some length") && !plain.contains("y=\"51\""));
        assert!(svg.contains("rotate(-40") && !plain.contains("rotate"));
        let height = |svg: &str| {
            let (_, rest) = svg.split_once("height=\"").unwrap_or_default();
            let (height, _) = rest.split_once('"').unwrap_or_default();
            height.parse::<f64>().unwrap_or(0.0)
        };
        assert!(height(&svg) > height(&plain) + 300.0);
    }

    /// Numbers stand to scale, series at one place beside each other, and a bound stays between the axes.
    #[test]
    fn lines_of_numbers_are_to_scale() {
        let mut figure = figure(PanelKind::Lines);
        let panel = &mut figure.panels[0];
        panel.places = ["0 km", "10 km", "100 km"].map(String::from).to_vec();
        panel.bound = vec![Some(20.0); 3];
        for name in ["A", "B"] {
            let values = [10.0, 20.0, 30.0].map(|value| Summary::of(&[value, value + 1.0]));
            panel.series.push(Series::new(name, values.to_vec()));
        }
        panel.series.remove(0);
        let svg = draw(&figure);
        let starts = |class: &str, attribute: &str| -> Vec<f64> {
            let lines = svg.lines().filter(|line| line.contains(class));
            let value = |line: &str| {
                line.split(&format!("{attribute}=\""))
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            };
            lines.filter_map(value).collect()
        };
        let markers = starts("<circle", "cx");
        let (near, far) = (markers[1] - markers[0], markers[2] - markers[1]);
        assert!((far / near - 9.0).abs() < 0.1, "{markers:?}");
        let left = starts("class=\"b\"", "x1");
        assert!(left.iter().all(|x| *x >= LEFT), "{left:?}");
        let squares: Vec<f64> = starts("width=\"8\"", "x").iter().map(|x| x + 4.0).collect();
        assert!(
            (squares[0] - markers[0] - DODGE).abs() < 0.2,
            "{squares:?} {markers:?}"
        );
    }

    /// The legend says of which series a bound is, once for panels that agree.
    #[test]
    fn a_bound_of_some_series_names_them() {
        let mut figure = figure(PanelKind::Bars);
        assert!(draw(&figure).contains("title names first"));
        figure.panels[0] = figure.panels[0].clone().bounding(&["slots", "tokens"]);
        figure.panels.push(figure.panels[0].clone());
        let svg = draw(&figure);
        assert_eq!(svg.matches("of slots; tokens only").count(), 1, "{svg}");
        assert!(!svg.contains("title names first"));
    }

    /// A negative bar hangs from the line of zero, which has moved up.
    #[test]
    fn negative_bars_hang_from_zero() {
        let mut figure = figure(PanelKind::Bars);
        figure.panels[0].series[0].ours = vec![Summary::of(&[-8.0]), Summary::of(&[4.0])];
        let svg = draw(&figure);
        let attribute = |bar: &str, name: &str| -> f64 {
            let (_, rest) = bar.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let bars: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<rect x") && line.contains("<title>"))
            .collect();
        let [down, up] = bars[..] else {
            panic!("{svg}")
        };
        let zero = attribute(up, "y") + attribute(up, "height");
        assert!((attribute(down, "y") - zero).abs() < 0.11, "{down} {up}");
        assert!((attribute(down, "height") - 2.0 * attribute(up, "height")).abs() < 0.2);
        assert!(svg.contains(">-10</text>"), "{svg}");
    }
}
