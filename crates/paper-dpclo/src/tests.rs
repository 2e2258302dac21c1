//! The quickest figures in their short form.

use chappe_lab::run::Meter;

use super::PAPER;

/// Goal: figures can be made. Method: the short form of the three quickest ones.
#[test]
fn short_forms_of_figures_hold() {
    let meter = Meter::default();
    let order = chappe_lab::paper::Order {
        names: &["figure2", "figure5", "figure6"],
        quick: true,
        seed: 1,
        threads: 2,
        meter: &meter,
    };
    let made = (PAPER.make)(&order).unwrap();
    let names: Vec<&str> = made.figures.iter().map(|figure| figure.id).collect();
    assert_eq!(names, ["figure2", "figure5", "figure6"]);
    let claims = |id: &str| {
        let figure = made.figures.iter().find(|figure| figure.id == id).unwrap();
        figure.claims.iter()
    };
    let mut dclo =
        claims("figure2").filter(|claim| claim.text.contains("less than DPCLO over ZMAC+"));
    assert!(dclo.all(|claim| claim.ours.mean < 100.0));
    for figure in &made.figures {
        for panel in &figure.panels {
            let values = panel.series.iter().flat_map(|series| &series.ours);
            assert!(values.clone().any(|value| value.mean > 0.0), "{}", panel.id);
        }
    }
}
