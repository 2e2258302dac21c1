//! Follows a run: when each batch arrived, and, if wanted, every frame into a capture.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use chappe_core::TraceEvent;
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{AirTime, Heard, Recorder, Sent};

use crate::results::Delay;
use crate::statistics::{mean, quantile};

/// When batches arrived at each node.
#[derive(Debug, Default)]
pub struct Arrivals {
    at: Vec<Vec<f64>>,
}

impl Arrivals {
    /// For nodes `0..nodes`.
    pub fn new(nodes: usize) -> Arrivals {
        Arrivals {
            at: vec![Vec::new(); nodes],
        }
    }

    /// How long batches took to reach a node, from the start of the transfer.
    pub fn delay(&self, node: usize) -> Option<Delay> {
        let at = self.at.get(node).filter(|at| !at.is_empty())?;
        let share = |p: f64| quantile(at, p);
        Some(Delay {
            mean: mean(at),
            p50: share(0.5)?,
            p95: share(0.95)?,
            p99: share(0.99)?,
        })
    }

    fn note(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        if let (TraceEvent::Delivered { .. }, Some(times)) = (event, self.at.get_mut(node)) {
            times.push(at.as_secs_f64());
        }
    }
}

impl Recorder for Arrivals {
    const FRAMES: bool = false;

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        self.note(at, node, event);
    }
}

impl AsRef<Arrivals> for Arrivals {
    fn as_ref(&self) -> &Arrivals {
        self
    }
}

/// The same, and every frame into a file that appears under its name when it is whole.
#[derive(Debug)]
pub struct Filmed {
    arrivals: Arrivals,
    /// `None` once it is finished.
    film: Option<Pcapng<BufWriter<File>>>,
    beside: PathBuf,
    path: PathBuf,
}

impl Filmed {
    /// Begins a file beside `path`.
    pub fn create(path: &Path, nodes: usize) -> io::Result<Filmed> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let film = Pcapng::new(BufWriter::new(File::create(&beside)?), nodes, Losses::Heard);
        Ok(Filmed {
            arrivals: Arrivals::new(nodes),
            film: Some(film),
            beside,
            path: path.to_path_buf(),
        })
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(film) = self.film.take() {
            film.finish()?.get_ref().sync_all()?;
            fs::rename(&self.beside, &self.path)?;
        }
        Ok(())
    }
}

impl Drop for Filmed {
    /// A capture that was not finished is not left behind.
    fn drop(&mut self) {
        if self.film.take().is_some() {
            // Nothing more can be done if it cannot be removed either.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

impl AsRef<Arrivals> for Filmed {
    fn as_ref(&self) -> &Arrivals {
        &self.arrivals
    }
}

impl Recorder for Filmed {
    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(film) = &mut self.film {
            film.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(film) = &mut self.film {
            film.heard(frame);
        }
    }

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        self.arrivals.note(at, node, event);
    }
}
