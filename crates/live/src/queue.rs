//! Frames on their way to the kernel.

use std::collections::VecDeque;

use chappe_core::Class;
use chappe_sys::{BATCH, Endpoint, Run, Socket};

use crate::frame::{HEADER, TAG};

/// Frames that the queue holds. UDP_SEGMENT puts 44 of 1500 octets into one run, so that a call takes them as two.
pub const SLOTS: usize = 2 * BATCH;

/// Sealed frames that wait for one system call. Their buffers are reused.
#[derive(Debug)]
pub struct Queue {
    slots: VecDeque<Slot>,
    len: usize,
    /// One bit for each port, all set.
    all: u32,
    /// The octets of the runs of one system call, one frame after the other.
    octets: Vec<u8>,
    runs: Vec<Alike>,
}

/// Frames of one length to one destination; the last one may be shorter.
#[derive(Clone, Copy, Debug)]
struct Alike {
    to: Endpoint,
    segment: usize,
    len: usize,
    count: usize,
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
            slots: VecDeque::from(vec![slot; SLOTS]),
            len: 0,
            all: u32::MAX >> (32 - ports.clamp(1, 32)),
            octets: Vec::new(),
            runs: Vec::with_capacity(SLOTS),
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
    /// the socket; returns how many the kernel took. With `cuts`, frames of one length go as one; it becomes false if this kernel or
    /// interface cannot cut them apart.
    pub fn flush(
        &mut self,
        port: usize,
        socket: &mut Socket,
        broadcast: Endpoint,
        cuts: &mut bool,
    ) -> chappe_sys::Result<usize> {
        let waits = |slot: &&Slot| slot.waits >> port & 1 == 1;
        let waiting = self.slots.iter().take(self.len);
        let Some(first) = waiting.clone().find(waits) else {
            return Ok(0);
        };
        socket.set_class(first.class)?;
        let alike = waiting.filter(waits);
        let alike = alike.take_while(|slot| slot.class == first.class);
        let frames = alike.filter_map(|slot| {
            let to = match slot.to {
                Target::Broadcast => broadcast,
                Target::Neighbour(place) => place.at,
            };
            Some((slot.frame.get(..slot.len)?, to))
        });
        let joined = match *cuts {
            true => {
                join(frames.clone(), &mut self.octets, &mut self.runs);
                self.runs.iter().any(|run| run.count > 1)
            }
            false => false,
        };
        let taken = match joined {
            true => match socket.send_runs(runs(&self.octets, &self.runs)) {
                Ok(sent) => self.runs.iter().take(sent).map(|run| run.count).sum(),
                Err(error) if error.is_gone() || error.is_down() || error.is_out_of_buffers() => {
                    return Err(error);
                }
                // If the frames can leave one by one, joining them was the fault.
                Err(_) => {
                    let taken = socket.send(frames)?;
                    *cuts = taken == 0;
                    taken
                }
            },
            false => socket.send(frames)?,
        };
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
        self.slots.front().filter(|_| self.len > 0)
    }

    /// Removes the oldest frame. Its buffer moves to the end for reuse.
    pub fn pop(&mut self) {
        if self.len > 0 {
            self.slots.rotate_left(1);
            self.len -= 1;
        }
    }
}

/// Writes frames one after the other, and notes the runs that they form.
fn join<'a>(
    frames: impl Iterator<Item = (&'a [u8], Endpoint)>,
    octets: &mut Vec<u8>,
    runs: &mut Vec<Alike>,
) {
    octets.clear();
    runs.clear();
    for (frame, to) in frames {
        let len = frame.len();
        octets.extend_from_slice(frame);
        let fits = |run: &&mut Alike| {
            // A shorter one is the last.
            let open = run.len == run.segment * run.count && len <= run.segment;
            open && run.to == to && run.count < Run::COUNT && run.len + len <= Run::LEN
        };
        match runs.last_mut().filter(fits) {
            Some(run) => (run.len, run.count) = (run.len + len, run.count + 1),
            None => runs.push(Alike {
                to,
                segment: len,
                len,
                count: 1,
            }),
        }
    }
}

fn runs<'a>(octets: &'a [u8], runs: &'a [Alike]) -> impl Iterator<Item = Run<'a>> {
    let mut rest = octets;
    runs.iter().map(move |run| {
        let (octets, behind) = rest.split_at_checked(run.len).unwrap_or_default();
        rest = behind;
        let (segment, to) = (run.segment, run.to);
        Run {
            octets,
            segment,
            to,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// Goal: runs hold the frames in order, and the kernel may take each: one destination, one length but for the last, within its limits.
    /// Method: random lengths, of which some repeat, to two destinations.
    #[test]
    fn runs_hold_all_frames_in_order() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        let (mut octets, mut alike, mut longest) = (Vec::new(), Vec::new(), 0);
        for _ in 0..300 {
            let lens = [1, 60, 1452, 1472, 8972];
            let mut len = 1472;
            let frames: Vec<(Vec<u8>, Endpoint)> = (0..random.below(33))
                .map(|number| {
                    if random.below(6) == 0 {
                        len = lens[random.below(5) as usize];
                    }
                    let to = Endpoint::Ethernet([u8::from(random.below(12) == 0); 6]);
                    (vec![number as u8; len], to)
                })
                .collect();
            let given = frames.iter().map(|(frame, to)| (&frame[..], *to));
            join(given, &mut octets, &mut alike);
            let mut got = Vec::new();
            for run in runs(&octets, &alike) {
                let parts: Vec<&[u8]> = run.octets.chunks(run.segment).collect();
                assert!(parts.len() <= Run::COUNT && run.octets.len() <= Run::LEN);
                longest = longest.max(parts.len());
                got.extend(parts.into_iter().map(|part| (part.to_vec(), run.to)));
            }
            assert_eq!(got, frames);
        }
        assert!(longest > 20, "{longest}");
    }
}
