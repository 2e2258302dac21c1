//! Tells the linker where the board's memory is, for the programs that run on it only.

fn main() {
    println!("cargo:rerun-if-changed=../board/memory.x");
    let target = std::env::var("TARGET").unwrap_or_default();
    if target.starts_with("thumb") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        for program in ["firmware", "bare", "tls"] {
            println!("cargo:rustc-link-arg-bin={program}=-T{folder}/../board/memory.x");
        }
    }
}
