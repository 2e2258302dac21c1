//! The text output of `chappe emu cast`.

use chappe_figures::table::{Table, with_interval};
use chappe_results::Range;

use super::{Document, Receiver};
use crate::terminal::{self, Stream};

pub fn text(document: &Document) -> String {
    let render = |table: Table| {
        table.render(
            terminal::width(Stream::Output),
            terminal::colour_on(Stream::Output),
        )
    };
    let mut text = format!(
        "{}: {:.0} kB, {} seeds, each process sends at most {:.2} Mbit/s, MTU {}\n\n{}\n",
        document.scenario,
        document.bytes as f64 / 1e3,
        document.seeds.len(),
        document.rate_bps as f64 / 1e6,
        document.mtu,
        render(receivers(document))
    );
    if document.causes.len() > 2 {
        text += &format!(
            "adding one task after the other:\n\n{}\n",
            render(causes(document))
        );
    }
    text += &format!(
        "95 % intervals of the mean over the seeds. Emulated goodput within {:.0} % of the simulator: {}.\n",
        document.tolerance * 100.0,
        if document.holds { "yes" } else { "NO" }
    );
    if let Some(bound) = document.bound_bps {
        text += &format!(
            "bound for the slowest receiver (multicast LP, carrier sense): {:.0} kbit/s\n",
            bound / 1e3
        );
    }
    let late = document.runs.iter().map(|run| run.late_p99_s);
    text += &format!(
        "the emulator was late by at most {:.2} ms in 99 % of its turns (limit 1 ms)\n",
        late.fold(0.0, f64::max) * 1e3
    );
    text
}

fn receivers(document: &Document) -> Table {
    let mut table = Table::new()
        .words("to")
        .numbers("simulator kbit/s", 0)
        .numbers("processes, emulated", 0)
        .numbers("difference", 0);
    let row = |name: String, receiver: &Receiver| {
        [
            name,
            kbit(&receiver.simulated_bps),
            kbit(&receiver.emulated_bps),
            format!("{:+.1} %", receiver.difference * 100.0),
        ]
    };
    for receiver in &document.receivers {
        let name = receiver
            .node
            .map_or_else(String::new, |node| format!("n{node}"));
        table.row(row(name, receiver));
    }
    table.bold_row(row("mean".into(), &document.mean));
    table
}

fn causes(document: &Document) -> Table {
    let mut table = Table::new()
        .words("")
        .numbers("slowest kbit/s", 0)
        .numbers("mean", 0)
        .numbers("this alone", 0);
    let mut before: Option<f64> = None;
    for cause in &document.causes {
        let change = before.map_or_else(String::new, |before| {
            format!("{:+.1} %", (cause.mean_bps.mean / before - 1.0) * 100.0)
        });
        before = Some(cause.mean_bps.mean.max(1.0));
        table.row([
            cause.step.to_string(),
            kbit(&cause.slowest_bps),
            kbit(&cause.mean_bps),
            change,
        ]);
    }
    table
}

fn kbit(range: &Range) -> String {
    with_interval(range.mean / 1e3, range.ci95.map(|half| half / 1e3))
}
