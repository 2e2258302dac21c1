//! The conformance test that every node of every crate passes.
//!
//! Goal: a node keeps the rules that its driver relies on, whatever the radio delivers. Method: a seeded script of
//! plausible and hostile inputs is played to fresh copies of the node, and the checks below are made at every step.
//! Inputs are random bytes, the node's own frames (whole, truncated, with flipped bits), a busy and an idle channel,
//! heads of frames that never end, and deadlines on time and late. A violation panics with the seed, the step and the
//! broken rule, so that it can be repeated.
//!
//! - Calling `handle_timeout` before the deadline changes nothing.
//! - A drained node has no deadline in the past, and none at `now` once that deadline has been handled.
//! - Draining ends.
//! - Two copies of the node under one script do the same.
//! - No input makes the node panic.
//!
//! The [crate's page](crate) shows a whole node and its check.

use crate::{
    Address, Arrival, Classes, Dbm, Duration, Failure, Head, HostNode, Instant, LinkEvent,
    LinkNode, Mode, Outcome, Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Reception, Seed,
    Stream, TraceEvent, Wake,
};

/// Largest frame in the scripts, in octets.
const FRAME_MAX: usize = 2304;
/// Number of inputs in a script.
const STEPS: u32 = 400;
/// A drain that has not ended after this many outputs is taken to be endless.
const DRAIN_MAX: u32 = 10_000;

/// Checks a node that owns its radio, under `seeds` scripts. `make` builds a fresh node for a seed.
///
/// # Panics
///
/// If the node breaks the contract.
pub fn check_radio<N: RadioNode>(seeds: u64, mut make: impl FnMut(u64) -> N) {
    for seed in 0..seeds {
        let mut play = |early| play(RadioPlay::new(make(seed)), seed, early);
        compare(seed, play(false), play(false), play(true));
    }
}

/// Checks a node that sits on a link, under `seeds` scripts. `make` builds a fresh node for a seed.
///
/// # Panics
///
/// If the node breaks the contract.
pub fn check_link<N: LinkNode>(seeds: u64, mut make: impl FnMut(u64) -> N) {
    for seed in 0..seeds {
        let mut play = |early| play(LinkPlay::new(make(seed)), seed, early);
        compare(seed, play(false), play(false), play(true));
    }
}

/// Checks a node that sends and receives packets, under `seeds` scripts. `make` builds a fresh node for a seed.
///
/// # Panics
///
/// If the node breaks the contract.
pub fn check_host<N: HostNode>(seeds: u64, mut make: impl FnMut(u64) -> N) {
    for seed in 0..seeds {
        let mut play = |early| {
            play(
                HostPlay {
                    node: make(seed),
                    echo: Echo::default(),
                },
                seed,
                early,
            )
        };
        compare(seed, play(false), play(false), play(true));
    }
}

fn compare(seed: u64, first: Digest, second: Digest, early: Digest) {
    assert!(
        first == second,
        "seed {seed}: two copies of the node behave differently under one script"
    );
    assert!(
        first == early,
        "seed {seed}: early timeouts changed what the node does"
    );
}

/// One contract under test: how to feed it one random input and how to drain it.
trait Play {
    fn input(&mut self, now: Instant, script: &mut Stream, digest: &mut Digest);
    /// Takes one output; false when there is none.
    fn output(&mut self, now: Instant, digest: &mut Digest) -> bool;
    fn timeout(&mut self, now: Instant);
    fn deadline(&self) -> Option<Wake>;
}

fn play(mut play: impl Play, seed: u64, early: bool) -> Digest {
    let mut script = Seed(seed).stream(Purpose::Trial(0));
    // A stream of its own, so that the script is the same with and without early timeouts.
    let mut prank = Seed(seed).stream(Purpose::Trial(1));
    let (mut now, mut digest) = (Instant::from_millis(1), Digest::default());
    drain(&mut play, now, &mut digest, seed, 0);
    for step in 0..STEPS {
        // The exponent first: pauses of nanoseconds come as often as those of milliseconds, and fall into all of a node's waits.
        let scale = script.below(24);
        let pause = Duration::from_nanos(script.below(1 << scale));
        let target = now + pause;
        now = meet_deadlines(&mut play, now, target, &mut digest, (seed, step));
        if early && play.deadline().is_none_or(|wake| wake.at > now) {
            for _ in 0..prank.below(3) {
                play.timeout(now);
                let quiet = !play.output(now, &mut digest);
                assert!(
                    quiet,
                    "seed {seed}, step {step}: an early timeout made the node send or record something"
                );
            }
        }
        play.input(now, &mut script, &mut digest);
        drain(&mut play, now, &mut digest, seed, step);
    }
    digest
}

