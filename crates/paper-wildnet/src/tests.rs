//! The cheapest figures in their quick form.

use chappe_lab::paper::Order;
use chappe_lab::run::Meter;

use super::make;

/// The cheapest figures in their quick form: claims that hold with any seeds.
#[test]
fn claims_of_quick_figures_hold() {
    let meter = Meter::default();
    let order = Order {
        names: &["section233", "figure3", "figure7", "table2", "sites"],
        quick: true,
        seed: 1,
        threads: 2,
        meter: &meter,
    };
    let made = make(&order).unwrap();
    let claims = |id: &str| {
        let figure = made.figures.iter().find(|figure| figure.id == id).unwrap();
        figure.claims.iter()
    };
    assert!(claims("section233").all(|claim| claim.holds));
    assert!(claims("figure3").all(|claim| claim.holds));
    assert!(claims("sites").count() == 4 && claims("sites").all(|claim| claim.holds));
    assert!(claims("figure7").any(|claim| claim.holds && claim.text.contains("grow")));
    let kept = claims("table2").filter(|claim| claim.text.contains("keeps"));
    assert!(kept.clone().count() == 4 && kept.clone().all(|claim| claim.holds));
}

/// All claims of `peers` and `ampdu` hold in the quick form, because these models need no long runs.
#[test]
fn claims_of_peers_and_ampdu_hold() {
    let meter = Meter::default();
    let order = Order {
        names: &["ampdu", "peers"],
        quick: true,
        seed: 1,
        threads: 2,
        meter: &meter,
    };
    for figure in make(&order).unwrap().figures {
        println!("{}", chappe_figures::text(&figure, 200, false));
        // Quick runs are too short to distinguish tools that differ by a tenth.
        let mut claims = figure.claims.iter();
        assert!(claims.all(|claim| claim.holds || claim.text.contains("was measured")));
    }
}
