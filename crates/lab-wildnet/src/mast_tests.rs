//! Sites of several radios: a star of four masts and a chain of five, with the files in `examples/`.
//!
//! Of two radios of a mast, one cannot receive while the other sends (2.3.3, 3.2). Traces show whether any does.

use chappe_core::Seed;
use chappe_lab::run::Meter;
use chappe_lab::system::{Job, settings};
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Heard, Recorder, Sent};

use super::SYSTEM;
use crate::hosts::{BulkApp, HostMemory};
use crate::layout::Layout;
use crate::masts::{Masts, Pair};
use crate::plan::WildNet;
use crate::running_masts::RunningMasts;

const STAR: &str = include_str!("../../../examples/wildnet-star.toml");
const CHAIN: &str = include_str!("../../../examples/wildnet-chain.toml");

fn plan(text: &str, variant: &str) -> Plan {
    let variant = format!("variant = \"{variant}\"");
    let text = text.replace("variant = \"improved\"", &variant);
    Plan::parse(&[&SYSTEM], "example", &text).unwrap()
}

fn run(plan: &Plan, seed: u64) -> Run {
    let job = Job {
        plan,
        network: plan.network(seed).unwrap(),
        copies: false,
        pcap: None,
        traces: None,
    };
    (crate::WILDNET.carry)(job, &Meter::default()).unwrap().run
}

/// Frames on their way to a radio while another radio of its mast sends.
struct Crossings {
    layout: Layout,
    /// What each radio has sent: from when to when.
    sent: Vec<Vec<(AirTime, AirTime)>>,
    since: AirTime,
    /// Frames from the peers, how many of them crossed one of the same mast, and how many of these were lost.
    heard: u64,
    crossed: u64,
    spoilt: u64,
}

impl Recorder for Crossings {
    fn sent(&mut self, frame: &Sent<'_>) {
        let end = frame.at + frame.mode.airtime(frame.psdu.len() + 4);
        self.sent[frame.node].push((frame.at, end));
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if frame.from != frame.node ^ 1 || frame.started < self.since {
            return;
        }
        self.heard += 1;
        let end = frame.started + frame.mode.airtime(frame.psdu.len() + 4);
        let mast = self.layout.mast_of(frame.node);
        let others = self.layout.radios_at(mast).into_iter();
        let crossed = others.filter(|&other| other != frame.node).any(|other| {
            // A slot has some thirty frames at most, and acknowledgements of 802.11 are short.
            let recent = self.sent[other].iter().rev().take(64);
            let overlaps = |(from, to): &(AirTime, AirTime)| *from < end && *to > frame.started;
            recent.copied().any(|sent| overlaps(&sent))
        });
        self.crossed += u64::from(crossed);
        self.spoilt += u64::from(crossed && frame.outcome.is_err());
    }
}

/// Runs the masts of a file for ten seconds with endless data over each link both ways. Returns what the traces show from the
/// third second on, and octets received.
fn trace(text: &str, variant: &str) -> (Crossings, f64) {
    let plan = plan(text, variant);
    let with: &WildNet = settings(&plan).unwrap();
    let links = with.layout.links().iter();
    let pairs = links.map(|&(a, b)| Pair {
        masts: [a, b],
        sends: [true, true],
    });
    let masts: Masts = with.masts(&plan.profile, pairs.collect());
    let crossings = Crossings {
        layout: with.layout.clone(),
        sent: vec![Vec::new(); masts.radios()],
        since: AirTime::from_millis(3_000),
        heard: 0,
        crossed: 0,
        spoilt: 0,
    };
    let mut memory = HostMemory::new(&masts.numbers(), masts.tcp);
    let endless = |_| BulkApp {
        to_send: u64::MAX,
        ..BulkApp::default()
    };
    let mut running =
        RunningMasts::launch(&masts, &mut memory, Seed(1), endless, crossings).unwrap();
    running.advance_to(AirTime::from_millis(3_000));
    let before = running.received();
    running.advance_to(AirTime::from_millis(13_000));
    let octets = running.received() - before;
    let (_, crossings, _) = running.simulator.into_parts();
    (crossings, octets)
}

/// In slots no radio of a mast is sent to while another sends, on a star as on a chain. Under 802.11 many are, and most of these frames
/// are lost. So 802.11 carries least, and the improved variant most.
#[test]
fn radios_of_a_mast_send_together_and_listen_together() {
    for (what, text) in [("star", STAR), ("chain", CHAIN)] {
        let all = ["csma", "paper", "improved"].map(|variant| {
            let (seen, octets) = trace(text, variant);
            let Crossings {
                heard,
                crossed,
                spoilt,
                ..
            } = seen;
            let rate = octets * 8.0 / 10.0 / 1e6;
            println!("{what}, {variant}: {rate:.2} Mbit/s, {heard} frames, {crossed} crossed, {spoilt} of these lost");
            (seen, rate)
        });
        let [csma, paper, improved] = &all;
        for (seen, _) in [paper, improved] {
            assert!(seen.heard > 3_000 && seen.crossed == 0, "{what}");
        }
        assert!(csma.0.crossed > csma.0.heard / 20, "{what}");
        assert!(csma.0.spoilt > csma.0.crossed / 2, "{what}");
        assert!(csma.1 < paper.1 && paper.1 < improved.1, "{what}");
    }
}

/// The objects of both files arrive intact with every variant, at less than their bound. Hosts stand at masts that forward for others, and
/// a village's packets cross the town.
#[test]
fn objects_arrive_over_a_star_and_a_chain() {
    for (what, text) in [("star", STAR), ("chain", CHAIN)] {
        for variant in ["csma", "snoop", "paper", "improved"] {
            let plan = plan(text, variant);
            for seed in 1..=3 {
                let run = run(&plan, seed);
                for flow in &run.flows {
                    let whole = flow.complete && flow.digest_ok;
                    assert!(whole, "{what}, {variant}, seed {seed}: {flow:?}");
                }
                assert!(run.bounds.iter().all(|bound| bound.fraction < 1.0));
                let rates = run.flows.iter().map(|flow| flow.goodput_bps / 1e3);
                let rates: Vec<f64> = rates.map(f64::round).collect();
                println!("{what}, {variant}, {seed}: {rates:?} kbit/s");
            }
        }
    }
}

/// The town's mast restarts: all its radios start over, and every file arrives.
#[test]
fn a_star_survives_the_restart_of_its_middle() {
    let fault = "[[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = 0\n\
        [[fault]]\nat = \"2 s\"\nkind = \"restart\"\nnode = 0\n\
        [[fault]]\nat = \"1.5 s\"\nkind = \"link-loss\"\nlink = [3, 0]\nframe_loss = 0.5\n";
    for variant in ["csma", "paper", "improved"] {
        let run = run(&plan(&format!("{STAR}{fault}"), variant), 1);
        let whole = run.flows.iter().all(|flow| flow.complete && flow.digest_ok);
        assert!(whole, "{variant}: {:?}", run.flows);
        assert_eq!(run.counters["mast_restarts"], 1);
        if variant != "csma" {
            assert_eq!(run.counters["peer_restarts_noticed"], 3, "{variant}");
        }
    }
}
