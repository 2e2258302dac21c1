//! Random linear network coding from source over relays to receiver.

use crate::common;

use chappe_coding::{
    Basis, Batch, BatchError, Encoder, Insertion, Kernel, Precoded, Rows, RowsMut, Shape, unit,
};
use chappe_testkit::SplitMix64;
use common::{cases, combination};
use proptest::prelude::*;

const K: usize = 32;

fn unit_vector<const N: usize>(index: usize) -> [u8; N] {
    let mut vector = [0; N];
    unit(index, &mut vector);
    vector
}

/// Rank by plain Gaussian elimination on a copy: the reference.
fn rank_of(vectors: &[Vec<u8>]) -> usize {
    use chappe_coding::field::{div, mul};
    let mut rows = vectors.to_vec();
    let mut rank = 0;
    for column in 0..rows.first().map_or(0, Vec::len) {
        let Some(pivot) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else {
            continue;
        };
        rows.swap(rank, pivot);
        for row in rank + 1..rows.len() {
            let factor = div(rows[row][column], rows[rank][column]).unwrap();
            let pivot = rows[rank].clone();
            for (entry, pivot) in rows[row].iter_mut().zip(pivot) {
                *entry ^= mul(factor, pivot);
            }
        }
        rank += 1;
    }
    rank
}

#[test]
fn a_unit_vector_is_innovative_once() {
    for kernel in Kernel::available() {
        let mut basis = Basis::<K>::new(K).unwrap().with_kernel(kernel);
        assert_eq!(basis.insert(&unit_vector::<K>(5)), Insertion::Innovative);
        assert_eq!(basis.insert(&unit_vector::<K>(5)), Insertion::NotInnovative);
        assert_eq!(basis.insert(&unit_vector::<K>(5)), Insertion::NotInnovative);
        assert_eq!(basis.rank(), 1);
    }
}

#[test]
fn copies_with_leading_zeros_have_rank_one() {
    for kernel in Kernel::available() {
        let mut basis = Basis::<K>::new(K).unwrap().with_kernel(kernel);
        let innovative = (0..31).filter(|_| basis.insert(&unit_vector::<K>(31)).is_innovative());
        assert_eq!(innovative.count(), 1);
        assert_eq!((basis.rank(), basis.missing()), (1, 31));
    }
}

#[test]
fn zero_is_never_innovative_and_wrong_lengths_are_malformed() {
    let mut basis = Basis::<K>::new(K).unwrap();
    assert_eq!(basis.insert(&[0; K]), Insertion::NotInnovative);
    assert!(!basis.is_innovative(&[0; K]));
    assert_eq!(basis.insert(&[1; K - 1]), Insertion::Malformed);
    assert_eq!(basis.insert(&[1; K + 1]), Insertion::Malformed);
    assert_eq!(basis.insert(&[]), Insertion::Malformed);
    assert_eq!(basis.rank(), 0);
    let mut batch = Batch::<K, _>::new(Shape::new(K, 10).unwrap(), vec![0; 320]).unwrap();
    assert_eq!(batch.insert(&[1; K], &[0; 9]), Insertion::Malformed);
    assert_eq!(batch.rank(), 0);
    assert!(Basis::<K>::new(0).is_err());
    assert!(Basis::<K>::new(K + 1).is_err());
}

/// Vectors that make trouble: sparse, with leading zeros, multiples and sums of earlier ones.
fn awkward(random: &mut SplitMix64, known: &[Vec<u8>], packets: usize) -> Vec<u8> {
    match random.below(6) {
        0 => vec![0; packets],
        1 => {
            let mut vector = vec![0; packets];
            unit(random.below(packets), &mut vector);
            vector
        }
        2 => {
            let mut vector = random.bytes(packets);
            let zeros = random.below(packets + 1);
            vector[..zeros].fill(0);
            vector
        }
        3 | 4 if !known.is_empty() => {
            let factors = random.bytes(known.len());
            let rows: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
            combination(&factors, &rows, packets)
        }
        _ => random.bytes(packets),
    }
}

