//! SYN cookies (RFC 4987 3.6): the answer to a SYN while all sockets are taken, without memory for the half-open connection.
//!
//! The scheme is D. J. Bernstein's: the SYN-ACK's sequence number holds a keyed hash and the few options that matter, and the
//! acknowledgement brings it back. `t` is a clock of 69 s:
//!
//! ```text
//! cookie = IRS + F(four-tuple) + (t << 24) + (G(four-tuple, t) + data) mod 2^24
//! data   = size of segments in eighths of ours (3 bits), SACK (1), ECN (1)
//! ```
//! A cookie is valid for 69 to 137 s. Of 2^32 acknowledgement numbers 64 are valid for a four-tuple and IRS: a blind
//! attacker needs 2^26 segments for a connection. IRS and `t` keep later numbers ahead of earlier ones, as RFC 9293 3.4.1 wants.
//!
//! Timestamps need no memory: a peer sends them after the handshake if and only if both agreed (RFC 7323 3.2). A window shift goes
//! into the low four bits of TSval, which comes back as TSecr; without timestamps windows are not scaled. What is lost:
//! segments are up to an eighth shorter, and the SYN-ACK is not retransmitted, except as an answer to a retransmitted SYN. If
//! the peer's last ACK of the handshake is lost, its first data opens the connection. A copy of that segment which the network delays
//! until the connection has ended and its socket serves another opens it again, while the cookie is valid.

use chappe_core::Instant;

use super::bits;
use super::congestion::Congestion;
use super::flow::{Endpoint, Flow};
use super::input::{Ecn, Verdict};
use super::isn::Secret;
use super::segment::{Flags, Options, SackBlocks, Segment, Timestamps};
use super::seq::Seq;
use super::socket::{MSS_MIN, Socket, default_mss};
use super::state::State;

const SACK: u32 = 1 << 3;
const ECN: u32 = 1 << 4;
/// How many values `data` can have; a larger one is no cookie of ours.
const DATA: u32 = 1 << 5;
/// The low octets of a cookie, below `t`.
const LOW: u32 = (1 << 24) - 1;
/// The window shift of a peer that offered none.
const NO_SHIFT: u32 = 15;
/// Milliseconds after which no cookie is valid: two ticks of 2^36 ns.
const LIFE: u32 = 137_439;

/// `t`: units of 2^36 ns, modulo 2^8.
fn tick(now: Instant) -> u8 {
    (now.nanos() >> 36) as u8
}

impl Secret {
    /// The cookie without `data` for the tick `t`: the part above it, and the part below 2^24 to which `data` is added.
    fn cookie(&self, flow: &Flow, irs: Seq, t: u8) -> (u32, u32) {
        let high = irs.bits().wrapping_add(self.hash(flow, 3, 0) as u32);
        let high = high.wrapping_add(u32::from(t) << 24);
        (high, self.hash(flow, 4, t) as u32)
    }

    fn bake(&self, now: Instant, flow: &Flow, irs: Seq, data: u32) -> Seq {
        let (high, low) = self.cookie(flow, irs, tick(now));
        Seq::new(high.wrapping_add(low.wrapping_add(data) & LOW))
    }

    /// The `data` of a cookie, if it was made for this peer within the last two ticks.
    fn taste(&self, now: Instant, flow: &Flow, irs: Seq, cookie: Seq) -> Option<u32> {
        let open = |t: u8| {
            let (high, low) = self.cookie(flow, irs, t);
            let rest = cookie.bits().wrapping_sub(high);
            let data = rest.wrapping_sub(low) & LOW;
            (rest <= LOW && data < DATA).then_some(data)
        };
        let t = tick(now);
        open(t).or_else(|| open(t.wrapping_sub(1)))
    }
}

