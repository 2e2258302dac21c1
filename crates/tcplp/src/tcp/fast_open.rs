//! TCP Fast Open (RFC 7413): data on the SYN, so that a request and its answer take one round trip.
//!
//! A server gives a client a cookie, which proves at the next connection that the client does receive packets at its
//! address. Only then is data on a SYN taken, and answered before the handshake ends.
//!
//! | end | call |
//! |---|---|
//! | client, first time | [`Socket::connect_fast`] with [`Cookie::REQUEST`]; keep [`Options::fast_open`](super::Options) of the SYN-ACK |
//! | client, later | [`Socket::connect_fast`] with that cookie, [`Socket::write`], then poll |
//! | server | [`Socket::accept_fast`] in place of [`Socket::accept`] |
//!
//! A SYN with data may arrive twice, and what it asks for is then done twice: only for requests that bear it. How many
//! connections may be half open at a time is the driver's to say (RFC 7413 5.1), by [`Listener::backlog`](super::Listener).

use super::congestion::Congestion;
use super::isn::Secret;
use super::socket::Socket;
use super::state::State;
#[cfg(feature = "fast-open")]
use super::{Endpoint, Segment, Unfit};
use super::{Flow, bits};
#[cfg(feature = "fast-open")]
use chappe_core::Instant;

/// What a server gave a client: 4 to 16 octets, an even number of them; or none, which asks for one (RFC 7413 4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    len: u8,
    octets: [u8; Cookie::MAX],
}

impl Cookie {
    /// Octets of the longest.
    pub const MAX: usize = 16;

    /// No cookie yet: one is asked for.
    pub const REQUEST: Cookie = Cookie {
        len: 0,
        octets: [0; Cookie::MAX],
    };

    /// A cookie of these octets; `None` if it cannot be one.
    pub fn new(octets: &[u8]) -> Option<Cookie> {
        let mut cookie = Cookie::REQUEST;
        cookie
            .octets
            .get_mut(..octets.len())?
            .copy_from_slice(octets);
        cookie.len = octets.len() as u8;
        matches!(cookie.len, 0 | 4 | 6 | 8 | 10 | 12 | 14 | 16).then_some(cookie)
    }

    /// The octets; none if it is a request.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A server's part: the key that its cookies are made with, and the one before.
#[derive(Clone, Copy, Debug)]
pub struct FastOpen {
    keys: [Secret; 2],
}

impl FastOpen {
    /// Cookies by this key: 16 octets from a real source of randomness.
    pub const fn new(key: [u8; 16]) -> FastOpen {
        FastOpen {
            keys: [Secret::new(key); 2],
        }
    }

    /// A new key for new cookies; those of the present one stay good until the next change (RFC 7413 4.1.2 asks for a
    /// change from time to time).
    pub const fn rotated(&self, key: [u8; 16]) -> FastOpen {
        let [present, _] = self.keys;
        FastOpen {
            keys: [Secret::new(key), present],
        }
    }

    /// The cookie of the client at the flow's remote end: eight octets of SipHash over both addresses.
    pub fn cookie(&self, flow: &Flow) -> Cookie {
        let [present, _] = &self.keys;
        made_with(present, flow)
    }

    #[cfg(feature = "fast-open")]
    fn knows(&self, cookie: &Cookie, flow: &Flow) -> bool {
        self.keys.iter().any(|key| made_with(key, flow) == *cookie)
    }
}

fn made_with(key: &Secret, flow: &Flow) -> Cookie {
    Cookie::new(&key.cookie(flow).to_be_bytes()).unwrap_or_default()
}

/// A cookie and its length, as they are kept.
const KEPT: usize = 1 + Cookie::MAX;

#[cfg(feature = "fast-open")]
impl<C: Congestion> Socket<'_, C> {
    /// Opens a connection with a cookie, or asks for one. With a cookie, what is [`write`](Self::write)n before the first
    /// poll goes out on the SYN, as much as fits. If the SYN is lost, the next one carries neither (RFC 7413 4.1.3).
    ///
    /// A receive buffer of less than 17 octets makes this a plain [`connect`](Self::connect): it holds the cookie until
    /// the SYN leaves.
    pub fn connect_fast(
        &mut self,
        now: Instant,
        port: u16,
        remote: Endpoint,
        cookie: Cookie,
    ) -> Result<(), Unfit> {
        self.connect(now, port, remote)?;
        self.keep_cookie(&cookie);
        Ok(())
    }

