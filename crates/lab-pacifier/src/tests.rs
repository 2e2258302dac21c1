//! Keys that some variants refuse, and turns.

use chappe_lab::run::Meter;
use chappe_lab::session;
use chappe_results::provenance::Program;

use super::SYSTEM;

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

/// Runs the improved variant over a row of nodes that hear only their neighbours; returns the run.
fn row(turns: bool) -> chappe_results::Run {
    spaced(170, turns, "")
}

/// The same with nodes that are `apart` metres from the next, and with faults.
fn spaced(apart: u32, turns: bool, faults: &str) -> chappe_results::Run {
    let places: Vec<String> = (0..8)
        .map(|n| format!("[\"{} m\", \"0 m\"]", n * apart))
        .collect();
    let text = format!(
        "[network]\npositions = [{}]\n[radio]\nprofile = \"glomosim\"\ntx_power = \"5 dBm\"\nrate = \"2 Mbit/s\"\n[protocol]\n\
         system = \"pacifier\"\nvariant = \"improved\"\nprobing = \"120 s\"\nturns = {turns}\n\
         [[transfer]]\nsource = 0\nreceivers = [4, 7]\nbytes = \"400 kB\"\n{faults}",
        places.join(", ")
    );
    let plan = chappe_scenario::Plan::parse(&[&SYSTEM], "row", &text).unwrap();
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

/// Goal: a member that fails does not stop the others, although its turns go unused. Method: on a row whose nodes also hear those two
/// apart, one in the middle fails for good while the object is under way.
#[test]
fn turns_survive_a_member_that_fails() {
    let fails = "[[fault]]\nat = \"3 s\"\nkind = \"crash\"\nnode = 3\n";
    let run = spaced(120, true, fails);
    assert!(run.all_complete() && run.flows.iter().all(|flow| flow.digest_ok));
}
