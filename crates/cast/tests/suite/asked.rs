//! The command line of the example `goals`, which takes minutes if it misunderstands a word.

#[path = "../../examples/goals/asked.rs"]
mod goals;

use goals::{Asked, USAGE};

const KNOWN: [&str; 2] = ["gigabit", "hogs"];

fn parse(line: &str) -> Result<Option<Asked>, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Asked::parse(&words, &KNOWN)
}

/// Words it does not know are refused, and nothing runs for `--help`.
#[test]
fn goals_refuses_unknown_words() {
    assert_eq!(parse("--help"), Ok(None));
    assert_eq!(parse("hogs -h"), Ok(None));
    assert!(USAGE.contains("--runs"));
    for wrong in [
        "--shrot",
        "gigabyte",
        "--runs",
        "--runs 0",
        "hogs --runs few",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    assert!(parse("air").unwrap_err().contains("gigabit, hogs"));
    let asked = |names: &[&str], short, runs| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(Some(Asked { names, short, runs }))
    };
    assert_eq!(parse(""), asked(&[], false, 5));
    assert_eq!(parse("hogs --runs 50"), asked(&["hogs"], false, 50));
    assert_eq!(
        parse("--short gigabit hogs"),
        asked(&["gigabit", "hogs"], true, 1)
    );
}
