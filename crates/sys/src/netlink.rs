//! Route netlink messages: written attribute by attribute, sent, and the answer read (rtnetlink(7)).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// A route netlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

/// A request under construction.
pub(crate) struct Request {
    octets: Vec<u8>,
}

/// An attribute that holds attributes and is not finished yet.
pub(crate) struct Nest(usize);

/// Octets of `struct nlmsghdr`: length, type, flags, sequence, port.
const HEADER: usize = 16;

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(family, SocketType::RAW, flags, None)?;
        Ok(Netlink { socket })
    }

    /// Sends a request and waits for the kernel's verdict.
    pub(crate) fn ask(&self, request: Request) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request.finish(), SendFlags::empty(), &kernel)?;
        let mut answer = [0; 4096];
        let (len, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        verdict(&answer[..len])
    }
}

/// The error number of an NLMSG_ERROR message; 0 is consent.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let word = |at: usize| {
        let octets = answer.get(at..at + 4)?;
        octets.try_into().ok().map(i32::from_ne_bytes)
    };
    let kind = word(4).map(|kind| kind & 0xffff);
    match (kind, word(HEADER)) {
        (Some(libc::NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(libc::NLMSG_ERROR), Some(error)) => {
            Err(io::Error::from_raw_os_error(error.wrapping_neg()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Request {
    /// A request of this type (RTM_...) with these NLM_F_ flags besides REQUEST and ACK.
    pub(crate) fn new(kind: u16, flags: i32) -> Request {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut octets = vec![0; 4];
        octets.extend(kind.to_ne_bytes());
        octets.extend(flags.to_ne_bytes());
        octets.extend([0; 8]);
        Request { octets }
    }

    /// `struct ifinfomsg`: which interface, and its flags with the mask of those that are meant.
    pub(crate) fn interface(mut self, index: u32, flags: u32, mask: u32) -> Request {
        self.octets.extend([0; 4]);
        for word in [index, flags, mask] {
            self.octets.extend(word.to_ne_bytes());
        }
        self
    }

    /// `struct ifaddrmsg`.
    pub(crate) fn address(mut self, family: i32, prefix: u8, index: u32) -> Request {
        self.octets.extend([family as u8, prefix, 0, 0]);
        self.octets.extend(index.to_ne_bytes());
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

    /// An attribute.
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
        // Padding belongs to what is around the attribute, not to it.
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
    fn lengths_count_the_value_and_padding_follows_it() {
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

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        assert!(verdict(&[]).is_err());
        assert!(verdict(&[0; 40]).is_err());
    }
}
