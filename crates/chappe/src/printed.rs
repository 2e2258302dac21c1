//! Every command line that a page or a help text prints is one that this program takes.
//!
//! Pages whose commands run to their end are followed by `tests/suite/pages.rs`; most others need radios, other hosts or minutes. Here they
//! are parsed only, so that no page names an option that is gone.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::cli::Cli;

/// The command lines of this program in a text, each as its words. `fenced` are pages, whose commands stand in blocks of code.
fn commands(text: &str, fenced: bool) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    // Whether the present block has commands; those in other languages have none.
    let mut block = (!fenced).then_some(true);
    for line in whole_lines(text).lines() {
        if fenced && line.starts_with("```") {
            block = match block {
                None => Some(["```", "```sh", "```text"].contains(&line)),
                Some(_) => None,
            };
            continue;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if block == Some(true) && line.starts_with("chappe ") {
            found.extend(parts(line));
        }
    }
    found
}

/// The lines of a text without the spaces around them; one that ends with a backslash has the next one behind it.
fn whole_lines(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines().map(str::trim) {
        match line.strip_suffix('\\') {
            Some(part) => {
                all.push_str(part.trim_end());
                all.push(' ');
            }
            None => {
                all.push_str(line);
                all.push('\n');
            }
        }
    }
    all
}

/// The words of a line, without what explains it; each of its commands that is one of this program.
fn parts(line: &str) -> Vec<Vec<String>> {
    let line = without_substitutions(unexplained(line)).replace("; ", " ; ");
    let open = || {
        line.rfind(['\'', '"'])
            .and_then(|quote| shlex::split(&line[..quote]))
    };
    // A quote that goes on in the next line belongs to another program.
    let words = shlex::split(&line).or_else(open).unwrap_or_default();
    let ends = |word: &String| {
        let redirected = word.trim_start_matches(|c: char| c.is_ascii_digit());
        ["|", "||", "&", "&&", ";"].contains(&&**word) || redirected.starts_with(['<', '>'])
    };
    let commands = words.split(ends);
    commands
        .filter(|words| words.first().is_some_and(|word| word == "chappe"))
        // `chappe emu, chappe border` is a list of names.
        .filter(|words| words.get(1).is_some_and(|word| !word.ends_with(',')))
        .map(|words| words.iter().map(|word| filled(word)).collect())
        .collect()
}

/// A word; `1` for one that stands for the reader's own, such as `PID`.
fn filled(word: &str) -> String {
    let stands = word.chars().all(|c| c.is_ascii_uppercase());
    if stands { "1".into() } else { word.into() }
}

/// A line in which `1` stands for what the shell would put there: `$NAME` and `$(COMMAND)`.
fn without_substitutions(line: &str) -> String {
    let mut parts = line.split('$');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let rest = match part.strip_prefix('(') {
            Some(command) => command.split_once(')').map_or("", |(_, rest)| rest),
            None => &part[part.find(name).unwrap_or(part.len())..],
        };
        all.push('1');
        all.push_str(rest);
    }
    all
}

/// A line up to two spaces in a row, behind which an explanation stands; those in quotes are the command's.
fn unexplained(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == ' ' && before == ' ' => return &line[..at],
            None => {}
        }
        before = letter;
    }
    line
}

/// Fails if this program does not take `words`.
fn is_taken(place: &str, words: &[String]) {
    let refused = match Cli::try_parse_from(words) {
        Ok(_) => return,
        Err(error) => error,
    };
    // A command alone is a name: the head of a table, or an invitation to read its help.
    let named = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    let bare = words.len() == 2 && refused.kind() == ErrorKind::MissingRequiredArgument;
    assert!(
        bare || named.contains(&refused.kind()),
        "{place}: `{}`\n{refused}",
        words.join(" ")
    );
}

/// The pages of the book: those at the root, in `docs`, and each crate's.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = std::fs::read_dir(root.join("crates")).unwrap().flatten();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.path()).collect();
    let others = [
        "",
        "docs",
        "docs/studies",
        "packaging",
        "firmware",
        "bindings/python",
    ];
    folders.extend(others.map(|at| root.join(at)));
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let mut pages: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    // It says what commands were called once.
    pages.retain(|page| !page.ends_with("CHANGELOG.md"));
    pages.sort();
    pages
}

#[test]
fn commands_of_pages_are_taken() {
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for words in commands(&text, true) {
            is_taken(&page.display().to_string(), &words);
            count += 1;
        }
    }
    // A rule that finds nothing to check would hold as well.
    assert!(count > 100, "{count}");
}

#[test]
fn examples_of_help_texts_are_taken() {
    let mut count = 0;
    let mut left = vec![Cli::command()];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().cloned());
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let examples = after.replace("Example:", "");
        for words in commands(&examples, false) {
            is_taken(command.get_name(), &words);
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn commands_are_found_in_blocks_of_pages() {
    let page = "chappe no block\n```\n$ chappe sim a.toml --set 'x=\"1  2\"'\n```\n```toml\nchappe = 1\n```\n```sh\nchappe new a.toml && chappe sim \\\n  a.toml > out  # runs it\ncargo run\n```\n";
    let found = commands(page, true);
    assert_eq!(
        found[1..],
        [
            vec!["chappe", "new", "a.toml"],
            vec!["chappe", "sim", "a.toml"]
        ]
    );
    assert_eq!(found[0], ["chappe", "sim", "a.toml", "--set", "x=\"1  2\""]);
}
