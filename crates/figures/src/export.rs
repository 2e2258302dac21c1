//! Figures as data for other programs: JSON rows with the claims.

use chappe_results::figure::{Claim, Figure, Panel, PanelKind};
use serde_json::{Value, json};

use crate::axis::number_of;

/// The figure as JSON: a row for each point, and the claims.
pub fn json(figure: &Figure) -> Value {
    let rows: Vec<Value> = figure.panels.iter().flat_map(rows).collect();
    let claims: Vec<Value> = figure.claims.iter().map(claim).collect();
    json!({ "figure": figure.id, "title": figure.title, "rows": rows, "claims": claims, "notes": figure.notes })
}

/// Its rows, one for each series and place.
fn rows(panel: &Panel) -> Vec<Value> {
    let at = |bounds: &[Option<f64>], place: usize| bounds.get(place).copied().flatten();
    let mut rows = Vec::new();
    for series in &panel.series {
        for (place, label) in panel.places.iter().enumerate() {
            rows.push(json!({
                "panel": panel.id,
                "panel_title": panel.title,
                "drawn": match panel.kind {
                    PanelKind::Bars => "bars",
                    PanelKind::Lines => "lines",
                    PanelKind::Cdf => "cdf",
                },
                "axis": panel.axis,
                "x": number_of(label).map(|(number, _)| number),
                "series": series.name,
                "place": label,
                "unit": panel.unit,
                "paper": series.paper[place],
                "ours": series.ours[place],
                "interval": series.interval(place),
                "bound": panel.bound_of(&series.name, place),
                "bound_worst_receiver": at(&panel.worst_bound, place),
            }));
        }
    }
    rows
}

fn claim(claim: &Claim) -> Value {
    json!({
        "claim": { "text": claim.text, "holds": claim.holds, "goal": claim.goal },
        "reproduces_number": claim.reproduces(),
        "unit": claim.unit,
        "paper": claim.paper,
        "ours": claim.ours,
        "ours_interval": claim.interval,
        "ours_of_averages": claim.of_averages,
        "why": claim.why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{csv, text, vega_lite};
    use chappe_results::figure::Series;

    fn figure() -> Figure {
        Figure {
            id: "figure1",
            title: "a test".into(),
            panels: vec![Panel {
                id: "1a".into(),
                title: "goodput".into(),
                unit: "kbit/s",
                kind: PanelKind::Bars,
                axis: "scenario",
                places: vec!["1".into(), "2".into(), "mean".into()],
                series: vec![Series::with_mean("A", &[100.4, 201.0], Some(150.0))],
                bound: vec![Some(400.0), None, None],
                bounded: Vec::new(),
                worst_bound: Vec::new(),
            }],
            claims: vec![Claim::count("better", Some(8.0), 2, 2, true)],
            notes: vec!["n".into()],
        }
    }

    /// A bound stands over the series that it bounds, and over no other: a row with 201 beside a bound of 150 would be wrong.
    #[test]
    fn a_bound_belongs_to_its_series() {
        let mut figure = figure();
        let panel = &mut figure.panels[0];
        panel
            .series
            .push(Series::with_mean("slots", &[90.0, 120.0], None));
        panel.bound = vec![Some(100.0), Some(150.0), None];
        let rows = |figure: &Figure| -> Vec<(String, Option<f64>)> {
            let rows = crate::tidy::tidy(figure).into_iter();
            rows.map(|row| (row.series, row.bound)).collect()
        };
        let of =
            |series: &str, bounds: [Option<f64>; 3]| bounds.map(|bound| (series.into(), bound));
        let (known, none) = ([Some(100.0), Some(150.0), None], [None; 3]);
        assert_eq!(rows(&figure), [of("A", known), of("slots", known)].concat());
        figure.panels[0] = figure.panels[0].clone().bounding(&["slots"]);
        assert_eq!(rows(&figure), [of("A", none), of("slots", known)].concat());
        let json = json(&figure);
        assert_eq!(json["rows"][0]["bound"], Value::Null);
        assert_eq!(json["rows"][3]["bound"], 100.0);
        assert!(text(&figure, 80, false).contains("bound, slots"));
    }

    #[test]
    fn every_point_has_paper_ours_and_bound() {
        let json = json(&figure());
        assert_eq!(json["rows"][0]["bound"], 400.0);
        assert_eq!(json["rows"][2]["paper"], 150.0);
        assert_eq!(json["rows"][2]["ours"]["n"], 2);
        // Mean and half width of two values: 150.7 and 12.706 times their standard error.
        let low = json["rows"][2]["interval"][0].as_f64().unwrap();
        assert!((low - (150.7 - 12.706 * 50.3)).abs() < 0.1, "{low}");
        assert_eq!(json["rows"][0]["interval"], Value::Null);
        assert_eq!(
            (&json["rows"][1]["x"], &json["rows"][2]["x"]),
            (&json!(2.0), &Value::Null)
        );
        assert_eq!(json["claims"][0]["claim"]["holds"], true);
        let csv = csv(&figure());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[1],
            "figure1,1a,point,A,scenario,1,1,kbit/s,100.4,,,1,100.4,100.4,,400,"
        );
        let vega = vega_lite(&figure());
        assert_eq!(vega["vconcat"][0]["data"]["values"][2]["paper"], 150.0);
        let text = text(&figure(), 80, false);
        assert!(
            text.contains("holds          better\n                 paper 8.00, ours 2.00 of 2; -75 % off the paper's number\n"),
            "{text}"
        );
    }
}
