//! Draws figures as SVG: bars with whiskers, lines, and distributions. The same panels always give the same bytes.
//!
//! Colours are those of Okabe and Ito, which are distinct for any colour vision; markers and dashes repeat the distinction.
//! A hollow diamond is a value of the paper, a dashed line is the bound.

use std::fmt::Write as _;

use crate::table::digits;
use chappe_results::figure::{Figure, Panel, PanelKind, QUANTILES, Series};

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
.m{fill:#555}.g{stroke:#ddd}.a,.w{stroke:#222;fill:none}.b{stroke:#777;stroke-dasharray:3 3}\
.p{fill:#fff;stroke:#222;stroke-width:1.5}.bg{fill:#fff}";

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

/// The legend of the signs in this figure's drawing.
fn key(figure: &Figure) -> Vec<&'static str> {
    let any = |has: &dyn Fn(&Panel) -> bool| figure.panels.iter().any(has);
    let drawn = |panel: &Panel| panel.kind != PanelKind::Cdf;
    let mut key = Vec::new();
    if any(&|panel| {
        drawn(panel)
            && panel
                .series
                .iter()
                .flat_map(|s| &s.ours)
                .any(|value| value.ci95.is_some())
    }) {
        key.push("whiskers: 95 % interval of the mean over networks");
    }
    if any(&|panel| drawn(panel) && panel.bound.iter().any(Option::is_some)) {
        key.push("bound (dashed): for what the panel's title names first; the notes say more");
    }
    if any(&|panel| {
        panel
            .series
            .iter()
            .any(|series| series.paper.iter().any(Option::is_some))
    }) {
        key.push("diamond: a number in the paper's text");
    }
    key
}

/// The plotting area of a panel, and how values map to it.
struct Frame {
    /// Zero, or below it where a series has negative values.
    low_value: f64,
    top_value: f64,
}

impl Frame {
    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low_value) / (self.top_value - self.low_value);
        let share = share.clamp(0.0, 1.0);
        PANEL - BOTTOM - share * (PANEL - BOTTOM - TOP)
    }

    /// The middle of place `index` of `count`.
    fn x(index: usize, count: usize) -> f64 {
        LEFT + (index as f64 + 0.5) * (WIDTH - LEFT - RIGHT) / count.max(1) as f64
    }
}

/// A round step that divides a range into four to eight parts.
fn step(range: f64) -> f64 {
    let rough = (range / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    power
        * steps
            .into_iter()
            .find(|step| step * power >= rough)
            .unwrap_or(10.0)
}

/// Title, legend, axes and grid.
fn scaffold(svg: &mut String, panel: &Panel, (lowest, highest): (f64, f64), unit: &str) -> Frame {
    let step = step((highest - lowest).max(1e-9) * 1.05);
    let frame = Frame {
        low_value: (lowest * 1.05 / step).floor() * step,
        top_value: (highest * 1.05 / step).ceil().max(1.0) * step,
    };
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"16\"><tspan font-weight=\"600\">{}</tspan> {} <tspan class=\"m\">({})</tspan></text>",
        escape(&panel.id),
        escape(&panel.title),
        escape(unit)
    );
    let lines = ((frame.top_value - frame.low_value) / step).round() as usize;
    for line in 0..=lines {
        let value = frame.low_value + line as f64 * step;
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
    let text = format!("{value:.2}");
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
        diamond(svg, x + 6.0, y);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\">paper</text>",
            x + 18.0,
            y + 4.0
        );
    }
}

/// The length of a panel's longest label, and whether labels are too long for their places.
fn longest_label(panel: &Panel) -> (f64, bool) {
    let lengths = panel.places.iter().map(|label| label.chars().count());
    let longest = lengths.max().unwrap_or(0) as f64 * LETTER;
    let space = (WIDTH - LEFT - RIGHT) / panel.places.len().max(1) as f64;
    (longest, panel.kind != PanelKind::Cdf && longest > space)
}

/// The height that a panel needs below for rotated labels.
fn below(panel: &Panel) -> f64 {
    match longest_label(panel) {
        (longest, true) => (longest * SLANT.to_radians().sin()).ceil(),
        _ => 0.0,
    }
}

