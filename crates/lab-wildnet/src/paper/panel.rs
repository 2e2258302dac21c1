//! Panels of figures, the values that they show, and the bound of TCP in slots.

use chappe_results::figure::{Panel, PanelKind, Series};

use crate::experiment::Measured;

/// What fixed slots of 20 ms hold of TCP over a distance, one way or both, times the share of frames that arrive, Mbit/s:
/// 3.76 and 6.55 at 0 km (specified: 13 packets of set C to a slot, acknowledgements among them), of a cycle that is
/// longer by the way there and back at 3.3356 us a kilometre.
pub fn tcp_bound(both: bool, km: f64, loss: f64) -> f64 {
    let (at_once, cycle) = (if both { 6.55 } else { 3.76 }, 40_000.0);
    at_once * (1.0 - loss) * cycle / (cycle + 2.0 * 3.3356 * km)
}

/// Payload rate in Mbit/s.
pub fn mbps(measured: &Measured) -> f64 {
    measured.bps / 1e6
}

/// Mean delay in ms.
pub fn delay(measured: &Measured) -> f64 {
    measured.delay * 1e3
}

/// A panel of lines.
pub fn lines(
    id: &str,
    title: &str,
    unit: &'static str,
    axis: (&'static str, Vec<String>),
    series: Vec<Series>,
    bound: Vec<Option<f64>>,
) -> Panel {
    let (axis, places) = axis;
    Panel {
        id: id.into(),
        title: title.into(),
        unit,
        kind: PanelKind::Lines,
        axis,
        worst_bound: vec![None; places.len()],
        bound: match bound.is_empty() {
            true => vec![None; places.len()],
            false => bound,
        },
        places,
        series,
    }
}

/// A panel of bars, where the places have no order.
pub fn bars(
    id: &str,
    title: &str,
    unit: &'static str,
    axis: (&'static str, Vec<String>),
    series: Vec<Series>,
    bound: Vec<Option<f64>>,
) -> Panel {
    Panel {
        kind: PanelKind::Bars,
        ..lines(id, title, unit, axis, series, bound)
    }
}