/// Handles every deadline up to `target`, one late in every few, and returns the time reached.
fn meet_deadlines(
    play: &mut impl Play,
    mut now: Instant,
    target: Instant,
    digest: &mut Digest,
    (seed, step): (u64, u32),
) -> Instant {
    for _ in 0..DRAIN_MAX {
        match play.deadline() {
            Some(wake) if wake.at <= target => {
                now = if wake.at > now { wake.at } else { now };
                play.timeout(now);
                drain(play, now, digest, seed, step);
                // A driver that trusts such a deadline would never sleep again.
                let stuck = Wake::due(play.deadline(), now);
                assert!(
                    !stuck,
                    "seed {seed}, step {step}: deadline {wake:?} was handled at {now} and is still due"
                );
            }
            _ => return target,
        }
    }
    // A node may set very short deadlines again and again; the script then continues from the time reached.
    now
}

fn drain(play: &mut impl Play, now: Instant, digest: &mut Digest, seed: u64, step: u32) {
    let mut outputs = 0;
    while play.output(now, digest) {
        outputs += 1;
        assert!(
            outputs < DRAIN_MAX,
            "seed {seed}, step {step}: draining does not end"
        );
    }
    if let Some(wake) = play.deadline() {
        assert!(
            wake.at >= now,
            "seed {seed}, step {step}: {wake:?} lies before {now}"
        );
        digest.word(wake.at.nanos());
    }
}

/// The node's last frame, to be echoed back whole, truncated or with flipped bits.
struct Echo {
    frame: [u8; FRAME_MAX],
    len: usize,
}

impl Default for Echo {
    fn default() -> Self {
        Echo {
            frame: [0; FRAME_MAX],
            len: 0,
        }
    }
}

impl Echo {
    fn keep(&mut self, frame: &[u8]) {
        self.len = frame.len().min(FRAME_MAX);
        for (kept, &byte) in self.frame.iter_mut().zip(frame) {
            *kept = byte;
        }
    }

    /// A hostile frame in `buffer`: noise, or an echo that is whole, truncated, or has bits flipped.
    fn frame<'a>(&self, script: &mut Stream, buffer: &'a mut [u8; FRAME_MAX]) -> &'a [u8] {
        let kind = script.below(4);
        let len = match kind {
            0 => {
                let scale = script.below(12);
                let len = (script.below(1 << scale) as usize).min(FRAME_MAX);
                script.fill(buffer.get_mut(..len).unwrap_or_default());
                len
            }
            _ => {
                *buffer = self.frame;
                self.len
            }
        };
        let len = if kind == 1 {
            script.below(len as u64 + 1) as usize
        } else {
            len
        };
        if kind == 2 {
            for _ in 0..1 + script.below(8) {
                let place = script.below(len.max(1) as u64) as usize;
                let bit = 1u8 << script.below(8);
                if let Some(byte) = buffer.get_mut(place) {
                    *byte ^= bit;
                }
            }
        }
        buffer.get(..len).unwrap_or_default()
    }
}

struct RadioPlay<N> {
    node: N,
    echo: Echo,
    sensing: bool,
    busy: bool,
    since: Instant,
    flying: u32,
    /// Octets of each frame that the node asked to see early.
    peek: usize,
}

impl<N> RadioPlay<N> {
    fn new(node: N) -> Self {
        let (echo, since) = (Echo::default(), Instant::ZERO);
        RadioPlay {
            node,
            echo,
            sensing: false,
            busy: false,
            since,
            flying: 0,
            peek: 0,
        }
    }
}

