//! One seed of a scenario: TCP carries objects between masts, copies are compared, counters collected.

use chappe_core::{DropReason, Duration, Seed};
use chappe_lab::carry::{self, Limits, Receipt, Record, Report, Watch};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::{Job, settings};
use chappe_results::{Bound, DATA_TRANSMISSIONS};
use chappe_scenario::{Settings, Transfer};
use chappe_sim::{AirTime, Reading, Recorder};
use chappe_trace::Labeller;
use chappe_wildnet::Recovery;

use crate::faults::MastFaults;
use crate::hosts::{BulkApp, HostMemory};
use crate::label::label;
use crate::masts::{Masts, Pair};
use crate::measure::Errors;
use crate::plan::{SYSTEM, WildNet};
use crate::running_masts::RunningMasts;
use crate::scheme::Scheme;
use crate::station::{Station, TunedStation};

/// Interval at which the run checks whether everything has arrived.
const STEP: Duration = Duration::from_millis(20);

/// A transfer with the places of its two hosts among [`Masts::seats`].
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    transfer: &'a Transfer,
    from: usize,
    to: usize,
}

/// Carries the transfers of one seed for the table of systems. Fails if more arrived than the bound allows.
pub fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    meter.expect(2 * WORK);
    // Masts need no preparation.
    meter.advance(WORK);
    let outcome = carry(settings(job.plan)?, &job, meter)?;
    let over = |bound: &chappe_results::Bound| bound.fraction > 1.0;
    match outcome.run.bounds.iter().any(over) {
        true => Err(RunError::Defect(
            "more arrived than the radios can send".into(),
        )),
        false => Ok(outcome),
    }
}

/// Carries the transfers of one seed with these settings.
pub fn carry(with: &WildNet, job: &Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let mut report = Report::begin((&SYSTEM, with.variant()), job.network.seed);
    let transfers = &job.network.transfers;
    let (pairs, ends) = pairs(transfers);
    let mut masts = with.masts(&job.plan.profile, pairs);
    masts.terrain = Some(job.plan.topology.seed(job.network.seed));
    masts.faults = MastFaults::of(job.plan, &with.sites, &with.layout, with.frame_loss);
    let app = |seat: usize| {
        let own = ends.iter().find(|ends| ends.from == seat);
        let object = own.map(|ends| ends.transfer.object.clone());
        BulkApp {
            to_send: object.as_ref().map_or(0, |object| object.len() as u64),
            object,
            copy: Some(Vec::new()),
            ..BulkApp::default()
        }
    };
    let seed = Seed(job.network.seed);
    let medium = masts.medium(seed);
    let medium = medium.map_err(|error| RunError::Defect(error.to_string()))?;
    let labeller: Labeller = match masts.scheme.slot_configs() {
        Some(_) => label,
        None => chappe_trace::standard,
    };
    let watch = Watch::new(job.spec(), &medium, labeller)?;
    let mut memory = HostMemory::new(&masts.numbers(), masts.tcp);
    let record = Record::<Errors>::Scenario(watch);
    let mut line = RunningMasts::launch(&masts, &mut memory, seed, app, record)?;
    let total: usize = transfers.iter().map(|one| one.object.len()).sum();
    let least_s = total as f64 * 8.0 / with.bound_bps(&crossings(transfers));
    carry::run_in_steps(
        &mut line,
        (STEP, Limits::of(job.plan, least_s)),
        |line| (line.simulator.now(), line.simulator.counters().events),
        |line, until| {
            line.advance_to(until);
            line.simulator
                .read(|node, reader| observe(node, &mut |reading| reader.show(reading)));
        },
        |line| {
            let arrived: usize = ends.iter().map(|ends| received(line, ends).len()).sum();
            (arrived as u64, total as u64, arrived >= total)
        },
        meter,
    )?;
    report_run(&mut report, &line, with, (job, &masts, &ends))?;
    let (_, record, _) = line.simulator.into_parts();
    if let Some(watch) = record.into_watch() {
        watch.finish(job.spec(), &medium)?;
    }
    Ok(report.finish())
}

/// A pair of hosts for each two masts and direction; transfers in opposite directions share one.
fn pairs(transfers: &[Transfer]) -> (Vec<Pair>, Vec<Ends<'_>>) {
    let (mut pairs, mut ends) = (Vec::<Pair>::new(), Vec::new());
    for transfer in transfers {
        let masts = [transfer.source, transfer.receivers[0]];
        let opposite = |pair: &Pair| pair.masts == [masts[1], masts[0]] && !pair.sends[1];
        let (from, to) = match pairs.iter().position(opposite) {
            Some(place) => {
                pairs[place].sends[1] = true;
                (2 * place + 1, 2 * place)
            }
            None => {
                let sends = [true, false];
                pairs.push(Pair { masts, sends });
                (2 * pairs.len() - 2, 2 * pairs.len() - 1)
            }
        };
        ends.push(Ends { transfer, from, to });
    }
    (pairs, ends)
}

/// What a radio holds: its slot, and what it has sent of each kind.
fn observe(node: &TunedStation<'_>, show: &mut dyn FnMut(Reading)) {
    if let Station::Slots(slots) = &node.station {
        let (turn, link) = (slots.radio.turn(), slots.radio.link.counters());
        for (name, value) in [
            ("slot", turn.index),
            ("slot_us", turn.length.nanos() / 1000),
            ("bodies", link.bodies),
            ("repeats", link.repeats),
            ("repairs", link.repairs + link.fills),
            ("recovered", link.recovered),
            ("waiting", slots.radio.link.waiting() as u64),
        ] {
            show(Reading::number(name, 0, value as f64));
        }
    }
    let hosts = node.station.traffic().hosts().into_iter();
    for (part, socket) in (0u32..).zip(hosts.flat_map(|host| host.sockets())) {
        let info = socket.gauges();
        let window = f64::from(info.cwnd);
        show(Reading::number("congestion_window", part, window));
        show(Reading::number("in_flight", part, info.in_flight.into()));
    }
}

