//! Tests that cannot run on this machine.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;

/// The environment variable that names the file in which skipped tests are collected. `cargo xtask test` sets it.
pub const SKIPPED_FILE: &str = "CHAPPE_SKIPPED";

/// Reports that the calling test is skipped, and why; the test should then return.
///
/// `cargo xtask test` lists skipped tests in its summary. Elsewhere the reason is printed, which `cargo test` shows with
/// `--nocapture`.
///
/// ```
/// fn decodes_with_tshark() {
///     # let tshark_is_installed = false;
///     if !tshark_is_installed {
///         return chappe_testkit::skip("tshark is not installed");
///     }
/// }
/// # decodes_with_tshark();
/// ```
#[track_caller]
pub fn skip(reason: impl AsRef<str>) {
    // A program's error may have several lines; one test has one line in the summary.
    let reason = reason.as_ref().split_whitespace().collect::<Vec<_>>();
    let (place, reason) = (Location::caller(), reason.join(" "));
    let line = format!("{}:{}: {reason}\n", place.file(), place.line());
    let collected = env::var_os(SKIPPED_FILE).is_some_and(|file| {
        let file = OpenOptions::new().append(true).create(true).open(file);
        // One write, so that lines of several test programs do not mix.
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .is_ok()
    });
    if !collected {
        println!("skipped: {reason}");
    }
}