fn check_rank<const N: usize>(seed: u64, packets: usize) {
    let mut random = SplitMix64(seed);
    let mut known: Vec<Vec<u8>> = Vec::new();
    let mut bases: Vec<Basis<N>> = Kernel::available()
        .map(|kernel| Basis::new(packets).unwrap().with_kernel(kernel))
        .collect();
    for _ in 0..3 * packets {
        let vector = awkward(&mut random, &known, packets);
        let before = rank_of(&known);
        known.push(vector.clone());
        let rank = rank_of(&known);
        if rank == before {
            known.pop();
        }
        for basis in &mut bases {
            assert_eq!(basis.is_innovative(&vector), rank > before);
            assert_eq!(basis.insert(&vector).is_innovative(), rank > before);
            assert_eq!(basis.rank(), rank);
            assert_eq!(basis.is_full(), rank == packets);
        }
    }
}

proptest! {
    #![proptest_config(cases(60))]

    /// Goal: the rank is the rank, after every vector. Method: compare with elimination from scratch.
    #[test]
    fn rank_is_right_for_any_vectors(seed: u64, packets in 1usize..=32) {
        check_rank::<32>(seed, packets);
    }

    #[test]
    fn rank_is_right_for_odd_widths(seed: u64, packets in 1usize..=21) {
        check_rank::<21>(seed, packets);
    }

    /// Goal: what comes out at the end of a lossy line of recoding relays is what went in, and no
    /// rank ever falls. Method: systematic and coded packets, random losses, every kernel in turn.
    #[test]
    fn a_line_of_relays_delivers(
        seed: u64, packets in 1usize..=32, len in 0usize..200, hops in 1usize..5,
    ) {
        relay_line::<32>(seed, packets, len, hops);
    }

    #[test]
    fn a_line_of_relays_delivers_large_batches(seed: u64, packets in 60usize..=100) {
        relay_line::<100>(seed, packets, 40, 2);
    }
}

#[test]
fn the_largest_batch_is_delivered() {
    relay_line::<255>(1, 255, 33, 2);
}

fn relay_line<const N: usize>(seed: u64, packets: usize, len: usize, hops: usize) {
    let mut random = SplitMix64(seed);
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let shape = Shape::new(packets, len).unwrap();
    let sources = random.bytes(shape.bytes());
    let encoder = Encoder::new(Rows::new(shape, &sources).unwrap()).unwrap();
    let mut nodes: Vec<Batch<N, Vec<u8>>> = (0..hops)
        .map(|hop| {
            let batch = Batch::new(shape, vec![0; shape.bytes()]).unwrap();
            batch.with_kernel(kernels[(hop + seed as usize % 7) % kernels.len()])
        })
        .collect();
    let mut coefficients = vec![0; packets];
    let mut payload = vec![0; len];
    let mut sent = 0;
    while !nodes[hops - 1].is_full() {
        assert!(sent < 100 * packets + 1000, "no progress");
        if sent < packets {
            unit(sent, &mut coefficients);
            payload.copy_from_slice(encoder.source(sent).unwrap());
        } else {
            let fill = |bytes: &mut [u8]| random.fill(bytes);
            encoder
                .encode_random(fill, &mut coefficients, &mut payload)
                .unwrap();
        }
        sent += 1;
        for node in &mut nodes {
            if random.below(10) >= 3 {
                receive(node, &coefficients, &payload);
            }
            let fill = |bytes: &mut [u8]| random.fill(bytes);
            if node.recode(fill, &mut coefficients, &mut payload).is_err() {
                assert_eq!(node.rank(), 0);
                break;
            }
            assert!(coefficients.iter().any(|&c| c != 0));
            assert!(
                !node.is_innovative(&coefficients),
                "recoded outside the span"
            );
        }
        if sent % 7 == 0 {
            check_reads(&nodes[hops - 1], &sources, len);
        }
    }
    let last = nodes.last_mut().unwrap();
    let mut copy = vec![0; shape.bytes()];
    last.decode_into(RowsMut::new(shape, &mut copy).unwrap())
        .unwrap();
    assert_eq!(copy, sources);
    assert_eq!(last.source(0), None);
    last.decode().unwrap();
    last.decode().unwrap();
    for index in 0..packets {
        assert_eq!(last.source(index), encoder.source(index));
    }
    assert_eq!(last.source(packets), None);
    let fill = |bytes: &mut [u8]| random.fill(bytes);
    last.recode(fill, &mut coefficients, &mut payload).unwrap();
    let rows: Vec<&[u8]> = (0..packets)
        .map(|index| encoder.source(index).unwrap())
        .collect();
    assert_eq!(
        payload,
        combination(&coefficients, &rows, len),
        "recoding after decoding"
    );
    assert_eq!(last.clone().into_payloads(), sources);
}

