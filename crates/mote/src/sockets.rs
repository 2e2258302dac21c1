//! The application of a host whose sockets are used by tasks.

use core::task::Waker;

use chappe_core::Instant;
use chappe_tcplp::host::{Application, Datagram, Outgoing};
use chappe_tcplp::tcp::{Socket, State};

use crate::mailbox::Mailbox;
use crate::waker::Waiting;

/// Tasks that can wait for connections at a time; a further one makes the oldest look again.
const ACCEPTORS: usize = 4;

/// What one TCP socket is used for.
#[derive(Debug, Default)]
pub struct Place {
    /// A task holds the socket.
    taken: bool,
    reader: Waiting,
    writer: Waiting,
}

impl Place {
    /// A socket that no task holds.
    pub const FREE: Place = Place {
        taken: false,
        reader: Waiting::NONE,
        writer: Waiting::NONE,
    };
}

/// The application of a host whose sockets are used by tasks: it wakes those that wait for what has changed.
#[derive(Debug)]
pub struct Sockets<'a> {
    places: &'a mut [Place],
    mailboxes: &'a mut [Mailbox<'a>],
    acceptors: [Waiting; ACCEPTORS],
    next_acceptor: usize,
    /// The mailbox that sends next: round robin.
    turn: usize,
}

impl<'a> Sockets<'a> {
    /// Without `places` for all TCP sockets, those beyond cannot be used.
    pub const fn new(places: &'a mut [Place], mailboxes: &'a mut [Mailbox<'a>]) -> Sockets<'a> {
        Sockets {
            places,
            mailboxes,
            acceptors: [const { Waiting::NONE }; ACCEPTORS],
            next_acceptor: 0,
            turn: 0,
        }
    }

    pub(crate) fn is_taken(&self, place: usize) -> bool {
        self.places.get(place).is_none_or(|place| place.taken)
    }

    pub(crate) fn take(&mut self, place: usize, taken: bool) {
        if let Some(place) = self.places.get_mut(place) {
            *place = Place {
                taken,
                ..Place::FREE
            };
        }
    }

    pub(crate) fn wait_to_read(&mut self, place: usize, waker: &Waker) {
        if let Some(place) = self.places.get_mut(place) {
            place.reader.register(waker);
        }
    }

    pub(crate) fn wait_to_write(&mut self, place: usize, waker: &Waker) {
        if let Some(place) = self.places.get_mut(place) {
            place.writer.register(waker);
        }
    }

    pub(crate) fn wait_to_accept(&mut self, waker: &Waker) {
        let at = self.next_acceptor;
        self.next_acceptor = (at + 1) % ACCEPTORS;
        if let Some(acceptor) = self.acceptors.get_mut(at) {
            acceptor.register(waker);
        }
    }

    pub(crate) fn mailboxes(&mut self) -> &mut [Mailbox<'a>] {
        self.mailboxes
    }
}

impl<'a> Application<'a> for Sockets<'a> {
    fn serve(&mut self, _now: Instant, sockets: &mut [Socket<'a>]) {
        for (socket, place) in sockets.iter_mut().zip(self.places.iter_mut()) {
            let ended = socket.state() == State::Closed;
            if !place.taken {
                // A connection that no task has accepted and that failed, or that its task has left: what it received
                // would keep the socket from being used again.
                if ended {
                    socket.consume(usize::MAX);
                } else if is_open(socket) {
                    self.acceptors.iter_mut().for_each(Waiting::wake);
                }
                continue;
            }
            if ended || socket.at_end() || !socket.readable().0.is_empty() {
                place.reader.wake();
            }
            if ended || socket.writable() > 0 || socket.unacknowledged() == 0 {
                place.writer.wake();
            }
        }
    }

    fn has_udp(&self, port: u16) -> bool {
        self.mailboxes.iter().any(|mailbox| mailbox.has_port(port))
    }

    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        let mailbox = self
            .mailboxes
            .iter_mut()
            .find(|mailbox| mailbox.takes(&datagram));
        if let Some(mailbox) = mailbox {
            mailbox.deliver(&datagram);
        }
    }

    fn poll_datagram(&mut self, _now: Instant, payload: &mut [u8]) -> Option<Outgoing> {
        let count = self.mailboxes.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let out = self.mailboxes.get_mut(at).and_then(|one| one.poll(payload));
            if out.is_some() {
                self.turn = (at + 1) % count;
                return out;
            }
        }
        None
    }
}

/// Whether a connection is ready for a task to accept it: open, or already closed by the peer.
pub(crate) fn is_open(socket: &Socket<'_>) -> bool {
    matches!(socket.state(), State::Established | State::CloseWait)
}
