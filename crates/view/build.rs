//! Packs the page: it is a third of its octets in the program.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

const PAGE: &str = "page/view.html";

fn main() {
    println!("cargo::rerun-if-changed={PAGE}");
    let page = fs::read(PAGE).unwrap();
    let packed = Path::new(&std::env::var_os("OUT_DIR").unwrap()).join("view.html");
    let mut packer = DeflateEncoder::new(File::create(packed).unwrap(), Compression::best());
    packer.write_all(&page).unwrap();
    packer.finish().unwrap();
}
