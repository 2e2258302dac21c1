//! `chappe systems`: the systems, their variants, and where each one runs.

use chappe::systems::SYSTEMS;
use chappe_figures::table::Table;
use chappe_lab::system::System;

use crate::cli::Systems;
use crate::failure::Failure;
use crate::terminal::{self, Stream};

pub fn run(options: &Systems) -> Result<u8, Failure> {
    let text = match (options.json, options.markdown) {
        (true, _) => json(),
        (false, true) => markdown(),
        (false, false) => text(),
    };
    terminal::print(&text)?;
    Ok(0)
}

/// What a system is compared with: all variants but the paper's protocol and the improved one.
fn baselines(system: &System) -> Vec<&'static str> {
    let variants = system.scenario.variants.iter();
    let baselines = variants.filter(|variant| !["paper", "improved"].contains(&variant.name));
    baselines.map(|variant| variant.label).collect()
}

fn is_improved(system: &System) -> bool {
    let mut variants = system.scenario.variants.iter();
    variants.any(|variant| variant.name == "improved")
}

fn text() -> String {
    let mut text = String::new();
    for system in SYSTEMS {
        let scenario = system.scenario;
        text += &format!("{}: {}\n", scenario.title, scenario.about);
        let mut table = Table::new().words("variant").words("");
        for variant in scenario.variants {
            table.row([variant.name.into(), variant.label.into()]);
        }
        let (width, colour) = (
            terminal::width(Stream::Output),
            terminal::colour_on(Stream::Output),
        );
        text += &table.render(width, colour);
        for place in system.runs_on {
            text += &format!("  {} ({})\n", place.what.replace('`', ""), place.page);
        }
        text += "\n";
    }
    text + "next:  chappe new mesh.toml --system NAME\n"
}

fn markdown() -> String {
    let mut text = "| system | for | baselines | runs in |\n|---|---|---|---|\n".to_string();
    for system in SYSTEMS {
        let scenario = system.scenario;
        let mut places = vec!["the simulator".to_string()];
        let links = system.runs_on.iter();
        places.extend(links.map(|place| format!("[{}]({})", place.what, place.page)));
        text += &format!(
            "| [**{}**]({}) | {} | {}{} | {} |\n",
            scenario.title,
            system.page,
            scenario.about,
            baselines(system).join(", "),
            if is_improved(system) {
                "; improved variant"
            } else {
                ""
            },
            places.join("; "),
        );
    }
    text
}

fn json() -> String {
    let row = |system: &&System| {
        let scenario = system.scenario;
        let variants = scenario.variants.iter();
        let places = system.runs_on.iter();
        serde_json::json!({
            "system": scenario.name,
            "title": scenario.title,
            "about": scenario.about,
            "variants": variants.map(|variant| variant.name).collect::<Vec<_>>(),
            "page": system.page,
            "runs_on": places.map(|place| place.what).collect::<Vec<_>>(),
        })
    };
    let rows: Vec<serde_json::Value> = SYSTEMS.iter().map(row).collect();
    serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
}
