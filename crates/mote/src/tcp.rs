//! TCP as tasks use it.

use core::future::poll_fn;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use core::task::{Context, Poll};

use chappe_core::Instant;
use chappe_tcplp::tcp::{Endpoint, Failure, Flow, Socket, State};
use embedded_io_async::{ErrorType, Read, ReadReady, Write, WriteReady};

use crate::clock::Clock;
use crate::error::Error;
use crate::sockets::{Sockets, is_open};
use crate::stack::Stack;

/// Local ports that are tried for a connection, until one is not in use with this peer.
const PORTS_TRIED: u16 = 16;

/// A TCP connection. Dropping it closes it: what was written is still sent, and data that was not read resets it.
pub struct TcpSocket<'s, 'a, K: Clock> {
    stack: &'s Stack<'a, K>,
    place: usize,
}

impl<'s, 'a, K: Clock> TcpSocket<'s, 'a, K> {
    /// Opens a connection and waits until it is open.
    pub async fn connect(stack: &'s Stack<'a, K>, remote: SocketAddrV6) -> Result<Self, Error> {
        let remote = Endpoint::new(IpAddr::V6(*remote.ip()), remote.port());
        let place = stack.with(|now, host| {
            let (sockets, app) = host.parts();
            let place = begin(stack, now, remote, sockets, app)?;
            app.take(place, true);
            Ok(place)
        })?;
        // From here on, dropping the future closes the socket.
        let socket = TcpSocket { stack, place };
        poll_fn(|context| {
            socket.poll(|socket, app| match socket.state() {
                State::SynSent | State::SynReceived => {
                    app.wait_to_write(place, context.waker());
                    app.wait_to_read(place, context.waker());
                    Poll::Pending
                }
                State::Closed => Poll::Ready(Err(failure(socket))),
                _ => Poll::Ready(Ok(())),
            })
        })
        .await?;
        Ok(socket)
    }

    /// Address and port of the peer.
    pub fn remote(&self) -> SocketAddr {
        self.with(|_, socket, _| {
            let remote = socket.flow().remote;
            SocketAddr::new(remote.address(), remote.port)
        })
    }

    /// Ends this end's direction: the peer reads to the end. Reading goes on.
    pub fn shutdown(&mut self) {
        self.with(|_, socket, _| socket.shutdown());
    }

    /// Ends the connection at once; the peer gets a reset.
    pub fn abort(self) {
        self.with(|_, socket, _| socket.abort());
    }

