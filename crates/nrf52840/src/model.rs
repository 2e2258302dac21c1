//! The chip's radio, timer and PPI in memory and in virtual time, as far as the driver uses them.
//!
//! States, ramp-up times and events are those of the product specification (RADIO: figure "Radio states", electrical
//! specification). What the driver does in the wrong state is remembered as a fault, where the chip would misbehave without
//! a word.

mod air;
mod tasks;

use core::cell::RefCell;
use core::task::Waker;

use chappe_core::Channel;

use crate::registers::{Buffer, Registers};
use air::Arriving;

/// Ramp-up in ns (t_TXEN,FAST and t_RXEN,FAST in 802.15.4 mode).
const RAMP: u64 = 40_000;
/// From sending to disabled (t_TXDISABLE in 802.15.4 mode) and from receiving (t_RXDISABLE).
const TX_DISABLE: u64 = 21_000;
const RX_DISABLE: u64 = 500;
/// An octet on the air, and those before the PSDU.
const OCTET: u64 = 32_000;
const HEADER: u64 = 6 * OCTET;
/// Noise without any signal, as RSSISAMPLE shows it.
const QUIET: u32 = 100;

const EVENTS: usize = 32;
const PPI_CHANNELS: usize = 8;
const COMPARES: usize = 6;

/// The states of PS, figure "Radio states"; those of receiving and sending with the time they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disabled,
    RampingUp { sends: bool, until: u64 },
    Idle { sends: bool },
    Receiving,
    Sending { since: u64 },
    Disabling { until: u64 },
}

/// A frame that the chip has put on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnAir {
    /// When its first preamble bit left, in ns.
    pub started: u64,
    /// The channel it is sent on.
    pub channel: Channel,
    /// Octets of the PSDU without the check sequence.
    pub len: usize,
    /// The frame's octets; zeros behind them.
    pub psdu: [u8; 127],
}

/// The part of one nRF52840 that the driver uses.
#[derive(Debug)]
pub struct Chip {
    now: u64,
    state: State,
    /// RADIO's events from 0x100 on.
    events: [bool; EVENTS],
    shorts: u32,
    interrupts: u32,
    pointer: u32,
    /// The buffer that the present frame uses: read from PACKETPTR at START.
    latched: u32,
    frequency: u32,
    bit_count: u32,
    rssi: u32,
    crc_good: bool,
    memory: [[u8; 128]; 4],
    /// Octets of the frame on the air, with its check sequence.
    sending: u64,
    prescaler: u32,
    cipher_pointer: u32,
    encrypted: bool,
    timer_since: Option<u64>,
    cc: [u32; COMPARES],
    compared: [bool; COMPARES],
    timer_interrupts: u32,
    ppi: [(u32, u32); PPI_CHANNELS],
    ppi_enabled: u32,
    arriving: Option<Arriving>,
    /// Energy on the channel until then, as RSSISAMPLE would show it.
    energy: (u32, u64),
    sent: Option<OnAir>,
    interrupted: bool,
    waker: Option<Waker>,
    faults: u32,
}

impl Chip {
    /// A chip after reset.
    pub fn new() -> Chip {
        Chip {
            now: 0,
            state: State::Disabled,
            events: [false; EVENTS],
            shorts: 0,
            interrupts: 0,
            pointer: 0,
            latched: 0,
            frequency: 0,
            bit_count: 0,
            rssi: QUIET,
            crc_good: false,
            memory: [[0; 128]; 4],
            sending: 0,
            prescaler: 0,
            cipher_pointer: 0,
            encrypted: false,
            timer_since: None,
            cc: [0; COMPARES],
            compared: [false; COMPARES],
            timer_interrupts: 0,
            ppi: [(0, 0); PPI_CHANNELS],
            ppi_enabled: 0,
            arriving: None,
            energy: (QUIET, 0),
            sent: None,
            interrupted: false,
            waker: None,
            faults: 0,
        }
    }

    /// The virtual time in ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Whether it receives on a channel now.
    pub fn is_listening(&self, channel: Channel) -> bool {
        self.state == State::Receiving && self.channel() == channel
    }

    /// Tasks that the chip would not carry out in its state, and buffers it would misread. A driver makes none.
    pub fn faults(&self) -> u32 {
        self.faults
    }

    /// The frame that has begun since the last call.
    pub fn take_sent(&mut self) -> Option<OnAir> {
        self.sent.take()
    }

    /// Whether an interrupt is pending.
    pub fn take_interrupt(&mut self) -> bool {
        core::mem::take(&mut self.interrupted)
    }

    fn buffer(&self, address: u32) -> &[u8; 128] {
        let [one, next, receive, cipher] = &self.memory;
        match place_of(address) {
            0 => one,
            1 => next,
            2 => receive,
            _ => cipher,
        }
    }

    fn buffer_mut(&mut self, address: u32) -> &mut [u8; 128] {
        let [one, next, receive, cipher] = &mut self.memory;
        match place_of(address) {
            0 => one,
            1 => next,
            2 => receive,
            _ => cipher,
        }
    }

    fn channel(&self) -> Channel {
        Channel((self.frequency / 5 + 10) as u8)
    }
}

impl Default for Chip {
    fn default() -> Self {
        Chip::new()
    }
}

/// Addresses of the buffers, anywhere in RAM.
const TRANSMIT: u32 = 0x2000_1000;
const NEXT: u32 = 0x2000_2000;
const RECEIVE: u32 = 0x2000_3000;
const CIPHER: u32 = 0x2000_4000;

/// The place of the buffer at an address.
fn place_of(address: u32) -> usize {
    match address {
        TRANSMIT => 0,
        NEXT => 1,
        RECEIVE => 2,
        _ => 3,
    }
}

impl Registers for &RefCell<Chip> {
    fn read(&mut self, address: u32) -> u32 {
        self.borrow_mut().read(address)
    }

    fn write(&mut self, address: u32, value: u32) {
        self.borrow_mut().write(address, value);
    }

    fn address(&self, buffer: Buffer) -> u32 {
        match buffer {
            Buffer::Transmit => TRANSMIT,
            Buffer::Next => NEXT,
            Buffer::Receive => RECEIVE,
            Buffer::Cipher => CIPHER,
        }
    }

    fn load(&self, buffer: Buffer, at: usize, to: &mut [u8]) {
        let chip = self.borrow();
        let from = chip.buffer(self.address(buffer)).iter().skip(at);
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    }

    fn store(&mut self, buffer: Buffer, at: usize, from: &[u8]) {
        let address = self.address(buffer);
        let mut chip = self.borrow_mut();
        // The radio reads the frame while it sends it.
        if matches!(chip.state, State::Sending { .. }) && chip.latched == address {
            chip.faults += 1;
        }
        let to = chip.buffer_mut(address).iter_mut().skip(at);
        to.zip(from).for_each(|(to, &from)| *to = from);
    }

    fn wake_at_interrupt(&mut self, waker: &Waker) {
        let mut chip = self.borrow_mut();
        match chip.interrupted {
            true => waker.wake_by_ref(),
            false => chip.waker = Some(waker.clone()),
        }
    }
}
