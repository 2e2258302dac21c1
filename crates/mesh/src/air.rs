//! What a frame costs on the channel, and when the next one may follow.
//!
//! A socket takes frames long before they are on the air. Frames that wait in the card are not where queues and prices can
//! see them. So a frame leaves when the one before has left the card, as far as that can be known: its own time on the channel
//! has passed, and so has that of the frames that were heard meanwhile, because the card waited for them.

use chappe_core::{Bitrate, Duration, Instant};

use crate::frame::{BURST_MAX, BURST_WIRED, Burst};

/// The timing of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Air {
    /// The rate of data on the medium.
    pub rate: Bitrate,
    /// What a frame takes beside its octets: preamble, spaces, back-off.
    pub around: Duration,
    /// The part of `around` that passes before the frame is on the air: space and back-off.
    pub wait: Duration,
    /// Octets that the layers below add to a frame.
    pub below: usize,
}

/// Octets around an SDU of `chappe-live`: its header and tag.
const SEALED: usize = chappe_live::HEADER + chappe_live::TAG;

impl Air {
    /// 802.11b without acknowledgements: long preamble 192 us, DIFS 50 us, mean back-off 15.5 slots of 20 us; 24 octets of MAC
    /// header, 8 of LLC and SNAP, 4 of check sequence (IEEE 802.11-2020, 9.3.2, 16.2 and table 16-4).
    pub fn dot11b(rate: Bitrate) -> Air {
        Air {
            rate,
            around: Duration::from_micros(192 + 50 + 310),
            wait: Duration::from_micros(50 + 310),
            below: 36,
        }
    }

    /// Ethernet or another medium of this node alone: 18 octets of header and check sequence, 20 of preamble and gap.
    pub fn wired(rate: Bitrate) -> Air {
        Air {
            rate,
            around: Duration::ZERO,
            wait: Duration::ZERO,
            below: 38,
        }
    }

    /// The time that a frame with an SDU of `octets` takes from the channel.
    pub fn exchange(&self, octets: usize) -> Duration {
        self.around + self.rate.time_of((octets + SEALED + self.below) as u64 * 8)
    }

    /// Whether others send on this channel.
    pub fn is_shared(&self) -> bool {
        self.wait > Duration::ZERO
    }

    /// Most frames of a burst.
    pub fn burst_max(&self) -> u8 {
        match self.is_shared() {
            true => BURST_MAX,
            false => BURST_WIRED,
        }
    }

    /// What an octet takes.
    pub fn octet(&self) -> Duration {
        self.rate.time_of(8)
    }
}

/// The gate through which frames leave.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    air: Air,
    open_at: Instant,
    /// Until when data waits for others that go on with a packet.
    held_until: Instant,
}

/// Octets of a frame that acknowledges, with a TCP segment that does.
const ANSWER: usize = 120;

/// How far behind the gate may make up for a late wake-up: two or three slices of the kernel's scheduler (EEVDF: 3 ms each).
const BURST: Duration = Duration::from_millis(8);

impl Gate {
    /// A gate that is open.
    pub fn new(air: Air) -> Gate {
        Gate {
            air,
            open_at: Instant::ZERO,
            held_until: Instant::ZERO,
        }
    }

    /// When the next frame with a packet may leave.
    pub fn data_at(&self) -> Instant {
        self.open_at.max(self.held_until)
    }

    /// A packet in a frame of `octets` was overheard on its way to a neighbour: its sender goes on with its burst, the neighbour
    /// forwards what goes on from there and repeats one that is lost, and then the node at the end answers with two short
    /// frames. Nodes further on do not hear this one and could not wait for it. `spread` is added, so that not all begin at once.
    pub fn follow(&mut self, now: Instant, octets: usize, burst: Burst, spread: Duration) {
        let most = self.air.burst_max();
        let (rest, onward) = (burst.rest.min(most), burst.onward.min(most));
        let onward = u64::from(onward) + u64::from(onward > 0);
        let frames = self.air.exchange(octets) * (u64::from(rest) + onward);
        self.hold(now + frames + self.air.exchange(ANSWER) * 2 + spread);
    }

