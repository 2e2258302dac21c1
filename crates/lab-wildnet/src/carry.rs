//! A scenario's run: objects carried by TCP along the line, what came compared and counted.

use std::collections::BTreeMap;
use std::time::Instant as WallClock;

use chappe_core::{DropReason, Duration, Seed};
use chappe_lab::plan::TransferStage;
use chappe_lab::results::{Bound, DATA_TRANSMISSIONS, Flow, Run};
use chappe_lab::run::watch::Filmed;
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Carrier, Job};
use chappe_sim::{AirTime, Recorder};

use super::faults::Mishaps;
use super::hosts::Mail;
use super::masts::Masts;
use super::mounting::Ground;
use super::plan::{SYSTEM, WildNet};
use super::run::Run as Air;
use super::station::Station;

/// How often it is asked whether all is there.
const STEP: Duration = Duration::from_millis(20);
/// Without a limit in the scenario a run ends after ten minutes and so many times the least possible time.
const PATIENCE: f64 = 300.0;

/// Carries the transfers of one seed.
pub fn carry(with: &WildNet, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let radios = 2 * (with.sites.len() - 1);
    let Some(path) = job.pcap else {
        return Ok(recorded(with, job, (), meter)?.0);
    };
    let unwritable = |error| RunError::Write(format!("cannot write {}: {error}", path.display()));
    let film = Filmed::create(path, radios).map_err(unwritable)?;
    let (outcome, film) = recorded(with, job, film, meter)?;
    film.finish().map_err(unwritable)?;
    Ok(outcome)
}

/// A transfer's ends as radios of the line: who sends it, who gets it.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    transfer: &'a TransferStage,
    from: usize,
    to: usize,
}

fn recorded<R: Recorder>(
    with: &WildNet,
    job: &Job<'_>,
    recorder: R,
    meter: &Meter,
) -> Result<(Outcome, R), RunError> {
    let started = WallClock::now();
    let transfers = &job.stage.transfers;
    let reversed = transfers.first().is_some_and(|first| first.source != 0);
    let mut masts = with.masts(&job.plan.profile, (reversed, transfers.len() > 1));
    masts.mishaps = Mishaps::of(job.plan, &with.sites, reversed, with.frame_loss);
    let last = masts.radios() - 1;
    let first_source = transfers.first().map(|first| first.source);
    let ends: Vec<Ends<'_>> = transfers
        .iter()
        .map(|transfer| match Some(transfer.source) == first_source {
            true => Ends {
                transfer,
                from: 0,
                to: last,
            },
            false => Ends {
                transfer,
                from: last,
                to: 0,
            },
        })
        .collect();
    if ends.len() == 2 && ends[0].from == ends[1].from {
        return Err(RunError::Defect("two transfers in one direction".into()));
    }
    let mail = |radio: usize| {
        let own = ends.iter().find(|ends| ends.from == radio);
        let object = own.map(|ends| ends.transfer.object.clone());
        Mail {
            to_send: object.as_ref().map_or(0, |object| object.len() as u64),
            object,
            copy: Some(Vec::new()),
            ..Mail::default()
        }
    };
    let mut ground = Ground::of(&masts);
    let mut air = masts.launch(&mut ground, Seed(job.stage.seed), mail, recorder)?;
    drive(&mut air, with, job, &ends, meter)?;
    let mut outcome = report(&air, with, job, (&masts, &ends));
    outcome.run.wall_s = started.elapsed().as_secs_f64();
    let (_, recorder, _) = air.simulator.into_parts();
    Ok((outcome, recorder))
}

fn came<'r, R: Recorder>(air: &'r Air<'_, R>, ends: &Ends<'_>) -> &'r [u8] {
    let host = air.simulator.node(ends.to).station.traffic().host();
    let copy = host.and_then(|host| host.app().copy.as_deref());
    copy.unwrap_or_default()
}

