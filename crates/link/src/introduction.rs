//! Introductions: a third host tells two of its peers, each behind an address translator, where it sees the other one.
//!
//! Each of the two names the third one as introducer of the other, and asks it until they meet. The introducer tells both at once, so
//! that both call: a call opens the caller's translator for the other's. That works where translators keep an inner address on one
//! outer port whatever it sends to (RFC 4787, 4.1: endpoint-independent mapping), as that RFC asks. What is said is as authentic as
//! any frame, and decides only where a peer is called: its key decides whether it is the peer.

use std::net::{IpAddr, SocketAddr};

use chappe_core::{Duration, Instant};
use chappe_session::Public;
use chappe_sys::Endpoint;

use crate::peer::{Peer, State};

/// How often an introducer is asked. A translator forgets an address after 30 s at the earliest (RFC 4787, 4.3), and calls are repeated
/// meanwhile.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Kinds behind a note, beside those of the search for the MTU.
const WANT: u8 = 3;
const THERE: u8 = 4;
/// Octets of the longest: kind, a zero, key, length of the address, address, port.
pub(crate) const MOST: usize = 2 + 32 + 1 + 16 + 2;

/// What hosts say to each other about a third one, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A host asks to be introduced to the one with this key.
    Want(Public),
    /// It is seen there, and looks for you.
    There(Public, SocketAddr),
}

impl Said {
    pub fn read(octets: &[u8]) -> Option<Said> {
        let (&[kind, 0], rest) = octets.split_first_chunk()? else {
            return None;
        };
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let key = Public::new(*key);
        if kind == WANT {
            return Some(Said::Want(key));
        }
        let (len, rest) = rest.split_first().filter(|_| kind == THERE)?;
        let (address, port) = rest.split_at_checked((*len).into())?;
        let address: IpAddr = match address.len() {
            4 => (*address.first_chunk::<4>()?).into(),
            16 => (*address.first_chunk::<16>()?).into(),
            _ => return None,
        };
        let port = u16::from_be_bytes(*port.first_chunk()?);
        Some(Said::There(key, SocketAddr::new(address, port)))
    }

    /// Writes it to the front of `octets`, and returns its length; `None` if there is no room.
    pub fn write(&self, octets: &mut [u8]) -> Option<usize> {
        let (kind, key) = match self {
            Said::Want(key) => (WANT, key),
            Said::There(key, _) => (THERE, key),
        };
        let mut out = Vec::with_capacity(MOST);
        out.extend([kind, 0]);
        out.extend(key.octets());
        if let Said::There(_, at) = self {
            match at.ip() {
                IpAddr::V4(ip) => {
                    out.push(4);
                    out.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(16);
                    out.extend(ip.octets());
                }
            }
            out.extend(at.port().to_be_bytes());
        }
        octets.get_mut(..out.len())?.copy_from_slice(&out);
        Some(out.len())
    }
}

/// The peers of a host by their places.
pub trait Peers {
    /// The place of the peer with this key.
    fn place_of_key(&self, key: &Public) -> Option<usize>;
    /// The peer at a place. It has something to send afterwards.
    fn peer_at(&mut self, place: usize) -> Option<&mut Peer>;
}

/// Asks the introducer of the peer at a place for it, if it is time.
pub fn ask(peers: &mut impl Peers, now: Instant, place: usize) {
    let asked = peers
        .peer_at(place)
        .and_then(|peer| peer.wants_introduction(now, ASK_EVERY));
    let Some((by, whom)) = asked else {
        return;
    };
    if let Some(by) = peers.place_of_key(&by)
        && let Some(introducer) = peers.peer_at(by)
    {
        introducer.say(Said::Want(whom));
    }
}

/// Acts on what the peer at a place has said. `introduces`: whether this host introduces its peers to each other.
pub fn act(peers: &mut impl Peers, now: Instant, place: usize, introduces: bool) {
    let Some(peer) = peers.peer_at(place) else {
        return;
    };
    let from = peer.config().public;
    match peer.take_introduction() {
        Some(Said::Want(whom)) if introduces => introduce(peers, now, place, &whom),
        Some(Said::There(whom, at)) => {
            let other = peers.place_of_key(&whom);
            if let Some(other) = other.and_then(|other| peers.peer_at(other))
                && other.introducer() == Some(from)
                && other.state(now) != State::Up
            {
                other.meet(Endpoint::Udp(at));
            }
        }
        _ => {}
    }
}

/// Tells the peer at a place and the one that it looks for of each other, if both are up.
fn introduce(peers: &mut impl Peers, now: Instant, place: usize, whom: &Public) {
    let Some(other) = peers.place_of_key(whom).filter(|other| *other != place) else {
        return;
    };
    let mut seen = |place: usize| {
        let peer = peers
            .peer_at(place)
            .filter(|peer| peer.state(now) == State::Up)?;
        match peer.endpoint() {
            Some(Endpoint::Udp(at)) => Some((peer.config().public, at)),
            _ => None,
        }
    };
    let (Some(one), Some(two)) = (seen(place), seen(other)) else {
        return;
    };
    for (to, (key, at)) in [(place, two), (other, one)] {
        if let Some(peer) = peers.peer_at(to) {
            peer.say(Said::There(key, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is written is read, and nothing else is: every prefix of it, and other lengths of addresses, are refused.
    #[test]
    fn what_is_said_is_read() {
        let key = Public::new([7; 32]);
        let all = [
            Said::Want(key),
            Said::There(key, "192.0.2.7:1795".parse().unwrap()),
            Said::There(key, "[2001:db8::7]:65535".parse().unwrap()),
        ];
        for said in all {
            let mut octets = [0; MOST];
            let len = said.write(&mut octets).unwrap();
            assert_eq!(Said::read(&octets[..len]), Some(said));
            assert!((0..len).all(|short| Said::read(&octets[..short]).is_none()));
            assert_eq!(said.write(&mut octets[..len - 1]), None);
        }
        let mut octets = [0; MOST];
        all[1].write(&mut octets);
        octets[34] = 5;
        assert_eq!(Said::read(&octets), None);
    }
}
