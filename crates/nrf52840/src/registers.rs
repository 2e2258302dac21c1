//! The registers that the driver uses, by their addresses (PS, tables "Register overview").

use core::task::Waker;

/// How the driver reaches the chip. On the chip: volatile words at these addresses, two buffers for EasyDMA, and a waker
/// that the interrupts of RADIO and TIMER3 wake.
pub trait Registers {
    /// Reads the register at this address.
    fn read(&mut self, address: u32) -> u32;

    /// Writes the register at this address.
    fn write(&mut self, address: u32, value: u32);

    /// The address of a buffer in RAM, a multiple of four: 128 octets that a peripheral reads or writes.
    fn address(&self, buffer: Buffer) -> u32;

    /// Copies octets of a buffer from place `at` on, as far as it goes. No peripheral is using these octets.
    fn load(&self, buffer: Buffer, at: usize, to: &mut [u8]);

    /// Copies octets to a buffer from place `at` on, as far as it goes. No peripheral is using these octets.
    fn store(&mut self, buffer: Buffer, at: usize, from: &[u8]);

    /// The task to wake at the next interrupt. Interrupts stay masked until then.
    fn wake_at_interrupt(&mut self, waker: &Waker);
}

/// Memory that a peripheral uses by itself. A frame is its length octet (PHR), then its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A frame that is sent.
    Transmit,
    /// The frame to send after that in `Transmit`, or before it: the driver uses them in turn.
    Next,
    /// The frame that is received.
    Receive,
    /// What the unit for AES works on: key, block, encrypted block, 16 octets each.
    Cipher,
}

/// The peripheral RADIO: tasks, events and settings.
#[allow(missing_docs, reason = "the names of the product specification")]
pub mod radio {
    const BASE: u32 = 0x4000_1000;
    pub const TASKS_TXEN: u32 = BASE;
    pub const TASKS_RXEN: u32 = BASE + 0x004;
    pub const TASKS_START: u32 = BASE + 0x008;
    pub const TASKS_DISABLE: u32 = BASE + 0x010;
    pub const TASKS_RSSISTART: u32 = BASE + 0x014;
    pub const EVENTS_END: u32 = BASE + 0x10c;
    pub const EVENTS_DISABLED: u32 = BASE + 0x110;
    pub const EVENTS_BCMATCH: u32 = BASE + 0x128;
    pub const EVENTS_FRAMESTART: u32 = BASE + 0x138;
    pub const EVENTS_TXREADY: u32 = BASE + 0x154;
    pub const EVENTS_RXREADY: u32 = BASE + 0x158;
    pub const EVENTS_PHYEND: u32 = BASE + 0x16c;
    pub const SHORTS: u32 = BASE + 0x200;
    pub const INTENSET: u32 = BASE + 0x304;
    pub const CRCSTATUS: u32 = BASE + 0x400;
    pub const PACKETPTR: u32 = BASE + 0x504;
    pub const FREQUENCY: u32 = BASE + 0x508;
    pub const TXPOWER: u32 = BASE + 0x50c;
    pub const MODE: u32 = BASE + 0x510;
    pub const PCNF0: u32 = BASE + 0x514;
    pub const PCNF1: u32 = BASE + 0x518;
    pub const CRCCNF: u32 = BASE + 0x534;
    pub const CRCPOLY: u32 = BASE + 0x538;
    pub const CRCINIT: u32 = BASE + 0x53c;
    pub const RSSISAMPLE: u32 = BASE + 0x548;
    pub const BCC: u32 = BASE + 0x560;
    pub const MODECNF0: u32 = BASE + 0x650;
    pub const POWER: u32 = BASE + 0xffc;

    /// Bits of SHORTS: which event starts which task.
    pub mod short {
        pub const DISABLED_TXEN: u32 = 1 << 2;
        pub const DISABLED_RXEN: u32 = 1 << 3;
        pub const FRAMESTART_BCSTART: u32 = 1 << 14;
        pub const TXREADY_START: u32 = 1 << 18;
        pub const RXREADY_START: u32 = 1 << 19;
    }

    /// Bits of INTENSET: the events' places from 0x100 on, a word each.
    pub mod interrupt {
        pub const END: u32 = 1 << 3;
        pub const BCMATCH: u32 = 1 << 10;
        pub const FRAMESTART: u32 = 1 << 14;
        pub const RXREADY: u32 = 1 << 22;
        pub const PHYEND: u32 = 1 << 27;
    }
}

/// The peripheral ECB, which encrypts a block by AES-128.
#[allow(missing_docs, reason = "the names of the product specification")]
pub mod ecb {
    const BASE: u32 = 0x4000_e000;
    pub const TASKS_STARTECB: u32 = BASE;
    pub const EVENTS_ENDECB: u32 = BASE + 0x100;
    pub const EVENTS_ERRORECB: u32 = BASE + 0x104;
    pub const ECBDATAPTR: u32 = BASE + 0x504;
}

/// TIMER3: one of the two timers with six compare registers.
#[allow(missing_docs, reason = "the names of the product specification")]
pub mod timer {
    const BASE: u32 = 0x4001_a000;
    pub const TASKS_START: u32 = BASE;
    pub const TASKS_CLEAR: u32 = BASE + 0x00c;
    pub const INTENSET: u32 = BASE + 0x304;
    pub const MODE: u32 = BASE + 0x504;
    pub const BITMODE: u32 = BASE + 0x508;
    pub const PRESCALER: u32 = BASE + 0x510;

    pub const fn capture(channel: u32) -> u32 {
        BASE + 0x040 + 4 * channel
    }

    pub const fn compare(channel: u32) -> u32 {
        BASE + 0x140 + 4 * channel
    }

    pub const fn cc(channel: u32) -> u32 {
        BASE + 0x540 + 4 * channel
    }
}

/// The base of PPI, which joins events and tasks without the processor.
pub const PPI: u32 = 0x4001_f000;

/// The register with the event of a PPI channel.
pub const fn ppi_event(channel: u32) -> u32 {
    PPI + 0x510 + 8 * channel
}

/// The register with the task of a PPI channel.
pub const fn ppi_task(channel: u32) -> u32 {
    PPI + 0x514 + 8 * channel
}

/// Enables and disables channels of PPI.
pub(crate) const PPI_CHENSET: u32 = PPI + 0x504;
pub(crate) const PPI_CHENCLR: u32 = PPI + 0x508;
