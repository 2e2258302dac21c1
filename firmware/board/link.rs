//! What the build scripts of the images share: it tells the linker where each board's memory is.

/// For the program `firmware`, the emulated board's memory; for those of `images`, the nRF52840's. Programs of other targets than a
/// Cortex-M have no such script.
pub fn link(images: &[&str]) {
    println!("cargo:rerun-if-changed=../../proof/board/memory.x");
    println!("cargo:rerun-if-changed=../board/nrf52840.x");
    let target = std::env::var("TARGET").unwrap_or_default();
    if !target.starts_with("thumb") {
        return;
    }
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bin=firmware=-T{folder}/../../proof/board/memory.x");
    // cortex-m-rt's script includes a file of this name from the search path.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let memory = format!("{out}/memory.x");
    if let Err(why) = std::fs::copy(format!("{folder}/../board/nrf52840.x"), &memory) {
        println!("cargo:warning=memory.x: {why}");
    }
    println!("cargo:rustc-link-search={out}");
    for image in images {
        println!("cargo:rustc-link-arg-bin={image}=-Tlink.x");
    }
}
