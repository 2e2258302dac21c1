//! One event loop: descriptors, a deadline and signals in one wait (epoll, signalfd).
//!
//! A deadline is the timeout of the wait, in nanoseconds, if the kernel supports that (epoll_pwait2, Linux 5.11). On older
//! kernels it is a timerfd, which costs an additional system call for each deadline.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use chappe_core::Instant;
use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::Clock;
use crate::error::{Error, Result};
use crate::raw::{self, Signals};

/// An event that ended a wait of an [`EventLoop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The descriptor with this token is readable or has failed; reading returns the error.
    Readable(u64),
    /// The descriptor with this token is writable.
    Writable(u64),
    /// The deadline has passed.
    Deadline,
    /// A signal that the loop watches has arrived.
    Signal(Signal),
}

/// A signal that asks the program to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, or `kill`.
    Terminate,
    /// SIGHUP, which asks a daemon to read its files again.
    Reload,
}

/// Waits for descriptors, one deadline and, if asked, signals.
pub struct EventLoop {
    epoll: OwnedFd,
    alarm: Alarm,
    signals: Option<Signals>,
    clock: Clock,
    deadline: Option<Instant>,
    events: Vec<epoll::Event>,
}

/// How a deadline ends a wait.
enum Alarm {
    /// By the timeout of epoll_pwait2. `sharp`: the timer slack of the waiting thread is off.
    Timeout { sharp: bool },
    /// By a timerfd among the descriptors.
    Timer(OwnedFd),
}

/// Tokens of the loop itself.
const TIMER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;
/// Largest number of descriptors that one wait reports; the next one reports the others.
const EVENTS: usize = 16;
/// The timer slack: how late the kernel may end a wait. Its default of 50 us (PR_SET_TIMERSLACK in prctl(2)) is a quarter
/// of a frame's time at 60 Mbit/s. A timerfd has no slack.
const SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

impl EventLoop {
    /// A loop whose deadlines are on `clock`.
    pub fn new(clock: Clock) -> Result<EventLoop> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| Error::new("create an event loop", error))?;
        Ok(EventLoop {
            epoll,
            alarm: Alarm::Timeout { sharp: false },
            signals: None,
            clock,
            deadline: None,
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Reports SIGINT and SIGTERM as [`Ready::Signal`] until the loop is dropped, instead of letting them end the program.
    /// Call it before other threads start: the kernel gives a signal to any thread that has not blocked it.
    pub fn watch_signals(&mut self) -> Result<()> {
        self.watch(&[libc::SIGINT, libc::SIGTERM])
    }

    /// Like [`watch_signals`](Self::watch_signals), with SIGHUP.
    pub fn watch_signals_and_reload(&mut self) -> Result<()> {
        self.watch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
    }

    fn watch(&mut self, signals: &[libc::c_int]) -> Result<()> {
        let signals =
            raw::open_signals(signals).map_err(|error| Error::new("watch for signals", error))?;
        self.register(&signals, SIGNALS, epoll::EventFlags::IN)?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Starts watching whether `fd` is readable, under `token` (any number below 2^63).
    pub fn add(&self, fd: impl AsFd, token: u64) -> Result<()> {
        self.register(fd, token, epoll::EventFlags::IN)
    }

    /// Sets whether to watch `fd` for writing too.
    pub fn want_write(&self, fd: impl AsFd, token: u64, want: bool) -> Result<()> {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, want);
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), flags)
            .map_err(|error| Error::new("change the events of a descriptor", error))
    }

    /// Changes whether to watch `fd` for reading and for writing, from what was watched before; (false, false): not at all. A descriptor
    /// whose readiness is of no use at present must not be watched, since it would end every wait.
    pub fn watch_for(
        &self,
        fd: impl AsFd,
        token: u64,
        before: (bool, bool),
        now: (bool, bool),
    ) -> Result<()> {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, now.0);
        flags.set(epoll::EventFlags::OUT, now.1);
        let unwatched = (false, false);
        match (before == unwatched, now == unwatched) {
            (true, true) => Ok(()),
            (true, false) => self.register(fd, token, flags),
            (false, true) => self.remove(fd),
            (false, false) => {
                let data = epoll::EventData::new_u64(token);
                epoll::modify(&self.epoll, fd, data, flags)
                    .map_err(|error| Error::new("change the events of a descriptor", error))
            }
        }
    }

    /// Stops watching the descriptor `fd`.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, fd).map_err(|error| Error::new("forget a descriptor", error))
    }

    /// Sets when to report [`Ready::Deadline`], once; `None` for never. A time in the past is reported at once.
    pub fn set_deadline(&mut self, at: Option<Instant>) -> Result<()> {
        if self.deadline == at {
            return Ok(());
        }
        if let Alarm::Timer(timer) = &self.alarm {
            arm(timer, self.clock, at)?;
        }
        self.deadline = at;
        Ok(())
    }

    /// Waits until something is ready, and appends it to `ready`. It also turns off the timer slack of the calling thread
    /// (PR_SET_TIMERSLACK), permanently.
    pub fn wait(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        self.events.clear();
        let left = self
            .deadline
            .map(|at| at.saturating_since(self.clock.now()).nanos());
        self.sleep(left)?;
        // A descriptor may have become ready together with the deadline, or after it.
        let due = match (self.deadline, left) {
            (Some(_), Some(0)) => true,
            (Some(at), _) => self.clock.now() >= at,
            (None, _) => false,
        };
        for i in 0..self.events.len() {
            let epoll::Event { data, flags } = self.events[i];
            match data.u64() {
                // The clock above has already decided whether the deadline has passed.
                TIMER => {}
                SIGNALS => self.on_signals(ready)?,
                token => {
                    // Any flag but OUT, so errors and hang-ups (ERR, HUP) too: reading reports them.
                    if flags != epoll::EventFlags::OUT {
                        ready.push(Ready::Readable(token));
                    }
                    if flags.contains(epoll::EventFlags::OUT) {
                        ready.push(Ready::Writable(token));
                    }
                }
            }
        }
        if due {
            self.set_deadline(None)?;
            ready.push(Ready::Deadline);
        }
        Ok(())
    }

    /// Waits for an event for at most `left` nanoseconds. A deadline that has passed costs no sleep: on a busy machine,
    /// waking up takes a time slice of the scheduler.
    fn sleep(&mut self, left: Option<u64>) -> Result<()> {
        if let Alarm::Timeout { sharp } = &mut self.alarm {
            if !*sharp {
                // If the kernel refuses, deadlines come up to 50 us late.
                let _ = rustix::thread::set_current_timer_slack(Some(SLACK_NS));
                *sharp = true;
            }
            match raw::wait_events(self.epoll.as_fd(), &mut self.events, left) {
                Err(error) if lacks_it(&error) => self.use_timer()?,
                result => return woken(result),
            }
        }
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        let at_once = (left == Some(0)).then(|| timespec(0));
        let result = epoll::wait(&self.epoll, buffer, at_once.as_ref());
        woken(result.map(drop).map_err(std::io::Error::from))
    }

    fn use_timer(&mut self) -> Result<()> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|error| Error::new("create a timer", error))?;
        self.register(&timer, TIMER, epoll::EventFlags::IN)?;
        arm(&timer, self.clock, self.deadline)?;
        self.alarm = Alarm::Timer(timer);
        Ok(())
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
                libc::SIGHUP => Signal::Reload,
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

