//! `[[fault]]` along lines of masts: data arrives intact, once and in order, and counters report the faults.

use chappe_core::{Duration, Seed};
use chappe_lab::run::Meter;
use chappe_lab::system::Job;
use chappe_results::Run;
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Fault, LinkLoss, LinkTrace, LossLaw};

use super::SYSTEM;
use crate::faults::MastFaults;
use crate::hosts::{BulkApp, HostMemory};
use crate::layout::Layout;
use crate::masts::{Hop, Masts};
use crate::running_masts::RunningMasts;
use crate::scheme::{Load, Scheme};
use crate::serial::Serial;
use crate::station::Station;
use crate::traffic::Traffic;

const LINE: &str = "[network]\npositions = [[\"0 km\", \"0 km\"], [\"25 km\", \"14 km\"], [\"50 km\", \"0 km\"]]\n\
    [protocol]\nsystem = \"wildnet\"\n";
const FORWARD: &str = "[[transfer]]\nsource = 0\nreceivers = [2]\nbytes = \"600 kB\"\n";
const REVERSE: &str = "[[transfer]]\nsource = 2\nreceivers = [0]\nbytes = \"600 kB\"\n";

fn seconds(at: f64) -> AirTime {
    AirTime::from_nanos((at * 1e9) as u64)
}

/// The loss of one direction in steps of (time in s, share lost).
fn steps(from: usize, to: usize, steps: &[(f64, f64)]) -> LinkLoss {
    let steps = steps
        .iter()
        .map(|(at, loss)| (seconds(*at), 1.0 - loss))
        .collect();
    LinkLoss {
        from,
        to,
        law: LossLaw::Trace(LinkTrace::Steps(steps)),
        unheard: 0.0,
    }
}

/// Adds a crash and a restart of one of three masts, at times in s.
fn outage(faults: &mut MastFaults, mast: usize, from: f64, to: f64) {
    let radios = Layout::line(2).radios_at(mast).into_iter();
    faults
        .events
        .extend(radios.map(|radio| (seconds(from), Fault::Crash(radio))));
    faults.restarts.push((seconds(to), mast));
}

/// Runs 1 Mbit/s of numbered datagrams over two hops. Returns what the far end received, the number sent, and how often links
/// noticed a restart of their peer.
fn stream(scheme: Scheme, faults: MastFaults, seed: u64, time: u64) -> (Serial, u64, u64) {
    let masts = Masts {
        gain: Masts::EMULATED,
        faults,
        ..Masts::line(
            scheme,
            vec![Hop::new(20.0, 0.1); 2],
            Load::Steady(1e6),
            Duration::from_secs(time),
        )
    };
    let mut memory = HostMemory::new(&masts.numbers(), masts.tcp);
    let app = |_| BulkApp::default();
    let mut run = RunningMasts::launch(&masts, &mut memory, Seed(seed), app, ()).unwrap();
    run.advance_to(seconds(2.0 + time as f64));
    let udp = |radio: usize| match run.simulator.node(radio).station.traffic() {
        Traffic::Udp(udp) => udp.serial.clone(),
        _ => unreachable!("hosts stand at the ends"),
    };
    let noticed = (0..4).map(|radio| match &run.simulator.node(radio).station {
        Station::Slots(slots) => slots.radio.link.counters().peer_restarts,
        Station::Plain(_) => 0,
    });
    (udp(3), udp(0).sent(), noticed.sum())
}

/// Asserts that no datagram is corrupt, duplicate or out of order. Returns the share received.
fn check(what: &str, (sink, sent, noticed): &(Serial, u64, u64)) -> f64 {
    let share = sink.received() as f64 / *sent as f64;
    println!("{what}: {share:.3} of {sent} received, {noticed} restarts noticed");
    let wrong = (sink.wrong, sink.doubled, sink.disordered);
    assert_eq!(wrong, (0, 0, 0), "{what}: corrupt, duplicate, out of order");
    share
}

