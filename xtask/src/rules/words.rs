//! Plain words: banned phrases, doc comments that say nothing, and long sentences.
//!
//! Banned phrases are looked for in every page, in doc comments, and in the string literals of what a user runs. A doc
//! comment has at least [`DOC_MIN`] words, whatever item it stands at. A sentence of a page has at most [`SENTENCE_MAX`] words.
//! `cargo xtask words` lists every finding.

use std::collections::BTreeMap;

use super::Finding;
use super::roles::Role;
use crate::source;
use crate::workspace::{TextFile, Workspace};

/// Whether findings fail the check. Until then they are counted in a note.
const FAILS: bool = true;

/// Phrases that translate another language's idiom or hide who acts. Write the plain word.
const BANNED: &[(&str, &str)] = &[
    ("by the way", "on the path, or leave it out"),
    ("left away", "omitted"),
    ("leave away", "omit"),
    ("for ever", "forever, permanently"),
    ("by lot", "at random"),
    ("is told", "reports, is notified"),
    ("are told", "report, are notified"),
    ("was told", "was notified"),
    ("were told", "were notified"),
    ("so many as", "as many as"),
    ("just so many", "exactly n"),
    ("in so far as", "if, as far as"),
    ("so far as", "as far as"),
    ("what is judged", "name the subject"),
    ("in a word", "leave it out"),
    ("somebody", "the user, a node"),
    ("nobody", "no user, no node"),
    ("by a safe way", "over a secure channel"),
    ("a way back", "one one-way delay"),
    ("says whether", "reports whether"),
    ("beside the paper", "compared with the paper"),
    ("beside the paper's", "compared with the paper's"),
];

/// The fewest words of a doc comment, all its lines together.
const DOC_MIN: usize = 4;
/// The most words of a sentence in a page, and the number from which it is listed as long.
const SENTENCE_MAX: usize = 45;
const SENTENCE_LONG: usize = 30;

/// Words before which a full stop does not end the sentence.
const ABBREVIATIONS: [&str; 12] = [
    "e.g.", "i.e.", "cf.", "vs.", "al.", "eq.", "fig.", "sec.", "no.", "approx.", "resp.", "pp.",
];

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Banned,
    EmptyDoc,
    TooLong,
    /// Worth a look, no breach.
    Long,
}

/// One place in a file.
#[derive(Debug)]
struct Remark {
    file: String,
    line: usize,
    kind: Kind,
    what: String,
}

/// A word and its line.
type Word<'a> = (&'a str, usize);

/// The breaches, once they count.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    if !FAILS {
        return Vec::new();
    }
    let remarks = all(workspace).into_iter();
    let breaches = remarks.filter(|remark| remark.kind != Kind::Long);
    let finding = |r: Remark| Finding::new(format!("{}:{}", r.file, r.line), r.what);
    breaches.map(finding).collect()
}

/// The counts, for a note.
pub fn summary(workspace: &Workspace) -> String {
    format!("words: {}", counts(&all(workspace)))
}

/// `cargo xtask words [FOLDER]`: every finding of files under the folder, then the counts of each file and each part.
pub fn list(folder: &str) -> Result<(), String> {
    let mut remarks = all(&Workspace::load()?);
    remarks.retain(|remark| remark.file.starts_with(folder));
    let mut files: BTreeMap<&str, Vec<&Remark>> = BTreeMap::new();
    let mut parts: BTreeMap<&str, Vec<&Remark>> = BTreeMap::new();
    for remark in &remarks {
        println!("{}:{}: {}", remark.file, remark.line, remark.what);
        files.entry(&remark.file).or_default().push(remark);
        parts.entry(part(&remark.file)).or_default().push(remark);
    }
    for (title, table) in [("files", &files), ("parts", &parts)] {
        println!("\n{title}");
        for (name, remarks) in table {
            println!("  {name:<44} {}", counts(remarks.iter().copied()));
        }
    }
    println!("\nall: {}", counts(&remarks));
    Ok(())
}

