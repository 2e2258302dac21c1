//! A scenario against golden values.

use std::path::Path;

use chappe_lab::run::Meter;
use chappe_lab::session::{self, Options};
use chappe_results::provenance::Program;
use chappe_scenario::plan::{Changes, Plan};

use super::carry::{ACTIVE, ENERGY, ROUNDS, SOURCE_DATA};
use super::*;

/// Goal: any change of a transfer is detected. Method: the tunnel of `examples/` with seed 1, by each variant: frames of the
/// source, rounds, active nodes, bits per second and microjoules. Nothing arrives by PIP: its source sends, and its one path,
/// drawn at random, does not bring it on. After an intended change, review the difference and update the values.
#[test]
fn tunnel_transfers_match_the_golden_values() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p3-line.toml");
    let golden = [
        ("paper", [507, 2, 16, 195_899, 1_726_188]),
        ("pip", [500, 1, 4, 0, 977_902]),
        ("pip-aware", [500, 1, 4, 103_463, 860_274]),
        ("improved", [500, 1, 4, 209_052, 491_265]),
    ];
    let mut all = Vec::new();
    for (variant, _) in golden {
        let set = [format!("protocol.variant={variant}")];
        let plan = Plan::read(&[&SYSTEM], &file, &set, &Changes::default()).unwrap();
        let session = session::run(
            &[&crate::P3_SYSTEM],
            &plan,
            Program::unknown("test"),
            Options::default(),
            &Meter::default(),
        )
        .unwrap();
        let run = &session.document.runs[0];
        assert_eq!(run.all_complete(), variant != "pip", "{variant}");
        let count = |name| run.counter(name);
        let bits = run.mean_goodput() as u64;
        let found = [
            count(SOURCE_DATA),
            count(ROUNDS),
            count(ACTIVE),
            bits,
            count(ENERGY),
        ];
        all.push((variant, found));
    }
    assert_eq!(all, golden);
}

/// Carries the transfer of a seed by the improved variant: whether it is complete, and the attempts.
fn carried(text: &str, seed: u64) -> (bool, u64) {
    let plan = Plan::parse(&[&SYSTEM], "floods", text).unwrap();
    let prepared = prepare(plan.network(seed).unwrap());
    let spec = chappe_lab::carry::RunSpec::plain(&plan, &prepared.network);
    let with = P3::paper(Variant::Improved);
    let run = carry::carry(&with, &prepared, spec, &Meter::default())
        .unwrap()
        .run;
    (run.all_complete(), run.counter(carry::ATTEMPTS))
}

/// Goal: floods need no good link on channel 26. Method: a line of four nodes whose links hardly deliver anything there.
#[test]
fn floods_take_a_channel_that_has_a_way() {
    let mut list = String::from("src,dst,channel,pdr,mean_rssi\n");
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)] {
        for (channel, ratio) in [(15, 1.0), (20, 0.9), (25, 1.0), (26, 0.05)] {
            list += &format!("{from},{to},{channel},{ratio},-70\n");
        }
    }
    let file = std::env::temp_dir().join(format!("chappe-p3-flood-{}.csv", std::process::id()));
    std::fs::write(&file, list).unwrap();
    let text = format!(
        "title = 'nothing on 26'\n[network]\nfile = {:?}\n[protocol]\nsystem = 'p3'\n\
         [[transfer]]\nsource = 3\nreceivers = [0]\nbytes = '10 kB'\n",
        file.display().to_string()
    );
    let found = carried(&text, 1);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(found, (true, 1));
}

/// Goal: a flood passes columns of five nodes that send it at once with equal powers, and more columns than the plan has hops. Method:
/// a corridor of twelve columns under the receiver of chips, with seeds whose first floods failed.
#[test]
fn floods_reach_the_end_of_a_corridor() {
    let mut positions = vec!["['0 m', '6 m']".to_string()];
    for (column, row) in (1..=12).flat_map(|column| (0..5).map(move |row| (column, row))) {
        let x = column * 48 + 4 * (row % 2);
        positions.push(format!("['{x} m', '{} m']", 3 * row));
    }
    positions.push(format!("['{} m', '6 m']", 13 * 48));
    let text = format!(
        "title = 'corridor'\n[network]\npositions = [{}]\n[radio]\nprofile = 'cc2420-chips'\n[protocol]\nsystem = 'p3'\n\
         [[transfer]]\nsource = 61\nreceivers = [0]\nbytes = '10 kB'\n",
        positions.join(", ")
    );
    for seed in [990_004, 990_011, 990_012, 990_014] {
        let (complete, attempts) = carried(&text, seed);
        assert!(
            complete && attempts <= 2,
            "seed {seed}: {complete}, {attempts} attempts"
        );
    }
}

/// Goal: a variant that chooses its channels is not refused where channel 26 has no path. Method: a line of four nodes whose
/// links work on channels 15 and 20 one way or both; on 26 only the flood's way, too weak for the paper's paths.
#[test]
fn variants_that_choose_channels_need_no_path_on_channel_26() {
    let mut list = String::from("src,dst,channel,pdr,mean_rssi\n");
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)] {
        for (channel, ratio) in [(15, 1.0), (20, 1.0), (25, 1.0), (26, 0.8)] {
            list += &format!("{from},{to},{channel},{ratio},-70\n");
        }
    }
    let file = std::env::temp_dir().join(format!("chappe-p3-{}.csv", std::process::id()));
    std::fs::write(&file, list).unwrap();
    let text = format!(
        "title = 'no path on 26'\n[network]\nfile = {:?}\n[protocol]\nsystem = 'p3'\n\
         [[transfer]]\nsource = 3\nreceivers = [0]\nbytes = '10 kB'\n",
        file.display().to_string()
    );
    let plan = Plan::parse(&[&SYSTEM], "no-path", &text).unwrap();
    let prepared = prepare(plan.network(1).unwrap());
    std::fs::remove_file(&file).unwrap();
    for (variant, served) in [
        (Variant::Paper, false),
        (Variant::Pip, false),
        (Variant::PipAware, true),
        (Variant::Improved, true),
    ] {
        let with = P3::paper(variant);
        let found = route(&with, &prepared.learn(&with), (1, 3, 0), 85).unwrap();
        assert_eq!(found.is_some(), served, "{variant:?}");
    }
}

