//! How a failure or a panic is reported on standard error.

#[cfg(panic = "abort")]
use chappe::failure;
use chappe::failure::Failure;
use chappe::message::{self, Layout};

use crate::terminal::{self, Stream};

/// Reports `failure` on standard error.
pub fn report(failure: &Failure) {
    let layout = Layout {
        width: terminal::width(Stream::Error),
        colour: terminal::colour_on(Stream::Error),
        unicode: terminal::unicode(),
    };
    if let Some(text) = message::of(failure, layout, &command()) {
        terminal::tell(&text);
    }
}

/// The command line as it was given, for reports of defects.
fn command() -> String {
    std::env::args().collect::<Vec<_>>().join(" ")
}

/// Makes each panic report itself as a defect, with its place in the source.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or(String::new(), |at| {
            format!(" ({}:{})", at.file(), at.line())
        });
        let payload = panic.payload();
        let words = payload
            .downcast_ref::<&str>()
            .map(|words| words.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".into());
        terminal::tell(&message::of_defect(&format!("{words}{place}"), &command()));
        // In programs that are shipped a panic ends the program at once (Cargo.toml, profile `dist`): with this code, not with a signal.
        #[cfg(panic = "abort")]
        std::process::exit(failure::DEFECT.into());
    }));
}
