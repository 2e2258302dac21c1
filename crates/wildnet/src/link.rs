//! One end of a link to one peer: packets in, frames out, and back.
//!
//! It has no medium. Its owner asks for a frame when one can leave ([`Link::poll`]) and passes in what arrives
//! ([`Link::handle`]). With [`Config::turns`] the owner is a radio in slots, and every frame carries a stamp and a report. Without,
//! it is any network: reports leave when they are due, and a probe timeout guards against silence.

mod deadlines;
mod incoming;
mod outgoing;

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{DropReason, Duration, Instant, Wake};

use crate::config::{Config, ConfigError, SERVICES, Service};
use crate::counters::Counters;
use crate::estimate::Totals;
use crate::gilbert::Channel;
use crate::header::{ACK, AMONG, COVER, FIXED, Frame, PLAIN_MAX, SLOT, Slot};
use crate::memory::{Memory, Share};
use crate::paths::{PATHS, Paths};
use crate::policy::Prediction;
use crate::receiver::{Delivery, Receiver};
use crate::sender::{Chance, Choice, Out, Role, Sender};

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    sender: Sender,
    receiver: Receiver,
    epoch: u8,
    peer_epoch: Option<u8>,
    contact: Paths<Contact>,
    coded: Vec<u8>,
    /// Whether the note that is being written carries no copies.
    bare: bool,
    /// Where bitmaps of reports are packed and unpacked.
    bitmap: Vec<u8>,
}

/// What is known of the reports on one path.
#[derive(Clone, Debug)]
struct Contact {
    /// When the last report came.
    heard_at: Instant,
    /// When the present bin of the loss estimate was opened.
    bin_since: Instant,
    /// When a report will be overdue: the probe timeout of RFC 9002, 6.2.
    pto_at: Option<Instant>,
    /// Probe timeouts in a row without a report that settled anything (RFC 9002, A.3).
    pto_count: u32,
    /// Probe timeouts in a row before which no frame at all came from the peer.
    silent_timeouts: u32,
    /// Notes (frames without body) that are still to be sent in this slot.
    notes: u8,
    /// Whether a report came since the last slot of this end.
    heard: bool,
    /// The peer has nothing left to send but what is missing, and waits for the report.
    hurried: bool,
}

impl Default for Contact {
    fn default() -> Contact {
        Contact {
            heard_at: Instant::ZERO,
            bin_since: Instant::ZERO,
            pto_at: None,
            pto_count: 0,
            silent_timeouts: 0,
            notes: 0,
            heard: true,
            hurried: false,
        }
    }
}

/// A chance to send one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// Frames of full size that fit before the slot ends, this one included; 0: only a note fits; `usize::MAX` without
    /// slots.
    pub fits: usize,
    /// Most octets of the frame, where less than a full one fits before the slot ends; `usize::MAX` otherwise. Where packets may be
    /// cut, a part of a new one takes them.
    pub most: usize,
    /// Whether repairs that no plan asks for may fill the time.
    pub fill: bool,
    /// Whether nothing new waits behind the next packet. The peer then reports at once, since this end has nothing to do
    /// but to repair losses. Not used in slots, where the end of the turn says so.
    pub last: bool,
    /// The stamp to send, where there are slots.
    pub slot: Option<Slot>,
    /// Whether lost bodies and their repairs may leave here; where there are several paths, another one may be faster.
    pub again: bool,
    /// Whether new bodies may leave here.
    pub new: bool,
}

impl Opportunity {
    /// A frame may leave at any time: for networks without slots.
    pub const ALWAYS: Opportunity = Opportunity {
        fits: usize::MAX,
        most: usize::MAX,
        fill: false,
        last: false,
        slot: None,
        again: true,
        new: true,
    };
}

/// What a frame said, apart from its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The sender's stamp, if the frame has one.
    pub slot: Option<Slot>,
    /// Whether its report settled any frame of this end.
    pub progress: bool,
    /// Why its body was dropped, if it was.
    pub dropped: Option<DropReason>,
}

