//! What a packet meets on the way between two hosts: time on a channel, frames that are lost, repetitions, and delay.

use chappe_core::{Bitrate, Duration, Purpose, Seed, Stream};

/// A path between two hosts: one link, or several hops on one channel.
///
/// A packet is cut into as many frames as it needs, and crosses one hop after the other. The channel carries one frame at a
/// time. Senders take turns and do not collide: [`Emulator`](crate::Emulator) has radios that do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Bits per second of a frame's octets.
    pub rate: Bitrate,
    /// Time on the air before a frame's first octet: preamble and header of the physical layer.
    pub preamble: Duration,
    /// Mean time between two frames that no sender may use: gaps and back-off.
    pub contention: Duration,
    /// Octets of a frame beside its share of a packet, check sequence included.
    pub header: usize,
    /// The most octets of a packet in one frame.
    pub share: usize,
    /// Whether frames are confirmed and repeated.
    pub confirm: Option<Confirm>,
    /// Hops that share the channel, at least one.
    pub hops: u8,
    /// Time from the end of sending to the arrival, in each direction.
    pub delay: Duration,
    /// Whether each direction has a channel of its own.
    pub duplex: bool,
    /// Share of frames lost on each hop, 0 to 1.
    pub loss: f64,
    /// Mean number of frames lost in a row; 0 for independent losses.
    pub burst: f64,
    /// The largest IP packet in octets.
    pub mtu: usize,
    /// Packets that may wait in each direction; further ones are dropped.
    pub queue: usize,
}

/// Acknowledgement and repetition of every frame, by the radios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// Time from the end of a frame to the end of its acknowledgement, with the round trip.
    pub takes: Duration,
    /// Repetitions of a frame before its packet is given up.
    pub retries: u8,
    /// One slot of the back-off.
    pub slot: Duration,
    /// The first back-off window in slots, which doubles with each repetition up to 1023; 0 if it does not grow.
    pub window: u16,
}

/// The largest back-off window of 802.11 (IEEE 802.11-2020, 16.3.3).
const WINDOW_MAX: u64 = 1023;

impl Confirm {
    /// How much longer than usual the back-off before repetition number `attempt` is, on average. The first frame is number 0.
    fn growth(&self, attempt: u8) -> Duration {
        let first = u64::from(self.window);
        let window = ((first + 1) << attempt.min(10)).saturating_sub(1);
        let more = window.min(WINDOW_MAX.max(first)) - first;
        Duration::from_nanos(self.slot.nanos() * more / 2)
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// How long it occupied the channel.
    pub takes: Duration,
    /// Frames that it took, repetitions included, acknowledgements not.
    pub frames: u32,
    /// How many of them were lost.
    pub lost: u32,
    /// Whether all of the packet arrived.
    pub arrives: bool,
}

impl Path {
    /// The path without acknowledgements and repetitions by the radios.
    pub fn unconfirmed(self) -> Path {
        Path {
            confirm: None,
            ..self
        }
    }

    /// The most that any protocol can deliver, in bit/s of IP packets, both directions together if they share the channel: full
    /// packets in frames back to back, each lost with its probability and sent again at once, without acknowledgements.
    pub fn bound_bps(&self) -> f64 {
        let packet = self.parts(self.mtu).map(|share| self.on_air(share));
        let once: f64 = packet.map(|time| time.as_secs_f64()).sum();
        let hops = f64::from(self.hops.max(1));
        (self.mtu * 8) as f64 * (1.0 - self.loss) / (once * hops)
    }

    /// The share of frames' octets that a packet of `octets` has in each of its frames.
    fn parts(&self, octets: usize) -> impl Iterator<Item = usize> {
        let most = self.share.max(1);
        let full = octets / most;
        let rest = octets % most;
        std::iter::repeat_n(most, full).chain((rest > 0).then_some(rest))
    }

    fn on_air(&self, share: usize) -> Duration {
        self.preamble + self.rate.time_of(((share + self.header) * 8) as u64)
    }

