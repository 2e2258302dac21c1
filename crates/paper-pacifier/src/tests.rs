//! All figures at a tiny scale: two scenarios, 100 kB.

use chappe_lab::run::Meter;

use super::outdoor::Setting;
use super::runs::{PACE, Pace, Scale, Site, System};
use super::*;

fn tiny() -> Scale {
    Scale {
        scenarios: 2,
        outdoor_bytes: 100_000,
        indoor_bytes: 100_000,
        knobs: vec![0, 100],
        all_settings: false,
        ideal: true,
        seed: 1,
    }
}

fn order<'a>(names: &'a [&'static str], threads: usize, meter: &'a Meter) -> Order<'a> {
    let (quick, seed) = (false, 1);
    Order {
        names,
        quick,
        seed,
        threads,
        meter,
    }
}

fn made(names: &[&'static str], threads: usize) -> Vec<Figure> {
    let made = make(&order(names, threads, &Meter::default()), &tiny()).unwrap();
    assert!(made.unfinished.is_empty());
    made.figures
}

/// Goal: a change of any figure is noticed. Method: compares the rows of all figures, rounded to whole numbers, with
/// `golden.txt`. After an intended change: `CHAPPE_GOLDEN=write cargo test --release -p chappe-paper-pacifier golden`, and
/// check the difference. Every claim must also have a number, and a reason if it does not hold.
#[test]
fn figures_match_the_golden_table() {
    let figures = made(&[], 2);
    for claim in figures.iter().flat_map(|figure| &figure.claims) {
        assert!(claim.ours.mean.is_finite(), "{}", claim.text);
        assert_eq!(claim.why.is_some(), !claim.holds, "{}", claim.text);
    }
    let ours: String = figures.iter().map(Figure::rows).collect();
    if std::env::var_os("CHAPPE_GOLDEN").is_some_and(|value| value == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden.txt");
        std::fs::write(path, &ours).unwrap();
        return;
    }
    let golden = include_str!("golden.txt");
    for (number, (ours, expected)) in ours.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, expected, "line {}", number + 1);
    }
    assert_eq!(ours.lines().count(), golden.lines().count());
}

/// One thread and two produce the same rows and the same drawings.
#[test]
fn results_do_not_depend_on_threads() {
    let drawn = |threads| {
        let figures = made(&["figure3", "figure9"], threads);
        figures
            .iter()
            .map(|figure| figure.rows() + &chappe_figures::draw(figure))
            .collect::<String>()
    };
    let one = drawn(1);
    assert_eq!(one, drawn(2));
    assert!(one.contains("TREE") && one.contains("scenario"));
}

/// An unfinished figure is omitted and named, not drawn from some of its runs.
#[test]
fn unfinished_figures_are_omitted() {
    let meter = Meter::default();
    meter.stop();
    let made = make(&order(&["figure7"], 1, &meter), &tiny()).unwrap();
    assert_eq!(
        (made.figures.len(), made.unfinished, made.runs),
        (0, vec!["figure7"], 0)
    );
}

/// Goal: the sensitivity table may take a row's runs of TREE+RL for another row. Method: with relays that keep the packets of all batches
/// the run is the one with relays of one batch, event by event.
#[test]
fn a_source_that_returns_to_no_batch_needs_no_kept_ones() {
    let trial = |keeps| Trial {
        site: Site::Outdoor {
            setting: Setting::FIGURES,
            pace: Pace { keeps, ..PACE },
        },
        scenario: 1,
        system: System::TreeRl,
    };
    let needed = [false, true].map(trial).into_iter().collect();
    let runs = Runs::run(needed, &tiny(), 2, &Meter::default()).unwrap();
    let digest = |keeps| &runs.of(trial(keeps).site, System::TreeRl)[0].digest;
    assert_eq!(digest(false), digest(true));
}