impl<N: RadioNode> Play for RadioPlay<N> {
    fn input(&mut self, now: Instant, script: &mut Stream, _: &mut Digest) {
        let started = now.saturating_before(Duration::from_micros(script.below(8000)));
        let mode = Mode::long(if script.chance(0.5) {
            Rate::Dsss2
        } else {
            Rate::Cck11
        });
        match script.below(8) {
            // A radio reports the end only of what the node has sent.
            0 if self.flying > 0 => {
                self.flying -= 1;
                self.node.handle_radio(now, RadioEvent::Sent);
            }
            0 | 1 if self.sensing => {
                self.busy = !self.busy;
                self.since = now;
                self.node.handle_radio(
                    now,
                    RadioEvent::Carrier {
                        busy: self.busy,
                        since: now,
                    },
                );
            }
            2 => {
                let mode = script.chance(0.5).then_some(mode);
                self.node
                    .handle_radio(now, RadioEvent::Failed(Failure { started, mode }));
            }
            3 | 4 if self.peek > 0 => {
                let mut buffer = [0; FRAME_MAX];
                let psdu = self.echo.frame(script, &mut buffer);
                let head = Head {
                    octets: psdu.get(..self.peek).unwrap_or(psdu),
                    len: psdu.len(),
                    started,
                    mode,
                };
                self.node.handle_radio(now, RadioEvent::Head(head));
            }
            _ => {
                let mut buffer = [0; FRAME_MAX];
                let psdu = self.echo.frame(script, &mut buffer);
                let power = script.chance(0.5).then_some(Dbm(-70.0));
                let reception = Reception {
                    psdu,
                    started,
                    mode,
                    power,
                };
                self.node.handle_radio(now, RadioEvent::Received(reception));
            }
        }
    }

    fn output(&mut self, now: Instant, digest: &mut Digest) -> bool {
        let mut psdu = [0; FRAME_MAX];
        while let Some(event) = self.node.poll_trace() {
            digest.trace(event);
        }
        let Some(request) = self.node.poll_radio(now, &mut psdu) else {
            return false;
        };
        match request {
            RadioRequest::Transmit(transmit) => {
                assert!(
                    transmit.len <= FRAME_MAX,
                    "a frame of {} octets",
                    transmit.len
                );
                let psdu = psdu.get(..transmit.len).unwrap_or_default();
                digest.bytes(psdu);
                digest.word(transmit.at.nanos());
                self.echo.keep(psdu);
                self.flying += 1;
            }
            RadioRequest::Burst(burst) => {
                digest.word(burst.at.nanos() ^ burst.lasts.nanos() << 32);
                self.flying += 1;
            }
            RadioRequest::Sense(on) => {
                digest.word(2 + u64::from(on));
                self.sensing = on;
                // As `RadioRequest::Sense` promises: the present state at once, then changes.
                if on {
                    let carrier = RadioEvent::Carrier {
                        busy: self.busy,
                        since: self.since,
                    };
                    self.node.handle_radio(now, carrier);
                }
            }
            RadioRequest::Cancel => {
                digest.word(4);
                self.flying = 0;
            }
            RadioRequest::Tune(channel) => digest.word(16 + u64::from(channel.0)),
            RadioRequest::Listen(on) => digest.word(5 + u64::from(on)),
            RadioRequest::Peek(octets) => {
                digest.word(1 << 32 | octets as u64);
                self.peek = octets;
            }
            RadioRequest::Abort => digest.word(7),
        }
        true
    }

    fn timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn deadline(&self) -> Option<Wake> {
        self.node.poll_timeout()
    }
}

struct LinkPlay<N> {
    node: N,
    echo: Echo,
    token: Option<u32>,
}

impl<N> LinkPlay<N> {
    fn new(node: N) -> Self {
        LinkPlay {
            node,
            echo: Echo::default(),
            token: None,
        }
    }
}

impl<N: LinkNode> Play for LinkPlay<N> {
    fn input(&mut self, now: Instant, script: &mut Stream, digest: &mut Digest) {
        if let (Some(token), true) = (self.token, script.chance(0.3)) {
            self.token = None;
            let outcome = match script.below(3) {
                0 => Outcome::Unconfirmed,
                1 => Outcome::Acknowledged { attempts: 1 },
                _ => Outcome::Failed { attempts: 7 },
            };
            self.node
                .handle_link(now, LinkEvent::Sent { token, outcome });
        } else if script.chance(0.5) {
            self.take_frame(now, digest);
        } else {
            let mut buffer = [0; FRAME_MAX];
            let sdu = self.echo.frame(script, &mut buffer);
            let from = Address::node(script.below(12) as u16);
            let to = match script.below(3) {
                0 => Address::BROADCAST,
                _ => Address::node(script.below(12) as u16),
            };
            let arrival = Arrival {
                from,
                to,
                sdu,
                power: None,
            };
            self.node.handle_link(now, LinkEvent::Received(arrival));
        }
    }

    /// A link node is asked for frames only when the link can take one, so draining it concerns its trace only.
    fn output(&mut self, _: Instant, digest: &mut Digest) -> bool {
        match self.node.poll_trace() {
            Some(event) => digest.trace(event),
            None => return false,
        }
        true
    }

