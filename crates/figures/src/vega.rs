//! A figure as a Vega-Lite specification with its data inside, so that others draw it again in their own way.

use chappe_results::figure::{Figure, Panel, PanelKind};
use serde_json::{Value, json};

use crate::axis::Places;
use crate::tidy::{Row, tidy};

/// The specification, of Vega-Lite 5. `chappe_figures::draw` decides the looks of our own drawings; this one keeps Vega's.
pub fn vega_lite(figure: &Figure) -> Value {
    let rows = tidy(figure);
    let panels: Vec<Value> = figure
        .panels
        .iter()
        .map(|panel| spec(panel, &rows))
        .collect();
    json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": { "text": figure.title, "subtitle": figure.notes },
        "vconcat": panels,
    })
}

fn spec(panel: &Panel, rows: &[Row]) -> Value {
    let own = rows.iter().filter(|row| row.panel == panel.id);
    let values: Vec<Value> = own.map(value).collect();
    let title = format!("{} {}", panel.id, panel.title);
    let y = |field: &str| json!({ "field": field, "type": "quantitative", "title": panel.unit });
    let color = json!({ "field": "series", "type": "nominal", "title": null });
    if panel.kind == PanelKind::Cdf {
        return json!({
            "title": title,
            "data": { "values": values },
            "transform": [
                { "filter": "datum.kind == 'sample'" },
                { "window": [{ "op": "cume_dist", "as": "share" }], "sort": [{ "field": "ours" }], "groupby": ["series"] },
            ],
            "mark": { "type": "line", "interpolate": "step-after" },
            "encoding": {
                "x": { "field": "ours", "type": "quantitative", "title": panel.unit },
                "y": { "field": "share", "type": "quantitative", "title": "share of samples" },
                "color": color,
            },
        });
    }
    let places = Places::of(panel);
    let x = match places.to_scale {
        true => {
            json!({ "field": "x", "type": "quantitative", "title": panel.axis, "scale": { "type": if places.log { "log" } else { "linear" }, "zero": false } })
        }
        false => json!({ "field": "place", "type": "nominal", "title": panel.axis, "sort": null }),
    };
    let dodge = json!({ "field": "series" });
    let mark = match panel.kind {
        PanelKind::Bars => json!("bar"),
        PanelKind::Lines | PanelKind::Cdf => json!({ "type": "line", "point": true }),
    };
    let layer = |mark: Value, y: Value, rest: Value| {
        let mut encoding = json!({ "y": y, "color": color });
        if let (false, Some(encoding)) = (places.to_scale, encoding.as_object_mut()) {
            encoding.insert("xOffset".into(), dodge.clone());
        }
        if let (Some(into), Some(rest)) = (encoding.as_object_mut(), rest.as_object()) {
            into.extend(rest.clone());
        }
        json!({ "mark": mark, "encoding": encoding })
    };
    json!({
        "title": title,
        "data": { "values": values },
        "encoding": { "x": x },
        "layer": [
            layer(mark, y("ours"), json!({})),
            layer(json!("rule"), y("low"), json!({ "y2": { "field": "high" } })),
            layer(json!({ "type": "point", "shape": "diamond", "size": 60, "color": "black", "tooltip": "the paper's value" }), y("paper"), json!({})),
            layer(json!({ "type": "tick", "color": "gray", "thickness": 2, "tooltip": "the bound" }), y("bound"), json!({ "color": null, "xOffset": null })),
        ],
    })
}

fn value(row: &Row) -> Value {
    json!({
        "kind": row.kind,
        "series": row.series,
        "place": row.place,
        "x": row.x,
        "ours": row.ours,
        "low": row.low,
        "high": row.high,
        "paper": row.paper,
        "bound": row.bound,
    })
}
