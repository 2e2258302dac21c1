//! The page itself, and one file that holds page and data.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;

/// The page without data. It is built from `web/` by `cargo xtask page` and stands in the repository, so that building
/// Chappe needs no Node.
pub static PAGE: LazyLock<String> = LazyLock::new(|| {
    let packed = include_bytes!(concat!(env!("OUT_DIR"), "/view.html"));
    let mut page = String::new();
    // The build packed it, so it can be unpacked.
    let _ = DeflateDecoder::new(&packed[..]).read_to_string(&mut page);
    page
});

/// Where the data go in [`PAGE`].
const PLACE: &str = r#"<script id="data" type="text/plain">"#;

/// Octets of the file that [`whole`] makes.
pub fn size(packed: &[u8]) -> usize {
    PAGE.len() + packed.len().div_ceil(3) * 4
}

/// One HTML file that shows `packed` data and needs nothing else.
pub fn whole(packed: &[u8]) -> String {
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((&PAGE, ""));
    let mut page = String::with_capacity(PAGE.len() + packed.len() / 3 * 4 + 8);
    page.push_str(before);
    page.push_str(PLACE);
    base64(packed, &mut page);
    page.push_str(after);
    page
}

/// RFC 4648, section 4.
fn base64(octets: &[u8], to: &mut String) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in octets.chunks(3) {
        let at = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            let bits = (word >> (18 - 6 * letter) & 63) as usize;
            to.push(if letter > chunk.len() {
                '='
            } else {
                LETTERS[bits].into()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (octets, letters) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut text = String::new();
            base64(octets.as_bytes(), &mut text);
            assert_eq!(text, letters);
        }
    }

    /// Method: the file that was packed.
    #[test]
    fn the_page_is_the_one_that_was_built() {
        assert_eq!(*PAGE, include_str!("../page/view.html"));
    }

    #[test]
    fn the_page_has_a_place_for_data_and_loads_nothing() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        assert!(whole(b"foo").contains(&format!("{PLACE}Zm9v</script>")));
        for packed in [&b""[..], b"f", b"foo", b"foobar7"] {
            assert_eq!(whole(packed).len(), size(packed));
        }
        for outside in ["http://", "https://", "src=\"/", "@import"] {
            let known = PAGE.matches(outside).count()
                - PAGE.matches("http://www.w3.org/2000/svg").count()
                    * usize::from(outside == "http://");
            assert_eq!(known, 0, "the page names {outside}");
        }
    }

    /// The goal is 150 kB, compressed.
    #[test]
    fn the_page_is_small() {
        use std::io::Write as _;
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(PAGE.as_bytes()).unwrap();
        let octets = packer.finish().unwrap().len();
        println!("the page: {} octets, {octets} compressed", PAGE.len());
        assert!(octets < 150_000, "{octets}");
    }
}
