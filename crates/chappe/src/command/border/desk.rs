//! What a running border router answers to `status json` and `frames json`, over the socket that `chappe view --live` asks.

use std::os::fd::AsFd;
use std::sync::Arc;

use chappe_border::Status;
use chappe_lab_tcplp::live::LiveNetwork;
use chappe_sim::AirTime;
use serde_json::Value;

use super::Running;
use crate::command::desk;
use crate::command::film::Air;
use crate::door::{Bound, Door};
use crate::failure::Failure;

/// The token of the door's bell.
const BELL: u32 = 1;

/// Answers questions about a border router.
pub struct Desk {
    door: Option<Door>,
    scenario: String,
    links: Value,
    air: Air,
}

impl Desk {
    /// Answers at `bound` from now on, whenever `border` runs.
    pub fn open(
        border: &mut Running,
        live: &LiveNetwork,
        bound: Option<Bound>,
    ) -> Result<Desk, Failure> {
        // A network without this socket is whole.
        let door = bound.and_then(|bound| bound.open().ok());
        if let Some(door) = &door {
            border.watch(door.as_fd(), BELL)?;
        }
        Ok(Desk {
            door,
            scenario: live.title.clone(),
            links: desk::links(live.parents.len(), |from| live.neighbours(from)),
            air: Air {
                medium: Arc::new(live.medium.clone()),
                seed: live.seed,
                labeller: chappe_lab_tcplp::label,
            },
        })
    }

    /// Answers who has asked since the last call.
    pub fn answer(&self, border: &mut Running) {
        while let Some(request) = self.door.as_ref().and_then(Door::request) {
            let text = match request.question.as_str() {
                "status json" => format!("{}\n", self.status(border)),
                "frames json" => {
                    let now = AirTime::from_nanos(border.clock().now().nanos());
                    let film = border.recorder_mut();
                    film.hand_over(now, &self.air, request.answer);
                    continue;
                }
                _ => desk::UNKNOWN.to_owned(),
            };
            // The client may have gone.
            let _ = request.answer.send(text);
        }
    }

    fn status(&self, border: &Running) -> Value {
        let mut status = serde_json::to_value(Status::of(border)).unwrap_or_default();
        if let Some(members) = status.as_object_mut() {
            members.insert("daemon".into(), "border".into());
            members.insert("scenario".into(), self.scenario.clone().into());
            members.insert("seed".into(), self.air.seed.into());
            members.insert("links".into(), self.links.clone());
        }
        status
    }
}
