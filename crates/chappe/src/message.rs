//! What a user reads when something ends early: the text of a [`Failure`].

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};
use chappe_scenario::InputError;

use crate::failure::Failure;

/// Columns that `error: ` takes, the longest prefix of a message.
const PREFIX: usize = 7;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of a line.
    pub width: usize,
    /// Whether to use the colours of a terminal.
    pub colour: bool,
    /// Whether to draw frames with characters beyond ASCII.
    pub unicode: bool,
}

impl Layout {
    /// What the command uses when its standard error is no terminal.
    pub const PLAIN: Layout = Layout {
        width: 100,
        colour: false,
        unicode: true,
    };
}

/// The text of a failure; `None` if it was reported already. `command` is the command line that a report of a defect repeats.
pub fn of(failure: &Failure, layout: Layout, command: &str) -> Option<String> {
    match failure {
        Failure::Input(error) => Some(of_input(error, layout)),
        Failure::Environment(what, todo) => Some(format!("chappe: {what}\n  {todo}")),
        Failure::Cast(error) if error.todo.is_empty() => Some(format!("chappe: {}", error.what)),
        Failure::Cast(error) => Some(format!("chappe: {}\n  {}", error.what, error.todo)),
        Failure::Defect(what) => Some(of_defect(what, command)),
        Failure::Interrupted => Some("chappe: interrupted before anything was finished".into()),
        Failure::Reported(_) | Failure::ClosedPipe => None,
    }
}

/// The text about a defect, which asks for a report.
pub fn of_defect(what: &str, command: &str) -> String {
    format!(
        "chappe: this is a defect of chappe, not yours: {what}\n  please report it with this line and the version:\n  {command}\n  chappe {}",
        env!("CARGO_PKG_VERSION"),
    )
}

/// The error with its file, line, column and source line.
fn of_input(error: &InputError, layout: Layout) -> String {
    let prose = |text: &str| {
        let lines = wrap(text, layout.width.saturating_sub(PREFIX));
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
    let renderer = match layout.colour {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let frame = match layout.unicode {
        true => DecorStyle::Unicode,
        false => DecorStyle::Ascii,
    };
    let renderer = renderer.decor_style(frame).term_width(layout.width);
    renderer.render(&[group])
}

/// `text` in lines of at most `width` characters that end between words. A longer word has a line to itself.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let full = line.chars().count() + 1 + word.chars().count() > width;
            if full && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words() {
        let text = "other, bulk: with losses as they are now, overhead 75.0 % (bound 31.4 %)";
        let lines = wrap(text, 40);
        assert!(lines.iter().all(|line| line.chars().count() <= 40));
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("a longword b\nc", 4), ["a", "longword", "b", "c"]);
    }
}
