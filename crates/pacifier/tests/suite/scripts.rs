//! Goal: each rule of the paper's protocols and of the improved variant, one at a time. Method: packet scripts, played to one
//! node; `scripts/README.md` defines their language.

use crate::script;

use script::check;

#[test]
fn every_script_plays_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    chappe_testkit::script::each(folder, 13, check);
}

#[test]
#[should_panic(expected = "planted:6: me > data batch=2")]
fn a_wrong_script_fails() {
    let script = "nodes 2\nlink 0-1 1.0\nnode 0\noffer 8 to 1\n---\nme > data batch=2\n";
    check("planted", script);
}

#[test]
#[should_panic(expected = "planted:7: me > data batch=1")]
fn a_wrong_script_of_the_improved_variant_fails() {
    let script =
        "nodes 2\nvariant improved\nlink 0-1 1.0\nnode 0\noffer 8 to 1\n---\nme > data batch=1\n";
    check("planted", script);
}