    /// Whether others send on this channel.
    pub fn is_shared(&self) -> bool {
        self.air.is_shared()
    }

    /// Data waits until then.
    pub fn hold(&mut self, until: Instant) {
        if self.is_shared() {
            self.held_until = self.held_until.max(until);
        }
    }

    /// When the next frame may leave.
    pub fn open_at(&self) -> Instant {
        self.open_at
    }

    /// A frame with an SDU of `octets` was handed down.
    pub fn sent(&mut self, now: Instant, octets: usize) {
        let takes = self.air.exchange(octets);
        let floor = match self.is_shared() {
            // A card that shares the channel cannot make up for lost time.
            true => now,
            false => now.saturating_before(BURST),
        };
        self.open_at = self.open_at.max(floor) + takes;
    }

    /// When a frame with an SDU of `octets` began that has just been received.
    pub fn began(&self, now: Instant, octets: usize) -> Instant {
        now.saturating_before(self.air.exchange(octets).saturating_sub(self.air.wait))
    }

    /// A neighbour's frame with an SDU of `octets` was received. The own frames that were still in the card waited for it.
    pub fn heard(&mut self, now: Instant, octets: usize) {
        if self.is_shared() && self.began(now, octets) < self.open_at {
            self.open_at += self.air.exchange(octets).saturating_sub(self.air.wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Bitrate = Bitrate(11_000_000);

    /// A full frame of 802.11b at 11 Mbit/s takes 2.2 ms of a channel.
    #[test]
    fn a_frame_takes_its_octets_and_what_is_around_them() {
        let takes = Air::dot11b(RATE).exchange(2242);
        assert!((2.2e-3..2.26e-3).contains(&takes.as_secs_f64()), "{takes}");
        assert_eq!(
            Air::wired(Bitrate(8_000_000)).exchange(1000),
            Duration::from_micros(1068)
        );
    }

    #[test]
    fn a_frame_that_was_heard_holds_the_own_ones_in_the_card() {
        let air = Air::dot11b(RATE);
        let mut gate = Gate::new(air);
        let at = Instant::from_millis;
        gate.sent(at(100), 1000);
        gate.sent(at(100), 1000);
        let free = gate.open_at();
        assert_eq!(free, at(100) + air.exchange(1000) * 2);
        // The card waited for as long as it was on the air.
        let soon = at(100) + Duration::from_micros(1200);
        gate.heard(soon, 1000);
        assert_eq!(
            gate.open_at(),
            free + air.exchange(1000).saturating_sub(air.wait)
        );
        // One that began after the own frames changes nothing.
        let free = gate.open_at();
        gate.heard(free + Duration::from_millis(3), 1000);
        assert_eq!(gate.open_at(), free);
    }

    /// No node can hold others for longer than a burst takes, with what follows.
    #[test]
    fn a_burst_holds_others_until_it_has_passed() {
        let air = Air::dot11b(RATE);
        let (now, full) = (Instant::from_millis(7), air.exchange(2000));
        let holds = |rest, onward| {
            let mut gate = Gate::new(air);
            let number = 0;
            gate.follow(
                now,
                2000,
                Burst {
                    number,
                    rest,
                    onward,
                },
                Duration::ZERO,
            );
            gate.data_at().saturating_since(now)
        };
        let answers = air.exchange(ANSWER) * 2;
        assert_eq!(holds(0, 0), answers);
        assert_eq!(holds(3, 0), full * 3 + answers);
        assert_eq!(holds(1, 2), full * 4 + answers);
        assert_eq!(holds(15, 15), holds(4, 4));
        let mut wired = Gate::new(Air::wired(RATE));
        wired.follow(now, 2000, Burst::default(), Duration::ZERO);
        assert_eq!(wired.data_at(), Instant::ZERO);
    }
}
