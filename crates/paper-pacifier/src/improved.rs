//! The improved variant compared with Pacifier and MORE, on 802.11 and on ideal channel access.
//!
//! The project's goals for the worst receiver are 65 % of the bound on 802.11 and 80 % on ideal channel access. In turns they are 55 % of
//! the ideal schedule with interference outdoors, and 80 % indoors.

use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::{Summary, mean};

use crate::claims::{Sign, better, gain};
use crate::runs::{PACIFIER, Runs, Scale, Site, System, Trial};

/// The sites, with their names in panels and in text, and the goal in turns for the worst receiver's share of the ideal schedule in per cent.
const SITES: [(Site, &str, &str, f64); 3] = [
    (Site::OUTDOOR, "outdoor", "outdoors", 55.0),
    (Site::Indoor { day: 1 }, "indoor 1", "indoors, day 1", 80.0),
    (Site::Indoor { day: 2 }, "indoor 2", "indoors, day 2", 80.0),
];

const IDEAL: System = System::Ideal { ours: true };
const SYSTEMS: [System; 6] = [
    System::More,
    PACIFIER,
    System::Improved,
    System::InTurns,
    System::Ideal { ours: false },
    IDEAL,
];

/// The project's goals: shares of the bound for the worst receiver, in per cent.
const GOALS: [(System, f64, &str); 2] = [
    (System::Improved, 65.0, "on 802.11"),
    (IDEAL, 80.0, "on ideal air"),
];

/// The goal over the best serial schedule, in per cent above it: outdoors, where frames far apart can go together.
const OVER_SERIAL: f64 = 50.0;
/// The series of the best serial schedule ([`Runs::serial`]).
const SERIAL: &str = "best serial schedule";
/// The series of the ideal schedule ([`Runs::ideal`]).
const IDEAL_SCHEDULE: &str = "ideal schedule with interference";

pub fn needs(scale: &Scale) -> Vec<Trial> {
    let sites = SITES.iter();
    sites
        .flat_map(|&(site, ..)| scale.trials(site, &SYSTEMS))
        .collect()
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let mut figure = Figure {
        id: "improved",
        title: "the improved variant, Pacifier and MORE".into(),
        panels: Vec::new(),
        claims: Vec::new(),
        notes: Vec::new(),
    };
    for (site, id, name, share) in SITES {
        figure.panels.extend(panels(runs, scale, site, id, name));
        let claims = claims(runs, site, name).into_iter();
        let claims = claims.chain(of_ideal(runs, site, name, share));
        figure.claims.extend(claims.map(Claim::as_goal));
        figure.notes.push(on_the_air(runs, site, name));
    }
    figure
}

fn panels(runs: &Runs, scale: &Scale, site: Site, id: &str, name: &str) -> [Panel; 2] {
    type Values = fn(&Runs, Site, System) -> Vec<f64>;
    let series = |values: Values| {
        let row =
            |system: System| Series::with_mean(&system.label(), &values(runs, site, system), None);
        SYSTEMS.map(row).to_vec()
    };
    let worst = Panel::bars(
        &format!("{id} worst"),
        &format!("worst receiver, {name}"),
        "kbit/s",
        scale.places(),
        [series(Runs::worst), schedules(runs, site)].concat(),
    );
    let mean = Panel::bars(
        &format!("{id} mean"),
        &format!("mean throughput, {name}"),
        "kbit/s",
        scale.places(),
        series(Runs::mean),
    );
    let bound = runs.worst_bound(site);
    // The bound is of nodes that defer to frames that they sense. Members in turns do not, nor does the ideal schedule.
    let deferring = SYSTEMS
        .into_iter()
        .filter(|&system| system != System::InTurns);
    let deferring: Vec<String> = deferring.map(System::label).collect();
    let deferring: Vec<&str> = deferring.iter().map(String::as_str).collect();
    [
        worst
            .bounded(bound.clone(), Vec::new())
            .bounding(&deferring),
        mean.bounded(runs.mean_bound(site), bound)
            .bounding(&deferring),
    ]
}

/// What schedules give the worst receiver: the best serial one, and the ideal one where it was computed.
fn schedules(runs: &Runs, site: Site) -> Vec<Series> {
    let both = [
        (SERIAL, runs.serial(site)),
        (IDEAL_SCHEDULE, runs.ideal(site)),
    ];
    let known = both.iter().filter(|(_, values)| !values.is_empty());
    known
        .map(|(name, values)| Series::with_mean(name, values, None))
        .collect()
}