    /// Sends what was written, ends this end's direction and waits until the peer has acknowledged all of it.
    pub async fn close(mut self) -> Result<(), Error> {
        self.shutdown();
        poll_fn(|context| {
            self.poll(|socket, app| match socket.state() {
                State::Closed if socket.failure().is_some() => Poll::Ready(Err(failure(socket))),
                State::FinWait1 | State::Closing | State::LastAck => {
                    app.wait_to_write(self.place, context.waker());
                    app.wait_to_read(self.place, context.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(Ok(())),
            })
        })
        .await
    }

    /// A half to read and one to write, for two tasks.
    pub fn split(&mut self) -> (TcpReader<'_, 's, 'a, K>, TcpWriter<'_, 's, 'a, K>) {
        (TcpReader(self), TcpWriter(self))
    }

    fn poll<T>(
        &self,
        f: impl FnOnce(&mut Socket<'a>, &mut Sockets<'a>) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        self.stack.poll(|_, host| {
            let (sockets, app) = host.parts();
            match sockets.get_mut(self.place) {
                Some(socket) => f(socket, app),
                None => Gone::gone(),
            }
        })
    }

    fn with<T>(&self, f: impl FnOnce(Instant, &mut Socket<'a>, &mut Sockets<'a>) -> T) -> T
    where
        T: Gone,
    {
        self.stack.with(|now, host| {
            let (sockets, app) = host.parts();
            match sockets.get_mut(self.place) {
                Some(socket) => f(now, socket, app),
                None => T::gone(),
            }
        })
    }

    fn poll_read(&self, context: &Context<'_>, data: &mut [u8]) -> Poll<Result<usize, Error>> {
        self.poll(|socket, app| {
            let len = socket.read(data);
            if len > 0 || data.is_empty() {
                return Poll::Ready(Ok(len));
            }
            if socket.state() == State::Closed && socket.failure().is_some() {
                return Poll::Ready(Err(failure(socket)));
            }
            if socket.at_end() {
                return Poll::Ready(Ok(0));
            }
            app.wait_to_read(self.place, context.waker());
            Poll::Pending
        })
    }

    fn poll_write(&self, context: &Context<'_>, data: &[u8]) -> Poll<Result<usize, Error>> {
        self.poll(|socket, app| {
            if !socket.may_write() {
                return Poll::Ready(Err(failure(socket)));
            }
            let len = socket.write(data);
            if len > 0 || data.is_empty() {
                return Poll::Ready(Ok(len));
            }
            app.wait_to_write(self.place, context.waker());
            Poll::Pending
        })
    }

    fn poll_flush(&self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        self.poll(|socket, app| {
            if socket.state() == State::Closed && socket.failure().is_some() {
                return Poll::Ready(Err(failure(socket)));
            }
            if socket.unacknowledged() == 0 {
                return Poll::Ready(Ok(()));
            }
            app.wait_to_write(self.place, context.waker());
            Poll::Pending
        })
    }

    fn can_read(&self) -> bool {
        self.with(|_, socket, _| {
            socket.at_end() || !socket.readable().0.is_empty() || socket.state() == State::Closed
        })
    }

    fn can_write(&self) -> bool {
        self.with(|_, socket, _| socket.writable() > 0 || !socket.may_write())
    }
}

impl<K: Clock> Drop for TcpSocket<'_, '_, K> {
    fn drop(&mut self) {
        let place = self.place;
        self.with(|now, socket, app| {
            socket.close(now);
            app.take(place, false);
        });
    }
}

/// Waits for connections on a port.
pub struct TcpListener<'s, 'a, K> {
    stack: &'s Stack<'a, K>,
    port: u16,
}

impl<'s, 'a, K: Clock> TcpListener<'s, 'a, K> {
    /// Listens on `port`, as long as the stack lives: connections that no task accepts wait in their sockets.
    pub fn bind(stack: &'s Stack<'a, K>, port: u16) -> Result<Self, Error> {
        match stack.with(|_, host| host.listen(port)) {
            true => Ok(TcpListener { stack, port }),
            false => Err(Error::NoSocket),
        }
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> TcpSocket<'s, 'a, K> {
        let place = poll_fn(|context| {
            self.stack.poll(|_, host| {
                let (sockets, app) = host.parts();
                let ready = |(place, socket): &(usize, &Socket<'a>)| {
                    is_open(socket)
                        && socket.flow().local.port == self.port
                        && !app.is_taken(*place)
                };
                match sockets.iter().enumerate().find(ready) {
                    Some((place, _)) => {
                        app.take(place, true);
                        Poll::Ready(place)
                    }
                    None => {
                        app.wait_to_accept(context.waker());
                        Poll::Pending
                    }
                }
            })
        })
        .await;
        TcpSocket {
            stack: self.stack,
            place,
        }
    }
}

/// The reading half of a [`TcpSocket`].
pub struct TcpReader<'c, 's, 'a, K: Clock>(&'c TcpSocket<'s, 'a, K>);

/// The writing half of a [`TcpSocket`].
pub struct TcpWriter<'c, 's, 'a, K: Clock>(&'c TcpSocket<'s, 'a, K>);

impl<K: Clock> ErrorType for TcpSocket<'_, '_, K> {
    type Error = Error;
}

impl<K: Clock> ErrorType for TcpReader<'_, '_, '_, K> {
    type Error = Error;
}

