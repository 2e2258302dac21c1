//! `chappe doctor`: what this machine can run.

use chappe_figures::table::Table;
use serde::Serialize;

use crate::cli::Doctor;
use crate::doctor::{Finding, examine};
use crate::failure::Failure;
use crate::terminal::{self, Stream};

/// The document that `--json` prints: one finding for each check.
#[derive(Serialize)]
struct Report {
    /// The version of the program that looked.
    chappe: &'static str,
    findings: Vec<Finding>,
}

pub fn run(options: &Doctor) -> Result<u8, Failure> {
    let findings = examine();
    if options.json {
        let report = Report {
            chappe: env!("CARGO_PKG_VERSION"),
            findings,
        };
        let json = serde_json::to_string_pretty(&report).unwrap_or_default();
        terminal::print(&(json + "\n"))?;
        return Ok(0);
    }
    let mut table = Table::new().words("").words("what").words("found");
    for finding in &findings {
        let mark = if finding.ok { "yes" } else { "no" };
        table.row([
            mark.to_string(),
            finding.what.to_string(),
            finding.found.clone(),
        ]);
    }
    let mut text = table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let missing: Vec<&Finding> = findings.iter().filter(|finding| !finding.ok).collect();
    if missing.is_empty() {
        text += "\nThis machine has everything that chappe can use.\n";
    } else {
        text += "\n`chappe demo`, `sim`, `lab` and `compare` need none of this. For the other commands:\n";
        for finding in missing {
            text += &format!("  {}: {}\n", finding.what, finding.todo);
        }
    }
    terminal::print(&text)?;
    Ok(0)
}
