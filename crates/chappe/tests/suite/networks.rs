//! Networks from files, as the user gives them: what is said about them, and what is shown.

use std::fs;
use std::process::{Command, Output};

use crate::scratch::Scratch;

fn chappe(folder: &Scratch, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chappe"))
        .current_dir(&folder.0)
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Goal: whoever gives a list with one direction for every link learns it from `sim` and from `sweep`, with the key that
/// decides; with the key nothing is said, and the links carry both ways.
#[test]
fn a_list_of_one_direction_is_warned_of() {
    let folder = Scratch::new("one-direction");
    fs::write(
        folder.0.join("links.csv"),
        "src,dst,pdr\n0,1,0.9\n1,2,0.9\n",
    )
    .unwrap();
    let scenario = "[network]\nfile = \"links.csv\"\n[[transfer]]\nsource = 0\nreceivers = [2]\n\
                    bytes = \"10 kB\"\n[run]\nlimit = \"5 s\"\n";
    fs::write(folder.0.join("a.toml"), scenario).unwrap();
    let note = "links.csv gives all 2 links in one direction only";
    let one = chappe(&folder, &["sim", "a.toml"]);
    assert!(text(&one.stderr).contains(note), "{}", text(&one.stderr));
    assert_ne!(one.status.code(), Some(0), "no acknowledgment comes back");
    let swept = chappe(
        &folder,
        &["sweep", "a.toml", "--grid", "transfer.0.bytes=1 kB,2 kB"],
    );
    let said = text(&swept.stderr);
    assert_eq!(said.matches(note).count(), 1, "{said}");
    let both = chappe(
        &folder,
        &["sim", "a.toml", "--set", "network.undirected=true"],
    );
    assert!(!text(&both.stderr).contains("direction"));
    assert_eq!(both.status.code(), Some(0), "{}", text(&both.stderr));
}

/// Goal: a node that has a name in the network's file is called by it in scenarios, options and tables; the run is that of
/// the number.
#[test]
fn nodes_are_called_by_their_names() {
    let folder = Scratch::new("names");
    let map = r#"{"type": "NetworkGraph", "metric": "ETX", "nodes": [{"id": "gateway"}, {"id": "attic"}],
        "links": [{"source": "gateway", "target": "attic", "cost": 1.2}]}"#;
    fs::write(folder.0.join("map.json"), map).unwrap();
    let scenario = "[network]\nfile = \"map.json\"\n[[transfer]]\nsource = \"gateway\"\n\
                    receivers = [\"attic\"]\nbytes = \"10 kB\"\n";
    fs::write(folder.0.join("a.toml"), scenario).unwrap();
    let shown = chappe(&folder, &["sim", "a.toml"]);
    let table = text(&shown.stdout);
    let row = table.lines().find(|line| line.contains("attic"));
    assert!(row.is_some_and(|row| row.contains("gateway")), "{table}");
    let digest = |options: &[&str]| {
        let output = chappe(&folder, &[&["sim", "a.toml", "--json"], options].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["runs"][0]["digest"].to_string()
    };
    // Words are numbered in the order of the alphabet.
    let numbers = [
        "--set",
        "transfer.0.source=1",
        "--set",
        "transfer.0.receivers=[0]",
    ];
    assert_eq!(digest(&[]), digest(&numbers));
    let swapped = [
        "--set",
        "transfer.0.source=attic",
        "--set",
        "transfer.0.receivers=[\"gateway\"]",
    ];
    assert_ne!(digest(&[]), digest(&swapped));
}