fn receive<const N: usize>(node: &mut Batch<N, Vec<u8>>, coefficients: &[u8], payload: &[u8]) {
    let before = node.rank();
    let expected = node.is_innovative(coefficients);
    let insertion = node.insert(coefficients, payload);
    assert_eq!(insertion.is_innovative(), expected);
    assert_eq!(node.rank(), before + usize::from(expected));
    assert_eq!(node.rank() + node.missing(), node.shape().count());
}

/// What can be read early is right, and what cannot is refused.
fn check_reads<const N: usize>(node: &Batch<N, Vec<u8>>, sources: &[u8], len: usize) {
    let mut payload = vec![0; len];
    for index in 0..node.shape().count() {
        let read = node.read(index, &mut payload);
        assert_eq!(read.is_ok(), node.can_read(index));
        if read.is_ok() {
            assert_eq!(payload, &sources[index * len..][..len]);
        }
    }
}

/// Goal: many recoded packets in one call are what their coefficients say, at every rank.
#[test]
fn recode_many_matches_its_coefficients() {
    let mut random = SplitMix64(9);
    let (packets, len) = (12, 77);
    let shape = Shape::new(packets, len).unwrap();
    let sources = random.bytes(shape.bytes());
    let encoder = Encoder::new(Rows::new(shape, &sources).unwrap()).unwrap();
    let rows: Vec<&[u8]> = (0..packets)
        .map(|index| encoder.source(index).unwrap())
        .collect();
    let mut batch = Batch::<16, _>::new(shape, vec![0; shape.bytes()]).unwrap();
    let (mut vector, mut payload) = (vec![0; packets], vec![0; len]);
    while !batch.is_full() {
        encoder
            .encode_random(|b| random.fill(b), &mut vector, &mut payload)
            .unwrap();
        let _ = batch.insert(&vector, &payload);
        for count in [1, 2, 31, 32, 33, 70] {
            let out = Shape::new(count, len).unwrap().padded();
            let mut vectors = vec![0; count * packets];
            let mut payloads = vec![0; out.bytes()];
            batch
                .recode_many(|b| random.fill(b), &mut vectors, out, &mut payloads)
                .unwrap();
            let made = Rows::new(out, &payloads).unwrap();
            for (index, vector) in vectors.chunks(packets).enumerate() {
                assert_eq!(made.row(index).unwrap(), combination(vector, &rows, len));
                assert!(vector.iter().any(|&c| c != 0) && !batch.is_innovative(vector));
            }
        }
    }
}

/// One of many recoded packets is the one packet of the same random octets: their vectors are made in different ways.
fn check_one_of_many<const N: usize>(batch: &Batch<N, Vec<u8>>, draws: u64) {
    let (packets, len) = (batch.shape().count(), batch.shape().len());
    let mut random = SplitMix64(draws);
    let mut one = (vec![0; packets], vec![0; len]);
    batch
        .recode(|b| random.fill(b), &mut one.0, &mut one.1)
        .unwrap();
    let mut random = SplitMix64(draws);
    let mut many = (vec![0; packets], vec![0; len]);
    let shape = Shape::new(1, len).unwrap();
    batch
        .recode_many(|b| random.fill(b), &mut many.0, shape, &mut many.1)
        .unwrap();
    assert!(one == many, "{}", batch.basis().kernel());
}

