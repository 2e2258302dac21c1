//! Keys that some variants refuse.

use super::SYSTEM;

/// The improved variant has no acknowledgements that nodes repeat, so their keys are refused; the paper's variants have.
#[test]
fn keys_of_other_variants_are_refused() {
    let parse = |variant: &str, key: &str| {
        let text = format!(
            "[network]\nlinks = [[0, 1], [1, 0]]\n[protocol]\nsystem = \"pacifier\"\nvariant = \"{variant}\"\n{key}\n\
             [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"3 kB\"\n"
        );
        chappe_scenario::Plan::parse(&[&SYSTEM], "pair", &text)
    };
    for key in ["ack_overheard_next_hop = 5", "ack_overheard_other = 9"] {
        for variant in ["paper", "more", "tree", "tree-rl"] {
            assert!(parse(variant, key).is_ok(), "{variant}: {key}");
        }
    }
    for (variant, key) in [
        ("improved", "ack_overheard_next_hop = 5"),
        ("improved", "ack_overheard_other = 9"),
        ("improved", "knob = 0.5"),
        ("paper", "prune = 0.1"),
    ] {
        let error = parse(variant, key).unwrap_err();
        assert!(error.message.contains("means nothing"), "{key}: {error}");
    }
}
