//! The sending half of a link: what is in flight, what is lost, what is sent next.
//!
//! A body lives like this:
//!
//! ```text
//!            sent                 not in the peer's report
//!  queued ---------> in flight ------------------------------> lost
//!                     |     ^                                  |  | retries or deadline spent
//!       in the report |     +---------- sent again ------------+  v
//!                     v                                        given up
//!                   done
//! ```
//!
//! Whether a frame is settled follows from frame numbers: a link keeps their order, so once a later one is reported,
//! an earlier one that is not has been lost. There is no timer for each packet.
//!
//! [`Sender`] only joins the parts, each of which owns its state:
//!
//! | part | what it owns |
//! |---|---|
//! | [`Queues`] | packets that wait for their first transmission, numbers within flows |
//! | [`SendWindow`] | bodies from the oldest open one to the next new one, their octets and states, the queue of lost ones |
//! | [`LossDetection`] | frames that were sent, which of them are settled, round trips, reordering, probes |
//! | [`Liveness`] | whether a path carries anything, and copies of bodies for it |
//! | [`Repairs`] | blocks and cohorts, the policies worked out for them |
//! | [`Insistence`] | copies of bodies that were lost several times |
//! | [`Returned`] | what a path in doubt gave back, and the repairs among it |
//! | [`SmallPackets`] | small bodies of which copies ride along |
//! | [`Conditions`] | configuration, the channel as estimated, the length of a round |

mod choice;
mod conditions;
mod insistence;
mod liveness;
mod loss;
mod queues;
mod reordering;
mod repairs;
mod reports;
mod returned;
mod rtt;
mod small_packets;
mod window;

use chappe_core::{Duration, Instant};

use crate::config::{Config, SERVICES, Service};
use crate::counters::Counters;
use crate::estimate::Estimate;
use crate::header::{AMONG, BODY, LENGTH, put_among};
use crate::memory::Share;
use crate::paths::{FrameId, Paths};
use conditions::Conditions;
use insistence::Insistence;
use liveness::Liveness;
use loss::LossDetection;
use queues::{Queues, Space};
use repairs::Repairs;
use returned::Returned;
use rtt::Rtt;
use small_packets::SmallPackets;
use window::SendWindow;

pub(crate) use choice::{Chance, Choice, Out};
pub use liveness::Role;
pub(crate) use small_packets::ROOM;

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    conditions: Conditions,
    queues: Queues,
    window: SendWindow,
    loss: Paths<LossDetection>,
    liveness: Paths<Liveness>,
    repairs: Repairs,
    returned: Returned,
    insistence: Insistence,
    small_packets: SmallPackets,
    /// The number of the first frame of each path.
    first_frame: u32,
    /// Of the whole link: its receiving half counts here too.
    pub counters: Counters,
}

/// Frames remembered for each body of the window: a body may be in several, and repairs carry none.
const FRAMES_PER_BODY: usize = 4;

impl Sender {
    /// A sender whose first frame has the number `first_frame`.
    pub fn new(config: Config, first_frame: u32) -> Sender {
        let loss = detection(&config, config.window, first_frame);
        Sender {
            queues: Queues::new(&config),
            window: SendWindow::new(config.window, config.window_max, config.body_max()),
            loss: Paths::one(loss),
            liveness: Paths::one(Liveness::new(Role::Open)),
            first_frame,
            repairs: Repairs::new(),
            returned: Returned::default(),
            insistence: Insistence::default(),
            small_packets: SmallPackets::new(),
            counters: Counters::default(),
            conditions: Conditions::new(config),
        }
    }

    /// Adds a path to the peer, which is closed until it gets a role.
    pub fn add_path(&mut self) {
        let config = self.conditions.config();
        let detection = detection(config, self.window.places(), self.first_frame);
        self.loss.push(detection);
        self.liveness.push(Liveness::new(Role::Closed));
        self.conditions.add_path();
    }

    /// Decides for this path from now on.
    pub fn select(&mut self, path: usize) {
        self.loss.select(path);
        self.liveness.select(path);
        self.conditions.select(path);
    }

    /// A frame of the selected path.
    fn here(&self, number: u32) -> FrameId {
        FrameId {
            path: self.loss.at() as u8,
            number,
        }
    }

    /// The next frame of the selected path.
    fn next_frame_id(&self) -> FrameId {
        self.here(self.loss.next_number())
    }

