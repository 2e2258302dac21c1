//! Two nodes on models of the nRF52840, which hear each other: one is the thermometer, the other visits it.

use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use chappe_core::Channel;
use chappe_mote::{Runner, Stack};
use chappe_nrf52840::model::{Chip, OnAir};
use chappe_nrf52840::{Board, Buffer, Config, Driver, PPI, Registers, radio};
use embassy_futures::join::join4;

use chappe_thermometer::{Memory, Rising, Setup, Visit, addresses, node, serve, visit};

/// Power of frames at the other node, dBm.
const POWER: f64 = -60.0;
/// One frame of this many is lost.
const LOST_OF: u32 = 9;
/// The type of an immediate acknowledgement.
const ACKNOWLEDGEMENT: u8 = 2;
/// Enables channels of PPI.
const PPI_CHENSET: u32 = PPI + 0x504;
/// The bits of SysTick.
const TICKS_MASK: u32 = 0x00ff_ffff;
/// Nothing takes longer, ns.
const LIMIT: u64 = 120_000_000_000;

/// What watches the room.
pub trait Watcher {
    /// A frame begins: when in ns, of which node, and its octets.
    fn sends(&mut self, at: u64, node: usize, psdu: &[u8]);

    /// The tasks have run.
    fn ends(&mut self, _cost: Cost) {}
}

/// Ticks of a run of the tasks, without those that passed in the models of the chips.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Ticks of the whole run.
    pub all: u32,
    /// From when a node looked at its radio until it handed a frame to it, if it did.
    pub to_frame: Option<u32>,
    /// That frame was an acknowledgement.
    pub acknowledges: bool,
}

/// What is measured of a run.
#[derive(Debug, Default)]
struct Meter {
    /// The timer when it began.
    began: Cell<u32>,
    /// Ticks in the models so far.
    model: Cell<u32>,
    /// Ticks outside of them until the runner of a node looked at its radio.
    woken: Cell<u32>,
    /// Ticks outside of them from there until a frame was handed over.
    to_frame: Cell<Option<u32>>,
    /// The last frame handed over is an acknowledgement.
    acknowledges: Cell<bool>,
}

impl Meter {
    fn begin(&self, now: u32) {
        self.began.set(now);
        self.model.set(0);
        self.to_frame.set(None);
    }

    fn so_far(&self, now: u32) -> u32 {
        let all = self.began.get().wrapping_sub(now) & TICKS_MASK;
        all.saturating_sub(self.model.get())
    }
}

/// A chip's model, with the time spent in it.
struct Metered<'c> {
    chip: &'c RefCell<Chip>,
    /// A timer that counts down.
    ticks: fn() -> u32,
    meter: &'c Meter,
}

impl Metered<'_> {
    fn measure<T>(&self, f: impl FnOnce(&mut &RefCell<Chip>) -> T) -> T {
        let began = (self.ticks)();
        let result = f(&mut { self.chip });
        let took = began.wrapping_sub((self.ticks)()) & TICKS_MASK;
        let model = &self.meter.model;
        model.set(model.get().wrapping_add(took));
        result
    }
}

impl Registers for Metered<'_> {
    fn read(&mut self, address: u32) -> u32 {
        self.measure(|chip| chip.read(address))
    }

    fn write(&mut self, address: u32, value: u32) {
        // The driver enables a channel of PPI to start a frame, or starts it itself.
        let starts = matches!(address, PPI_CHENSET | radio::TASKS_TXEN);
        if starts && self.meter.to_frame.get().is_none() {
            let took = self.meter.so_far((self.ticks)());
            let own = took.saturating_sub(self.meter.woken.get());
            self.meter.to_frame.set(Some(own));
        }
        self.measure(|chip| chip.write(address, value));
    }

    fn address(&self, buffer: Buffer) -> u32 {
        self.measure(|chip| chip.address(buffer))
    }

    fn load(&self, buffer: Buffer, at: usize, to: &mut [u8]) {
        self.measure(|chip| chip.load(buffer, at, to));
    }

    fn store(&mut self, buffer: Buffer, at: usize, from: &[u8]) {
        // Behind the length, the frame's type (IEEE 802.15.4-2015, 7.2.2.2).
        let kind = from.first().map_or(0, |octet| octet & 7);
        if at == 1 && self.meter.to_frame.get().is_none() {
            self.meter.acknowledges.set(kind == ACKNOWLEDGEMENT);
        }
        self.measure(|chip| chip.store(buffer, at, from));
    }

    fn wake_at_interrupt(&mut self, waker: &Waker) {
        // The first that a runner does: the tasks of the other node are not this one's.
        if self.meter.to_frame.get().is_none() {
            self.meter.woken.set(self.meter.so_far((self.ticks)()));
        }
        self.measure(|chip| chip.wake_at_interrupt(waker));
    }
}

