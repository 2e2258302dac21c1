//! `chappe lab`: the papers' figures, theirs beside ours.

use std::io::Write as _;
use std::path::Path;

use chappe_lab::figure::Figure;
use chappe_lab::input::InputError;
use chappe_lab::nearest::nearest;
use chappe_lab::pacifier::runs::Scale;
use chappe_lab::pacifier::{self, FIGURES, Made};
use chappe_lab::provenance::Provenance;
use chappe_lab::run::Meter;
use chappe_lab::store::write_whole;

use crate::cli::Lab;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

pub fn run(options: &Lab) -> Result<u8, Failure> {
    if options.names.is_empty() {
        terminal::print(&list())?;
        return Ok(0);
    }
    let names = wanted(&options.names)?;
    let scale = if options.quick {
        Scale::quick(options.seed)
    } else {
        Scale::full(options.seed)
    };
    let meter = Meter::stopped_by(terminal::interrupt());
    let threads = options.shared.threads();
    let made = terminal::watched("pacifier", options.shared.quiet, &meter, || {
        pacifier::make(&names, &scale, threads, &meter)
    })?;
    let document = json(&made, &scale) + "\n";
    if options.shared.json {
        terminal::print(&document)?;
    } else {
        let (width, colour) = (
            terminal::width(Stream::Output),
            terminal::colour_on(Stream::Output),
        );
        let texts: Vec<String> = made
            .figures
            .iter()
            .map(|figure| figure.text(width, colour))
            .collect();
        terminal::print(&(texts.join("\n") + &closing(&made, options)))?;
    }
    if let Some(folder) = &options.out {
        draw(folder, &made.figures)?;
        write_whole(&folder.join("pacifier.json"), |file| {
            file.write_all(document.as_bytes())
        })?;
        terminal::remark(
            options.shared.quiet,
            &format!("figures are in {}", folder.display()),
        );
    }
    if !made.unfinished.is_empty() {
        eprintln!(
            "interrupted: {} are missing runs and left out",
            made.unfinished.join(", ")
        );
        return Ok(INTERRUPTED);
    }
    let all_hold = made
        .figures
        .iter()
        .flat_map(|figure| &figure.claims)
        .all(|claim| claim.holds);
    Ok(if options.strict && !all_hold {
        FAILED
    } else {
        0
    })
}

/// The names of figures meant; none means all.
fn wanted(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let mut wanted = Vec::new();
    for name in names {
        if name == "pacifier" {
            continue;
        }
        match FIGURES.iter().find(|recipe| recipe.name == name) {
            Some(recipe) => wanted.push(recipe.name),
            None => {
                let known = FIGURES.iter().map(|recipe| recipe.name).chain(["pacifier"]);
                let help = match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`chappe lab` lists what there is".to_string(),
                };
                return Err(InputError::new("", format!("the lab has no `{name}`"))
                    .help(help)
                    .into());
            }
        }
    }
    Ok(wanted)
}

fn list() -> String {
    let mut text =
        "pacifier     reliable multicast over lossy meshes (Koutsonikolas, Hu, Wang)\n".to_string();
    for recipe in &FIGURES {
        text += &format!("  {}    {}\n", recipe.name, recipe.about);
    }
    text + "\nnext:  chappe lab pacifier --quick\n"
}

fn json(made: &Made, scale: &Scale) -> String {
    let from = Provenance::here(&terminal::command_line(), "");
    let figures: Vec<serde_json::Value> = made.figures.iter().map(Figure::json).collect();
    let whole = serde_json::json!({
        "chappe": from.version,
        "commit": from.commit,
        "dirty": from.dirty,
        "command": from.command,
        "machine": from.machine,
        "paper": "pacifier",
        "scenarios": scale.scenarios,
        "outdoor_bytes": scale.outdoor_bytes,
        "indoor_bytes": scale.indoor_bytes,
        "seed": scale.seed,
        "runs": made.runs,
        "unfinished": made.unfinished,
        "figures": figures,
    });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn closing(made: &Made, options: &Lab) -> String {
    let claims: Vec<bool> = made
        .figures
        .iter()
        .flat_map(|f| &f.claims)
        .map(|claim| claim.holds)
        .collect();
    let held = claims.iter().filter(|holds| **holds).count();
    let mut text = format!(
        "\n{held} of {} claims hold; {} runs; means over scenarios with 95 % intervals, gains paired by scenario\nreproduce: {}\n",
        claims.len(),
        made.runs,
        terminal::command_line()
    );
    if options.quick {
        text += "this was --quick: smaller objects than the paper's; without it the set-up is the paper's\n";
    }
    text
}

fn draw(folder: &Path, figures: &[Figure]) -> Result<(), Failure> {
    for figure in figures {
        for (extension, text) in [
            ("svg", chappe_lab::draw::draw(figure)),
            ("csv", figure.csv()),
        ] {
            let path = folder.join(format!("{}.{extension}", figure.id));
            write_whole(&path, |file| file.write_all(text.as_bytes()))?;
        }
    }
    Ok(())
}
