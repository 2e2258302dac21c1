//! A drawing of the pipeline, cycle by cycle, from the trace of a simulated transfer: which node sends or listens on which
//! channel.

use std::fmt::Write as _;

use chappe_lab::paper::Drawing;
use chappe_lab::run::RunError;
use chappe_lab_p3::ends::ends_for;
use chappe_lab_p3::trace::{Action, Event, Trace, record};
use chappe_lab_p3::{P3, Variant};
use chappe_p3::header::Kind;
use chappe_p3::{Plan as Route, config};

use crate::campaign::{Receiver, Scale, Site, plan};

/// The name of the drawing on the command line, and of its file.
pub const NAME: &str = "pipeline";
/// Packets of the transfer: enough to fill the pipeline and to lose some.
const PACKETS: usize = 10;
/// The shape of the route, that of the paper's Figure 3: two relays in each group.
const HOPS: u8 = 4;
const PATHS: usize = 4;
/// Networks that are tried for such a route.
const NETWORKS: u64 = 400;
/// The longest transfer that fits a page.
const CYCLES_MAX: u64 = 52;
/// Per cent of bad links: enough to lose some packets.
const BAD_LINKS: u8 = 30;

/// Draws a transfer of a few packets over the first route with four hops and four paths.
pub fn draw(scale: &Scale) -> Result<Drawing, RunError> {
    let site = Site {
        measured: false,
        bad_links: BAD_LINKS,
        receiver: Receiver::Comparing,
    };
    let plan = plan(site, scale)?;
    let with = P3 {
        paths: PATHS,
        ..P3::paper(Variant::Paper)
    };
    for seed in (0..NETWORKS).map(|n| scale.seed.wrapping_add(n)) {
        let fits = |found: &chappe_lab_p3::Route| found.plan.hops() == HOPS && found.paths == PATHS;
        let Some((mut prepared, _)) = ends_for(&plan, seed, &with, 1, &fits)? else {
            continue;
        };
        let octets = PACKETS * usize::from(with.payload);
        let transfer = &mut prepared.network.transfers[0];
        transfer.object = transfer.object[..octets].into();
        let (trace, path) = record(&plan, &prepared, &with)?;
        // Only a transfer with a retransmission shows how the pipeline repairs a loss.
        let data = trace
            .events
            .iter()
            .filter(|event| event.action == Action::Sent && event.kind == Kind::Data);
        let by_source = data
            .filter(|event| event.node == usize::from(path.source()))
            .count();
        let last = trace
            .events
            .iter()
            .map(|event| event.end)
            .max()
            .unwrap_or(0);
        let cycles = last.saturating_sub(origin(&trace)) / path.cycle().nanos();
        if by_source > PACKETS && cycles < CYCLES_MAX {
            return Ok(Drawing {
                name: NAME,
                text: text(&trace, &path),
                svg: svg(&trace, &path, seed),
            });
        }
    }
    let message = format!("no route of {HOPS} hops with {PATHS} paths in {NETWORKS} networks");
    Err(RunError::Defect(message))
}

/// The rows of the drawing: each node with its label.
fn rows(path: &Route) -> Vec<(usize, String)> {
    let mut rows = vec![(usize::from(path.source()), "source".to_string())];
    for stage in 1..path.hops() {
        for group in 0..path.groups() {
            let here = |part: &&chappe_p3::Place| part.stage == stage && part.group == group;
            for part in path.relays().iter().filter(here) {
                let name = if group == 0 { "even" } else { "odd" };
                rows.push((part.node.into(), format!("stage {stage}, {name}")));
            }
        }
    }
    rows.push((path.destination().into(), "destination".into()));
    rows
}

/// When the first DATA frame starts, in nanoseconds.
fn origin(trace: &Trace) -> u64 {
    let data = trace.events.iter().filter(|event| event.kind == Kind::Data);
    data.map(|event| event.start).min().unwrap_or(0)
}

