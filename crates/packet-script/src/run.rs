//! Plays a script against the stack, step by step, and reports where they differ.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant};
use chappe_tcplp::tcp::Seq;

use crate::packet::{Bases, PacketSpec, describe, octet};
use crate::packetdrill::{self, Shortfall};
use crate::parse::{Event, Line, Script, parse};
use crate::stack::{Answer, Call, Stack};

/// Default of how far an outgoing packet may be from its time.
const TOLERANCE: Duration = Duration::from_millis(1);
/// Packets at one instant from which on the stack counts as one that never stops.
const BURST_MAX: usize = 10_000;

/// Plays the script `text` to `stack`. `include` returns the text of a script that it uses, by name. The error names the
/// line that failed, the reason, and the packet that the stack sent instead.
pub fn run(
    text: &str,
    stack: &mut dyn Stack,
    include: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let script = parse(text, include)?;
    play(&script, stack)
}

/// Plays the packetdrill script `text` to `stack`. [`Shortfall`] reports whether the stack failed or the script cannot be played.
pub fn run_packetdrill(text: &str, stack: &mut dyn Stack) -> Result<(), Shortfall> {
    let script = packetdrill::read(text).map_err(Shortfall::Unplayable)?;
    play(&script, stack).map_err(|why| match &script.without {
        Some(without) => Shortfall::Unplayable(format!("{without}: {why}")),
        None => Shortfall::Failed(why),
    })
}

fn play(script: &Script, stack: &mut dyn Stack) -> Result<(), String> {
    for (key, value) in &script.config {
        stack.configure(key, value)?;
    }
    let start = Instant::from_millis(1_000) + script.start;
    let mut player = Player {
        stack,
        start,
        now: start,
        event: start,
        tolerance: script.tolerance.unwrap_or(TOLERANCE),
        bases: Bases {
            script: Seq::new(script.script_isn),
            ..Bases::default()
        },
        outbox: VecDeque::new(),
        written: 0,
        read: 0,
    };
    player.play(script)
}

struct Player<'s> {
    stack: &'s mut dyn Stack,
    start: Instant,
    now: Instant,
    /// When the event of the last line happened.
    event: Instant,
    tolerance: Duration,
    bases: Bases,
    outbox: VecDeque<(Instant, Vec<u8>)>,
    written: i64,
    read: i64,
}

