//! `docs/write-a-protocol.md` shows this crate's code word for word, and its promise of size holds.

const PAGE: &str = include_str!("../../../../docs/write-a-protocol.md");
const PROTOCOL: &str = include_str!("../../src/protocol.rs");
const SYSTEM: &str = include_str!("../../src/system.rs");
const TESTS: &str = include_str!("main.rs");
const MANIFEST: &str = include_str!("../../Cargo.toml");
const SCENARIO: &str = include_str!("../../mesh.toml");

/// The blocks of the page in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("\n```{language}\n");
    let rest = PAGE.split(&opening).skip(1);
    rest.map(|text| text.split("```").next().unwrap_or_default())
        .collect()
}

#[test]
fn every_rust_block_of_the_page_is_in_the_code() {
    let rust = blocks("rust");
    assert!(rust.len() >= 8, "{} blocks", rust.len());
    for block in rust {
        let found = [PROTOCOL, SYSTEM, TESTS]
            .iter()
            .any(|file| file.contains(block));
        assert!(found, "this block is not in the code:\n{block}");
    }
}

#[test]
fn manifest_and_scenario_of_the_page_are_the_files() {
    let toml = blocks("toml");
    for file in [MANIFEST, SCENARIO] {
        assert!(toml.contains(&file), "the page does not show:\n{file}");
    }
}

#[test]
fn the_example_is_as_short_as_the_page_says() {
    assert!(PROTOCOL.lines().count() <= 200);
    assert!(SYSTEM.lines().count() <= 80);
    assert!(PAGE.contains("200 lines") && PAGE.contains("80 lines"));
}