    fn timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn deadline(&self) -> Option<Wake> {
        self.node.poll_timeout()
    }
}

impl<N: LinkNode> LinkPlay<N> {
    fn take_frame(&mut self, now: Instant, digest: &mut Digest) {
        let mut sdu = [0; FRAME_MAX];
        let Some(send) = self.node.poll_link(now, Classes::ALL, &mut sdu) else {
            return;
        };
        assert!(send.len <= FRAME_MAX, "a frame of {} octets", send.len);
        let sdu = sdu.get(..send.len).unwrap_or_default();
        digest.bytes(sdu);
        digest.word(send.to.to_u64());
        self.echo.keep(sdu);
        self.token = Some(send.token);
    }
}

struct HostPlay<N> {
    node: N,
    echo: Echo,
}

impl<N: HostNode> Play for HostPlay<N> {
    fn input(&mut self, now: Instant, script: &mut Stream, _: &mut Digest) {
        let mut buffer = [0; FRAME_MAX];
        let packet = self.echo.frame(script, &mut buffer);
        self.node.handle_packet(now, packet);
    }

    fn output(&mut self, now: Instant, digest: &mut Digest) -> bool {
        while let Some(event) = self.node.poll_trace() {
            digest.trace(event);
        }
        let mut packet = [0; FRAME_MAX];
        let Some(len) = self.node.poll_packet(now, &mut packet) else {
            return false;
        };
        assert!(len <= FRAME_MAX, "a packet of {len} octets");
        let packet = packet.get(..len).unwrap_or_default();
        digest.bytes(packet);
        self.echo.keep(packet);
        true
    }

    fn timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn deadline(&self) -> Option<Wake> {
        self.node.poll_timeout()
    }
}

/// FNV-1a over all outputs of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    fn trace(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::Sent { bytes, to, .. } => self.word(u64::from(bytes) ^ to.to_u64()),
            TraceEvent::Received { bytes, from, .. } => self.word(u64::from(bytes) ^ from.to_u64()),
            TraceEvent::Dropped { why, .. } => self.bytes(why.name().as_bytes()),
            TraceEvent::Timer { why } => self.bytes(why.as_bytes()),
            TraceEvent::Delivered { flow, bytes } => {
                self.word(u64::from(flow) << 32 | u64::from(bytes))
            }
            TraceEvent::State { to, .. } => self.bytes(to.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, LinkSend};

    /// Repeats each frame once after a pause; `broken` breaks one rule.
    struct Repeater {
        broken: Broken,
        waiting: Option<(Instant, u8)>,
        ready: Option<u8>,
        early: u8,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Broken {
        Nothing,
        EarlyTimeout,
        StaleDeadline,
    }

    impl Repeater {
        fn new(broken: Broken) -> Repeater {
            Repeater {
                broken,
                waiting: None,
                ready: None,
                early: 0,
            }
        }
    }

    impl LinkNode for Repeater {
        fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
            if let LinkEvent::Received(arrival) = event {
                let first = arrival.sdu.first().copied().unwrap_or(0);
                self.waiting = Some((now + Duration::from_micros(50), first));
            }
        }
        fn pending(&self) -> Classes {
            Classes::NONE.with_if(Class::Data, self.ready.is_some())
        }
        fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
            let byte = self.ready.take()?;
            sdu[0] = byte ^ self.early;
            Some(LinkSend::broadcast(1, Class::Data))
        }
        fn handle_timeout(&mut self, now: Instant) {
            match self.waiting {
                Some((at, byte)) if at <= now => {
                    self.ready = Some(byte);
                    if self.broken != Broken::StaleDeadline {
                        self.waiting = None;
                    }
                }
                _ if self.broken == Broken::EarlyTimeout => self.early = 1,
                _ => {}
            }
        }
        fn poll_timeout(&self) -> Option<Wake> {
            self.waiting.map(|(at, _)| Wake { at, why: "pause" })
        }
    }

    #[test]
    fn a_sound_node_passes() {
        check_link(50, |_| Repeater::new(Broken::Nothing));
    }

    #[test]
    #[should_panic(expected = "early timeouts changed")]
    fn effects_of_early_timeouts_are_found() {
        check_link(50, |_| Repeater::new(Broken::EarlyTimeout));
    }

    #[test]
    #[should_panic(expected = "was handled")]
    fn deadlines_that_remain_due_are_found() {
        check_link(50, |_| Repeater::new(Broken::StaleDeadline));
    }
}
