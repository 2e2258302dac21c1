//! The commands that pages tell newcomers to run.
//!
//! Blocks marked `sh` run in the order of the page, in one empty folder. Those marked `text` are shown only: they need radios, other hosts,
//! or what the page says.

use std::process::Command;

use crate::scratch::Scratch;

/// `chappe compare` ends with 1 where a result is worse, which does not stop a user who types the commands.
const TYPED: &str = r#"chappe() { command chappe "$@" || test "$1 $?" = "compare 1"; }
"#;

/// The commands of a page's blocks.
fn commands(page: &str) -> String {
    let mut script = TYPED.to_owned();
    let mut runs = false;
    for line in page.lines() {
        match line {
            "```sh" => runs = true,
            "```" => runs = false,
            line if runs => script += &format!("{line}\n"),
            _ => {}
        }
    }
    script
}

fn follow(name: &str) {
    let page = format!("{}/../../docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
    let script = commands(&std::fs::read_to_string(page).unwrap());
    assert!(script.lines().count() > 5, "{script}");
    let scratch = Scratch::new(name);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_chappe"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("sh")
        .args(["-eu", "-c", &script])
        .current_dir(&scratch.0)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Goal: each promise of a paper's abstract that the page of the lab lists has its claim. Method: the claim's text stands in the
/// crate of that paper.
#[test]
fn each_headline_has_its_claim() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(format!("{root}/docs/lab.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let claim = cells.get(4)?.strip_prefix('`')?.strip_suffix('`')?;
        Some((cells[1].to_owned(), claim.to_owned()))
    });
    let rows: Vec<(String, String)> = rows.collect();
    for paper in ["pacifier", "p3", "tcplp", "wildnet", "dpclo"] {
        let own = rows.iter().filter(|(name, _)| name == paper);
        assert!(own.count() > 0, "{paper} has no headline");
        let files = std::fs::read_dir(format!("{root}/crates/paper-{paper}/src")).unwrap();
        let files = files
            .flatten()
            .map(|file| std::fs::read_to_string(file.path()));
        let source: String = files.map(Result::unwrap_or_default).collect();
        for (_, claim) in rows.iter().filter(|(name, _)| name == paper) {
            assert!(source.contains(claim), "{paper}: no claim `{claim}`");
        }
    }
}

#[test]
fn getting_started_works_as_printed() {
    follow("getting-started");
}

#[test]
fn the_cookbook_works_as_printed() {
    follow("cookbook");
}
