use chappe_lab::run::Meter;
use chappe_lab::system::Job;
use chappe_scenario::Plan;

use super::*;

const LINK: &str = "[network]\npositions = [[\"0 km\", \"0 km\"], [\"60 km\", \"0 km\"]]\n";
const FORWARD: &str = "[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"200 kB\"\n";

fn plan(
    network: &str,
    protocol: &str,
    transfers: &str,
) -> Result<Plan, chappe_scenario::InputError> {
    let text = format!("{network}[protocol]\nsystem = \"wildnet\"\n{protocol}\n{transfers}");
    Plan::parse(&[&SYSTEM], "test", &text)
}

fn run(plan: &Plan) -> chappe_results::Run {
    run_seed(plan, 1)
}

fn run_seed(plan: &Plan, seed: u64) -> chappe_results::Run {
    let job = Job {
        plan,
        network: plan.network(seed).unwrap(),
        copies: true,
        pcap: None,
        traces: None,
    };
    let outcome = (crate::WILDNET.carry)(job, &Meter::default()).unwrap();
    for (copy, flow) in outcome.copies.iter().zip(&outcome.run.flows) {
        let octets = copy.as_ref().map_or(0, Vec::len);
        assert_eq!(octets as u64, flow.delivered_bytes);
    }
    outcome.run
}

/// Every variant delivers an object intact at 2 % loss, even 2P, which has no retransmissions and loses markers. None exceeds
/// the bound, and the improved variant is faster than the others with slots.
#[test]
fn every_variant_delivers_an_object() {
    let goodput = |variant: &str| {
        let protocol = format!("variant = \"{variant}\"\nframe_loss = 0.02");
        let run = run(&plan(LINK, &protocol, FORWARD).unwrap());
        let flow = &run.flows[0];
        assert!(flow.complete && flow.digest_ok, "{variant}: {flow:?}");
        assert!(run.bounds[0].fraction < 1.0, "{variant}");
        println!("{variant}: {:.2} Mbit/s", flow.goodput_bps / 1e6);
        flow.goodput_bps
    };
    let [paper, _, _, markers, ours] = ["paper", "csma", "snoop", "2p", "improved"].map(goodput);
    assert!(ours > paper && paper > markers, "{ours} {paper} {markers}");
}

/// `radio.carrier_sense` acts where nodes contend for the air, and is refused where they send in slots.
#[test]
fn carrier_sense_acts_or_is_refused() {
    let deaf = "[radio]\ncarrier_sense = \"-20 dBm\"\n";
    let both = format!("{FORWARD}[[transfer]]\nsource = 1\nreceivers = [0]\nbytes = \"200 kB\"\n");
    for variant in ["csma", "snoop"] {
        let protocol = format!("variant = \"{variant}\"");
        let heard = run(&plan(LINK, &protocol, &both).unwrap());
        let unheard = run(&plan(LINK, &protocol, &format!("{both}{deaf}")).unwrap());
        assert_ne!(heard.digest, unheard.digest, "{variant}");
    }
    for variant in ["paper", "2p", "improved"] {
        let protocol = format!("variant = \"{variant}\"");
        let error = plan(LINK, &protocol, &format!("{both}{deaf}")).unwrap_err();
        assert!(
            error.message.contains("at planned times"),
            "{variant}: {error:?}"
        );
    }
}

/// An object that fits the send buffer arrives although the handshake loses segments: the sender must not close a connection
/// that is not open yet.
#[test]
fn small_objects_survive_lost_handshakes() {
    let small = "[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n";
    for variant in ["paper", "csma", "snoop", "2p", "improved"] {
        let protocol = format!("variant = \"{variant}\"\nframe_loss = 0.5");
        let plan = plan(LINK, &protocol, small).unwrap();
        for seed in 1..=12 {
            let run = run_seed(&plan, seed);
            let flow = &run.flows[0];
            assert!(
                flow.complete && flow.digest_ok,
                "{variant} {seed}: {flow:?}"
            );
        }
    }
}

