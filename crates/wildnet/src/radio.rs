//! One radio of a site and the link that it carries: it sends in the site's slots and listens in between.
//!
//! It does no carrier sensing: the schedule is the access method. It takes a frame from the link only when that can leave, so
//! that its report is the latest.

use chappe_core::{
    Address, Duration, Instant, RadioEvent, RadioNode, RadioRequest, Stream, Transmit, Wake,
};
use chappe_wire::dot11::{DATA_HEADER_LEN, Data, Frame, NavTime, Repr, Sequence};
use chappe_wire::llc::{self, EtherType};

use crate::config::Recovery;
use crate::header::{ACK, FIXED, SLOT, Slot};
use crate::link::{Link, Opportunity};
use crate::site::{Site, SlotConfig, Turn, Turns};

/// "WILD01" in ASCII without the group bit of the first octet: a locally administered address.
const BSSID: [u8; 6] = [0x56, 0x49, 0x4c, 0x44, 0x30, 0x31];

/// One radio with its antenna pointed at one peer.
#[derive(Clone, Debug)]
pub struct Radio {
    /// The link, to offer packets to and take packets from. Afterwards call
    /// [`RadioNode::handle_timeout`] with the present time.
    pub link: Link,
    site: Site,
    place: usize,
    me: Address,
    peer: Address,
    random: Stream,
    sequence: Sequence,
    /// The latest slot in which this radio takes part.
    turn: Turn,
    /// In its slot: end of the last frame in virtual time, by which frames are admitted.
    busy_until: Instant,
    /// A frame has been handed to the radio and has not ended.
    transmitting: bool,
    /// Nothing more is sent in this slot.
    done: bool,
    /// When the repairs of this slot's block leave even if no packet joins it.
    close_at: Option<Instant>,
    marked: bool,
    /// The back-off of the next frame.
    backoff: Duration,
    slots: SlotCounters,
}

/// Counters of a radio's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounters {
    /// Slots in which it took part.
    pub slots: u64,
    /// Time spent sending frames, without gaps.
    pub airtime: Duration,
    /// Frames sent, notes included.
    pub frames: u64,
    /// Frames received from the peer.
    pub heard: u64,
    /// Slots in which it only listened, to find its peer.
    pub searched: u64,
}

impl Radio {
    /// Makes the radio at `place` of a site, from `me` to `peer`.
    pub fn new(
        link: Link,
        site: Site,
        place: usize,
        (me, peer): (Address, Address),
        random: Stream,
    ) -> Radio {
        let turn = site.turn();
        let mut radio = Radio {
            link,
            site,
            place,
            me,
            peer,
            random,
            sequence: Sequence::new(0),
            turn,
            busy_until: Instant::ZERO,
            transmitting: false,
            done: true,
            close_at: None,
            marked: false,
            backoff: Duration::ZERO,
            slots: SlotCounters::default(),
        };
        radio.draw();
        radio
    }

    /// Counters of its slots.
    pub fn slots(&self) -> &SlotCounters {
        &self.slots
    }