/// The first cycles as a table: packet and channel of each node in each cycle.
fn text(trace: &Trace, path: &Route) -> String {
    const CYCLES: u64 = 8;
    let (origin, cycle) = (origin(trace), path.cycle().nanos());
    let mut text =
        String::from("the first cycles: > sends, < receives, x loses; packet number @ channel\n\n");
    let _ = write!(text, "{:<18}", "cycle");
    for at in 0..CYCLES {
        let _ = write!(text, "{at:>8}");
    }
    for (node, name) in rows(path) {
        let _ = write!(text, "\n{name:<18}");
        for at in 0..CYCLES {
            // A frame can start a little before its cycle does, so its middle decides.
            let here = |event: &&Event| {
                let middle = event.start + (event.end - event.start) / 2;
                event.node == node && middle >= origin && (middle - origin) / cycle == at
            };
            let sign = |action| match action {
                Action::Sent => Some('>'),
                Action::Received => Some('<'),
                Action::Lost => Some('x'),
                Action::GaveUp => None,
            };
            let event = trace
                .events
                .iter()
                .filter(here)
                .find(|event| sign(event.action).is_some());
            let cell = event.map_or_else(String::new, |event| {
                let sign = sign(event.action).unwrap_or(' ');
                format!("{sign}{}@{}", event.number, event.channel)
            });
            let _ = write!(text, "{cell:>8}");
        }
    }
    text + "\n"
}

/// Sizes of the drawing.
const LEFT: f64 = 118.0;
const TOP: f64 = 74.0;
const ROW: f64 = 20.0;
const CYCLE: f64 = 26.0;

/// The colour of a channel, from the colour-blind-safe palette of the other figures.
const fn colour(channel: u8) -> &'static str {
    match channel {
        15 => "#0072b2",
        20 => "#e69f00",
        25 => "#009e73",
        _ => "#cc79a7",
    }
}

