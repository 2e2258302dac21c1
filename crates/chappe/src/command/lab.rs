//! `chappe lab`: the papers' figures, published values beside ours.

use std::io::Write as _;
use std::path::Path;

use chappe::systems::papers;
use chappe_lab::paper::{FigureSet, Order, Paper};
use chappe_lab::run::Meter;
use chappe_results::figure::{Claim, Figure, NUMBER_TOLERANCE};
use chappe_results::provenance::Provenance;
use chappe_scenario::InputError;
use chappe_scenario::nearest::nearest;
use chappe_store::{try_folder, write_whole};

use crate::cli::Lab;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

pub fn run(options: &Lab) -> Result<u8, Failure> {
    if options.names.is_empty() {
        terminal::print(&list())?;
        return Ok(0);
    }
    let (paper, names) = wanted(&options.names)?;
    if let Some(folder) = &options.out {
        try_folder(folder)?;
    }
    let meter = Meter::stopped_by(terminal::interrupt());
    let order = Order {
        names: &names,
        quick: options.quick,
        seed: options.seed,
        threads: options.shared.threads(),
        meter: &meter,
    };
    let made = terminal::watched(paper.name, options.shared.quiet, &meter, || {
        (paper.make)(&order)
    })?;
    let document = json(paper, &made, options) + "\n";
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
            .map(|figure| chappe_figures::text(figure, width, colour))
            .collect();
        let drawn = made.drawings.iter().map(|drawing| &*drawing.text);
        let drawn: String = drawn.collect();
        terminal::print(&(texts.join("\n") + &drawn + &closing(paper, &made, options)))?;
    }
    if let Some(folder) = &options.out {
        draw(folder, paper, &made)?;
        write_whole(&folder.join(format!("{}.json", paper.name)), |file| {
            file.write_all(document.as_bytes())
        })?;
        terminal::remark(
            options.shared.quiet,
            &format!("figures are in {}", folder.display()),
        );
    }
    if !made.unfinished.is_empty() {
        terminal::tell(&format!(
            "interrupted: {} lack runs and are omitted",
            made.unfinished.join(", ")
        ));
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

/// The requested paper and figures; an empty list means all figures.
fn wanted(names: &[String]) -> Result<(&'static Paper, Vec<&'static str>), Failure> {
    let wrong = |message: String, help: String| InputError::new("", message).help(help).into();
    let paper_names = || papers().map(|paper| paper.name);
    let mut papers_named = papers().filter(|paper| names.iter().any(|name| name == paper.name));
    let named = match (papers_named.next(), papers_named.next()) {
        (Some(first), Some(second)) => {
            let message = format!("{} and {} are different papers", first.name, second.name);
            return Err(wrong(message, "regenerate one paper at a time".into()));
        }
        (named, _) => named,
    };
    let mut meant: Option<&Paper> = named;
    let mut wanted = Vec::new();
    for name in names
        .iter()
        .filter(|name| !paper_names().any(|paper| paper == *name))
    {
        let having: Vec<&Paper> = papers()
            .filter(|paper| paper.figure(name).is_some())
            .collect();
        let paper = match (meant, having.as_slice()) {
            (Some(meant), _) => meant,
            (None, [only]) => only,
            (None, []) => {
                let known = papers()
                    .flat_map(|paper| paper.figures)
                    .map(|item| item.name);
                let help = match nearest(name, known.chain(paper_names())) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`chappe lab` lists what there is".to_string(),
                };
                return Err(wrong(format!("the lab has no `{name}`"), help));
            }
            (None, several) => {
                let whose: Vec<&str> = several.iter().map(|paper| paper.name).collect();
                let message = format!("several papers have a `{name}`: {}", whose.join(", "));
                return Err(wrong(
                    message,
                    format!("for example chappe lab {} {name}", whose[0]),
                ));
            }
        };
        meant = Some(paper);
        match paper.figure(name) {
            Some(name) => wanted.push(name),
            None => {
                let known = paper.figures.iter().map(|item| item.name);
                let help = match nearest(name, known.chain([paper.name])) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`chappe lab` lists what there is".to_string(),
                };
                return Err(wrong(
                    format!("the lab has no `{name}` for {}", paper.name),
                    help,
                ));
            }
        }
    }
    // Some name was given, and every name led to a paper.
    let meant = meant.or_else(|| papers().next());
    let meant = meant.ok_or_else(|| Failure::Defect("there is no paper".into()))?;
    Ok((meant, wanted))
}