/// The tunnel of `examples/` with the improved variant, faults at its end, and another profile or seed.
fn tunnel(more: &str, set: &[&str]) -> chappe_results::Document {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p3-line.toml");
    let text = std::fs::read_to_string(file).unwrap() + more;
    let text = text.replace("variant = \"paper\"", "variant = \"improved\"");
    let text = set
        .iter()
        .fold(text, |text, line| match line.split_once(" = ") {
            Some(("profile", name)) => text.replace("\"cc2420-chips\"", name),
            Some(("seed", seed)) => text.replace("seed = 1", &format!("seed = {seed}")),
            _ => text,
        });
    let plan = Plan::parse(&[&SYSTEM], "tunnel", &text).unwrap();
    let session = session::run(
        &[&crate::P3_SYSTEM],
        &plan,
        Program::unknown("test"),
        Options::default(),
        &Meter::default(),
    );
    session.unwrap().document
}

/// Goal: the gateway goes on where an end restarts. Method: source or destination fails before the flood reaches it, in
/// mid-transfer, and near the end; before, all of these ended incomplete.
#[test]
fn transfers_go_on_after_an_end_restarts() {
    for (node, at, back) in [
        (36, "1 ms", "700 ms"),
        (36, "900 ms", "1300 ms"),
        (36, "2 s", "3 s"),
        (0, "900 ms", "1 s"),
        (0, "900 ms", "4 s"),
        (0, "2 s", "2100 ms"),
    ] {
        let fault =
            |at, kind| format!("\n[[fault]]\nat = \"{at}\"\nkind = \"{kind}\"\nnode = {node}\n");
        let document = tunnel(&(fault(at, "crash") + &fault(back, "restart")), &[]);
        let run = &document.runs[0];
        assert!(run.all_complete(), "node {node} at {at}: {run:?}");
        assert!(
            run.flows.iter().all(|flow| flow.digest_ok),
            "node {node} at {at}"
        );
    }
}

/// Goal: links may lose frames after they were measured. Method: from the start a third of what the source sends is lost on
/// each of its links, or all of it. Before, such a fault was refused.
#[test]
fn links_change_after_the_measurement() {
    let lost = |share: f64| -> String {
        let step = |node: usize| {
            format!(
                "\n[[fault]]\nat = \"0 s\"\nkind = \"link-loss\"\nlink = [36, {node}]\nframe_loss = {share}\n"
            )
        };
        (0..36).map(step).collect()
    };
    let sent = |more: &str| {
        let run = tunnel(more, &[]).runs[0].clone();
        (
            run.all_complete(),
            run.flows[0].digest_ok,
            run.counter(SOURCE_DATA),
        )
    };
    let (.., without) = sent("");
    let (complete, right, more) = sent(&lost(0.33));
    assert!(complete && right && more > without, "{more} {without}");
    assert!(!sent(&lost(1.0)).0);
}

/// Goal: the gateway finds the links that are left. Method: after the measurement the source reaches only its two neighbours in
/// the tunnel, over no channel any other node. Before, the gateway doubted the failed groups' relays instead of their links, and
/// gave up.
#[test]
fn the_gateway_learns_which_links_failed() {
    let dead: String = (0..34)
        .map(|node| {
            format!(
                "\n[[fault]]\nat = \"0 s\"\nkind = \"link-loss\"\nlink = [36, {node}]\nframe_loss = 1.0\n"
            )
        })
        .collect();
    for seed in 1..=4 {
        let run = tunnel(&dead, &[&format!("seed = {seed}")]).runs[0].clone();
        assert!(
            run.all_complete() && run.flows[0].digest_ok,
            "{seed}: {run:?}"
        );
    }
}

/// Goal: a source sends its frames no closer than its radio can. Method: the tunnel under profiles with another gap; before, three
/// groups had 16 us under each of them. The transfer gets nine tenths of what the gap leaves.
#[test]
fn the_source_keeps_the_gap_of_its_radio() {
    // A frame of 125 octets and the gap for 118 octets: 4256 us and 16 or 192.
    for (name, expected) in [
        ("cc2420-indoor", 220_973),
        ("cc2420-chips", 212_230),
        ("nrf52840-chips", 220_973),
    ] {
        let radio = chappe_sim::Profile::named(name).unwrap();
        let ceiling = P3::paper(Variant::Improved).on(&radio).ceiling_bps();
        assert!(
            (ceiling - f64::from(expected)).abs() < 1.0,
            "{name}: {ceiling}"
        );
        let run = tunnel("", &[&format!("profile = \"{name}\"")]).runs[0].clone();
        assert!(run.all_complete() && run.flows[0].digest_ok, "{name}");
        let share = run.mean_goodput() / ceiling;
        assert!((0.9..1.0).contains(&share), "{name}: {share}");
    }
}

/// Goal: a lost flood is repeated. Method: the seeds on which the source slept through the only flood and nothing arrived.
#[test]
fn a_lost_flood_is_repeated() {
    for seed in ["36", "109"] {
        let seed = format!("seed = {seed}");
        let document = tunnel("", &["profile = \"cc2420-symbol\"", &seed]);
        assert!(document.runs[0].all_complete(), "{seed}");
    }
}