    /// Queues a packet; false if there is no room.
    pub fn offer(&mut self, now: Instant, service: usize, flow: u8, packet: &[u8]) -> bool {
        let config = self.conditions.config();
        let taken = self.queues.offer(config, now, (service, flow), packet);
        match taken {
            true => self.counters.offered += 1,
            false => self.counters.refused += 1,
        }
        taken
    }

    /// Changes what a class is promised, from the next decision on.
    pub fn set_service(&mut self, service: usize, to: Service) {
        self.conditions.set_service(service, to);
    }

    /// Takes memory for more bodies from what several links share.
    pub fn share(&mut self, memory: Share) {
        self.window.share(memory);
    }

    /// Limits the bodies that may be open.
    pub fn set_limit(&mut self, bodies: u32) {
        self.window.set_limit(bodies);
    }

    /// In slots: how long a round and the way to the peer take.
    pub fn set_round(&mut self, round: Duration, one_way: Duration) {
        self.conditions.set_round(round, one_way);
    }

    /// Closes a bin of the loss estimate: a slot has ended, or a stretch of time.
    pub fn close_bin(&mut self, now: Instant) {
        let ordered = self.loss.reordering(now) == Duration::ZERO;
        let in_slots = self.conditions.config().turns;
        self.conditions.estimate_mut().close_bin(ordered, in_slots);
    }

    /// A new slot begins; `heard`: a report came since the last one.
    pub fn begin_slot(&mut self, now: Instant, heard: bool) {
        // As part of the old slot: its rounds are counted from where that began.
        self.repairs.close_cut_block(&self.conditions, now);
        self.conditions.begin_slot(now);
        self.loss.begin_slot(heard);
        self.repairs.end_slot();
        self.give_up_late(now);
        let frame = self.next_frame_id();
        self.repairs
            .begin_rounds(&self.conditions, &self.window, now, frame);
    }

    /// Nothing has been reported for too long: `frames` are to leave, to provoke a report, and nothing counts as in flight
    /// any more.
    pub fn probe(&mut self, frames: usize) {
        self.loss.probe(frames);
    }

    /// This end has stood still until now, so that reports waited for it.
    pub fn resume(&mut self, now: Instant) {
        self.loss.iter_mut().for_each(|loss| loss.resume(now));
    }

    /// Frames may have at most `frame_max` octets from now on: what does not fit is given up.
    pub fn shrink(&mut self, frame_max: usize) {
        let config = self.conditions.config();
        let most = config.body_max()
            - config
                .frame_max
                .saturating_sub(frame_max)
                .min(config.body_max());
        self.counters.expired += self.queues.drop_long(most);
        for seq in self.window.open() {
            if self.window.is_missing(seq) && self.window.body(seq).len() > most {
                self.give_up(seq);
            }
        }
        self.window.advance();
    }

    /// How often the oldest open body has been sent.
    pub fn oldest_transmissions(&self) -> u8 {
        let oldest = self.window.entry(self.window.base());
        oldest.map_or(0, |entry| entry.transmissions)
    }

    /// The peer has started over: what it may have had is not sent a second time.
    pub fn restart(&mut self) {
        self.counters.lost_by_restart += self.window.give_up_all();
        self.small_packets.clear();
        self.repairs.clear();
        self.returned.clear();
        self.loss.iter_mut().for_each(LossDetection::restart);
        // A peer that starts over expects the first packet of each flow.
        self.queues.restart_flows();
        self.conditions.forget_channels();
    }
}

/// The loss detection of a path for a window of so many bodies.
fn detection(config: &Config, bodies: usize, first_frame: u32) -> LossDetection {
    let mut loss = LossDetection::new(bodies * FRAMES_PER_BODY, config.reordering);
    loss.start_at(first_frame);
    loss
}

/// What the link asks about the state of the parts.
impl Sender {
    pub fn config(&self) -> &Config {
        self.conditions.config()
    }

    pub fn estimate(&self) -> &Estimate {
        self.conditions.estimate()
    }

    pub fn round(&self) -> Duration {
        self.conditions.round()
    }

    pub fn one_way(&self) -> Duration {
        self.conditions.one_way()
    }

    /// Time within which a packet of a class should arrive.
    pub fn allowed(&self, service: &Service) -> Option<Duration> {
        self.conditions.allowed(service)
    }

    pub fn rtt(&self) -> &Rtt {
        self.loss.rtt()
    }

