//! The traits of `embedded-nal-async`, so that clients written for them run on this stack.

use core::net::{SocketAddr, SocketAddrV6};

use embedded_nal_async::{ConnectedUdp, TcpConnect, UdpStack, UnconnectedUdp};

use crate::clock::Clock;
use crate::error::Error;
use crate::stack::Stack;
use crate::tcp::TcpSocket;
use crate::udp::UdpSocket;

impl<'a, K: Clock> TcpConnect for Stack<'a, K> {
    type Error = Error;
    type Connection<'c>
        = TcpSocket<'c, 'a, K>
    where
        Self: 'c;

    async fn connect<'c>(&'c self, remote: SocketAddr) -> Result<TcpSocket<'c, 'a, K>, Error> {
        TcpSocket::connect(self, v6(remote)?).await
    }
}

impl<'s, 'a, K: Clock> UdpStack for &'s Stack<'a, K> {
    type Error = Error;
    type Connected = UdpSocket<'s, 'a, K>;
    type UniquelyBound = UdpSocket<'s, 'a, K>;
    type MultiplyBound = UdpSocket<'s, 'a, K>;

    async fn connect_from(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<(SocketAddr, Self::Connected), Error> {
        let socket = UdpSocket::connect(self, local.port(), v6(remote)?)?;
        Ok((here(self, &socket), socket))
    }

    async fn bind_single(
        &self,
        local: SocketAddr,
    ) -> Result<(SocketAddr, Self::UniquelyBound), Error> {
        let socket = UdpSocket::bind(self, v6(local)?.port())?;
        Ok((here(self, &socket), socket))
    }

    async fn bind_multiple(&self, local: SocketAddr) -> Result<Self::MultiplyBound, Error> {
        UdpSocket::bind(self, v6(local)?.port())
    }
}

impl<K: Clock> ConnectedUdp for UdpSocket<'_, '_, K> {
    type Error = Error;

    async fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        let peer = self.peer().ok_or(Error::NotConnected)?;
        self.send_to(data, peer).await
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        self.receive_from(buffer).await.map(|(len, _)| len)
    }
}

impl<K: Clock> UnconnectedUdp for UdpSocket<'_, '_, K> {
    type Error = Error;

    /// The host has one address: `local` only has to name the socket's port, or none.
    async fn send(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), Error> {
        if local.port() != 0 && local.port() != self.port() {
            return Err(Error::PortInUse);
        }
        self.send_to(data, v6(remote)?).await
    }

    async fn receive_into(
        &mut self,
        buffer: &mut [u8],
    ) -> Result<(usize, SocketAddr, SocketAddr), Error> {
        let (len, from) = self.receive_from(buffer).await?;
        let local = SocketAddr::V6(SocketAddrV6::new(self.address(), self.port(), 0, 0));
        Ok((len, local, SocketAddr::V6(from)))
    }
}

fn here<K: Clock>(stack: &Stack<'_, K>, socket: &UdpSocket<'_, '_, K>) -> SocketAddr {
    SocketAddr::V6(SocketAddrV6::new(stack.address(), socket.port(), 0, 0))
}

fn v6(address: SocketAddr) -> Result<SocketAddrV6, Error> {
    match address {
        SocketAddr::V6(address) => Ok(address),
        SocketAddr::V4(_) => Err(Error::NotIpv6),
    }
}
