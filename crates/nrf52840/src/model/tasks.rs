//! Registers, tasks, events, shortcuts and PPI.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

use super::{CIPHER, COMPARES, Chip, EVENTS, PPI_CHANNELS, RAMP, RX_DISABLE, State, TX_DISABLE};
use crate::registers::{PPI, ecb, radio, timer};
use radio::short;

/// The place of one of RADIO's events.
const fn place(event: u32) -> usize {
    ((event - radio::TASKS_TXEN - 0x100) / 4) as usize
}

impl Chip {
    pub(super) fn read(&mut self, address: u32) -> u32 {
        let radio_event = address.wrapping_sub(radio::TASKS_TXEN + 0x100) / 4;
        if (radio_event as usize) < EVENTS && address >= radio::TASKS_TXEN + 0x100 {
            return u32::from(self.event(radio_event as usize));
        }
        for channel in 0..COMPARES as u32 {
            let at = channel as usize;
            if address == timer::cc(channel) {
                return self.cc.get(at).copied().unwrap_or(0);
            }
            if address == timer::compare(channel) {
                return u32::from(self.compared.get(at).copied().unwrap_or(false));
            }
        }
        match address {
            radio::RSSISAMPLE => self.rssi,
            radio::CRCSTATUS => u32::from(self.crc_good),
            radio::SHORTS => self.shorts,
            ecb::EVENTS_ENDECB => u32::from(self.encrypted),
            ecb::EVENTS_ERRORECB => 0,
            _ => {
                self.faults += 1;
                0
            }
        }
    }

    pub(super) fn write(&mut self, address: u32, value: u32) {
        let radio_event = address.wrapping_sub(radio::TASKS_TXEN + 0x100) / 4;
        if (radio_event as usize) < EVENTS && address >= radio::TASKS_TXEN + 0x100 {
            if let Some(event) = self.events.get_mut(radio_event as usize) {
                *event = value != 0;
            }
            return;
        }
        if address >= PPI {
            self.write_ppi(address - PPI, value);
            return;
        }
        for channel in 0..COMPARES as u32 {
            let at = channel as usize;
            if address == timer::cc(channel)
                && let Some(cc) = self.cc.get_mut(at)
            {
                *cc = value;
                return;
            }
            if address == timer::compare(channel)
                && let Some(event) = self.compared.get_mut(at)
            {
                *event = value != 0;
                return;
            }
        }
        match address {
            radio::SHORTS => self.shorts = value,
            radio::INTENSET => self.interrupts |= value,
            radio::PACKETPTR => self.pointer = value,
            radio::FREQUENCY => self.frequency = value,
            radio::BCC => self.bit_count = value,
            timer::INTENSET => self.timer_interrupts |= value,
            radio::POWER | radio::MODE | radio::MODECNF0 | radio::PCNF0 | radio::PCNF1 => {}
            radio::CRCCNF | radio::CRCPOLY | radio::CRCINIT | radio::TXPOWER => {}
            timer::MODE | timer::BITMODE => {}
            timer::PRESCALER => self.prescaler = value,
            ecb::ECBDATAPTR => self.cipher_pointer = value,
            ecb::EVENTS_ENDECB => self.encrypted = value != 0,
            task => self.run(task),
        }
    }

    fn write_ppi(&mut self, offset: u32, value: u32) {
        match offset {
            0x504 => self.ppi_enabled |= value,
            0x508 => self.ppi_enabled &= !value,
            0x510.. => {
                let channel = ((offset - 0x510) / 8) as usize;
                match self.ppi.get_mut(channel) {
                    Some((event, _)) if offset.is_multiple_of(8) => *event = value,
                    Some((_, task)) => *task = value,
                    None => self.faults += 1,
                }
            }
            _ => self.faults += 1,
        }
    }

    /// Carries out a task.
    fn run(&mut self, task: u32) {
        for channel in 0..COMPARES as u32 {
            if task == timer::capture(channel) {
                let count = self.count() as u32;
                if let Some(cc) = self.cc.get_mut(channel as usize) {
                    *cc = count;
                }
                return;
            }
        }
        match task {
            timer::TASKS_CLEAR | timer::TASKS_START => {
                // Only the fastest count is modelled.
                self.faults += u32::from(self.prescaler != 0);
                self.timer_since = Some(self.now);
            }
            ecb::TASKS_STARTECB => self.encrypt(),
            radio::TASKS_TXEN => self.enable(true),
            radio::TASKS_RXEN => self.enable(false),
            radio::TASKS_START => self.start(),
            radio::TASKS_DISABLE => self.disable(),
            radio::TASKS_RSSISTART => self.sample(),
            _ => self.faults += 1,
        }
    }

