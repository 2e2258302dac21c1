//! Outgoing segments: which one is sent, when, and with which header.
//!
//! `choose` decides what to send: a retransmission before new data before a bare ACK. `send_data` and `send_syn` record it and fill in
//! what depends on it, `finish` the rest of the header.

use chappe_core::{Duration, Instant};

use super::clock::stall_clock;
use super::congestion::Congestion;
use super::flight::{LOST, SACKED};
use super::input::Ecn;
use super::recovery::Phase;
use super::ring::copy;
use super::segment::{Flags, HEADER_MAX, HEADER_MIN, Options, SackBlocks, Segment, Timestamps};
use super::socket::Socket;
use super::state::State;
use super::timers::Timer;
use super::{Range, Seq, bits};

/// A segment to send, written to the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Octets of the segment at the front of the buffer.
    pub len: usize,
    /// The ECN bits for its packet.
    pub ecn: Ecn,
}

/// A segment to send, its payload still in the send buffer.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'s> {
    /// Octets of header at the front of the driver's buffer.
    pub header: usize,
    /// The payload, in up to two parts where the ring wraps.
    pub payload: [&'s [u8]; 2],
    /// The ECN bits for its packet.
    pub ecn: Ecn,
}

/// The segment to send, while it is made: an acknowledgement with SEG.SEQ = SND.NXT (RFC 9293 3.10.7.4) unless something else
/// is due.
struct Draft {
    segment: Segment<'static>,
    /// The payload of a full segment, octets.
    full: u32,
    /// Octets of payload, from SEG.SEQ on.
    len: u32,
    ecn: Ecn,
}

impl Draft {
    fn add(&mut self, flags: Flags) {
        self.segment.flags = self.segment.flags | flags;
    }
}

