//! The recorder of a run: when each batch arrived and, on request, every frame in a capture and all events in a trace.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use chappe_core::TraceEvent;
use chappe_results::Delay;
use chappe_sim::capture::{Losses, Pcapng};
use chappe_sim::{
    AirTime, Heard, Interference, Medium, Reading, Receivers, Recorder, Sent, Switched,
};
use chappe_trace::{Labeller, Recording};

use crate::job::RunSpec;
use crate::run::RunError;

/// Records arrivals and, on request, frames.
#[derive(Debug)]
pub struct Watch {
    /// For each node the seconds at which batches arrived.
    arrivals: Vec<Vec<f64>>,
    capture: Option<Capture>,
    recording: Option<Box<Recording>>,
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
    /// A recorder for the nodes of `medium`, which keeps what `spec` asks for. `labeller` tells what a frame is.
    pub fn new(spec: RunSpec<'_>, medium: &Medium, labeller: Labeller) -> Result<Watch, RunError> {
        let nodes = medium.nodes();
        let capture = spec.pcap.map(|path| {
            Capture::create(path, nodes).map_err(|error| RunError::unwritable(path, &error))
        });
        let recording = spec.traces.map(|traces| {
            let recording = Recording::new(medium, traces.limit(), labeller);
            Box::new(recording.with_unheard(traces.unheard()))
        });
        Ok(Watch {
            arrivals: vec![Vec::new(); nodes],
            capture: capture.transpose()?,
            recording,
        })
    }

    /// The time from the start of the run until a node had each batch, of all its transfers together.
    pub fn delay(&self, node: usize) -> Option<Delay> {
        self.arrivals.get(node).and_then(|at| Delay::of(at))
    }

    /// Completes the capture and gives it its name, and hands over the trace.
    pub fn finish(self, spec: RunSpec<'_>, medium: &Medium) -> Result<(), RunError> {
        if let (Some(recording), Some(traces)) = (self.recording, spec.traces) {
            let trace = recording.finish(medium, |about| {
                about.scenario = spec.plan.title.clone();
                about.names.clone_from(&spec.plan.names);
                about.system = spec.plan.system.name.to_string();
                about.variant = spec.plan.settings.label();
                about.seed = spec.network.seed;
            });
            traces.keep(&trace)?;
        }
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

impl Watch {
    fn frames(&mut self) -> Option<&mut Pcapng<BufWriter<File>>> {
        self.capture.as_mut()?.frames.as_mut()
    }
}

impl Recorder for Watch {
    fn wants_frames(&self) -> bool {
        self.capture.is_some() || self.recording.is_some()
    }

    fn wants_unheard(&self) -> bool {
        let recording = self.recording.as_ref();
        self.capture.is_some() || recording.is_some_and(|recording| recording.wants_unheard())
    }

    // Within the simulator's own code: to put a frame together for a call takes as long as to keep it.
    #[inline]
    fn sent(&mut self, frame: &Sent<'_>) {
        if let Some(recording) = &mut self.recording {
            recording.sent(frame);
        }
        if let Some(frames) = self.frames() {
            frames.sent(frame);
        }
    }

    #[inline]
    fn heard(&mut self, frame: &Heard<'_>) {
        if let Some(recording) = &mut self.recording {
            recording.heard(frame);
        }
        if let Some(frames) = self.frames() {
            frames.heard(frame);
        }
    }

    fn interfered(&mut self, burst: &Interference, receivers: Receivers<'_>) {
        if let Some(recording) = &mut self.recording {
            recording.interfered(burst, receivers);
        }
    }

    fn traced(&mut self, at: AirTime, node: usize, event: TraceEvent) {
        if let (TraceEvent::Delivered { .. }, Some(times)) = (event, self.arrivals.get_mut(node)) {
            times.push(at.as_secs_f64());
        }
    }

    fn switched(&mut self, at: AirTime, node: usize, to: Switched) {
        if let Some(recording) = &mut self.recording {
            recording.switched(at, node, to);
        }
    }

    fn wants_readings(&mut self, at: AirTime) -> bool {
        let recording = self.recording.as_mut();
        recording.is_some_and(|recording| recording.wants_readings(at))
    }

    #[inline(always)]
    fn read(&mut self, at: AirTime, node: usize, reading: Reading) {
        if let Some(recording) = &mut self.recording {
            recording.read(at, node, reading);
        }
    }
}
