//! One end of a link to one peer: packets in, frames out, and back.
//!
//! It has no medium: whoever owns it says when a frame can leave ([`Link::poll`]) and hands in what arrives
//! ([`Link::handle`]). In turns ([`Config::turns`]) that is a slot's owner, with stamps and reports in every frame; else
//! any network, with reports when they are due and a timer against silence.

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
use crate::header::{ACK, COVER, FIXED, Frame, SLOT, Slot};
use crate::policy::Prediction;
use crate::receiver::{Delivery, Receiver};
use crate::sender::{Chance, Out, Sender};

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    sender: Sender,
    receiver: Receiver,
    epoch: u8,
    peer_epoch: Option<u8>,
    /// When the loss estimate's bin was opened.
    bin_since: Instant,
    /// When a report will be overdue: the probe timeout of RFC 9002, 6.2.
    pto_at: Option<Instant>,
    /// Probe timeouts in a row without a report that settled anything (RFC 9002, A.3).
    pto_count: u32,
    /// Probe timeouts in a row before which no frame at all came from the peer.
    silent_timeouts: u32,
    /// Frames without body that are owed in this slot.
    notes: u8,
    /// A report came since the slot before.
    heard: bool,
    /// The peer has nothing to send but what is missing, and waits to learn what that is.
    hurried: bool,
    coded: Vec<u8>,
}

/// A chance to send one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// Frames of full size that fit before the chance ends, this one included, whatever its size; 0: only a note
    /// fits; `usize::MAX` where nothing ends.
    pub fits: usize,
    /// Whether repairs may be sent although nothing asks for them.
    pub fill: bool,
    /// Whether nothing new waits behind the next packet: the peer then reports at once, since this end has nothing to do
    /// but to hear what is missing. Not in slots, where the turn says so.
    pub last: bool,
    /// The stamp, where there are slots.
    pub slot: Option<Slot>,
}

impl Opportunity {
    /// Any time, anything that is due.
    pub const ALWAYS: Opportunity = Opportunity {
        fits: usize::MAX,
        fill: false,
        last: false,
        slot: None,
    };
}

/// What a frame said besides its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The sender's stamp.
    pub slot: Option<Slot>,
    /// Whether it reported progress.
    pub progress: bool,
    /// Why its body was not used, if it had one that was not.
    pub dropped: Option<DropReason>,
}

/// What a link knows about itself and its channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The channel to the peer, as it counts.
    pub channel: Channel,
    /// The channel from the peer, since the start, as this end counts.
    pub incoming: Channel,
    /// Totals of the channel to the peer.
    pub totals: Totals,
    /// Smoothed round trip, and the least of the latest 10 to 20 s, as far as known.
    pub rtt: Option<(Duration, Duration)>,
    /// The least round trip of the latest tenth of a second or two in which there was one: what it is longer than the least
    /// is a queue that stands, not jitter.
    pub rtt_lately: Option<Duration>,
    /// Bodies under way.
    pub open: u32,
    /// Packets waiting, all classes.
    pub queued: usize,
    /// Bodies received that wait for an older one.
    pub held: usize,
    /// Octets in frames that are neither reported nor known to be lost.
    pub in_flight: usize,
    /// Probe timeouts in a row: times that no report came in time (RFC 9002, A.3: `pto_count`).
    pub pto_count: u32,
}

/// Longest pause between two probes.
const PROBE_MAX: Duration = Duration::from_secs(2);
/// Shortest stretch over which loss is counted where there are no slots.
const BIN: Duration = Duration::from_millis(40);
const ACK_DUE: &str = "acknowledgement due";
const BUNDLE: &str = "small packets have waited";
const SILENCE: &str = "nothing reported";

impl Link {
    /// An end that has not heard anything. `epoch` should differ from that of an earlier life.
    pub fn new(config: Config, epoch: u8) -> Result<Link, ConfigError> {
        config.check()?;
        Ok(Link {
            sender: Sender::new(config, first_number(epoch)),
            receiver: Receiver::new(&config),
            epoch,
            peer_epoch: None,
            bin_since: Instant::ZERO,
            pto_at: None,
            pto_count: 0,
            silent_timeouts: 0,
            notes: 0,
            heard: true,
            hurried: false,
            coded: vec![0; config.body_max() + crate::config::COVER_USUAL],
        })
    }

    /// Queues a packet of a class (0 is the most urgent) and flow (0 to 63). False if it was refused: no room, empty,
    /// or longer than [`Config::packet_max`].
    pub fn offer(&mut self, now: Instant, service: usize, flow: u8, packet: &[u8]) -> bool {
        self.sender.offer(now, service, flow, packet)
    }

