//! Intel's ISA-L, if its library is installed.

use std::ffi::c_int;

use chappe_coding::{Kernel, Rows, RowsMut, Shape};
use libloading::Library;

use crate::measure::{Report, random_bytes};
use crate::{K, LEN, MACS};

type InitTables = unsafe extern "C" fn(c_int, c_int, *const u8, *mut u8);
type Encode =
    unsafe extern "C" fn(c_int, c_int, c_int, *const u8, *const *const u8, *const *mut u8);
type Invert = unsafe extern "C" fn(*mut u8, *mut u8, c_int) -> c_int;

pub fn run(report: &mut Report) {
    // SAFETY: the library's initialisers do nothing special.
    let Ok(library) = (unsafe { Library::new("libisal.so.2") }) else {
        println!("| ISA-L | skipped: libisal.so.2 is not installed | | | | | |");
        return;
    };
    report.section("ISA-L");
    // SAFETY: names and types are those of `erasure_code.h`.
    let (init, encode, invert) = unsafe {
        (
            library.get::<InitTables>(b"ec_init_tables").unwrap(),
            library.get::<Encode>(b"ec_encode_data").unwrap(),
            library.get::<Invert>(b"gf_invert_matrix").unwrap(),
        )
    };
    let sources = random_bytes(K * LEN);
    let vectors = random_bytes(K * K);
    let mut coded = vec![0; K * LEN];
    let mut tables = vec![0; 32 * K * K];
    let (k, len) = (K as c_int, LEN as c_int);
    let run = |vectors: &[u8], tables: &mut [u8], from: &[u8], to: &mut [u8], prepare: bool| {
        let from: Vec<*const u8> = from.chunks(LEN).map(<[u8]>::as_ptr).collect();
        let to: Vec<*mut u8> = to.chunks_mut(LEN).map(<[u8]>::as_mut_ptr).collect();
        // SAFETY: all buffers have the sizes that the library documents.
        unsafe {
            if prepare {
                init(k, k, vectors.as_ptr(), tables.as_mut_ptr());
            }
            encode(len, k, k, tables.as_ptr(), from.as_ptr(), to.as_ptr());
        }
    };
    run(&vectors, &mut tables, &sources, &mut coded, true);
    let shape = Shape::new(K, LEN).unwrap();
    let mut ours = vec![0; K * LEN];
    let to = RowsMut::new(shape, &mut ours).unwrap();
    Kernel::best()
        .combine(&vectors, Rows::new(shape, &sources).unwrap(), to)
        .unwrap();
    assert_eq!(ours, coded, "ISA-L computes other bytes");
    report.rate("encode", MACS, K * LEN, || {
        run(&vectors, &mut tables, &sources, &mut coded, true);
    });
    report.rate("encode, tables ready", MACS, K * LEN, || {
        run(&vectors, &mut tables, &sources, &mut coded, false);
    });
    let mut decoded = vec![0; K * LEN];
    let ran = report.rate("decode", MACS, K * LEN, || {
        let mut matrix = vectors.clone();
        let mut inverse = vec![0; K * K];
        // SAFETY: both are K x K.
        assert_eq!(
            unsafe { invert(matrix.as_mut_ptr(), inverse.as_mut_ptr(), k) },
            0
        );
        run(&inverse, &mut tables, &coded, &mut decoded, true);
    });
    assert!(!ran || decoded == sources, "ISA-L decodes to other bytes");
}
