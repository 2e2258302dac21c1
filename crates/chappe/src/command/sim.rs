//! `chappe sim`: simulates a scenario.

use std::path::Path;

use chappe::packed;
use chappe::systems::{self, SYSTEMS};
use chappe_figures::table::{Table, count, digits, kbit, with_interval};
use chappe_lab::job::TraceKeeper;
use chappe_lab::run::Meter;
use chappe_lab::session::{self, Archive, Session};
use chappe_results::{DATA_TRANSMISSIONS, Delay, Document, Fairness, Flow, Range, Run};
use chappe_scenario::InputError;
use chappe_scenario::format::Source;
use chappe_scenario::plan::{Changes, Plan};
use chappe_scenario::sweep::Grid;
use chappe_store::try_folder;

use crate::cli::Sim;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::folder::{Folder, TraceFolder};
use crate::terminal::{self, Stream};

pub fn run(options: &Sim) -> Result<u8, Failure> {
    if options.schema {
        terminal::print(&packed::schema())?;
        return Ok(0);
    }
    let Some(file) = &options.file else {
        return Err(InputError::new("", "no scenario file is given").into());
    };
    let seeds = options
        .seed
        .map(|seed| vec![seed])
        .or(options.seeds.as_ref().map(|seeds| seeds.0.clone()));
    let changes = Changes {
        object: options.object.as_deref(),
        seeds,
        ..Changes::default()
    };
    let plan = Plan::read(&systems::scenarios(), file, &options.set, &changes)
        .map_err(|error| with_way_to_begin(error, file))?;
    if plan.has_sweep {
        // The table is not used here, but a mistake in it is one of the file's.
        Grid::read(&Source::read(file, &options.set)?, &[], &[])?;
    }
    let meter = Meter::stopped_by(terminal::interrupt());
    if let Some(out) = &options.out {
        try_folder(out)?;
    }
    let folder = options.out.clone().map(Folder);
    let traces = options.record.as_ref().map(|folder| TraceFolder {
        folder: folder.clone(),
        all: options.record_all,
    });
    if let Some(traces) = &traces {
        try_folder(&traces.folder)?;
    }
    let how = session::Options {
        threads: options.shared.threads(),
        archive: folder.as_ref().map(|folder| folder as &dyn Archive),
        pcap: options.pcap.as_deref(),
        traces: traces.as_ref().map(|traces| traces as &dyn TraceKeeper),
    };
    let command = terminal::command_line();
    let quiet = options.shared.quiet;
    let session = terminal::watched("simulating", quiet, &meter, || {
        session::run(SYSTEMS, &plan, terminal::program(&command), how, &meter)
    })?;
    if session.document.runs.is_empty() {
        return Err(Failure::Interrupted);
    }
    if options.shared.json {
        let json = serde_json::to_string_pretty(&session.document).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print(&text(&plan, &session))?;
    }
    if plan.has_sweep {
        let name = file.display();
        terminal::remark(
            options.shared.quiet,
            &format!(
                "note: the table [sweep] of {name} is not used here; `chappe sweep {name}` runs its grid"
            ),
        );
    }
    remarks(options, &session);
    if session.unfinished > 0 {
        return Ok(INTERRUPTED);
    }
    Ok(if session.document.all_complete() {
        0
    } else {
        FAILED
    })
}

/// The error about a scenario, which says how to make the file if there is none.
fn with_way_to_begin(error: InputError, file: &Path) -> InputError {
    // A scenario may name other files that are missing; `new` makes none of those.
    // A file that may not be looked at gives an error here, and is not known to be missing.
    if !matches!(file.try_exists(), Ok(false)) || file == Path::new("-") {
        return error;
    }
    let name = file.display();
    error.help(format!("`chappe new {name}` writes one to begin with"))
}

fn remarks(options: &Sim, session: &Session) {
    let quiet = options.shared.quiet;
    for note in &session.notes {
        terminal::remark(quiet, &format!("note: {note}"));
    }
    if session.reused > 0 {
        terminal::remark(
            quiet,
            &format!(
                "{} runs were found in the folder and not repeated",
                session.reused
            ),
        );
    }
    if session.unfinished > 0 {
        let done = session.document.runs.len();
        let kept = if options.out.is_some() {
            "kept; run the same command again to continue"
        } else {
            "shown above"
        };
        // Printed even with --quiet: a partial result must not be taken for a complete one.
        terminal::tell(&format!(
            "interrupted: {done} of {} runs are finished and {kept}",
            done + session.unfinished
        ));
    }
    if let Some(out) = &options.out {
        terminal::remark(
            quiet,
            &format!("results and copies are in {}", out.display()),
        );
    }
    if let Some(folder) = &options.record {
        let shown = folder.display();
        terminal::remark(
            quiet,
            &format!("events are in {shown}; to see them: chappe view {shown}"),
        );
    }
    if let Some(pcap) = &options.pcap {
        terminal::remark(
            quiet,
            &format!("frames are in {}; Wireshark opens it", pcap.display()),
        );
    }
}

