use super::*;

/// Whoever draws a building gets the same bits: the quick way is exact.
#[test]
fn a_quick_network_has_the_bits_of_an_exact_one() {
    let (walk, sensitivity) = (Walk::new(), Dbm(-94.7));
    for seed in (1..=12).map(Seed) {
        let exact = drawn(139, seed, |apart, random| {
            exact(&walk, apart, sensitivity, random)
        });
        assert_eq!(powers(139, sensitivity, seed), exact);
    }
}

/// What is in doubt is worked out again: with a doubt of a hundredth of a decibel that is nearly every link.
#[test]
fn a_rounding_in_doubt_is_told() {
    let link = Some(([3.0, 4.0], [0.5; CHANNELS]));
    let sure = Pair { link, doubt: 0.0 };
    assert!(sure.rounded(Dbm(-95.0)).is_ok());
    let doubtful = Pair { link, doubt: 0.01 };
    assert!(doubtful.rounded(Dbm(-95.0)).is_err());
}
