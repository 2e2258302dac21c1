//! Throughput of other coding crates, in the same shape of batch as ours.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::measure::{Report, random_bytes};
use crate::{K, LEN, MACS};

/// `rlnc`: the same code as ours. It appends a marker byte to the data, so that the data is one
/// byte shorter.
pub fn rlnc(report: &mut Report) {
    report.section("rlnc");
    use rlnc::full::{Decoder, Encoder, Recoder};
    let mut random = SmallRng::seed_from_u64(1);
    let data = random_bytes(K * LEN - 1);
    let encoder = Encoder::new(data.clone(), K).unwrap();
    let full = encoder.get_full_coded_piece_byte_len();
    let mut coded = vec![0; full * K];
    report.rate("encode", MACS, K * LEN, || {
        for piece in coded.chunks_mut(full) {
            encoder.code_with_buf(&mut random, piece).unwrap();
        }
    });
    for piece in coded.chunks_mut(full) {
        encoder.code_with_buf(&mut random, piece).unwrap();
    }
    let decode = || {
        let mut decoder = Decoder::new(LEN, K).unwrap();
        for piece in coded.chunks(full) {
            decoder.decode(piece).unwrap();
        }
        decoder.get_decoded_data().unwrap()
    };
    assert_eq!(decode(), data, "this seed gives independent vectors");
    report.rate("decode", MACS, K * LEN, || {
        decode();
    });
    let mut recoder = Recoder::new(coded.clone(), full, K).unwrap();
    let mut out = vec![0; full * K];
    report.rate("recode from 32", MACS, K * LEN, || {
        for piece in out.chunks_mut(full) {
            recoder.recode_with_buf(&mut random, piece).unwrap();
        }
    });
    let mut decoder = Decoder::new(LEN, K).unwrap();
    for piece in coded.chunks(full).take(K - 1) {
        decoder.decode(piece).unwrap();
    }
    report.time("reject a useless packet", || {
        let _ = decoder.decode(&coded[..full]);
    });
}

/// `reed-solomon-simd`: a block code of O(n log n). It cannot be recoded.
pub fn reed_solomon_simd(report: &mut Report) {
    report.section("reed-solomon-simd");
    use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
    let data = random_bytes(K * LEN);
    let mut encoder = ReedSolomonEncoder::new(K, K, LEN).unwrap();
    let mut encode = || {
        for packet in data.chunks(LEN) {
            encoder.add_original_shard(packet).unwrap();
        }
        let parity = encoder.encode().unwrap();
        parity.recovery_iter().map(<[u8]>::len).sum::<usize>()
    };
    report.rate("erasure code, encode", MACS, K * LEN, || {
        assert_eq!(encode(), K * LEN);
    });
    for packet in data.chunks(LEN) {
        encoder.add_original_shard(packet).unwrap();
    }
    let parity: Vec<Vec<u8>> = encoder
        .encode()
        .unwrap()
        .recovery_iter()
        .map(<[u8]>::to_vec)
        .collect();
    let mut decoder = ReedSolomonDecoder::new(K, K, LEN).unwrap();
    report.rate("erasure code, decode", MACS, K * LEN, || {
        for (index, packet) in parity.iter().enumerate() {
            decoder.add_recovery_shard(index, packet).unwrap();
        }
        let restored = decoder.decode().unwrap();
        assert!(restored.restored_original(5) == Some(&data[5 * LEN..6 * LEN]));
    });
}

/// `raptorq`: a fountain code (RFC 6330). It cannot be recoded.
pub fn raptorq(report: &mut Report) {
    report.section("raptorq");
    use raptorq::{
        ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder,
        SourceBlockEncodingPlan,
    };
    let data = random_bytes(K * LEN);
    let size = data.len() as u64;
    let config = ObjectTransmissionInformation::new(size, LEN as u16, 1, 1, 4);
    let plan = SourceBlockEncodingPlan::generate(K as u16);
    let encode = || {
        let encoder = SourceBlockEncoder::with_encoding_plan(0, &config, &data, &plan);
        encoder.repair_packets(0, K as u32)
    };
    report.rate("encode", MACS, K * LEN, || {
        assert_eq!(encode().len(), K);
    });
    let packets = encode();
    report.rate("decode", MACS, K * LEN, || {
        let mut decoder = SourceBlockDecoder::new(0, &config, size);
        let decoded = decoder.decode(packets.iter().cloned());
        assert!(
            decoded.is_some_and(|decoded| decoded == data),
            "these packets suffice"
        );
    });
}
