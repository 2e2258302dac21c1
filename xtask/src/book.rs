//! `cargo xtask book`: the pages as a book, by mdBook.
//!
//! Pages link to each other and to files of the code, as they are in the repository. So the pages and what they link to are laid out in a
//! folder as they lie here; mdBook turns the folder into HTML, and every link of the result is followed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::tool::Tool;
use crate::workspace::Workspace;

/// mdBook: the links are checked in the HTML of this version.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    features: &["search"],
    cost: "some two and a half minutes of processor time",
};

/// Writes the book into `target/book/html`.
pub fn alone() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let folder = workspace.root.join("target/book");
    let _ = fs::remove_dir_all(&folder);
    let pages = lay_out(&workspace, &folder)?;
    let program = MDBOOK.program(&workspace.root)?;
    process::show(Command::new(program).arg("build").arg(&folder))?;
    let html = folder.join("html");
    let broken = broken_links(&html)?;
    if !broken.is_empty() {
        return Err(format!("links lead nowhere:\n  {}", broken.join("\n  ")));
    }
    println!(
        "{pages} pages: open {} in a browser",
        html.join("index.html").display()
    );
    Ok(())
}

/// Copies the pages and what they link to; returns how many pages there are.
fn lay_out(workspace: &Workspace, folder: &Path) -> Result<usize, String> {
    let root = &workspace.root;
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut summary = read(&root.join("book/SUMMARY.md"))?;
    summary.push('\n');
    let mut crates: Vec<&str> = workspace
        .members
        .iter()
        .map(|member| &*member.folder)
        .collect();
    crates.sort_unstable();
    for member in crates {
        let page = format!("{member}/README.md");
        if root.join(&page).is_file() && !summary.contains(&format!("({page})")) {
            let _ = writeln!(summary, "- [{member}]({page})");
        }
    }
    let pages: BTreeSet<PathBuf> = links(&summary).map(PathBuf::from).collect();
    let src = folder.join("src");
    write(&src.join("SUMMARY.md"), summary.as_bytes())?;
    write(
        &folder.join("book.toml"),
        read(&root.join("book/book.toml"))?.as_bytes(),
    )?;
    for page in &pages {
        let text = read(&root.join(page))?;
        for link in links(&text) {
            let target = normal(&page.parent().unwrap_or(Path::new("")).join(link));
            if !pages.contains(&target) {
                copy(&root.join(&target), &src.join(&target))?;
            }
        }
        write(&src.join(page), text.as_bytes())?;
    }
    Ok(pages.len())
}

/// Copies a file, or the files of a folder. What is not there is found broken at the end.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    if from.is_file() {
        return write(to, &fs::read(from).map_err(failed)?);
    }
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(failed)?.flatten() {
            if entry.path().is_file() {
                copy(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, octets: &[u8]) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, octets))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Targets of the relative links of a page, without what follows `#`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// A path without `..`, from the root of the repository.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Links within the book that lead to no file.
fn broken_links(html: &Path) -> Result<Vec<String>, String> {
    let mut broken = BTreeSet::new();
    let mut folders = vec![html.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "html") {
                let text = fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                let page = path.strip_prefix(html).unwrap_or(&path);
                // The page of all pages and the one for missing files repeat the others.
                if ["print.html", "404.html"]
                    .iter()
                    .any(|name| page == Path::new(name))
                {
                    continue;
                }
                for link in references(&text) {
                    if !folder.join(link).exists() {
                        broken.insert(format!("{}: {link}", page.display()));
                    }
                }
            }
        }
    }
    Ok(broken.into_iter().collect())
}

/// Relative targets of `href` and `src` in a page.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let values = ["href=\"", "src=\""].into_iter();
    let values = values.flat_map(move |key| text.split(key).skip(1));
    let targets = values.filter_map(|rest| rest.split('"').next());
    targets
        .map(|target| target.split(['#', '?']).next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains(':') && !target.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_page_are_found() {
        let text = "see [a](b/c.md#part), [d](https://e.org/x) and ![p](../q.svg) or [here](#own)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b/c.md", "../q.svg"]);
        assert_eq!(
            normal(Path::new("docs/../crates/./a.md")),
            Path::new("crates/a.md")
        );
        let html = "<a href=\"x.html#y\">z</a><img src=\"p.png\"><a href=\"mailto:a@b\">";
        assert_eq!(references(html).collect::<Vec<_>>(), ["x.html", "p.png"]);
    }
}
