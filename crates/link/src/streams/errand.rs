//! What may take long and must not hold up the loop: looking names up, and connecting to services of this host's side. Each runs in a
//! thread of its own.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Errands under way at once; each has a thread.
const MOST: usize = 32;
/// How long connecting may take: one SYN and two repetitions (RFC 6298, 2: after 1 and 3 s), which suffice near a host.
const CONNECT: Duration = Duration::from_secs(7);

/// The result of an errand.
pub(super) enum Found {
    Addresses(Vec<SocketAddr>),
    Stream(std::io::Result<TcpStream>),
}

/// The errands of a host.
pub(super) struct Errands {
    /// Results with the place that asked.
    results: Receiver<(u64, Found)>,
    sender: Sender<(u64, Found)>,
    /// Becomes readable when there are results.
    bell: UnixStream,
    ring: UnixStream,
    under_way: usize,
}

impl Errands {
    pub fn new() -> std::io::Result<Errands> {
        let (bell, ring) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ring.set_nonblocking(true)?;
        let (sender, results) = channel();
        Ok(Errands {
            results,
            sender,
            bell,
            ring,
            under_way: 0,
        })
    }

    /// Looks a name up for `asker`; false if too many errands are under way.
    pub fn look_up(&mut self, asker: u64, name: String, port: u16) -> bool {
        self.run(asker, move || {
            let found = (name.as_str(), port).to_socket_addrs();
            Found::Addresses(found.map(Iterator::collect).unwrap_or_default())
        })
    }

    /// Connects to a service for `asker`; false if too many errands are under way.
    pub fn connect(&mut self, asker: u64, to: SocketAddr) -> bool {
        self.run(asker, move || {
            Found::Stream(TcpStream::connect_timeout(&to, CONNECT))
        })
    }

    fn run(&mut self, asker: u64, work: impl FnOnce() -> Found + Send + 'static) -> bool {
        let (sender, ring) = (self.sender.clone(), self.ring.try_clone());
        let (true, Ok(mut ring)) = (self.under_way < MOST, ring) else {
            return false;
        };
        let errand = move || {
            // Nobody waits any more if this fails.
            let _ = sender.send((asker, work()));
            let _ = std::io::Write::write(&mut ring, &[1]);
        };
        let begun = std::thread::Builder::new().spawn(errand).is_ok();
        self.under_way += usize::from(begun);
        begun
    }

    /// The next result, with the place that asked for it.
    pub fn next(&mut self) -> Option<(u64, Found)> {
        let next = self.results.try_recv().ok();
        self.under_way -= usize::from(next.is_some());
        next
    }

    /// Takes note of the bell before the results are read.
    pub fn heard(&mut self) {
        let mut rings = [0; 64];
        loop {
            match self.bell.read(&mut rings) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

impl AsFd for Errands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
