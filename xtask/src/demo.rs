//! The README's promises, kept by running them: the demo, the example's JSON, a capture that Wireshark decodes.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process;
use crate::report::Outcome;
use crate::terminal;
use crate::workspace::Workspace;

/// The README's first command, `cargo run --release -- demo`, without cargo.
const DEMO: [&str; 1] = ["demo"];
/// What the demo's table must name.
const DEMO_NAMES: [&str; 4] = ["Pacifier", "MORE", "bound", "seed"];
/// The README promises ten seconds; a laden machine gets this much.
const DEMO_LIMIT: Duration = Duration::from_secs(60);
/// The scenario that the README shows.
const EXAMPLE: &str = "examples/mesh-multicast.toml";
const EXAMPLE_LIMIT: Duration = Duration::from_secs(300);
/// The README holds the demo's output between these lines.
const BEGIN: &str = "<!-- demo output, written by `cargo xtask readme` -->";
const END: &str = "<!-- end of demo output -->";

/// The README holds the table of systems between these lines.
const SYSTEMS_BEGIN: &str = "<!-- systems, written by `cargo xtask readme` -->";
const SYSTEMS_END: &str = "<!-- end of systems -->";
/// The picture of the demo's results.
const PICTURE: &str = "docs/demo.svg";

/// The README's table of systems must be the one that the command prints.
pub fn systems(workspace: &Workspace) -> Outcome {
    if let Some(missing) = no_command(workspace) {
        return missing;
    }
    let table = match run(workspace, &["systems", "--markdown"], DEMO_LIMIT) {
        Ok(table) => table,
        Err(why) => return Outcome::Failed(why),
    };
    let readme = workspace.text("README.md").unwrap_or_default();
    match between(readme, SYSTEMS_BEGIN, SYSTEMS_END) {
        Some(shown) if shown.trim() == table.trim() => Outcome::Passed(String::new()),
        _ => Outcome::Failed("README.md lists other systems: run `cargo xtask readme`".to_owned()),
    }
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    text.split_once(begin)?
        .1
        .split_once(end)
        .map(|(inside, _)| inside)
}

/// Runs the demo. It must print its table, and the README must show the same one.
pub fn demo(workspace: &Workspace) -> Outcome {
    if let Some(missing) = no_command(workspace) {
        return missing;
    }
    let started = Instant::now();
    let output = match run(workspace, &DEMO, DEMO_LIMIT) {
        Ok(output) => output,
        Err(why) => return Outcome::Failed(why),
    };
    let took = started.elapsed().as_secs_f64();
    terminal::say(&output);
    if let Some(name) = DEMO_NAMES.iter().find(|name| !output.contains(*name)) {
        return Outcome::Failed(format!("the demo's output does not name `{name}`"));
    }
    let shown = workspace.text("README.md").and_then(transcript);
    match shown {
        Some(shown) if same_but_for_times(shown, &output) => {
            Outcome::Passed(format!("{took:.1} s, and the README shows this output"))
        }
        _ => Outcome::Failed("README.md shows another output: run `cargo xtask readme`".to_owned()),
    }
}

/// Writes the demo's output between the README's two marks.
pub fn write_readme() -> Result<(), String> {
    let workspace = Workspace::load()?;
    process::show(&mut process::cargo(&workspace.root, ["build", "--release"]))?;
    let output = run(&workspace, &DEMO, DEMO_LIMIT)?;
    run(
        &workspace,
        &["demo", "--quiet", "--svg", PICTURE],
        DEMO_LIMIT,
    )?;
    let table = run(&workspace, &["systems", "--markdown"], DEMO_LIMIT)?;
    let readme = workspace.text("README.md").ok_or("there is no README.md")?;
    let new = with_transcript(readme, &output).ok_or("README.md has no marks for the demo")?;
    let (before, rest) = new.split_once(SYSTEMS_BEGIN).unwrap_or((&new, ""));
    let (_, after) = rest
        .split_once(SYSTEMS_END)
        .ok_or("README.md has no marks for the systems")?;
    let new = format!("{before}{SYSTEMS_BEGIN}\n{table}{SYSTEMS_END}{after}");
    fs::write(workspace.root.join("README.md"), new).map_err(|why| why.to_string())
}

/// Sends this project's README through the example scenario: every flow complete, every digest right.
pub fn example(workspace: &Workspace) -> Outcome {
    if let Some(missing) = no_command(workspace) {
        return missing;
    }
    let args = ["sim", EXAMPLE, "--object", "README.md", "--json"];
    let output = run(workspace, &args, EXAMPLE_LIMIT);
    output.and_then(|json| complete_flows(&json)).into()
}

/// Writes a capture of the example and has Wireshark read it: every frame 802.11, none malformed.
pub fn capture(workspace: &Workspace) -> Outcome {
    if let Some(missing) = no_command(workspace) {
        return missing;
    }
    if !process::exists("tshark") {
        return Outcome::Skipped("needs tshark (Debian package tshark)".to_owned());
    }
    decode(workspace).into()
}

