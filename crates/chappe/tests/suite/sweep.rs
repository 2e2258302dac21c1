//! `chappe sweep` as users and array jobs run it: interrupted, resumed, killed, sharded, with equal rows each time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use chappe_results::Run;
use serde_json::Value;

use crate::scratch::Scratch;

/// Four nodes in a line, 10 kB: a run takes milliseconds.
const SMALL: &str = "tests/mistakes/right.toml";

/// Three variants at two powers.
const GRID: [&str; 5] = [
    SMALL,
    "--grid",
    "protocol.variant=paper,more,improved",
    "--grid",
    "radio.tx_power=10..20 dBm/10",
];

/// Three variants at four powers with twenty seeds.
const LARGE: [&str; 7] = [
    SMALL,
    "--grid",
    "protocol.variant=paper,more,improved",
    "--grid",
    "radio.tx_power=11..20 dBm/3",
    "--seeds",
    "1..20",
];

fn command(arguments: &[&str], out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chappe"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("sweep")
        .args(arguments)
        .args(["--out", out]);
    command.env("NO_COLOR", "1").env("COLUMNS", "120");
    command
}

fn sweep(more: &[&str], out: &str) -> Output {
    command(&[&GRID[..], more].concat(), out).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All rows of a folder: cell, swept values, and each run without the time it took.
fn rows(out: &str) -> Vec<(String, Vec<String>, Run)> {
    let cells = chappe_store::sweep::read(Path::new(out), |_| true).unwrap();
    let mut rows = Vec::new();
    for cell in cells {
        let on_disk: usize = cell.files.iter().map(|(_, seeds)| seeds.len()).sum();
        assert_eq!(on_disk, cell.document.runs.len(), "a run stands twice");
        let values: Vec<String> = cell.swept.iter().map(|swept| swept.shown.clone()).collect();
        rows.extend(cell.document.runs.into_iter().map(|run| {
            (
                cell.name.clone(),
                values.clone(),
                Run { wall_s: 0.0, ..run },
            )
        }));
    }
    rows
}

/// Waits until the journal has `lines` lines, then sends a signal.
fn signal_after(
    lines: usize,
    out: &str,
    signal: &str,
    mut child: Child,
) -> (Option<i32>, Duration) {
    let journal = Path::new(out).join("journal.jsonl");
    let count = || {
        fs::read(&journal).map_or(0, |text| {
            text.iter().filter(|octet| **octet == b'\n').count()
        })
    };
    for _ in 0..2000 {
        if count() >= lines {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let begun = Instant::now();
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    (child.wait().unwrap().code(), begun.elapsed())
}

/// Goal: interrupted, killed, resumed and sharded sweeps have the rows of an undisturbed one.
#[test]
fn however_a_sweep_is_cut_its_rows_are_equal() {
    let scratch = Scratch::new("cut");
    let (whole, cut, parts) = (
        scratch.path("whole"),
        scratch.path("cut"),
        scratch.path("parts"),
    );
    let sweep =
        |more: &[&str], out: &str| command(&[&LARGE[..], more].concat(), out).output().unwrap();
    let output = sweep(&[], &whole);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let expected = rows(&whole);
    assert_eq!(expected.len(), 3 * 4 * 20);
    assert!(
        !Path::new(&whole).join("copies").exists()
            && !Path::new(&whole).join("journal.jsonl").exists()
    );
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("x paper"), "{table}");

    let spawn = || {
        let arguments = [&LARGE[..], &["--threads", "1"]].concat();
        command(&arguments, &cut)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let (code, after) = signal_after(20, &cut, "-INT", spawn());
    assert_eq!(code, Some(130));
    if after >= Duration::from_secs(1) {
        chappe_testkit::skip(format!("the machine is too busy to time Ctrl-C: {after:?}"));
    }
    let kept = rows(&cut).len();
    assert!((20..240).contains(&kept), "{kept}");
    let (code, _) = signal_after(20, &cut, "-KILL", spawn());
    assert_eq!(code, None);
    assert!(Path::new(&cut).join("journal.jsonl").exists());
    let output = sweep(&[], &cut);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: usize = said(&output)
        .split(" of 240")
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(found >= kept + 20, "{found} found, {kept} kept");
    assert_eq!(rows(&cut), expected);

    for part in ["2/3", "1/3", "3/3"] {
        let output = sweep(&["--shard", part], &parts);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(
            output.stdout.is_empty(),
            part != "3/3",
            "the table comes with the last part"
        );
    }
    assert_eq!(rows(&parts), expected);
    let joined = sweep(&[], &parts);
    assert_eq!(rows(&parts), expected);
    assert_eq!(
        fs::read_dir(Path::new(&parts).join("cells"))
            .unwrap()
            .count(),
        3 * 4,
        "parts are joined"
    );
    let without = |output: &Output| {
        String::from_utf8_lossy(&output.stdout)
            .split("reproduce")
            .next()
            .unwrap()
            .to_string()
    };
    assert_eq!(without(&joined), table.split("reproduce").next().unwrap());
}

/// Goal: parts of an array job that run at the same time, in folders of their own that are copied together later.
#[test]
fn parts_run_beside_each_other() {
    let scratch = Scratch::new("parts");
    let seeds = ["--seeds", "1..10"];
    let outs = [scratch.path("a"), scratch.path("b")];
    let children: Vec<Child> = ["1/2", "2/2"]
        .iter()
        .zip(&outs)
        .map(|(part, out)| {
            let arguments = [&GRID[..], &seeds, &["--shard", part, "--quiet"]].concat();
            command(&arguments, out).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for entry in fs::read_dir(Path::new(&outs[1]).join("cells"))
        .unwrap()
        .flatten()
    {
        fs::copy(
            entry.path(),
            Path::new(&outs[0]).join("cells").join(entry.file_name()),
        )
        .unwrap();
    }
    let output = sweep(&[&seeds[..], &["--json"]].concat(), &outs[0]);
    assert!(
        said(&output).contains("60 of 60 runs are in"),
        "{}",
        said(&output)
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    assert_eq!(cells[2]["values"], serde_json::json!(["more", "10 dBm"]));
    assert_eq!(
        cells[2]["reference"],
        serde_json::json!(["paper", "10 dBm"])
    );
    assert_eq!(cells[2]["pairs"], 10);
    assert!(cells[2]["ratio"]["mean"].as_f64().unwrap() > 0.5);
}

/// More values or seeds make only the new runs, and the file's own table is the same as the options.
#[test]
fn only_missing_runs_are_made() {
    let scratch = Scratch::new("missing");
    let out = scratch.path("out");
    sweep(&["--seeds", "1..2"], &out);
    let more = sweep(&["--seeds", "1..3"], &out);
    assert!(
        said(&more).contains("12 of 18 runs are in"),
        "{}",
        said(&more)
    );
    let scenario = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SMALL)).unwrap();
    let table = "[sweep.grid]\nprotocol.variant = [\"paper\", \"more\", \"improved\"]\nradio.tx_power = \"10..20 dBm/10\"\n[run]\nrepeat = 3\n";
    let file = scratch.path("with-table.toml");
    fs::write(&file, format!("{scenario}\n{table}")).unwrap();
    let same = command(&[&file], &out).output().unwrap();
    assert!(
        said(&same).contains("18 of 18 runs are in"),
        "{}",
        said(&same)
    );
    let plain = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .args(["sim", &file])
        .output()
        .unwrap();
    assert!(
        said(&plain).contains("[sweep]"),
        "sim says that it does not use the table: {}",
        said(&plain)
    );
}

/// A key whose values change no run is named, and copies are written when they are asked for.
#[test]
fn a_sweep_says_what_changed_nothing() {
    let scratch = Scratch::new("nothing");
    let out = scratch.path("out");
    let grid = [SMALL, "--grid", "run.limit=5..6 min", "--copies"];
    let output = command(&grid, &out).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("`run.limit` changed no run"),
        "{}",
        said(&output)
    );
    assert_eq!(
        fs::read_dir(Path::new(&out).join("copies"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn mistakes_in_a_grid_have_their_place() {
    let scratch = Scratch::new("mistakes");
    for (grid, expected) in [
        ("radio.tx_pwoer=10..20 dBm/5", "did you mean `tx_power`?"),
        ("protocol.variant=paper,mroe", "did you mean `more`?"),
        ("radio.rician_k=1..3 dB", "changes nothing here"),
        ("run.seed=1..3", "same seeds"),
    ] {
        let output = command(&[SMALL, "--grid", grid], &scratch.path("out"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{grid}");
        let said = said(&output);
        assert!(
            said.contains(expected) && said.contains("--grid"),
            "{grid}: {said}"
        );
    }
    let none = command(&[SMALL], &scratch.path("out")).output().unwrap();
    assert!(said(&none).contains("nothing is swept"), "{}", said(&none));
    assert!(
        !Path::new(&scratch.path("out")).exists(),
        "nothing is written before the mistakes are found"
    );
}

/// Goal: `chappe view` takes a sweep's folder and shows all its values with their intervals. Method: the figure in `sweep.json` beside
/// its cells, and a page made of the folder.
#[test]
fn a_sweep_opens_in_the_page() {
    let scratch = Scratch::new("page");
    let out = scratch.path("out");
    let output = sweep(&["--seeds", "1..4"], &out);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = fs::read_to_string(Path::new(&out).join("sweep.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let rows = json["figures"][0]["rows"].as_array().unwrap();
    // Goodput of six cells, and ratios of the four that are compared.
    assert_eq!(rows.len(), 6 + 4, "{rows:?}");
    for cell in json["cells"].as_array().unwrap() {
        let (mean, half) = (
            cell["goodput_bps"]["mean"].as_f64().unwrap(),
            cell["goodput_bps"]["ci95"].as_f64().unwrap(),
        );
        let shown = rows
            .iter()
            .filter(|row| row["unit"] == "kbit/s")
            .any(|row| {
                let near = |a: &Value, b: f64| {
                    (a.as_f64().unwrap() - b / 1e3).abs() < 1e-9 * b.abs().max(1.0)
                };
                near(&row["ours"]["mean"], mean)
                    && near(&row["interval"][0], mean - half)
                    && near(&row["interval"][1], mean + half)
                    && row["drawn"] == "lines"
                    && [10.0, 20.0].contains(&row["x"].as_f64().unwrap())
            });
        assert!(shown, "{cell}");
    }
    let page = scratch.path("page.html");
    let made = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .args(["view", &out, "--out", &page])
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    assert!(fs::metadata(&page).unwrap().len() > 50_000);
}