fn drive<R: Recorder>(
    air: &mut Air<'_, R>,
    with: &WildNet,
    job: &Job<'_>,
    ends: &[Ends<'_>],
    meter: &Meter,
) -> Result<(), RunError> {
    let total: usize = ends.iter().map(|ends| ends.transfer.object.len()).sum();
    let least = total as f64 * 8.0 / with.bound_bps(ends.len() > 1);
    let given = job.plan.limit.map(|limit| limit.as_secs_f64());
    let faults = job.plan.faults.iter().map(|(at, _)| *at);
    let last = faults
        .chain(job.plan.losses.iter().map(|step| step.at))
        .max();
    let last = last.map_or(0.0, |at| at.as_secs_f64());
    let limit = given.unwrap_or(600.0 + PATIENCE * least + last);
    let mut reported = 0;
    while air.simulator.now().as_secs_f64() < limit && !meter.stopped() {
        let next: AirTime = air.simulator.now() + STEP;
        air.until(next);
        let arrived: usize = ends.iter().map(|ends| came(air, ends).len()).sum();
        let share = WORK * arrived as u64 / total.max(1) as u64;
        if share > reported {
            meter.advance(share - reported);
            reported = share;
        }
        if arrived >= total {
            break;
        }
    }
    meter.advance(WORK.saturating_sub(reported));
    match meter.stopped() {
        true => Err(RunError::Interrupted),
        false => Ok(()),
    }
}

fn report<R: Recorder>(
    air: &Air<'_, R>,
    with: &WildNet,
    job: &Job<'_>,
    (masts, ends): (&Masts, &[Ends<'_>]),
) -> Outcome {
    let flows: Vec<Flow> = ends
        .iter()
        .enumerate()
        .map(|(number, ends)| flow(air, with, number, ends))
        .collect();
    let most = with.bound_bps(ends.len() > 1);
    let bounds: Vec<Bound> = flows
        .iter()
        .map(|flow| Bound {
            name: "802.11b frames back to back".into(),
            goodput_bps: most,
            fraction: flow.goodput_bps / most,
        })
        .collect();
    let missing = flows.iter().filter(|flow| !flow.complete);
    let notes = missing.map(|flow| {
        format!(
            "seed {}: not finished: {} got {} of {} octets",
            job.stage.seed, flow.name, flow.delivered_bytes, flow.offered_bytes
        )
    });
    let copy = |(ends, flow): (&Ends<'_>, &Flow)| {
        (job.copies && flow.complete).then(|| came(air, ends).to_vec())
    };
    Outcome {
        notes: notes.collect(),
        copies: ends.iter().zip(&flows).map(copy).collect(),
        run: Run {
            seed: job.stage.seed,
            simulated_s: air.simulator.now().as_secs_f64(),
            wall_s: 0.0,
            events: air.simulator.counters().events,
            digest: format!("{:016x}", air.simulator.digest()),
            counters: counters(air, masts),
            bound: bounds.first().cloned(),
            fairness: None,
            bounds,
            flows,
        },
    }
}

fn flow<R: Recorder>(air: &Air<'_, R>, with: &WildNet, number: usize, ends: &Ends<'_>) -> Flow {
    let (transfer, octets) = (ends.transfer, came(air, ends));
    let (object, sink) = (&transfer.object, transfer.receivers[0]);
    let complete = octets.len() == object.len();
    let host = air.simulator.node(ends.to).station.traffic().host();
    let last = host.map(|host| host.app().last.as_secs_f64());
    let completion_s = last.filter(|_| complete);
    Flow {
        name: format!("r{sink}"),
        transfer: number,
        source: transfer.source,
        sink,
        protocol: SYSTEM.name.into(),
        variant: with.variant().name.into(),
        offered_bytes: object.len() as u64,
        delivered_bytes: octets.len() as u64,
        complete,
        digest_ok: complete && blake3::hash(octets) == blake3::hash(object),
        completion_s,
        goodput_bps: completion_s.map_or(0.0, |seconds| object.len() as f64 * 8.0 / seconds),
        delay_s: None,
    }
}

fn counters<R: Recorder>(air: &Air<'_, R>, masts: &Masts) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counters.entry(name.to_string()).or_default() += count;
    let counts = air.simulator.counters();
    add("frames", counts.frames);
    add("receptions", counts.receptions);
    for (why, count) in counts.lost.iter().filter(|(_, count)| *count > 0) {
        add(&format!("lost_{why}"), count);
    }
    let stations = (0..masts.radios()).map(|radio| &air.simulator.node(radio).station);
    for station in stations.chain(&air.ended) {
        match station {
            Station::Slots(slots) => {
                let link = slots.radio.link.counters();
                add(
                    DATA_TRANSMISSIONS,
                    link.bodies + link.repeats + link.repairs + link.fills,
                );
                add("packets_first_sent", link.bodies);
                add("packets_repeated", link.repeats);
                add("repairs_planned", link.repairs);
                add("repairs_filling", link.fills);
                add("packets_recovered", link.recovered);
                add("packets_given_up", link.given_up);
                add("slots", slots.radio.slots().slots);
                if air.faulty() {
                    add("peer_restarts_noticed", link.peer_restarts);
                    add("packets_lost_by_peer_restart", link.lost_by_restart);
                    add("frames_stale", link.drops.of(DropReason::Stale));
                }
            }
            Station::Plain(plain) => {
                let mac = plain.mac.counters();
                add(DATA_TRANSMISSIONS, mac.data_sent + mac.broadcast_sent);
                add("frame_retries", mac.retries);
                add("frames_given_up", mac.failed);
            }
        }
    }
    for station in &air.ended {
        if let Station::Slots(slots) = station {
            let report = slots.radio.link.report();
            add("packets_lost_with_their_mast", report.queued as u64);
            add("packets_open_at_a_crash", report.open.into());
        }
    }
    if air.faulty() {
        add("mast_restarts", air.restarted.len() as u64);
    }
    counters
}