    /// Lets a packet cross. `fates` are those of its direction.
    pub fn cross(&self, octets: usize, fates: &mut Fates) -> Crossing {
        let mut crossing = Crossing::default();
        for _ in 0..self.hops.max(1) {
            for share in self.parts(octets) {
                if !self.hop(share, fates, &mut crossing) {
                    return crossing;
                }
            }
        }
        crossing.arrives = true;
        crossing
    }

    /// One frame over one hop, with its repetitions. True if it arrived.
    fn hop(&self, share: usize, fates: &mut Fates, crossing: &mut Crossing) -> bool {
        let tries = self.confirm.map_or(1, |confirm| 1 + confirm.retries);
        let mut arrived = false;
        for attempt in 0..tries {
            let lost = fates.frame_is_lost();
            crossing.frames += 1;
            crossing.lost += u32::from(lost);
            crossing.takes += self.contention + self.on_air(share);
            arrived |= !lost;
            let Some(confirm) = self.confirm else {
                break;
            };
            // Without an acknowledgement the sender waits for as long as one would take.
            crossing.takes += confirm.takes + confirm.growth(attempt);
            if !lost && !fates.confirmation_is_lost() {
                break;
            }
        }
        arrived
    }
}

/// Which frames of one direction are lost. The n-th frame has the same fate in every run of a seed, whatever it carries.
#[derive(Clone, Debug)]
pub struct Fates {
    frames: Chain,
    confirmations: Chain,
}

/// Losses one after the other: two states, of which one loses every frame (Gilbert 1960).
#[derive(Clone, Debug)]
struct Chain {
    random: Stream,
    loss: f64,
    burst: f64,
    bad: bool,
}

impl Fates {
    /// The fates of a direction, 0 or 1, of `path` under `seed`.
    pub fn new(path: &Path, seed: Seed, direction: u32) -> Fates {
        let chain = |purpose: u32| Chain {
            random: seed.stream(Purpose::Trial(2 * direction + purpose)),
            loss: path.loss,
            burst: path.burst,
            bad: false,
        };
        Fates {
            frames: chain(0),
            confirmations: chain(1),
        }
    }

    fn frame_is_lost(&mut self) -> bool {
        self.frames.next()
    }

