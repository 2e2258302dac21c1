//! Figures as SVG, as text for a terminal, as CSV and JSON; and the tables of all commands.
//!
//! ```
//! use chappe_figures::{draw, json, text};
//! use chappe_results::figure::{Figure, Panel, Series};
//! use chappe_results::statistics::Summary;
//!
//! let goodput = Series::new("MORE", vec![Summary::of(&[44.0, 46.0]), Summary::of(&[31.0, 33.0])]);
//! let places = vec!["dense".into(), "sparse".into()];
//! let figure = Figure {
//!     id: "figure1",
//!     title: "goodput by network".into(),
//!     panels: vec![Panel::bars("1", "goodput", "kbit/s", places, vec![goodput])],
//!     claims: Vec::new(),
//!     notes: Vec::new(),
//! };
//! assert!(draw(&figure).starts_with("<svg"));
//! assert!(text(&figure, 80, false).contains("sparse"));
//! assert_eq!(json(&figure)["rows"].as_array().map(Vec::len), Some(2));
//! ```
//!
//! | output | module |
//! |---|---|
//! | SVG | [`draw`] |
//! | text for a terminal | [`text`] |
//! | JSON rows with the claims | [`json`] |
//! | the points as a tidy table, and as CSV | [`tidy()`], [`csv`] |
//! | a Vega-Lite specification with its data | [`vega_lite`] |
//! | tables, and numbers with sensible digits | [`table`] |
//!
//! A [`Figure`](chappe_results::figure::Figure) is data; its looks are decided here. Only the command draws, so a change
//! to a drawing builds no system again.

mod axis;
mod draw;
mod export;
pub mod table;
mod text;
mod tidy;
mod vega;

pub use draw::draw;
pub use export::json;
pub use text::text;
pub use tidy::{Row, csv, tidy};
pub use vega::vega_lite;