/// The octets that a transfer's receiver has so far.
fn received<'r, R: Recorder>(line: &'r RunningMasts<'_, R>, ends: &Ends<'_>) -> &'r [u8] {
    let copy = line
        .host(ends.to)
        .and_then(|host| host.app().copy.as_deref());
    copy.unwrap_or_default()
}

fn report_run<R: Recorder>(
    report: &mut Report,
    line: &RunningMasts<'_, R>,
    with: &WildNet,
    (job, masts, ends): (&Job<'_>, &Masts, &[Ends<'_>]),
) -> Result<(), RunError> {
    let simulator = &line.simulator;
    report.air_of(job.spec(), simulator, &|mast| masts.layout.radios_at(mast))?;
    for (number, ends) in ends.iter().enumerate() {
        let octets = received(line, ends);
        let (host, radio) = (line.host(ends.to), line.radio_of(ends.to));
        // The copy is complete when its last octet arrived, not at the end of the step that noticed it.
        let last = host.map(|host| simulator.air_time(radio, host.app().last));
        let last_s = last.map(AirTime::as_secs_f64);
        let receipt = Receipt {
            octets: octets.len(),
            completed_s: last_s.filter(|_| octets.len() == ends.transfer.object.len()),
            copy: Some(octets),
            delay: None,
        };
        let sink = ends.transfer.receivers[0];
        report.receipt(number, ends.transfer, sink, receipt, job.copies);
    }
    bound(report, with, &job.network.transfers);
    if report.flows().iter().any(|flow| !flow.complete) {
        note_unrepaired(report, line, masts);
    }
    report.note_unfinished();
    count(report, line, masts);
    Ok(())
}

/// The share of lost packets above which TCP's largest window of `sqrt(8 / (3 p))` segments (Mathis, Semke, Mahdavi and Ott, 1997)
/// is below the four that three duplicate acknowledgements need: each loss waits for a timeout.
const UNREPAIRED_MAX: f64 = 1.0 / 6.0;

/// Masts of several links that send at the same time may disturb each other, by dishes in one direction or with radios that stay
/// with the first of two frames. Dishes in one direction may do so in every slot. 2P repeats nothing, so TCP has these losses to itself.
fn note_unrepaired<R: Recorder>(report: &mut Report, line: &RunningMasts<'_, R>, masts: &Masts) {
    let in_slots = masts.scheme.slot_configs().is_some();
    if let Some((one, other)) = masts.alike().filter(|_| in_slots) {
        let far = [one, other].map(|radio| masts.layout.mast_of(radio ^ 1));
        let mast = masts.layout.mast_of(one);
        report.note(format!(
            "from mast {mast} the dishes to {} and {} look the same way, and send at the same time",
            far[0], far[1]
        ));
    }
    let repeats_nothing = matches!(
        masts.scheme,
        Scheme::Slots {
            recovery: Recovery::None,
            ..
        }
    );
    if !repeats_nothing || masts.layout.links().len() < 2 {
        return;
    }
    let (mut sent, mut lost) = (0, 0);
    for radio in 0..masts.radios() {
        if let Station::Slots(slots) = &line.simulator.node(radio).station {
            let link = slots.radio.link.counters();
            (sent, lost) = (sent + link.bodies, lost + link.given_up);
        }
    }
    if lost as f64 > UNREPAIRED_MAX * sent as f64 {
        report.note(format!(
            "2P repeats nothing: {lost} of {sent} packets were lost where several links share a channel"
        ));
    }
}

/// The bound of the slowest transfer. It stands once for each transfer, because the document has them in this order: one way
/// alone may be faster while the other waits.
fn bound(report: &mut Report, with: &WildNet, transfers: &[Transfer]) {
    let goodput_bps = with.bound_bps(&crossings(transfers));
    let rates = report.flows().iter().map(|flow| flow.goodput_bps);
    let slowest = rates.reduce(f64::min).unwrap_or_default();
    for _ in transfers {
        report.add_bound(Bound {
            name: "802.11b frames back to back".into(),
            goodput_bps,
            fraction: slowest / goodput_bps,
        });
    }
}

/// The octets of each transfer, its source and its receiver.
fn crossings(transfers: &[Transfer]) -> Vec<(usize, usize, usize)> {
    let crossing = |one: &Transfer| (one.object.len(), one.source, one.receivers[0]);
    transfers.iter().map(crossing).collect()
}

fn count<R: Recorder>(report: &mut Report, line: &RunningMasts<'_, R>, masts: &Masts) {
    let stations = (0..masts.radios()).map(|radio| &line.simulator.node(radio).station);
    for station in stations.chain(&line.ended) {
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
                if line.faulty() {
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
    for station in &line.ended {
        if let Station::Slots(slots) = station {
            let lost = slots.radio.link.report();
            report.count("packets_lost_with_their_mast", lost.queued as u64);
            report.count("packets_open_at_a_crash", lost.open.into());
        }
    }
    if line.faulty() {
        report.count("mast_restarts", line.restarted.len() as u64);
    }
}
