//! All tables and figures at a small scale.

use chappe_lab::paper::Order;
use chappe_lab::run::Meter;
use chappe_results::figure::Figure;

use super::campaign::{Receiver, Scale};
use super::{PAPER, make};

fn tiny() -> Scale {
    Scale {
        routes: 3,
        few: 1,
        calibration: 1,
        packets: 200,
        data: None,
        seed: 1,
        receiver: Receiver::Comparing,
        goals: 1,
    }
}

fn made(names: &[&'static str], threads: usize) -> Vec<Figure> {
    let meter = Meter::default();
    let order = Order {
        names,
        quick: true,
        seed: 1,
        threads,
        meter: &meter,
    };
    let made = make(&order, &tiny()).unwrap();
    assert!(made.unfinished.is_empty());
    made.figures
}

/// Every claim of every figure has a finite value, and a reason exactly if it does not hold.
#[test]
fn every_figure_has_panels_and_claims() {
    let figures = made(&[], 2);
    assert_eq!(
        figures.len() + 1,
        PAPER.figures.len(),
        "all but the drawing"
    );
    for figure in &figures {
        assert!(
            !figure.panels.is_empty() && !figure.rows().is_empty(),
            "{}",
            figure.id
        );
        for claim in &figure.claims {
            assert!(claim.ours.mean.is_finite(), "{}", claim.text);
            assert_eq!(claim.why.is_some(), !claim.holds, "{}", claim.text);
        }
    }
}

/// One thread and two threads make the same rows and the same drawings.
#[test]
fn results_do_not_depend_on_threads() {
    let rows = |threads| -> String {
        let figures = made(&["figure5", "table4"], threads);
        let drawn = figures
            .iter()
            .map(|figure| figure.rows() + &chappe_figures::draw(figure));
        drawn.collect()
    };
    assert_eq!(rows(1), rows(2));
}