    /// What was measured of the frames of a path.
    pub fn loss_of(&self, path: usize) -> &LossDetection {
        self.loss.of(path)
    }

    /// What is known of the losses of a path.
    pub fn estimate_of(&self, path: usize) -> &Estimate {
        self.conditions.estimate_of(path)
    }

    /// When frames that were overtaken will count as lost, whether a report comes or not.
    pub fn settle_at(&self) -> Option<Instant> {
        self.loss.settle_at()
    }

    /// The number of the next frame.
    pub fn next_frame(&self) -> u32 {
        self.loss.next_number()
    }

    /// The number of the next new body.
    pub fn next_seq(&self) -> u32 {
        self.window.next()
    }

    /// The oldest open body.
    pub fn base(&self) -> u32 {
        self.window.base()
    }

    /// The base that frames carry.
    pub fn wire_base(&self) -> u32 {
        self.window.wire_base()
    }

    pub fn open_count(&self) -> u32 {
        self.window.len()
    }

    /// Whether anything is neither done nor given up.
    pub fn has_open(&self) -> bool {
        self.window.has_open()
    }

    /// Whether a new body has no place.
    pub fn is_full(&self) -> bool {
        self.window.is_full()
    }

    pub fn body(&self, seq: u32) -> &[u8] {
        self.window.body(seq)
    }

    /// Packets that wait in a class.
    pub fn queued(&self, service: usize) -> usize {
        self.queues.len(service)
    }

    /// Packets that wait in all classes.
    pub fn all_queued(&self) -> usize {
        self.queues.total()
    }

    /// Whether a new body may leave.
    pub fn has_new(&self, now: Instant) -> bool {
        self.new_at(false).is_some_and(|at| at <= now)
    }

    /// When a new body may leave: small packets wait a little for others unless `flush`.
    pub fn new_at(&self, flush: bool) -> Option<Instant> {
        if self.window.is_full() {
            return None;
        }
        self.queues.ready_at(self.conditions.config(), flush)
    }

    pub fn has_lost(&self) -> bool {
        self.window.has_lost()
    }

    /// How many lost bodies wait to be sent again.
    pub fn lost_count(&self) -> usize {
        self.window.lost_count()
    }

    /// Whether a repair is due.
    pub fn owes_repair(&self) -> bool {
        self.repairs.is_owing() || self.owes_returned() || !self.insistence.is_empty()
    }

    /// Whether a frame is due only to provoke a report.
    pub fn probes(&self) -> bool {
        self.loss.has_probes() && self.window.has_open()
    }

    /// Octets of the body or repair that would be sent next, or a little more; `None` if there is nothing.
    pub fn next_body_len(&self) -> Option<usize> {
        if self.has_more_urgent() {
            return self.next_new_len();
        }
        if let Some(len) = self.returned_len() {
            return Some(len.min(self.conditions.config().body_max()));
        }
        if let Some(first) = self.window.first_lost() {
            return Some(self.window.body(first).len());
        }
        let config = self.conditions.config();
        if self.repairs.is_owing() {
            let len = self.repairs.next_len(&self.window);
            return len.map(|len| len.min(config.body_max()));
        }
        self.new_at(false)?;
        self.next_new_len()
    }

    /// Octets of the next new body.
    fn next_new_len(&self) -> Option<usize> {
        let cuts = |service| self.conditions.cuts(service);
        self.queues.next_body_len(self.conditions.config(), cuts)
    }

    /// Octets of the bodies that wait: lost ones, and those that queued packets will make.
    pub fn waiting_bodies(&self) -> impl Iterator<Item = usize> + '_ {
        let lost = self.window.lost();
        let lost = lost.map(|seq| self.window.body(seq).len());
        let cuts = move |service| self.conditions.cuts(service);
        lost.chain(self.queues.body_lens(self.conditions.config(), cuts))
    }

    /// Repairs that wait for the end of the slot, in case more packets join their block; `None` if there are none.
    pub fn waiting_repairs(&mut self, now: Instant) -> Option<usize> {
        self.repairs.waiting(&self.conditions, now)
    }
}

/// The choice of what is sent next, and what follows from sending it.
impl Sender {
    /// What to send now, best first. Whatever leaves serves as a probe, new data best (RFC 9002, 6.2.4).
    pub fn choose(&mut self, now: Instant, chance: Chance, out: &mut Out<'_>) -> Option<Choice> {
        let choice = self.choose_useful(now, chance, out);
        let choice = choice.or_else(|| self.probe_again(now));
        if choice.is_some() {
            self.loss.count_probe();
        }
        match choice {
            Some(Choice::Body(first)) => Some(self.add_second(now, chance, first)),
            choice => choice,
        }
    }

