//! Figures as SVG, as text for a terminal, as CSV and JSON; and the tables of all commands.
//!
//! ```
//! use chappe_figures::table::Table;
//!
//! let mut table = Table::new().words("protocol").numbers("kbit/s", 0);
//! table.row(["MORE".into(), "45".into()]);
//! assert!(table.render(80, false).contains("MORE"));
//! ```
//!
//! A [`Figure`](chappe_results::figure::Figure) is data; how it looks is decided here. Only the command draws, so a change
//! to a drawing builds no system again.

mod draw;
mod export;
pub mod table;
mod text;

pub use draw::draw;
pub use export::{csv, json};
pub use text::text;
