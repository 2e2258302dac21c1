//! The part of SOCKS 5 (RFC 1928) that a server needs for `CONNECT` without authentication. Octets are untrusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the octets so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The message has at least so many octets in all.
    More(usize),
    /// The greeting is complete; whether it offers to go without authentication.
    Greeted(bool),
    /// The request is complete: a destination and its port.
    Wants(Destination, u16),
    /// The request cannot be served, for this reason.
    Refused(Reply),
    /// This is not SOCKS 5: nothing is answered.
    Strange,
}

/// Where a client wants to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Address(IpAddr),
    Name(String),
}

/// The reply field (RFC 1928, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
/// The method that both ends use: no authentication; and the answer to a client that does not offer it.
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;

/// Reads a client's first message: version, and the methods that it offers.
pub(super) fn greeting(heard: &[u8]) -> Step {
    match heard {
        [] => Step::More(2),
        [first, ..] if *first != VERSION => Step::Strange,
        [_] => Step::More(2),
        [_, count, methods @ ..] => match methods.get(..usize::from(*count)) {
            None => Step::More(2 + usize::from(*count)),
            Some(methods) => Step::Greeted(methods.contains(&NO_AUTHENTICATION)),
        },
    }
}

/// The answer to a greeting.
pub(super) const fn greeted(offered: bool) -> [u8; 2] {
    [
        VERSION,
        if offered {
            NO_AUTHENTICATION
        } else {
            NO_METHOD
        },
    ]
}

/// Reads a client's request.
pub(super) fn request(heard: &[u8]) -> Step {
    // Version, command, a reserved octet, and the kind of address, then at least one of its octets.
    let [version, command, _, kind, rest @ ..] = heard else {
        return Step::More(5);
    };
    if *version != VERSION {
        return Step::Strange;
    }
    if *command != CONNECT {
        return Step::Refused(Reply::CommandNotSupported);
    }
    let (length, at) = match kind {
        1 => (4, 4),
        4 => (16, 4),
        3 => match rest.first() {
            None => return Step::More(5),
            Some(length) => (usize::from(*length), 5),
        },
        _ => return Step::Refused(Reply::AddressTypeNotSupported),
    };
    let (Some(address), Some(&[high, low])) = (
        heard.get(at..at + length),
        heard.get(at + length..at + length + 2),
    ) else {
        return Step::More(at + length + 2);
    };
    let to = match kind {
        1 => address
            .first_chunk()
            .map(|four: &[u8; 4]| Destination::Address(IpAddr::V4(Ipv4Addr::from(*four)))),
        4 => address
            .first_chunk()
            .map(|all: &[u8; 16]| Destination::Address(IpAddr::V6(Ipv6Addr::from(*all)))),
        _ => std::str::from_utf8(address)
            .ok()
            .filter(|name| !name.is_empty())
            .map(|name| Destination::Name(name.to_owned())),
    };
    match to {
        Some(to) => Step::Wants(to, u16::from_be_bytes([high, low])),
        None => Step::Refused(Reply::HostUnreachable),
    }
}

/// The answer to a request. The address that the connection comes from is left out, as most servers do.
pub(super) const fn replied(reply: Reply) -> [u8; 10] {
    [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&[u8]) -> Step;

    /// Goal: no octet is asked for that a client need not send, else both wait; every other message has its answer. Method: each
    /// message octet by octet, asked for as the parser wants them.
    #[test]
    fn messages_are_read_to_their_last_octet_and_no_further() {
        let name = [&[5, 1, 0, 3, 4][..], b"hill", &[0, 80]].concat();
        let v6 = [&[5, 1, 0, 4][..], &[0xfd; 16], &[1, 187]].concat();
        let cases: [(Read, &[u8], Step); 10] = [
            (greeting, &[5, 2, 1, 0], Step::Greeted(true)),
            (greeting, &[5, 1, 2], Step::Greeted(false)),
            (greeting, &[5, 0], Step::Greeted(false)),
            (greeting, &[4, 1], Step::Strange),
            (
                request,
                &[5, 1, 0, 1, 10, 9, 0, 2, 0, 22],
                Step::Wants(Destination::Address([10, 9, 0, 2].into()), 22),
            ),
            (
                request,
                &name,
                Step::Wants(Destination::Name("hill".into()), 80),
            ),
            (
                request,
                &v6,
                Step::Wants(Destination::Address(IpAddr::V6([0xfd; 16].into())), 443),
            ),
            (
                request,
                &[5, 2, 0, 1, 10, 9],
                Step::Refused(Reply::CommandNotSupported),
            ),
            (
                request,
                &[5, 1, 0, 9, 1],
                Step::Refused(Reply::AddressTypeNotSupported),
            ),
            (
                request,
                &[5, 1, 0, 3, 0, 0, 80],
                Step::Refused(Reply::HostUnreachable),
            ),
        ];
        for (read, octets, expected) in cases {
            let mut heard = 0;
            let last = loop {
                match read(&octets[..heard]) {
                    Step::More(wanted) => {
                        assert!(heard < wanted && wanted <= octets.len(), "{octets:?}");
                        heard += 1;
                    }
                    other => break other,
                }
            };
            assert_eq!(last, expected, "{octets:?}");
        }
    }

    #[test]
    fn answers_are_those_of_the_standard() {
        assert_eq!((greeted(true), greeted(false)), ([5, 0], [5, 0xff]));
        assert_eq!(
            replied(Reply::ConnectionRefused),
            [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]
        );
    }
}
