//! One event loop: descriptors, a deadline and signals in one wait (epoll, timerfd, signalfd).

use std::os::fd::{AsFd, OwnedFd};

use chappe_core::Instant;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::Clock;
use crate::error::{Error, Result};
use crate::raw::{self, Signals};

/// What an [`EventLoop`] was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The descriptor of this token can be read, or has failed, which reading will tell.
    Readable(u64),
    /// The descriptor of this token can be written.
    Writable(u64),
    /// The deadline has come.
    Deadline,
    /// The program is asked to end.
    Signal(Signal),
}

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, or `kill`.
    Terminate,
}

/// Waits for descriptors, one deadline and, if asked, signals.
pub struct EventLoop {
    epoll: OwnedFd,
    timer: OwnedFd,
    signals: Option<Signals>,
    clock: Clock,
    deadline: Option<Instant>,
    events: Vec<epoll::Event>,
}

/// Tokens that no descriptor of the caller has.
const TIMER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

impl EventLoop {
    /// A loop whose deadlines are read off `clock`.
    pub fn new(clock: Clock) -> Result<EventLoop> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| Error::new("create an event loop", error))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|error| Error::new("create a timer", error))?;
        let made = EventLoop {
            epoll,
            timer,
            signals: None,
            clock,
            deadline: None,
            events: Vec::with_capacity(16),
        };
        made.register(&made.timer, TIMER, epoll::EventFlags::IN)?;
        Ok(made)
    }

    /// Reports SIGINT and SIGTERM as [`Ready::Signal`] instead of letting them end the program, until the loop is
    /// dropped. Call it before other threads are started: a signal goes to any thread that has not blocked it.
    pub fn watch_signals(&mut self) -> Result<()> {
        let signals = raw::open_signals(&[libc::SIGINT, libc::SIGTERM])
            .map_err(|error| Error::new("watch for signals", error))?;
        self.register(&signals, SIGNALS, epoll::EventFlags::IN)?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Waits for `fd` to become readable from now on, under `token` (any number below 2^63).
    pub fn add(&self, fd: impl AsFd, token: u64) -> Result<()> {
        self.register(fd, token, epoll::EventFlags::IN)
    }

    /// Whether to wait for `fd` to become writable too.
    pub fn want_write(&self, fd: impl AsFd, token: u64, want: bool) -> Result<()> {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, want);
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), flags)
            .map_err(|error| Error::new("change what is waited for", error))
    }

    /// Forgets `fd`.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, fd).map_err(|error| Error::new("forget a descriptor", error))
    }

    /// When to report [`Ready::Deadline`], once; `None` for never. A moment in the past is reported at once.
    pub fn set_deadline(&mut self, at: Option<Instant>) -> Result<()> {
        if self.deadline == at {
            return Ok(());
        }
        self.arm(at)?;
        self.deadline = at;
        Ok(())
    }

    /// Waits until something is ready, and appends it to `ready`.
    pub fn wait(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        // A deadline that has passed costs no sleep: on a busy machine, waking up takes a slice of its scheduler.
        let due = self.deadline.is_some_and(|at| at <= self.clock.now());
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, buffer, due.then_some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Error::new("wait for events", error)),
        }
        for i in 0..self.events.len() {
            let epoll::Event { data, flags } = self.events[i];
            match data.u64() {
                TIMER => self.on_timer(ready),
                SIGNALS => self.on_signals(ready)?,
                token => {
                    // Everything but OUT, so also an error or the other end's leaving.
                    if flags != epoll::EventFlags::OUT {
                        ready.push(Ready::Readable(token));
                    }
                    if flags.contains(epoll::EventFlags::OUT) {
                        ready.push(Ready::Writable(token));
                    }
                }
            }
        }
        // The timer itself may not have said so yet.
        if due && self.deadline.take().is_some() {
            self.arm(None)?;
            ready.push(Ready::Deadline);
        }
        Ok(())
    }

    /// Sets the timer, or stops it.
    fn arm(&self, at: Option<Instant>) -> Result<()> {
        // Zero would disarm the timer. CLOCK_MONOTONIC was there before this program.
        let nanos = at.map_or(0, |at| self.clock.absolute_ns(at).max(1));
        let it_value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let it_interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let when = Itimerspec {
            it_interval,
            it_value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &when)
            .map(drop)
            .map_err(|error| Error::new("set the timer", error))
    }

    fn on_timer(&mut self, ready: &mut Vec<Ready>) {
        let mut expirations = [0; 8];
        // Fails if the deadline was moved after the timer had expired; then it has not come.
        if rustix::io::read(&self.timer, &mut expirations).is_ok() {
            self.deadline = None;
            ready.push(Ready::Deadline);
        }
    }

    fn on_signals(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        let Some(signals) = &self.signals else {
            return Ok(());
        };
        while let Some(number) = signals
            .next()
            .map_err(|error| Error::new("read a signal", error))?
        {
            ready.push(Ready::Signal(match number {
                libc::SIGINT => Signal::Interrupt,
                _ => Signal::Terminate,
            }));
        }
        Ok(())
    }

    fn register(&self, fd: impl AsFd, token: u64, flags: epoll::EventFlags) -> Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), flags)
            .map_err(|error| Error::new("wait for a descriptor", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Duration;

    /// A deadline comes not before its time and only once; one in the past comes at once.
    #[test]
    fn deadlines_come_once_and_not_early() {
        let clock = Clock::start();
        let mut events = EventLoop::new(clock).unwrap();
        let mut ready = Vec::new();
        let at = clock.now() + Duration::from_millis(15);
        events.set_deadline(Some(at)).unwrap();
        events.wait(&mut ready).unwrap();
        assert_eq!(ready, [Ready::Deadline]);
        assert!(clock.now() >= at);
        ready.clear();
        events.set_deadline(Some(Instant::ZERO)).unwrap();
        events.wait(&mut ready).unwrap();
        assert_eq!(ready, [Ready::Deadline]);
    }

    #[test]
    fn a_readable_descriptor_is_reported_under_its_token() {
        let (mine, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let mut events = EventLoop::new(Clock::start()).unwrap();
        events.add(&mine, 7).unwrap();
        theirs.send(b"x").unwrap();
        let mut ready = Vec::new();
        events.wait(&mut ready).unwrap();
        assert_eq!(ready, [Ready::Readable(7)]);
        events.want_write(&mine, 7, true).unwrap();
        ready.clear();
        events.wait(&mut ready).unwrap();
        assert_eq!(ready, [Ready::Readable(7), Ready::Writable(7)]);
    }
}