/// The kernel does not know the call, or a container's filter does not; some filters answer "not permitted".
fn lacks_it(error: &std::io::Error) -> bool {
    let known = [libc::ENOSYS, libc::EPERM];
    error
        .raw_os_error()
        .is_some_and(|number| known.contains(&number))
}

/// An interrupted wait counts as one without events.
fn woken(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
            Err(Error::new("wait for events", error))
        }
        _ => Ok(()),
    }
}

/// Sets or stops the timer, and clears an expiry that was not read.
fn arm(timer: &OwnedFd, clock: Clock, at: Option<Instant>) -> Result<()> {
    // Zero would disarm the timer, and CLOCK_MONOTONIC is never zero while a program runs.
    let when = Itimerspec {
        it_interval: timespec(0),
        it_value: timespec(at.map_or(0, |at| clock.absolute_ns(at).max(1))),
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &when)
        .map(drop)
        .map_err(|error| Error::new("set the timer", error))
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Duration;

    /// Goal: a deadline comes not before its time and only once; one in the past comes at once. Method: both ways to wait, whatever
    /// this kernel prefers; a descriptor that is readable ends each wait, so that a deadline that came twice would be seen.
    #[test]
    fn deadlines_fire_once_and_never_early() {
        for by_timer in [false, true] {
            let clock = Clock::start();
            let mut events = EventLoop::new(clock).unwrap();
            if by_timer {
                events.use_timer().unwrap();
            }
            let mut ready = Vec::new();
            let at = clock.now() + Duration::from_millis(15);
            events.set_deadline(Some(at)).unwrap();
            events.wait(&mut ready).unwrap();
            assert_eq!(ready, [Ready::Deadline], "by timer: {by_timer}");
            assert!(clock.now() >= at);
            ready.clear();
            events.set_deadline(Some(Instant::ZERO)).unwrap();
            events.wait(&mut ready).unwrap();
            assert_eq!(ready, [Ready::Deadline]);
            let (mine, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
            events.add(&mine, 7).unwrap();
            theirs.send(b"x").unwrap();
            for _ in 0..3 {
                ready.clear();
                events.wait(&mut ready).unwrap();
                assert_eq!(ready, [Ready::Readable(7)]);
            }
            // One that was moved has not come.
            events.set_deadline(Some(clock.now())).unwrap();
            let later = clock.now() + Duration::from_secs(3600);
            events.set_deadline(Some(later)).unwrap();
            ready.clear();
            events.wait(&mut ready).unwrap();
            assert_eq!(ready, [Ready::Readable(7)]);
        }
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