/// What came of the visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// All answers and notifications arrived.
    pub complete: bool,
    /// What the visitor found.
    pub visit: Visit,
    /// Frames on the air.
    pub frames: u32,
    /// What the drivers did in the wrong state.
    pub faults: u32,
}

/// Plays the visit. `ticks` is a timer of 24 bits that counts down, to measure with.
pub fn play(watcher: &mut impl Watcher, ticks: fn() -> u32) -> End {
    let meter = &Meter::default();
    let chips = [RefCell::new(Chip::new()), RefCell::new(Chip::new())];
    let boards = chips
        .each_ref()
        .map(|chip| Metered { chip, ticks, meter })
        .map(|chip| Board::new(Driver::new(chip, Config::STANDARD)));
    let [mut ours, mut theirs] = [Memory::new(), Memory::new()];
    let (mut mote, local) = node::<_, 0>(&mut ours, &Setup::new(1, 2, [1; 16]), ());
    let (mut visitor, visitors) = node::<_, 0>(&mut theirs, &Setup::new(2, 1, [2; 16]), ());
    let stack = Stack::new(&mut mote, local, &boards[0]);
    let guest = Stack::new(&mut visitor, visitors, &boards[1]);
    let sensor = Rising(&boards[0]);
    let found = Cell::new(None);
    let visiting = async {
        found.set(Some(visit(&guest, addresses(1).0).await));
    };
    let tasks = pin!(join4(
        Runner::new(&stack, &boards[0]).run(),
        serve(&stack, &sensor),
        Runner::new(&guest, &boards[1]).run(),
        visiting,
    ));
    let frames = run(
        &chips,
        tasks,
        || found.get().is_some(),
        (ticks, meter),
        watcher,
    );
    let visit = found.get().and_then(Result::ok).unwrap_or_default();
    End {
        complete: visit.statuses == [200, 404, 405, 400] && visit.notifications == 3,
        visit,
        frames,
        faults: chips.iter().map(|chip| chip.borrow().faults()).sum(),
    }
}

/// Runs tasks and chips in turn, from event to event, until `done`. Returns the number of frames.
fn run(
    chips: &[RefCell<Chip>; 2],
    mut tasks: core::pin::Pin<&mut impl Future>,
    done: impl Fn() -> bool,
    (ticks, meter): (fn() -> u32, &Meter),
    watcher: &mut impl Watcher,
) -> u32 {
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    let mut frames = 0;
    WOKEN.store(true, Ordering::Relaxed);
    loop {
        while WOKEN.swap(false, Ordering::Relaxed) {
            meter.begin(ticks());
            if let Poll::Ready(_) = tasks.as_mut().poll(&mut context) {
                return frames;
            }
            watcher.ends(Cost {
                all: meter.so_far(ticks()),
                to_frame: meter.to_frame.get(),
                acknowledges: meter.acknowledges.get(),
            });
            chips.iter().for_each(|chip| {
                chip.borrow_mut().take_interrupt();
            });
        }
        let next = chips.iter().filter_map(|chip| chip.borrow().next()).min();
        let Some(at) = next.filter(|&at| at < LIMIT && !done()) else {
            return frames;
        };
        chips.iter().for_each(|chip| chip.borrow_mut().advance(at));
        for (sender, chip) in chips.iter().enumerate() {
            let Some(frame) = chip.borrow_mut().take_sent() else {
                continue;
            };
            frames += 1;
            watcher.sends(frame.started, sender, &frame.psdu[..frame.len]);
            carry(&frame, &chips[1 - sender], frames);
        }
    }
}

fn carry(frame: &OnAir, to: &RefCell<Chip>, number: u32) {
    assert_eq!(frame.channel, Channel(26), "both nodes are on channel 26");
    let good = !number.is_multiple_of(LOST_OF);
    to.borrow_mut().arrive(frame, POWER, good);
}

static WOKEN: AtomicBool = AtomicBool::new(false);

/// A waker that notes that something was woken: all tasks are one future.
fn waker() -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(|_| RAW, |_| wake(), |_| wake(), |_| ());
    const RAW: RawWaker = RawWaker::new(core::ptr::null(), &VTABLE);
    fn wake() {
        WOKEN.store(true, Ordering::Relaxed);
    }
    // SAFETY: the functions use no data, so the null pointer is never read, and they may be called from any thread.
    unsafe { Waker::from_raw(RAW) }
}