/// Goal: whichever mast restarts, after any time, no datagram is corrupt, duplicate or out of order, and the stream continues.
#[test]
fn restarted_masts_corrupt_nothing() {
    for scheme in [Scheme::WILDNET, Scheme::IMPROVED] {
        for mast in 0..3 {
            for (seed, away) in [(1, 0.05), (2, 0.4), (3, 5.0)] {
                let mut faults = MastFaults::default();
                outage(&mut faults, mast, 8.0, 8.0 + away);
                let seen = stream(scheme, faults, seed, 20);
                let share = check(&format!("mast {mast} away for {away} s"), &seen);
                // Lost are the time away, the queues, and at most two seconds until slots synchronise again.
                assert!(share > 1.0 - (away + 2.0) / 22.0, "{share}");
                assert!(seen.2 >= 1, "no link noticed the restart");
            }
        }
    }
}

/// Goal: the same at any phase of a cycle. A mast that delivered packets and crashed before it acknowledged them does not accept
/// them again after its restart.
#[test]
fn a_crash_at_any_phase_duplicates_nothing() {
    for scheme in [Scheme::WILDNET, Scheme::IMPROVED] {
        for moment in 0_u8..24 {
            let mut faults = MastFaults::default();
            let down = 3.0 + 0.0037 * f64::from(moment);
            outage(&mut faults, 1 + usize::from(moment % 2), down, down + 0.03);
            let seen = stream(scheme, faults, 100 + u64::from(moment), 5);
            check(&format!("down at {down:.4} s"), &seen);
        }
    }
}

/// Goal: loss that rises to 60 % and falls again, and a direction that is dead for two seconds, only cost time.
#[test]
fn temporary_loss_only_delays() {
    let storm = [(0.0, 0.0), (5.0, 0.6), (10.0, 0.0)];
    let dead = [(0.0, 0.1), (6.0, 1.0), (8.0, 0.1)];
    for scheme in [Scheme::WILDNET, Scheme::IMPROVED] {
        for (what, losses) in [
            ("60 % forward", vec![steps(0, 1, &storm)]),
            (
                "60 % both ways",
                vec![steps(0, 1, &storm), steps(1, 0, &storm)],
            ),
            ("forward direction dead", vec![steps(2, 3, &dead)]),
            ("reverse direction dead", vec![steps(3, 2, &dead)]),
        ] {
            let faults = MastFaults {
                losses,
                ..MastFaults::default()
            };
            let seen = stream(scheme, faults, 4, 20);
            let share = check(what, &seen);
            // Packets still queued at the end have not arrived, and the full queue of a relay drops further ones.
            assert!(share > 0.85, "{share}");
            assert_eq!(seen.2, 0, "no mast restarted");
        }
    }
}

fn run(text: &str) -> Run {
    let plan = Plan::parse(&[&SYSTEM], "test", text).unwrap();
    let job = Job {
        plan: &plan,
        network: plan.network(1).unwrap(),
        copies: false,
        pcap: None,
        traces: None,
    };
    (crate::WILDNET.carry)(job, &Meter::default()).unwrap().run
}

/// Objects both ways by TCP survive bursts of loss, a dead direction, a cut link, a restart of the middle mast and a drifting clock.
/// Counters report the faults, whichever end of the line sends first.
#[test]
fn objects_survive_faults() {
    let faults = "[[fault]]\nat = \"0.3 s\"\nkind = \"link-loss\"\nlink = [0, 1]\nframe_loss = 0.6\n\
        [[fault]]\nat = \"0.6 s\"\nkind = \"link-loss\"\nlink = [0, 1]\nframe_loss = 0.0\n\
        [[fault]]\nat = \"0.7 s\"\nkind = \"link-loss\"\nlink = [2, 1]\nframe_loss = 1.0\n\
        [[fault]]\nat = \"1.0 s\"\nkind = \"link-loss\"\nlink = [2, 1]\nframe_loss = 0.0\n\
        [[fault]]\nat = \"1.1 s\"\nkind = \"crash\"\nnode = 1\n\
        [[fault]]\nat = \"1.4 s\"\nkind = \"restart\"\nnode = 1\n\
        [[fault]]\nat = \"1.6 s\"\nkind = \"cut-link\"\nlink = [0, 1]\n\
        [[fault]]\nat = \"3.0 s\"\nkind = \"restore-link\"\nlink = [0, 1]\n\
        [[fault]]\nat = \"0.2 s\"\nkind = \"drift\"\nnode = 1\ndrift = \"50 ppm\"\n\
        [[fault]]\nat = \"0.1 s\"\nkind = \"corrupt\"\nnode = 2\nbit_error_rate = 1e-6\ndetected = true\n";
    for variant in ["paper", "improved", "csma", "snoop"] {
        for transfers in [format!("{FORWARD}{REVERSE}"), format!("{REVERSE}{FORWARD}")] {
            let run = run(&format!(
                "{LINE}variant = \"{variant}\"\n{transfers}{faults}"
            ));
            println!("{variant}: {:.1} s, {:?}", run.simulated_s, run.counters);
            for flow in &run.flows {
                assert!(flow.complete && flow.digest_ok, "{variant}: {flow:?}");
            }
            let counted = |name: &str| run.counters.get(name).copied().unwrap_or(0);
            for why in ["lost_link", "lost_link_cut", "lost_down", "lost_corrupted"] {
                assert!(counted(why) > 0, "{variant}: {why}");
            }
            assert_eq!(counted("mast_restarts"), 1);
            if ["paper", "improved"].contains(&variant) {
                assert_eq!(counted("peer_restarts_noticed"), 2, "{variant}");
            }
        }
    }
}

