//! A batch that gets packets with any coefficients: what it decodes is what the packets were made of.

use chappe_coding::{Batch, Insertion, Shape, field};

/// Packets of a batch at most.
const K: usize = 12;

/// The octets say how many packets the batch has, and the coefficients of each one that arrives.
pub fn feed(bytes: &[u8]) {
    let Some((&[count, len], script)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let (count, len) = (1 + usize::from(count) % K, 1 + usize::from(len) % 40);
    let shape = Shape::new(count, len).expect("it is small");
    let octet = |source: usize, place: usize| (source * 131 + place * 29 + 7) as u8;
    let mut batch = Batch::<K, _>::new(shape, vec![0; shape.bytes()]).expect("there is room");
    for coefficients in script.chunks(count) {
        let payload: Vec<u8> = (0..len)
            .map(|place| {
                let products = coefficients.iter().enumerate();
                products.fold(0, |sum, (source, &factor)| {
                    sum ^ field::mul(factor, octet(source, place))
                })
            })
            .collect();
        let (before, innovative) = (batch.rank(), batch.is_innovative(coefficients));
        let insertion = batch.insert(coefficients, &payload);
        assert_eq!(insertion.is_innovative(), innovative);
        assert_eq!(batch.rank(), before + usize::from(innovative));
        // A last chunk that is too short.
        assert_eq!(
            insertion == Insertion::Malformed,
            coefficients.len() != count
        );
    }
    if batch.is_full() {
        batch.decode().expect("its rank is full");
        for source in 0..count {
            let wanted: Vec<u8> = (0..len).map(|place| octet(source, place)).collect();
            assert_eq!(batch.source(source), Some(&wanted[..]));
        }
    }
}
