//! How much of the bound a transfer gets through the link, in virtual time.
//!
//! Goal: 95 % of (1 - p) C at losses of 5 to 30 % in both directions, independent and in bursts, and 98 % of C without loss with
//! 2 % of the air for everything that is not payload in full frames. Method: the medium and the transfer of `air`, the
//! mean of three seeds; nothing depends on the machine.

mod air;

use air::{Air, Books, run};

fn mean(air: Air) -> (f64, Books) {
    let runs = [1, 2, 3].map(|seed| run(air, seed, 12));
    (
        runs.iter().map(|books| books.share).sum::<f64>() / 3.0,
        runs[0],
    )
}

#[test]
fn most_of_the_bound_gets_through() {
    for (loss, burst) in [
        (0.05, 0.0),
        (0.1, 0.0),
        (0.2, 0.0),
        (0.3, 0.0),
        (0.1, 4.0),
        (0.2, 4.0),
        (0.3, 4.0),
    ] {
        let (share, books) = mean(Air::usual(loss, burst));
        println!("{loss} {burst}: {:.3} {books:?}", share);
        assert!(share > 0.95, "{loss} {burst}: {share} {books:?}");
        assert_eq!(books.overrun, 0, "the medium's queue was overrun");
    }
}

#[test]
fn a_clean_path_costs_little() {
    for (below, least) in [(42, 0.98), (14, 0.995)] {
        let air = Air {
            below,
            ..Air::usual(0.0, 0.0)
        };
        let (share, books) = mean(air);
        assert!(share > least, "{below}: {share} {books:?}");
        // What the link sends back, TCP's acknowledgements and reports together, costs less than TCP's alone would.
        assert!(books.back < 0.02, "{books:?}");
        assert_eq!(books.again + books.repairs, 0.0, "{books:?}");
    }
}

/// A rate that is not told is found, and most of it used.
#[test]
fn a_rate_is_found() {
    let air = Air {
        told: false,
        ..Air::usual(0.1, 0.0)
    };
    let (share, books) = mean(air);
    assert!(share > 0.85, "{share} {books:?}");
}