    /// What fills the end of a slot that no whole body fits: a part of a new packet. What is sent again cannot be cut.
    pub fn choose_part(&mut self, now: Instant, chance: Chance) -> Option<Choice> {
        let service = self.queues.front_service()?;
        let free = self.conditions.cuts(service) && self.may_send_new(now, chance);
        if free && self.repairs.reserve(&self.conditions, now) == 0 {
            return self.send_new(now, chance);
        }
        None
    }

    /// Beside a short body the next new one leaves in the same frame, cut if it is too long: data of TCP beside the acknowledgements
    /// of a slot.
    fn add_second(&mut self, now: Instant, chance: Chance, first: u32) -> Choice {
        let alone = Choice::Body(first);
        let len = self.window.body(first).len();
        let most = chance.room.min(self.conditions.config().body_max());
        let room = most.saturating_sub(2 * AMONG + len);
        // How far back a body lies has one octet in the frame, and the second one comes in between.
        let near = self.window.next().wrapping_sub(first) < u8::MAX.into();
        let shares = self.conditions.config().fragments && near && room > BODY + LENGTH;
        if !shares || !self.fits_new(now, chance) {
            return alone;
        }
        match self.send_new(now, Chance { room, ..chance }) {
            Some(Choice::Body(second)) => Choice::Pair {
                first,
                second,
                len: 2 * AMONG + len + self.window.body(second).len(),
            },
            _ => alone,
        }
    }

    /// Lost bodies first, since others may wait for them at the peer; then the repairs of a round that has begun, and only
    /// then what is new. Packets of a more urgent class than all of these go before them, and so do repairs.
    fn choose_useful(&mut self, now: Instant, chance: Chance, out: &mut Out<'_>) -> Option<Choice> {
        if let Some(seq) = self.next_twin(now) {
            self.window.note_copy(seq);
            self.counters.twins += 1;
            return Some(Choice::Copy(seq));
        }
        if self.has_more_urgent()
            && let Some(choice) = self.next_new(now, chance)
        {
            return Some(choice);
        }
        if chance.again
            && let Some(choice) = self.repair_returned(out)
        {
            return Some(choice);
        }
        if chance.again
            && let Some(seq) = self.next_insisted(false)
        {
            return Some(seq);
        }
        let next = self.queues.front_service();
        self.repairs.close_urgent(&self.conditions, now, next);
        let hurries = self.repairs_are_more_urgent();
        if chance.again
            && hurries
            && let Some(choice) = self.owed_repair(out)
        {
            return Some(choice);
        }
        if chance.again
            && let Some(seq) = self.next_lost(now)
        {
            return Some(self.send_again(seq));
        }
        if chance.again
            && let Some(choice) = self.owed_repair(out)
        {
            return Some(choice);
        }
        if let Some(choice) = self.next_new(now, chance) {
            return Some(choice);
        }
        let closed = self
            .repairs
            .close_if_due(&self.conditions, now, chance.fits);
        if closed
            && chance.again
            && let Some(choice) = self.owed_repair(out)
        {
            return Some(choice);
        }
        if chance.again
            && let Some(choice) = self.next_insisted(true)
        {
            return Some(choice);
        }
        if !chance.fill || !self.window.has_open() {
            return None;
        }
        let choice = self.repairs.fill(&mut self.window, out);
        self.counters.fills += u64::from(choice.is_some());
        choice
    }

    /// The oldest body in flight that left before the silence and still matters, once more.
    fn probe_again(&mut self, now: Instant) -> Option<Choice> {
        while self.loss.has_probes() {
            let Some(oldest) = self
                .window
                .oldest_sent_before(self.here(self.loss.probes_from()))
            else {
                self.loss.end_probes();
                break;
            };
            // It may be too late to matter, then the next one serves.
            self.window.lose(oldest);
            if let Some(seq) = self.next_lost(now) {
                return Some(self.send_again(seq));
            }
        }
        None
    }

    /// In slots: no report came and nothing else is to be sent, so the oldest body of an earlier slot again.
    pub fn repeat_unreported(&mut self) -> Option<Choice> {
        let before = self.here(self.loss.repeat_before());
        let oldest = self.window.oldest_sent_before(before);
        let oldest = oldest.filter(|_| self.conditions.repeats());
        oldest.map(|seq| self.send_again(seq))
    }

