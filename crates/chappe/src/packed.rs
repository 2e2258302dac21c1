//! Texts that the program holds packed; `build.rs` packs them.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// The JSON Schema of scenario files. A test compares it with the types that it describes.
pub fn schema() -> String {
    text(include_bytes!(concat!(
        env!("OUT_DIR"),
        "/scenario.schema.json"
    )))
}

/// What the lab found at the last release.
pub fn record() -> String {
    text(include_bytes!(concat!(env!("OUT_DIR"), "/record.json")))
}

fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    // The build packed it, so it can be unpacked.
    let _ = DeflateDecoder::new(packed).read_to_string(&mut text);
    text
}

#[cfg(test)]
mod tests {
    /// Method: the files that were packed.
    #[test]
    fn texts_come_back_as_they_were() {
        assert_eq!(super::schema(), include_str!("scenario.schema.json"));
        assert_eq!(super::record(), include_str!("command/lab/record.json"));
    }
}
