//! Every frame of an emulation in a file for Wireshark, if that is wanted.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{Heard, Recorder, Sent};

/// A capture, or none. What a killed emulation has written so far can be read.
#[derive(Debug, Default)]
pub struct Film(Option<Pcapng<BufWriter<File>>>);

/// Octets that are written at a time: seldom, so that the file system is seldom waited for.
const BLOCK: usize = 1 << 18;

impl Film {
    /// A capture of `nodes` nodes in a new file.
    pub fn create(path: &Path, nodes: usize) -> io::Result<Film> {
        let file = BufWriter::with_capacity(BLOCK, File::create(path)?);
        Ok(Film(Some(Pcapng::new(file, nodes, Losses::Heard))))
    }

    /// Writes what is still to be written. Nothing is recorded any more after that.
    pub fn finish(&mut self) -> io::Result<()> {
        self.0.take().map_or(Ok(()), |film| film.finish().map(drop))
    }
}

impl Recorder for Film {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(film) = &mut self.0 {
            film.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(film) = &mut self.0 {
            film.heard(frame);
        }
    }
}
