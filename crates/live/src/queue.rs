//! Frames on their way to the kernel.

use chappe_core::Class;
use chappe_sys::{BATCH, Endpoint, Socket};

use crate::frame::{EPOCH, HEADER, TAG};

/// A few frames that are finished and wait for one system call. Their buffers are used again and again.
#[derive(Debug)]
pub struct Queue {
    slots: Vec<Slot>,
    len: usize,
    /// The bits of all ports.
    all: u32,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To everybody, on every port.
    Everybody,
    /// To one neighbour.
    One(Place),
}

/// Where a neighbour is: on which port, and there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port's number.
    pub port: usize,
    /// The neighbour's address below ours.
    pub at: Endpoint,
}

/// One frame.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Header, SDU and tag; of `len` octets.
    pub frame: Vec<u8>,
    /// How many octets of `frame` count.
    pub len: usize,
    /// Where it goes.
    pub to: Target,
    /// Ports that have not taken it yet, a bit for each; whether one has.
    pub waits: u32,
    /// Whether a port has taken it.
    pub taken: bool,
    /// How urgent it is.
    pub class: Class,
    /// What the node is to be told when it has left: the token of a broadcast.
    pub broadcast: Option<u32>,
}

impl Queue {
    /// Empty; frames hold SDUs of up to `sdu_max` octets.
    pub fn new(sdu_max: usize, ports: usize) -> Queue {
        let slot = Slot {
            frame: vec![0; HEADER + EPOCH + sdu_max + TAG],
            len: 0,
            to: Target::Everybody,
            waits: 0,
            taken: false,
            class: Class::Data,
            broadcast: None,
        };
        Queue {
            slots: vec![slot; BATCH],
            len: 0,
            all: u32::MAX >> (32 - ports.clamp(1, 32)),
        }
    }

    /// The place of the next frame, to be filled before [`push`](Self::push); `None` when the queue is full.
    pub fn vacant(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(self.len)
    }

    /// The frame in the vacant place is finished.
    pub fn push(&mut self) {
        let all = self.all;
        if let Some(slot) = self.slots.get_mut(self.len) {
            slot.taken = false;
            slot.waits = match slot.to {
                Target::Everybody => all,
                Target::One(place) => 1 << place.port.min(31),
            };
            self.len += 1;
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no vacant place.
    pub fn is_full(&self) -> bool {
        self.len == self.slots.len()
    }

    /// Whether something waits for a port.
    pub fn waits_for(&self, port: usize) -> bool {
        let waiting = self.slots.iter().take(self.len);
        waiting.into_iter().any(|slot| slot.waits >> port & 1 == 1)
    }

    /// Hands the first frames for a port, as many as are of one class, to the kernel; returns how many it took.
    pub fn flush(
        &mut self,
        port: usize,
        socket: &mut Socket,
        everybody: Endpoint,
    ) -> chappe_sys::Result<usize> {
        let waits = |slot: &&Slot| slot.waits >> port & 1 == 1;
        let waiting = self.slots.get(..self.len).unwrap_or(&[]);
        let Some(first) = waiting.iter().find(waits) else {
            return Ok(0);
        };
        socket.set_class(first.class)?;
        let alike = waiting.iter().filter(waits);
        let alike = alike.take_while(|slot| slot.class == first.class);
        let taken = socket.send(alike.filter_map(|slot| {
            let to = match slot.to {
                Target::Everybody => everybody,
                Target::One(place) => place.at,
            };
            Some((slot.frame.get(..slot.len)?, to))
        }))?;
        let sent = self.slots.iter_mut().take(self.len);
        for slot in sent.filter(|slot| slot.waits >> port & 1 == 1).take(taken) {
            (slot.waits, slot.taken) = (slot.waits & !(1 << port), true);
        }
        Ok(taken)
    }

    /// A port will not have its first frame; `all`: nor any other that waits.
    pub fn give_up(&mut self, port: usize, all: bool) {
        let waiting = self.slots.iter_mut().take(self.len);
        let waiting = waiting.filter(|slot| slot.waits >> port & 1 == 1);
        for slot in waiting.take(if all { usize::MAX } else { 1 }) {
            slot.waits &= !(1 << port);
        }
    }

    /// The first frame.
    pub fn first(&self) -> Option<&Slot> {
        self.slots.get(..self.len)?.first()
    }

    /// Takes the first frame off. Its buffer goes to the end.
    pub fn pop(&mut self) {
        if self.len > 0 {
            self.slots.rotate_left(1);
            self.len -= 1;
        }
    }
}
