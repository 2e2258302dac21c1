//! A protocol's page has the promised headings, and maps the paper's sections to the code without a gap.
//!
//! Code carries out a section under a comment such as `//= pacifier III-C: the source leaves a batch`. For each,
//! `docs/pacifier.md` must have a table row that begins with that section and names that file.

use super::Finding;
use super::roles::Role;
use crate::workspace::Workspace;

/// Where the headings are promised, and the heading above their numbered list.
const PROMISE: &str = "docs/README.md";
const LIST: &str = "## Headings of a protocol page";

/// Pages of systems that lack a heading of `docs/README.md`, or have them in another order.
pub fn headings(workspace: &Workspace) -> Vec<Finding> {
    let systems = workspace.members.iter();
    let systems = systems.filter(|package| Role::of(package) == Some(Role::System));
    let pages: Vec<String> = systems
        .filter_map(|package| package.folder.strip_prefix("crates/lab-"))
        .map(|name| format!("docs/{name}.md"))
        .collect();
    judge(workspace, &pages)
}

fn judge(workspace: &Workspace, pages: &[String]) -> Vec<Finding> {
    let promised = promised(workspace.text(PROMISE).unwrap_or_default());
    if promised.is_empty() {
        let what = format!("needs a numbered list below `{LIST}`");
        return vec![Finding::new(PROMISE, what)];
    }
    let mut findings = Vec::new();
    for page in pages {
        let wrong = match workspace.text(page) {
            Some(text) => wrong_heading(text, &promised),
            None => Some("is missing: every system has a page".to_owned()),
        };
        findings.extend(wrong.map(|what| Finding::new(page, what)));
    }
    findings
}

/// The list of headings.
fn promised(readme: &str) -> Vec<&str> {
    let (_, below) = readme.split_once(LIST).unwrap_or_default();
    let section = below.split("\n## ").next().unwrap_or_default();
    let items = section.lines().filter_map(|line| line.split_once(". "));
    let numbered = items.filter(|(number, _)| number.parse::<u32>().is_ok());
    numbered.map(|(_, heading)| heading.trim()).collect()
}

/// What is wrong with a page's headings; others may stand between the promised ones.
fn wrong_heading(page: &str, promised: &[&str]) -> Option<String> {
    let mut headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let missing = promised
        .iter()
        .find(|wanted| !headings.any(|heading| heading.trim() == **wanted))?;
    Some(format!(
        "has no heading `## {missing}` in its place; {PROMISE} promises {}",
        promised.join(", ")
    ))
}

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
    fn pages_have_their_headings_here() {
        planted::holds_here(headings);
    }

    #[test]
    fn a_missing_or_misplaced_heading_is_found() {
        let page = |text| {
            let list =
                format!("# Pages\n\n{LIST}\n\n1. Usage\n2. References\n\n## More\n\n1. No\n");
            let mut workspace = planted::file(PROMISE, &list);
            let page = planted::file("docs/novelty.md", text);
            workspace.files.extend(page.files);
            workspace
        };
        let pages = ["docs/novelty.md".to_owned()];
        let find = |text| judge(&page(text), &pages).len();
        assert_eq!(find("## Usage\n## Ours\n## References\n"), 0);
        assert_eq!(find("## usage\n## References\n"), 1);
        assert_eq!(find("## References\n## Usage\n"), 1);
        assert_eq!(find("## Usage\n"), 1);
        assert_eq!(judge(&planted::file("a", ""), &pages).len(), 1);
        let member = planted::member("crates/lab-novelty", "system");
        let mut workspace = page("");
        workspace.files.pop();
        workspace.members.push(member);
        assert_eq!(headings(&workspace).len(), 1, "a system without a page");
    }

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
