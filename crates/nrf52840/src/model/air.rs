//! Frames on the air, and time.

use chappe_core::Channel;

use super::{COMPARES, Chip, HEADER, NEXT, OCTET, OnAir, QUIET, RECEIVE, State, TRANSMIT};
use crate::registers::radio;
use radio::short;

/// A frame that the radio receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    started: u64,
    len: usize,
    psdu: [u8; 127],
    good: bool,
    /// What has been raised: FRAMESTART, BCMATCH.
    begun: bool,
    matched: bool,
}

impl Arriving {
    fn end(&self) -> u64 {
        self.started + HEADER + (self.len as u64 + 2) * OCTET
    }
}

impl Chip {
    /// A frame begins to arrive now on a channel: with this power, and a good check sequence or a wrong one. Energy is on the
    /// air in any case; the frame is received if the radio listens and receives none.
    pub fn arrive(&mut self, frame: &OnAir, power: f64, good: bool) {
        let arriving = Arriving {
            started: self.now,
            len: frame.len,
            psdu: frame.psdu,
            good,
            begun: false,
            matched: false,
        };
        if self.channel() == frame.channel {
            self.energy = ((-power) as u32, arriving.end());
            if self.state == State::Receiving && self.arriving.is_none() {
                self.arriving = Some(arriving);
            }
        }
    }

    pub(super) fn sample(&mut self) {
        let (level, until) = self.energy;
        self.rssi = if self.now < until { level } else { QUIET };
        if self.state != State::Receiving {
            self.faults += 1;
        }
    }

    pub(super) fn put_on_air(&mut self) {
        if !matches!(self.latched, TRANSMIT | NEXT) {
            self.faults += 1;
        }
        let memory = self.buffer(self.latched);
        let mut psdu = [0; 127];
        let octets = u64::from(memory[0]);
        let len = usize::from(memory[0]).saturating_sub(2);
        psdu.iter_mut()
            .zip(memory.iter().skip(1))
            .take(len)
            .for_each(|(to, &from)| *to = from);
        self.sending = octets;
        self.sent = Some(OnAir {
            started: self.now,
            channel: Channel((self.frequency / 5 + 10) as u8),
            len,
            psdu,
        });
    }

    /// When the chip will do something by itself.
    pub fn next(&self) -> Option<u64> {
        let state = match self.state {
            State::RampingUp { until, .. } | State::Disabling { until } => Some(until),
            State::Sending { since } => Some(since + HEADER + self.sending * OCTET),
            _ => None,
        };
        let arriving = self.arriving.map(|frame| match frame {
            Arriving { begun: false, .. } => frame.started + HEADER,
            _ => self.matches(&frame).unwrap_or(frame.end()),
        });
        let compares = (0..COMPARES).filter_map(|channel| self.compare_at(channel));
        compares.chain(state).chain(arriving).min()
    }

    /// When the bit counter matches, if it still will.
    fn matches(&self, frame: &Arriving) -> Option<u64> {
        let counts = self.shorts & short::FRAMESTART_BCSTART != 0 && self.bit_count > 0;
        let at = frame.started + HEADER + u64::from(self.bit_count) * (OCTET / 8);
        (counts && !frame.matched && at <= frame.end()).then_some(at)
    }

    /// When a compare register will match, which it does once in each wrap of the timer.
    fn compare_at(&self, channel: usize) -> Option<u64> {
        let (since, cc) = (self.timer_since?, *self.cc.get(channel)?);
        // Capture registers never match: the driver reads them only.
        let listens = matches!(channel, 0 | 2);
        let count = self.count();
        let ahead = u64::from(cc.wrapping_sub(count as u32));
        // A tick is 62.5 ns.
        let at = since + ((count + ahead) * 125).div_ceil(2);
        (listens && ahead > 0).then_some(at)
    }

    /// Runs the chip until `to`, in ns.
    pub fn advance(&mut self, to: u64) {
        while let Some(at) = self.next().filter(|&at| at <= to) {
            let compares: [bool; COMPARES] =
                core::array::from_fn(|channel| self.compare_at(channel) == Some(at));
            self.now = at.max(self.now);
            self.change_state();
            self.receive();
            for (channel, due) in compares.into_iter().enumerate() {
                if due {
                    self.raise_compare(channel);
                }
            }
        }
        self.now = to.max(self.now);
    }

    fn change_state(&mut self) {
        let now = self.now;
        match self.state {
            State::RampingUp { sends, until } if until <= now => {
                self.state = State::Idle { sends };
                self.raise(match sends {
                    true => radio::EVENTS_TXREADY,
                    false => radio::EVENTS_RXREADY,
                });
            }
            State::Disabling { until } if until <= now => {
                self.state = State::Disabled;
                self.raise(radio::EVENTS_DISABLED);
            }
            State::Sending { since } if since + HEADER + self.sending * OCTET <= now => {
                self.state = State::Idle { sends: true };
                self.raise(radio::EVENTS_END);
                self.raise(radio::EVENTS_PHYEND);
            }
            _ => {}
        }
    }

    fn receive(&mut self) {
        let Some(mut frame) = self.arriving else {
            return;
        };
        if !frame.begun && frame.started + HEADER <= self.now {
            frame.begun = true;
            self.arriving = Some(frame);
            if self.latched != RECEIVE {
                self.faults += 1;
            }
            let memory = self.buffer_mut(RECEIVE);
            memory[0] = frame.len as u8 + 2;
            self.raise(radio::EVENTS_FRAMESTART);
            return;
        }
        if let Some(at) = self.matches(&frame).filter(|&at| at <= self.now) {
            frame.matched = true;
            self.arriving = Some(frame);
            let octets = ((at - frame.started - HEADER) / OCTET) as usize;
            self.write_memory(&frame, octets);
            self.raise(radio::EVENTS_BCMATCH);
            return;
        }
        if frame.begun && frame.end() <= self.now {
            self.arriving = None;
            self.write_memory(&frame, frame.len);
            self.crc_good = frame.good;
            self.state = State::Idle { sends: false };
            self.raise(radio::EVENTS_END);
        }
    }

    /// EasyDMA has written this much of a frame.
    fn write_memory(&mut self, frame: &Arriving, octets: usize) {
        let memory = self.buffer_mut(RECEIVE);
        memory
            .iter_mut()
            .skip(1)
            .zip(frame.psdu)
            .take(octets.min(frame.len))
            .for_each(|(to, from)| *to = from);
    }
}
