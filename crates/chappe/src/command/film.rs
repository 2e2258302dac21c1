//! What a network in real time records of its simulated air: a capture file, and the newest frames while a page shows them.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use chappe_core::Duration;
use chappe_lab_emu::Capture;
use chappe_sim::{AirTime, Heard, Interference, Medium, Receivers, Recorder, Sent, Switched};
use chappe_trace::{Labeller, Recording};
use chappe_view::live::frames;

/// Receptions that are kept for a page: half a minute of a busy network of a few motes.
const RECEPTIONS: usize = 1 << 13;
/// No page is open any more if none has asked for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// What frames are on, and what tells them apart.
#[derive(Clone, Debug)]
pub struct Air {
    pub medium: Arc<Medium>,
    pub seed: u64,
    pub labeller: Labeller,
}

/// A capture, and the newest frames.
#[derive(Debug, Default)]
pub struct Film {
    pub capture: Capture,
    newest: Option<Box<Recording>>,
    /// When the newest frames are given up.
    until: AirTime,
}

impl Film {
    pub fn new(capture: Capture) -> Film {
        Film {
            capture,
            ..Film::default()
        }
    }

    /// A page asks at `now` of a run on `air` for the newest frames. The first question begins the recording. Who destroyed what is worked
    /// out by a thread: the network must not wait for that.
    pub fn hand_over(&mut self, now: AirTime, air: &Air, answer: Sender<String>) {
        self.until = now + PATIENCE;
        let begin = || Box::new(Recording::new(&air.medium, RECEPTIONS, air.labeller));
        let newest = (**self.newest.get_or_insert_with(begin)).clone();
        let Air { medium, seed, .. } = air.clone();
        std::thread::spawn(move || {
            let trace = newest.finish(&medium, |about| about.seed = seed);
            // The client may have gone.
            let _ = answer.send(frames::write(&trace.tables(), now.nanos()) + "\n");
        });
    }
}

impl Recorder for Film {
    const NODES: bool = false;

    fn wants_frames(&self) -> bool {
        self.capture.is_open() || self.newest.is_some()
    }

    fn wants_unheard(&self) -> bool {
        self.capture.is_open()
    }

    fn sent(&mut self, frame: &Sent<'_>) {
        self.capture.sent(frame);
        if frame.at > self.until {
            self.newest = None;
        }
        if let Some(newest) = &mut self.newest {
            newest.sent(frame);
        }
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        self.capture.heard(frame);
        if let Some(newest) = &mut self.newest {
            newest.heard(frame);
        }
    }

    fn interfered(&mut self, burst: &Interference, receivers: Receivers<'_>) {
        if let Some(newest) = &mut self.newest {
            newest.interfered(burst, receivers);
        }
    }

    fn switched(&mut self, at: AirTime, node: usize, to: Switched) {
        if let Some(newest) = &mut self.newest {
            newest.switched(at, node, to);
        }
    }
}