impl<C: Congestion> Socket<'_, C> {
    /// Writes the next segment to send to the front of `buffer`, checksum included.
    ///
    /// `buffer` should hold [`Config::mss`](super::Config::mss) + 20 octets; a smaller one makes smaller segments,
    /// and one of less than 60 octets none at all.
    pub fn poll_segment(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let room = buffer.len();
        let parts = self.poll_parts(now, buffer, room)?;
        let [first, second] = parts.payload;
        let rest = parts.header.wrapping_add(first.len());
        copy(buffer, parts.header, first);
        copy(buffer, rest, second);
        Some(Transmit {
            len: rest.wrapping_add(second.len()),
            ecn: parts.ecn,
        })
    }

    /// The next segment to send, without copying its payload: the header is written to `header`, which has at least
    /// 60 octets, and header and payload together take at most `room`.
    #[inline(never)]
    pub fn poll_parts(
        &mut self,
        now: Instant,
        header: &mut [u8],
        room: usize,
    ) -> Option<Parts<'_>> {
        if room < HEADER_MAX || header.len() < HEADER_MAX {
            return None;
        }
        self.timers.turn(now);
        let mut draft = Draft {
            segment: Segment {
                source_port: self.port,
                destination_port: self.remote.port,
                seq: self.snd_nxt,
                ack: self.rcv_nxt,
                flags: Flags::ACK,
                window: 0,
                urgent: 0,
                options: self.options(),
                payload: &[],
            },
            full: 0,
            len: 0,
            ecn: Ecn::NotCapable,
        };
        let options = draft.segment.options.len();
        let full = usize::from(self.mss).min(room - HEADER_MIN);
        draft.full = full.saturating_sub(options).max(1) as u32;
        if !self.choose(&mut draft) {
            self.wait_for_window();
            return None;
        }
        self.finish(&mut draft);
        let offset = draft.segment.seq.since(self.flight.una());
        let payload = self.send.parts(offset, draft.len);
        let header = draft.segment.emit_header(&self.flow(), payload, header);
        Some(Parts {
            header,
            payload,
            ecn: draft.ecn,
        })
    }

    /// The header fields that do not depend on what is sent: window, acknowledgement.
    fn finish(&mut self, draft: &mut Draft) {
        let flags = draft.segment.flags;
        let syn = flags.has(Flags::SYN);
        if !syn && !flags.has(Flags::RST) && self.bits.has(bits::SEND_ECE) {
            draft.add(Flags::ECE);
        }
        draft.segment.window = self.advertise(syn);
        match flags.has(Flags::ACK) {
            true => self.ack_sent(),
            false => draft.segment.ack = Seq::default(),
        }
    }

    /// Chooses what to send and records it. False if there is nothing.
    fn choose(&mut self, draft: &mut Draft) -> bool {
        if self.bits.take(bits::RST_NOW) {
            draft.add(Flags::RST);
            return true;
        }
        match self.state {
            State::Closed => return false,
            State::SynSent | State::SynReceived => return self.choose_opening(draft),
            _ => {}
        }
        if self.bits.take(bits::PROBE_NOW) && self.choose_probe(draft)
            || self.choose_retransmission(draft)
        {
            return true;
        }
        self.restart_after_idle();
        if self.choose_new(draft) {
            return true;
        }
        if self.bits.take(bits::KEEP_ALIVE_NOW) {
            // One octet before SND.NXT, so that the peer must answer (RFC 9293 3.8.4).
            draft.segment.seq = self.snd_nxt.back(1);
            return true;
        }
        self.bits.take(bits::ACK_NOW)
    }

    /// Before the handshake ends: a SYN or SYN-ACK; in SYN-RECEIVED also the acknowledgement that challenges an unacceptable
    /// segment (RFC 9293 3.10.7.4, first and second; RFC 5961 3.2).
    fn choose_opening(&mut self, draft: &mut Draft) -> bool {
        if self.bits.take(bits::SYN_NOW) {
            self.send_syn(draft);
            return true;
        }
        self.bits.take(bits::ACK_NOW) && self.state == State::SynReceived
    }

    /// The first segment marked lost, if the congestion window has room for it. The first one of a recovery goes out
    /// regardless of the window (RFC 6675 5 step 4.3, RFC 6298 5.4).
    fn choose_retransmission(&mut self, draft: &mut Draft) -> bool {
        if !matches!(self.recovery.phase, Phase::Fast | Phase::Loss) {
            return false;
        }
        let piece = self.flight.pieces().find(|piece| piece.is(LOST));
        let forced = self.bits.take(bits::FORCE);
        let Some(piece) = piece else {
            return false;
        };
        let mut range = piece.range;
        let whole = range.len() <= draft.full;
        let len = range.len().min(draft.full);
        if !forced && self.congestion_room() < len {
            return false;
        }
        // At most a full segment. If the table has no room to cut the entry, its rest counts as retransmitted too; if it was
        // lost, it is marked lost again.
        if !whole {
            range.end = range.start + len;
            self.flight.split(range.end);
        }
        self.send_data(draft, range, true);
        true
    }

    /// A tail loss probe: new data if there is some, else the last segment once more (RFC 8985 7.3).
    fn choose_probe(&mut self, draft: &mut Draft) -> bool {
        if self.recovery.phase != Phase::Open {
            return false;
        }
        let Some(last) = self.flight.last() else {
            return false;
        };
        let full = draft.full;
        let len = self.unsent().min(full).min(self.usable_window());
        let whole = len == full || len == self.unsent();
        let new = len > 0 && whole && self.flight.has_room();
        self.bits.set(bits::PROBED_TAIL);
        self.bits.put(bits::PROBE_RETRANSMITTED, !new);
        let mut range = Range::new(self.snd_nxt, self.snd_nxt + len);
        if new {
            self.probe_end = range.end;
        } else {
            self.probe_end = self.snd_nxt;
            range = last.range;
            if range.len() > full && self.flight.split(range.end.back(full)) {
                range.start = range.end.back(full);
            }
            range.end = range.end.earlier(range.start + full);
        }
        self.send_data(draft, range, !new);
        true
    }

    /// New data, or the FIN, as far as the peer's window, the congestion window, Nagle's rule and silly-window avoidance
    /// allow.
    fn choose_new(&mut self, draft: &mut Draft) -> bool {
        let unsent = self.unsent();
        let usable = self.usable_window();
        let persist = self.bits.take(bits::PERSIST_NOW);
        if !self.flight.has_room() {
            return false;
        }
        let mut len = 0;
        if unsent == 0 {
            let fin = self.bits.has(bits::FIN_QUEUED) && !self.bits.has(bits::FIN_SENT);
            if !fin || self.state == State::TimeWait {
                return false;
            }
        } else {
            if persist && usable == 0 && self.flight.is_empty() {
                // One octet beyond the window; SND.NXT does not advance past it.
                draft.len = 1;
                self.bits.set(bits::PROBED_WINDOW);
                return true;
            }
            len = unsent.min(draft.full).min(usable);
            if len == 0
                || !(persist || self.worth_sending(len, draft.full, unsent))
                || self.congestion_room() < len
            {
                return false;
            }
        }
        let range = Range::new(self.snd_nxt, self.snd_nxt + len);
        self.send_data(draft, range, false);
        true
    }

    /// Sender's silly-window avoidance and Nagle's rule (RFC 9293 3.8.6.2.1 and 3.7.4).
    fn worth_sending(&self, len: u32, full: u32, unsent: u32) -> bool {
        let last = len == unsent;
        let closing = last && self.bits.has(bits::FIN_QUEUED);
        let idle = self.flight.is_empty() || !self.local.config.nagle;
        len == full || last && idle || closing || !last && len >= self.snd_wnd_max() / 2
    }

    /// Octets written by the application and never sent.
    fn unsent(&self) -> u32 {
        let sent = self.snd_nxt.since(self.flight.una());
        self.send.len().saturating_sub(sent)
    }

    /// Whether our SYN is not acknowledged yet.
    fn opening(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// The usable window of RFC 9293 3.8.6.2.1: SND.UNA + SND.WND - SND.NXT, in octets.
    fn usable_window(&self) -> u32 {
        (self.flight.una() + self.snd_wnd()).saturating_since(self.snd_nxt)
    }

    /// The sender's estimate of the octets in the network: RFC 6675's pipe.
    pub(super) fn pipe(&self) -> u32 {
        let pipe = self.flight.pipe();
        let duplicates = match self.recovery.phase {
            Phase::Loss => 0,
            Phase::Fast => self.recovery.duplicates,
            // RFC 3042: at most two segments more.
            Phase::Open | Phase::Reduced => self.recovery.duplicates.min(2),
        };
        pipe.saturating_sub(u32::from(duplicates).saturating_mul(self.segment_size()))
    }

    /// Octets that the congestion window still allows. Without limited transmit, duplicate acknowledgements make no room
    /// before recovery begins.
    fn congestion_room(&self) -> u32 {
        let quiet = matches!(self.recovery.phase, Phase::Open | Phase::Reduced);
        let outstanding = match quiet && !self.local.config.limited_transmit {
            true => self.snd_nxt.since(self.flight.una()),
            false => self.pipe(),
        };
        self.window.cwnd.saturating_sub(outstanding)
    }

    /// After an idle time longer than the RTO the window no longer describes the path: back to the initial window
    /// (RFC 5681 4.1).
    fn restart_after_idle(&mut self) {
        if !self.local.config.uses_idle_restart() || !self.flight.is_empty() || self.unsent() == 0 {
            return;
        }
        let idle = u32::from(self.stamp().coarse().wrapping_sub(self.sent_at)) << 14;
        let restart = self.initial_window();
        if idle > self.rtt.base_timeout(&self.local.config)
            && self.congestion.initial_window().is_none()
        {
            self.window.cwnd = self.window.cwnd.min(restart);
        }
    }

    fn send_syn(&mut self, draft: &mut Draft) {
        let retransmission = self.bits.has(bits::SYN_RETRANSMITTED);
        let una = self.flight.una();
        draft.segment.seq = una;
        draft.add(Flags::SYN);
        if self.state == State::SynSent {
            draft.segment.flags = Flags::SYN;
            // Some networks drop a SYN that asks for ECN, so a retransmitted SYN does not ask (RFC 3168 6.1.1.1).
            let offer = self.local.config.uses_ecn() && !retransmission;
            self.bits.put(bits::ECN_OFFERED, offer);
            if offer {
                draft.add(Flags::ECE | Flags::CWR);
            }
        } else if self.bits.has(bits::ECN) {
            draft.add(Flags::ECE);
        }
        if retransmission {
            self.flight.retransmitted(una, self.stamp());
        }
        if !self.timers.runs(Timer::Retransmit) {
            self.start_retransmit();
        }
    }

    /// Data, and a FIN that follows it: `range` is sent, for the first time or `again`.
    fn send_data(&mut self, draft: &mut Draft, range: Range, again: bool) {
        let una = self.flight.una();
        let data_end = una + self.send.len();
        let stamp = self.stamp();
        let mut end = range.end;
        draft.segment.seq = range.start;
        draft.len = end.earlier(data_end).saturating_since(range.start);
        if end.at_or_after(data_end) {
            if draft.len > 0 {
                draft.add(Flags::PSH);
            }
            let fin = match again {
                true => end.after(data_end),
                false => self.bits.has(bits::FIN_QUEUED),
            };
            if fin {
                draft.add(Flags::FIN);
                end = data_end + 1;
                self.bits.set(bits::FIN_SENT);
            }
        }
        let probe = self.bits.has(bits::PROBED_TAIL) && range.end == self.probe_end;
        if probe {
            // A FIN that joins the probe is part of what the probe's acknowledgement must cover.
            self.probe_end = end;
        }
        if again {
            self.flight.retransmitted(range.start, stamp);
            self.note_retransmission();
        } else {
            self.flight.push(end, stamp);
            self.note_wait();
            self.snd_nxt = end;
            // The probed octet is part of what is sent now.
            self.bits.clear(bits::PROBED_WINDOW);
            // Retransmissions and pure ACKs must not be ECN-capable (RFC 3168 6.1.4, 6.1.5).
            if self.bits.has(bits::ECN) && draft.len > 0 {
                draft.ecn = Ecn::Capable0;
                if self.bits.take(bits::SEND_CWR) {
                    draft.add(Flags::CWR);
                }
            }
        }
        if self.recovery.phase == Phase::Fast {
            self.recovery.sent = self.recovery.sent.saturating_add(draft.len);
        }
        self.sent_at = stamp.coarse();
        if !self.timers.runs(Timer::Retransmit) || again && range.start == una || probe {
            self.start_retransmit();
        }
        if !again {
            self.schedule_probe();
        }
    }

    /// The retransmission timeout with back-off; at least 3 s if the SYN was retransmitted and there is no round-trip
    /// sample yet (RFC 6298 5.7).
    pub(super) fn timeout(&self) -> Duration {
        let timeout = self.rtt.timeout(&self.local.config, self.backoff);
        match self.rtt.smoothed() == 0 && !self.opening() && self.bits.has(bits::SYN_RETRANSMITTED)
        {
            true => timeout.max(Duration::from_secs(3)),
            false => timeout,
        }
    }

    /// Starts the probe timer (RFC 8985 7.2), or stops it if no probe may be sent.
    pub(super) fn schedule_probe(&mut self) {
        let may = self.local.config.uses_tail_loss_probe()
            && self.bits.has(bits::SACK)
            && self.recovery.phase == Phase::Open
            && !self.bits.has(bits::PROBED_TAIL)
            && !self.flight.is_empty()
            && !self.flight.any(SACKED);
        if !may {
            self.timers.stop(Timer::TailLossProbe);
            return;
        }
        let wait = self
            .rtt
            .probe_timeout(&self.local.config, self.flight.len() == 1);
        self.timers.start(Timer::TailLossProbe, wait);
        // RFC 8985 7.2: if the RTO would fire first, the probe takes its place.
        self.timers.limit(Timer::TailLossProbe, Timer::Retransmit);
    }

    /// Nothing can be sent now. If data waits and nothing is in flight that an acknowledgement could answer, starts the
    /// persist timer: a lost window update would otherwise stall the connection forever (RFC 9293 3.8.6.1).
    fn wait_for_window(&mut self) {
        let waiting = self.flight.is_empty() && self.unsent() > 0;
        if waiting && self.state != State::Closed && !self.timers.runs(Timer::Persist) {
            let wait = self.timeout().min(self.local.config.persist_max);
            self.timers.start(Timer::Persist, wait);
            self.note_wait();
        }
    }

    /// Data begins to wait for an acknowledgement or a window, unless some waits already: the user timeout counts from here.
    fn note_wait(&mut self) {
        if cfg!(feature = "user-timeout") && self.flight.stalled_at == 0 {
            self.flight.stalled_at = stall_clock(self.now());
        }
    }

    /// The options of the next segment: a SYN's offer, or what both ends agreed on; a reset has none.
    fn options(&self) -> Options {
        let mut options = Options::default();
        if self.bits.has(bits::RST_NOW) {
            return options;
        }
        let mut blocks = SackBlocks::MAX;
        if self.bits.has(bits::TIMESTAMPS) {
            options.timestamps = Some(Timestamps {
                value: self.timestamp(),
                echo: self.ts_recent,
            });
            // 40 octets of options hold 12 of timestamps and three blocks (RFC 2018 3).
            blocks -= 1;
        }
        let sack = self.bits.has(bits::SACK);
        if self.opening() && self.bits.has(bits::SYN_NOW) {
            options.mss = Some(self.local.config.mss);
            options.sack_permitted = sack;
            if self.bits.has(bits::WINDOW_SCALE) {
                options.window_scale = Some(self.scale_wanted());
            }
        } else if sack {
            let duplicate = (self.duplicate_len > 0).then_some(self.duplicate());
            // A D-SACK block goes first (RFC 2883 4).
            let ranges = duplicate.iter().chain(self.receive.ranges());
            ranges
                .take(blocks)
                .for_each(|range| options.sack.push(*range));
        }
        options
    }

    /// An acknowledgement is sent: no other one is due.
    fn ack_sent(&mut self) {
        self.last_ack = self.rcv_nxt;
        self.duplicate_len = 0;
        self.bits.clear(bits::ACK_NOW);
        self.timers.stop(Timer::DelayedAck);
    }

    /// The window field of the segment that is sent now. The right edge moves only by at least
    /// [`window_step`](Self::window_step) (receiver's silly-window avoidance, RFC 9293 3.8.6.2.2), and never back.
    #[inline(never)]
    fn advertise(&mut self, syn: bool) -> u16 {
        let (free, offered) = self.windows();
        let window = match free.saturating_sub(offered) >= self.window_step() {
            true => free,
            false => offered,
        };
        let scale = if syn { 0 } else { self.rcv_scale() };
        // The field counts units of `1 << scale`. Round up, so as not to take back what was offered (RFC 7323 2.4), unless
        // that would offer more than is free.
        let rounded = window.saturating_add((1 << scale) - 1) >> scale;
        let units = if rounded << scale > free {
            window >> scale
        } else {
            rounded
        };
        let units = units.min(u32::from(u16::MAX));
        self.rcv_adv = self.rcv_adv.later(self.rcv_nxt + (units << scale));
        units as u16
    }

    /// Free octets of the receive buffer, and how many of them the peer was offered.
    fn windows(&self) -> (u32, u32) {
        let offered = self.rcv_adv.saturating_since(self.rcv_nxt);
        (self.receive.free(), offered)
    }

    /// The smaller of half the buffer and what a full segment of the peer carries.
    fn window_step(&self) -> u32 {
        let timestamps = if self.bits.has(bits::TIMESTAMPS) {
            12
        } else {
            0
        };
        let segment = u32::from(self.local.config.mss).saturating_sub(timestamps);
        (self.receive.capacity() / 2).min(segment).max(1)
    }

    /// The application has read: sends a window update if the window opens by enough. While the peer still has a segment's
    /// worth of window, the threshold is what a delayed acknowledgement waits for, so that reading does not defeat the
    /// delay.
    pub(super) fn offer_window(&mut self) {
        let (free, offered) = self.windows();
        let step = self.window_step();
        let enough = match offered < step {
            true => step,
            false => {
                let segments = u32::from(self.local.config.ack_every.max(2));
                step.saturating_mul(segments)
                    .min(self.receive.capacity() / 2)
                    .max(1)
            }
        };
        if self.state.can_receive() && free.saturating_sub(offered) >= enough {
            self.bits.set(bits::ACK_NOW);
        }
    }
}