/// The crate of a file, or its top folder.
fn part(file: &str) -> &str {
    let depth = if file.starts_with("crates/") { 2 } else { 1 };
    let end = file.match_indices('/').nth(depth - 1);
    end.map_or(file, |(at, _)| &file[..at])
}

fn counts<'a>(remarks: impl IntoIterator<Item = &'a Remark>) -> String {
    let mut counts = [0; 4];
    remarks
        .into_iter()
        .for_each(|remark| counts[remark.kind as usize] += 1);
    let [banned, empty, too_long, long] = counts;
    format!(
        "{banned} banned phrases, {empty} doc comments under {DOC_MIN} words, {too_long} sentences over \
         {SENTENCE_MAX} words ({long} more over {SENTENCE_LONG})"
    )
}

fn all(workspace: &Workspace) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for file in &workspace.files {
        // This file names the phrases.
        if file.path.ends_with("rules/words.rs") {
            continue;
        }
        let found = if file.path.ends_with(".md") {
            page(&file.text)
        } else if file.path.ends_with(".rs") {
            rust(file, is_for_users(workspace, &file.path))
        } else {
            continue;
        };
        remarks.extend(found.into_iter().map(|(line, kind, what)| Remark {
            file: file.path.clone(),
            line,
            kind,
            what,
        }));
    }
    remarks.sort_by(|a, b| (&a.file, a.line, a.kind).cmp(&(&b.file, b.line, b.kind)));
    remarks
}

/// Whether a file's strings are read by users: errors, help, reports of a command.
fn is_for_users(workspace: &Workspace, path: &str) -> bool {
    let package = workspace
        .members
        .iter()
        .find(|p| path.starts_with(&format!("{}/src/", p.folder)));
    let role = package.and_then(Role::of);
    matches!(
        role,
        Some(Role::Command | Role::Daemon | Role::Lab | Role::System | Role::Paper | Role::Tool)
    )
}

/// What is wrong in a text: line, kind, and words for the reader.
type Found = Vec<(usize, Kind, String)>;

fn rust(file: &TextFile, has_user_strings: bool) -> Found {
    let mut found = Vec::new();
    for (line, block) in doc_comments(&file.text) {
        let prose = without_code(&block);
        for paragraph in paragraphs(&prose, line, true) {
            found.extend(banned(&paragraph));
        }
    }
    if has_user_strings {
        for (line, literal) in source::strings(&file.text) {
            found.extend(banned(&words(literal, line)));
        }
    }
    found.extend(empty_docs(&file.text));
    found
}

fn page(text: &str) -> Found {
    let prose = without_code(text);
    let mut found = Vec::new();
    for paragraph in paragraphs(&prose, 1, true) {
        found.extend(banned(&paragraph));
    }
    for paragraph in paragraphs(&prose, 1, false) {
        for sentence in sentences(&paragraph) {
            let is_word = |(word, _): &&Word| word.contains(char::is_alphanumeric);
            let len = sentence.iter().filter(is_word).count();
            let kind = match len {
                len if len > SENTENCE_MAX => Kind::TooLong,
                len if len > SENTENCE_LONG => Kind::Long,
                _ => continue,
            };
            let start: Vec<&str> = sentence.iter().take(6).map(|(word, _)| *word).collect();
            let what = format!("a sentence of {len} words: {} ...", start.join(" "));
            found.push((sentence[0].1, kind, what));
        }
    }
    found
}

/// The text with code blocks, code spans, link targets and HTML comments blanked out; lines keep their numbers.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut in_block = false;
    let mut in_comment = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        in_comment |= line.trim_start().starts_with("<!--");
        if !in_block && !is_fence && !in_comment {
            prose.push_str(&without_spans(line));
        }
        in_block ^= is_fence;
        in_comment &= !line.contains("-->");
        prose.push('\n');
    }
    prose
}

