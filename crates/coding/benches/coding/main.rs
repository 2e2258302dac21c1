//! How fast the kernels are, as shares of what the core could do at most.
//!
//! `cargo bench -p chappe-coding [-- FILTER]` first measures the core's clock and each kernel's roof: how many bytes a
//! cycle its instructions multiply and add in GF(2^8) if nothing but registers is involved. Then every operation is timed
//! on every kernel: 201 samples of some 60 us each. Printed are the best and the median time, and the rates of the best.
//! The share of the roof is counted in cycles, with the clock measured beside each sample, since a busy machine changes it.
//! What makes one packet at a time reads each source once, so loads may be its limit: its last column is the share of only
//! reading the same bytes by the same registers.
#![allow(unsafe_code, reason = "the roof is measured with given instructions")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark has a clock"
)]

mod measure;
mod roof;

use chappe_coding::{Basis, Batch, Encoder, Erasure, Kernel, Rows, RowsMut, Shape};
use measure::{Pool, Report, random_bytes};

const K: usize = 32;
const LEN: usize = 1500;

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let roof = roof::measure();
    let mut report = Report::new(roof, filter);
    for kernel in Kernel::available().collect::<Vec<_>>().into_iter().rev() {
        report.section(kernel.name());
        let plain = Shape::new(K, LEN).expect("a batch");
        batch(&mut report, kernel, plain, "");
        batch(&mut report, kernel, plain.padded(), ", padded to 1536");
        innovation(&mut report, kernel);
        erasure(&mut report, kernel, plain);
    }
}

/// Encoding, recoding and decoding of one batch.
fn batch(report: &mut Report, kernel: Kernel, shape: Shape, note: &str) {
    let mut pool = Pool::new();
    let sources = measure::Aligned::random(shape.bytes());
    let encoder = Encoder::new(Rows::new(shape, sources.bytes()).expect("sources"))
        .expect("a batch")
        .with_kernel(kernel);
    let (macs, source_bytes) = (K * K * LEN, K * LEN);
    let mut out = measure::Aligned::random(shape.bytes());
    let mut vectors = random_bytes(K * K);

    report.rate(
        &format!("encode 32 of 32{note}"),
        macs,
        source_bytes,
        || {
            let to = RowsMut::new(shape, out.bytes_mut()).expect("room");
            encoder.encode_many(&vectors, to).expect("sizes fit");
        },
    );
    let packets: Vec<Vec<u8>> = (0..K)
        .map(|row| {
            Rows::new(shape, out.bytes())
                .expect("rows")
                .row(row)
                .expect("row")
                .to_vec()
        })
        .collect();
    let mut payload = measure::Aligned::random(LEN);
    let mut next = 0;
    let layout = (K, LEN, shape.stride());
    report.rate_of_loads(
        &format!("encode one at a time{note}"),
        (K * LEN, LEN),
        (sources.bytes(), layout),
        || {
            next = (next + 1) % K;
            encoder
                .encode(&vectors[next * K..][..K], payload.bytes_mut())
                .expect("sizes fit");
        },
    );

    let memory = measure::Aligned::random(shape.bytes());
    let mut relay = Batch::<K, _>::new(shape, memory)
        .expect("a batch")
        .with_kernel(kernel);
    for (vector, packet) in vectors.chunks(K).zip(&packets) {
        let _ = relay.insert(vector, packet);
    }
    assert!(relay.is_full(), "this seed gives independent vectors");
    report.rate(
        &format!("recode 32 of 32{note}"),
        macs,
        source_bytes,
        || {
            let fill = |bytes: &mut [u8]| pool.fill(bytes);
            relay
                .recode_many(fill, &mut vectors, shape, out.bytes_mut())
                .expect("sizes fit");
        },
    );
    report.rate(&format!("recode one at a time{note}"), K * LEN, LEN, || {
        let fill = |bytes: &mut [u8]| pool.fill(bytes);
        relay
            .recode(fill, &mut vectors[..K], payload.bytes_mut())
            .expect("sizes fit");
    });

    let vectors = random_bytes(K * K);
    let to = RowsMut::new(shape, out.bytes_mut()).expect("room");
    encoder.encode_many(&vectors, to).expect("sizes fit");
    let mut decoded = measure::Aligned::random(shape.bytes());
    let ran = report.rate(
        &format!("decode: rank and sources{note}"),
        macs,
        source_bytes,
        || {
            // The payloads are where they were received; only the coefficients are inserted.
            let mut basis = Basis::<K>::new(K).expect("a batch").with_kernel(kernel);
            for vector in vectors.chunks_exact(K) {
                let _ = basis.insert(vector);
            }
            let from = Rows::new(shape, out.bytes()).expect("rows");
            let to = RowsMut::new(shape, decoded.bytes_mut()).expect("room");
            basis.solve(from, to).expect("full rank");
        },
    );
    if ran {
        assert!(
            decoded.bytes()[..LEN] == sources.bytes()[..LEN],
            "decoding is wrong"
        );
    }
    let received = out.bytes().to_vec();
    report.rate(
        &format!("decode: insert and decode_into{note}"),
        macs,
        source_bytes,
        || {
            relay.reset(shape).expect("same shape");
            for (vector, packet) in vectors.chunks_exact(K).zip(received.chunks(shape.stride())) {
                let _ = relay.insert(vector, &packet[..LEN]);
            }
            relay
                .decode_into(RowsMut::new(shape, decoded.bytes_mut()).expect("room"))
                .expect("full");
        },
    );
    report.rate(
        &format!("decode: insert and decode in place{note}"),
        macs,
        source_bytes,
        || {
            relay.reset(shape).expect("same shape");
            for (vector, packet) in vectors.chunks_exact(K).zip(received.chunks(shape.stride())) {
                let _ = relay.insert(vector, &packet[..LEN]);
            }
            relay.decode().expect("full");
        },
    );
}

