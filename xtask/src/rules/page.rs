//! A protocol's page maps the paper's sections to the code, and the map is complete.
//!
//! Code carries out a section under a comment such as `//= pacifier III-C: the source leaves a batch`. For each,
//! `docs/pacifier.md` must have a table row that begins with that section and names that file.

use super::Finding;
use crate::workspace::Workspace;

/// Tagged sections that the protocol's page does not map to the file where the tag stands.
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &workspace.files {
        let Some((room, path)) = file
            .path
            .strip_prefix("crates/")
            .and_then(|p| p.split_once("/src/"))
        else {
            continue;
        };
        let page = workspace
            .text(&format!("docs/{room}.md"))
            .unwrap_or_default();
        for (number, line) in file.text.lines().enumerate() {
            let Some(section) = section(line, room) else {
                continue;
            };
            if !page.lines().any(|row| maps(row, section, path)) {
                let place = format!("{}:{}", file.path, number + 1);
                let what = format!("docs/{room}.md has no row `| {section} | ... `{path}` ... |`");
                findings.push(Finding::new(place, what));
            }
        }
    }
    findings
}

/// The section in a tag of this room's paper: `III-A.2` of `//= pacifier III-A.2 eq. 1: ...`.
fn section<'a>(line: &'a str, room: &str) -> Option<&'a str> {
    let tag = line
        .trim()
        .strip_prefix("//= ")?
        .strip_prefix(room)?
        .strip_prefix(' ')?;
    let end = tag.find([' ', ':']).unwrap_or(tag.len());
    Some(&tag[..end])
}

fn maps(row: &str, section: &str, path: &str) -> bool {
    let first = row
        .strip_prefix('|')
        .and_then(|cells| cells.split('|').next());
    first.is_some_and(|cell| cell.trim() == section) && row.contains(&format!("`{path}`"))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn pages_map_their_papers_here() {
        planted::holds_here(rule);
    }

    #[test]
    fn a_section_that_is_not_mapped_is_found() {
        let code =
            "    //= pacifier III-A.2 eq. 1: what a child lacks\n//= of its parent's\nfn f() {}\n";
        let mut workspace = planted::file("crates/pacifier/src/baseline/more.rs", code);
        assert_eq!(rule(&workspace).len(), 1);
        let mut with_page = |text| {
            workspace.files.truncate(1);
            workspace
                .files
                .extend(planted::file("docs/pacifier.md", text).files);
            rule(&workspace).len()
        };
        assert_eq!(with_page("| III-A.2 | credits | `credit.rs` |"), 1);
        assert_eq!(with_page("| III-A | credits | `baseline/more.rs` |"), 1);
        assert_eq!(
            with_page("| III-A.2 | credits | `credit.rs`, `baseline/more.rs` |"),
            0
        );
    }
}
