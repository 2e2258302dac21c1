//! `chappe sweep`: a scenario with several values of its keys, every combination over the same seeds.

mod report;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use chappe::sweep::{Missing, Sweep, cells};
use chappe_lab::run::Meter;
use chappe_scenario::format::Source;
use chappe_scenario::plan::Changes;
use chappe_scenario::sweep::Grid;

use crate::cli::Sweep as Options;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::terminal;

pub fn run(options: &Options) -> Result<u8, Failure> {
    let source = Source::read(&options.file, &options.set)?;
    let changes = Changes {
        object: options.object.as_deref(),
        seeds: options.seeds.as_ref().map(|seeds| seeds.0.clone()),
        ..Changes::default()
    };
    let grid = Grid::read(&source, &options.grid, &options.reference)?;
    let cells = cells(&grid, &source, &changes)?;
    let notes: BTreeSet<&String> = cells.iter().flat_map(|cell| &cell.plan.notes).collect();
    for note in notes {
        terminal::remark(options.shared.quiet, &format!("note: {note}"));
    }
    output::try_png(options.png)?;
    let command = terminal::command_line();
    let file = terminal::own_file()?;
    let sweep = Sweep::open(
        (grid, cells),
        (terminal::program(&command), &file),
        out_of(options),
        options.shard.map(|shard| (shard.index, shard.count)),
    )?;
    carry_out(sweep, options)
}

/// The folder that was given, or one named after the file.
fn out_of(options: &Options) -> PathBuf {
    let stem = || match options.file.file_stem().unwrap_or_default() {
        // Standard input has no name.
        name if name == "-" => "scenario".into(),
        name => name.to_string_lossy(),
    };
    options
        .out
        .clone()
        .unwrap_or_else(|| format!("{}-sweep", stem()).into())
}

/// Makes what is missing, and gives the table if nothing is then.
fn carry_out(mut sweep: Sweep, options: &Options) -> Result<u8, Failure> {
    let quiet = options.shared.quiet;
    let out = sweep.out().to_path_buf();
    let Missing { tasks, known, all } = sweep.missing();
    if known > 0 {
        let found = format!("{known} of {all} runs are in {} already", out.display());
        terminal::remark(quiet, &found);
    }
    let asked = tasks.len();
    let meter = Arc::new(Meter::stopped_by(terminal::interrupt()));
    let threads = options.shared.threads();
    let done = terminal::watched("sweeping", quiet, &meter, || {
        sweep.make(tasks, options.copies, threads, &meter)
    });
    // What was finished is kept even if a run failed.
    sweep.pack()?;
    let made = done?;
    if made < asked {
        // Printed even with --quiet: a partial result must not be taken for a complete one.
        terminal::tell(&format!(
            "interrupted: {} of {all} runs are in {}; run the same command again to continue",
            known + made,
            out.display()
        ));
        return Ok(INTERRUPTED);
    }
    let (cells, lacking) = sweep.results();
    if lacking > 0 {
        let part = options.shard.map(|part| (part.index, part.count));
        let (index, count) = part.unwrap_or((1, 1));
        terminal::remark(
            quiet,
            &format!(
                "part {index} of {count}: {made} runs made; {lacking} of {all} are still to come. The table comes with the last part, or from the same command without --shard"
            ),
        );
        return Ok(0);
    }
    report::give(options, &sweep, &cells)?;
    Ok(0)
}
