//! Goal: the ladder starts at the simulator's result, and each step lowers it for its own reason. Method: a short
//! transfer over a line of three nodes.

use chappe_core::{Bitrate, Duration};
use chappe_lab::run::Meter;
use chappe_lab::session;
use chappe_results::provenance::Program;
use chappe_scenario::Plan;

use super::{Chatter, Facts, Ladder, Step};
use crate::SYSTEM;

const LINE: &str = r#"
[network]
links = [[0.0, 0.8, 0.0], [0.8, 0.0, 0.8], [0.0, 0.8, 0.0]]
senses_above = 0.01
[radio]
rate = "11 Mbit/s"
[protocol]
probing = "20 s"
[[transfer]]
source = 0
receivers = [2]
bytes = "200 kB"
"#;

fn facts(plan: &Plan) -> Facts {
    let network = plan.network(1).unwrap();
    let links = (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
    let ratio = |(from, to): (u16, u16)| network.delivery[usize::from(from) * 3 + usize::from(to)];
    Facts {
        links: links.map(|link| (link.0, link.1, ratio(link))).collect(),
        chatter: Chatter {
            every: Duration::from_millis(200),
            octets: 300,
        },
        pace: (Bitrate(3_000_000), 64),
    }
}

/// The first step has exactly the goodput of `chappe sim`.
#[test]
fn the_first_step_equals_the_simulator() {
    let plan = Plan::parse(&[&SYSTEM], "line", LINE).unwrap();
    let ladder = Ladder::new(&plan, 1).unwrap();
    let bare = ladder.goodput(Step::Simulator, &facts(&plan)).unwrap();
    let how = session::Options {
        threads: 1,
        ..session::Options::default()
    };
    let run = &session::run(
        &[&crate::PACIFIER],
        &plan,
        Program::unknown(""),
        how,
        &Meter::default(),
    )
    .unwrap()
    .document
    .runs[0];
    assert_eq!(bare, [run.flows[0].goodput_bps]);
}

/// Headers cost their airtime, and a pace below the channel's rate limits the goodput.
#[test]
fn every_step_completes_and_a_slow_pace_limits_goodput() {
    let plan = Plan::parse(&[&SYSTEM], "line", LINE).unwrap();
    let (ladder, facts) = (Ladder::new(&plan, 1).unwrap(), facts(&plan));
    let all = Step::ALL.map(|step| ladder.goodput(step, &facts).unwrap()[0]);
    println!("{all:?}");
    assert!(all.iter().all(|rate| *rate > 0.0));
    // 58 octets more on 1600 make a frame 3 % longer; chance moves a short transfer by a few per cent more.
    let around = all[2] / all[1];
    assert!((0.8..1.05).contains(&around), "{around}");
    let rate = 500_000;
    let pace = (Bitrate(rate), 64);
    let slow = ladder
        .goodput(Step::Pace, &Facts { pace, ..facts })
        .unwrap()[0];
    assert!(slow > 0.0 && slow < rate as f64, "{slow}");
}
