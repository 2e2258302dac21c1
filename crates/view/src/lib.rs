//! The page of `chappe view`: recorded runs, running daemons and figures, packed for a browser, as one HTML file or served.
//!
//! ```
//! use chappe_view::{Contents, size, whole};
//! use serde_json::json;
//!
//! let contents = Contents {
//!     title: "a figure".into(),
//!     figures: vec![json!({ "id": "figure5" })],
//!     ..Contents::default()
//! };
//! let packed = contents.pack();
//! let page = whole(&packed);
//! assert!(page.starts_with("<!doctype html>") && page.len() == size(&packed));
//! ```
//!
//! The page is written in TypeScript in `web/` and stands built in `page/view.html`; `cargo xtask page` makes it anew.

pub mod live;
mod page;
mod payload;
mod request;
mod server;

pub use page::{PAGE, size, whole};
pub use payload::Contents;
pub use server::{Server, Source};
