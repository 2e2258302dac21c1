//! Keys that some variants refuse, and turns.

use chappe_lab::run::Meter;
use chappe_lab::session;
use chappe_results::provenance::Program;

use super::{SYSTEM, TransferBound};

/// The improved variant has no acknowledgements that nodes repeat, so their keys are refused; the paper's variants have.
#[test]
fn keys_of_other_variants_are_refused() {
    let parse = |variant: &str, key: &str| {
        let text = format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[protocol]\nsystem = \"pacifier\"\nvariant = \"{variant}\"\n{key}\n\
             [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"3 kB\"\n"
        );
        chappe_scenario::Plan::parse(&[&SYSTEM], "pair", &text)
    };
    for key in ["ack_overheard_next_hop = 5", "ack_overheard_other = 9"] {
        for variant in ["paper", "more", "tree", "tree-rl"] {
            assert!(parse(variant, key).is_ok(), "{variant}: {key}");
        }
    }
    for (variant, key) in [
        ("improved", "ack_overheard_next_hop = 5"),
        ("improved", "ack_overheard_other = 9"),
        ("improved", "knob = 0.5"),
        ("paper", "prune = 0.1"),
        ("paper", "turns = true"),
    ] {
        let error = parse(variant, key).unwrap_err();
        assert!(error.message.contains("means nothing"), "{key}: {error}");
    }
}

/// The longest payload leaves no room for the slot, which is then said.
#[test]
fn turns_need_four_octets_of_a_frame() {
    let parse = |payload: usize| {
        let text = format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[protocol]\nsystem = \"pacifier\"\nvariant = \"improved\"\nturns = true\n\
             payload = \"{payload} B\"\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"3 kB\"\n"
        );
        chappe_scenario::Plan::parse(&[&SYSTEM], "pair", &text)
    };
    let refused = |payload: usize| parse(payload).err().map(|error| error.message.to_string());
    let longest = (1500..2304)
        .rev()
        .find(|&payload| refused(payload).is_none());
    let longer = refused(longest.unwrap() + 1).unwrap();
    assert!(longer.contains("slot"), "{longer}");
}

/// MORE sends without a pause until it has an acknowledgement, and over 195 km each comes while it sends. So do TREE and TREE+RL where
/// no node forwards. The run says so; the paper's variant goes on to the next batch without it, and a MAC that knows the distance
/// leaves longer gaps.
#[test]
fn acknowledgements_that_come_too_late_are_reported() {
    let told_with = |mac: &str, variant: &str, metres: f64| {
        let text = format!(
            "[network]\npositions = [[\"0 m\", \"0 m\"], [\"{metres} m\", \"0 m\"]]\n[radio]\nprofile = \"long-link\"\n{mac}\n\
             [protocol]\nsystem = \"pacifier\"\nvariant = \"{variant}\"\nbatch = 1\n\
             [[transfer]]\nsource = 1\nreceivers = [0]\nbytes = \"2444 B\"\n[run]\nseed = 4090\nlimit = \"5 s\"\n"
        );
        let plan = chappe_scenario::Plan::parse(&[&SYSTEM], "pair", &text).unwrap();
        let job = chappe_lab::system::Job {
            plan: &plan,
            network: plan.network(4090).unwrap(),
            copies: false,
            pcap: None,
            traces: None,
        };
        let outcome = (crate::PACIFIER.carry)(job, &Meter::default()).unwrap();
        let says = |note: &String| note.contains("'s source leaves gaps");
        (outcome.run.all_complete(), outcome.notes.iter().any(says))
    };
    let told = |variant: &str, metres: f64| told_with("", variant, metres);
    assert_eq!(told("paper", 195_111.5), (true, false));
    for variant in ["more", "tree", "tree-rl"] {
        assert_eq!(told(variant, 195_111.5), (false, true), "{variant}");
        assert_eq!(told(variant, 20_000.0), (true, false), "{variant}");
        let far = told_with("[mac]\ndistance_max = \"196 km\"", variant, 195_111.5);
        assert_eq!(far, (true, false), "{variant}");
    }
}

/// Runs the improved variant over a row of nodes that hear only their neighbours; returns the run.
fn row(turns: bool) -> chappe_results::Run {
    let places: Vec<String> = (0..8)
        .map(|n| format!("[\"{} m\", \"0 m\"]", n * 170))
        .collect();
    let network = format!("positions = [{}]", places.join(", "));
    carried(
        &format!(
            "{network}\n[radio]\nprofile = \"glomosim\"\ntx_power = \"5 dBm\"\nrate = \"2 Mbit/s\""
        ),
        turns,
        "receivers = [4, 7]",
    )
}

/// Runs the improved variant with one transfer from node 0.
fn carried(network: &str, turns: bool, rest: &str) -> chappe_results::Run {
    let text = format!(
        "[network]\n{network}\n[protocol]\n\
         system = \"pacifier\"\nvariant = \"improved\"\nprobing = \"120 s\"\nturns = {turns}\n\
         [[transfer]]\nsource = 0\nbytes = \"400 kB\"\n{rest}\n"
    );
    run_of(&text)
}

/// The run of a scenario.
fn run_of(text: &str) -> chappe_results::Run {
    let plan = chappe_scenario::Plan::parse(&[&SYSTEM], "row", text).unwrap();
    let (program, options) = (Program::unknown("test"), session::Options::default());
    let meter = Meter::default();
    let session = session::run(&[&crate::PACIFIER], &plan, program, options, &meter).unwrap();
    session.document.runs[0].clone()
}