fn text(plan: &Plan, session: &Session) -> String {
    let document = &session.document;
    let mut text = format!("{}\n", document.scenario);
    let nodes = plan.topology.nodes();
    text += &format!(
        "{}, {nodes} nodes, {}\n\n",
        plan.settings.label(),
        match document.runs.as_slice() {
            [run] => format!("seed {}", run.seed),
            runs => format!("{} seeds", runs.len()),
        }
    );
    let objects = plan.transfers.len();
    let tables = match document.runs.as_slice() {
        [run] => [
            (objects > 0).then(|| receivers(plan, run, objects)),
            (!plan.flows.is_empty()).then(|| flows(plan, run, objects)),
        ],
        runs => [Some(seeds(runs)), None],
    };
    for table in tables.into_iter().flatten() {
        text += &table.render(
            terminal::width(Stream::Output),
            terminal::colour_on(Stream::Output),
        );
        text += "\n";
    }
    if objects > 0 {
        text += &summary(document);
        text += &ending(plan, document);
    }
    text += &shares(document);
    text += &format!("reproduce: {}\n", document.command);
    text
}

/// One seed: a row for each receiver of the first `objects` transfers.
fn receivers(plan: &Plan, run: &Run, objects: usize) -> Table {
    let mut table = Table::new()
        .words("from")
        .words("to")
        .numbers("received", 0)
        .numbers("after", 1)
        .numbers("kbit/s", 0)
        .words("digest");
    for flow in run.flows.iter().filter(|flow| flow.transfer < objects) {
        let share = 100.0 * flow.delivered_bytes as f64 / flow.offered_bytes.max(1) as f64;
        table.row([
            plan.name_of(flow.source),
            plan.name_of(flow.sink),
            if flow.complete {
                "all".into()
            } else {
                format!("{share:.0} %")
            },
            flow.completion_s
                .map_or_else(|| "unfinished".into(), |s| format!("{} s", digits(s))),
            if flow.complete {
                kbit(flow.goodput_bps)
            } else {
                "-".into()
            },
            digest(flow).into(),
        ]);
    }
    table
}

/// One seed: a row for each continuous flow; these come after `objects` transfers.
fn flows(plan: &Plan, run: &Run, objects: usize) -> Table {
    let mut table = Table::new()
        .words("flow")
        .words("from")
        .words("to")
        .numbers("kbit/s", 0)
        .numbers("fair rate", 2)
        .numbers("PDR", 1)
        .numbers("delay", 0)
        .numbers("p95 delay", 1);
    let fair = run.fairness.as_ref();
    for (place, flow) in run.flows.iter().enumerate() {
        if flow.transfer < objects {
            continue;
        }
        let share = 100.0 * flow.delivered_bytes as f64 / flow.offered_bytes.max(1) as f64;
        let seconds = |value: fn(&Delay) -> f64| {
            let delay = flow.delay_s.as_ref();
            delay.map_or_else(|| "-".into(), |delay| format!("{} s", digits(value(delay))))
        };
        table.row([
            flow.name.clone(),
            plan.name_of(flow.source),
            plan.name_of(flow.sink),
            kbit(flow.goodput_bps),
            fair.and_then(|fair| *fair.sum_log_bps.get(place)?)
                .map_or_else(String::new, kbit),
            format!("{share:.0} %"),
            seconds(|delay| delay.mean),
            seconds(|delay| delay.p95),
        ]);
    }
    table
}