    fn confirmation_is_lost(&mut self) -> bool {
        self.confirmations.next()
    }
}

impl Chain {
    fn next(&mut self) -> bool {
        // A burst of mean length b ends with 1/b. The other way keeps the share of bad frames at the loss.
        let chance = match self.burst > 1.0 {
            false => self.loss,
            true if self.bad => 1.0 - 1.0 / self.burst,
            true => (self.loss / (self.burst * (1.0 - self.loss))).min(1.0),
        };
        self.bad = self.random.chance(chance);
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mbit/s, frames of 100 octets of which 10 are header, no preamble.
    fn plain() -> Path {
        Path {
            rate: Bitrate(1_000_000),
            preamble: Duration::ZERO,
            contention: Duration::ZERO,
            header: 10,
            share: 90,
            confirm: None,
            hops: 1,
            delay: Duration::ZERO,
            duplex: false,
            loss: 0.0,
            burst: 0.0,
            mtu: 900,
            queue: 10,
        }
    }

    fn crossed(path: &Path, packets: usize) -> (Duration, f64, f64) {
        let mut fates = Fates::new(path, Seed(7), 0);
        let (mut takes, mut arrived, mut frames, mut lost) = (Duration::ZERO, 0u32, 0u32, 0u32);
        for _ in 0..packets {
            let one = path.cross(path.mtu, &mut fates);
            takes += one.takes;
            arrived += u32::from(one.arrives);
            (frames, lost) = (frames + one.frames, lost + one.lost);
        }
        let share = f64::from(arrived) / packets as f64;
        (takes, share, f64::from(lost) / f64::from(frames))
    }

    /// 900 octets are ten frames of 100: 8 ms; 905 are one more frame of 15 octets.
    #[test]
    fn a_packet_takes_the_time_of_its_frames() {
        let path = plain();
        let mut fates = Fates::new(&path, Seed(1), 0);
        let takes = |octets, fates: &mut Fates| path.cross(octets, fates).takes;
        assert_eq!(takes(900, &mut fates), Duration::from_micros(8_000));
        assert_eq!(takes(905, &mut fates), Duration::from_micros(8_120));
        let hops = Path { hops: 3, ..path };
        assert_eq!(hops.cross(900, &mut fates).frames, 30);
        assert_eq!(
            hops.cross(900, &mut fates).takes,
            Duration::from_micros(24_000)
        );
        assert!((path.bound_bps() - 900_000.0).abs() < 1.0);
        assert!((hops.bound_bps() - 300_000.0).abs() < 1.0);
    }

    /// Ten frames of which each is lost with a tenth: 0.9^10 = 34.9 % of the packets arrive. In bursts of five more do, since
    /// losses share packets: a frame after a good one is good with g = 1 - 0.1 / (5 * 0.9), so a packet arrives with g^10 after one
    /// that did, and with g^9 / 5 after one that did not: 44.8 % in the long run.
    #[test]
    fn a_packet_is_lost_with_any_of_its_frames() {
        let path = Path {
            loss: 0.1,
            ..plain()
        };
        let (_, arrived, lost) = crossed(&path, 20_000);
        assert!((arrived - 0.349).abs() < 0.01 && (lost - 0.1).abs() < 0.005);
        let bursts = Path { burst: 5.0, ..path };
        let (_, more, lost) = crossed(&bursts, 20_000);
        assert!((more - 0.448).abs() < 0.02, "{more}");
        assert!((lost - 0.1).abs() < 0.01, "{lost}");
    }

    /// With three repetitions a frame fails with 0.2^4. A lost confirmation repeats a frame that has arrived: a try succeeds with
    /// 0.8^2, and the mean number of tries is (1 - 0.36^4) / 0.64 = 1.536.
    #[test]
    fn confirmed_frames_are_repeated() {
        let confirm = Confirm {
            takes: Duration::from_micros(100),
            retries: 3,
            slot: Duration::ZERO,
            window: 0,
        };
        let path = Path {
            loss: 0.2,
            confirm: Some(confirm),
            mtu: 90,
            ..plain()
        };
        let (takes, arrived, _) = crossed(&path, 50_000);
        assert!((arrived - (1.0 - 0.0016)).abs() < 0.001, "{arrived}");
        let each = takes.as_secs_f64() / 50_000.0 / 900e-6;
        assert!((each / 1.536 - 1.0).abs() < 0.01, "{each}");
        let (quick, _, _) = crossed(&path.unconfirmed(), 50_000);
        assert_eq!(quick, Duration::from_micros(800 * 50_000));
    }

    /// 802.11's window of 31 slots has 63 before the second try and 1023 at most.
    #[test]
    fn the_back_off_doubles() {
        let confirm = Confirm {
            takes: Duration::ZERO,
            retries: 7,
            slot: Duration::from_micros(20),
            window: 31,
        };
        assert_eq!(confirm.growth(0), Duration::ZERO);
        assert_eq!(confirm.growth(1), Duration::from_micros(320));
        assert_eq!(confirm.growth(7), Duration::from_micros(9_920));
        assert_eq!(
            Confirm {
                window: 0,
                ..confirm
            }
            .growth(0),
            Duration::ZERO
        );
    }

    /// What a direction draws depends on nothing but the seed, the direction and the frame's number.
    #[test]
    fn the_same_seed_loses_the_same_frames() {
        let path = Path {
            loss: 0.3,
            burst: 3.0,
            ..plain()
        };
        let draw = |seed, direction| {
            let mut fates = Fates::new(&path, Seed(seed), direction);
            (0..200).map(|_| fates.frame_is_lost()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }
}