fn decode(workspace: &Workspace) -> Result<String, String> {
    let folder = workspace.target.join("xtask");
    fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
    let file = folder.join("example.pcapng");
    let path = file.to_string_lossy();
    run(
        workspace,
        &[
            "sim",
            EXAMPLE,
            "--object",
            "README.md",
            "--quiet",
            "--pcap",
            &path,
        ],
        EXAMPLE_LIMIT,
    )?;
    let frames = |filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.args([
            "-n",
            "-r",
            &path,
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
        ]);
        process::take(&mut tshark, EXAMPLE_LIMIT).map(|lines| lines.lines().count())
    };
    let all = frames("frame")?;
    let wifi = frames("wlan")?;
    let malformed = frames("_ws.malformed")?;
    if all == 0 || wifi != all || malformed != 0 {
        return Err(format!(
            "of {all} frames, tshark reads {wifi} as 802.11, {malformed} as malformed"
        ));
    }
    Ok(format!("tshark reads all {all} frames as sound 802.11"))
}

/// Skips a step while the workspace has no command.
fn no_command(workspace: &Workspace) -> Option<Outcome> {
    let missing = workspace.member("chappe").is_none();
    missing.then(|| Outcome::Skipped("the workspace has no package `chappe` yet".to_owned()))
}

/// What the command prints. It runs the program that the build step left, not `cargo run`: the dependencies of tests turn
/// on further features of shared crates, so cargo would compile those that depend on them again.
fn run(workspace: &Workspace, args: &[&str], limit: Duration) -> Result<String, String> {
    let mut command = Command::new(workspace.target.join("release/chappe"));
    process::take(command.current_dir(&workspace.root).args(args), limit)
}

/// Counts the flows of a JSON result; an error unless there are some, all complete and with a right digest.
fn complete_flows(json: &str) -> Result<String, String> {
    let result: Value = serde_json::from_str(json).map_err(|why| format!("not JSON: {why}"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut flows = 0;
    for run in list(&result["runs"]) {
        for flow in list(&run["flows"]) {
            for promise in ["complete", "digest_ok"] {
                if flow[promise] != Value::Bool(true) {
                    return Err(format!(
                        "flow {} has `{promise}`: {}",
                        flow["name"], flow[promise]
                    ));
                }
            }
            flows += 1;
        }
    }
    match flows {
        0 => Err("the result has no flow".to_owned()),
        _ => Ok(format!("{flows} flows, all complete, all digests right")),
    }
}

/// What stands between the README's marks, without the code fence.
fn transcript(readme: &str) -> Option<&str> {
    let (_, rest) = readme.split_once(BEGIN)?;
    let (block, _) = rest.split_once(END)?;
    let block = block.trim().strip_prefix("```text\n")?;
    Some(block.strip_suffix("```")?.trim_end())
}

/// The README with this output between its marks.
fn with_transcript(readme: &str, output: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let output = output.trim_end();
    Some(format!(
        "{before}{BEGIN}\n```text\n{output}\n```\n{END}{after}"
    ))
}

/// Compares two outputs. A number before `s` or `ms` may be a time on the clock and counts as equal to any other,
/// and so does white space, since a column may be wider for a longer time.
fn same_but_for_times(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        for i in 1..words.len() {
            let unit = words[i].trim_end_matches(['.', ',', ';', ':', ')']);
            if ["s", "ms"].contains(&unit) {
                words[i - 1] = "#".to_owned();
            }
        }
        words
    };
    words(a) == words(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn this_readme_has_its_marks_and_takes_a_transcript() {
        let root = workspace::root().unwrap();
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        assert!(transcript(&readme).is_some());
        let new = with_transcript(&readme, "one\ntwo\n").unwrap();
        assert_eq!(transcript(&new), Some("one\ntwo"));
        assert_eq!(
            with_transcript(&new, transcript(&readme).unwrap()),
            Some(readme)
        );
    }

    #[test]
    fn a_transcript_may_differ_in_times_only() {
        let shown = "Pacifier 223 ± 4 kbit/s  431.2 s\nseed 1, took 4.2 s.";
        assert!(same_but_for_times(
            shown,
            "Pacifier 223 ± 4 kbit/s  431.2 s\nseed 1, took 11.7 s."
        ));
        assert!(!same_but_for_times(
            shown,
            "Pacifier 224 ± 4 kbit/s  431.2 s\nseed 1, took 4.2 s."
        ));
        assert!(!same_but_for_times(shown, "Pacifier 223 ± 4 kbit/s"));
    }

    #[test]
    fn a_flow_that_is_not_complete_is_found() {
        let json = |complete, digest| {
            format!(
                r#"{{"runs":[{{"flows":[{{"name":"r3","complete":true,"digest_ok":true}},
                {{"name":"r4","complete":{complete},"digest_ok":{digest}}}]}}]}}"#
            )
        };
        assert!(
            complete_flows(&json("true", "true"))
                .unwrap()
                .starts_with("2 flows")
        );
        assert!(
            complete_flows(&json("false", "true"))
                .unwrap_err()
                .contains("r4")
        );
        assert!(complete_flows(&json("true", "null")).is_err());
        assert!(complete_flows(r#"{"runs":[]}"#).is_err());
        assert!(complete_flows("no JSON").is_err());
    }
}
