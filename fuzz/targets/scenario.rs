#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chappe_fuzz::feed("scenario", bytes));
