//! The parts of a transfer: its files under temporary names, with holes where data are lacking.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The name of a part in the place of its transfer.
pub(super) fn part_name(number: usize) -> String {
    format!("{number}.part")
}

/// Reads octets of a part; behind its end it has zeros.
pub(super) fn read_padded(part: &File, into: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        match part.read_at(&mut into[done..], at + done as u64) {
            Ok(0) => {
                into[done..].fill(0);
                return Ok(());
            }
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