/// Objects of which one or both fit the send buffer arrive both ways, and neither exceeds the bound. Before `serve` waited for the
/// handshake, none of 8 kB arrived; and the bound took a short way back for half of the octets.
#[test]
fn small_objects_arrive_both_ways() {
    let transfer = |from, to, octets: &str| {
        format!("[[transfer]]\nsource = {from}\nreceivers = [{to}]\nbytes = \"{octets}\"\n")
    };
    for variant in ["paper", "csma", "snoop", "2p", "improved"] {
        for (out, back) in [("8 kB", "1 MB"), ("200 kB", "8 kB"), ("8 kB", "8 kB")] {
            // 2P has no retransmissions, so only TCP repairs what it loses.
            let loss = if variant == "2p" { 0.02 } else { 0.1 };
            let protocol = format!("variant = \"{variant}\"\nframe_loss = {loss}");
            let transfers = transfer(0, 1, out) + &transfer(1, 0, back);
            let plan = plan(LINK, &protocol, &transfers).unwrap();
            for seed in 1..=3 {
                let run = run_seed(&plan, seed);
                for flow in &run.flows {
                    let whole = flow.complete && flow.digest_ok;
                    assert!(whole, "{variant}, {out} and {back}, seed {seed}: {flow:?}");
                }
                assert!(run.bounds.iter().all(|bound| bound.fraction < 1.0));
            }
        }
    }
}

/// Three hops on one channel carry an object in each direction at the same time.
#[test]
fn three_hops_carry_objects_both_ways() {
    let network = "[network]\npositions = [[\"0 km\", \"0 km\"], [\"25 km\", \"14 km\"], [\"50 km\", \"0 km\"], [\"75 km\", \"14 km\"]]\n";
    let transfer = |from, to| {
        format!("[[transfer]]\nsource = {from}\nreceivers = [{to}]\nbytes = \"100 kB\"\n")
    };
    let transfers = transfer(3, 0) + &transfer(0, 3);
    let run = run(&plan(network, "variant = \"improved\"", &transfers).unwrap());
    assert_eq!(run.flows.len(), 2);
    for flow in &run.flows {
        assert!(flow.complete && flow.digest_ok, "{flow:?}");
    }
    assert_eq!((run.flows[0].source, run.flows[0].sink), (3, 0));
}

/// A fault after the end of the run changed nothing, and is reported.
#[test]
fn late_faults_are_reported() {
    let fault = |at: &str| {
        format!("[[fault]]\nat = \"{at}\"\nkind = \"link-loss\"\nframe_loss = 0.1\nlink = [0, 1]\n")
    };
    let notes = |faults: &str| {
        let plan = plan(LINK, "", &format!("{FORWARD}{faults}")).unwrap();
        let job = Job {
            traces: None,
            plan: &plan,
            network: plan.network(1).unwrap(),
            copies: false,
            pcap: None,
        };
        (crate::WILDNET.carry)(job, &Meter::default())
            .unwrap()
            .notes
    };
    assert_eq!(notes(&fault("1 ms")), [""; 0]);
    let late = notes(&fault("900 s"));
    assert!(
        late.len() == 1 && late[0].contains("after the end"),
        "{late:?}"
    );
}

/// Scenarios that are impossible for masts are refused with the reason.
#[test]
fn impossible_scenarios_are_refused() {
    let grid = "[network]\ngenerator = \"line\"\nnodes = 2\nspacing = \"60 km\"\n";
    let three = "[network]\npositions = [[\"0 km\", \"0 km\"], [\"9 km\", \"5 km\"], [\"18 km\", \"0 km\"]]\n";
    let twice = "[network]\npositions = [[\"0 km\", \"0 km\"], [\"9 km\", \"5 km\"], [\"0 km\", \"0 km\"]]\n";
    for (network, protocol, transfers, message) in [
        (grid, "", FORWARD, "need positions"),
        (
            three,
            "",
            "[[transfer]]\nsource = 1\nreceivers = [0, 2]\nbytes = \"1 kB\"\n",
            "from one mast to one other",
        ),
        (
            three,
            "links = [[0, 1], [1, 3]]",
            FORWARD,
            "there are 3 masts",
        ),
        (
            three,
            "links = [[0, 1], [2, 2]]",
            FORWARD,
            "needs two masts",
        ),
        (three, "links = [[0, 1], [1, 0]]", FORWARD, "closes a ring"),
        (
            three,
            "links = [[0, 1], [1, 2], [2, 0]]",
            FORWARD,
            "closes a ring",
        ),
        (
            three,
            "links = [[0, 1]]",
            FORWARD,
            "no way leads from mast 0 to mast 2",
        ),
        (
            three,
            "links = []",
            FORWARD,
            "no way leads from mast 0 to mast 1",
        ),
        (twice, "", FORWARD, "masts 0 and 2 stand at the same place"),
        (
            LINK,
            "frame_loss = 1.0",
            FORWARD,
            "cannot lose a share of 1",
        ),
        (LINK, "", &FORWARD.repeat(65), "64 transfers at most"),
        (LINK, "slot = \"1 ms\"", FORWARD, "slots of 1 ms"),
        (
            LINK,
            "",
            "[[transfer]]\nsource = 0\nreceivers = [5]\nbytes = \"1 kB\"\n",
            "no node 5",
        ),
        (
            "[network]\npositions = [[\"0 km\", \"0 km\"]]\n",
            "",
            FORWARD,
            "",
        ),
        (
            "[network]\npositions = []\n",
            "links = [[0, 1]]",
            FORWARD,
            "",
        ),
        (LINK, "frame_retries = 300", FORWARD, "300 retries"),
        (
            LINK,
            "payload = \"100 B\"",
            FORWARD,
            "unknown key `payload`",
        ),
    ] {
        let error = plan(network, protocol, transfers).unwrap_err();
        assert!(error.message.contains(message), "{message}: {error}");
    }
}

