//! Frames on their way to the kernel.

use chappe_core::Class;
use chappe_sys::{BATCH, Endpoint, Socket};

use crate::frame::{HEADER, TAG};

/// Sealed frames that wait for one system call. Their buffers are reused.
#[derive(Debug)]
pub struct Queue {
    slots: Vec<Slot>,
    len: usize,
    /// One bit for each port, all set.
    all: u32,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All neighbours, on every port.
    Broadcast,
    /// One neighbour, where it was last heard.
    Neighbour(Location),
}

/// Where a neighbour is: a port, and an address on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The index of the port.
    pub port: usize,
    /// The neighbour's UDP or Ethernet address.
    pub at: Endpoint,
}

/// One queued frame with its destination.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Header, SDU and tag, at the front of a buffer of full length.
    pub frame: Vec<u8>,
    /// Octets of `frame` in use.
    pub len: usize,
    /// The destination of the frame.
    pub to: Target,
    /// Ports that still have to take it, one bit each.
    pub waits: u32,
    /// Whether any port has taken it.
    pub taken: bool,
    /// Its class, which becomes the socket's priority.
    pub class: Class,
    /// The token of the node's broadcast, for the report that it has left.
    pub broadcast: Option<u32>,
}

impl Queue {
    /// An empty queue for SDUs of up to `sdu_max` octets.
    pub fn new(sdu_max: usize, ports: usize) -> Queue {
        let slot = Slot {
            frame: vec![0; HEADER + sdu_max + TAG],
            len: 0,
            to: Target::Broadcast,
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

    /// The slot of the next frame, to be filled before [`push`](Self::push); `None` when the queue is full.
    pub fn vacant(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(self.len)
    }

    /// Queues the frame in the vacant slot.
    pub fn push(&mut self) {
        let all = self.all;
        if let Some(slot) = self.slots.get_mut(self.len) {
            slot.taken = false;
            slot.waits = match slot.to {
                Target::Broadcast => all,
                Target::Neighbour(place) => 1 << place.port.min(31),
            };
            self.len += 1;
        }
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no vacant slot.
    pub fn is_full(&self) -> bool {
        self.len == self.slots.len()
    }

    /// Whether a frame waits for this port.
    pub fn waits_for(&self, port: usize) -> bool {
        let waiting = self.slots.iter().take(self.len);
        waiting.into_iter().any(|slot| slot.waits >> port & 1 == 1)
    }

    /// Hands the first frames for a port to the kernel, up to the next change of class, since the class is an option of
    /// the socket; returns how many the kernel took.
    pub fn flush(
        &mut self,
        port: usize,
        socket: &mut Socket,
        broadcast: Endpoint,
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
                Target::Broadcast => broadcast,
                Target::Neighbour(place) => place.at,
            };
            Some((slot.frame.get(..slot.len)?, to))
        }))?;
        let sent = self.slots.iter_mut().take(self.len);
        for slot in sent.filter(|slot| slot.waits >> port & 1 == 1).take(taken) {
            (slot.waits, slot.taken) = (slot.waits & !(1 << port), true);
        }
        Ok(taken)
    }

    /// Drops the first frame of a port, or with `all` every frame that waits for it.
    pub fn give_up(&mut self, port: usize, all: bool) {
        let waiting = self.slots.iter_mut().take(self.len);
        let waiting = waiting.filter(|slot| slot.waits >> port & 1 == 1);
        for slot in waiting.take(if all { usize::MAX } else { 1 }) {
            slot.waits &= !(1 << port);
        }
    }

    /// The oldest frame, if there is one.
    pub fn first(&self) -> Option<&Slot> {
        self.slots.get(..self.len)?.first()
    }

    /// Removes the oldest frame. Its buffer moves to the end for reuse.
    pub fn pop(&mut self) {
        if self.len > 0 {
            self.slots.rotate_left(1);
            self.len -= 1;
        }
    }
}
