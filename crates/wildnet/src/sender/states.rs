//! Bodies on their way from one state to the next.

use super::*;

/// States of bodies.
impl Sender {
    pub(super) fn place(&self, seq: u32) -> usize {
        seq as usize & self.entries.len().wrapping_sub(1)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, count) = (self.base, self.next.wrapping_sub(self.base));
        (0..count).map(move |i| base.wrapping_add(i))
    }

    /// Whether a body has a place: it is under way, or in doubt, or not older than one that is.
    pub(super) fn is_open(&self, seq: u32) -> bool {
        seq.wrapping_sub(self.floor) < self.next.wrapping_sub(self.floor)
    }

    pub(super) fn entry(&self, seq: u32) -> Option<&Entry> {
        self.entries
            .get(self.place(seq))
            .filter(|_| self.is_open(seq))
    }

    pub(super) fn entry_mut(&mut self, seq: u32) -> Option<&mut Entry> {
        let (place, open) = (self.place(seq), self.is_open(seq));
        self.entries.get_mut(place).filter(|_| open)
    }

    pub(super) fn state(&self, seq: u32) -> Option<State> {
        self.entry(seq).map(|entry| entry.state)
    }

    pub(super) fn is_missing(&self, seq: u32) -> bool {
        matches!(self.state(seq), Some(State::Flight | State::Lost))
    }

    pub(super) fn service(&self, index: u8) -> Service {
        let services = &self.config.services;
        services
            .get(usize::from(index))
            .copied()
            .unwrap_or(Service::RELIABLE)
    }

    pub(super) fn repeats(&self) -> bool {
        match self.config.recovery {
            Recovery::None => false,
            Recovery::Acks | Recovery::Improved { .. } => true,
            Recovery::Blocks { repeat, .. } => repeat,
        }
    }

    /// A frame is settled: if its body has not arrived and has not been sent again, it is lost.
    pub(super) fn settle(&mut self, now: Instant, number: u32, ack: &Ack<'_>) {
        let Some(&Logged {
            seq, octets, at, ..
        }) = self.logged(number)
        else {
            return;
        };
        self.in_flight = self.in_flight.saturating_sub(octets.into());
        let Some(seq) = seq else {
            if self.has_cohorts() {
                self.settle_cohort(now, number, ack);
            }
            return;
        };
        let current = self
            .entry(seq)
            .is_some_and(|entry| entry.state == State::Flight && entry.frame == number);
        if !current || ack.has(seq).is_none() {
            return;
        }
        self.note_loss(now.saturating_since(at));
        match self.config.recovery {
            Recovery::None => self.give_up(seq),
            // The block's repairs may bring it: decided at the end of the round.
            Recovery::Blocks { .. } => {
                if let Some(entry) = self.entry_mut(seq) {
                    entry.state = State::Lost;
                }
            }
            Recovery::Acks | Recovery::Improved { .. } => self.lose_or_give_up(now, seq),
        }
    }

    pub(super) fn lose(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Lost;
            self.lost.push_back(seq);
        }
    }

    pub(super) fn lose_or_give_up(&mut self, now: Instant, seq: u32) {
        let Some(&Entry {
            service,
            tries,
            offered,
            ..
        }) = self.entry(seq)
        else {
            return;
        };
        let service = self.service(service);
        let spent = service.retries.is_some_and(|limit| tries > limit);
        if spent || self.is_late(now, &service, offered) {
            self.give_up(seq);
        } else {
            self.lose(seq);
        }
    }

    pub(super) fn move_base(&mut self) {
        while self.has_open() && !self.is_missing(self.base) {
            self.base = self.base.wrapping_add(1);
        }
        self.move_floor();
    }

    /// The next lost body that still matters.
    pub(super) fn next_lost(&mut self, now: Instant) -> Option<u32> {
        loop {
            // Oldest first, whatever the order in which losses became known.
            let place = (0..self.lost.len()).min_by_key(|&i| {
                self.lost
                    .get(i)
                    .map_or(u32::MAX, |seq| seq.wrapping_sub(self.base))
            })?;
            let seq = self.lost.remove(place)?;
            if self.state(seq) != Some(State::Lost) {
                continue;
            }
            let Some(&Entry {
                service, offered, ..
            }) = self.entry(seq)
            else {
                continue;
            };
            let service = self.service(service);
            if self.is_late(now, &service, offered) {
                self.give_up(seq);
                self.move_base();
                continue;
            }
            return Some(seq);
        }
    }

    /// When the present round began: rounds are planned from there, so it must be one moment for all of it.
    pub(super) fn round_began(&self, now: Instant) -> Instant {
        self.slot_at.unwrap_or(now)
    }

    /// Whether sending again is of no use any more.
    fn is_late(&self, now: Instant, service: &Service, offered: Instant) -> bool {
        let deadline = service.deadline.filter(|_| service.drop_late);
        self.is_past(now, deadline.map(|deadline| offered + deadline))
    }

    /// What would come too late even in the round that begins now is not sent again, and no repair is made for it.
    pub(super) fn give_up_late(&mut self, now: Instant) {
        for seq in self.open() {
            let late = self.entry(seq).is_some_and(|entry| {
                let service = self.service(entry.service);
                entry.state == State::Lost && self.is_late(now, &service, entry.offered)
            });
            if late {
                self.give_up(seq);
            }
        }
        self.move_base();
    }

    pub(super) fn send_again(&mut self, seq: u32) -> Choice {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Flight;
            entry.tries = entry.tries.saturating_add(1);
        }
        self.counters.repeats += 1;
        Choice::Body(seq)
    }

    pub(super) fn send_new(&mut self, now: Instant) -> Option<Choice> {
        let service = self
            .waiting
            .queues
            .iter()
            .position(|queue| !queue.is_empty())?;
        let order = self.config.services.get(service)?.order;
        let (seq, place) = (self.next, self.place(self.next));
        let mut first: Option<Queued> = None;
        self.drop_late(now, service);
        while let Some(queued) = self.waiting.queues.get(service)?.front().copied() {
            let packet = self.waiting.packets.get(queued.place);
            let length = (packet.len() as u16).to_be_bytes();
            match first {
                None => {
                    let number = self.flows.get_mut(usize::from(queued.flow))?;
                    let head = body_head(order, queued.flow, *number);
                    *number = number.wrapping_add(1);
                    self.bodies.put(place, &[&head, &length, packet]);
                    first = Some(queued);
                }
                Some(first) => {
                    let needed = self.bodies.get(place).len() + LENGTH + packet.len();
                    if !self.config.bundle
                        || first.flow != queued.flow
                        || needed > self.config.body_max()
                    {
                        break;
                    }
                    self.bodies.append(place, &length);
                    self.bodies.append(place, packet);
                }
            }
            self.waiting.queues.get_mut(service)?.pop_front();
            self.waiting.free.push(queued.place);
            self.counters.packets += 1;
        }
        // What is never dropped for being late is not hurried for having waited: others wait behind it.
        let promise = self.service(service as u8);
        let offered = if promise.drop_late {
            first?.offered
        } else {
            now
        };
        self.next = seq.wrapping_add(1);
        self.move_floor();
        let frame = self.number;
        if let Some(entry) = self.entry_mut(seq) {
            *entry = Entry {
                state: State::Flight,
                service: service as u8,
                tries: 1,
                offered,
                frame,
            };
        }
        let deadline = promise.deadline.map(|deadline| offered + deadline);
        let left = self.rounds_left(now, deadline);
        if self
            .blocks
            .open_service()
            .is_some_and(|open| open != service)
            || self.is_cut_off(now)
        {
            self.close_open_block(now);
        }
        self.count_new(now, service);
        if self.blocks.add(seq, (service, deadline, left)) {
            self.close_open_block(now);
        }
        self.remember_small(seq);
        self.counters.bodies += 1;
        Some(Choice::Body(seq))
    }

    /// Throws away what has waited too long to be of use.
    pub(super) fn drop_late(&mut self, now: Instant, service: usize) {
        let promise = self.service(service as u8);
        let Some(deadline) = promise.deadline.filter(|_| promise.drop_late) else {
            return;
        };
        let Some(queue) = self.waiting.queues.get_mut(service) else {
            return;
        };
        while let Some(queued) =
            queue.pop_front_if(|queued| now + self.one_way > queued.offered + deadline)
        {
            self.waiting.free.push(queued.place);
            self.counters.expired += 1;
        }
    }

    pub(super) fn close_open_block(&mut self, now: Instant) {
        if let Some((service, size)) = self.blocks.open_block() {
            let repairs = self.repairs_for(now, service, size);
            self.close_block(repairs);
        }
    }

    /// In turns: the slot is over, so nothing joins the open block any more, and no repair goes with it in its first round.
    pub(super) fn close_cut_block(&mut self, now: Instant) {
        if let Some((service, size)) = self.blocks.open_block() {
            let (_, rounds) = self.repairs_for(now, service, size);
            self.blocks.close((0, rounds));
        }
    }
}
