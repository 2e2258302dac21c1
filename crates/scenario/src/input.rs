//! Errors in a file or an option that the user wrote: the place, what was expected, and the nearest right name.

use std::fmt;
use std::io::Read;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::sync::Arc;

/// Splits a sentence from the help that follows it inside one error string: serde carries strings only.
const HELP: char = '\u{1f}';

/// A sentence with its help as one string, which [`telling`] splits again.
pub(crate) fn told(sentence: impl fmt::Display, help: impl fmt::Display) -> String {
    format!("{sentence}{HELP}{help}")
}

/// Splits the message of a quantity into its sentence and its help.
pub fn telling(message: &str) -> (&str, Option<&str>) {
    match message.split_once(HELP) {
        Some((sentence, help)) => (sentence, Some(help)),
        None => (message, None),
    }
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The whole text, to quote lines from.
    pub text: Arc<str>,
    /// The octets of `text` that the error is about.
    pub span: Range<usize>,
    /// One or two words about them.
    pub label: String,
}

/// A mistake in a scenario, an imported file or an option. Exit code 3. Its parts are those of [`Mistake`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(Box<Mistake>);

/// What an [`InputError`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where the text comes from: a path, or an option.
    pub from: String,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// Where, if it has a place.
    pub place: Option<Place>,
    /// What to do about it.
    pub help: Option<String>,
}

impl InputError {
    /// A mistake without a place in a text, such as a file that cannot be read.
    pub fn new(from: impl Into<String>, message: impl Into<String>) -> InputError {
        let (from, message) = (from.into(), message.into());
        InputError(Box::new(Mistake {
            from,
            message,
            place: None,
            help: None,
        }))
    }

    /// A file that could not be read.
    pub fn unreadable(path: &Path, error: &std::io::Error) -> InputError {
        let what = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_string(),
            std::io::ErrorKind::PermissionDenied => "reading it is not permitted".to_string(),
            std::io::ErrorKind::IsADirectory => "it is a folder, not a file".to_string(),
            std::io::ErrorKind::InvalidData => "it is not a text in UTF-8".to_string(),
            _ => error.to_string(),
        };
        let path = path.display().to_string();
        InputError::new(path.clone(), format!("cannot read {path}: {what}"))
    }

    /// With the place that is meant.
    pub fn at(
        mut self,
        text: &Arc<str>,
        span: Range<usize>,
        label: impl Into<String>,
    ) -> InputError {
        self.place = Some(Place {
            text: text.clone(),
            span,
            label: label.into(),
        });
        self
    }

    /// With what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> InputError {
        self.help = Some(help.into());
        self
    }

    /// Line and column of the place, both from one; columns count characters.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let place = self.place.as_ref()?;
        let mut start = place.span.start.min(place.text.len());
        while !place.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &place.text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Some((line, column))
    }
}

impl Deref for InputError {
    type Target = Mistake;
    fn deref(&self) -> &Mistake {
        &self.0
    }
}

impl DerefMut for InputError {
    fn deref_mut(&mut self) -> &mut Mistake {
        &mut self.0
    }
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line_column() {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.from, self.message)?,
            None => f.write_str(&self.message)?,
        }
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The contents of a file of at most `most` octets.
pub(crate) fn read_limited(path: &Path, most: u64) -> Result<Vec<u8>, InputError> {
    let file = std::fs::File::open(path).map_err(|error| InputError::unreadable(path, &error))?;
    take_limited(file, path, most)
}

/// What `from` gives until its end, which must come within `most` octets. Never reads more, so that a device or a forgotten
/// image does not fill the memory. Errors call it `path`.
pub(crate) fn take_limited(from: impl Read, path: &Path, most: u64) -> Result<Vec<u8>, InputError> {
    let mut octets = Vec::new();
    from.take(most + 1)
        .read_to_end(&mut octets)
        .map_err(|error| InputError::unreadable(path, &error))?;
    if octets.len() as u64 > most {
        let name = path.display().to_string();
        let message = format!("{name} has more than {most} octets, the most that is read");
        return Err(InputError::new(name, message));
    }
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one_in_characters() {
        let text: Arc<str> = "a = \"µ\"\nb = \"µµ\" # c\n".into();
        let start = text.find('#').unwrap();
        let error = InputError::new("f.toml", "odd").at(&text, start..start + 1, "here");
        assert_eq!(error.line_column(), Some((2, 10)));
        assert_eq!(error.help("do").to_string(), "f.toml:2:10: odd (do)");
    }
}