/// The state of a link and of its channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The channel to the peer, from the peer's counts.
    pub channel: Channel,
    /// The channel from the peer, from this end's counts of some 500 recent frames.
    pub incoming: Channel,
    /// Frame totals of the channel to the peer.
    pub totals: Totals,
    /// Smoothed round trip, and the least of the latest 10 to 20 s; `None` before the first sample.
    pub rtt: Option<(Duration, Duration)>,
    /// How long reports are on their way at most, as far as is likely, because the hosts at both ends got their turns late.
    pub host_delay: Duration,
    /// The least round trip of the latest 100 to 200 ms with samples. What exceeds the long-term minimum is a standing queue,
    /// not jitter.
    pub rtt_lately: Option<Duration>,
    /// The latest sample of the round trip, and when it came.
    pub rtt_latest: Option<(Duration, Instant)>,
    /// Octets of all frames that left before the highest reported one, lost ones included, and when that arrived, a one-way
    /// delay ago. The difference of two such pairs is the rate that the path carries.
    pub passed: (u64, Instant),
    /// Bodies in flight, lost, or done behind an older one that is not.
    pub open: u32,
    /// How often the oldest of these has been sent.
    pub oldest_transmissions: u8,
    /// Packets that wait for their first transmission, in all classes.
    pub queued: usize,
    /// Bodies received that wait for an older one.
    pub held: usize,
    /// Octets in frames that are neither reported nor known to be lost.
    pub in_flight: usize,
    /// How long a frame may be overtaken before it counts as lost; zero while frames come in order.
    pub reordering: Duration,
    /// Probe timeouts in a row: times that no report came in time (RFC 9002, A.3: `pto_count`).
    pub pto_count: u32,
}

/// Longest probe timeout, however often it has doubled.
const PROBE_MAX: Duration = Duration::from_secs(2);
/// Shortest time over which a bin of the loss estimate counts where there are no slots.
const BIN: Duration = Duration::from_millis(40);
const ACK_DUE: &str = "acknowledgement due";
const BUNDLE: &str = "small packets have waited";
const OVERTAKEN: &str = "frames were overtaken";
const SILENCE: &str = "nothing reported";

impl Link {
    /// Makes an end that has not heard anything. `epoch` should differ from that of this end's previous start.
    pub fn new(config: Config, epoch: u8) -> Result<Link, ConfigError> {
        config.check()?;
        Ok(Link {
            sender: Sender::new(config, first_number(epoch)),
            receiver: Receiver::new(&config),
            epoch,
            peer_epoch: None,
            contact: Paths::one(Contact::default()),
            coded: vec![0; config.body_max() + crate::config::COVER_USUAL.max(2 * AMONG)],
            bare: false,
            bitmap: vec![0; (config.window_max / 8).max(PLAIN_MAX)],
        })
    }

    /// Adds a path to the peer, whose frames have numbers of their own: which one, or `None` if there are [`PATHS`]. It is
    /// closed until it gets a role. There is one from the start, path 0.
    pub fn add_path(&mut self) -> Option<usize> {
        let path = self.paths();
        if path >= PATHS {
            return None;
        }
        self.sender.add_path();
        self.receiver.frames.push(Default::default());
        self.contact.push(Contact::default());
        Some(path)
    }

    /// The number of paths.
    pub fn paths(&self) -> usize {
        self.contact.count()
    }

    /// Selects the path that all other methods are about, but those that name one: on which the next frame leaves, or has come.
    pub fn select(&mut self, path: usize) {
        self.contact.select(path);
        self.sender.select(path);
        self.receiver.frames.select(path);
    }

    /// Sets what the selected path may carry. What is in flight on one that is closed is sent again on the others.
    pub fn set_role(&mut self, now: Instant, role: Role) {
        if role == Role::Closed {
            self.contact.pto_at = None;
        }
        self.sender.set_role(now, role);
    }