    /// Packets that a class takes before it refuses.
    pub fn room(&self, service: usize) -> usize {
        let queue = self.config().queue;
        if service < SERVICES {
            queue - self.sender.queued(service).min(queue)
        } else {
            0
        }
    }

    /// Takes the next packet from the peer whose turn has come, written to the front of `packet`.
    pub fn deliver(&mut self, packet: &mut [u8]) -> Option<Delivery> {
        let delivery = self.receiver.deliver(packet);
        self.sender.counters.packets_received += u64::from(delivery.is_some());
        delivery
    }

    /// A frame came from the peer; an error if it is none. Drain [`deliver`](Self::deliver) afterwards.
    pub fn handle(&mut self, now: Instant, octets: &[u8]) -> Result<Heard, DropReason> {
        let Ok(frame) = Frame::parse(octets) else {
            self.sender.counters.drops.count(DropReason::Malformed);
            return Err(DropReason::Malformed);
        };
        let heard = self.take(now, &frame);
        match heard.dropped {
            None => self.sender.counters.frames_received += 1,
            Some(why) => self.sender.counters.drops.count(why),
        }
        self.sender.counters.recovered = self.receiver.recovered;
        Ok(heard)
    }

    /// The best frame to send now, if there is one, written to the front of `octets`.
    pub fn poll(&mut self, now: Instant, chance: Opportunity, octets: &mut [u8]) -> Option<usize> {
        let frame_max = self.config().frame_max.min(octets.len());
        let octets = octets.get_mut(..frame_max)?;
        let mut cover = [0; COVER];
        let around = FIXED + chance.slot.map_or(0, |_| SLOT) + 2 + self.config().ack_room;
        let mut coded = core::mem::take(&mut self.coded);
        let room = frame_max.saturating_sub(around).min(coded.len());
        let mut out = Out {
            cover: &mut cover,
            coded: coded.get_mut(..room).unwrap_or_default(),
        };
        let due = Wake::due(self.ack_due(), now);
        let apart = due && self.ack_needs_own_frame(frame_max);
        let choice = match chance.fits {
            0 => None,
            _ if apart => None,
            fits => {
                let of = Chance {
                    fits,
                    fill: chance.fill,
                    flush: due,
                };
                self.sender
                    .choose(now, of, &mut out)
                    .or_else(|| self.repeat_unreported())
            }
        };
        let len = self.write(now, choice, chance, (&cover, &coded), octets);
        self.coded = coded;
        len
    }

    /// A frame without body, whether it is due or not.
    pub fn note(&mut self, now: Instant, slot: Option<Slot>, octets: &mut [u8]) -> Option<usize> {
        self.notes = self.notes.saturating_add(1);
        let chance = Opportunity {
            slot,
            ..Opportunity::ALWAYS
        };
        self.write(now, None, chance, (&[0; COVER], &[]), octets)
    }

    /// Whether [`poll`](Self::poll) has something at any time, without filling.
    pub fn wants(&self, now: Instant) -> bool {
        self.sender.has_lost()
            || self.sender.has_new(now)
            || self.sender.owes_repair()
            || self.sender.probes()
            || Wake::due(self.ack_due(), now)
    }

    /// When the packets that wait may go out: now or earlier, or once small ones have waited for others. `None`: none
    /// waits, or the window is full.
    pub fn next_packet_at(&self) -> Option<Instant> {
        self.sender.new_at(false)
    }

    /// Whether the window has room for another body.
    pub fn can_open(&self) -> bool {
        !self.sender.is_full()
    }

    /// Octets that the report which is owed would add to a frame; 0 if none is owed. Who leaves them free in a packet
    /// spares a frame.
    pub fn report_len(&self) -> usize {
        match self.receiver.owed {
            0 => 0,
            _ => ACK + self.receiver.bitmap_len(),
        }
    }

    /// When a report is due, though nothing else may be sent.
    pub fn report_at(&self) -> Option<Instant> {
        self.ack_due().map(|wake| wake.at)
    }

    /// When silence will have lasted too long.
    pub fn probe_at(&self) -> Option<Instant> {
        self.pto_at
    }

    /// Whether a body or repair is to be sent again, at once.
    pub fn repeats(&self) -> bool {
        self.sender.has_lost() || self.sender.owes_repair()
    }

    /// Whether a frame is due only because nothing has been reported for too long: something new serves as well, if there is
    /// any, else [`poll`](Self::poll) gives the oldest body again.
    pub fn probes(&self) -> bool {
        self.sender.probes()
    }

    /// Repairs that wait for the end of the slot: they leave once only one frame more would fit (only in turns).
    pub(crate) fn waiting_repairs(&mut self, now: Instant) -> Option<usize> {
        self.sender.waiting_repairs(now)
    }

