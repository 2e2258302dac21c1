//! What ends a command early, and how it is told.

use std::fmt;
use std::io;

use chappe_lab::run::RunError;
use chappe_scenario::InputError;
use chappe_store::StoreError;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};

use crate::terminal;

/// Exit code of a transfer, claim or comparison that failed.
pub const FAILED: u8 = 1;
/// Exit code of a mistake in a scenario or another input.
pub const INPUT: u8 = 3;
/// Exit code of something that the machine lacks.
pub const ENVIRONMENT: u8 = 4;
/// Exit code of a mistake of Chappe itself.
pub const DEFECT: u8 = 70;
/// Exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// What ends a command early.
#[derive(Debug)]
pub enum Failure {
    /// A mistake in a scenario or another input.
    Input(Box<InputError>),
    /// The machine lacks something: what, and what to do about it.
    Environment(String, String),
    /// A cast could not begin or go on.
    Cast(chappe_cast::Error),
    /// A mistake of Chappe itself.
    Defect(String),
    /// Ctrl-C before anything was finished.
    Interrupted,
    /// A process of ours has told it already and ended with this code.
    Told(u8),
    /// Whoever reads our output has stopped reading: `chappe ... | head`.
    NobodyReads,
}

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => INPUT,
            Failure::Environment(..) => ENVIRONMENT,
            Failure::Cast(error) => match error.kind {
                chappe_cast::Kind::Input => INPUT,
                chappe_cast::Kind::Environment => ENVIRONMENT,
                chappe_cast::Kind::Failed => FAILED,
            },
            Failure::Defect(_) => DEFECT,
            Failure::Interrupted => INTERRUPTED,
            Failure::Told(code) => *code,
            Failure::NobodyReads => 0,
        }
    }

    /// Tells it on standard error.
    pub fn tell(&self) {
        match self {
            Failure::Input(error) => eprint!("{}", render(error)),
            Failure::Environment(what, todo) => eprintln!("chappe: {what}\n  {todo}"),
            Failure::Cast(error) if error.todo.is_empty() => eprintln!("chappe: {}", error.what),
            Failure::Cast(error) => eprintln!("chappe: {}\n  {}", error.what, error.todo),
            Failure::Defect(what) => eprintln!("{}", defect(what)),
            Failure::Interrupted => eprintln!("chappe: interrupted before anything was finished"),
            Failure::Told(_) | Failure::NobodyReads => {}
        }
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

/// Makes a panic say what it is before the command ends with 70.
pub fn explain_panics() {
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
        eprintln!("{}", defect(&format!("{words}{place}")));
    }));
}

impl From<chappe_cast::Error> for Failure {
    fn from(error: chappe_cast::Error) -> Failure {
        Failure::Cast(error)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Input(Box::new(error))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Input(error) => Failure::Input(error),
            RunError::Write(what) => {
                Failure::Environment(what, "choose another place, or make room".into())
            }
            RunError::Defect(what) => Failure::Defect(what),
            RunError::Interrupted => Failure::Interrupted,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Format { help, .. } => {
                let error = InputError::new("", error.to_string());
                match help {
                    Some(help) => error.help(help).into(),
                    None => error.into(),
                }
            }
            StoreError::Io { .. } => Failure::Environment(
                format!("cannot write {error}"),
                "choose another place with --out, or make room".into(),
            ),
        }
    }
}

impl From<chappe_sys::Error> for Failure {
    fn from(error: chappe_sys::Error) -> Failure {
        let advice = error
            .advice()
            .unwrap_or("`chappe doctor` says what this machine allows");
        Failure::Environment(error.cause(), advice.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => Failure::Environment(
                format!("cannot write results: {error}"),
                "is the disk full?".into(),
            ),
        }
    }
}

/// An input error as miette draws it.
struct Drawn<'a> {
    error: &'a InputError,
    text: Option<NamedSource<String>>,
}

impl fmt::Debug for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.error, f)
    }
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for Drawn<'_> {}

impl Diagnostic for Drawn<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.error
            .help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.text.as_ref().map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.error.place.as_ref().filter(|_| self.text.is_some())?;
        let length = place.span.len();
        let label = LabeledSpan::new(Some(place.label.clone()), place.span.start, length);
        Some(Box::new(std::iter::once(label)))
    }
}

/// The error with its file, line, column and source line.
fn render(error: &InputError) -> String {
    let place = error
        .place
        .as_ref()
        .filter(|place| !place.label.is_empty() && !place.text.is_empty());
    let text = place.map(|place| NamedSource::new(&error.from, place.text.to_string()));
    let theme = match (
        terminal::colour_on(terminal::Stream::Error),
        terminal::unicode(),
    ) {
        (true, true) => GraphicalTheme::unicode(),
        (false, true) => GraphicalTheme::unicode_nocolor(),
        (true, false) => GraphicalTheme::ascii(),
        (false, false) => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(terminal::width(terminal::Stream::Error))
        .with_context_lines(1)
        .with_links(false);
    let mut drawn = String::new();
    match handler.render_report(&mut drawn, &Drawn { error, text }) {
        Ok(()) => drawn,
        Err(_) => format!("chappe: {error}\n"),
    }
}
