//! What the nodes of a transfer do with each frame, as a recorder of the simulator sees it.

use chappe_core::Mode;
use chappe_lab::carry::RunSpec;
use chappe_lab::run::{Meter, RunError};
use chappe_p3::header::{Header, Kind};
use chappe_p3::{Plan as RoutePlan, config};
use chappe_scenario::Plan;
use chappe_sim::{AirTime, Heard, Loss, Recorder, Sent};

use super::carry::watched;
use super::plan::P3;
use super::prepare::{Knowledge, Prepared};
use super::route::route;

/// A node's part in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The node sent the frame.
    Sent,
    /// The node received the frame intact.
    Received,
    /// The node listened and lost the frame.
    Lost,
    /// The node stopped receiving after the header.
    GaveUp,
}

/// A frame, as one node sent or heard it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The node that sent or heard it.
    pub node: usize,
    /// When the frame begins, in nanoseconds.
    pub start: u64,
    /// When the frame ends, in nanoseconds.
    pub end: u64,
    /// The channel of the frame.
    pub channel: u8,
    /// What the node did.
    pub action: Action,
    /// What the frame carries.
    pub kind: Kind,
    /// Number of the packet, or of the round.
    pub number: u16,
}

/// A recorder of all frames except PLAN and TALLY, and of their receptions.
#[derive(Debug, Default)]
pub struct Trace {
    /// What the nodes did, in the order of the simulation.
    pub events: Vec<Event>,
}

impl Trace {
    fn note(
        &mut self,
        node: usize,
        psdu: &[u8],
        begun: (AirTime, Mode),
        channel: u8,
        action: Action,
    ) {
        let Ok((header, _)) = Header::parse(psdu) else {
            return;
        };
        if matches!(header.kind, Kind::Plan | Kind::Tally) {
            return;
        }
        let (start, mode) = begun;
        let start = (start.as_secs_f64() * 1e9) as u64;
        let airtime = mode.airtime(psdu.len() + config::FCS_LEN).nanos();
        self.events.push(Event {
            node,
            start,
            end: start + airtime,
            channel,
            action,
            kind: header.kind,
            number: header.sequence,
        });
    }
}

impl Recorder for Trace {
    fn sent(&mut self, frame: &Sent<'_>) {
        self.note(
            frame.node,
            frame.psdu,
            (frame.at, frame.mode),
            frame.channel,
            Action::Sent,
        );
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        let action = match frame.outcome {
            Ok(()) => Action::Received,
            Err(Loss::Noise | Loss::Collision | Loss::TooWeak) => Action::Lost,
            Err(Loss::Aborted) => Action::GaveUp,
            // The radio was off, on another channel or sending, or this is a further copy of a frame that it received.
            Err(_) => return,
        };
        self.note(
            frame.node,
            frame.psdu,
            (frame.started, frame.mode),
            frame.channel,
            action,
        );
    }
}

/// Carries the first transfer of a prepared network. Returns what the nodes did, and the route's plan.
pub fn record(plan: &Plan, prepared: &Prepared, with: &P3) -> Result<(Trace, RoutePlan), RunError> {
    let transfer = &prepared.network.transfers[0];
    let packets = transfer.object.len().div_ceil(usize::from(with.payload));
    let known: Knowledge = prepared.learn(with);
    let ends = (
        prepared.network.seed,
        transfer.source,
        transfer.receivers[0],
    );
    let found = route(with, &known, ends, packets as u32)?;
    let Some(found) = found else {
        return Err(RunError::Defect(
            "the route that fits was not found again".into(),
        ));
    };
    let spec = RunSpec::plain(plan, &prepared.network);
    let (_, trace) = watched(with, prepared, spec, Trace::default(), &Meter::default())?;
    Ok((trace, found.plan))
}