    /// Answers a SYN: with a right cookie, takes its data, which can be read at once and answered before the handshake
    /// ends; otherwise gives the client a cookie if it asks for one or has a wrong one.
    pub fn accept_fast(
        &mut self,
        now: Instant,
        remote: Endpoint,
        syn: &Segment<'_>,
        fast_open: &FastOpen,
    ) -> Result<(), Unfit> {
        self.accept(now, remote, syn)?;
        let Some(cookie) = &syn.options.fast_open else {
            return Ok(());
        };
        let flow = self.flow();
        if !fast_open.knows(cookie, &flow) {
            self.keep_cookie(&fast_open.cookie(&flow));
            return Ok(());
        }
        let fits = syn.payload.len().min(self.receive.capacity() as usize);
        let data = syn.payload.get(..fits).unwrap_or_default();
        let inserted = self.receive.insert(self.rcv_nxt, self.rcv_nxt, data);
        self.rcv_nxt = self.rcv_nxt + inserted.advanced;
        self.rcv_adv = self.rcv_nxt;
        self.window.cwnd = self.initial_window();
        self.bits.set(bits::FAST);
        Ok(())
    }

    /// The receive buffer is empty until the SYN is out: the cookie waits there.
    fn keep_cookie(&mut self, cookie: &Cookie) {
        let mut kept = [0; KEPT];
        let [len, octets @ ..] = &mut kept;
        (*len, *octets) = (cookie.len, cookie.octets);
        let put = self.receive.keep(&kept);
        self.bits.put(bits::FAST, put);
    }
}

impl<C: Congestion> Socket<'_, C> {
    fn kept_cookie(&self) -> Cookie {
        let mut kept = [0; KEPT];
        self.receive.kept(&mut kept);
        let [len, octets @ ..] = kept;
        Cookie { len, octets }
    }

    /// Whether data came on the SYN and was taken: what answers it need not wait for the handshake.
    pub(super) fn took_early(&self) -> bool {
        cfg!(feature = "fast-open")
            && self.state == State::SynReceived
            && self.bits.has(bits::FAST)
            && self.rcv_nxt != self.snd_wl1 + 1
    }

    /// Whether the SYN that leaves now carries a cookie, and data with it.
    pub(super) fn carries_cookie(&self) -> bool {
        cfg!(feature = "fast-open")
            && self.bits.has(bits::FAST)
            && self.kept_cookie() != Cookie::REQUEST
    }

    /// The option for a SYN or SYN-ACK that leaves now.
    pub(super) fn fast_open_option(&self) -> Option<Cookie> {
        let first = self.state == State::SynReceived || !self.bits.has(bits::SYN_RETRANSMITTED);
        let told =
            cfg!(feature = "fast-open") && self.bits.has(bits::FAST) && first && !self.took_early();
        told.then(|| self.kept_cookie())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv6Addr};

    fn flow(client: u16) -> Flow {
        let end =
            |last| Endpoint::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)), 1);
        Flow::new(end(1), end(client))
    }

    #[test]
    fn only_even_lengths_from_four_to_sixteen_are_cookies() {
        for len in 0..=20 {
            let legal = len == 0 || (4..=16).contains(&len) && len % 2 == 0;
            assert_eq!(Cookie::new(&[7; 20][..len]).is_some(), legal, "{len}");
        }
    }

    #[test]
    fn a_cookie_is_the_clients_and_outlives_one_change_of_key() {
        let first = FastOpen::new([1; 16]);
        let cookie = first.cookie(&flow(2));
        assert!(first.knows(&cookie, &flow(2)));
        assert!(!first.knows(&cookie, &flow(3)) && !first.knows(&Cookie::REQUEST, &flow(2)));
        let second = first.rotated([2; 16]);
        assert!(second.knows(&cookie, &flow(2)) && second.cookie(&flow(2)) != cookie);
        assert!(!second.rotated([3; 16]).knows(&cookie, &flow(2)));
    }
}