    /// A copy of a body that was lost several times; with `now`, since there is nothing else to send.
    fn next_insisted(&mut self, now: bool) -> Option<Choice> {
        let frame = self.next_frame_id();
        let channel = self.conditions.estimate().channel();
        let seq = self.insistence.next(&self.window, frame, (&channel, now))?;
        self.window.note_copy(seq);
        self.counters.repeats += 1;
        Some(Choice::Body(seq))
    }

    /// Whether a packet waits for its first transmission in a more urgent class than everything that waits to be sent again or
    /// repaired.
    fn has_more_urgent(&self) -> bool {
        let new = self.queues.front_service().filter(|_| !self.is_full());
        let new = new.filter(|new| new + 1 < SERVICES);
        new.is_some_and(|new| self.class_again().is_some_and(|again| new < again))
    }

    /// The most urgent class of what waits to be sent again or repaired. What a path in doubt gave back, and copies of what was lost
    /// several times, count as the least urgent class.
    fn class_again(&self) -> Option<usize> {
        let lost = self
            .window
            .lost()
            .filter(|&seq| self.window.is_missing(seq));
        let lost = lost.filter_map(|seq| self.window.entry(seq));
        let lost = lost.map(|entry| usize::from(entry.service));
        let others = self.owes_returned() || !self.insistence.is_empty();
        lost.chain(self.repairs.owing_service())
            .chain(others.then_some(SERVICES - 1))
            .min()
    }

    /// Whether the next repair is for a more urgent class than all lost bodies.
    fn repairs_are_more_urgent(&self) -> bool {
        let first = self.window.first_lost();
        let lost = first.and_then(|seq| self.window.entry(seq));
        let lost = lost.map(|entry| usize::from(entry.service));
        lost.is_some_and(|lost| {
            self.repairs
                .owing_service()
                .is_some_and(|class| class < lost)
        })
    }

    /// The most urgent class of all that waits to leave; with `again` also to leave once more. [`SERVICES`] if nothing waits.
    pub fn most_urgent(&self, again: bool) -> usize {
        let again = self.class_again().filter(|_| again);
        let waiting = self.queues.front_service().into_iter().chain(again);
        waiting.min().unwrap_or(SERVICES)
    }

    /// A new body, if one may leave and the repairs of its block still fit.
    fn next_new(&mut self, now: Instant, chance: Chance) -> Option<Choice> {
        match self.fits_new(now, chance) {
            true => self.send_new(now, chance),
            false => None,
        }
    }

    fn fits_new(&mut self, now: Instant, chance: Chance) -> bool {
        self.may_send_new(now, chance) && chance.fits > self.repairs.reserve(&self.conditions, now)
    }

    fn may_send_new(&self, now: Instant, chance: Chance) -> bool {
        chance.new && self.new_at(chance.flush).is_some_and(|at| at <= now)
    }

    /// The next lost body that still matters.
    fn next_lost(&mut self, now: Instant) -> Option<u32> {
        while let Some(seq) = self.window.pop_lost() {
            let Some(entry) = self.window.entry(seq) else {
                continue;
            };
            let service = self.conditions.service(entry.service.into());
            if !self.conditions.is_late(now, &service, entry.offered) {
                return Some(seq);
            }
            // The base in the next frame tells the peer not to wait for it.
            self.give_up(seq);
            self.window.advance();
        }
        None
    }

    fn send_again(&mut self, seq: u32) -> Choice {
        self.window.send_again(seq);
        self.returned.on_sent(seq);
        if self.conditions.has_cohorts() {
            self.insist(seq);
        }
        self.counters.repeats += 1;
        Choice::Body(seq)
    }

    /// A body leaves again: if it was lost often while much is in flight, copies follow.
    fn insist(&mut self, seq: u32) {
        let Some(entry) = self.window.entry(seq) else {
            return;
        };
        let times = (seq, entry.transmissions);
        let body = self.conditions.config().body_max().max(1);
        let flight = self.loss.bytes_in_flight() as f64 / body as f64;
        let (frame, channel) = (self.next_frame_id(), self.conditions.estimate().channel());
        self.insistence.on_again(times, frame, (&channel, flight));
    }

