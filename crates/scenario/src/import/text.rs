//! The text of an imported file, plain or gzip, and errors that point into it.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::input::InputError;

/// The most octets that an imported file may unpack to.
const UNPACKED_MAX: u64 = 256 << 20;

/// A file's name and text.
#[derive(Clone, Debug)]
pub struct FileText {
    /// What errors call it: its path.
    pub name: String,
    /// The contents of the file, unpacked.
    pub text: Arc<str>,
}

impl FileText {
    /// Reads a file, and unpacks it if its name ends in `.gz`. Fails if it is no text in UTF-8 or has more than 256 MiB.
    pub fn read(path: &Path) -> Result<FileText, InputError> {
        let unreadable = |error| InputError::unreadable(path, &error);
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        let packed = path.extension().is_some_and(|extension| extension == "gz");
        let reader: Box<dyn Read> = if packed {
            Box::new(flate2::read::GzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let octets = reader
            .take(UNPACKED_MAX + 1)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        let name = path.display().to_string();
        if octets as u64 > UNPACKED_MAX {
            let message = format!("{name} holds more than {} MiB", UNPACKED_MAX >> 20);
            return Err(InputError::new(name, message));
        }
        Ok(FileText {
            name,
            text: text.into(),
        })
    }

    #[cfg(test)]
    pub(crate) fn of(text: &str) -> FileText {
        FileText {
            name: "map".into(),
            text: text.into(),
        }
    }

    /// An error about the whole file.
    pub fn error(&self, message: impl Into<String>) -> InputError {
        let message = format!("{}: {}", self.name, message.into());
        InputError::new(&self.name, message)
    }

    /// An error about a part of it.
    pub fn error_at(
        &self,
        span: Range<usize>,
        label: &str,
        message: impl Into<String>,
    ) -> InputError {
        InputError::new(&self.name, message).at(&self.text, span, label)
    }

    /// A JSON parser's error at its place.
    pub fn json_error(&self, error: &serde_json::Error) -> InputError {
        let line_start: usize = self
            .text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let at = (line_start + error.column().saturating_sub(1)).min(self.text.len());
        let message = error.to_string();
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or(&message)
            .to_string();
        self.error_at(at..at + 1, "here", format!("this is not JSON: {message}"))
    }
}
