//! All tables and figures at a small scale.

use chappe_lab::paper::Order;
use chappe_lab::run::Meter;
use chappe_results::figure::Figure;

use super::*;

fn made(names: &[&'static str], threads: usize) -> Vec<Figure> {
    let meter = Meter::default();
    let order = Order {
        names,
        quick: true,
        seed: 1,
        threads,
        meter: &meter,
    };
    let made = (PAPER.make)(&order).unwrap();
    assert!(made.unfinished.is_empty());
    made.figures
}

/// Goal: any change of a bulk transfer is detected. Method: goodput over one to three hops and of each improvement, in whole
/// kbit/s, against `golden.txt`. Every claim must have a finite value, and a reason exactly if it does not hold; the goals of
/// these transfers must hold. After an intended change, run `CHAPPE_GOLDEN=write cargo test --release -p chappe-lab-tcplp` and
/// review the difference.
#[test]
fn transfers_match_the_golden_values() {
    let names = [
        "table3", "table4", "table5", "table6", "figure3", "figure4", "figure5", "figure6", "hops",
        "loss", "improved",
    ];
    let figures = made(&names, 2);
    for claim in figures.iter().flat_map(|figure| &figure.claims) {
        assert!(claim.ours.mean.is_finite(), "{}", claim.text);
        assert_eq!(claim.why.is_some(), !claim.holds, "{}", claim.text);
    }
    let of = |ids: &'static [&str]| figures.iter().filter(|figure| ids.contains(&figure.id));
    let goals = of(&["hops", "improved", "loss"]).flat_map(|figure| &figure.claims);
    for goal in goals.filter(|claim| claim.goal) {
        assert!(goal.holds, "{}: {:?}", goal.text, goal.ours);
    }
    let found: String = of(&["hops", "improved"]).map(Figure::rows).collect();
    if std::env::var_os("CHAPPE_GOLDEN").is_some_and(|value| value == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden.txt");
        std::fs::write(path, &found).unwrap();
        return;
    }
    assert_eq!(found, include_str!("golden.txt"));
}

/// Goal: the application study reaches its goals: all readings arrive, and the improved variant's radio is on for at most
/// 1.2 % of a day. Method: its tables at the smallest scale. Every claim has a finite value, and a reason exactly if it does
/// not hold.
#[test]
fn goals_of_the_study_hold() {
    let figures = made(&["table7", "table9"], 2);
    let claims: Vec<_> = figures.iter().flat_map(|figure| &figure.claims).collect();
    for claim in &claims {
        assert!(claim.ours.mean.is_finite(), "{}", claim.text);
        assert_eq!(claim.why.is_some(), !claim.holds, "{}", claim.text);
    }
    let goals = claims.iter().filter(|claim| claim.goal);
    for goal in goals.clone() {
        assert!(goal.holds, "{}: {:?}", goal.text, goal.ours);
    }
    assert_eq!(goals.count(), 4);
}

/// One thread and two threads make the same rows and the same drawings.
#[test]
fn results_do_not_depend_on_threads() {
    let rows = |threads| -> String {
        let figures = made(&["table6", "figure4"], threads);
        let drawn = figures
            .iter()
            .map(|figure| figure.rows() + &chappe_figures::draw(figure));
        drawn.collect()
    };
    assert_eq!(rows(1), rows(2));
}
