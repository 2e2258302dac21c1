//! The driver as tasks use it.

use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use chappe_core::{Instant, RadioRequest};
use chappe_mote::{Clock, Event, Radio, What};

use crate::driver::{Driver, MODE, Seen};
use crate::registers::Registers;

/// Tasks that can sleep at a time. A further one takes the place of the last to wake, and wakes it to try again.
const SLEEPERS: usize = 8;

/// A radio and a clock for the tasks of one executor. `&Board` is both.
pub struct Board<R> {
    driver: RefCell<Driver<R>>,
    sleepers: RefCell<[Option<(Instant, Waker)>; SLEEPERS]>,
}

impl<R: Registers> Board<R> {
    /// Shares a driver between the tasks of one executor.
    pub fn new(driver: Driver<R>) -> Board<R> {
        Board {
            driver: RefCell::new(driver),
            sleepers: RefCell::new([const { None }; SLEEPERS]),
        }
    }

    /// Calls `f` with the driver, to inspect it.
    pub fn with<T>(&self, f: impl FnOnce(&mut Driver<R>) -> T) -> T {
        f(&mut self.driver.borrow_mut())
    }

    /// Wakes the tasks whose time has come, and sets the timer to the next one's.
    fn wake_sleepers(&self) {
        let mut driver = self.driver.borrow_mut();
        let now = driver.now();
        let mut next: Option<Instant> = None;
        for sleeper in self.sleepers.borrow_mut().iter_mut() {
            match sleeper {
                Some((at, _)) if *at <= now => {
                    if let Some((_, waker)) = sleeper.take() {
                        waker.wake();
                    }
                }
                Some((at, _)) => next = Some(next.map_or(*at, |next| next.min(*at))),
                None => {}
            }
        }
        driver.set_alarm(next);
    }

    fn sleep(&self, at: Instant, waker: &Waker) {
        let mut sleepers = self.sleepers.borrow_mut();
        let known = |place: &&mut Option<(Instant, Waker)>| {
            place
                .as_ref()
                .is_some_and(|(_, known)| known.will_wake(waker))
        };
        // A task that sleeps anew gives up its earlier wish, unless that is sooner: it may be another future of the task.
        if let Some(Some((wish, _))) = sleepers.iter_mut().find(known) {
            *wish = at.min(*wish);
            return;
        }
        let last = sleepers.iter_mut().max_by_key(|place| {
            place
                .as_ref()
                .map_or(Instant::from_nanos(u64::MAX), |(at, _)| *at)
        });
        if let Some(place) = last
            && let Some((_, other)) = place.replace((at, waker.clone()))
        {
            other.wake();
        }
    }
}

impl<R: Registers> Clock for &Board<R> {
    fn now(&self) -> Instant {
        self.driver.borrow_mut().now()
    }

    async fn sleep_until(&self, at: Instant) {
        poll_fn(|context| {
            if Clock::now(self) >= at {
                return Poll::Ready(());
            }
            self.sleep(at, context.waker());
            self.wake_sleepers();
            Poll::Pending
        })
        .await;
    }
}

impl<R: Registers> Radio for &Board<R> {
    fn request(&mut self, request: RadioRequest, psdu: &[u8]) {
        self.driver.borrow_mut().request(request, psdu);
    }

    async fn event(&mut self, psdu: &mut [u8]) -> Event {
        self.driver.borrow_mut().settle();
        poll_fn(|context| {
            // First, so that an interrupt after the look is not missed.
            self.driver
                .borrow_mut()
                .registers_mut()
                .wake_at_interrupt(context.waker());
            let seen = self.driver.borrow_mut().poll();
            self.wake_sleepers();
            match seen {
                None => Poll::Pending,
                Some((at, seen)) => Poll::Ready(self.report(at, seen, psdu)),
            }
        })
        .await
    }
}

impl<R: Registers> Board<R> {
    fn report(&self, at: Instant, seen: Seen, psdu: &mut [u8]) -> Event {
        let mode = MODE;
        let copy = |octets: usize, psdu: &mut [u8]| {
            let place = psdu.get_mut(..octets).unwrap_or_default();
            self.driver.borrow().octets(place);
        };
        let what = match seen {
            Seen::Carrier { busy } => What::Carrier { busy, since: at },
            Seen::Head {
                octets,
                len,
                started,
            } => {
                copy(octets, psdu);
                What::Head {
                    octets,
                    len,
                    started,
                    mode,
                }
            }
            Seen::Received {
                len,
                started,
                power,
            } => {
                copy(len, psdu);
                What::Received {
                    len,
                    started,
                    mode,
                    power: Some(power),
                }
            }
            Seen::Failed(failure) => What::Failed(failure),
            Seen::Sent => What::Sent,
        };
        Event { at, what }
    }
}
