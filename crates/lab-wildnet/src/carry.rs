//! A scenario's run: objects carried by TCP along the line, the copies compared, counters collected.

use chappe_core::{DropReason, Duration, Seed};
use chappe_lab::carry::{self, Limits, Receipt, Report, Watch};
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_lab::system::Job;
use chappe_results::DATA_TRANSMISSIONS;
use chappe_scenario::{Settings, Transfer};
use chappe_sim::Recorder;

use super::faults::Mishaps;
use super::hosts::Mail;
use super::masts::Masts;
use super::mounting::Ground;
use super::plan::{SYSTEM, WildNet};
use super::run::Run as Air;
use super::station::Station;

/// How often the run looks whether everything has arrived.
const STEP: Duration = Duration::from_millis(20);

/// A transfer's ends as radios of the line: who sends it, who gets it.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    transfer: &'a Transfer,
    from: usize,
    to: usize,
}

/// Carries the transfers of one seed.
pub fn carry(with: &WildNet, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let mut report = Report::begin((&SYSTEM, with.variant()), job.network.seed);
    let transfers = &job.network.transfers;
    let reversed = transfers.first().is_some_and(|first| first.source != 0);
    let mut masts = with.masts(&job.plan.profile, (reversed, transfers.len() > 1));
    masts.mishaps = Mishaps::of(job.plan, &with.sites, reversed, with.frame_loss);
    let ends = ends(transfers, masts.radios() - 1)?;
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
    let watch = Watch::new(masts.radios(), job.pcap)?;
    let mut ground = Ground::of(&masts);
    let mut air = masts.launch(&mut ground, Seed(job.network.seed), mail, watch)?;
    let total: usize = ends.iter().map(|ends| ends.transfer.object.len()).sum();
    let least_s = total as f64 * 8.0 / with.bound_bps(ends.len() > 1);
    carry::run_in_steps(
        &mut air,
        (STEP, Limits::of(job.plan, least_s)),
        |air| air.simulator.now(),
        |air, until| air.until(until),
        |air| {
            let arrived: usize = ends.iter().map(|ends| came(air, ends).len()).sum();
            (arrived as u64, total as u64, arrived >= total)
        },
        meter,
    )?;
    tell(&mut report, &air, with, (job, &masts, &ends));
    let (_, watch, _) = air.simulator.into_parts();
    watch.finish()?;
    Ok(report.finish())
}

/// The transfers' ends on a line whose last radio is `last`, seen from the source of the first one.
fn ends(transfers: &[Transfer], last: usize) -> Result<Vec<Ends<'_>>, RunError> {
    let first_source = transfers.first().map(|first| first.source);
    let ends = transfers.iter().map(|transfer| {
        let (from, to) = match Some(transfer.source) == first_source {
            true => (0, last),
            false => (last, 0),
        };
        Ends { transfer, from, to }
    });
    let ends: Vec<Ends<'_>> = ends.collect();
    if ends.len() == 2 && ends[0].from == ends[1].from {
        return Err(RunError::Defect("two transfers in one direction".into()));
    }
    Ok(ends)
}

/// What has come to a transfer's end.
fn came<'r, R: Recorder>(air: &'r Air<'_, R>, ends: &Ends<'_>) -> &'r [u8] {
    let host = air.simulator.node(ends.to).station.traffic().host();
    let copy = host.and_then(|host| host.app().copy.as_deref());
    copy.unwrap_or_default()
}

/// Reports the run.
fn tell<R: Recorder>(
    report: &mut Report,
    air: &Air<'_, R>,
    with: &WildNet,
    (job, masts, ends): (&Job<'_>, &Masts, &[Ends<'_>]),
) {
    let simulator = &air.simulator;
    report.air(simulator.now(), simulator.counters(), simulator.digest());
    for (number, ends) in ends.iter().enumerate() {
        let octets = came(air, ends);
        let host = simulator.node(ends.to).station.traffic().host();
        let last_s = host.map(|host| host.app().last.as_secs_f64());
        let receipt = Receipt {
            octets: octets.len(),
            completed_s: last_s.filter(|_| octets.len() == ends.transfer.object.len()),
            copy: Some(octets),
            delay: None,
        };
        let sink = ends.transfer.receivers[0];
        report.receipt(number, ends.transfer, sink, receipt, job.copies);
        let most = with.bound_bps(job.network.transfers.len() > 1);
        report.bound("802.11b frames back to back", most, number);
    }
    report.note_unfinished();
    count(report, air, masts);
}

fn count<R: Recorder>(report: &mut Report, air: &Air<'_, R>, masts: &Masts) {
    let stations = (0..masts.radios()).map(|radio| &air.simulator.node(radio).station);
    for station in stations.chain(&air.ended) {
        match station {
            Station::Slots(slots) => {
                let link = slots.radio.link.counters();
                report.count(
                    DATA_TRANSMISSIONS,
                    link.bodies + link.repeats + link.repairs + link.fills,
                );
                report.count("packets_first_sent", link.bodies);
                report.count("packets_repeated", link.repeats);
                report.count("repairs_planned", link.repairs);
                report.count("repairs_filling", link.fills);
                report.count("packets_recovered", link.recovered);
                report.count("packets_given_up", link.given_up);
                report.count("slots", slots.radio.slots().slots);
                if air.faulty() {
                    report.count("peer_restarts_noticed", link.peer_restarts);
                    report.count("packets_lost_by_peer_restart", link.lost_by_restart);
                    report.count("frames_stale", link.drops.of(DropReason::Stale));
                }
            }
            Station::Plain(plain) => {
                let mac = plain.mac.counters();
                report.count(DATA_TRANSMISSIONS, mac.data_sent + mac.broadcast_sent);
                report.count("frame_retries", mac.retries);
                report.count("frames_given_up", mac.failed);
            }
        }
    }
    for station in &air.ended {
        if let Station::Slots(slots) = station {
            let lost = slots.radio.link.report();
            report.count("packets_lost_with_their_mast", lost.queued as u64);
            report.count("packets_open_at_a_crash", lost.open.into());
        }
    }
    if air.faulty() {
        report.count("mast_restarts", air.restarted.len() as u64);
    }
}