    /// The number of the oldest open body, and of the next new one.
    pub fn open_bodies(&self) -> (u32, u32) {
        (self.sender.base(), self.sender.next_seq())
    }

    /// Whether a path has stopped as far as reports on other paths show. It carries nothing but probes until one is reported.
    pub fn is_doubted(&self, path: usize) -> bool {
        self.sender.is_doubted(path)
    }

    /// When a copy of a body is to leave on a path, whatever else waits: as its class asks, or to probe a path in doubt.
    pub fn twin_at(&self, path: usize) -> Option<Instant> {
        match self.sender.owes_twin(path) {
            true => Some(Instant::ZERO),
            false => self.sender.doubt_probe_at(path),
        }
    }

    /// Number of lost bodies that wait to be sent again.
    pub fn lost_count(&self) -> usize {
        self.sender.lost_count()
    }

    /// Queues a packet of a class (0 is the most urgent) and flow (0 to 63). Returns false if it is refused: no room, empty,
    /// or longer than [`Config::packet_max`].
    pub fn offer(&mut self, now: Instant, service: usize, flow: u8, packet: &[u8]) -> bool {
        self.sender.offer(now, service, flow, packet)
    }

    /// Number of packets that a class accepts before it refuses.
    pub fn room(&self, service: usize) -> usize {
        let queue = self.config().queue;
        if service < SERVICES {
            queue - self.sender.queued(service).min(queue)
        } else {
            0
        }
    }

    /// Writes the next packet from the peer that is in order to the front of `packet`. A packet longer than the buffer is
    /// skipped.
    pub fn deliver(&mut self, packet: &mut [u8]) -> Option<Delivery> {
        let delivery = self.receiver.deliver(packet);
        self.sender.counters.packets_received += u64::from(delivery.is_some());
        self.sender.counters.torn = self.receiver.torn();
        delivery
    }

    /// Processes a frame from the peer; an error if it is malformed. Drain [`deliver`](Self::deliver) afterwards.
    pub fn handle(&mut self, now: Instant, octets: &[u8]) -> Result<Heard, DropReason> {
        self.handle_late(now, now, octets)
    }

    /// The same for a frame that `arrived` some time before this end got its turn, `now`. What the path takes is measured up to the
    /// arrival.
    pub fn handle_late(
        &mut self,
        now: Instant,
        arrived: Instant,
        octets: &[u8],
    ) -> Result<Heard, DropReason> {
        let Ok(frame) = Frame::parse(octets) else {
            self.sender.counters.drops.count(DropReason::Malformed);
            return Err(DropReason::Malformed);
        };
        let heard = self.take((now, arrived.min(now)), &frame);
        match heard.dropped {
            None => self.sender.counters.frames_received += 1,
            Some(why) => self.sender.counters.drops.count(why),
        }
        self.sender.counters.recovered = self.receiver.recovered;
        Ok(heard)
    }

    /// Writes the best frame to send now to the front of `octets`; `None` if nothing is due.
    pub fn poll(&mut self, now: Instant, chance: Opportunity, octets: &mut [u8]) -> Option<usize> {
        let frame_max = self.config().frame_max.min(octets.len());
        let octets = octets.get_mut(..frame_max)?;
        let mut cover = [0; COVER];
        // The 2 octets are a repair's index and the length of its bitmap.
        let around = FIXED + chance.slot.map_or(0, |_| SLOT) + 2 + self.config().ack_room;
        let mut coded = core::mem::take(&mut self.coded);
        let room = frame_max.saturating_sub(around).min(coded.len());
        let mut out = Out {
            cover: &mut cover,
            coded: coded.get_mut(..room).unwrap_or_default(),
        };
        let due = Wake::due(self.ack_due(), now);
        // The peer learns of its losses only by reports, so one that is due goes before data.
        let apart = due && self.ack_needs_own_frame(frame_max);
        let of = Chance {
            fits: chance.fits,
            room: chance.most.saturating_sub(self.around()),
            report: (ACK + self.receiver.bitmap_len())
                .saturating_sub(self.config().ack_room.max(ACK)),
            fill: chance.fill,
            flush: due,
            again: chance.again,
            new: chance.new,
        };
        let choice = match chance.fits {
            _ if apart => None,
            0 => self.sender.choose_part(now, of),
            _ => self
                .sender
                .choose(now, of, &mut out)
                .or_else(|| self.repeat_unreported()),
        };
        if let Some(Choice::Pair { first, second, .. }) = choice {
            self.sender.write_pair((first, second), &mut coded);
        }
        let len = self.write(now, choice, chance, (&cover, &coded), octets);
        self.coded = coded;
        len
    }