fn list() -> String {
    let mut text = String::new();
    for paper in papers() {
        text += &format!("{:<14}{}\n", paper.name, paper.about);
        for item in paper.figures {
            text += &format!("  {:<12}{}\n", item.name, item.about);
        }
    }
    let first = papers().next().map_or("", |paper| paper.name);
    text + &format!("\nnext:  chappe lab {first} --quick\n")
}

fn json(paper: &Paper, made: &FigureSet, options: &Lab) -> String {
    let command = terminal::command_line();
    let from = Provenance::here(terminal::program(&command), "");
    let figures: Vec<serde_json::Value> = made.figures.iter().map(chappe_figures::json).collect();
    let mut whole = serde_json::json!({
        "chappe": from.version,
        "commit": from.commit,
        "dirty": from.dirty,
        "command": from.command,
        "machine": from.machine,
        "paper": paper.name,
        "seed": options.seed,
        "runs": made.runs,
        "unfinished": made.unfinished,
        "figures": figures,
        "drawings": made.drawings.iter().map(|drawing| drawing.name).collect::<Vec<_>>(),
    });
    for &(name, number) in &made.scale {
        whole[name] = number.into();
    }
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn closing(paper: &Paper, made: &FigureSet, options: &Lab) -> String {
    if made.figures.is_empty() {
        return format!("\nreproduce: {}\n", terminal::command_line());
    }
    let mut text = format!(
        "\n{}; {} runs; means over networks with 95 % intervals; gains are paired by network\nreproduce: {}\n",
        score(&made.figures),
        made.runs,
        terminal::command_line()
    );
    if options.quick {
        text += &format!(
            "--quick: {}; without it the set-up is the paper's\n",
            paper.quick
        );
    }
    text
}

/// How many statements of the paper hold, how many of its numbers are reproduced, and how many goals of ours are met.
fn score(figures: &[Figure]) -> String {
    let claims = || figures.iter().flat_map(|figure| &figure.claims);
    let of = |is: &dyn Fn(&Claim) -> Option<bool>| {
        let judged = claims().filter_map(is);
        let (good, all) = judged.fold((0, 0), |(good, all), is| (good + usize::from(is), all + 1));
        format!("{good} of {all}")
    };
    format!(
        "{} of the paper's claims hold; {} of its numbers are reproduced within {:.0} % or our interval; {} of our goals are met",
        of(&|claim| (!claim.goal).then_some(claim.holds)),
        of(&|claim| claim.reproduces().filter(|_| !claim.goal)),
        100.0 * NUMBER_TOLERANCE,
        of(&|claim| claim.goal.then_some(claim.holds)),
    )
}

/// Writes each figure under its paper's name too: five papers have a figure 5.
fn draw(folder: &Path, paper: &Paper, made: &FigureSet) -> Result<(), Failure> {
    for drawing in &made.drawings {
        let path = folder.join(format!("{}-{}.svg", paper.name, drawing.name));
        write_whole(&path, |file| file.write_all(drawing.svg.as_bytes()))?;
    }
    for figure in &made.figures {
        for (extension, text) in [
            ("svg", chappe_figures::draw(figure)),
            ("csv", chappe_figures::csv(figure)),
        ] {
            let path = folder.join(format!("{}-{}.{extension}", paper.name, figure.id));
            write_whole(&path, |file| file.write_all(text.as_bytes()))?;
        }
    }
    Ok(())
}