/// A line with each `` `code` `` as one word and each `[text](target)` as its text.
fn without_spans(line: &str) -> String {
    let mut prose = String::new();
    for (number, part) in line.split('`').enumerate() {
        prose.push_str(if number % 2 == 0 { part } else { "X" });
    }
    while let Some(start) = prose.find("](") {
        let len = prose[start..].find(')').unwrap_or(prose.len() - start - 1);
        prose.replace_range(start..=start + len, "");
    }
    prose.replace('[', "")
}

/// Words of each paragraph, list item and heading; of each table row too if `tables`.
fn paragraphs(prose: &str, first: usize, tables: bool) -> Vec<Vec<Word<'_>>> {
    let mut paragraphs: Vec<Vec<Word>> = vec![Vec::new()];
    for (line, text) in (first..).zip(prose.lines()) {
        let text = text.trim_start();
        let is_row = text.starts_with('|');
        let numbered = text.split_once(". ").map(|(number, _)| number);
        let is_item = text.starts_with("- ")
            || text.starts_with("* ")
            || numbered.is_some_and(|number| number.parse::<u32>().is_ok());
        let is_heading = text.starts_with('#');
        if text.is_empty() || is_row || is_item || is_heading {
            paragraphs.push(Vec::new());
        }
        if (is_row || is_heading) && !tables {
            continue;
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.extend(words(text, line));
        }
        if is_row || is_heading {
            paragraphs.push(Vec::new());
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

fn words(text: &str, first: usize) -> Vec<Word<'_>> {
    let lines = (first..).zip(text.lines());
    lines
        .flat_map(|(line, text)| text.split_whitespace().map(move |word| (word, line)))
        .collect()
}

fn sentences<'a, 'b>(paragraph: &'b [Word<'a>]) -> Vec<&'b [Word<'a>]> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for at in 0..paragraph.len() {
        let word = paragraph[at].0.trim_end_matches([')', '"', '*', '_', ']']);
        let closes = word.ends_with(['.', '!', '?'])
            && !ABBREVIATIONS.contains(&word.trim_start_matches('(').to_lowercase().as_str());
        let next = paragraph.get(at + 1);
        let follows = next.is_none_or(|(next, _)| !next.starts_with(char::is_lowercase));
        if (closes && follows) || next.is_none() {
            sentences.push(&paragraph[start..=at]);
            start = at + 1;
        }
    }
    sentences
}

/// Banned phrases among these words. A phrase does not reach over punctuation.
fn banned(words: &[Word]) -> Found {
    let bare = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.to_lowercase()
    };
    let plain: Vec<String> = words.iter().map(|(word, _)| bare(word)).collect();
    let goes_on = |at: usize| {
        words[at]
            .0
            .ends_with(|c: char| c.is_alphanumeric() || c == '*')
    };
    let mut found = Vec::new();
    for (at, (_, line)) in words.iter().enumerate() {
        for (phrase, instead) in BANNED {
            let len = phrase.split(' ').count();
            let here = plain.get(at..at + len);
            let is_it = here.is_some_and(|here| here.iter().eq(phrase.split(' ')));
            if is_it && (at..at + len - 1).all(goes_on) {
                let what = format!("\"{phrase}\": write {instead}");
                found.push((*line, Kind::Banned, what));
            }
        }
    }
    found
}

/// Blocks of `///` and `//!` lines, with their first line.
fn doc_comments(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut next = 0;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim_start();
        let outer = text
            .strip_prefix("///")
            .filter(|rest| !rest.starts_with('/'));
        let doc = outer.or(text.strip_prefix("//!"));
        let Some(doc) = doc else { continue };
        if line != next {
            blocks.push((line, String::new()));
        }
        if let Some((_, block)) = blocks.last_mut() {
            block.push_str(doc);
            block.push('\n');
        }
        next = line + 1;
    }
    blocks
}

