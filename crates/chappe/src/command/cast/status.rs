//! What a running member answers to `status json`, over the socket that `chappe view --live` asks.

use chappe_cast::session::{View, role_word};
use chappe_core::DropReason;
use serde_json::{Value, json};

use crate::door::{self, Door};

/// The socket of this process. A member works without one, so a failure to open it is none.
pub fn open() -> Option<Door> {
    let name = format!("cast-{}.sock", std::process::id());
    door::bind_usual(&name).and_then(door::Bound::open).ok()
}

/// Answers who has asked since the last call.
pub fn answer(door: &Door, view: &View<'_>) {
    while let Some(request) = door.request() {
        let text = match request.question.as_str() {
            "status json" => format!("{}\n", status(view)),
            _ => "unknown request: write status json\n".to_owned(),
        };
        // The client may have gone.
        let _ = request.answer.send(text);
    }
}

fn status(view: &View<'_>) -> Value {
    let (statistics, member) = (view.statistics, view.member);
    let roster = member.roster();
    let own = roster.seat();
    let members: Vec<Value> = roster
        .all(view.now)
        .map(|record| {
            let transfers = record.transfers.iter().map(|(transfer, state, done)| {
                json!({ "transfer": format!("{transfer:016x}"), "state": state.word(), "batches_done": done })
            });
            json!({
                "node": record.node,
                "name": record.name,
                "role": role_word(record),
                "transfers": transfers.collect::<Vec<_>>(),
            })
        })
        .collect();
    let measured = roster.all(view.now).flat_map(|record| {
        let to = record.node;
        let links = record.links.iter();
        links.map(move |(from, share)| json!({ "from": from, "to": to, "delivery": share }))
    });
    let batches: u32 = member.tickets().map(|ticket| ticket.cut.batches()).sum();
    let dropped: serde_json::Map<String, Value> = DropReason::ALL
        .iter()
        .map(|why| {
            (
                format!("dropped_{}", why.name()),
                statistics.dropped(*why).into(),
            )
        })
        .collect();
    json!({
        "daemon": "cast",
        "at_s": view.now.as_secs_f64(),
        "node": own.node,
        "name": own.name(),
        "pace_bps": statistics.rate,
        "pace_decided_by": statistics.decider,
        "pace_of_half_bps": statistics.carried,
        "batches": batches,
        "members": members,
        "links": measured.collect::<Vec<_>>(),
        "counters": {
            "frames_sent": statistics.frames_sent,
            "frames_received": statistics.frames_received,
            "octets_sent": statistics.octets_sent,
            "octets_received": statistics.octets_received,
            "frames_lost_in_queue": statistics.lost_in_queue,
            "frames_refused": statistics.refused,
            "queue_full": statistics.queue_full,
            "retries": statistics.retries,
            "given_up": statistics.given_up,
        },
        "dropped": dropped,
    })
}
