//! Bodies that were given up before any report told whether they had come.
//!
//! Of what lies before the base that frames carry, the peer reports everything as settled, whether it had come or not. So that
//! the counts say what was lost, and not what was not reported in time, the base in frames waits for a report on
//! whatever may have carried such a body. Only where that holds nothing up: packets that need no order.

use super::*;

impl Sender {
    /// The base that frames carry.
    pub fn told_base(&self) -> u32 {
        self.floor
    }

    pub(super) fn give_up(&mut self, seq: u32) {
        let newest = self.number.wrapping_sub(1);
        let reported = !before(self.settled, newest) || self.slot_at.is_some();
        let coded = matches!(self.config.recovery, Recovery::Improved { .. });
        let Some(service) = self.entry(seq).map(|entry| entry.service) else {
            return;
        };
        let free = self.service(service).order == Order::None;
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = match coded && free && !reported {
                true => State::Doubtful { newest },
                false => State::GivenUp,
            };
            self.counters.given_up += 1;
        }
    }

    /// Takes from a report what it says about bodies given up.
    pub(super) fn resolve_doubts(&mut self, now: Instant, ack: &Ack<'_>) {
        let (floor, count) = (self.floor, self.next.wrapping_sub(self.floor));
        for seq in (0..count).map(|i| floor.wrapping_add(i)) {
            let Some(State::Doubtful { newest }) = self.state(seq) else {
                continue;
            };
            match ack.has(seq) {
                Some(true) => {
                    self.counters.given_up = self.counters.given_up.saturating_sub(1);
                    self.arrived(now, seq, ack);
                }
                Some(false) if !before(ack.highest, newest) => {
                    if let Some(entry) = self.entry_mut(seq) {
                        entry.state = State::GivenUp;
                    }
                }
                _ => {}
            }
        }
    }

    /// The base in frames follows the base up to the first body in doubt. Half a window of others is not held back.
    pub(super) fn move_floor(&mut self) {
        while self.floor != self.base
            && !matches!(self.state(self.floor), Some(State::Doubtful { .. }))
        {
            self.floor = self.floor.wrapping_add(1);
        }
        if self.next.wrapping_sub(self.floor) >= self.window / 2 {
            self.floor = self.base;
        }
    }

    /// A body is reported.
    pub(super) fn arrived(&mut self, now: Instant, seq: u32, ack: &Ack<'_>) {
        let Some(&Entry {
            service, offered, ..
        }) = self.entry(seq)
        else {
            return;
        };
        let took = self.arrival(now, seq, ack).saturating_since(offered);
        let deadline = self.service(service).deadline;
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Done;
        }
        self.counters.delivered += 1;
        self.counters.late += u64::from(deadline.is_some_and(|deadline| took > deadline));
    }

    /// When a body that is reported came at the latest. A report is a way back old; and if the one before it was lost,
    /// what it says was so long before: all came before the newest frame did, each with its own frame if none
    /// of those that this report is about was lost, and what was given up with a frame that had left before.
    fn arrival(&self, now: Instant, seq: u32, ack: &Ack<'_>) -> Instant {
        let by_now = Instant::ZERO + now.saturating_since(Instant::ZERO + self.one_way);
        // In turns a report comes when the slot is over, whatever was sent in it.
        if self.slot_at.is_some() {
            return by_now;
        }
        let (highest, received) = self.reported;
        let frames = ack.highest.wrapping_sub(highest);
        let all = u32::from(ack.received.wrapping_sub(received)) == frames;
        let number = match self.entry(seq) {
            Some(&Entry {
                state: State::Doubtful { newest },
                ..
            }) => newest,
            Some(&Entry { frame, .. })
                if all && before(highest, frame) && !before(ack.highest, frame) =>
            {
                frame
            }
            _ => ack.highest,
        };
        let came = self.logged(number).map(|logged| logged.at + self.one_way);
        came.map_or(by_now, |came| came.min(by_now))
    }
}
