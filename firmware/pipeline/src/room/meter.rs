//! What a node's work costs, without the models of the chips.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::task::Waker;

use chappe_nrf52840::model::Chip;
use chappe_nrf52840::{Buffer, PPI, Registers, encrypt, radio};

/// A timer of 24 bits that counts down, to measure with.
pub trait Ticks {
    /// What the timer shows.
    fn now() -> u32;
}

/// What a node worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The end of an own frame, a deadline, a frame that failed.
    #[default]
    Other,
    /// The first octets of a frame.
    Head,
    /// A packet of the object.
    Data,
    /// A combination of packets.
    Coded,
    /// A plan of the flood.
    Plan,
    /// The end of a round.
    Ctrl,
    /// Which packets are missing.
    Nack,
    /// A frame of the measurement.
    Survey,
    /// Its own next frame.
    Ahead,
}

/// One turn of a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// What it worked on.
    pub cause: Cause,
    /// The span of the whole turn.
    pub whole: Span,
    /// Until its radio had a frame to send, if it got one.
    pub to_frame: Option<Span>,
}

/// From the begin of a turn to a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Ticks, without those in the models.
    pub ticks: u32,
    /// Calls of the models, each of which costs [`overhead`] as well.
    pub calls: u32,
    /// Blocks that the chip's AES encrypted.
    pub blocks: u32,
}

/// Ticks that measuring a thousand calls of the models adds to a turn.
pub fn overhead<T: Ticks>() -> u32 {
    let meter = Meter::<T>::begin();
    for at in 0..1000u32 {
        aside::<T, _>(|| core::hint::black_box(at));
    }
    meter.end().whole.ticks
}

const MASK: u32 = 0x00ff_ffff;
/// Enables channels of PPI.
const PPI_CHENSET: u32 = PPI + 0x504;
/// Stands for a time that no frame has set yet.
const NONE: u32 = u32::MAX;

// One node works at a time, and there is one processor. The hook for AES has no other way to them.
static BEGAN: AtomicU32 = AtomicU32::new(0);
static MODEL: AtomicU32 = AtomicU32::new(0);
static BLOCKS: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);
static TO_FRAME: AtomicU32 = AtomicU32::new(NONE);
static TO_FRAME_BLOCKS: AtomicU32 = AtomicU32::new(0);
static TO_FRAME_CALLS: AtomicU32 = AtomicU32::new(0);
static CAUSE: AtomicU32 = AtomicU32::new(0);

/// A turn that is being measured.
pub struct Meter<T>(PhantomData<T>);

impl<T: Ticks> Meter<T> {
    pub fn begin() -> Meter<T> {
        MODEL.store(0, Relaxed);
        BLOCKS.store(0, Relaxed);
        CALLS.store(0, Relaxed);
        TO_FRAME.store(NONE, Relaxed);
        CAUSE.store(0, Relaxed);
        BEGAN.store(T::now(), Relaxed);
        Meter(PhantomData)
    }

    pub fn end(self) -> Cost {
        let whole = Span {
            ticks: so_far::<T>(),
            calls: CALLS.load(Relaxed),
            blocks: BLOCKS.load(Relaxed),
        };
        let ticks = Some(TO_FRAME.load(Relaxed)).filter(|&ticks| ticks != NONE);
        let to_frame = ticks.map(|ticks| Span {
            ticks,
            calls: TO_FRAME_CALLS.load(Relaxed),
            blocks: TO_FRAME_BLOCKS.load(Relaxed),
        });
        const CAUSES: [Cause; 9] = [
            Cause::Other,
            Cause::Head,
            Cause::Data,
            Cause::Coded,
            Cause::Plan,
            Cause::Ctrl,
            Cause::Nack,
            Cause::Survey,
            Cause::Ahead,
        ];
        let cause = CAUSES.get(CAUSE.load(Relaxed) as usize).copied();
        Cost {
            cause: cause.unwrap_or_default(),
            whole,
            to_frame,
        }
    }
}

fn so_far<T: Ticks>() -> u32 {
    let all = BEGAN.load(Relaxed).wrapping_sub(T::now()) & MASK;
    all.saturating_sub(MODEL.load(Relaxed))
}

/// Runs what a chip does by itself.
fn aside<T: Ticks, O>(f: impl FnOnce() -> O) -> O {
    let began = T::now();
    let result = f();
    let took = began.wrapping_sub(T::now()) & MASK;
    MODEL.store(MODEL.load(Relaxed).wrapping_add(took), Relaxed);
    CALLS.store(CALLS.load(Relaxed).wrapping_add(1), Relaxed);
    result
}

/// A chip's model, with the time spent in it.
pub struct Metered<'c, T> {
    chip: &'c RefCell<Chip>,
    ticks: PhantomData<T>,
}

impl<'c, T: Ticks> Metered<'c, T> {
    pub fn new(chip: &'c RefCell<Chip>) -> Metered<'c, T> {
        let ticks = PhantomData;
        Metered { chip, ticks }
    }

    fn note(cause: Cause) {
        CAUSE.store(cause as u32, Relaxed);
    }
}

impl<T: Ticks> Registers for Metered<'_, T> {
    fn read(&mut self, address: u32) -> u32 {
        aside::<T, _>(|| { self.chip }.read(address))
    }

    fn write(&mut self, address: u32, value: u32) {
        // The driver enables a channel of PPI to start a frame, or starts it itself.
        let starts = matches!(address, PPI_CHENSET | radio::TASKS_TXEN);
        if starts && TO_FRAME.load(Relaxed) == NONE {
            TO_FRAME.store(so_far::<T>(), Relaxed);
            TO_FRAME_BLOCKS.store(BLOCKS.load(Relaxed), Relaxed);
            TO_FRAME_CALLS.store(CALLS.load(Relaxed), Relaxed);
        }
        aside::<T, _>(|| { self.chip }.write(address, value));
    }

    fn address(&self, buffer: Buffer) -> u32 {
        self.chip.address(buffer)
    }

    fn load(&self, buffer: Buffer, at: usize, to: &mut [u8]) {
        aside::<T, _>(|| {
            self.chip.load(buffer, at, to);
            // A head is four octets. At place 0 is the length.
            let cause = match (buffer, at, to) {
                (Buffer::Receive, 1, [_, _, _, _]) => Cause::Head,
                (Buffer::Receive, 1, [first, ..]) => match *first {
                    0..0x40 => Cause::Data,
                    0x40..0x80 => Cause::Coded,
                    0xa0 => Cause::Nack,
                    0xb0 => Cause::Plan,
                    0xc0 => Cause::Ctrl,
                    _ => Cause::Survey,
                },
                _ => return,
            };
            Self::note(cause);
        });
    }

    fn store(&mut self, buffer: Buffer, at: usize, from: &[u8]) {
        if CAUSE.load(Relaxed) == Cause::Other as u32 {
            Self::note(Cause::Ahead);
        }
        aside::<T, _>(|| { self.chip }.store(buffer, at, from));
    }

    fn wake_at_interrupt(&mut self, waker: &Waker) {
        aside::<T, _>(|| { self.chip }.wake_at_interrupt(waker));
    }
}

/// The chip's AES for P³.
pub fn unit<T: Ticks>(key: &[u8; 16], block: &mut [u8; 16]) {
    let chip = aside::<T, _>(|| RefCell::new(Chip::new()));
    BLOCKS.fetch_add(1, Relaxed);
    let kept = CAUSE.load(Relaxed);
    encrypt(&mut Metered::<T>::new(&chip), key, block);
    CAUSE.store(kept, Relaxed);
}
