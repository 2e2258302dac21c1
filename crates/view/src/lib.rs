//! The page of `chappe view`: recorded runs, running daemons and figures, packed for a browser, as one HTML file or served.
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