impl Player<'_> {
    fn play(&mut self, script: &Script) -> Result<(), String> {
        for line in &script.lines {
            self.line(line).map_err(|why| {
                let at = self.since_start(self.now);
                format!(
                    "line {} at {at:.6} s: {why}\n  | {}",
                    line.number, line.text
                )
            })?;
        }
        if script.open_end {
            return Ok(());
        }
        self.nothing_sent()
            .map_err(|why| format!("at the end: {why}"))
    }

    fn since_start(&self, at: Instant) -> f64 {
        at.saturating_since(self.start).as_secs_f64()
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        if let Event::Leaves(spec) = &line.event {
            return self.leaves(line, spec);
        }
        self.advance(self.event + line.after)?;
        self.event = self.now;
        match &line.event {
            Event::Arrives(spec) => {
                let packet = spec.build(&self.bases)?;
                self.stack.handle_packet(self.now, &packet);
                self.drain()
            }
            Event::Quiet => self.nothing_sent(),
            Event::Leaves(_) => Ok(()),
            Event::Listen => self.plain(Call::Listen),
            Event::Connect => self.plain(Call::Connect),
            Event::Accept => self.plain(Call::Accept),
            Event::Shutdown => self.plain(Call::Shutdown),
            Event::Close => self.plain(Call::Close),
            Event::Abort => self.plain(Call::Abort),
            &Event::Write { len, taken } => self.write(len, taken),
            &Event::Read { max, got } => self.read(max, got),
            Event::Eof => self.expect(&[("eof".into(), "yes".into())]),
            Event::Expect(pairs) => self.expect(pairs),
        }
    }

    fn plain(&mut self, call: Call) -> Result<(), String> {
        self.stack.call(self.now, &call)?;
        self.drain()
    }

    fn write(&mut self, len: usize, taken: usize) -> Result<(), String> {
        let first = self.written + 1;
        let data = (0..len as i64).map(|n| octet(first + n)).collect();
        match self.stack.call(self.now, &Call::Write(data))? {
            Answer::Written(got) if got == taken => self.written += got as i64,
            other => return Err(format!("{other:?} instead of {taken} octets taken")),
        }
        self.drain()
    }

    fn read(&mut self, max: usize, want: usize) -> Result<(), String> {
        let Answer::Read(data) = self.stack.call(self.now, &Call::Read(max))? else {
            return Err("the stack did not read".into());
        };
        if data.len() != want {
            return Err(format!("{} octets instead of {want}", data.len()));
        }
        for got in data {
            self.read += 1;
            if got != octet(self.read) {
                return Err(format!("octet {} of the stream is wrong", self.read));
            }
        }
        self.drain()
    }

    fn expect(&mut self, pairs: &[(String, String)]) -> Result<(), String> {
        self.nothing_due()?;
        for (key, want) in pairs {
            let got = self
                .stack
                .observe(key)
                .ok_or(format!("`{key}` is not known"))?;
            let low_high = want.split_once("..").map(|(a, b)| (a.parse(), b.parse()));
            let fits = match (low_high, got.parse::<u64>()) {
                (Some((Ok(low), Ok(high))), Ok(got)) => (low..=high).contains(&got),
                _ => got == *want,
            };
            if !fits {
                return Err(format!("{key} is {got} instead of {want}"));
            }
        }
        Ok(())
    }

    /// Packets may wait to be matched; only a deadline in the past is an error.
    fn nothing_due(&self) -> Result<(), String> {
        match self.stack.poll_timeout() {
            Some(at) if at < self.now => Err("the stack has a deadline in the past".into()),
            _ => Ok(()),
        }
    }

    fn leaves(&mut self, line: &Line, spec: &PacketSpec) -> Result<(), String> {
        let early = self.event + line.after;
        let late = match line.until {
            Some(until) => self.event + until,
            None => early + self.tolerance,
        };
        while self.outbox.is_empty() {
            match self.stack.poll_timeout() {
                Some(at) if at <= late => self.wake(at)?,
                _ => return Err("nothing was sent".into()),
            }
        }
        let Some((at, packet)) = self.outbox.pop_front() else {
            return Err("nothing was sent".into());
        };
        let what = describe(&packet, &self.bases);
        // `late` has the tolerance already, unless the line gives a range: that end is meant exactly.
        if at + self.tolerance < early || at > late {
            let (at, want) = (self.since_start(at), self.since_start(early));
            return Err(format!("sent at {at:.6} s instead of {want:.6} s: {what}"));
        }
        let elapsed = at.saturating_since(self.start).nanos() / 1_000_000;
        spec.compare(&packet, &mut self.bases, elapsed as u32)
            .map_err(|why| format!("{why}\n  sent: {}", describe(&packet, &self.bases)))?;
        self.event = at;
        Ok(())
    }

    /// Advances the clock to `target`, during which the stack must not send.
    fn advance(&mut self, target: Instant) -> Result<(), String> {
        if target > self.now {
            self.nothing_sent()?;
        }
        while let Some(at) = self.stack.poll_timeout().filter(|&at| at <= target) {
            self.wake(at)?;
            if self.outbox.front().is_some_and(|(at, _)| *at < target) {
                return self.nothing_sent();
            }
        }
        self.now = self.now.max(target);
        Ok(())
    }

    fn wake(&mut self, at: Instant) -> Result<(), String> {
        self.now = self.now.max(at);
        self.stack.handle_timeout(self.now);
        self.drain()?;
        match self.stack.poll_timeout() {
            Some(at) if at <= self.now => Err("a deadline was handled and stays".into()),
            _ => Ok(()),
        }
    }

    fn drain(&mut self) -> Result<(), String> {
        let mut buffer = [0; 4096];
        for _ in 0..BURST_MAX {
            match self.stack.poll_packet(self.now, &mut buffer) {
                Some(len) => self.outbox.push_back((self.now, buffer[..len].to_vec())),
                None => return Ok(()),
            }
        }
        Err("the stack does not stop sending".into())
    }

    fn nothing_sent(&self) -> Result<(), String> {
        match self.outbox.front() {
            None => Ok(()),
            Some((at, packet)) => {
                let at = self.since_start(*at);
                let what = describe(packet, &self.bases);
                Err(format!("sent at {at:.6} s, and not in the script: {what}"))
            }
        }
    }
}