/// Goal: in turns hidden nodes do not destroy each other's frames. Method: on a row of eight nodes, of which those two apart are hidden
/// from each other, the same object by contention and in turns.
#[test]
fn turns_carry_more_than_contention_over_hidden_nodes() {
    let (contention, turns) = (row(false), row(true));
    for run in [&contention, &turns] {
        assert!(run.all_complete() && run.flows.iter().all(|flow| flow.digest_ok));
    }
    let (slow, fast) = (contention.worst_goodput(), turns.worst_goodput());
    assert!(fast > 1.2 * slow, "{fast} in turns, {slow} by contention");
}

/// Goal: a run in turns stands beside a bound that holds for it. Method: on the row of eight nodes by hand, a packet takes seven frames and at most three
/// nodes send at once, so no schedule brings more than three sevenths of the frames that fit, and the bound lies above what turns carry. Where links
/// are ratios without powers, nothing is known of interference, and the run has no bound.
#[test]
fn turns_stand_beside_the_bound_under_interference() {
    let turns = row(true);
    let bound = &turns.bounds[0];
    assert_eq!(bound.name, TransferBound::UNDER_INTERFERENCE);
    let frame_s = 192e-6 + (1549.0 + 36.0) * 8.0 / 2e6;
    let at_most = 3.0 / 7.0 * 1500.0 * 8.0 / frame_s;
    assert!(bound.goodput_bps > turns.worst_goodput(), "{bound:?}");
    assert!(bound.goodput_bps < 1.34 * at_most, "{bound:?} {at_most}");
    assert_eq!(row(false).bounds[0].name, TransferBound::NAME);

    let links: Vec<Vec<f64>> = (0i32..9)
        .map(|a| {
            (0..9)
                .map(|b| f64::from(u8::from((a - b).abs() == 1)) * 0.9)
                .collect()
        })
        .collect();
    let network = format!("links = {links:?}\n[radio]\nrate = \"2 Mbit/s\"");
    let unknown = carried(&network, true, "receivers = [8]");
    assert!(unknown.bounds.is_empty(), "{:?}", unknown.bounds);
}

/// Goal: a member that fails does not stop the others. Method: a row of eight nodes, whose last one is a receiver. Its only relay with
/// turns fails for good; another receiver reaches it too, but over so bad a link that it has no turns.
#[test]
fn members_contend_after_one_with_turns_has_failed() {
    let mut ratios = [[0.0; 9]; 9];
    let mut link = |a: usize, b: usize, ratio: f64| {
        ratios[a][b] = ratio;
        ratios[b][a] = ratio;
    };
    (0..7).for_each(|node| link(node, node + 1, 0.9));
    link(5, 8, 0.9);
    link(8, 7, 0.3);
    let network = format!("links = {ratios:?}\n[radio]\nrate = \"2 Mbit/s\"");
    let rest = "receivers = [7, 8]\n[[fault]]\nat = \"3 s\"\nkind = \"crash\"\nnode = 6";
    let run = carried(&network, true, rest);
    assert!(run.all_complete() && run.flows.iter().all(|flow| flow.digest_ok));
}

/// Goal: a plan leads packets towards their receivers, so that members need not contend in the end. Method: a row of eleven nodes, some 245 m apart, whose
/// source is the second one (the storm's seed 209 with all scenarios in turns). With rings in the plan's flows nodes took others behind them for
/// nearer ones, and receivers lacked packets until members contended after 20 s.
#[test]
fn a_row_is_served_in_turns_to_the_end() {
    let places: Vec<String> = (0..11)
        .map(|n| format!("[\"{:.1} m\", \"0 m\"]", f64::from(n) * 244.72))
        .collect();
    let text = format!(
        "[network]\npositions = [{}]\n[radio]\nprofile = \"glomosim\"\nfading = \"glomosim\"\n\
         [protocol]\nsystem = \"pacifier\"\nvariant = \"improved\"\nlinks = \"true\"\nturns = true\nbatch = 2\npayload = \"57 B\"\n\
         [[transfer]]\nsource = 1\nreceivers = [2, 4, 5, 6, 10]\nbytes = \"18357 B\"\n[run]\nseed = 209\n",
        places.join(", ")
    );
    let run = run_of(&text);
    assert!(run.all_complete() && run.flows.iter().all(|flow| flow.digest_ok));
    assert!(run.simulated_s < 15.0, "{}", run.simulated_s);
}

/// Goal: a long object in turns reaches all receivers. Method: eight segments over two networks of thirty nodes. (On both, relays kept places for the
/// first batches since a relay behind them that leads to no receiver had met no later ones; four receivers and two never got the rest.)
#[test]
fn a_long_object_in_turns_ends() {
    for seed in [30, 37] {
        let text = format!(
            "[network]\ngenerator = \"random\"\nnodes = 30\narea = [\"900 m\", \"900 m\"]\nconnected = 0.2\n\
             [radio]\nprofile = \"glomosim\"\ntx_power = \"4.97 dBm\"\ncarrier_sense = \"-91.59 dBm\"\nrate = \"2 Mbit/s\"\n\
             [protocol]\nsystem = \"pacifier\"\nvariant = \"improved\"\nlinks = \"true\"\nturns = true\nbatch = 2\npayload = \"60 B\"\n\
             [[transfer]]\nreceivers = 6\nbytes = \"30000 B\"\n[run]\nseed = {seed}\nlimit = \"60 s\"\n"
        );
        let run = run_of(&text);
        assert!(run.all_complete(), "seed {seed}");
        assert!(run.flows.iter().all(|flow| flow.digest_ok));
    }
}
