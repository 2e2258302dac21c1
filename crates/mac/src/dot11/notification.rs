//! Notification of contention: a broadcast that the MAC itself sends, and that travels two hops.

use chappe_core::{Address, DropReason, Duration, Instant, LinkNode, Mac, Transmit};
use chappe_wire::dot11::{Data, NavTime, Repr};
use chappe_wire::llc::{self, EtherType};

use super::notice::Notice;
use super::send::OnAir;
use super::{Claiming, Dot11, State};
use crate::zmac::Protects;

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// `failures` attempts towards `via` have failed: the rival is probably hidden from here, so `via` must notify.
    pub(super) fn note_failure(&mut self, now: Instant, via: Address, failures: u8) {
        let Some(claims) = self.claims.get_mut() else {
            return;
        };
        let Some(ecn) = claims.config.ecn else {
            return;
        };
        // The notification meets the same rival as the frames did. Whether it was heard shows when its receiver passes it on.
        let unheard = ecn.protects == Protects::Sufferer && claims.unheard;
        if unheard {
            claims.notify_from = claims.notify_from.min(now);
        }
        if unheard || failures >= ecn.failures {
            self.notify(now, 0, via);
        }
    }

    /// A frame ended that this station heard or sent.
    #[inline]
    pub(super) fn note_end(&mut self, now: Instant) {
        if let Some(claims) = self.claims.get_mut() {
            claims.heard = now;
        }
    }

    /// A frame was acknowledged: its sender suffers no longer, whoever has heard of it.
    #[inline]
    pub(super) fn note_success(&mut self) {
        if let Some(claims) = self.claims.get_mut() {
            claims.unheard = false;
        }
    }

    /// Counts an undecodable frame. Many of them mean that this station's neighbours do not hear each other.
    pub(super) fn note_undecodable(&mut self, now: Instant) {
        let Some(claims) = self.claims.get_mut() else {
            return;
        };
        claims.undecodable = claims.undecodable.saturating_add(1);
        // The time slots of a station that hears senders collide help neither of them.
        let ecn = claims.config.ecn;
        let ecn = ecn.filter(|ecn| ecn.protects == Protects::TwoHops);
        if ecn.is_some_and(|ecn| claims.undecodable >= ecn.undecodable) {
            self.notify(now, 1, self.address);
        }
    }

    /// A frame is about to leave. If it has waited long, the neighbours leave this station no gaps.
    pub(super) fn note_wait(&mut self, now: Instant) {
        let Some(claims) = self.claims.get_mut() else {
            return;
        };
        let since = claims.waiting_since.take();
        let waited = since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        if claims.config.ecn.is_some_and(|ecn| waited >= ecn.wait) {
            self.notify(now, 1, self.address);
        }
    }

    fn notify(&mut self, now: Instant, hops: u8, via: Address) {
        let origin = self.address;
        let (Some(claims), Some(_)) = (self.claims.get_mut(), self.config.llc) else {
            return;
        };
        let Some(ecn) = claims.config.ecn else {
            return;
        };
        let slot = match ecn.protects {
            Protects::TwoHops => None,
            Protects::Sufferer => claims.schedule.own,
        };
        if ecn.protects == Protects::Sufferer && slot.is_none() {
            return;
        }
        if now >= claims.notify_from && claims.notice.is_none() {
            claims.notify_from = now + ecn.again;
            claims.undecodable = 0;
            claims.unheard |= hops == 0;
            claims.notice = Some(Notice {
                hops,
                origin,
                via,
                slot,
            });
        }
    }

    /// The notification to send, if there is one; it goes before frames of the link node.
    pub(super) fn send_notice(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        let notice = self.claims.get_mut()?.notice.take()?;
        let header = Repr::Data(Data {
            receiver: Address::BROADCAST,
            transmitter: self.address,
            bssid: self.config.bssid,
            sequence: self.next_sequence(),
            qos: false,
            retry: false,
            duration: NavTime::ZERO,
        });
        let at = header.emit(psdu).ok()?;
        let body = psdu.get_mut(at..)?;
        let head = llc::emit(EtherType::EXPERIMENTAL_2, body).ok()?;
        let len = at + head + notice.emit(body.get_mut(head..)?)?;
        self.seize(now);
        self.state = State::Sending(OnAir::Notice);
        self.counters.notices_sent += 1;
        self.note_sent(Address::BROADCAST, len);
        Some(Transmit {
            at: now,
            len,
            mode: self.config.broadcast.unwrap_or(self.config.data),
            power: None,
        })
    }

    /// Handles a notification. The receiver it names passes it on; nodes that get it from there stop using time
    /// slots that nodes two hops away own.
    pub(super) fn on_notice<L: LinkNode>(&mut self, now: Instant, body: &[u8], link: &mut L) {
        let Some(notice) = Notice::parse(body) else {
            self.counters.drops.count(DropReason::Malformed);
            return;
        };
        let own = self.address;
        let Some(claims) = self.claims.get_mut() else {
            return;
        };
        let Some(ecn) = claims.config.ecn else {
            return;
        };
        let everyone = ecn.protects == Protects::TwoHops;
        if notice.hops == 1 && notice.origin == own {
            claims.unheard = false;
        }
        // One notification is enough for a neighbourhood, if it protects all.
        if notice.hops == 1 && everyone {
            claims.notify_from = claims.notify_from.max(now + ecn.again);
        }
        match (notice.hops, notice.slot) {
            (0, _) if notice.via == own => claims.notice = Some(Notice { hops: 1, ..notice }),
            (1, _) if everyone && notice.origin != own => {
                claims.shy_until = claims.shy_until.max(now + ecn.lasts);
                self.reconsider(now);
            }
            // A sufferer that asks for gaps itself, after a long wait, asks those who hear it.
            (1, Some(_))
                if !ecn.heard_too
                    && notice.via != notice.origin
                    && claims.near.hears(notice.origin, now, ecn.lasts) => {}
            (1, Some(slot)) if !everyone && notice.origin != own => {
                claims.reserved.keep(slot, now, now + ecn.lasts);
                claims.shy_until = claims.shy_until.max(now + ecn.lasts);
                self.reconsider(now);
            }
            _ => {}
        }
        // A notice to pass on counts as a waiting frame, so the contention must be reconsidered now.
        self.link_changed(now, link);
    }
}