fn places(svg: &mut String, panel: &Panel) {
    let (_, slanted) = longest_label(panel);
    for (index, label) in panel.places.iter().enumerate() {
        let (x, y) = (Frame::x(index, panel.places.len()), PANEL - BOTTOM + 18.0);
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
    let _ = writeln!(
        svg,
        "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        PANEL - BOTTOM + 34.0 + below(panel),
        escape(panel.axis)
    );
}

/// The highest value that a panel must show: means, ends of intervals, the paper's values.
fn highest(panel: &Panel) -> f64 {
    let of = |series: &Series| {
        let ours = series
            .ours
            .iter()
            .map(|value| value.mean + value.ci95.unwrap_or(0.0));
        let paper = series.paper.iter().copied().flatten();
        ours.chain(paper).fold(0.0, f64::max)
    };
    panel.series.iter().map(of).fold(0.0, f64::max)
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
    let frame = scaffold(svg, panel, (lowest(panel), highest(panel)), panel.unit);
    let zero = frame.y(0.0);
    let group = (WIDTH - LEFT - RIGHT) / panel.places.len().max(1) as f64;
    let width = group * 0.8 / panel.series.len().max(1) as f64;
    for (index, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        for (place, value) in series.ours.iter().enumerate() {
            let x = Frame::x(place, panel.places.len()) - group * 0.4 + index as f64 * width;
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
            whisker(svg, &frame, x + width / 2.0, value.interval());
            if let Some(paper) = series.paper[place] {
                diamond(svg, x + width / 2.0, frame.y(paper));
            }
        }
    }
    places(svg, panel);
    bounds(svg, panel, &frame);
    axis(svg);
}

/// The bound over each group, or a note where it lies above the drawing.
fn bounds(svg: &mut String, panel: &Panel, frame: &Frame) {
    let group = (WIDTH - LEFT - RIGHT) / panel.places.len().max(1) as f64;
    let known: Vec<(usize, f64)> = panel
        .bound
        .iter()
        .enumerate()
        .filter_map(|(place, bound)| Some((place, (*bound)?)))
        .collect();
    for &(place, bound) in known.iter().filter(|(_, bound)| *bound <= frame.top_value) {
        let (x, y) = (Frame::x(place, panel.places.len()), frame.y(bound));
        let _ = writeln!(
            svg,
            "<line class=\"b\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            x - group * 0.45,
            x + group * 0.45
        );
    }
    let above = known
        .iter()
        .map(|(_, bound)| *bound)
        .filter(|bound| *bound > frame.top_value);
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
    // A bound just above the curves is shown whole.
    let curves = highest(panel);
    let near = panel.bound.iter().flatten().copied();
    let near = near.filter(|bound| *bound <= 1.5 * curves);
    let frame = scaffold(
        svg,
        panel,
        (lowest(panel), near.fold(curves, f64::max)),
        panel.unit,
    );
    for (index, series) in panel.series.iter().enumerate() {
        let points: Vec<(f64, f64)> = series
            .ours
            .iter()
            .enumerate()
            .map(|(place, value)| (Frame::x(place, panel.places.len()), frame.y(value.mean)))
            .collect();
        stroke(svg, &points, index);
        for (place, &(x, y)) in points.iter().enumerate() {
            whisker(svg, &frame, x, series.ours[place].interval());
            marker(svg, x, y, index);
            if let Some(paper) = series.paper[place] {
                diamond(svg, x, frame.y(paper));
            }
        }
    }
    places(svg, panel);
    bounds(svg, panel, &frame);
    axis(svg);
}

/// Shares of samples over their values: the value axis lies below, the share axis to the left.
fn distribution(svg: &mut String, panel: &Panel) {
    let frame = scaffold(svg, panel, (0.0, 0.95), "share of receivers");
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
                diamond(svg, x_of(*value), frame.y(*p));
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

fn whisker(svg: &mut String, frame: &Frame, x: f64, interval: Option<(f64, f64)>) {
    if let Some((low, high)) = interval {
        let (low, high) = (frame.y(low), frame.y(high));
        let _ = writeln!(
            svg,
            "<path class=\"w\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6\"/>",
            x - 3.0,
            x - 3.0
        );
    }
}

fn diamond(svg: &mut String, x: f64, y: f64) {
    let _ = writeln!(
        svg,
        "<path class=\"p\" d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\"/>",
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
    use chappe_results::statistics::Summary;

    fn figure(kind: PanelKind) -> Figure {
        let series = Series {
            name: "A & B".into(),
            ours: vec![Summary::of(&[1.0, 2.0]), Summary::of(&[40.0])],
            paper: vec![Some(3.0), None],
            samples: vec![1.0, 2.0, 40.0],
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

    #[test]
    fn steps_are_round() {
        for (range, expected) in [(100.0, 20.0), (48.0, 10.0), (0.95, 0.2), (1383.0, 500.0)] {
            assert_eq!(step(range), expected, "{range}");
        }
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
