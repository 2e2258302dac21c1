//! A node whose program is a set of async tasks, as a [`RadioNode`]: for simulators, in virtual time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake as Wakes;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use chappe_core::{Instant, RadioEvent, RadioNode, RadioRequest, Wake};

use crate::clock::Clock;
use crate::radio::{Event, Radio, What};

/// Wake-ups of a task at one instant from which on the tasks count as ones that never rest.
const ROUNDS_MAX: u32 = 1000;

/// A task of a program. It is never sent to another thread.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What a task and the simulator share.
#[derive(Debug)]
pub struct Air {
    now: Cell<Instant>,
    events: RefCell<VecDeque<(Event, Vec<u8>)>>,
    requests: RefCell<VecDeque<(RadioRequest, Vec<u8>)>>,
    deadlines: RefCell<Vec<(Instant, Waker)>>,
    listener: RefCell<Option<Waker>>,
}

impl Air {
    /// What one node shares with its tasks. It is leaked, because the tasks and the node borrow it from each other: some hundred
    /// octets for each node.
    pub fn leak() -> &'static Air {
        Box::leak(Box::new(Air {
            now: Cell::new(Instant::ZERO),
            events: RefCell::default(),
            requests: RefCell::default(),
            deadlines: RefCell::default(),
            listener: RefCell::default(),
        }))
    }

    /// The clock of its tasks.
    pub fn clock(&'static self) -> Virtual {
        Virtual(self)
    }

    /// The radio for its [`Runner`](crate::Runner).
    pub fn antenna(&'static self) -> Antenna {
        Antenna(self)
    }
}

/// The clock of a simulated node's tasks.
#[derive(Clone, Copy, Debug)]
pub struct Virtual(&'static Air);

impl Clock for Virtual {
    fn now(&self) -> Instant {
        self.0.now.get()
    }

    async fn sleep_until(&self, at: Instant) {
        poll_fn(|context| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            self.0.deadlines.borrow_mut().push((at, waker));
            Poll::Pending
        })
        .await;
    }
}

/// The radio of a simulated node.
#[derive(Debug)]
pub struct Antenna(&'static Air);

impl Radio for Antenna {
    fn request(&mut self, request: RadioRequest, psdu: &[u8]) {
        let octets = psdu.to_vec();
        self.0.requests.borrow_mut().push_back((request, octets));
    }

    async fn event(&mut self, psdu: &mut [u8]) -> Event {
        poll_fn(|context| match self.0.events.borrow_mut().pop_front() {
            None => {
                self.0.listener.replace(Some(context.waker().clone()));
                Poll::Pending
            }
            Some((event, heard)) => {
                // Both have room for a frame.
                if let Some(room) = psdu.get_mut(..heard.len()) {
                    room.copy_from_slice(&heard);
                }
                Poll::Ready(event)
            }
        })
        .await
    }
}

struct Flag(AtomicBool);

impl Wakes for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A node that runs those of its tasks that were woken, on one thread.
pub struct Island {
    tasks: Vec<(Task, Arc<Flag>)>,
    air: &'static Air,
    started: bool,
}

impl Island {
    /// A node that runs these tasks, one of which is its runner.
    pub fn new(air: &'static Air, tasks: Vec<Task>) -> Island {
        let woken = || Arc::new(Flag(AtomicBool::new(true)));
        Island {
            tasks: tasks.into_iter().map(|task| (task, woken())).collect(),
            air,
            started: false,
        }
    }

    /// All tasks but the runner have ended.
    pub fn is_done(&self) -> bool {
        // The runner never ends.
        self.tasks.len() == 1
    }

    fn run(&mut self, now: Instant) {
        self.air.now.set(now);
        self.air.deadlines.borrow_mut().retain(|(at, waker)| {
            if *at <= now {
                waker.wake_by_ref();
            }
            *at > now
        });
        let mut rounds = 0;
        let woken = |(_, flag): &(Task, Arc<Flag>)| flag.0.load(Ordering::Relaxed);
        while self.tasks.iter().any(woken) {
            self.tasks.retain_mut(|(task, flag)| {
                if !flag.0.swap(false, Ordering::Relaxed) {
                    return true;
                }
                let waker = Waker::from(flag.clone());
                task.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            });
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "the tasks wake each other without end");
        }
    }
}

impl RadioNode for Island {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        let (what, octets) = match event {
            RadioEvent::Carrier { busy, since } => (What::Carrier { busy, since }, Vec::new()),
            RadioEvent::Head(_) => return,
            RadioEvent::Received(heard) => (
                What::Received {
                    len: heard.psdu.len(),
                    started: heard.started,
                    mode: heard.mode,
                    power: heard.power,
                },
                heard.psdu.to_vec(),
            ),
            RadioEvent::Failed(failure) => (What::Failed(failure), Vec::new()),
            RadioEvent::Sent => (What::Sent, Vec::new()),
        };
        let event = Event { at: now, what };
        self.air.events.borrow_mut().push_back((event, octets));
        self.air.listener.take().iter().for_each(Waker::wake_by_ref);
        self.run(now);
    }

    fn poll_radio(&mut self, _now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        let (request, octets) = self.air.requests.borrow_mut().pop_front()?;
        psdu.get_mut(..octets.len())?.copy_from_slice(&octets);
        Some(request)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.started = true;
        self.run(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let why = "a task sleeps";
        if !self.started {
            let at = Instant::ZERO;
            return Some(Wake { at, why });
        }
        let deadlines = self.air.deadlines.borrow();
        let at = deadlines.iter().map(|(at, _)| *at).min()?;
        Some(Wake { at, why })
    }
}

impl core::fmt::Debug for Island {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let tasks = self.tasks.len();
        f.debug_struct("Island")
            .field("tasks", &tasks)
            .finish_non_exhaustive()
    }
}
