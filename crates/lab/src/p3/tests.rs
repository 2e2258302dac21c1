//! The tables and figures as a whole, tiny: three routes of generated buildings.

use super::campaign::Scale;
use super::*;
use crate::figure::Figure;
use crate::paper::Order;
use crate::run::Meter;

fn tiny() -> Scale {
    Scale {
        routes: 3,
        few: 1,
        calibration: 1,
        packets: 200,
        data: None,
        seed: 1,
    }
}

fn made(names: &[&'static str], threads: usize, scale: &Scale) -> Vec<Figure> {
    let meter = Meter::default();
    let order = Order {
        names,
        quick: true,
        seed: 1,
        threads,
        meter: &meter,
    };
    let made = make(&order, scale).unwrap();
    assert!(made.unfinished.is_empty());
    made.figures
}

/// Goal: a change that moves any table is seen. Method: the rows of all of them, rounded to whole numbers, against the
/// table beside this file, made with two threads. After a change that is meant to move them: `CHAPPE_GOLDEN=write cargo
/// test --release -p chappe-lab golden`, and look at the difference. On the way every claim must have a number, and a
/// reason if it does not hold.
#[test]
fn tables_are_the_golden_ones() {
    let figures = made(&[], 2, &tiny());
    assert_eq!(
        figures.len(),
        PAPER.figures.len() - 1,
        "all but the drawing"
    );
    for claim in figures.iter().flat_map(|figure| &figure.claims) {
        assert!(claim.ours.mean.is_finite(), "{}", claim.text);
        assert_eq!(claim.why.is_some(), !claim.holds, "{}", claim.text);
    }
    let ours: String = figures.iter().map(Figure::rows).collect();
    if std::env::var_os("CHAPPE_GOLDEN").is_some_and(|value| value == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/p3/golden.txt");
        std::fs::write(path, &ours).unwrap();
        return;
    }
    let golden = include_str!("golden.txt");
    for (number, (ours, expected)) in ours.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, expected, "line {}", number + 1);
    }
    assert_eq!(ours.lines().count(), golden.lines().count());
}

/// The same rows, and so the same bytes of drawing, with one thread and with two.
#[test]
fn threads_change_nothing() {
    let rows = |threads| -> String {
        let figures = made(&["figure5", "table4"], threads, &tiny());
        figures
            .iter()
            .map(|figure| figure.rows() + &crate::draw::draw(figure))
            .collect()
    };
    assert_eq!(rows(1), rows(2));
}
