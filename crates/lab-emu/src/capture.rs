//! Optional capture of an emulation's frames in a file for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{Heard, Recorder, Sent};

/// A capture file, or none by default. The file of a killed emulation is readable up to its last write.
#[derive(Debug, Default)]
pub struct Capture {
    file: Option<Pcapng<BufWriter<File>>>,
    /// Only the transmitter's record of a frame is written.
    senders_only: bool,
}

/// Octets of a write. Large writes are rare, so the emulator rarely waits for the file system.
const BLOCK: usize = 1 << 18;

impl Capture {
    /// Creates a capture file for `nodes` nodes.
    pub fn create(path: &Path, nodes: usize) -> io::Result<Capture> {
        let file = BufWriter::with_capacity(BLOCK, File::create(path)?);
        Ok(Capture {
            file: Some(Pcapng::new(file, nodes, Losses::Heard)),
            senders_only: false,
        })
    }

    /// Records each frame once, as its transmitter sent it, and not once more for each node that heard it: protocol analysers take the
    /// copies for retransmissions.
    pub fn senders_only(mut self) -> Capture {
        self.senders_only = true;
        self
    }

    /// Whether frames are written.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Writes the buffered frames and closes the file. Later frames are not recorded.
    pub fn finish(&mut self) -> io::Result<()> {
        self.file
            .take()
            .map_or(Ok(()), |capture| capture.finish().map(drop))
    }
}

impl Recorder for Capture {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(capture) = &mut self.file {
            capture.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(capture) = self.file.as_mut().filter(|_| !self.senders_only) {
            capture.heard(frame);
        }
    }
}