/// Undetected bit errors do not pass TCP's checksum, and do not stop a link permanently.
#[test]
fn undetected_bit_errors_stop_no_link() {
    let corrupt =
        "[[fault]]\nat = \"0.2 s\"\nkind = \"corrupt\"\nnode = 2\nbit_error_rate = 2e-6\n";
    for variant in ["paper", "improved"] {
        let run = run(&format!(
            "{LINE}variant = \"{variant}\"\n{FORWARD}{corrupt}"
        ));
        let flow = &run.flows[0];
        println!("{variant}: {:.1} s, {:?}", run.simulated_s, run.counters);
        assert!(flow.complete && flow.digest_ok, "{variant}: {flow:?}");
    }
}

/// Impossible faults are refused with the place in the file and a remedy.
#[test]
fn impossible_faults_are_refused() {
    let fault = |lines: &str| format!("[[fault]]\n{lines}\n");
    let crash = fault("at = \"1 s\"\nkind = \"crash\"\nnode = 1");
    let cut = fault("at = \"1 s\"\nkind = \"cut-link\"\nlink = [0, 1]");
    let limit = "[run]\nlimit = \"5 s\"\n";
    for (faults, message, help) in [
        (
            fault("at = \"1 s\"\nkind = \"restart\"\nnode = 1"),
            "node 1 runs at 1 s",
            "crash",
        ),
        (format!("{crash}{crash}"), "down already", "restart"),
        (
            fault("at = \"1 s\"\nkind = \"cut-link\"\nlink = [0, 2]"),
            "no link leads from mast 0 to mast 2",
            "the links are [0, 1], [1, 2]",
        ),
        (
            fault("at = \"1 s\"\nkind = \"restore-link\"\nlink = [0, 1]"),
            "not cut",
            "cut-link",
        ),
        (format!("{cut}{cut}"), "cut already", "restore-link"),
        (
            fault("at = \"1 s\"\nkind = \"link-loss\"\nlink = [0, 1]\nframe_loss = 1.5"),
            "share of 1.5",
            "0 to 1",
        ),
        (
            fault("at = \"1 s\"\nkind = \"link-loss\"\nlink = [0, 1]"),
            "needs `frame_loss`",
            "frame_loss = ",
        ),
        (
            fault("at = \"1 s\"\nkind = \"crash\"\nnode = 1\nframe_loss = 0.5"),
            "does not use `frame_loss`",
            "",
        ),
        (
            fault("at = \"1 s\"\nkind = \"crash\"\nnode = 3"),
            "no node 3",
            "0 to 2",
        ),
        (
            fault("at = \"9 s\"\nkind = \"crash\"\nnode = 1"),
            "ends before 9 s",
            "run.limit",
        ),
    ] {
        let error = Plan::parse(
            &[&SYSTEM],
            "line.toml",
            &format!("{LINE}{FORWARD}{faults}{limit}"),
        )
        .unwrap_err();
        let shown = error.to_string();
        assert!(error.message.contains(message), "{message}: {shown}");
        assert!(shown.contains(help), "{help}: {shown}");
        assert!(shown.contains("line.toml:"), "{shown}");
    }
}
