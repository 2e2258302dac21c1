//! `chappe lab`: the papers' figures, published values beside ours, and the claims that they support.

mod claims;
mod done;
mod kept;
mod record;
mod runs;
mod work;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use chappe::systems::papers;
use chappe_lab::paper::{FigureSet, Paper};
use chappe_results::figure::{Claim, Figure, NUMBER_TOLERANCE};
use chappe_results::provenance::{Provenance, machine};
use chappe_scenario::InputError;
use chappe_scenario::nearest::nearest;
use chappe_store::{try_folder, write_whole};

use crate::cli::Lab;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::output::{self, Format};
use crate::terminal::{self, Stream};
use claims::Page;
use done::{Done, Work};
use kept::Kept;
use record::{Record, Records};
use work::Shop;

pub fn run(options: &Lab) -> Result<u8, Failure> {
    if options.list {
        terminal::print(&list())?;
        return Ok(0);
    }
    let whole = options.names.is_empty();
    let works = wanted(&options.names)?;
    let records = Records::built_in()?;
    let record = checked(records.of(options.quick), options)?;
    let out = out_of(options, whole);
    if let Some(folder) = &out {
        try_folder(folder)?;
        output::try_png(options.png)?;
    }
    let command = terminal::command_line();
    let kept = out.clone().map(|folder| {
        Kept::new(
            folder,
            terminal::program(&command),
            options.quick,
            options.seed,
        )
    });
    let empty = Record::default();
    let shop = Shop {
        options,
        kept: kept.transpose()?,
        stop: terminal::interrupt(),
        record: record.unwrap_or(&empty),
    };
    let all = shop.make(works)?;
    give(options, &all, whole, out.as_deref())?;
    if let Some(path) = &options.record {
        record::write(path, (options.quick, options.seed, &machine()), &all)?;
    }
    verdict(options, &all, record)
}

/// The record, which `--check` needs for the same size and seed.
fn checked<'r>(record: Option<&'r Record>, options: &Lab) -> Result<Option<&'r Record>, Failure> {
    let refuse =
        |message: String, help: String| Err(InputError::new("", message).help(help).into());
    match record {
        _ if !options.check => Ok(record),
        None => {
            let other = if options.quick {
                "without --quick"
            } else {
                "with --quick"
            };
            refuse(
                "there is no record of this size to check against".into(),
                format!("run it {other}"),
            )
        }
        Some(record) if record.seed != options.seed => refuse(
            "the record has another first seed".into(),
            format!("use --seed {}", record.seed),
        ),
        Some(record) => Ok(Some(record)),
    }
}

/// The folder that was given; for all papers there is always one, so that a long run can be continued.
fn out_of(options: &Lab, whole: bool) -> Option<PathBuf> {
    let usual = if options.quick {
        "chappe-lab-quick"
    } else {
        "chappe-lab"
    };
    options.out.clone().or_else(|| whole.then(|| usual.into()))
}