    /// Writes a note, a frame without body, whether one is due or not.
    pub fn note(&mut self, now: Instant, slot: Option<Slot>, octets: &mut [u8]) -> Option<usize> {
        self.contact.notes = self.contact.notes.saturating_add(1);
        let chance = Opportunity {
            slot,
            ..Opportunity::ALWAYS
        };
        self.write(now, None, chance, (&[0; COVER], &[]), octets)
    }

    /// Writes a note without copies of small bodies, behind which the owner may put octets of its own
    /// ([`note_tail`](crate::header::note_tail)).
    pub fn bare_note(&mut self, now: Instant, octets: &mut [u8]) -> Option<usize> {
        self.bare = true;
        let len = self.note(now, None, octets);
        self.bare = false;
        len
    }

    /// Whether [`poll`](Self::poll) has a frame to send at any time, apart from repairs that only fill.
    pub fn wants(&self, now: Instant) -> bool {
        self.sender.has_lost()
            || self.sender.has_new(now)
            || self.sender.owes_repair()
            || self.sender.probes()
            || Wake::due(self.ack_due(), now)
    }

    /// When the next queued packet may leave: not after the present time, unless small packets wait for others. `None` if none
    /// waits or the window is full.
    pub fn next_packet_at(&self) -> Option<Instant> {
        self.sender.new_at(false)
    }

    /// Whether the window has room for another body.
    pub fn can_open(&self) -> bool {
        !self.sender.is_full()
    }

    /// Octets that the report due would add to a frame; 0 if none is due. A packet that leaves them free saves a frame.
    pub fn report_len(&self) -> usize {
        match self.receiver.frames.owed {
            0 => 0,
            _ => ACK + self.receiver.bitmap_len(),
        }
    }

    /// When a report is due, even if nothing else is sent.
    pub fn report_at(&self) -> Option<Instant> {
        self.ack_due().map(|wake| wake.at)
    }

    /// When frames that were overtaken count as lost; `None` while frames come in order.
    pub fn settle_at(&self) -> Option<Instant> {
        self.sender.settle_at()
    }

    /// When the probe timeout expires; `None` while nothing is in flight.
    pub fn probe_at(&self) -> Option<Instant> {
        self.contact.pto_at
    }

    /// The most urgent class of all that waits to leave; with `again` also to be sent again or repaired. [`SERVICES`] if nothing waits.
    pub fn most_urgent(&self, again: bool) -> usize {
        self.sender.most_urgent(again)
    }

    /// Whether a lost body or a repair is to be sent at once.
    pub fn repeats(&self) -> bool {
        self.sender.has_lost() || self.sender.owes_repair()
    }

    /// Whether a probe is due, because nothing has been reported for too long. New data serves as a probe; without any,
    /// [`poll`](Self::poll) returns the oldest body again.
    pub fn probes(&self) -> bool {
        self.sender.probes()
    }

    /// Repairs that wait for the end of the slot. They leave once only one more frame would fit (only in slots).
    pub(crate) fn waiting_repairs(&mut self, now: Instant) -> Option<usize> {
        self.sender.waiting_repairs(now)
    }

