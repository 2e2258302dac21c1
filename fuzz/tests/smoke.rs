//! Every target with inputs that are the same each time: random octets, and mutations of inputs that parse.

use chappe_core::{Purpose, Seed, Stream};
use chappe_fuzz::TARGETS;

/// How many of either kind a target gets.
const INPUTS: u64 = 20_000;

/// Inputs from which mutations start: legal beginnings of every format.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = vec![
        include_bytes!("../../examples/mesh-multicast.toml").to_vec(),
        b"[network]\nlinks = [[0, 1], [1, 0]]\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n".to_vec(),
        // 802.15.4 data with IPHC and UDP behind it, alone and as a fragment.
        vec![0x41, 0x88, 7, 0xcd, 0xab, 2, 0, 1, 0, 0x7e, 0x33, 0xf0, 0x16, 0x33, 0x16, 0x33, 1, 2, 9, 9],
        vec![0x7e, 0x33, 0xf0, 0x16, 0x33, 0x16, 0x33, 1, 2, 9, 9, 9],
        vec![0xc0, 0x40, 0, 1, 0x7e, 0x33, 0xf0, 0x16, 0x33, 0x16, 0x33, 1, 2],
        // IPv6 with an empty TCP segment; a TCP header with options; a Pacifier ACK; a P3 frame.
        [&[0x60, 0, 0, 0, 0, 20, 6, 64][..], &[0xfd; 32], &[0; 12], &[0x50, 2, 1, 0, 0, 0, 0, 0]].concat(),
        [&[0, 80, 195, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x10, 4, 0, 0, 0, 0, 0][..], &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]].concat(),
        // DPCLO: a probe, an update, a report, a packet.
        vec![0x11, 3, 0, 9, 1, 1, 0, 7, 9, 10, 0, 4, 0, 40],
        [&[0x12, 2][..], &[0, 4, 0, 2, 1, 0, 0, 5, 0, 6, 0, 2, 2, 0, 0, 5]].concat(),
        vec![0x16, 2, 0, 4, 0, 40, 3, 0, 5, 0, 16, 63],
        [&[0x13, 31, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 40, 1, 9][..], &[0xaa; 20]].concat(),
    ];
    let mut random = Seed(1).stream(Purpose::Trial(9));
    corpus.extend((0..64).map(|first: u8| {
        let mut frame = vec![0; 40 + random.below(80) as usize];
        random.fill(&mut frame);
        frame[0] = first;
        frame
    }));
    corpus
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Stream) {
    for _ in 0..1 + random.below(4) {
        let place = random.below(bytes.len().max(1) as u64) as usize;
        match random.below(4) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place.min(bytes.len()), random.next_u64() as u8),
            _ => {
                if let Some(octet) = bytes.get_mut(place) {
                    *octet ^= 1 << random.below(8);
                }
            }
        }
    }
}

#[test]
fn every_target_stands_random_and_mutated_input() {
    let corpus = corpus();
    for (number, (name, feed)) in (0..).zip(TARGETS) {
        let mut random = Seed(7).stream(Purpose::Trial(number));
        let inputs = if name == "scenario" {
            INPUTS / 10
        } else {
            INPUTS
        };
        for _ in 0..inputs {
            let mut bytes = vec![0; random.below(400) as usize];
            random.fill(&mut bytes);
            feed(&bytes);
            let mut bytes = corpus[random.below(corpus.len() as u64) as usize].clone();
            mutate(&mut bytes, &mut random);
            feed(&bytes);
        }
        println!("{name}: {} inputs", inputs * 2);
    }
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
