//! Messages about mistakes: every scenario in `tests/mistakes` is run, and its message compared with the text beside it.
//!
//! Goal: each mistake ends with exit code 3 and a message that names the file, the line, the column, what was
//! expected and the nearest right name. Method: the command runs with 100 columns and without colour. To accept
//! new messages after reading them: `CHAPPE_BLESS=1 cargo test --release -p chappe --test suite mistakes`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::chappe_in;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

/// Compares a message with the golden text, or replaces the golden text if `CHAPPE_BLESS` is set.
fn golden(name: &str, said: &str) -> Result<(), String> {
    let path = folder().join(format!("{name}.txt"));
    if std::env::var_os("CHAPPE_BLESS").is_some() {
        fs::write(&path, said).unwrap();
        return Ok(());
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == said {
        Ok(())
    } else {
        Err(format!("{name}: expected\n{expected}\nbut it said\n{said}"))
    }
}

#[test]
fn mistakes_in_scenarios_are_reported_in_full() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".toml")?
                    .to_string(),
            )
        })
        .filter(|name| name != "right")
        .collect();
    names.sort();
    assert!(names.len() >= 30, "only {} cases", names.len());
    let mut wrong = Vec::new();
    for name in names {
        let file = format!("{name}.toml");
        let output = chappe_in(folder(), &["sim", &file]);
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.code() != Some(3) {
            wrong.push(format!("{name}: exit {:?}\n{said}", output.status.code()));
        }
        if !output.stdout.is_empty() {
            wrong.push(format!("{name}: something on standard output"));
        }
        let others = ["broken-list.csv:", "broken-places.ini:", "broken-ways."];
        let placed = said.contains(&format!("{file}:"));
        if !(placed || others.iter().any(|other| said.contains(other))) {
            wrong.push(format!("{name}: no file, line and column\n{said}"));
        }
        wrong.extend(golden(&name, &said).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn mistakes_in_options_are_reported_in_full() {
    let cases: [(&str, &[&str]); 18] = [
        (
            "set-unknown-key",
            &["sim", "right.toml", "--set", "radio.tx_pwoer=15 dBm"],
        ),
        (
            "set-unit-missing",
            &["sim", "right.toml", "--set", "network.spacing=50"],
        ),
        (
            "set-no-such-element",
            &["sim", "right.toml", "--set", "transfer.3.source=1"],
        ),
        (
            "set-no-value",
            &["sim", "right.toml", "--set", "radio.rate"],
        ),
        ("no-such-file", &["sim", "nowhere.toml"]),
        (
            "no-such-object",
            &["sim", "right.toml", "--object", "nowhere.bin"],
        ),
        ("try-no-such-path", &["try", "--over", "wify 60 km"]),
        (
            "try-foreign-number",
            &["try", "--over", "wifi 60 km, 3 hops"],
        ),
        (
            "try-out-of-range",
            &["try", "--over", "mesh, 95 % loss", "--", "true"],
        ),
        ("try-no-size", &["try", "--size", "large"]),
        ("try-no-commas", &["try", "--over", "wifi 5km 10% loss"]),
        ("try-other-unit", &["try", "--over", "wifi, 6 Mbps"]),
        (
            "set-key-of-table",
            &["sim", "right.toml", "--set", "variant=more"],
        ),
        (
            "set-rate-bare",
            &["sim", "right.toml", "--set", "radio.rate=11"],
        ),
        (
            "grid-range-bare",
            &["sweep", "right.toml", "--grid", "radio.tx_power=10..20/5"],
        ),
        (
            "grid-list-bare",
            &["sweep", "right.toml", "--grid", "radio.tx_power=10,15 dBm"],
        ),
        (
            "unit-relative",
            &[
                "cast", "unit", "receive", "files", "--group", "/a", "--key", "/b",
            ],
        ),
        (
            "unit-no-service",
            &["cast", "unit", "send", "/x", "--group", "/a", "--key", "/b"],
        ),
    ];
    for (name, arguments) in cases {
        let output = chappe_in(folder(), arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}: {said}");
        assert!(
            !name.starts_with("set-") || said.contains("--set"),
            "{name}: {said}"
        );
        golden(&format!("option-{name}"), &said).unwrap();
    }
}