    /// The site to which it belongs.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The latest slot in which it took part.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    fn end(&self) -> Instant {
        self.turn.start + self.turn.length
    }

    /// Joins the site's slot if a new one has begun.
    fn join(&mut self, now: Instant) {
        let turn = self.site.advance(now);
        // A slot that was noticed only after its end is not joined.
        if turn.index == self.turn.index || now >= turn.start + turn.length {
            return;
        }
        self.turn = turn;
        let (cycle, one_way) = self.site.cycle(self.place);
        self.link.set_round(cycle, turn.length / 2 + one_way);
        self.link.begin_slot(now);
        self.busy_until = turn.start.max(now);
        (self.done, self.marked, self.close_at) = (false, false, None);
        self.slots.slots += 1;
        // Sites whose slots coincide never hear each other, so a radio without a peer sometimes only listens.
        let waits = self.site.radios() > 1 && !self.site.is_live(self.place);
        if waits && self.random.chance(0.25) {
            self.done = true;
            self.slots.searched += 1;
        }
    }

    fn draw(&mut self) {
        let config = self.site.config();
        self.backoff = config.step * self.random.below(u64::from(config.backoff) + 1);
    }

    fn airtime(&self, frame: usize) -> Duration {
        self.site.config().airtime(frame)
    }

    /// The next frame of the slot, if one fits.
    fn next_frame(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        let config: SlotConfig = *self.site.config();
        let limit = self.limit();
        let note = self.note();
        //= wildnet 3.2: a frame is handed to the radio only if it ends within the slot by virtual time
        let from = self.busy_until.max(now);
        let room = limit.saturating_since(from + config.mean_gap());
        let full = self.airtime(self.link.config().frame_max) + config.mean_gap();
        let fits = if self.airtime(self.link.next_len()) <= room {
            ((room + config.mean_gap()).steps(full) as usize).max(1)
        } else {
            0
        };
        // Where no full frame fits, a part of a packet may, or a note with the report.
        let allowed = fits > 0 || note <= room;
        let at = (from + config.gap + self.backoff).max(now);
        // A part of a packet fills the rest of the slot, whatever this back-off is.
        let rest = limit.saturating_since(at);
        let chance = self.chance(at, fits, if fits > 0 { room } else { rest });
        // The link writes in place, behind room for the headers.
        let (_, body) = psdu.split_at_mut_checked(DATA_HEADER_LEN + llc::LEN)?;
        let mut len = if allowed {
            self.link.poll(now, chance, body)
        } else {
            None
        };
        // Only at the slot's end, even if nothing else is left to send: on the marker the peer begins its turn.
        if len.is_none() && !allowed && self.markers() && !self.marked {
            self.marked = true;
            len = self.marker(now, chance, body);
        }
        let waiting = self.link.waiting_repairs(now).filter(|_| len.is_none());
        let close_at = waiting.map(|repairs| limit.saturating_before(full * (repairs as u64 + 1)));
        self.close_at = close_at.filter(|&at| at > now);
        let Some(len) = len else {
            // As long as a frame would fit, a packet may still come.
            self.done = !allowed;
            return None;
        };
        self.wrap(psdu)?;
        self.draw();
        let airtime = self.airtime(len);
        self.busy_until = at + airtime;
        self.slots.frames += 1;
        self.slots.airtime += airtime;
        Some(Transmit {
            at,
            len: DATA_HEADER_LEN + llc::LEN + len,
            mode: config.mode,
            power: None,
        })
    }

    fn markers(&self) -> bool {
        matches!(self.site.config().turns, Turns::Markers { .. })
    }

    /// Time on the air of a frame without body.
    fn note(&self) -> Duration {
        self.airtime(FIXED + SLOT + ACK + 32)
    }

    /// When frames of the slot must have ended: before the guard, and before the marker if there is one.
    fn limit(&self) -> Instant {
        let config = self.site.config();
        let reserve = match self.markers() {
            true => self.note() + config.mean_gap(),
            false => Duration::ZERO,
        };
        self.end().saturating_before(config.guard + reserve)
    }

    fn chance(&self, at: Instant, fits: usize, room: Duration) -> Opportunity {
        let since = at.saturating_since(self.turn.start);
        let frame_max = self.link.config().frame_max;
        let longest = self.site.config().longest(room, frame_max);
        Opportunity {
            fits,
            most: match longest < frame_max {
                true => longest,
                false => usize::MAX,
            },
            fill: matches!(
                self.link.config().recovery,
                Recovery::Improved { fill: true }
            ),
            last: false,
            slot: Some(Slot {
                number: self.turn.index as u16,
                since: (since < Duration::from_micros(65_535)).then_some(since),
                length: self.turn.length,
                demand: self.site.demand(),
                marker: false,
            }),
            ..Opportunity::ALWAYS
        }
    }

    /// The last frame of a slot of 2P.
    fn marker(&mut self, now: Instant, chance: Opportunity, body: &mut [u8]) -> Option<usize> {
        let slot = chance.slot.map(|slot| Slot {
            marker: true,
            ..slot
        });
        self.link.note(now, slot, body)
    }

    /// Writes the headers before a frame of the link.
    fn wrap(&mut self, psdu: &mut [u8]) -> Option<()> {
        let header = Repr::Data(Data {
            receiver: self.peer,
            transmitter: self.me,
            bssid: Address::from_eui48(BSSID),
            sequence: self.sequence,
            qos: false,
            retry: false,
            duration: NavTime::ZERO,
        });
        self.sequence = self.sequence.next();
        let len = header.emit(psdu).ok()?;
        llc::emit(EtherType::EXPERIMENTAL, psdu.get_mut(len..)?).ok()?;
        Some(())
    }

    fn on_received(&mut self, now: Instant, started: Instant, psdu: &[u8]) {
        let Ok(frame) = Frame::new(psdu) else { return };
        let Ok(Repr::Data(data)) = Repr::parse(&frame) else {
            return;
        };
        if data.receiver != self.me || data.transmitter != self.peer {
            return;
        }
        let Ok((EtherType::EXPERIMENTAL, octets)) = llc::parse(frame.body()) else {
            return;
        };
        let Ok(heard) = self.link.handle(now, octets) else {
            return;
        };
        self.slots.heard += 1;
        if let Some(slot) = &heard.slot
            && let Some(since) = slot.since
        {
            self.site
                .hear(self.place, now, started.saturating_before(since), slot);
        }
        self.update_demand();
    }

    /// Sets the site's demand of this link: how long a slot it could fill.
    fn update_demand(&self) {
        let gap = self.site.config().mean_gap();
        let time = self.link.waiting_time(|frame| self.airtime(frame) + gap);
        self.site.set_demand(self.place, time);
    }
}

const SLOT_BEGINS: &str = "slot begins";
const FRAME_DUE: &str = "next frame of the slot";

impl RadioNode for Radio {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(reception) => {
                self.on_received(now, reception.started, reception.psdu)
            }
            RadioEvent::Sent => self.transmitting = false,
            RadioEvent::Carrier { .. } | RadioEvent::Failed(_) | RadioEvent::Head(_) => {}
        }
        self.done |= now >= self.end();
        self.join(now);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if self.done || self.transmitting || now >= self.end() {
            return None;
        }
        let transmit = self.next_frame(now, psdu)?;
        self.transmitting = true;
        Some(RadioRequest::Transmit(transmit))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.update_demand();
        if now >= self.end() {
            self.done = true;
        }
        if now >= self.site.next_start() || self.site.turn().index != self.turn.index {
            self.join(now);
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        if !self.done && !self.transmitting && self.turn.start > Instant::ZERO {
            let marker = self.markers() && !self.marked;
            let at = if marker { self.limit() } else { self.end() };
            let at = self.close_at.map_or(at, |close_at| close_at.min(at));
            return Some(Wake { at, why: FRAME_DUE });
        }
        Some(Wake {
            at: self.site.next_start(),
            why: SLOT_BEGINS,
        })
    }
}