/// The most retries that a plan accepts run: the MAC counts attempts, one more, in an octet.
#[test]
fn the_most_retries_run() {
    let protocol = "variant = \"csma\"\nframe_retries = 255";
    let plan = plan(LINK, protocol, FORWARD).unwrap();
    assert!(run(&plan).flows[0].complete);
}

/// What a run does over shadowed links is what its network shows: each of these lines has good links, and carries an octet.
#[test]
fn runs_have_the_shadowing_of_their_network() {
    let network = "[network]\npositions = [[\"0 m\", \"0 m\"], [\"156.7 m\", \"0 m\"], [\"313.5 m\", \"0 m\"]]\n[radio]\nprofile = \"ns2-threshold\"\nshadowing = \"5 dB\"\n";
    let transfer =
        "[[transfer]]\nsource = 0\nreceivers = [2]\nbytes = \"1 B\"\n[run]\nlimit = \"60 s\"\n";
    let plan = plan(network, "variant = \"paper\"", transfer).unwrap();
    let mut judged = 0;
    for seed in 1490..1510 {
        let Ok(network) = plan.network(seed) else {
            continue;
        };
        let share =
            |a: usize, b: usize| network.delivery[3 * a + b].min(network.delivery[3 * b + a]);
        if share(0, 1).min(share(1, 2)) > 0.9 {
            judged += 1;
            assert!(run_seed(&plan, seed).flows[0].complete, "{seed}");
        }
    }
    assert!(judged > 3, "{judged}");
}

/// Three dishes of one mast look in the same direction, so what it sends at once is lost at all three ends. 2P repeats nothing and
/// says what it lost; with repetitions the octet arrives.
#[test]
fn losses_of_links_in_one_direction_are_reported() {
    let network = "[network]\npositions = [[\"0 m\", \"0 m\"], [\"17939.2 m\", \"0 m\"], [\"35878.4 m\", \"0 m\"], [\"53817.6 m\", \"0 m\"]]\n";
    let transfer = "[[transfer]]\nsource = 3\nreceivers = [2]\nbytes = \"1 B\"\n[[transfer]]\nsource = 3\nreceivers = [0]\nbytes = \"6 kB\"\n[run]\nlimit = \"60 s\"\n";
    let outcome = |variant: &str| {
        let protocol = format!("variant = \"{variant}\"\nlinks = [[0, 1], [0, 2], [0, 3]]");
        let plan = plan(network, &protocol, transfer).unwrap();
        let job = Job {
            plan: &plan,
            network: plan.network(1662).unwrap(),
            copies: false,
            pcap: None,
            traces: None,
        };
        (crate::WILDNET.carry)(job, &Meter::default()).unwrap()
    };
    let lost = outcome("2p");
    assert!(!lost.run.all_complete());
    for told in [
        "2P repeats nothing: ",
        "from mast 0 the dishes to 1 and 2 look the same way",
    ] {
        let says = |note: &String| note.contains(told);
        assert!(lost.notes.iter().any(says), "{:?}", lost.notes);
    }
    let repaired = outcome("improved");
    assert!(repaired.run.all_complete(), "{:?}", repaired.notes);
}

/// A packet is lost for good if its frame and all retransmissions are.
#[test]
fn losses_for_good_follow_from_the_retransmissions() {
    for (variant, keys, radios, expected) in [
        ("2p", "", 0.0, 0.3),
        ("2p", "", 0.5, 0.65),
        ("csma", "", 0.0, 0.027),
        ("snoop", "frame_retries = 0", 0.5, 0.65),
        ("paper", "", 0.5, 0.0),
        ("improved", "frame_retries = 1", 0.0, 0.09),
        // The most that a plan accepts.
        ("csma", "frame_retries = 255", 0.0, 0.0),
    ] {
        let protocol = format!("variant = \"{variant}\"\nframe_loss = 0.3\n{keys}");
        let plan = plan(LINK, &protocol, FORWARD).unwrap();
        let loss = plan.settings.unrepaired(radios);
        assert!((loss - expected).abs() < 1e-12, "{variant}: {loss}");
    }
}
