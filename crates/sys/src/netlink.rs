//! Netlink messages: written attribute by attribute, sent, and the answer read (netlink(7), rtnetlink(7)).
//!
//! Hand-written encoding in place of a netlink crate: those with nl80211 depend on an asynchronous runtime, and the dozen
//! messages used here have layouts that the kernel must never change.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};

/// A netlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

/// A message of an answer: its type, and what follows `struct nlmsghdr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub kind: u16,
    pub body: Vec<u8>,
}

/// A request under construction.
pub(crate) struct Request {
    octets: Vec<u8>,
}

/// An attribute that holds attributes and is not finished yet.
pub(crate) struct Nest(usize);

/// Octets of `struct nlmsghdr`: length, type, flags, sequence, port.
const HEADER: usize = 16;

/// Octets of an answer read at once: the kernel puts no more than 32 KiB of a dump into one datagram.
const ANSWER: usize = 1 << 15;

impl Netlink {
    /// Opens route netlink: interfaces, addresses and routes.
    pub(crate) fn open() -> io::Result<Netlink> {
        // Protocol 0 is NETLINK_ROUTE.
        Netlink::of(None)
    }

    /// Opens generic netlink: families that are looked up by name, such as nl80211.
    pub(crate) fn open_generic() -> io::Result<Netlink> {
        Netlink::of(Some(netlink::GENERIC))
    }

    fn of(protocol: Option<Protocol>) -> io::Result<Netlink> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
        Ok(Netlink { socket })
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    pub(crate) fn ask(&self, request: Request) -> io::Result<()> {
        self.query(request).map(drop)
    }

    /// Sends a request and returns the messages up to the kernel's acknowledgement or the end of the dump.
    pub(crate) fn query(&self, request: Request) -> io::Result<Vec<Message>> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request.finish(), SendFlags::empty(), &kernel)?;
        let (mut answer, mut messages) = (vec![0; ANSWER], Vec::new());
        loop {
            let (len, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
            if read(&answer[..len], &mut messages)? {
                return Ok(messages);
            }
        }
    }
}

/// Parses the messages of one datagram of an answer; returns whether the answer has ended. A refusal is an error.
pub(crate) fn read(mut piece: &[u8], messages: &mut Vec<Message>) -> io::Result<bool> {
    while !piece.is_empty() {
        let len = word(piece, 0).unwrap_or(0) as usize;
        let kind = word(piece, 4).unwrap_or(0) as u16;
        let Some(body) = piece.get(HEADER..len) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match i32::from(kind) {
            libc::NLMSG_ERROR => {
                return match word(body, 0) {
                    Some(0) => Ok(true),
                    Some(error) => Err(io::Error::from_raw_os_error((error as i32).wrapping_neg())),
                    None => Err(io::ErrorKind::InvalidData.into()),
                };
            }
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_NOOP => {}
            _ => messages.push(Message {
                kind,
                body: body.to_vec(),
            }),
        }
        piece = piece.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The 32-bit number at an offset, in native byte order.
fn word(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..at + 4)?;
    octets.try_into().ok().map(u32::from_ne_bytes)
}

/// Type and value of each attribute behind a message's header. An impossible length ends the iteration.
pub(crate) fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let first = word(octets, 0)?.to_ne_bytes();
        let len = usize::from(u16::from_ne_bytes([first[0], first[1]]));
        // The two highest bits are NLA_F_NESTED and NLA_F_NET_BYTEORDER.
        let kind = u16::from_ne_bytes([first[2], first[3]]) & 0x3fff;
        let value = octets.get(4..len)?;
        octets = octets.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of a 32-bit attribute.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    word(value, 0)
}

