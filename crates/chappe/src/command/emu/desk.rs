//! What a running emulation answers to `status json` and `frames json`, over the socket that `chappe view --live` asks.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use chappe_lab_emu::Emulation;
use chappe_sim::AirTime;

use super::report::Report;
use super::running::Running;
use crate::command::desk;
use crate::command::film::Air;
use crate::door::{Bound, Door};
use crate::failure::Failure;

/// The token of the door's bell.
const BELL: u32 = 1;

/// Answers questions about an emulation.
pub struct Desk {
    door: Option<Door>,
    emulation: Arc<Emulation>,
    air: Air,
}

impl Desk {
    /// Answers at `bound` from now on, whenever `emulator` runs.
    pub fn open(
        emulator: &mut Running,
        emulation: &Emulation,
        bound: Option<Bound>,
    ) -> Result<Desk, Failure> {
        // A network without this socket is whole.
        let door = bound.and_then(|bound| bound.open().ok());
        if let Some(door) = &door {
            emulator.watch(door.as_fd(), BELL)?;
        }
        Ok(Desk {
            door,
            emulation: Arc::new(emulation.clone()),
            air: Air {
                medium: Arc::new(emulation.medium().clone()),
                seed: emulation.seed,
                labeller: chappe_trace::standard,
            },
        })
    }

    /// Answers who has asked since the last call.
    pub fn answer(&self, emulator: &mut Running) {
        while let Some(request) = self.door.as_ref().and_then(Door::request) {
            match request.question.as_str() {
                "status json" => {
                    let report = Report::of(&self.emulation, emulator, None);
                    tell(self.emulation.clone(), report, request.answer);
                }
                "frames json" => {
                    let now = AirTime::from_nanos(emulator.clock().now().nanos());
                    let film = emulator.recorder_mut();
                    film.hand_over(now, &self.air, request.answer);
                }
                _ => {
                    // The client may have gone.
                    let _ = request.answer.send(desk::UNKNOWN.to_owned());
                }
            }
        }
    }
}

/// Answers with what the report says, by a thread: 250 nodes have many links, and the network must not wait for them.
fn tell(emulation: Arc<Emulation>, report: Report, answer: Sender<String>) {
    std::thread::spawn(move || {
        let mut status = serde_json::to_value(report).unwrap_or_default();
        let links = desk::links(emulation.nodes(), |from| emulation.neighbours(from));
        if let Some(members) = status.as_object_mut() {
            members.insert("daemon".into(), "emu".into());
            members.insert("links".into(), links);
        }
        // The client may have gone.
        let _ = answer.send(format!("{status}\n"));
    });
}