    fn owed_repair(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        let frame = self.next_frame_id();
        let choice = self
            .repairs
            .next_owed(&self.conditions, &mut self.window, frame, out);
        self.counters.repairs += u64::from(choice.is_some());
        choice
    }

    /// Makes a new body for which there is room.
    fn send_new(&mut self, now: Instant, chance: Chance) -> Option<Choice> {
        // Strict priority: a class is served only while all more urgent ones are empty.
        let service = self.queues.front_service()?;
        let promise = self.conditions.service(service);
        let allowed = self.conditions.allowed(&promise);
        if let Some(most) = allowed.filter(|_| promise.drop_late) {
            // A packet that cannot arrive in time is dropped before it takes air time.
            let arrival = now + self.conditions.one_way();
            self.counters.expired += self.queues.drop_late(service, arrival, most);
        }
        let frames = self.loss.count() * FRAMES_PER_BODY * LossDetection::OCTETS_OF_FRAME;
        if let Some(places) = self.window.grow(frames) {
            let frames = places * FRAMES_PER_BODY;
            self.loss.iter_mut().for_each(|loss| loss.grow(frames));
        }
        if !self.window.has_room() {
            // There is no memory for more.
            return None;
        }
        let config = self.conditions.config();
        // While the slot holds all that waits, parts would save nothing, and a packet would wait for two frames.
        let full = !config.turns || self.queues.total() > chance.fits;
        let cuts = full && self.conditions.cuts(service);
        let report = if cuts { chance.report } else { 0 };
        let space = Space {
            octets: chance.room.min(config.body_max()).saturating_sub(report),
            cuts,
        };
        let class = (service, promise.order);
        let packed = self.queues.pack(config, class, space, &mut self.window)?;
        self.counters.packets += packed.packets;
        // What is never dropped for being late is not hurried for having waited: others wait behind it.
        let offered = match promise.drop_late {
            true => packed.offered,
            false => now,
        };
        let frame = self.next_frame_id();
        let seq = self.window.open_body(service as u8, offered, frame);
        let deadline = allowed.map(|allowed| offered + allowed);
        let body = (seq, service, self.window.body(seq).len());
        self.repairs.on_new(&self.conditions, now, body, deadline);
        if self.conditions.config().copies > 0 {
            self.small_packets.remember(&self.window, seq);
        }
        if promise.every_path {
            self.add_twins(seq);
        }
        self.counters.bodies += 1;
        Some(Choice::Body(seq))
    }

    /// Writes what was chosen, if it is small or only a note, together with copies that no report has confirmed, to the front
    /// of `octets`: how many octets; 0 if there is nothing to copy.
    pub fn write_with_copies(&mut self, choice: Option<Choice>, octets: &mut [u8]) -> usize {
        let (loss, most) = (self.estimate().loss(), self.config().copies);
        let used = self
            .small_packets
            .write(&mut self.window, (choice, loss), most, octets);
        self.counters.copies += u64::from(used > 0);
        used
    }

    /// Writes two bodies that share a frame to the front of `octets`.
    pub fn write_pair(&self, (first, second): (u32, u32), octets: &mut [u8]) {
        let (mut rest, next) = (octets, self.window.next());
        for seq in [first, second] {
            let used = put_among(next, seq, self.window.body(seq), rest).unwrap_or_default();
            rest = rest.get_mut(used..).unwrap_or_default();
        }
    }

    /// A frame of `len` octets leaves with what was chosen.
    pub fn on_sent(&mut self, now: Instant, choice: Option<Choice>, len: usize) {
        self.counters.octets_sent += len as u64;
        self.repairs.earn(len);
        let frame = self.next_frame_id();
        let (seq, flies) = match choice {
            Some(Choice::Body(seq)) => {
                self.window.sent_in(seq, frame);
                self.repairs.on_sent(&self.conditions, seq, frame);
                (Some(seq), true)
            }
            Some(Choice::Pair { first, second, .. }) => {
                for seq in [first, second] {
                    self.window.sent_in(seq, frame);
                    self.repairs.on_sent(&self.conditions, seq, frame);
                }
                (Some(first), true)
            }
            Some(Choice::Copy(_) | Choice::Repair { .. }) => (None, true),
            None => {
                self.counters.notes += 1;
                (None, false)
            }
        };
        self.loss.on_sent(now, seq, len, flies);
        if let Some(Choice::Pair { .. }) = choice {
            self.loss.share_latest();
        }
    }
}
