//! A node of the simulator whose program is a set of async tasks, in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv6Addr, SocketAddrV6};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake as Wakes, Waker};

use chappe_core::{
    Address, Duration, Instant, OverMac, Purpose, RadioEvent, RadioNode, RadioRequest, Seed, Wake,
};
use chappe_mac::dot15d4::{self, Dot15d4};
use chappe_mote::{Clock, Event, Mailbox, Place, Radio, Runner, Sockets, Stack, What};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::{Config, Interface, Route, Table};
use chappe_tcplp::tcp::{self, Local, Memory, NewReno, Range, Secret, Sent, Socket};

pub type Net = Stack<'static, Virtual>;
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
const SOCKETS: usize = 3;

/// What a task and the simulator share.
pub struct Air {
    now: Cell<Instant>,
    events: RefCell<VecDeque<(Event, Vec<u8>)>>,
    requests: RefCell<VecDeque<(RadioRequest, Vec<u8>)>>,
    deadlines: RefCell<Vec<(Instant, Waker)>>,
    listener: Cell<Option<Waker>>,
}

#[derive(Clone, Copy)]
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
                psdu[..heard.len()].copy_from_slice(&heard);
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
            assert!(rounds < 1000, "the tasks wake each other without end");
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
        psdu[..octets.len()].copy_from_slice(&octets);
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

pub fn address(node: u16) -> Ipv6Addr {
    Config::new(Address::node(node), PREFIX, 0).global()
}

pub fn at(node: u16, port: u16) -> SocketAddrV6 {
    SocketAddrV6::new(address(node), port, 0, 0)
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn octets(len: usize) -> &'static mut [u8] {
    vec![0; len].leak()
}

fn socket(local: &'static Local) -> Socket<'static> {
    let memory = Memory {
        send: octets(1848),
        receive: octets(1848),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 8].leak(),
    };
    Socket::new(local, memory, NewReno).unwrap()
}

/// Node `number`, whose program is `tasks`. All nodes hear each other.
pub fn island(number: u16, nodes: u16, tasks: impl FnOnce(&'static Net) -> Vec<Task>) -> Island {
    let here = Address::node(number);
    let stream = |n| Seed(1).stream(Purpose::Node(u32::from(number) * 4 + n));
    let mac = dot15d4::Config::STANDARD;
    let config = Config::new(here, PREFIX, mac.caps(0).frame_max);
    let local: &Local = leak(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new([number as u8 + 1; 16]),
        config: tcp::Config {
            mss: 474,
            ..tcp::Config::STANDARD
        },
    });
    let places: Vec<Place> = (0..SOCKETS).map(|_| Place::FREE).collect();
    let mailbox = |_| Mailbox::new(octets(256), octets(200));
    let mailboxes: Vec<Mailbox<'static>> = (0..2).map(mailbox).collect();
    let app = Sockets::new(places.leak(), mailboxes.leak());
    let sockets: [Socket<'static>; SOCKETS] = std::array::from_fn(|_| socket(local));
    let host = Host::new(local, config.link_local(), sockets, app);
    let mut table: Table<8> = Table::new(here, PREFIX, Route::Nowhere);
    for other in (0..nodes).filter(|&other| other != number) {
        table.add(Address::node(other), Address::node(other));
    }
    let link: Interface<_, _, 2, 2, 4, 536> = Interface::new(config, host, table, stream(1));
    let mac: Dot15d4 = Dot15d4::new(mac, here, stream(0));
    let node = leak(OverMac::new(mac, link));
    let air: &Air = leak(Air {
        now: Cell::new(Instant::ZERO),
        events: RefCell::default(),
        requests: RefCell::default(),
        deadlines: RefCell::default(),
        listener: Cell::default(),
    });
    let stack: &Net = leak(Stack::new(node, local, Virtual(air)));
    let runner = Runner::new(stack, Antenna(air));
    let mut all = tasks(stack);
    all.push(Box::pin(async move { runner.run().await }));
    let woken = || Arc::new(Flag(AtomicBool::new(true)));
    Island {
        tasks: all.into_iter().map(|task| (task, woken())).collect(),
        air,
        started: false,
    }
}

/// Runs programs whose nodes receive each other's frames with this probability, until all tasks have ended.
pub fn run(programs: Vec<Island>, delivery: f64, seconds: u64) {
    let nodes = programs.len();
    let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b)));
    let matrix = pairs.fold(Matrix::silent(nodes), |matrix, (a, b)| {
        matrix.with_link(a, b, delivery)
    });
    let medium = Medium::matrix(&matrix).unwrap();
    let programs = programs.into_iter().map(Box::new).collect();
    let mut simulator = Simulator::new(World::new(medium), programs, Seed(7), ()).unwrap();
    for second in 1..=seconds {
        simulator.run_until(AirTime::from_millis(1000 * second));
        if (0..nodes).all(|node| simulator.node(node).is_done()) {
            return;
        }
    }
    panic!("some tasks have not ended after {seconds} s");
}

/// Waits.
pub async fn pause(stack: &Net, millis: u64) {
    let until = stack.clock().now() + Duration::from_millis(millis);
    stack.clock().sleep_until(until).await;
}