fn svg(trace: &Trace, path: &Route, seed: u64) -> String {
    let rows = rows(path);
    let (origin, cycle) = (origin(trace), path.cycle().nanos() as f64);
    let last = trace
        .events
        .iter()
        .map(|event| event.end)
        .max()
        .unwrap_or(origin);
    let cycles = ((last - origin) as f64 / cycle).ceil();
    let (width, height) = (
        LEFT + cycles * CYCLE + 16.0,
        TOP + rows.len() as f64 * ROW + 46.0,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>P³'s pipeline, cycle by cycle</title>\n\
         <style>text{{font:11px system-ui,sans-serif;fill:#222}}.t{{font-weight:600;font-size:14px}}.m{{fill:#555}}.n{{text-anchor:middle;font-size:10px}}\
         .w{{fill:#fff}}.g{{stroke:#e4e4e4}}.s{{stroke:#bbb}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text class=\"t\" x=\"12\" y=\"22\">P³'s pipeline, cycle by cycle: {PACKETS} packets over {HOPS} hops</text>\n"
    );
    legend(&mut svg);
    for at in 0..=cycles as u64 {
        let x = LEFT + at as f64 * CYCLE;
        let _ = writeln!(
            svg,
            "<path class=\"g\" d=\"M{x} {TOP}V{:.0}\"/>",
            TOP + rows.len() as f64 * ROW
        );
        if at < cycles as u64 {
            let _ = writeln!(
                svg,
                "<text class=\"n m\" x=\"{:.1}\" y=\"{:.0}\">{at}</text>",
                x + CYCLE / 2.0,
                TOP - 6.0
            );
        }
    }
    for (place, (_, name)) in rows.iter().enumerate() {
        let y = TOP + place as f64 * ROW;
        let _ = writeln!(svg, "<path class=\"s\" d=\"M12 {y}H{:.0}\"/>", width - 16.0);
        let _ = writeln!(svg, "<text x=\"12\" y=\"{:.1}\">{name}</text>", y + 14.0);
    }
    for event in &trace.events {
        if let Some(place) = rows.iter().position(|(node, _)| *node == event.node) {
            let x = |at: u64| LEFT + (at as f64 - origin as f64) / cycle * CYCLE;
            mark(
                &mut svg,
                event,
                (x(event.start), x(event.end)),
                TOP + place as f64 * ROW,
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text class=\"m\" x=\"12\" y=\"{:.0}\">Trace of the simulator, seed {seed}; a cycle is {:.3} ms. C: end of a round (CTRL). N: the missing packets (NACK).</text>\n</svg>",
        height - 14.0,
        cycle / 1e6
    );
    svg
}

fn legend(svg: &mut String) {
    let mut x = 12.0;
    for channel in config::CHANNELS {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"34\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"45\">channel {}</text>",
            colour(channel.0),
            x + 19.0,
            channel.0
        );
        x += 88.0;
    }
    for (words, fill, stroke, cross) in [
        ("sends", "#555", "none", false),
        ("receives", "#fff", "#555", false),
        ("loses", "#fff", "#555", true),
    ] {
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"34\" width=\"14\" height=\"14\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        );
        if cross {
            let _ = write!(
                svg,
                "<path d=\"M{x} 34l14 14m0 -14l-14 14\" stroke=\"#555\"/>"
            );
        }
        let _ = writeln!(svg, "<text x=\"{}\" y=\"45\">{words}</text>", x + 19.0);
        x += 70.0;
    }
}

/// A frame at a node: a box over its time on the air.
fn mark(svg: &mut String, event: &Event, (from, to): (f64, f64), y: f64) {
    let (width, top, height) = ((to - from).max(2.0), y + 3.0, ROW - 6.0);
    let colour = colour(event.channel);
    let label = match event.kind {
        Kind::Ctrl => "C".to_string(),
        Kind::Nack => "N".to_string(),
        _ => event.number.to_string(),
    };
    let (fill, words, dash) = match event.action {
        Action::Sent => (colour, "n w", ""),
        Action::Received | Action::Lost => ("#fff", "n", ""),
        // The header alone was received.
        Action::GaveUp => {
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{top}\" width=\"3\" height=\"{height}\" fill=\"{colour}\" opacity=\"0.5\"/>"
            );
            return;
        }
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\" stroke=\"{colour}\"{dash}/>\
         <text class=\"{words}\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
        from + width / 2.0,
        y + 13.5
    );
    if event.action == Action::Lost {
        let _ = writeln!(
            svg,
            "<path d=\"M{from:.1} {top}l{width:.1} {height}m0 -{height}l-{width:.1} {height}\" stroke=\"{colour}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the drawing shows a pipeline. Method: in the trace behind it the source sends a packet in each cycle, to the
    /// two groups in turn, and no relay hears a packet of the other group's.
    #[test]
    fn the_drawing_shows_a_pipeline() {
        let scale = Scale {
            data: None,
            ..Scale::quick(1)
        };
        let drawing = draw(&scale).unwrap();
        assert!(drawing.svg.starts_with("<svg") && drawing.svg.ends_with("</svg>\n"));
        assert!(drawing.svg.contains("stage 3, odd") && drawing.svg.contains(">C</text>"));
        for line in drawing
            .text
            .lines()
            .filter(|line| line.starts_with("stage"))
        {
            let odd = line.contains("odd");
            for cell in line
                .split_whitespace()
                .filter(|cell| cell.starts_with(['<', '>']))
            {
                let number: u16 = cell[1..].split('@').next().unwrap().parse().unwrap();
                assert_eq!(number % 2 == 1, odd, "{line}");
            }
        }
        let source = drawing
            .text
            .lines()
            .find(|line| line.starts_with("source"))
            .unwrap();
        assert_eq!(source.matches('>').count(), 8, "{source}");
    }
}
