//! The state of the medium: physical carrier, virtual carrier (NAV) and EIFS.

use chappe_core::{Duration, Instant};

/// Physical and virtual carrier sense (IEEE 802.11-2020, 10.3.2.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    carrier: Carrier,
    /// End of the longest reservation heard.
    nav_end: Instant,
    /// Set if an RTS made that reservation (10.3.2.4 allows to drop it when no data follows).
    nav_of_rts: Option<RtsNav>,
    /// End of the wait after an undecodable frame.
    eifs_end: Instant,
    /// An undecodable frame ended and the medium stayed busy: EIFS starts when the medium becomes idle.
    eifs_waits: bool,
}

/// The carrier as the radio last reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Unknown,
    Busy,
    Idle { since: Instant },
}

#[derive(Clone, Copy, Debug)]
struct RtsNav {
    /// When the RTS ended that set the reservation.
    heard: Instant,
    /// The reservation ends here if the medium stays idle from `heard` on.
    void: Instant,
}

impl Medium {
    pub fn new() -> Medium {
        Medium {
            carrier: Carrier::Unknown,
            nav_end: Instant::ZERO,
            nav_of_rts: None,
            eifs_end: Instant::ZERO,
            eifs_waits: false,
        }
    }

    /// The radio reports the carrier. `eifs` is the configured wait.
    #[inline]
    pub fn on_carrier(&mut self, busy: bool, since: Instant, eifs: Duration) {
        if busy {
            // `eifs_end - eifs` is when the undecodable frame ended. If this busy period began earlier and still lasts, the
            // frame's end was not the end of the energy. (Sensing was off at that time.)
            self.eifs_waits |=
                self.eifs_end > since && self.eifs_end.saturating_since(since) > eifs;
            self.carrier = Carrier::Busy;
        } else {
            if self.eifs_waits {
                self.eifs_end = since + eifs;
                self.eifs_waits = false;
            }
            self.carrier = Carrier::Idle { since };
        }
    }

    /// Sensing is turned on or off: earlier reports no longer hold.
    pub fn forget_carrier(&mut self) {
        self.carrier = Carrier::Unknown;
    }

    /// A frame ended without a good check sequence: EIFS counts from when the medium becomes idle (10.3.2.3.7).
    pub fn on_undecodable(&mut self, now: Instant, eifs: Duration) {
        self.eifs_end = now + eifs;
        self.eifs_waits = self.carrier == Carrier::Busy;
    }

    /// A good frame resynchronises the station and ends EIFS (10.3.2.3.7). True if EIFS was running.
    #[inline]
    pub fn on_good_frame(&mut self, now: Instant) -> bool {
        let changed = self.eifs_waits || self.eifs_end > now;
        self.eifs_end = Instant::ZERO;
        self.eifs_waits = false;
        changed
    }

    /// An overheard frame, which ends now, reserves the medium for `span` (10.3.2.4). `void` is the silence after an RTS
    /// that cancels its reservation; `None` for other frames. True if the reservation grew.
    #[inline]
    pub fn reserve(&mut self, now: Instant, span: Duration, void: Option<Duration>) -> bool {
        // 10.3.2.4: the NAV is updated only if the new value is greater than the present one.
        let end = now + span;
        if end <= self.nav_end {
            return false;
        }
        self.nav_end = end;
        self.nav_of_rts = void.map(|void| RtsNav {
            heard: now,
            void: now + void,
        });
        true
    }

    /// The end of the reservation, shortened if an RTS made it and the medium has been idle since.
    #[inline]
    fn nav_end(&self) -> Instant {
        match (self.carrier, self.nav_of_rts) {
            // Idle since before the RTS ended: neither CTS nor data followed.
            (Carrier::Idle { since }, Some(rts)) if since <= rts.heard => {
                self.nav_end.min(rts.void)
            }
            _ => self.nav_end,
        }
    }

    /// Whether the virtual carrier is busy.
    #[inline]
    pub fn is_reserved(&self, now: Instant) -> bool {
        self.nav_end() > now
    }

    /// Whether the physical carrier is known to be busy.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.carrier == Carrier::Busy
    }

    /// Whether the physical carrier is known to have been idle since `at` or an earlier moment.
    pub fn is_idle_since(&self, at: Instant) -> bool {
        matches!(self.carrier, Carrier::Idle { since } if since <= at)
    }

    /// Whether the radio has reported nothing since sensing was turned on.
    #[inline]
    pub fn is_unknown(&self) -> bool {
        self.carrier == Carrier::Unknown
    }

    /// When the first back-off slot begins if nothing more happens: DIFS after physical and virtual carrier became
    /// idle, and not before the end of EIFS. `None` while the medium is busy or unknown.
    #[inline]
    pub fn slots_from(&self, difs: Duration) -> Option<Instant> {
        match self.carrier {
            // EIFS contains a DIFS already (10.3.7), so the later of the two counts, not their sum.
            Carrier::Idle { since } => Some((since.max(self.nav_end()) + difs).max(self.eifs_end)),
            Carrier::Busy | Carrier::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFS: Duration = Duration::from_micros(50);
    const EIFS: Duration = Duration::from_micros(364);

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn slots_begin_a_difs_after_both_carriers() {
        let mut medium = Medium::new();
        assert_eq!(medium.slots_from(DIFS), None);
        medium.on_carrier(false, us(1000), EIFS);
        assert_eq!(medium.slots_from(DIFS), Some(us(1050)));
        assert!(medium.reserve(us(1000), Duration::from_micros(314), None));
        assert!(!medium.reserve(us(1000), Duration::from_micros(313), None));
        assert_eq!(medium.slots_from(DIFS), Some(us(1364)));
    }

    #[test]
    fn eifs_starts_when_the_medium_becomes_idle() {
        // The receiver followed a frame that ended at 1000; another one lasted until 1200.
        let mut medium = Medium::new();
        medium.on_carrier(true, us(500), EIFS);
        medium.on_undecodable(us(1000), EIFS);
        medium.on_carrier(false, us(1200), EIFS);
        assert_eq!(medium.slots_from(DIFS), Some(us(1564)));
        // The same, but sensing was turned on only at 1100.
        let mut medium = Medium::new();
        medium.on_undecodable(us(1000), EIFS);
        medium.on_carrier(true, us(500), EIFS);
        medium.on_carrier(false, us(1200), EIFS);
        assert_eq!(medium.slots_from(DIFS), Some(us(1564)));
    }

    #[test]
    fn later_energy_does_not_restart_eifs_and_a_good_frame_ends_it() {
        let mut medium = Medium::new();
        medium.on_undecodable(us(1000), EIFS);
        medium.on_carrier(true, us(1010), EIFS);
        medium.on_carrier(false, us(1020), EIFS);
        assert_eq!(medium.slots_from(DIFS), Some(us(1364)));
        assert!(medium.on_good_frame(us(1100)));
        assert_eq!(medium.slots_from(DIFS), Some(us(1070)));
    }

    #[test]
    fn silence_voids_the_reservation_of_an_rts() {
        let void = Some(Duration::from_micros(556));
        let mut medium = Medium::new();
        medium.on_carrier(false, us(1000), EIFS);
        medium.reserve(us(1000), Duration::from_micros(2000), void);
        assert_eq!(medium.slots_from(DIFS), Some(us(1606)));
        // A CTS or data frame is heard: the reservation stands.
        medium.on_carrier(true, us(1010), EIFS);
        medium.on_carrier(false, us(1314), EIFS);
        assert_eq!(medium.slots_from(DIFS), Some(us(3050)));
    }
}
