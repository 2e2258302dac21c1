//! What a border router records of its air: a capture file, and the newest frames while a page shows them.

use chappe_core::Duration;
use chappe_lab_emu::Capture;
use chappe_sim::{AirTime, Heard, Interference, Medium, Receivers, Recorder, Sent, Switched};
use chappe_trace::{Labeller, Recording};

/// Receptions that are kept for a page: half a minute of a busy network of a few motes.
const RECEPTIONS: usize = 1 << 13;
/// No page is open any more if none has asked for this long.
const PATIENCE: Duration = Duration::from_secs(10);

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

    /// A page asks at `now`: a copy of what is recorded, from which frames and causes can be worked out elsewhere. The first question
    /// begins the recording.
    pub fn look(&mut self, now: AirTime, medium: &Medium, labeller: Labeller) -> Recording {
        self.until = now + PATIENCE;
        let begin = || Box::new(Recording::new(medium, RECEPTIONS, labeller));
        (**self.newest.get_or_insert_with(begin)).clone()
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
