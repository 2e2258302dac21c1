//! How a failure, a mistake in an input or a panic is reported on standard error.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};
use chappe_scenario::InputError;

use crate::failure::Failure;
use crate::terminal::{self, Stream};

/// Columns that `error: ` takes, the longest prefix of a message.
const PREFIX: usize = 7;

/// Reports `failure` on standard error.
pub fn report(failure: &Failure) {
    match failure {
        Failure::Input(error) => terminal::tell(&render(error)),
        Failure::Environment(what, todo) => terminal::tell(&format!("chappe: {what}\n  {todo}")),
        Failure::Cast(error) if error.todo.is_empty() => {
            terminal::tell(&format!("chappe: {}", error.what));
        }
        Failure::Cast(error) => {
            terminal::tell(&format!("chappe: {}\n  {}", error.what, error.todo));
        }
        Failure::Defect(what) => terminal::tell(&defect(what)),
        Failure::Interrupted => terminal::tell("chappe: interrupted before anything was finished"),
        Failure::Reported(_) | Failure::ClosedPipe => {}
    }
}

fn defect(what: &str) -> String {
    let command: Vec<String> = std::env::args().collect();
    format!(
        "chappe: this is a defect of chappe, not yours: {what}\n  please report it with this line and the version:\n  {}\n  chappe {}",
        command.join(" "),
        env!("CARGO_PKG_VERSION"),
    )
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
        terminal::tell(&defect(&format!("{words}{place}")));
    }));
}

/// The error with its file, line, column and source line.
fn render(error: &InputError) -> String {
    let width = terminal::width(Stream::Error);
    let prose = |text: &str| {
        let lines = terminal::wrap(text, width.saturating_sub(PREFIX));
        normalize_untrusted_str(&lines.join("\n"))
    };
    let title = Level::ERROR.primary_title(prose(&error.message));
    let place = error
        .place
        .as_ref()
        .filter(|place| !place.label.is_empty() && !place.text.is_empty());
    let mut group = match place {
        None => Group::with_title(title),
        Some(place) => {
            // A span that ends behind the text would panic in the renderer.
            let end = place.span.end.min(place.text.len());
            let start = place.span.start.min(end);
            let label = AnnotationKind::Primary.span(start..end).label(&place.label);
            title.element(
                Snippet::source(&*place.text)
                    .path(&error.from)
                    .annotation(label),
            )
        }
    };
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(prose(help)));
    }
    let renderer = if terminal::colour_on(Stream::Error) {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let frame = if terminal::unicode() {
        DecorStyle::Unicode
    } else {
        DecorStyle::Ascii
    };
    let renderer = renderer.decor_style(frame).term_width(width);
    renderer.render(&[group])
}
