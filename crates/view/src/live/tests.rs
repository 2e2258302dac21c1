use chappe_trace::NONE;

use super::*;

/// What two nodes of a mesh say, `sent` frames after the start.
fn mesh(sent: u64) -> Sighting {
    let answer = format!(
        r#"{{"node":3,"addresses":["10.77.0.3"],"mtu":1400,"recovery":"broadcast","airtime":0.2,"price":null,
        "neighbours":[{{"node":7,"etx":1.5,"from":0.9,"to":0.7,"round_s":0.01}}],
        "routes":[{{"node":7,"etx":1.5,"next_hops":[7],"waiting":4,"cost_s":0.002,"rate":120}},
                  {{"node":9,"etx":3.0,"next_hops":[7],"waiting":0,"cost_s":null,"rate":null}}],
        "announced":[],"flows":[],"counters":{{"frames_sent":{sent}}}}}"#
    );
    Sighting::read(&answer).unwrap()
}

fn seconds(count: u64) -> Duration {
    Duration::from_millis(1000 * count)
}

/// The readings of one name: node, part, seconds, value.
fn readings(tables: &Tables, name: &str) -> Vec<(i64, i64, i64, f64)> {
    let table = tables.table("readings").unwrap();
    let whole = |column: &str| match table.column(column) {
        Some(Data::Whole(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    let (Some(Data::Word { codes, words }), Some(Data::Real(values))) =
        (table.column("name"), table.column("value"))
    else {
        panic!("a reading has a name and a value");
    };
    (0..table.rows())
        .filter(|&row| words[codes[row] as usize] == name)
        .map(|row| {
            let at = whole("at_ns")[row] / 1_000_000_000;
            (whole("node")[row], whole("part")[row], at, values[row])
        })
        .collect()
}

#[test]
fn a_mesh_is_shown_with_its_neighbours_and_routes() {
    let mut history = History::default();
    history.add(seconds(0), vec![("a".into(), mesh(100))]);
    history.add(seconds(2), vec![("a".into(), mesh(140))]);
    let runs = history.runs();
    let (name, tables) = &runs[0];
    assert_eq!(name, "mesh: node 3, a");
    assert_eq!(tables.about.names, ["node 3", "node 7", "node 9"]);
    assert_eq!(tables.table("links").unwrap().rows(), 2);
    // A value that stays takes one row; a counter is a rate, from its second reading on.
    assert_eq!(readings(tables, "queue"), [(0, 7, 0, 4.0), (0, 9, 0, 0.0)]);
    assert_eq!(readings(tables, "frames_sent_per_s"), [(0, 0, 2, 20.0)]);
}

/// Goal: a daemon that ends is seen to end, its past stays, and its restart is no rate.
#[test]
fn a_daemon_that_ends_leaves_its_past() {
    let mut history = History::default();
    history.add(seconds(0), vec![("a".into(), mesh(100))]);
    history.add(seconds(1), vec![("a".into(), mesh(110))]);
    history.add(seconds(2), Vec::new());
    history.add(seconds(9), vec![("a".into(), mesh(5))]);
    history.add(seconds(10), vec![("a".into(), mesh(6))]);
    let tables = &history.runs()[0].1;
    let switches = tables.table("switches").unwrap();
    // Three nodes come, go and come.
    assert_eq!(switches.rows(), 9);
    assert_eq!(
        readings(tables, "frames_sent_per_s"),
        [(0, 0, 1, 10.0), (0, 0, 10, 1.0)]
    );
}

/// Goal: nothing that daemons say makes the history grow without bound. Method: many daemons, nodes and changes.
#[test]
fn memory_is_bounded() {
    let mut history = History::default();
    for round in 0..2 * series::POINTS as u64 {
        history.add(seconds(round), vec![("a".into(), mesh(round * round))]);
    }
    let daemon = &history.daemons["a"];
    assert!(
        daemon
            .series
            .values()
            .all(|one| one.rows().count() <= series::POINTS)
    );
    let crowd = |from: usize| Sighting {
        daemon: "cast",
        nodes: (from..from + NODES)
            .map(|node| (node.to_string(), String::new()))
            .collect(),
        values: (0..2 * SERIES)
            .map(|part| Held {
                node: part % NODES,
                name: "x".into(),
                part: part as u32,
                value: Amount::Gauge(1.0),
            })
            .collect(),
        ..Sighting::default()
    };
    for round in 0..20 {
        let seen = (0..2 * DAEMONS).map(|path| (path.to_string(), crowd(path * round)));
        history.add(seconds(5000 + round as u64), seen.collect());
    }
    assert_eq!(history.daemons.len(), DAEMONS);
    for daemon in history.daemons.values() {
        assert!(daemon.names.len() <= NODES && daemon.series.len() <= SERIES);
        assert!(daemon.changes.len() <= CHANGES);
    }
}

#[test]
fn a_link_is_shown_with_its_peers() {
    let seen = Sighting::read(
        r#"{"at_s":12.0,"device":"chappe0","mtu":1400,"unrouted_packets":3,"peers":[{"peer":"hill","state":"up","up":1,
        "loss_out_ratio":0.25,"loss_in_ratio":null,"goodput_out_bps":3000000,"bodies":77,"paths":[]}]}"#,
    )
    .unwrap();
    assert_eq!((seen.daemon, seen.nodes[1].1.as_str()), ("link", "hill"));
    assert_eq!(seen.links, [(0, 1, 0.75)]);
    let value = |name: &str| {
        seen.values
            .iter()
            .find(|held| held.name == name)
            .map(|held| &held.value)
    };
    assert_eq!(value("goodput_out_bps"), Some(&Amount::Gauge(3e6)));
    assert_eq!(value("bodies"), Some(&Amount::Counter(77.0)));
    assert_eq!(value("state"), Some(&Amount::Word("up".into())));
    assert_eq!(value("mtu"), None);
}

