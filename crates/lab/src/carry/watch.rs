//! The recorder of a run: when each batch arrived and, on request, every frame in a capture.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use chappe_core::TraceEvent;
use chappe_results::Delay;
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{AirTime, Heard, Recorder, Sent};

use crate::run::RunError;

/// Records arrivals and, on request, frames.
#[derive(Debug)]
pub struct Watch {
    /// For each node the seconds at which batches arrived.
    arrivals: Vec<Vec<f64>>,
    capture: Option<Capture>,
}

/// A capture that appears under its name when it is complete.
#[derive(Debug)]
struct Capture {
    /// `None` once it is finished.
    frames: Option<Pcapng<BufWriter<File>>>,
    /// Where it is written until then.
    part: PathBuf,
    path: PathBuf,
}

impl Watch {
    /// A recorder for nodes `0..nodes`, which writes every frame to `pcap` if that is given.
    pub fn new(nodes: usize, pcap: Option<&Path>) -> Result<Watch, RunError> {
        let capture = pcap.map(|path| {
            Capture::create(path, nodes).map_err(|error| RunError::unwritable(path, &error))
        });
        Ok(Watch {
            arrivals: vec![Vec::new(); nodes],
            capture: capture.transpose()?,
        })
    }

    /// The time from the start of the run until a node had each batch, of all its transfers together.
    pub fn delay(&self, node: usize) -> Option<Delay> {
        self.arrivals.get(node).and_then(|at| Delay::of(at))
    }

    /// Completes the capture and gives it its name.
    pub fn finish(self) -> Result<(), RunError> {
        let Some(capture) = self.capture else {
            return Ok(());
        };
        let path = capture.path.clone();
        capture
            .finish()
            .map_err(|error| RunError::unwritable(&path, &error))
    }
}

impl Capture {
    /// Creates a temporary file next to `path`.
    fn create(path: &Path, nodes: usize) -> io::Result<Capture> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let frames = Pcapng::new(BufWriter::new(File::create(&part)?), nodes, Losses::Heard);
        Ok(Capture {
            frames: Some(frames),
            part,
            path: path.to_path_buf(),
        })
    }

    fn finish(mut self) -> io::Result<()> {
        if let Some(frames) = self.frames.take() {
            frames.finish()?.get_ref().sync_all()?;
            fs::rename(&self.part, &self.path)?;
        }
        Ok(())
    }
}

impl Drop for Capture {
    /// Removes an unfinished capture.
    fn drop(&mut self) {
        if self.frames.take().is_some() {
            // Nothing more can be done if it cannot be removed either.
            let _ = fs::remove_file(&self.part);
        }
    }
}

impl Recorder for Watch {
    fn wants_frames(&self) -> bool {
        self.capture.is_some()
    }

    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(frames) = self
            .capture
            .as_mut()
            .and_then(|capture| capture.frames.as_mut())
        {
            frames.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(frames) = self
            .capture
            .as_mut()
            .and_then(|capture| capture.frames.as_mut())
        {
            frames.heard(frame);
        }
    }

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        if let (TraceEvent::Delivered { .. }, Some(times)) = (event, self.arrivals.get_mut(node)) {
            times.push(at.as_secs_f64());
        }
    }
}