    /// Notes that a slot of this end begins (only in slots).
    pub fn begin_slot(&mut self, now: Instant) {
        self.sender.close_bin(now);
        self.contact.bin_since = now;
        self.sender.begin_slot(now, self.contact.heard);
        self.contact.heard = false;
        // An idle slot sends its report often enough that all copies are lost in at most one slot of a hundred.
        //= wildnet 3.1: acknowledgements are cumulative and repeated, so that one of them arrives
        let loss = self.sender.estimate().loss().max(0.01);
        self.contact.notes = libm::ceil(libm::log(0.01) / libm::log(loss)).clamp(2.0, 8.0) as u8;
    }

    /// Sets the time of a round and of one way (only in slots; without slots both are measured).
    pub fn set_round(&mut self, round: Duration, one_way: Duration) {
        self.sender.set_round(round, one_way);
    }

    /// Lets both windows grow only as far as a memory goes that links may share. What both have from the start is not taken from it.
    pub fn share_memory(&mut self, memory: &Memory) {
        self.sender.share(Share::of(memory.clone()));
        self.receiver.share(Share::of(memory.clone()));
    }

    /// Bodies that the peer may have open: how many this end could hold now.
    pub fn receive_window(&self) -> usize {
        self.receiver.window()
    }

    /// Limits the open bodies from now on, up to the configured window.
    pub fn set_window(&mut self, bodies: u32) {
        self.sender.set_limit(bodies);
    }

    /// Changes what a class is promised. It applies to packets already queued and in flight too; none is lost by it.
    pub fn set_service(&mut self, service: usize, to: Service) {
        self.sender.set_service(service, to);
    }

    /// Frames may have at most `frame_max` octets from now on, because the path carries no longer ones: bodies that do not fit are
    /// given up, and packets of that length dropped. Offer shorter packets and pass shorter buffers from then on.
    pub fn shrink(&mut self, frame_max: usize) {
        self.sender.shrink(frame_max);
    }

    /// Notes that the owner has stood still until now: frames may have waited for it as long. Round trips of earlier frames are
    /// not measured, and the probe timeout waits for what has come meanwhile.
    pub fn resume(&mut self, now: Instant) {
        self.sender.resume(now);
        let soon = now + self.config().ack_delay;
        for contact in self.contact.iter_mut() {
            contact.pto_at = contact.pto_at.map(|at| at.max(soon));
        }
    }

    /// Notes that the peer has started over, known by other means than its frames.
    pub fn peer_restarted(&mut self) {
        self.sender.counters.peer_restarts += 1;
        self.sender.restart();
        self.peer_epoch = None;
        for contact in self.contact.iter_mut() {
            contact.pto_at = None;
            (contact.pto_count, contact.silent_timeouts) = (0, 0);
        }
    }

    /// Number of frames that wait: lost and new ones, and one if repairs are due.
    pub fn waiting(&self) -> usize {
        let repairs = usize::from(self.sender.owes_repair());
        self.sender.lost_count() + self.sender.all_queued() + repairs
    }

    /// Air time of the waiting frames, sent one after the other; `of_octets` gives the time of one frame.
    pub fn waiting_time(&self, of_octets: impl Fn(usize) -> Duration) -> Duration {
        let config = self.config();
        let around = self.around();
        let owed = self.sender.owes_repair().then(|| config.body_max());
        let bodies = self.sender.waiting_bodies().chain(owed);
        bodies.fold(Duration::ZERO, |sum, body| sum + of_octets(body + around))
    }

    /// Octets of a frame in a slot around its body.
    fn around(&self) -> usize {
        FIXED + SLOT + self.config().ack_room.max(ACK)
    }

    /// Most octets of the next frame.
    pub fn next_len(&self) -> usize {
        self.sender
            .next_body_len()
            .map_or(self.config().frame_max, |body| body + self.around())
    }

    /// Whether any body is neither reported nor given up.
    pub fn has_open(&self) -> bool {
        self.sender.has_open()
    }

    /// Counters since the link was made.
    pub fn counters(&self) -> &Counters {
        &self.sender.counters
    }