#[test]
fn members_and_motes_are_shown() {
    let cast = Sighting::read(
        r#"{"daemon":"cast","node":1,"name":"base","pace_bps":8000000,"batches":12,"counters":{"frames_sent":5},"dropped":{},
        "members":[{"node":2,"name":"r","role":"receiver","transfers":[{"transfer":"00ff","state":"receiving","batches_done":4}]}],
        "links":[{"from":1,"to":2,"delivery":0.7}]}"#,
    )
    .unwrap();
    assert_eq!(cast.links, [(0, 1, 0.7)]);
    assert!(cast.values.contains(&Held {
        node: 1,
        name: "batches_done".into(),
        part: 0,
        value: Amount::Gauge(4.0)
    }));
    let border = Sighting::read(
        r#"{"daemon":"border","scenario":"x","seconds":2.0,"frames":9,"gateway":{"to_mesh":1},"lost":{"collision":2},
        "nodes":[{"node":0,"address":"::1","hops":0,"parent":null,"radio_duty":1.0},{"node":1,"hops":1,"parent":0,"data_frames":7}],
        "links":[{"from":0,"to":1,"delivery":0.9},{"from":0,"to":9,"delivery":1}]}"#,
    )
    .unwrap();
    assert_eq!(
        (border.nodes.len(), &border.links[..]),
        (2, &[(0, 1, 0.9)][..])
    );
    let emu = Sighting::read(
        r#"{"daemon":"emu","scenario":"x","seed":1,"lateness":{"p99_s":0.001},"air":{"frames":9,"lost":{"collision":2}},
        "nodes":[{"node":0,"address":"10.17.0.1","retries":3,"lost":{"queue_full":1}},{"node":1}],
        "links":[{"from":1,"to":0,"delivery":0.8},{"from":2,"to":0,"delivery":1}]}"#,
    )
    .unwrap();
    assert_eq!((emu.nodes.len(), &emu.links[..]), (2, &[(1, 0, 0.8)][..]));
    for (name, value) in [
        ("frames", Amount::Counter(9.0)),
        ("collision", Amount::Counter(2.0)),
        ("retries", Amount::Counter(3.0)),
        ("queue_full", Amount::Counter(1.0)),
        ("late_p99_s", Amount::Gauge(0.001)),
    ] {
        let held = emu.values.iter().find(|held| held.name == name);
        assert_eq!(
            held.map(|held| (held.node, &held.value)),
            Some((0, &value)),
            "{name}"
        );
    }
}

/// Goal: another program's answer, or a broken one, is no daemon and no panic.
#[test]
fn strange_answers_are_refused() {
    for answer in [
        "",
        "{}",
        "[]",
        "null",
        "no",
        r#"{"peers":1}"#,
        r#"{"routes":[]}"#,
        r#"{"daemon":"cast"}"#,
    ] {
        assert_eq!(Sighting::read(answer), None, "{answer}");
    }
    for answer in [
        r#"{"daemon":"cast","node":1,"members":[1,"x",{"node":"y"}],"links":[{"from":1}],"counters":[]}"#,
        r#"{"daemon":"border","nodes":[{"node":0}],"links":[{"from":-1,"to":1e300,"delivery":"x"}]}"#,
        r#"{"daemon":"emu","nodes":[{"node":0,"lost":[]}],"links":[{"from":0}],"air":1,"lateness":"x"}"#,
        r#"{"node":1,"routes":[{}],"neighbours":[{"node":2,"from":"x"}]}"#,
    ] {
        let mut history = History::default();
        history.add(
            seconds(1),
            vec![("a".into(), Sighting::read(answer).unwrap())],
        );
        assert_eq!(history.runs().len(), 1);
    }
}

