//! Every script under `tests/scripts`, played to this crate's TCP.
//!
//! A failure names the script, the line and what was sent instead. To run the scripts whose path contains a word:
//! `SCRIPT=word cargo test --release -p chappe-tcplp --test suite scripts::`.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use chappe_packet_script::run;

use support::ours::Ours;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn include(name: &str) -> Option<String> {
    fs::read_to_string(folder().join("common").join(name).with_extension("pkt")).ok()
}

#[test]
#[allow(clippy::disallowed_methods)] // Reads which scripts to run from the environment.
fn every_script_passes() {
    let mut scripts = chappe_testkit::script::files(folder(), "pkt");
    let wanted = std::env::var("SCRIPT").unwrap_or_default();
    scripts.retain(|path| path.to_string_lossy().contains(&wanted));
    let mut failed = 0;
    for path in &scripts {
        let text = fs::read_to_string(path).expect("a script can be read");
        let outcome = run(&text, &mut Ours::default(), &include);
        if let Err(why) = outcome {
            failed += 1;
            let name = path.strip_prefix(folder()).unwrap_or(path).display();
            println!("{name}: {why}\n");
        }
    }
    println!("{} scripts, {failed} failed", scripts.len());
    assert_eq!(failed, 0);
    assert!(
        !wanted.is_empty() || scripts.len() >= 150,
        "{} scripts",
        scripts.len()
    );
}

/// The runner itself must be able to fail: each of these scripts expects something wrong.
#[test]
fn wrong_scripts_fail() {
    let open = "listen\n< S 0:0(0) win 9000 <mss 1000>\n";
    let wrong = [
        (
            "a packet that never comes",
            "+0 > S. 0:0(0) ack 1\n+0.1 > . 1:1(0) ack 1\n",
        ),
        ("an unexpected packet", "+0.5 quiet\n"),
        ("a wrong number", "> S. 0:0(0) ack 2\n"),
        ("a wrong flag", "> . 0:0(0) ack 1\n"),
        ("a wrong option", "> S. 0:0(0) ack 1 <mss 999>\n"),
        ("a wrong window", "> S. 0:0(0) ack 1 win 5\n"),
        ("a wrong time", "+0.2 > S. 0:0(0) ack 1\n"),
        (
            "a wrong state",
            "> S. 0:0(0) ack 1\naccept\nexpect state=ESTABLISHED\n",
        ),
        ("a leftover at the end", ""),
    ];
    for (what, rest) in wrong {
        let outcome = run(&format!("{open}{rest}"), &mut Ours::default(), &|_| None);
        assert!(outcome.is_err(), "{what} went unnoticed");
    }
}

/// Syntax errors in a script are reported before anything is played.
#[test]
fn mistakes_are_named_with_their_line() {
    for (text, part) in [
        ("listen\n< S 0:5(0)\n", "line 2"),
        ("fly\n", "not an event"),
        ("config mss\n", "key=value"),
        ("use nothing\n", "no such file"),
        ("+1x quiet\n", "not a time"),
        ("< S 0:0(0) <mss 5\n", "missing"),
    ] {
        let why = run(text, &mut Ours::default(), &|_| None).expect_err(text);
        assert!(why.contains(part), "{why}");
    }
}
