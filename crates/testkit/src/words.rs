//! The words that an example was called with. Each acts or is refused.

use std::process;
use std::str::FromStr;

/// What an example was called with. An example takes the words that it knows, and [`Words::end`] refuses the rest.
///
/// ```
/// use chappe_testkit::Words;
///
/// let usage = "many [SEEDS] [first=N] [--nodes N] [trace]";
/// let mut words = Words::new(usage, ["--nodes", "50", "20", "first=7"]);
/// assert!(!words.flag("trace"));
/// assert_eq!(words.option("--nodes"), Some(50_u16));
/// assert_eq!(words.key("first="), Some(7_u64));
/// assert_eq!(words.next("SEEDS"), Some(20_u64));
/// words.end();
/// ```
#[derive(Clone, Debug)]
pub struct Words {
    usage: &'static str,
    left: Vec<String>,
}

impl Words {
    /// The words that this process was started with. `usage` is the example's name and what may follow it; with
    /// `--help` or `-h` it is printed, and the process ends.
    pub fn of_process(usage: &'static str) -> Words {
        let words = Words::new(usage, std::env::args().skip(1));
        if words
            .left
            .iter()
            .any(|word| word == "--help" || word == "-h")
        {
            println!("usage: {usage}");
            process::exit(0);
        }
        words
    }

    /// Words that were not typed: those of a test.
    pub fn new<W: Into<String>>(usage: &'static str, words: impl IntoIterator<Item = W>) -> Words {
        let left = words.into_iter().map(Into::into).collect();
        Words { usage, left }
    }

    /// Takes the word `name`; whether it is there.
    pub fn flag(&mut self, name: &str) -> bool {
        let at = self.left.iter().position(|word| word == name);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Takes a word such as `seeds=20`, whose `name` is `seeds=`. A value that is none ends the process.
    pub fn key<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let at = self.left.iter().position(|word| word.starts_with(name))?;
        let word = self.left.remove(at);
        let value = word.strip_prefix(name).and_then(|value| value.parse().ok());
        Some(value.unwrap_or_else(|| self.refuse(&word, "has no such value")))
    }

    /// Takes the word `name` and the one behind it, as in `--seeds 20`. If that one is missing or no value, the process ends.
    pub fn option<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let at = self.left.iter().position(|word| word == name)?;
        let end = self.left.len().min(at + 2);
        let value = self.left.drain(at..end).nth(1);
        let value = value.and_then(|value| value.parse().ok());
        Some(value.unwrap_or_else(|| self.refuse(name, "needs a value")))
    }

    /// Takes the first word that is left; `None` if there is none. A word that is no `what` ends the process.
    pub fn next<T: FromStr>(&mut self, what: &str) -> Option<T> {
        if self.left.is_empty() {
            return None;
        }
        let word = self.left.remove(0);
        let value = word.parse().ok();
        Some(value.unwrap_or_else(|| self.refuse(&word, &format!("is no {what}"))))
    }

    /// Takes the first word that is left. None left, or a word that is no `what`, ends the process.
    pub fn need<T: FromStr>(&mut self, what: &str) -> T {
        let word = self.next(what);
        word.unwrap_or_else(|| {
            eprintln!("there is no {what}\nusage: {}", self.usage);
            process::exit(2)
        })
    }

    /// Takes all words that are left.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left)
    }

    /// Ends the process if a word is left that nothing has taken.
    pub fn end(self) {
        if let Some(word) = self.left.first() {
            self.refuse(word, "is not known here, or is one too many");
        }
    }

    /// Ends the process with code 2, as commands do whose arguments are wrong.
    pub fn refuse(&self, word: &str, why: &str) -> ! {
        eprintln!("`{word}` {why}\nusage: {}", self.usage);
        process::exit(2)
    }
}