/// The value of a string attribute.
pub(crate) fn name(value: &[u8]) -> String {
    let end = value.iter().position(|&c| c == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

impl Request {
    /// A request of type `kind` (RTM_...), with NLM_F_ flags in addition to REQUEST and ACK.
    pub(crate) fn new(kind: u16, flags: i32) -> Request {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut octets = vec![0; 4];
        octets.extend(kind.to_ne_bytes());
        octets.extend(flags.to_ne_bytes());
        octets.extend([0; 8]);
        Request { octets }
    }

    /// `struct ifinfomsg`: the interface, its flags, and the mask of flags to change.
    pub(crate) fn interface(mut self, index: u32, flags: u32, mask: u32) -> Request {
        self.octets.extend([0; 4]);
        for word in [index, flags, mask] {
            self.octets.extend(word.to_ne_bytes());
        }
        self
    }

    /// Appends a `struct ifaddrmsg`.
    pub(crate) fn address(mut self, family: i32, prefix: u8, index: u32) -> Request {
        self.octets.extend([family as u8, prefix, 0, 0]);
        self.octets.extend(index.to_ne_bytes());
        self
    }

    /// `struct ndtmsg`: the table of neighbours of a family.
    pub(crate) fn neighbours(mut self, family: i32) -> Request {
        self.octets.extend([family as u8, 0, 0, 0]);
        self
    }

    /// `struct rtmsg`: a unicast route of the main table that an administrator made.
    pub(crate) fn route(mut self, family: i32, prefix: u8) -> Request {
        let (table, by) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
        let (scope, kind) = (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
        let octets = [family as u8, prefix, 0, 0, table, by, scope, kind];
        self.octets.extend(octets);
        self.octets.extend([0; 4]);
        self
    }

    /// `struct rtmsg`: a route over a device, added by this routing protocol.
    pub(crate) fn route_by(mut self, family: i32, prefix: u8, protocol: u8) -> Request {
        let (table, scope) = (libc::RT_TABLE_MAIN, libc::RT_SCOPE_LINK);
        let octets = [
            family as u8,
            prefix,
            0,
            0,
            table,
            protocol,
            scope,
            libc::RTN_UNICAST,
        ];
        self.octets.extend(octets);
        self.octets.extend([0; 4]);
        self
    }

    /// `struct rtmsg`: which way packets to an address go.
    pub(crate) fn way(mut self, family: i32, prefix: u8) -> Request {
        self.octets.extend([family as u8, prefix, 0, 0]);
        self.octets.extend([0; 8]);
        self
    }

    /// `struct genlmsghdr`: a command of a family that is known by a name.
    pub(crate) fn command(mut self, command: u8) -> Request {
        self.octets.extend([command, 0, 0, 0]);
        self
    }

    /// Appends an attribute, padded to four octets.
    pub(crate) fn put(mut self, kind: u16, value: &[u8]) -> Request {
        let nest = self.open(kind);
        self.octets.extend(value);
        self.close(nest);
        self
    }

    /// An attribute that holds a name.
    pub(crate) fn put_name(self, kind: u16, name: &str) -> Request {
        self.put(kind, &[name.as_bytes(), &[0]].concat())
    }

    /// An attribute whose value `fill` writes.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Request) -> Request) -> Request {
        let nest = self.open(kind);
        let mut filled = fill(self);
        filled.close(nest);
        filled
    }

    fn open(&mut self, kind: u16) -> Nest {
        let nest = Nest(self.octets.len());
        self.octets.extend([0; 2]);
        self.octets.extend(kind.to_ne_bytes());
        nest
    }

    fn close(&mut self, Nest(start): Nest) {
        let len = (self.octets.len() - start) as u16;
        self.octets[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        // The length of an attribute excludes its padding.
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&len.to_ne_bytes());
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_lengths_exclude_padding() {
        let request = Request::new(16, 0)
            .interface(0, 0, 0)
            .nested(18, |inner| inner.put_name(1, "veth"));
        let octets = request.finish();
        assert_eq!(octets.len(), 16 + 16 + 4 + 12);
        assert_eq!(octets[0], 48);
        assert_eq!(
            octets[32..36],
            [16u16.to_ne_bytes(), 18u16.to_ne_bytes()].concat()[..]
        );
        assert_eq!(octets[36..38], 9u16.to_ne_bytes());
        assert_eq!(octets[40..48], *b"veth\0\0\0\0");
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut octets = Request::new(kind, 0);
        octets.octets.extend(body);
        let mut octets = octets.finish();
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    /// Goal: the kernel's acknowledgement ends an answer, its refusal becomes an error with its number, and other octets are
    /// rejected.
    #[test]
    fn answers_end_with_an_error_code() {
        let read = |octets: &[u8]| {
            let mut messages = Vec::new();
            read(octets, &mut messages).map(|end| (end, messages.len()))
        };
        let (consent, done) = (message(2, &[0; 20]), message(3, &[0; 4]));
        let refusal = message(2, &(-libc::ENOENT).to_ne_bytes());
        let told = message(17, &[1, 2, 3]);
        assert_eq!(read(&told).unwrap(), (false, 1));
        assert_eq!(
            read(&[&told[..], &told, &done].concat()).unwrap(),
            (true, 2)
        );
        assert_eq!(read(&[told, consent].concat()).unwrap(), (true, 1));
        assert_eq!(
            read(&refusal).unwrap_err().raw_os_error(),
            Some(libc::ENOENT)
        );
        assert!(read(&[0; 3]).is_err() && read(&[0; 40]).is_err());
        assert!(read(&message(2, &[])).is_err());
        let mut long = message(17, &[1, 2, 3]);
        long[0] = 200;
        assert!(read(&long).is_err());
    }

    #[test]
    fn attributes_end_at_their_length() {
        let octets = Request::new(0, 0)
            .put_name(2, "phy0")
            .put(89, &[3])
            .nested(0x8000 | 7, |inner| inner.put(1, &[9; 4]))
            .finish();
        let body = &octets[HEADER..];
        let read: Vec<_> = attributes(body).collect();
        assert_eq!(read.len(), 3);
        assert_eq!((read[0].0, name(read[0].1)), (2, "phy0".to_owned()));
        assert_eq!(read[1], (89, &[3][..]));
        assert_eq!(attributes(read[2].1).next(), Some((1, &[9; 4][..])));
        for cut in 0..body.len() {
            assert!(attributes(&body[..cut]).count() < 3);
        }
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0);
    }
}