/// Prints and writes what was made.
fn give(options: &Lab, all: &[Done], whole: bool, out: Option<&Path>) -> Result<(), Failure> {
    let documents: Vec<serde_json::Value> = all
        .iter()
        .map(|done| json(done.paper, &done.made, options))
        .collect();
    let page = Page::new(all);
    if options.shared.json {
        let document = match documents.as_slice() {
            [one] if !whole => one.clone(),
            several => {
                serde_json::json!({ "papers": several, "not_reproduced": page.not_reproduced() })
            }
        };
        terminal::print(&(serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"))?;
    } else if whole {
        terminal::print(&summary(&page, all))?;
    } else {
        for done in all {
            terminal::print(&figures(&done.made))?;
            terminal::print(&closing(done.paper, &done.made, options))?;
        }
    }
    let Some(folder) = out else {
        return Ok(());
    };
    for (done, document) in all.iter().zip(&documents) {
        draw(folder, done.paper, &done.made, options.png)?;
        let document = serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
        write_whole(&folder.join(format!("{}.json", done.paper.name)), |file| {
            file.write_all(document.as_bytes())
        })?;
    }
    let head = format!(
        "Made by `{}` from commit {} on {}.",
        terminal::command_line(),
        terminal::program("").commit,
        machine()
    );
    let markdown = page.markdown(&head);
    write_whole(&folder.join("claims.md"), |file| {
        file.write_all(markdown.as_bytes())
    })?;
    let shown = folder.display();
    terminal::remark(
        options.shared.quiet,
        &format!("figures are in {shown}, all claims in {shown}/claims.md"),
    );
    Ok(())
}

/// The exit code, and what speaks against 0.
fn verdict(options: &Lab, all: &[Done], record: Option<&Record>) -> Result<u8, Failure> {
    if let Some(record) = record.filter(|_| options.check) {
        let lost = record.lost(all);
        for claim in &lost {
            terminal::tell(&format!(
                "held at the last release and does not hold now: {claim}"
            ));
        }
        if !lost.is_empty() {
            return Ok(FAILED);
        }
    }
    let name = |done: &Done, names: &[&'static str]| {
        names
            .iter()
            .map(|name| format!("{} {name}", done.paper.name))
            .collect::<Vec<_>>()
    };
    let unfinished: Vec<String> = all
        .iter()
        .flat_map(|done| name(done, &done.made.unfinished))
        .collect();
    let others: Vec<String> = all
        .iter()
        .flat_map(|done| name(done, &done.others))
        .collect();
    if !unfinished.is_empty() {
        let again = if options.out.is_some() || options.names.is_empty() {
            "; run the same command again to continue"
        } else {
            ""
        };
        terminal::tell(&format!(
            "interrupted: {} lack runs and are omitted{again}",
            unfinished.join(", ")
        ));
        return Ok(INTERRUPTED);
    }
    if !others.is_empty() {
        terminal::remark(
            options.shared.quiet,
            &format!(
                "{} figures are for other parts; the same command without --shard joins them",
                others.len()
            ),
        );
        return Ok(0);
    }
    let mut claims = all
        .iter()
        .flat_map(|done| &done.made.figures)
        .flat_map(|figure| &figure.claims);
    Ok(if options.strict && !claims.all(|claim| claim.holds) {
        FAILED
    } else {
        0
    })
}

/// All papers at once: what is reproduced, and what is not.
fn summary(page: &Page<'_>, all: &[Done]) -> String {
    let (width, colour) = (
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let figures: usize = all.iter().map(|done| done.made.figures.len()).sum();
    let mut text = format!(
        "{figures} figures and tables of {} papers\n\n{}",
        all.len(),
        page.counts().render(width, colour)
    );
    text += &format!(
        "\nReproduced: the statement holds, and ours is within {:.0} % of the paper's number or that lies in our interval.\n",
        100.0 * NUMBER_TOLERANCE
    );
    let lines = page.not_reproduced();
    if !lines.is_empty() {
        text += "\nNot reproduced:\n";
    }
    for line in lines {
        let wrapped = chappe::message::wrap(&line, width.saturating_sub(4).max(40));
        text += &format!("  {}\n", wrapped.join("\n      "));
    }
    text + &format!("reproduce: {}\n", terminal::command_line())
}

/// The figures and drawings of one paper as text.
fn figures(made: &FigureSet) -> String {
    let (width, colour) = (
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let texts: Vec<String> = made
        .figures
        .iter()
        .map(|figure| chappe_figures::text(figure, width, colour))
        .collect();
    let drawn: String = made.drawings.iter().map(|drawing| &*drawing.text).collect();
    texts.join("\n") + &drawn
}

/// The papers and figures that these names mean; no names mean all of them.
fn wanted(names: &[String]) -> Result<Vec<Work>, Failure> {
    let every = |paper: &'static Paper| Work {
        paper,
        names: paper.figures.iter().map(|item| item.name).collect(),
    };
    if names.is_empty() {
        return Ok(papers().map(every).collect());
    }
    let known = |name: &String| papers().any(|paper| paper.name == name);
    if names.iter().all(known) {
        return Ok(papers()
            .filter(|paper| names.iter().any(|name| name == paper.name))
            .map(every)
            .collect());
    }
    let (paper, chosen) = one_paper(names)?;
    Ok(vec![Work {
        paper,
        names: chosen,
    }])
}

/// One paper and some of its figures.
fn one_paper(names: &[String]) -> Result<(&'static Paper, Vec<&'static str>), Failure> {
    let wrong = |message: String, help: String| InputError::new("", message).help(help).into();
    let paper_names = || papers().map(|paper| paper.name);
    let mut papers_named = papers().filter(|paper| names.iter().any(|name| name == paper.name));
    let named = match (papers_named.next(), papers_named.next()) {
        (Some(first), Some(second)) => {
            let message = format!("{} and {} are different papers", first.name, second.name);
            return Err(wrong(
                message,
                "name whole papers, or figures of one".into(),
            ));
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
    let figures = papers().flat_map(|paper| paper.figures);
    // Figures are set in by two columns.
    let width = 2 + figures.map(|item| item.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for paper in papers() {
        text += &format!("{:<width$}  {}\n", paper.name, paper.about);
        for item in paper.figures {
            text += &format!("  {:<1$}  {2}\n", item.name, width - 2, item.about);
        }
    }
    let first = papers().next().map_or("", |paper| paper.name);
    text + &format!(
        "\nnext:  chappe lab --quick          all of them\n       chappe lab {first} --quick\n"
    )
}

fn json(paper: &Paper, made: &FigureSet, options: &Lab) -> serde_json::Value {
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
        "quick": options.quick,
        "runs": made.runs,
        "unfinished": made.unfinished,
        "figures": figures,
        "drawings": made.drawings.iter().map(|drawing| drawing.name).collect::<Vec<_>>(),
    });
    for &(name, number) in &made.scale {
        whole[name] = number.into();
    }
    whole
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
fn draw(folder: &Path, paper: &Paper, made: &FigureSet, png: bool) -> Result<(), Failure> {
    for drawing in &made.drawings {
        let path = folder.join(format!("{}-{}.svg", paper.name, drawing.name));
        write_whole(&path, |file| file.write_all(drawing.svg.as_bytes()))?;
        if png {
            output::png(&path, &path.with_extension("png"))?;
        }
    }
    for figure in &made.figures {
        let stem = folder.join(format!("{}-{}", paper.name, figure.id));
        output::write_figure(&stem, figure, &Format::all(png))?;
    }
    Ok(())
}