/// How the flows share the channel, beside the optimal shares.
fn shares(document: &Document) -> String {
    let all: Vec<&Fairness> = document
        .runs
        .iter()
        .filter_map(|run| run.fairness.as_ref())
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let over = |value: fn(&Fairness) -> f64| {
        let range = Range::of(all.iter().map(|fair| value(fair)));
        with_interval(range.mean, range.ci95)
    };
    format!(
        "together {} kbit/s, Jain's index {}\nslowest: {} % of {} kbit/s, the most that all can have at once\ngeometric mean: {} % of {} kbit/s, that of the proportionally fair rates (`fair rate`)\n",
        over(|fair| fair.total_bps / 1e3),
        over(|fair| fair.jain),
        over(|fair| 100.0 * fair.max_min_fraction),
        over(|fair| fair.max_min_bps / 1e3),
        over(|fair| 100.0 * fair.sum_log_fraction),
        over(|fair| fair.sum_log_mean_bps / 1e3),
    )
}

fn digest(flow: &Flow) -> &'static str {
    match (flow.complete, flow.digest_ok) {
        (true, true) => "right",
        (true, false) => "WRONG",
        (false, _) => "-",
    }
}

/// Several seeds: a row for each of them.
fn seeds(runs: &[Run]) -> Table {
    let mut table = Table::new()
        .numbers("seed", 0)
        .numbers("mean kbit/s", 0)
        .numbers("slowest", 0)
        .numbers("slowest, of bound", 1)
        .numbers("data frames", 1)
        .numbers("complete", 0)
        .numbers("air", 2)
        .words("");
    for run in runs {
        let complete = run
            .flows
            .iter()
            .filter(|flow| flow.complete && flow.digest_ok)
            .count();
        table.row([
            run.seed.to_string(),
            kbit(run.mean_goodput()),
            kbit(run.worst_goodput()),
            run.bound.as_ref().map_or_else(String::new, |bound| {
                format!("{:.0} %", 100.0 * bound.fraction)
            }),
            count(run.counter(DATA_TRANSMISSIONS) as f64),
            format!("{complete}/{}", run.flows.len()),
            format!("{} s", digits(run.simulated_s)),
            if run.all_complete() {
                ""
            } else {
                "not all finished"
            }
            .into(),
        ]);
    }
    table
}

fn summary(document: &Document) -> String {
    let totals = &document.summary;
    let rate = |range: &Range| with_interval(range.mean / 1e3, range.ci95.map(|half| half / 1e3));
    let n = totals.goodput_bps.n;
    let interval = if n > 1 {
        format!(" (n={n} seeds, 95 % intervals)")
    } else {
        String::new()
    };
    let mut text = format!(
        "{} of {} receivers have the whole object with the right digest\nmean {} kbit/s, slowest receiver {} kbit/s, {} data frames{interval}\n",
        totals.complete,
        totals.receivers,
        rate(&totals.goodput_bps),
        rate(&totals.worst_goodput_bps),
        frames(&totals.data_transmissions),
    );
    let bounds: Vec<_> = document.runs.iter().flat_map(|run| &run.bounds).collect();
    if let Some(first) = bounds.first() {
        let best = Range::of(bounds.iter().map(|bound| bound.goodput_bps));
        let share = Range::of(bounds.iter().map(|bound| 100.0 * bound.fraction));
        text += &format!(
            "bound {} kbit/s for the slowest receiver ({}): {} % of it reached\n",
            rate(&best),
            first.name,
            with_interval(share.mean, share.ci95),
        );
    }
    text
}

/// Why runs ended before everything had arrived.
fn ending(plan: &Plan, document: &Document) -> String {
    let runs = document.runs.iter().filter(|run| !run.all_complete());
    let times: Vec<f64> = runs.map(|run| run.simulated_s).collect();
    let Some(longest) = times.iter().copied().reduce(f64::max) else {
        return String::new();
    };
    let after = match times.len() {
        1 => format!("the unfinished run ended after {} s", digits(longest)),
        many => format!(
            "{many} unfinished runs ended after at most {} s",
            digits(longest)
        ),
    };
    match plan.limit.map(|limit| limit.as_secs_f64()) {
        Some(limit) if longest >= limit => format!("{after}: that is `run.limit`\n"),
        Some(_) => format!("{after}, before `run.limit`: no node that was up waited for more\n"),
        None => format!(
            "{after}: nothing was left to do, nothing had arrived for minutes, or 300 times the least possible time was over; `run.limit` sets another end\n"
        ),
    }
}

/// A number of frames, with its interval if there is one.
fn frames(range: &Range) -> String {
    match range.ci95 {
        Some(half) => format!("{} ± {}", count(range.mean), count(half)),
        None => count(range.mean),
    }
}