/// Goal: the kernels draw the same vectors and make the same packets, so the rows of their bases are the same, whatever comes in
/// and in whatever order pivots are found. Method: awkward vectors, and after each some recoded packets and a vector by every kernel
/// from the same random octets; the plain kernel is the reference.
fn check_recoding<const N: usize>(seed: u64, packets: usize, len: usize) {
    let mut random = SplitMix64(seed);
    let shape = Shape::new(packets, len).unwrap();
    let sources = random.bytes(shape.bytes());
    let rows: Vec<&[u8]> = sources.chunks(len).collect();
    let mut batches: Vec<Batch<N, Vec<u8>>> = Kernel::available()
        .map(|kernel| {
            let batch = Batch::new(shape, vec![0; shape.bytes()]).unwrap();
            batch.with_kernel(kernel)
        })
        .collect();
    let mut known = Vec::new();
    for _ in 0..2 * packets {
        let vector = awkward(&mut random, &known, packets);
        let payload = combination(&vector, &rows, len);
        known.push(vector.clone());
        let count = 1 + random.below(70);
        let draws = random.next();
        let out = Shape::new(count, len).unwrap();
        let mut reference = None;
        for batch in &mut batches {
            let _ = batch.insert(&vector, &payload);
            let mut random = SplitMix64(draws);
            let mut made = (vec![0; count * packets], vec![0; out.bytes()]);
            let done = batch.recode_many(|b| random.fill(b), &mut made.0, out, &mut made.1);
            assert_eq!(done.is_ok(), batch.rank() > 0);
            let mut one = (vec![0; packets], vec![0; len]);
            let _ = batch.recode(|b| random.fill(b), &mut one.0, &mut one.1);
            if batch.rank() > 0 {
                check_one_of_many(batch, draws);
            }
            let made = (made, one);
            assert!(
                *reference.get_or_insert(made.clone()) == made,
                "{}",
                batch.basis().kernel()
            );
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn kernels_recode_alike(seed: u64, packets in 1usize..=32, len in 1usize..300) {
        check_recoding::<32>(seed, packets, len);
    }

    #[test]
    fn kernels_recode_alike_in_odd_and_wide_bases(seed: u64, packets in 1usize..=21) {
        check_recoding::<21>(seed, packets, 70);
        check_recoding::<64>(seed, 3 * packets, 70);
    }
}

#[test]
fn kernels_recode_alike_in_large_bases() {
    check_recoding::<128>(1, 128, 65);
    check_recoding::<100>(2, 99, 130);
    check_recoding::<255>(3, 200, 9);
}

#[test]
fn a_generator_of_zeros_still_gives_a_packet() {
    let shape = Shape::new(3, 4).unwrap();
    let encoder = Encoder::new(Rows::new(shape, b"abcdefghijkl").unwrap()).unwrap();
    let (mut vector, mut payload) = ([9; 3], [0; 4]);
    encoder
        .encode_random(|bytes| bytes.fill(0), &mut vector, &mut payload)
        .unwrap();
    assert_eq!((vector, &payload), ([1, 0, 0], b"abcd"));
    let mut batch = Batch::<3, _>::new(shape, [0; 12]).unwrap();
    let nothing = batch.recode(|bytes| bytes.fill(0), &mut vector, &mut payload);
    assert_eq!(nothing, Err(BatchError::Empty));
    assert!(batch.insert(&[0, 2, 0], &payload).is_innovative());
    batch
        .recode(|bytes| bytes.fill(0), &mut vector, &mut payload)
        .unwrap();
    assert_eq!(vector, [0, 1, 0]);
    assert_eq!(batch.decode(), Err(BatchError::Incomplete { missing: 2 }));
}

/// Goal: a batch's memory serves one batch after another, also of another shape.
#[test]
fn reset_reuses_the_memory() {
    let mut random = SplitMix64(3);
    let mut memory = [0; 400];
    let mut batch = Batch::<8, &mut [u8]>::new(Shape::new(8, 50).unwrap(), &mut memory).unwrap();
    assert!(batch.reset(Shape::new(9, 1).unwrap()).is_err());
    assert!(batch.reset(Shape::new(8, 51).unwrap()).is_err());
    for packets in [8, 3, 1, 5] {
        let shape = Shape::new(packets, 50).unwrap();
        let sources = random.bytes(shape.bytes());
        let encoder = Encoder::new(Rows::new(shape, &sources).unwrap()).unwrap();
        batch.reset(shape).unwrap();
        assert_eq!(batch.rank(), 0);
        let (mut vector, mut payload) = (vec![0; packets], vec![0; 50]);
        while !batch.is_full() {
            encoder
                .encode_random(|b| random.fill(b), &mut vector, &mut payload)
                .unwrap();
            let _ = batch.insert(&vector, &payload);
        }
        batch.decode().unwrap();
        assert_eq!(batch.source(packets - 1), encoder.source(packets - 1));
    }
}

/// MORE's packet, made early and updated by each arrival, is innovative downstream for the news.
#[test]
fn a_precoded_packet_takes_in_late_arrivals() {
    let mut random = SplitMix64(5);
    let shape = Shape::new(4, 30).unwrap();
    let sources = random.bytes(shape.bytes());
    let encoder = Encoder::new(Rows::new(shape, &sources).unwrap()).unwrap();
    let rows: Vec<&[u8]> = (0..4).map(|index| encoder.source(index).unwrap()).collect();
    let (mut coefficients, mut payload) = ([0; 4], [0; 30]);
    let mut ready = Precoded {
        coefficients: &mut coefficients,
        payload: &mut payload,
    };
    let (mut vector, mut packet) = ([0; 4], [0; 30]);
    for _ in 0..4 {
        encoder
            .encode_random(|b| random.fill(b), &mut vector, &mut packet)
            .unwrap();
        let factor = random.next() as u8 | 1;
        ready
            .update(Kernel::best(), factor, &vector, &packet)
            .unwrap();
        assert_eq!(ready.payload, combination(ready.coefficients, &rows, 30));
    }
    assert!(
        ready
            .update(Kernel::best(), 1, &vector, &packet[1..])
            .is_err()
    );
    assert!(
        ready
            .update(Kernel::best(), 1, &vector[1..], &packet)
            .is_err()
    );
    assert_eq!(ready.payload, combination(ready.coefficients, &rows, 30));
}

/// Goal: random vectors are independent as often as theory says. Method: 40,000 batches of 8; the
/// chance of full rank after exactly 8 vectors is the product of 1 - 256^-i for i = 1..=8, that of
/// an innovative vector at rank r is 1 - 256^(r - 8). Bounds are five standard deviations.
#[test]
fn innovation_has_its_probability() {
    const PACKETS: usize = 8;
    const TRIALS: usize = 40_000;
    let mut random = SplitMix64(2026);
    let mut full = 0usize;
    let mut offered = [0usize; PACKETS];
    let mut refused = [0usize; PACKETS];
    for _ in 0..TRIALS {
        let mut basis = Basis::<PACKETS>::new(PACKETS).unwrap();
        let mut vector = [0; PACKETS];
        let mut sent = 0;
        while !basis.is_full() {
            random.fill(&mut vector);
            let rank = basis.rank();
            offered[rank] += 1;
            refused[rank] += usize::from(!basis.insert(&vector).is_innovative());
            sent += 1;
        }
        full += usize::from(sent == PACKETS);
    }
    let chance: f64 = (1..=PACKETS as i32)
        .map(|i| 1.0 - 256f64.powi(-i))
        .product();
    within(full, TRIALS, chance);
    for rank in 0..PACKETS {
        within(
            refused[rank],
            offered[rank],
            256f64.powi(rank as i32 - PACKETS as i32),
        );
    }
    assert!(refused[PACKETS - 1] > 0, "the test saw no rare case");
}

fn within(hits: usize, trials: usize, chance: f64) {
    let mean = trials as f64 * chance;
    let bound = 5.0 * (mean * (1.0 - chance)).sqrt() + 0.01;
    assert!(
        (hits as f64 - mean).abs() <= bound,
        "{hits} of {trials}, expected {mean} +- {bound}"
    );
}

/// Goal: a recoded packet is as random as the span allows: over a receiver with part of the span
/// it is innovative with probability 1 - 256^-(difference of ranks), given that it is not zero.
#[test]
fn recoded_packets_are_uniform_in_the_span() {
    const TRIALS: usize = 60_000;
    let mut random = SplitMix64(77);
    let shape = Shape::new(6, 1).unwrap();
    let mut relay = Batch::<6, _>::new(shape, [0; 6]).unwrap();
    let mut child = Basis::<6>::new(6).unwrap();
    let mut vector = [0; 6];
    while relay.rank() < 4 {
        random.fill(&mut vector);
        if relay.insert(&vector, &[0]).is_innovative() && relay.rank() <= 3 {
            assert!(child.insert(&vector).is_innovative());
        }
    }
    let (mut refused, mut payload) = (0, [0]);
    for _ in 0..TRIALS {
        relay
            .recode(|b| random.fill(b), &mut vector, &mut payload)
            .unwrap();
        refused += usize::from(!child.is_innovative(&vector));
    }
    // 256^3 - 1 of the 256^4 - 1 non-zero vectors lie in the child's span.
    within(
        refused,
        TRIALS,
        (256f64.powi(3) - 1.0) / (256f64.powi(4) - 1.0),
    );
}
