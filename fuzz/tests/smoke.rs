//! Every target with inputs that are the same each time: random octets, and mutations of its corpus.

use chappe_fuzz::{TARGETS, corpus, input, stream};

/// How many inputs a parser gets. A machine or scenario takes some hundred times as long for one.
const INPUTS: u64 = 40_000;

#[test]
fn every_target_stands_random_and_mutated_input() {
    for (name, feed) in TARGETS {
        let (corpus, mut random) = (corpus(name), stream(name, 7));
        let is_slow = name == "scenario" || name.contains('-') && name != "compressed-tcp";
        let inputs = if is_slow { INPUTS / 40 } else { INPUTS };
        corpus.iter().for_each(|bytes| feed(bytes));
        (0..inputs).for_each(|_| feed(&input(&corpus, &mut random)));
        println!("{name}: {} of the corpus, {inputs} others", corpus.len());
    }
}

/// Each target has a corpus, and that of a protocol's frames has frames of its nodes.
#[test]
fn every_target_has_a_corpus() {
    for (name, _) in TARGETS {
        assert!(corpus(name).len() > 3, "{name}");
    }
    for name in ["dot11", "dot15d4", "pacifier", "dpclo", "wildnet"] {
        assert!(corpus(name).len() > 20, "{name}: {}", corpus(name).len());
    }
    // What nodes send and what the files hold parses.
    assert!(
        corpus("dpclo")
            .iter()
            .any(|octets| chappe_dpclo::header::parse(octets).is_ok())
    );
    assert!(
        corpus("p3")
            .iter()
            .any(|octets| chappe_p3::header::Header::parse(octets).is_ok())
    );
    let cast = corpus("cast");
    assert!(
        cast.iter()
            .any(|octets| chappe_cast::manifest::Ticket::decode(octets).is_some())
    );
    assert!(
        cast.iter()
            .any(|octets| chappe_cast::receipt::Receipt::decode(octets).is_some())
    );
    let cut = chappe_cast::manifest::Cut {
        len: 6700,
        k: 8,
        payload: 100,
    };
    let manifest = |octets: &Vec<u8>| chappe_cast::manifest::Manifest::decode(octets, &cut).is_ok();
    assert!(cast.iter().any(manifest));
}

/// The TCP target gets somewhere: a script without losses opens the connection and moves octets both ways.
#[test]
fn the_tcp_target_reaches_established() {
    let deliver = |side: u8| side << 7 | 2;
    let script = [
        deliver(1),
        deliver(0),
        deliver(1),
        0,
        40,
        deliver(1),
        0x81,
        40,
        0x80,
        9,
        deliver(0),
        1,
        9,
    ];
    chappe_fuzz::tcp::feed(&script);
    assert_eq!(chappe_fuzz::tcp::read_by(&script), [9 * 8, 40 * 8]);
}
