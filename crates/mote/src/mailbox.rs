//! Datagrams of one UDP socket, until they are read or sent.

use core::net::Ipv6Addr;

use chappe_tcplp::host::{Datagram, Outgoing};

use crate::waker::Waiting;

/// Address and port of the other end.
pub(crate) type Peer = (Ipv6Addr, u16);

/// Octets of a record before its data: the sender's address and port, and the length.
const HEAD: usize = 16 + 2 + 2;

/// The memory of one UDP socket: datagrams that wait to be read, in `received` (20 octets each beside their data), and
/// one that waits to be sent. Datagrams that find no room are dropped and counted.
#[derive(Debug)]
pub struct Mailbox<'a> {
    /// The port it is bound to; 0: it is free.
    port: u16,
    peer: Option<Peer>,
    received: &'a mut [u8],
    used: usize,
    sending: &'a mut [u8],
    out: Option<Outgoing>,
    lost: u32,
    pub(crate) reader: Waiting,
    pub(crate) writer: Waiting,
}

impl<'a> Mailbox<'a> {
    /// A mailbox that no socket uses yet. `sending` limits the size of datagrams.
    pub const fn new(received: &'a mut [u8], sending: &'a mut [u8]) -> Mailbox<'a> {
        Mailbox {
            port: 0,
            peer: None,
            received,
            used: 0,
            sending,
            out: None,
            lost: 0,
            reader: Waiting::NONE,
            writer: Waiting::NONE,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.port == 0
    }

    pub(crate) fn has_port(&self, port: u16) -> bool {
        port != 0 && self.port == port
    }

    pub(crate) fn open(&mut self, port: u16, peer: Option<Peer>) {
        (self.port, self.peer) = (port, peer);
        (self.used, self.out, self.lost) = (0, None, 0);
    }

    pub(crate) fn close(&mut self) {
        self.open(0, None);
    }

    pub(crate) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Whether a datagram is for this socket: its port, and the peer if it has one.
    pub(crate) fn takes(&self, datagram: &Datagram<'_>) -> bool {
        self.has_port(datagram.port) && self.peer.is_none_or(|peer| peer == datagram.from)
    }

    /// Keeps a datagram, or counts it as lost.
    pub(crate) fn deliver(&mut self, datagram: &Datagram<'_>) {
        match self.keep(datagram) {
            Some(()) => self.reader.wake(),
            None => self.lost = self.lost.wrapping_add(1),
        }
    }

    fn keep(&mut self, datagram: &Datagram<'_>) -> Option<()> {
        let end = self.used.checked_add(HEAD + datagram.payload.len())?;
        let record = self.received.get_mut(self.used..end)?;
        let (head, data) = record.split_at_mut_checked(HEAD)?;
        let len = u16::try_from(datagram.payload.len()).ok()?;
        let (address, numbers) = head.split_first_chunk_mut::<16>()?;
        *address = datagram.from.0.octets();
        let [a, b] = datagram.from.1.to_be_bytes();
        let [c, d] = len.to_be_bytes();
        *numbers.first_chunk_mut::<4>()? = [a, b, c, d];
        data.copy_from_slice(datagram.payload);
        self.used = end;
        Some(())
    }

    /// The oldest datagram: its sender and its length, with as much of it as fits copied to `buffer`.
    pub(crate) fn take(&mut self, buffer: &mut [u8]) -> Option<(Peer, usize)> {
        let kept = self.received.get(..self.used)?;
        let (address, rest) = kept.split_first_chunk::<16>()?;
        let (&[a, b, c, d], rest) = rest.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_be_bytes([c, d]));
        let data = rest.get(..len)?;
        data.iter().zip(buffer).for_each(|(&from, to)| *to = from);
        let peer = (Ipv6Addr::from(*address), u16::from_be_bytes([a, b]));
        let end = HEAD + len;
        self.received.copy_within(end..self.used, 0);
        self.used -= end;
        Some((peer, len))
    }

    /// Whether a datagram can be handed over for sending.
    pub(crate) fn can_send(&self) -> bool {
        self.out.is_none()
    }

    /// Hands a datagram over for sending. False if it is too large.
    pub(crate) fn send(&mut self, to: Peer, data: &[u8]) -> bool {
        let Some(place) = self.sending.get_mut(..data.len()) else {
            return false;
        };
        place.copy_from_slice(data);
        self.out = Some(Outgoing {
            to,
            port: self.port,
            len: data.len(),
        });
        true
    }

    /// The datagram to send, written to `payload`. One that does not fit into a packet is counted as lost.
    pub(crate) fn poll(&mut self, payload: &mut [u8]) -> Option<Outgoing> {
        let out = self.out.take()?;
        self.writer.wake();
        let place = payload.get_mut(..out.len);
        let Some((place, data)) = place.zip(self.sending.get(..out.len)) else {
            self.lost = self.lost.wrapping_add(1);
            return None;
        };
        place.copy_from_slice(data);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(payload: &[u8]) -> Datagram<'_> {
        Datagram {
            from: (Ipv6Addr::LOCALHOST, 9),
            port: 7,
            payload,
        }
    }

    #[test]
    fn datagrams_are_read_in_order_and_those_without_room_are_counted() {
        let (mut received, mut sending) = ([0; 2 * HEAD + 5], [0; 4]);
        let mut mailbox = Mailbox::new(&mut received, &mut sending);
        mailbox.open(7, None);
        for payload in [&b"one"[..], b"23", b"x"] {
            mailbox.deliver(&datagram(payload));
        }
        assert_eq!(mailbox.lost(), 1, "the third one finds no room");
        let mut buffer = [0; 2];
        let taken = mailbox.take(&mut buffer);
        assert_eq!(taken, Some(((Ipv6Addr::LOCALHOST, 9), 3)));
        assert_eq!(&buffer, b"on", "as much as fits");
        assert_eq!(mailbox.take(&mut buffer).map(|(_, len)| len), Some(2));
        assert_eq!(&buffer, b"23");
        assert_eq!(mailbox.take(&mut buffer), None);
    }

    #[test]
    fn a_connected_socket_hears_only_its_peer() {
        let (mut received, mut sending) = ([0; 64], [0; 4]);
        let mut mailbox = Mailbox::new(&mut received, &mut sending);
        assert!(!mailbox.takes(&datagram(b"")), "it is free");
        mailbox.open(7, Some((Ipv6Addr::LOCALHOST, 10)));
        assert!(!mailbox.takes(&datagram(b"")));
        mailbox.open(7, Some((Ipv6Addr::LOCALHOST, 9)));
        assert!(mailbox.takes(&datagram(b"")));
        assert!(!mailbox.send((Ipv6Addr::LOCALHOST, 9), b"large"));
    }
}
