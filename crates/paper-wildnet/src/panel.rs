//! Panels of figures, the values that they show, and the bound of TCP in slots.

use chappe_results::figure::{Panel, PanelKind, Series};

use chappe_lab_wildnet::experiment::Measured;

/// The TCP capacity of fixed slots of 20 ms, one way or both ways, times the share of frames that arrive, in Mbit/s.
///
/// At 0 km it is 3.76 and 6.55: a slot holds 13 packets of set C, acknowledgements included. A cycle lasts two slots plus the
/// round-trip propagation time, at 3.3356 us a kilometre.
pub fn tcp_bound(both: bool, km: f64, loss: f64) -> f64 {
    let (at_once, cycle) = (if both { 6.55 } else { 3.76 }, 40_000.0);
    at_once * (1.0 - loss) * cycle / (cycle + 2.0 * 3.3356 * km)
}

/// The payload rate, in Mbit/s.
pub fn mbps(measured: &Measured) -> f64 {
    measured.bps / 1e6
}

/// The mean delay, in ms.
pub fn delay(measured: &Measured) -> f64 {
    measured.delay * 1e3
}

/// A panel of lines. `axis` names the axis and its places; an empty `bound` means none.
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
        bounded: Vec::new(),
        places,
        series,
    }
}

/// A panel of bars, for places without an order. The arguments are those of [`lines`].
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