impl<C: Congestion> Socket<'_, C> {
    /// Whether this is a connection of [`accept`](Self::accept) whose peer has not answered yet. It may give way to one whose
    /// peer has: the number is that of the SYN-ACK's timeouts, and the highest should go first.
    pub fn half_open(&self) -> Option<u8> {
        let half = self.state == State::SynReceived && self.bits.has(bits::PASSIVE);
        half.then_some(self.retries)
    }

    /// The SYN-ACK that answers a SYN without a socket for it: its sequence number is a cookie. This socket, in whatever
    /// state, lends its parameters.
    pub fn answer_by_cookie(
        &self,
        now: Instant,
        remote: Endpoint,
        syn: &Segment<'_>,
    ) -> Segment<'static> {
        let config = &self.local.config;
        let flow = Flow::new(
            Endpoint::new(self.local.address, syn.destination_port),
            remote,
        );
        let ours = u32::from(config.mss.max(MSS_MIN));
        let peer = u32::from(syn.options.mss.unwrap_or(default_mss(&remote)));
        let eighths = (peer.min(ours) * 8 / ours).saturating_sub(1);
        let sack = config.uses_sack() && syn.options.sack_permitted;
        let ecn = config.uses_ecn() && syn.flags.has(Flags::ECE | Flags::CWR);
        let data = eighths | if sack { SACK } else { 0 } | if ecn { ECN } else { 0 };
        let timestamps = syn.options.timestamps.filter(|_| config.uses_timestamps());
        let offer = syn.options.window_scale;
        let offer = offer.filter(|_| config.uses_window_scale() && timestamps.is_some());
        let shift = offer.map_or(NO_SHIFT, u32::from);
        let value = super::clock::timestamp_clock(now)
            .wrapping_add(self.local.secret.timestamp_offset(&flow));
        let value = match config.uses_window_scale() {
            // The last value of the clock with these low bits, so that the connection's later ones are newer.
            true => value.wrapping_sub(value.wrapping_sub(shift) & 15),
            false => value,
        };
        Segment {
            source_port: syn.destination_port,
            destination_port: syn.source_port,
            seq: self.local.secret.bake(now, &flow, syn.seq, data),
            ack: syn.seq + 1,
            flags: Flags::SYN | Flags::ACK | if ecn { Flags::ECE } else { Flags::NONE },
            window: self.receive.capacity().min(u32::from(u16::MAX)) as u16,
            urgent: 0,
            options: Options {
                mss: Some(config.mss),
                window_scale: offer.map(|_| self.scale_wanted()),
                sack_permitted: sack,
                timestamps: timestamps.map(|theirs| Timestamps {
                    value,
                    echo: theirs.value,
                }),
                sack: SackBlocks::default(),
            },
            payload: &[],
        }
    }

    /// Opens the connection of a segment that acknowledges a cookie, and processes the segment. Whatever this socket was
    /// doing ends without a word: choose one in CLOSED or TIME-WAIT, or a [`half_open`](Self::half_open) one. False, and
    /// nothing changes, if the segment holds no valid cookie.
    pub fn accept_cookie(
        &mut self,
        now: Instant,
        remote: Endpoint,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> bool {
        self.timers.turn(now);
        let local = self.local;
        let flow = Flow::new(
            Endpoint::new(local.address, segment.destination_port),
            remote,
        );
        let (irs, iss) = (segment.seq.back(1), segment.ack.back(1));
        let flags = segment.flags;
        if !flags.has(Flags::ACK) || flags.has(Flags::SYN) || flags.has(Flags::RST) {
            return false;
        }
        let Some(data) = local.secret.taste(now, &flow, irs, iss) else {
            return false;
        };
        let syn = self.syn_of(segment, irs, data);
        self.end(None);
        if self
            .begin(segment.destination_port, remote, Some(iss))
            .is_err()
        {
            return false;
        }
        self.state = State::SynReceived;
        self.synchronise(&syn);
        self.rcv_adv = self.rcv_nxt + self.receive.capacity().min(u32::from(u16::MAX));
        self.date_cookie(segment);
        self.handle_segment(now, segment, ecn) == Verdict::Done
    }

    /// The SYN that the peer must have sent.
    fn syn_of(&self, segment: &Segment<'_>, irs: Seq, data: u32) -> Segment<'static> {
        let config = &self.local.config;
        let ours = u32::from(config.mss.max(MSS_MIN));
        let mss = match data & 7 {
            0 => u32::from(MSS_MIN),
            eighths => ours * (eighths + 1) / 8,
        };
        let timestamps = segment.options.timestamps;
        let shift = timestamps.map_or(NO_SHIFT, |stamps| stamps.echo & 15);
        let both = Flags::ECE | Flags::CWR;
        Segment {
            seq: irs,
            flags: Flags::SYN | if data & ECN != 0 { both } else { Flags::NONE },
            options: Options {
                mss: Some(mss as u16),
                // Ignored unless the configuration has window scaling.
                window_scale: (shift != NO_SHIFT).then_some(shift as u8),
                sack_permitted: data & SACK != 0,
                timestamps,
                sack: SackBlocks::default(),
            },
            payload: &[],
            ..*segment
        }
    }

    /// When the SYN-ACK was sent, by the timestamp that comes back: the first round-trip sample. Without one, none is taken
    /// (Karn's rule: as if it had been sent twice).
    fn date_cookie(&mut self, segment: &Segment<'_>) {
        let echo = segment.options.timestamps.map(|stamps| stamps.echo);
        let age = echo.map(|echo| self.timestamp().wrapping_sub(echo));
        let una = self.flight.una();
        match age.filter(|&age| self.bits.has(bits::TIMESTAMPS) && age < LIFE) {
            Some(age) => {
                let age = chappe_core::Duration::from_millis(u64::from(age));
                let sent = Instant::from_nanos(self.now().nanos().saturating_sub(age.nanos()));
                self.flight.restart(una);
                self.flight.push(una + 1, super::clock::Stamp::of(sent));
            }
            None => self.flight.retransmitted(una, self.stamp()),
        }
    }
}
