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

/// Goal: positions from a script of ns-2 and from an ini file of OMNeT++ give the run of the same positions in the scenario;
/// other places are another scenario.
#[test]
fn places_come_from_other_simulators() {
    let folder = Scratch::new("places");
    let script =
        "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 100\n$node_(1) set Y_ 20.5\n";
    fs::write(folder.0.join("a.tcl"), script).unwrap();
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
    assert_eq!([&ns2, &omnet], [&written; 2]);
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

/// Two nodes in reach of each other until one goes away, for good or to come back: the flow between them has its packets in the first
/// third of the time, and what the source kept and sends later. The way is written for ns-2 and for BonnMotion.
#[test]
fn nodes_follow_the_ways_of_other_simulators() {
    let folder = Scratch::new("ways");
    let start = "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 50\n$node_(1) set Y_ 0\n";
    let there = "$ns_ at 40.0 \"$node_(1) setdest 5050.0 0 1000\"\n";
    let back = "$ns_ at 60.0 \"$node_(1) setdest 50.0 0 1000\"\n";
    // In any order, as ns-2 takes them.
    fs::write(folder.0.join("ways.tcl"), format!("{back}{start}{there}")).unwrap();
    let trace = "0 0 0\n0 50 0 40 50 0 45 5050 0 60 5050 0 65 50 0\n";
    fs::write(folder.0.join("ways.movements"), trace).unwrap();
    let still = "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 50\n$node_(1) set Y_ 0\n";
    fs::write(folder.0.join("still.tcl"), still).unwrap();
    let scenario = "[network]\nfile = \"ways.tcl\"\n[mac]\naccess = \"edca\"\n\
        [protocol]\nsystem = \"dpclo\"\nvariant = \"shortest-path\"\nprobing = \"20 s\"\n\
        [[flow]]\nsource = 0\nsink = 1\nrate = \"10 kbit/s\"\n[run]\nlimit = \"60 s\"\n";
    fs::write(folder.0.join("a.toml"), scenario).unwrap();
    let run = |file: &str| {
        let set = format!("network.file={file}");
        let output = chappe_in(&folder.0, &["sim", "a.toml", "--json", "--set", &set]);
        let said = text(&output.stderr);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        let flow = &json["runs"][0]["flows"][0];
        (
            json["runs"][0]["digest"].to_string(),
            flow["goodput_bps"].as_f64().unwrap(),
            json["scenario_text"].to_string(),
        )
    };
    let (moved, goodput, canonical) = run("ways.tcl");
    let (traced, ..) = run("ways.movements");
    assert_eq!(moved, traced);
    let (still, all, other) = run("still.tcl");
    assert!(still != moved && all > 9500.0, "{all} bit/s");
    assert_ne!(canonical, other);
    // Other ways from the same places are another scenario: a sweep must not take results of the one for the other.
    fs::write(folder.0.join("ways.tcl"), format!("{start}{there}")).unwrap();
    let (_, least, another) = run("ways.tcl");
    assert_ne!(another, canonical);
    // The flow lasts from 20 to 80 s of the run, and the link is gone from 40.2 s on: a third.
    assert!((3200.0..3500.0).contains(&least), "{least} bit/s");
    assert!(
        least + 1000.0 < goodput && goodput + 1000.0 < all,
        "{goodput} bit/s"
    );
}

/// Systems that plan with the links of the start refuse nodes that move, and say which do not.
#[test]
fn nodes_that_move_are_refused_aloud() {
    let folder = Scratch::new("refused");
    let walk = "[network]\ngenerator = \"random-waypoint\"\nnodes = 4\narea = [\"90 m\", \"90 m\"]\n\
        speed = [\"1 m/s\", \"2 m/s\"]\n[[transfer]]\nreceivers = 1\nbytes = \"1 kB\"\n";
    fs::write(folder.0.join("a.toml"), walk).unwrap();
    for system in ["pacifier", "tcplp", "wildnet", "p3"] {
        let set = format!("protocol.system={system}");
        let output = chappe_in(&folder.0, &["sim", "a.toml", "--set", &set]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{system}: {said}");
        assert!(said.contains("nodes move here"), "{system}: {said}");
        assert!(said.contains("may move: dpclo"), "{system}: {said}");
    }
    let set = ["protocol.system=dpclo", "protocol.probing=20 s"].map(|set| ["--set", set]);
    let run = |more: &[&str]| {
        chappe_in(
            &folder.0,
            &[&["sim", "a.toml"], &set.concat()[..], more].concat(),
        )
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        !text(&output.stdout).contains("bound"),
        "the bound of the start was shown"
    );
    let said = text(&run(&["--set", "mac.access=zmac+"]).stderr);
    assert!(
        said.contains("ZMAC+ gives out its time slots once"),
        "{said}"
    );
}