/// A border router of two motes with two frames, the second of which collides with the first.
fn border(now_ns: u64) -> Sighting {
    let mut seen = Sighting::read(
        r#"{"daemon":"border","scenario":"x","nodes":[{"node":0},{"node":1}],"links":[]}"#,
    )
    .unwrap();
    let column = |name: &str, data| Column {
        name: name.into(),
        data,
    };
    let whole = |values: [i64; 2]| Data::Whole(values.to_vec());
    let words = |words: [&'static str; 2]| Data::of_words(words.into_iter());
    let sent = vec![
        column("node", whole([0, 1])),
        column("number", whole([0, 0])),
        column("start_ns", whole([1_000, 3_000_000_000])),
        column("airtime_ns", whole([900, 900])),
        column("octets", whole([20, 30])),
        column("channel", whole([26, 26])),
        column("kind", words(["data", "ack"])),
        column("to", whole([1, NONE])),
    ];
    let met = vec![
        column("frame", whole([0, 1])),
        column("node", whole([1, 0])),
        column("from", whole([0, 1])),
        column("start_ns", whole([1_010, 3_000_000_010])),
        column("known_ns", whole([1_900, 3_000_000_900])),
        column("sinr_db", Data::Real(vec![12.5, f64::NAN])),
        column("outcome", words(["received", "collision"])),
        column("culprit", whole([NONE, 0])),
    ];
    let run = Tables {
        tables: [("frames", sent), ("receptions", met)]
            .map(|(name, mut columns)| {
                // Members of JSON have no order of their own.
                columns.sort_by(|a, b| a.name.cmp(&b.name));
                Table {
                    name: name.into(),
                    columns,
                }
            })
            .into(),
        ..Tables::default()
    };
    seen.frames = Frames::read(&frames::write(&run, now_ns));
    assert_eq!(
        seen.frames.as_ref().unwrap().tables,
        run.tables,
        "what is written is read"
    );
    seen
}

/// Goal: a daemon's frames stand on the page's clock; what was before the page began is left out, and nothing refers to it.
#[test]
fn frames_of_a_border_router_are_shown() {
    let frames = |history: &History| {
        let tables = &history.runs()[0].1;
        let whole = |table: &str, column: &str| match tables.table(table).unwrap().column(column) {
            Some(Data::Whole(values)) => values.clone(),
            other => panic!("{other:?}"),
        };
        let starts = whole("frames", "start_ns");
        let met = ["start_ns", "frame", "culprit"].map(|name| whole("receptions", name));
        (starts, met)
    };
    // The daemon has run for four seconds when the page asks for the first time, after one.
    let mut history = History::default();
    history.add(seconds(1), vec![("a".into(), border(4_000_000_000))]);
    assert_eq!(frames(&history), (vec![0], [vec![10], vec![0], vec![NONE]]));
    // An answer that takes a moment longer does not move them; a clock that began anew does.
    history.add(seconds(2), vec![("a".into(), border(4_900_000_000))]);
    assert_eq!(frames(&history).0, [0]);
    history.add(seconds(9), vec![("a".into(), border(3_500_000_000))]);
    assert_eq!(
        frames(&history),
        (
            vec![5_500_001_000, 8_500_000_000],
            [
                vec![5_500_001_010, 8_500_000_010],
                vec![0, 1],
                vec![NONE, 0]
            ]
        )
    );
}

/// Goal: frames of another program, or broken ones, are refused.
#[test]
fn strange_frames_are_refused() {
    let good = frames::write(&Tables::default(), 1);
    assert_eq!(Frames::read(&good), None, "{good}");
    let run = border(1).frames.unwrap();
    let tables = Tables {
        tables: run.tables,
        ..Tables::default()
    };
    let good = frames::write(&tables, 1);
    assert!(Frames::read(&good).is_some());
    for (from, to) in [
        ("[0,1]", "[0]"),
        ("[0,1]", "[0,\"x\"]"),
        ("\"codes\":[0,1]", "\"codes\":[0,2]"),
        ("\"culprit\"", "\"other\""),
        ("\"now_ns\":1", "\"now_ns\":null"),
        ("{", "["),
    ] {
        let broken = good.replacen(from, to, 1);
        assert_ne!(broken, good);
        assert_eq!(Frames::read(&broken), None, "{broken}");
    }
}