    fn enable(&mut self, sends: bool) {
        match self.state {
            State::Disabled => {
                let until = self.now + RAMP;
                self.state = State::RampingUp { sends, until };
            }
            _ => self.faults += 1,
        }
    }

    fn start(&mut self) {
        self.latched = self.pointer;
        match self.state {
            State::Idle { sends: true } => {
                self.state = State::Sending { since: self.now };
                self.put_on_air();
            }
            State::Idle { sends: false } => self.state = State::Receiving,
            _ => self.faults += 1,
        }
    }

    fn disable(&mut self) {
        let takes = match self.state {
            State::Disabled => {
                self.raise(radio::EVENTS_DISABLED);
                return;
            }
            State::Disabling { .. } => return,
            State::Receiving | State::Idle { sends: false } => RX_DISABLE,
            State::RampingUp { .. } => RX_DISABLE,
            State::Sending { .. } | State::Idle { sends: true } => TX_DISABLE,
        };
        self.arriving = None;
        let until = self.now + takes;
        self.state = State::Disabling { until };
    }

    /// An event of RADIO: remembered, passed to shortcuts and PPI, and to the processor if it asked.
    pub(super) fn raise(&mut self, event: u32) {
        let at = place(event);
        if let Some(happened) = self.events.get_mut(at) {
            *happened = true;
        }
        let shorts = [
            (
                radio::EVENTS_DISABLED,
                short::DISABLED_TXEN,
                radio::TASKS_TXEN,
            ),
            (
                radio::EVENTS_DISABLED,
                short::DISABLED_RXEN,
                radio::TASKS_RXEN,
            ),
            (
                radio::EVENTS_TXREADY,
                short::TXREADY_START,
                radio::TASKS_START,
            ),
            (
                radio::EVENTS_RXREADY,
                short::RXREADY_START,
                radio::TASKS_START,
            ),
        ];
        for (from, bit, task) in shorts {
            if from == event && self.shorts & bit != 0 {
                self.run(task);
            }
        }
        self.join(event);
        if self.interrupts & 1 << at != 0 {
            self.interrupt();
        }
    }

    pub(super) fn raise_compare(&mut self, channel: usize) {
        if let Some(event) = self.compared.get_mut(channel) {
            *event = true;
        }
        self.join(timer::compare(channel as u32));
        if self.timer_interrupts & 1 << (16 + channel) != 0 {
            self.interrupt();
        }
    }

    fn join(&mut self, event: u32) {
        for channel in 0..PPI_CHANNELS {
            let Some(&(from, task)) = self.ppi.get(channel) else {
                continue;
            };
            if self.ppi_enabled & 1 << channel != 0 && from == event {
                self.run(task);
            }
        }
    }

    fn interrupt(&mut self) {
        self.interrupted = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn event(&self, at: usize) -> bool {
        self.events.get(at).copied().unwrap_or(false)
    }

    /// The timer's count at 16 MHz, of which the registers show the low half.
    pub(super) fn count(&self) -> u64 {
        let since = self.timer_since.unwrap_or(self.now);
        (self.now - since) * 2 / 125
    }

    /// AES-128 of the second 16 octets with the first as the key, written behind them (PS, ECB: data structure). It is over
    /// at once: the chip takes some microseconds in which the processor waits.
    fn encrypt(&mut self) {
        if self.cipher_pointer != CIPHER {
            self.faults += 1;
            return;
        }
        let memory = self.buffer_mut(CIPHER);
        let (key, rest) = memory.split_at_mut(16);
        let (clear, rest) = rest.split_at_mut(16);
        let (Ok(key), Ok(clear)) = (<[u8; 16]>::try_from(&*key), <[u8; 16]>::try_from(&*clear))
        else {
            return;
        };
        let mut block = clear.into();
        Aes128::new(&key.into()).encrypt_block(&mut block);
        rest.iter_mut().zip(block).for_each(|(to, from)| *to = from);
        self.encrypted = true;
    }
}
