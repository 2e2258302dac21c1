//! What the command line of `goals` asks for.

/// How the program is called.
pub const USAGE: &str = "usage: goals [NAME...] [--short] [--runs N]

Measures the goals of these names, or all. --short sends smaller files, once each. --runs says how often each runs (5).";

/// The goals to be measured, and how.
#[derive(Debug, PartialEq)]
pub struct Asked {
    /// Names of goals, each of them known.
    pub names: Vec<String>,
    /// Whether files are small.
    pub short: bool,
    /// How often each runs.
    pub runs: usize,
}

impl Asked {
    /// Reads the words of the command line. `Ok(None)` if they ask for the usage, an error with its reason if they are wrong.
    pub fn parse(words: &[String], known: &[&str]) -> Result<Option<Asked>, String> {
        let (mut names, mut short, mut runs) = (Vec::new(), false, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--short" => short = true,
                "--runs" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    let number = number.filter(|number| *number > 0);
                    runs = Some(number.ok_or("--runs needs a number from 1 on")?);
                }
                name if known.contains(&name) => names.push(name.to_owned()),
                _ => {
                    let known = known.join(", ");
                    return Err(format!("{word}: no such option or goal; goals are {known}"));
                }
            }
        }
        let runs = runs.unwrap_or(if short { 1 } else { 5 });
        Ok(Some(Asked { names, short, runs }))
    }
}