/// Doc comments with fewer words than [`DOC_MIN`], of all items, private ones and those of tests included.
fn empty_docs(text: &str) -> Found {
    let mut found = Vec::new();
    // What looks like a comment inside a literal is data.
    for (line, block) in doc_comments(&source::without_literals(text)) {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        if block.split_whitespace().filter(is_word).count() < DOC_MIN {
            let what = format!("\"{}\" says nothing: what is it?", block.trim());
            found.push((line, Kind::EmptyDoc, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn words_are_plain_here() {
        planted::holds_here(rule);
    }

    /// Line and kind of what is wrong in a file.
    fn check(path: &str, text: &str, expected: &[(usize, Kind)]) {
        let mut workspace = planted::file(path, text);
        workspace
            .members
            .push(planted::member("crates/novelty", "command"));
        let found: Vec<(usize, Kind)> = all(&workspace).iter().map(|r| (r.line, r.kind)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn banned_phrases_are_found() {
        let banned = |line| (line, Kind::Banned);
        check("docs/x.md", "It is late,\nby the\nway.", &[banned(2)]);
        check(
            "docs/x.md",
            "# For ever\n\n| nobody |",
            &[banned(1), banned(3)],
        );
        check("docs/x.md", "It goes by. The way is long.", &[]);
        check("docs/x.md", "```\nby lot\n```\n`by lot` <!-- -->", &[]);
        check(
            "docs/x.rs",
            "//! It is\n//! told at once.\nfn f() {} // by lot",
            &[banned(1)],
        );
        let literal = "fn f() -> &str {\n    \"drawn by lot\"\n}";
        check("crates/novelty/src/lib.rs", literal, &[banned(2)]);
        check("crates/other/src/lib.rs", literal, &[]);
    }

    #[test]
    fn doc_comments_that_say_nothing_are_found() {
        let empty = |line| (line, Kind::EmptyDoc);
        let path = "crates/other/src/lib.rs";
        check(path, "/// Now.\npub struct Now;", &[empty(1)]);
        check(path, "/// Now.\n#[derive(X)]\npub struct Now;", &[empty(1)]);
        check(path, "/// Now.\nstruct Now;", &[empty(1)]);
        check(path, "/// Now.\nfn now() {}", &[empty(1)]);
        check(path, "//! All of\n//! it.\n", &[empty(1)]);
        check(
            path,
            "struct S {\n    /// Who.\n    who: u8,\n}",
            &[empty(2)],
        );
        check(
            "crates/other/tests/x.rs",
            "/// Now.\nstruct S;",
            &[empty(1)],
        );
        check(path, "/// The time of day.\nstruct Now;", &[]);
        check(path, "/// The time\n/// of day.\nstruct Now;", &[]);
        check(path, "// Now.\n//// Now.\nstruct Now;", &[]);
        check(path, "const TEXT: &str = \"\n/// Now.\n\";", &[]);
    }

    #[test]
    fn long_sentences_are_found() {
        let sentence = |len: usize| format!("Word {}end.", "word ".repeat(len - 2));
        let text = |len| format!("Short.\n{} Short.", sentence(len));
        check("docs/x.md", &text(SENTENCE_LONG), &[]);
        check("docs/x.md", &text(SENTENCE_LONG + 1), &[(2, Kind::Long)]);
        check("docs/x.md", &text(SENTENCE_MAX + 1), &[(2, Kind::TooLong)]);
        let two = format!("- {}\n- {}\n", "word ".repeat(25), sentence(25));
        check("docs/x.md", &two, &[]);
        check("docs/x.md", &format!("| {} |", sentence(50)), &[]);
        let abbreviated = format!("{}e.g. Word {}", "word ".repeat(25), sentence(10));
        check("docs/x.md", &abbreviated, &[(1, Kind::Long)]);
        check("docs/x.md", &format!("[{}](a b c d)", "w ".repeat(30)), &[]);
    }
}