/// The cost of a packet that brings nothing, and of the coefficient side of a batch.
fn innovation(report: &mut Report, kernel: Kernel) {
    let vectors = random_bytes(K * K);
    let mut basis = Basis::<K>::new(K).expect("a batch").with_kernel(kernel);
    for vector in vectors.chunks_exact(K).take(31) {
        let _ = basis.insert(vector);
    }
    assert_eq!(basis.rank(), 31, "this seed gives independent vectors");
    let useless: Vec<[u8; K]> = (0..64u8)
        .map(|i| core::array::from_fn(|j| vectors[j] ^ vectors[(1 + usize::from(i) % 30) * K + j]))
        .collect();
    let mut next = 0;
    report.time("innovation test at rank 31", || {
        next = (next + 1) % 64;
        assert!(!basis.is_innovative(&useless[next]));
    });
    report.time("rank of a batch: 32 insertions", || {
        let mut basis = Basis::<K>::new(K).expect("a batch").with_kernel(kernel);
        for vector in vectors.chunks_exact(K) {
            let _ = basis.insert(vector);
        }
        assert!(basis.is_full());
    });
}

/// The erasure code, 32 data and 32 parity packets.
fn erasure(report: &mut Report, kernel: Kernel, shape: Shape) {
    let code = Erasure::new(K, K).expect("a code").with_kernel(kernel);
    let mut data = random_bytes(shape.bytes());
    let mut parity = random_bytes(shape.bytes());
    report.rate("erasure code 32 + 32, encode", K * K * LEN, K * LEN, || {
        let rows = Rows::new(shape, &data).expect("rows");
        let to = RowsMut::new(shape, &mut parity).expect("room");
        code.encode(rows, to).expect("sizes fit");
    });
    let lost: Vec<u8> = (0..16).map(|i| 2 * i).collect();
    report.rate(
        "erasure code 32 + 32, 16 lost",
        K * 16 * LEN,
        K * LEN,
        || {
            let rows = RowsMut::new(shape, &mut data).expect("rows");
            let parity = RowsMut::new(shape, &mut parity).expect("rows");
            code.reconstruct(rows, &lost, parity, &lost)
                .expect("enough parity");
        },
    );
}
