//! Tells the linker where the board's memory is, for the firmware only.

fn main() {
    println!("cargo:rerun-if-changed=../board/memory.x");
    let target = std::env::var("TARGET").unwrap_or_default();
    if target.starts_with("thumb") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg-bin=firmware=-T{folder}/../board/memory.x");
    }
}