impl<K: Clock> ErrorType for TcpWriter<'_, '_, '_, K> {
    type Error = Error;
}

impl<K: Clock> Read for TcpSocket<'_, '_, K> {
    async fn read(&mut self, data: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_read(context, data)).await
    }
}

impl<K: Clock> Read for TcpReader<'_, '_, '_, K> {
    async fn read(&mut self, data: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.0.poll_read(context, data)).await
    }
}

impl<K: Clock> Write for TcpSocket<'_, '_, K> {
    /// Waits for room in the send buffer. Small writes are joined there, as Nagle's algorithm asks.
    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_write(context, data)).await
    }

    /// Waits until the peer has acknowledged everything.
    async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|context| self.poll_flush(context)).await
    }
}

impl<K: Clock> Write for TcpWriter<'_, '_, '_, K> {
    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        poll_fn(|context| self.0.poll_write(context, data)).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|context| self.0.poll_flush(context)).await
    }
}

impl<K: Clock> ReadReady for TcpSocket<'_, '_, K> {
    fn read_ready(&mut self) -> Result<bool, Error> {
        Ok(self.can_read())
    }
}

impl<K: Clock> WriteReady for TcpSocket<'_, '_, K> {
    fn write_ready(&mut self) -> Result<bool, Error> {
        Ok(self.can_write())
    }
}

/// Opens a connection with a socket that no task holds, from a port that cannot be guessed (RFC 6056).
fn begin<'a, K: Clock>(
    stack: &Stack<'a, K>,
    now: Instant,
    remote: Endpoint,
    sockets: &mut [Socket<'a>],
    app: &Sockets<'a>,
) -> Result<usize, Error> {
    let local = stack.local();
    let find = |fits: fn(&Socket<'a>) -> bool| {
        (0..sockets.len()).find(|&at| !app.is_taken(at) && sockets.get(at).is_some_and(fits))
    };
    let waits = |socket: &Socket<'a>| socket.state() == State::TimeWait;
    let place = find(is_free).or_else(|| find(waits));
    let place = place.ok_or(Error::NoSocket)?;
    for attempt in 0..PORTS_TRIED {
        let mut flow = Flow::new(Endpoint::new(local.address, 0), remote);
        flow.local.port = local.secret.ephemeral_port(&flow, attempt);
        let used = |socket: &Socket<'a>| socket.state() != State::Closed && socket.flow() == flow;
        if sockets.iter().any(used) {
            continue;
        }
        let socket = sockets.get_mut(place).ok_or(Error::NoSocket)?;
        // As in [`Host`](chappe_tcplp::host::Host), TIME-WAIT gives way.
        if socket.state() == State::TimeWait {
            socket.abort();
        }
        return match socket.connect(now, flow.local.port, remote) {
            Ok(()) => Ok(place),
            Err(_) => Err(Error::NoSocket),
        };
    }
    Err(Error::PortInUse)
}

fn is_free(socket: &Socket<'_>) -> bool {
    socket.state() == State::Closed && socket.readable().0.is_empty()
}

/// Why a connection that is over, or that this end has closed, takes nothing more.
fn failure(socket: &Socket<'_>) -> Error {
    socket.failure().map_or(Error::NotConnected, Error::Failed)
}

/// The answer for a socket that the host does not have. It cannot happen: places come from the host itself.
trait Gone {
    fn gone() -> Self;
}

impl Gone for () {
    fn gone() {}
}

impl Gone for bool {
    fn gone() -> bool {
        true
    }
}

impl Gone for SocketAddr {
    fn gone() -> SocketAddr {
        SocketAddr::from(([0; 16], 0))
    }
}

impl<T> Gone for Poll<Result<T, Error>> {
    fn gone() -> Self {
        Poll::Ready(Err(Error::Failed(Failure::Aborted)))
    }
}
