//! `chappe lab` and `chappe compare` as users and CI run them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::chappe;
use crate::scratch::Scratch;

/// Four nodes in a line, 10 kB: a run takes milliseconds.
const SMALL: &str = "tests/mistakes/right.toml";

/// A figure that takes a fraction of a second.
const FIGURE: [&str; 4] = ["lab", "wildnet", "figure15", "--quick"];

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn keep(name: &str, scratch: &Scratch, more: &[&str]) -> String {
    let output = chappe(&[&["sim", SMALL, "--json"], more].concat());
    let path = scratch.path(name);
    fs::write(&path, &output.stdout).unwrap();
    path
}

/// Goal: what differs is said first; another task is refused unless the user insists.
#[test]
fn unlike_results_are_not_compared() {
    let scratch = Scratch::new("unlike");
    let a = keep("a.json", &scratch, &["--seeds", "1..4"]);
    let power = keep(
        "b.json",
        &scratch,
        &["--seeds", "1..4", "--set", "radio.tx_power=15 dBm"],
    );
    let task = keep(
        "c.json",
        &scratch,
        &["--seeds", "1..4", "--set", "transfer.0.bytes=20 kB"],
    );
    let alike = chappe(&["compare", &a, &power]);
    assert_ne!(alike.status.code(), Some(3), "{}", said(&alike));
    assert!(
        said(&alike).contains("radio.tx_power: not given -> 15 dBm"),
        "{}",
        said(&alike)
    );
    let refused = chappe(&["compare", &a, &task]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        // Lines end where the terminal does.
        said(&refused)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("another task: `transfer.0.bytes` is 20 kB instead of 10 kB"),
        "{}",
        said(&refused)
    );
    let forced = chappe(&["compare", &a, &task, "--force"]);
    assert_ne!(forced.status.code(), Some(3));
    assert!(
        said(&forced).contains("(another task)"),
        "{}",
        said(&forced)
    );
}

/// Any number of results in one table, the first being the reference; a worse one makes exit code 1.
#[test]
fn several_results_stand_in_one_table() {
    let scratch = Scratch::new("several");
    let seeds = ["--seeds", "1..6"];
    let of =
        |name: &str, rate: &str| keep(name, &scratch, &[&seeds[..], &["--set", rate]].concat());
    let (fast, slow) = (
        of("fast.json", "radio.rate=2 Mbit/s"),
        of("slow.json", "radio.rate=1 Mbit/s"),
    );
    let output = chappe(&["compare", &fast, &slow, &fast]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = said(&output);
    assert!(
        text.contains("B = ") && text.contains("C = ") && text.contains("no difference"),
        "{text}"
    );
    assert!(
        text.contains("worse") && text.contains("the same"),
        "{text}"
    );
    assert_eq!(
        chappe(&["compare", &slow, &fast, &fast]).status.code(),
        Some(0)
    );
    let json: Value =
        serde_json::from_slice(&chappe(&["compare", &fast, &slow, &fast, "--json"]).stdout)
            .unwrap();
    assert_eq!(json["results"][0]["quantities"][0]["verdict"], "worse");
    assert_eq!(json["results"][0]["differences"][0]["what"], "radio.rate");
}

/// The cells of a sweep are results; what was swept does not make them unlike. The first of the grid is the reference, as in the
/// sweep's own table.
#[test]
fn cells_of_a_sweep_are_compared() {
    let scratch = Scratch::new("cells");
    let out = scratch.path("sweep");
    let sweep = [
        "sweep",
        SMALL,
        "--grid",
        "transfer.0.bytes=20 kB,10 kB",
        "--seeds",
        "1..4",
        "--out",
        &out,
    ];
    assert_eq!(chappe(&sweep).status.code(), Some(0));
    let output = chappe(&["compare", &out]);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        said(&output)
    );
    let (first, second) = ("transfer.0.bytes = 20 kB", "transfer.0.bytes = 10 kB");
    let said = said(&output);
    assert!(said.starts_with("A = "), "{said}");
    assert!(said.lines().next().unwrap().ends_with(first), "{said}");
    assert!(said.contains(second), "{said}");
}

