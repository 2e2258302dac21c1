//! UDP as tasks use it.

use core::future::poll_fn;
use core::net::{Ipv6Addr, SocketAddrV6};
use core::task::Poll;

use chappe_tcplp::tcp::{Endpoint, Flow};

use crate::clock::Clock;
use crate::error::Error;
use crate::mailbox::{Mailbox, Peer};
use crate::stack::Stack;

/// Local ports that are tried for a socket without one.
const PORTS_TRIED: u16 = 16;

/// A UDP socket. Dropping it frees its port and its mailbox; what it was sending may not have left yet: see
/// [`flush`](UdpSocket::flush).
pub struct UdpSocket<'s, 'a, K: Clock> {
    stack: &'s Stack<'a, K>,
    place: usize,
    port: u16,
}

impl<'s, 'a, K: Clock> UdpSocket<'s, 'a, K> {
    /// A socket on `port`; 0: on a free one that cannot be guessed.
    pub fn bind(stack: &'s Stack<'a, K>, port: u16) -> Result<Self, Error> {
        UdpSocket::open(stack, port, None)
    }

    /// A socket that hears only `peer`.
    pub fn connect(stack: &'s Stack<'a, K>, port: u16, peer: SocketAddrV6) -> Result<Self, Error> {
        UdpSocket::open(stack, port, Some((*peer.ip(), peer.port())))
    }

    fn open(stack: &'s Stack<'a, K>, port: u16, peer: Option<Peer>) -> Result<Self, Error> {
        let local = stack.local();
        let remote = peer.unwrap_or((Ipv6Addr::UNSPECIFIED, 0));
        let flow = Flow::new(
            Endpoint::new(local.address, 0),
            Endpoint::new(remote.0.into(), remote.1),
        );
        stack.with(|_, host| {
            let (_, app) = host.parts();
            let mailboxes = app.mailboxes();
            let used = |port| mailboxes.iter().any(|mailbox| mailbox.has_port(port));
            let port = match port {
                0 => (0..PORTS_TRIED)
                    .map(|attempt| local.secret.ephemeral_port(&flow, attempt))
                    .find(|&port| !used(port))
                    .ok_or(Error::PortInUse)?,
                port if used(port) => return Err(Error::PortInUse),
                port => port,
            };
            let place = mailboxes.iter().position(Mailbox::is_free);
            let place = place.ok_or(Error::NoSocket)?;
            if let Some(mailbox) = mailboxes.get_mut(place) {
                mailbox.open(port, peer);
            }
            Ok(UdpSocket { stack, place, port })
        })
    }

    /// The address of the host.
    pub fn address(&self) -> Ipv6Addr {
        self.stack.address()
    }

    /// The local port, given or chosen.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Datagrams that found no room in the mailbox, or none in a packet.
    pub fn lost(&self) -> u32 {
        self.with(|mailbox| mailbox.map_or(0, |mailbox| mailbox.lost()))
    }

    /// The peer of a connected socket.
    pub fn peer(&self) -> Option<SocketAddrV6> {
        let peer = self.with(|mailbox| mailbox.and_then(|mailbox| mailbox.peer()));
        peer.map(address)
    }

    /// Hands a datagram over for sending, when the one before it has left.
    pub async fn send_to(&self, data: &[u8], to: SocketAddrV6) -> Result<(), Error> {
        let to = (*to.ip(), to.port());
        poll_fn(|context| {
            self.poll(|mailbox| match mailbox {
                None => Poll::Ready(Err(Error::NotConnected)),
                Some(mailbox) if !mailbox.can_send() => {
                    mailbox.writer.register(context.waker());
                    Poll::Pending
                }
                Some(mailbox) => Poll::Ready(match mailbox.send(to, data) {
                    true => Ok(()),
                    false => Err(Error::TooLarge),
                }),
            })
        })
        .await
    }

    /// Waits until the last datagram has left the mailbox: it is in a packet, or in frames.
    pub async fn flush(&self) {
        poll_fn(|context| {
            self.poll(|mailbox| match mailbox {
                Some(mailbox) if !mailbox.can_send() => {
                    mailbox.writer.register(context.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            })
        })
        .await;
    }

    /// Waits for a datagram: its length and its sender. One larger than `data` is dropped, as an error.
    pub async fn receive_from(&self, data: &mut [u8]) -> Result<(usize, SocketAddrV6), Error> {
        let (peer, len) = poll_fn(|context| {
            self.poll(|mailbox| match mailbox {
                None => Poll::Ready(Err(Error::NotConnected)),
                Some(mailbox) => match mailbox.take(data) {
                    Some(taken) => Poll::Ready(Ok(taken)),
                    None => {
                        mailbox.reader.register(context.waker());
                        Poll::Pending
                    }
                },
            })
        })
        .await?;
        match len <= data.len() {
            true => Ok((len, address(peer))),
            false => Err(Error::Truncated),
        }
    }

    fn poll<T>(&self, f: impl FnOnce(Option<&mut Mailbox<'a>>) -> Poll<T>) -> Poll<T> {
        self.stack
            .poll(|_, host| f(host.parts().1.mailboxes().get_mut(self.place)))
    }

    fn with<T>(&self, f: impl FnOnce(Option<&mut Mailbox<'a>>) -> T) -> T {
        self.stack
            .with(|_, host| f(host.parts().1.mailboxes().get_mut(self.place)))
    }
}

impl<K: Clock> Drop for UdpSocket<'_, '_, K> {
    fn drop(&mut self) {
        self.with(|mailbox| mailbox.map(Mailbox::close));
    }
}

fn address((ip, port): Peer) -> SocketAddrV6 {
    SocketAddrV6::new(ip, port, 0, 0)
}
