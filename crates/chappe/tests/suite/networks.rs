//! Networks from files, as the user gives them: what is said about them, and what is shown.

use std::fs;

use crate::program::{chappe_in, text};
use crate::scratch::Scratch;

/// Goal: a user who gives a list with one direction for every link learns it from `sim` and from `sweep`, with the key that
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
    let one = chappe_in(&folder.0, &["sim", "a.toml"]);
    assert!(text(&one.stderr).contains(note), "{}", text(&one.stderr));
    assert_ne!(one.status.code(), Some(0), "no acknowledgment comes back");
    let swept = chappe_in(
        &folder.0,
        &["sweep", "a.toml", "--grid", "transfer.0.bytes=1 kB,2 kB"],
    );
    let said = text(&swept.stderr);
    assert_eq!(said.matches(note).count(), 1, "{said}");
    let both = chappe_in(
        &folder.0,
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
    let shown = chappe_in(&folder.0, &["sim", "a.toml"]);
    let table = text(&shown.stdout);
    let row = table.lines().find(|line| line.contains("attic"));
    assert!(row.is_some_and(|row| row.contains("gateway")), "{table}");
    let digest = |options: &[&str]| {
        let output = chappe_in(&folder.0, &[&["sim", "a.toml", "--json"], options].concat());
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

/// Goal: positions from a script of ns-2 and from an ini file of OMNeT++ give the run of the same positions in the scenario; a
/// movement is not followed, and said; other places are another scenario.
#[test]
fn places_come_from_other_simulators() {
    let folder = Scratch::new("places");
    let script =
        "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 100\n$node_(1) set Y_ 20.5\n";
    fs::write(folder.0.join("a.tcl"), script).unwrap();
    let moves = format!("{script}$ns_ at 9.0 \"$node_(1) setdest 5 5 1.2\"\n");
    fs::write(folder.0.join("moves.tcl"), moves).unwrap();
    fs::write(
        folder.0.join("a.ini"),
        "[General]\n*.mast.mobility.initialX = 0m\n*.mast.mobility.initialY = 0m\n\
         *.barn.mobility.initialX = 0.1km\n*.barn.mobility.initialY = 20.5m\n",
    )
    .unwrap();
    let scenario = |network: &str| {
        format!(
            "[network]\n{network}\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"20 kB\"\n"
        )
    };
    let run = |network: &str| {
        fs::write(folder.0.join("a.toml"), scenario(network)).unwrap();
        let output = chappe_in(&folder.0, &["sim", "a.toml", "--json"]);
        let said = text(&output.stderr);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        let canonical = json["scenario_text"].to_string();
        (json["runs"][0]["digest"].to_string(), canonical, said)
    };
    let (written, ..) = run("positions = [[\"0 m\", \"0 m\"], [\"100 m\", \"20.5 m\"]]");
    let (ns2, before, said) = run("file = \"a.tcl\"");
    assert!(!said.contains("note"), "{said}");
    let (omnet, ..) = run("file = \"a.ini\"");
    let (moved, _, said) = run("file = \"moves.tcl\"");
    assert!(said.contains("moves.tcl moves a node"), "{said}");
    assert_eq!([&ns2, &omnet, &moved], [&written; 3]);
    fs::write(folder.0.join("a.tcl"), script.replace("100", "90")).unwrap();
    let (_, after, _) = run("file = \"a.tcl\"");
    assert_ne!(
        before, after,
        "results of other places would be taken for these"
    );
    let named = chappe_in(
        &folder.0,
        &[
            "sim",
            "a.toml",
            "--set",
            "network.file=a.ini",
            "--set",
            "transfer.0.source=mast",
        ],
    );
    assert!(
        text(&named.stdout).contains("barn"),
        "{}",
        text(&named.stdout)
    );
}
