//! UDP datagrams between a host and its application.

use core::net::Ipv6Addr;

use chappe_wire::ipv6::Header;
use chappe_wire::udp::{self, HEADER_LEN};

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'p> {
    /// The sender's address and port.
    pub from: (Ipv6Addr, u16),
    /// The local port it was sent to.
    pub port: u16,
    /// The data, as it arrived: validate it.
    pub payload: &'p [u8],
}

/// A datagram to send, its payload in the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The receiver's address and port.
    pub to: (Ipv6Addr, u16),
    /// The local port it is sent from.
    pub port: u16,
    /// Octets of payload at the front of the buffer.
    pub len: usize,
}

pub(super) fn parse<'p>(header: &Header, upper: &'p [u8]) -> Option<Datagram<'p>> {
    let datagram = udp::Datagram::parse(header.source, header.destination, upper).ok()?;
    Some(Datagram {
        from: (header.source, datagram.source_port),
        port: datagram.destination_port,
        payload: datagram.payload,
    })
}

/// Lets `poll` write a payload behind the room for the UDP header, then completes the header.
pub(super) fn emit(
    upper: &mut [u8],
    from: Ipv6Addr,
    poll: impl FnOnce(&mut [u8]) -> Option<Outgoing>,
) -> Option<(usize, Ipv6Addr)> {
    let datagram = poll(upper.get_mut(HEADER_LEN..)?)?;
    let len = HEADER_LEN + datagram.len;
    let stated = u16::try_from(len).ok()?;
    let upper = upper.get_mut(..len)?;
    let [a, b] = datagram.port.to_be_bytes();
    let [c, d] = datagram.to.1.to_be_bytes();
    let [e, f] = stated.to_be_bytes();
    *upper.first_chunk_mut()? = [a, b, c, d, e, f, 0, 0];
    udp::seal(from, datagram.to.0, upper);
    Some((len, datagram.to.0))
}