/// Goal: a figure that was made is kept with its data, found again, and compared with itself; unlike sizes are refused.
#[test]
fn figures_of_the_lab_are_kept_and_compared() {
    let scratch = Scratch::new("lab");
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let made = chappe(&[&FIGURE[..], &["--out", &one]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    for ending in ["svg", "csv", "parquet", "vl.json"] {
        let path = Path::new(&one).join(format!("wildnet-figure15.{ending}"));
        assert!(
            fs::metadata(&path).is_ok_and(|file| file.len() > 100),
            "{ending}"
        );
    }
    assert!(
        fs::read_to_string(Path::new(&one).join("claims.md"))
            .unwrap()
            .contains("## Not reproduced")
    );
    let again = chappe(&[&FIGURE[..], &["--out", &one]].concat());
    assert!(
        said(&again).contains("1 figures are in the folder already"),
        "{}",
        said(&again)
    );
    let first = |output: &Output| {
        String::from_utf8_lossy(&output.stdout)
            .split("; 0 runs")
            .next()
            .unwrap()
            .lines()
            .take(12)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(first(&made), first(&again), "a kept figure is the same");
    let other = chappe(&[&FIGURE[..], &["--out", &two, "--seed", "5"]].concat());
    assert_eq!(other.status.code(), Some(0));
    let same = chappe(&["compare", &one, &one]);
    assert_eq!(same.status.code(), Some(0), "{}", said(&same));
    assert!(said(&same).contains("wildnet figure15"), "{}", said(&same));
    let refused = chappe(&["compare", &one, &two]);
    assert!(
        refused.status.code() == Some(3) && said(&refused).contains("seed is 5"),
        "{}",
        said(&refused)
    );
    let runs = keep("runs.json", &scratch, &[]);
    assert_eq!(chappe(&["compare", &one, &runs]).status.code(), Some(3));
}

/// Goal: parts make all figures once, and the command without parts joins them.
#[test]
fn parts_of_the_lab_join() {
    let scratch = Scratch::new("lab-parts");
    let out = scratch.path("out");
    let figures = [
        "lab", "wildnet", "figure15", "figure12", "--quick", "--out", &out,
    ];
    for part in ["1/2", "2/2"] {
        let output = chappe(&[&figures[..], &["--shard", part]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    let joined = chappe(&figures);
    assert!(
        said(&joined).contains("2 figures are in the folder already"),
        "{}",
        said(&joined)
    );
}

/// Ctrl-C is answered within a second, with 130; what was finished before is kept.
#[test]
fn the_lab_answers_ctrl_c() {
    let scratch = Scratch::new("lab-stop");
    let out = scratch.path("out");
    let child = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .args(["lab", "wildnet", "figure15", "peers", "--out", &out])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let kept = Path::new(&out).join("results/wildnet-figure15.json");
    for _ in 0..1200 {
        if kept.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    let begun = Instant::now();
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    if begun.elapsed() >= Duration::from_secs(1) {
        chappe_testkit::skip(format!(
            "the machine is too busy to time Ctrl-C: {:?}",
            begun.elapsed()
        ));
    }
    assert!(
        said(&output).contains("wildnet peers lack runs"),
        "{}",
        said(&output)
    );
    assert!(kept.exists());
}

/// Goal: where no program makes PNG, that is said before the work and not after it, with what to install. Method: an empty folder of
/// programs; no figure may be kept.
#[test]
fn png_without_a_program_is_refused_before_the_work() {
    let scratch = Scratch::new("lab-png");
    let out = scratch.path("out");
    let sweep = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mesh-12.toml");
    let sweep = sweep.display().to_string();
    let lab = [&FIGURE[..], &["--png", "--out", &out]].concat();
    let swept = [
        "sweep",
        &sweep,
        "--grid",
        "radio.tx_power=15 dBm,16 dBm",
        "--png",
        "--out",
        &out,
    ];
    for arguments in [&lab[..], &swept] {
        let refused = Command::new(env!("CARGO_BIN_EXE_chappe"))
            .args(arguments)
            .env("PATH", scratch.path("programs"))
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
        assert!(
            said(&refused).contains("apt install librsvg2-bin"),
            "{}",
            said(&refused)
        );
        let made = fs::read_dir(&out).map_or(0, Iterator::count);
        assert_eq!(made, 0, "{arguments:?}");
    }
}

#[test]
fn papers_are_listed_and_checks_need_a_record() {
    let list = said(&chappe(&["lab", "--list"]));
    for paper in ["pacifier", "p3", "wildnet", "tcplp", "dpclo"] {
        assert!(list.contains(paper), "{list}");
    }
    let other_seed = chappe(&[
        "lab", "wildnet", "figure15", "--quick", "--check", "--seed", "9",
    ]);
    assert_eq!(other_seed.status.code(), Some(3), "{}", said(&other_seed));
}

/// What held at the last release holds now; a unit test beside the record shows that a lost claim is found.
#[test]
fn a_check_of_one_figure_passes() {
    let held = chappe(&[&FIGURE[..], &["--check"]].concat());
    assert_eq!(held.status.code(), Some(0), "{}", said(&held));
}