    /// A slot of ours begins (only in turns).
    pub fn begin_slot(&mut self, now: Instant) {
        self.sender.close_bin();
        self.bin_since = now;
        self.sender.begin_slot(now, self.heard);
        self.heard = false;
        // Alone in its slot, a report is sent until it is lost as a whole in one slot of a hundred at most.
        //= wildnet 3.1: acknowledgements are cumulative and repeated, so that one of them arrives
        let loss = self.sender.estimate().loss().max(0.01);
        self.notes = libm::ceil(libm::log(0.01) / libm::log(loss)).clamp(2.0, 8.0) as u8;
    }

    /// What a round takes, and one way (only in turns; else it is measured).
    pub fn set_round(&mut self, round: Duration, one_way: Duration) {
        self.sender.set_round(round, one_way);
    }

    /// Most bodies under way from now on, up to the configured window.
    pub fn set_window(&mut self, bodies: u32) {
        self.sender.set_limit(bodies);
    }

    /// Changes what a class is promised. Nothing is lost by it.
    pub fn set_service(&mut self, service: usize, to: Service) {
        self.sender.set_service(service, to);
    }

    /// The peer has started over, and has told so by other means than its frames.
    pub fn peer_restarted(&mut self) {
        self.sender.counters.peer_restarts += 1;
        self.sender.restart();
        self.peer_epoch = None;
        self.pto_at = None;
        (self.pto_count, self.silent_timeouts) = (0, 0);
    }

    /// Frames that wait: lost, new, and repairs that are owed.
    pub fn waiting(&self) -> usize {
        let repairs = usize::from(self.sender.owes_repair());
        self.sender.lost_count() + self.sender.all_queued() + repairs
    }

    /// What these frames take on the air, each with the time of `of_octets` and sent one after the other.
    pub fn waiting_time(&self, of_octets: impl Fn(usize) -> Duration) -> Duration {
        let config = self.config();
        let around = FIXED + SLOT + config.ack_room.max(ACK);
        let owed = self.sender.owes_repair().then(|| config.body_max());
        let bodies = self.sender.waiting_bodies().chain(owed);
        bodies.fold(Duration::ZERO, |sum, body| sum + of_octets(body + around))
    }

    /// Octets of the next frame at most.
    pub fn next_len(&self) -> usize {
        let config = self.config();
        let around = FIXED + SLOT + config.ack_room.max(ACK);
        self.sender
            .next_body_len()
            .map_or(config.frame_max, |body| body + around)
    }

    /// Whether anything is neither reported nor given up.
    pub fn has_open(&self) -> bool {
        self.sender.has_open()
    }

    /// Counters since the link was made.
    pub fn counters(&self) -> &Counters {
        &self.sender.counters
    }

    /// What decides how it works.
    pub fn config(&self) -> &Config {
        self.sender.config()
    }

    /// Its state and its channel.
    pub fn report(&self) -> Report {
        let sender = &self.sender;
        let rtt = sender.rtt();
        Report {
            channel: sender.estimate().channel(),
            incoming: self.receiver.channel(),
            totals: sender.estimate().totals(),
            rtt: rtt.least().map(|least| (rtt.smoothed, least)),
            rtt_lately: rtt.lately(),
            open: sender.open_count(),
            queued: sender.all_queued(),
            held: self.receiver.waiting,
            in_flight: sender.bytes_in_flight(),
            pto_count: self.pto_count,
        }
    }

    /// What a class costs and leaves on the channel as it is, if it has a deadline.
    pub fn predict(&self, service: &Service) -> Prediction {
        crate::targets::predict(
            &self.sender.estimate().channel(),
            service,
            self.sender.round(),
            self.sender.one_way(),
        )
    }

    /// A deadline has come, or not.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.pto_at.is_some_and(|at| at <= now) {
            self.pto_count = self.pto_count.saturating_add(1);
            self.silent_timeouts = self.silent_timeouts.saturating_add(1);
            // As many probes as a burst swallows, so that one of them comes through.
            let burst = self.sender.estimate().channel().burst;
            self.sender
                .probe(libm::ceil(burst).clamp(1.0, 8.0) as usize);
            self.pto_at = self.sender.has_open().then(|| now + self.pto());
        }
    }

    /// When something is due although nothing comes. Never in turns: the slot is the clock.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let bundle = self.next_packet_at().filter(|_| !self.turns());
        let bundle = bundle.map(|at| Wake { at, why: BUNDLE });
        let probe = self.pto_at.map(|at| Wake { at, why: SILENCE });
        Wake::earlier(Wake::earlier(self.ack_due(), probe), bundle)
    }

    fn turns(&self) -> bool {
        self.config().turns
    }
}

/// Where the frame numbers of a life begin, so that reports on an earlier one are told apart: 16 million frames lie
/// between two.
const fn first_number(epoch: u8) -> u32 {
    (epoch as u32) << 24
}
