//! Optional capture of an emulation's frames in a file for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{Heard, Recorder, Sent};

/// A capture file, or none by default. The file of a killed emulation is readable up to its last write.
#[derive(Debug, Default)]
pub struct Capture(Option<Pcapng<BufWriter<File>>>);

/// Octets of a write. Large writes are rare, so the emulator rarely waits for the file system.
const BLOCK: usize = 1 << 18;

impl Capture {
    /// Creates a capture file for `nodes` nodes.
    pub fn create(path: &Path, nodes: usize) -> io::Result<Capture> {
        let file = BufWriter::with_capacity(BLOCK, File::create(path)?);
        Ok(Capture(Some(Pcapng::new(file, nodes, Losses::Heard))))
    }

    /// Writes the buffered frames and closes the file. Later frames are not recorded.
    pub fn finish(&mut self) -> io::Result<()> {
        self.0
            .take()
            .map_or(Ok(()), |capture| capture.finish().map(drop))
    }
}

impl Recorder for Capture {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(capture) = &mut self.0 {
            capture.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(capture) = &mut self.0 {
            capture.heard(frame);
        }
    }
}
