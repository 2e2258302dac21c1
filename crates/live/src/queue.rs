//! Frames on their way to the kernel.

use chappe_core::Class;
use chappe_sys::{BATCH, Endpoint, Socket};

use crate::frame::{EPOCH, HEADER, TAG};

/// A few frames that are finished and wait for one system call. Their buffers are used again and again.
#[derive(Debug)]
pub struct Queue {
    slots: Vec<Slot>,
    len: usize,
}

/// One frame.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Header, SDU and tag; of `len` octets.
    pub frame: Vec<u8>,
    /// How many octets of `frame` count.
    pub len: usize,
    /// Where it goes.
    pub to: Endpoint,
    /// How urgent it is.
    pub class: Class,
    /// What the node is to be told when it has left: the token of a broadcast.
    pub broadcast: Option<u32>,
}

impl Queue {
    /// Empty; frames hold SDUs of up to `sdu_max` octets.
    pub fn new(sdu_max: usize, anywhere: Endpoint) -> Queue {
        let slot = Slot {
            frame: vec![0; HEADER + EPOCH + sdu_max + TAG],
            len: 0,
            to: anywhere,
            class: Class::Data,
            broadcast: None,
        };
        Queue {
            slots: vec![slot; BATCH],
            len: 0,
        }
    }

    /// The place of the next frame, to be filled before [`push`](Self::push); `None` when the queue is full.
    pub fn vacant(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(self.len)
    }

    /// The frame in the vacant place is finished.
    pub fn push(&mut self) {
        self.len = (self.len + 1).min(self.slots.len());
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands the first frames, as many as are of one class, to the kernel; returns how many it took.
    pub fn flush(&self, socket: &mut Socket) -> chappe_sys::Result<usize> {
        let waiting = self.slots.get(..self.len).unwrap_or(&[]);
        let Some(first) = waiting.first() else {
            return Ok(0);
        };
        socket.set_class(first.class)?;
        let alike = waiting.iter().take_while(|slot| slot.class == first.class);
        socket.send(alike.filter_map(|slot| Some((slot.frame.get(..slot.len)?, slot.to))))
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