fn claims(runs: &Runs, site: Site, name: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (what, values) in [
        (
            "worst receiver",
            Runs::worst as fn(&Runs, Site, System) -> Vec<f64>,
        ),
        ("mean throughput", Runs::mean),
    ] {
        for other in [PACIFIER, System::More] {
            let text = format!(
                "{name}: the improved variant's {what} compared with {}'s",
                other.label()
            );
            let (theirs, ours) = (
                values(runs, site, other),
                values(runs, site, System::Improved),
            );
            claims.push(gain(&text, None, &theirs, &ours, Sign::More));
        }
    }
    for (system, goal, air) in GOALS {
        let shares = runs.shares(site, system);
        let share = Summary::of(&shares);
        let text = format!(
            "{name}: the worst receiver's share of the bound {air} is at least {goal:.0} %"
        );
        let claim = Claim::new(&text, None, share, "%", share.mean >= goal);
        claims.push(claim.because(|| {
            format!(
                "{:.0} to {:.0} % in the scenarios; Pacifier {:.0} % on average",
                share.min,
                share.max,
                mean(&runs.shares(
                    site,
                    match system {
                        System::Ideal { .. } => System::Ideal { ours: false },
                        _ => PACIFIER,
                    }
                ))
            )
        }));
    }
    for system in [System::Improved, System::InTurns] {
        claims.extend(over_serial(runs, site, system, name));
    }
    claims
}

/// The worst receiver in turns beside the ideal schedule, if that was computed.
fn of_ideal(runs: &Runs, site: Site, name: &str, goal: f64) -> Option<Claim> {
    let ideal = runs.ideal(site);
    if ideal.is_empty() {
        return None;
    }
    let pairs = ideal.iter().zip(runs.worst(site, System::InTurns));
    let shares: Vec<f64> = pairs.map(|(ideal, ours)| 100.0 * ours / ideal).collect();
    let share = Summary::of(&shares);
    let text = format!(
        "{name}, in turns: the worst receiver's share of the ideal schedule with interference is at least {goal:.0} %"
    );
    let claim = Claim::new(&text, None, share, "%", share.mean >= goal);
    Some(claim.because(|| format!("{:.0} to {:.0} % in the scenarios", share.min, share.max)))
}

/// The worst receiver beside the best schedule of one frame at a time.
fn over_serial(runs: &Runs, site: Site, system: System, name: &str) -> [Claim; 2] {
    let (serial, ours) = (runs.serial(site), runs.worst(site, system));
    let name = match system {
        System::InTurns => format!("{name}, in turns"),
        _ => name.to_owned(),
    };
    let text = format!("{name}: the worst receiver compared with the best serial schedule");
    let mut ratio = gain(&text, None, &serial, &ours, Sign::More);
    let met = ratio.ours.mean >= OVER_SERIAL;
    if site == Site::OUTDOOR {
        ratio.text = format!("{text}: at least {OVER_SERIAL:+.0} %");
        ratio.why = (!met).then(|| format!("a geometric mean of {:+.0} %", ratio.ours.mean));
        ratio.holds = met;
    }
    let (n, above) = (ours.len(), better(&serial, &ours));
    let text =
        format!("{name}: scenarios with more than the best serial schedule, at least 9 of 10");
    let count = Claim::count(&text, None, above, n, above * 10 >= n * 9);
    let least = serial.iter().zip(&ours).map(|(serial, ours)| ours / serial);
    let least = least.fold(f64::INFINITY, f64::min);
    [
        ratio,
        count.because(|| format!("the least is {least:.2} times the schedule")),
    ]
}

/// What determines the shares: transmissions for each packet, and simultaneous frames.
fn on_the_air(runs: &Runs, site: Site, name: &str) -> String {
    let of = |system| mean(&runs.per_packet(site, system));
    let (least, crowd) = runs.least(site);
    format!(
        "{name}: a packet takes {:.1} transmissions with MORE, {:.1} with Pacifier, {:.1} with the improved variant, {:.1} with \
         the improved variant on ideal air, and at least {least:.1} with any protocol; {crowd:.1} frames are on the air \
         simultaneously at the bound, {:.1} with the improved variant on 802.11 and {:.1} on ideal air",
        of(System::More),
        of(PACIFIER),
        of(System::Improved),
        of(IDEAL),
        mean(&runs.at_once(site, System::Improved)),
        mean(&runs.at_once(site, IDEAL)),
    )
}
