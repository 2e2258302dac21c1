//! This project's crate, with its best kernel and the next one down.

use chappe_coding::{Batch, Encoder, Erasure, Kernel, Rows, RowsMut, Shape};

use crate::measure::{Pool, Report, random_bytes};
use crate::{K, LEN, MACS};

pub fn run(report: &mut Report) {
    for kernel in [
        Kernel::best(),
        Kernel::named("avx2").unwrap_or(Kernel::PORTABLE),
    ] {
        report.section(&format!("chappe-coding {kernel}"));
        batch(report, kernel);
        erasure(report, kernel);
    }
}

fn batch(report: &mut Report, kernel: Kernel) {
    let shape = Shape::new(K, LEN).unwrap();
    let sources = random_bytes(shape.bytes());
    let encoder = Encoder::new(Rows::new(shape, &sources).unwrap())
        .unwrap()
        .with_kernel(kernel);
    let mut vectors = random_bytes(K * K);
    let mut coded = vec![0; shape.bytes()];
    report.rate("encode", MACS, K * LEN, || {
        encoder
            .encode_many(&vectors, RowsMut::new(shape, &mut coded).unwrap())
            .unwrap();
    });
    encoder
        .encode_many(&vectors, RowsMut::new(shape, &mut coded).unwrap())
        .unwrap();
    let packets = coded.clone();
    let mut batch = Batch::<K, _>::new(shape, vec![0; shape.bytes()])
        .unwrap()
        .with_kernel(kernel);
    let mut decoded = vec![0; shape.bytes()];
    report.rate("decode", MACS, K * LEN, || {
        batch.reset(shape).unwrap();
        for (vector, packet) in vectors.chunks(K).zip(packets.chunks(LEN)) {
            let _ = batch.insert(vector, packet);
        }
        batch
            .decode_into(RowsMut::new(shape, &mut decoded).unwrap())
            .unwrap();
    });
    let _ = vectors
        .chunks(K)
        .zip(packets.chunks(LEN))
        .map(|(v, p)| batch.insert(v, p))
        .count();
    batch
        .decode_into(RowsMut::new(shape, &mut decoded).unwrap())
        .unwrap();
    assert_eq!(decoded, sources);
    let mut pool = Pool::new();
    report.rate("recode from 32", MACS, K * LEN, || {
        batch
            .recode_many(|b| pool.fill(b), &mut vectors, shape, &mut coded)
            .unwrap();
    });
    let known = &vectors.clone()[..(K - 1) * K];
    batch.reset(shape).unwrap();
    let _ = known
        .chunks(K)
        .zip(packets.chunks(LEN))
        .map(|(v, p)| batch.insert(v, p))
        .count();
    let rank = batch.rank();
    report.time("reject a useless packet", || {
        assert!(!batch.insert(&known[..K], &packets[..LEN]).is_innovative());
    });
    assert_eq!((rank, batch.rank()), (K - 1, K - 1));
}

fn erasure(report: &mut Report, kernel: Kernel) {
    let shape = Shape::new(K, LEN).unwrap();
    let code = Erasure::new(K, K).unwrap().with_kernel(kernel);
    let mut data = random_bytes(shape.bytes());
    let before = data.clone();
    let mut parity = vec![0; shape.bytes()];
    report.rate("erasure code, encode", MACS, K * LEN, || {
        let rows = Rows::new(shape, &data).unwrap();
        code.encode(rows, RowsMut::new(shape, &mut parity).unwrap())
            .unwrap();
    });
    code.encode(
        Rows::new(shape, &data).unwrap(),
        RowsMut::new(shape, &mut parity).unwrap(),
    )
    .unwrap();
    let all: Vec<u8> = (0..K as u8).collect();
    report.rate("erasure code, decode", MACS, K * LEN, || {
        let rows = RowsMut::new(shape, &mut data).unwrap();
        let parity = RowsMut::new(shape, &mut parity).unwrap();
        code.reconstruct(rows, &all, parity, &all).unwrap();
    });
    assert_eq!(data, before);
}