    /// The settings of this end.
    pub fn config(&self) -> &Config {
        self.sender.config()
    }

    /// The present state of the link and the channel of the selected path.
    pub fn report(&self) -> Report {
        self.report_of(self.contact.at())
    }

    /// When a report on the frames of a path is due, even if nothing else is sent.
    pub fn report_at_of(&self, path: usize) -> Option<Instant> {
        self.ack_due_of(path).map(|wake| wake.at)
    }

    /// When the probe timeout of a path expires.
    pub fn probe_at_of(&self, path: usize) -> Option<Instant> {
        self.contact.of(path).pto_at
    }

    /// When frames of a path that were overtaken count as lost.
    pub fn settle_at_of(&self, path: usize) -> Option<Instant> {
        self.sender.loss_of(path).settle_at()
    }

    /// Whether a probe of a path is due.
    pub fn probes_of(&self, path: usize) -> bool {
        self.sender.loss_of(path).has_probes() && self.sender.has_open()
    }

    /// The present state of the link and the channel of a path.
    pub fn report_of(&self, path: usize) -> Report {
        let sender = &self.sender;
        let (loss, contact) = (sender.loss_of(path), self.contact.of(path));
        let rtt = loss.rtt();
        Report {
            channel: sender.estimate_of(path).channel(),
            incoming: self.receiver.frames.of(path).channel(),
            totals: sender.estimate_of(path).totals(),
            rtt: rtt.least().map(|least| (rtt.smoothed, least)),
            host_delay: rtt.host_delay(),
            rtt_lately: rtt.lately(),
            rtt_latest: rtt.latest(),
            passed: loss.passed(),
            open: sender.open_count(),
            oldest_transmissions: sender.oldest_transmissions(),
            queued: sender.all_queued(),
            held: self.receiver.waiting,
            in_flight: loss.bytes_in_flight(),
            reordering: loss.reordering(contact.heard_at),
            pto_count: contact.pto_count,
        }
    }

    /// Predicts overhead and residual loss of a class on the present channel.
    pub fn predict(&self, service: &Service) -> Prediction {
        crate::targets::predict(
            &self.sender.estimate().channel(),
            &Service {
                deadline: self.sender.allowed(service),
                ..*service
            },
            self.sender.round(),
            self.sender.one_way(),
        )
    }

    /// Processes the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.sender.settle_overtaken(now) {
            self.progress(now);
        }
        if self.contact.pto_at.is_some_and(|at| at <= now) {
            self.contact.pto_count = self.contact.pto_count.saturating_add(1);
            self.contact.silent_timeouts = self.contact.silent_timeouts.saturating_add(1);
            // As many probes as a burst swallows, so that one of them comes through.
            let burst = self.sender.estimate().channel().burst;
            self.sender
                .probe(libm::ceil(burst).clamp(1.0, 8.0) as usize);
            if self.sender.has_other_path() {
                // Another path carries the bodies, and this one probes.
                self.sender.doubt(now, self.contact.at());
            }
            // Without anything open there is nothing to be reported.
            self.contact.pto_at = self.sender.has_open().then(|| now + self.pto());
        }
    }

    /// The next timer: a report due, a probe timeout, or small packets that have waited. `None` in slots, which give the time.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let bundle = self.next_packet_at().filter(|_| !self.turns());
        let bundle = bundle.map(|at| Wake { at, why: BUNDLE });
        let probe = self.contact.pto_at.map(|at| Wake { at, why: SILENCE });
        let settle = self.settle_at().filter(|_| !self.turns());
        let settle = settle.map(|at| Wake { at, why: OVERTAKEN });
        let loss = Wake::earlier(probe, settle);
        Wake::earlier(Wake::earlier(self.ack_due(), loss), bundle)
    }

    fn turns(&self) -> bool {
        self.config().turns
    }
}

/// The first frame number after a start. Starts lie 16 million frames apart, so a report on an earlier one is recognised.
const fn first_number(epoch: u8) -> u32 {
    (epoch as u32) << 24
}
