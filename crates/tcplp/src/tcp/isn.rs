//! Initial sequence numbers that an off-path attacker cannot guess (RFC 6528).
//!
//! `ISN = M + F(four-tuple, secret)`: M is a clock of 4 µs a tick, so that incarnations of one connection do
//! not collide. F is SipHash-2-4 (J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012),
//! implemented here, so that the caller only provides 16 secret octets. The same hash gives each
//! connection its timestamp offset (RFC 7323 5.4) and may choose ephemeral ports (RFC 6056 3.3.3).

use chappe_core::Instant;

use super::{Flow, Seq};

/// The host's secret: 16 octets from a true random source, drawn again at each start.
///
/// If the secret leaks or survives a restart, sequence numbers can be guessed.
#[derive(Clone, Copy)]
pub struct Secret([u64; 2]);

impl Secret {
    /// A secret made of these octets.
    pub const fn new(octets: [u8; 16]) -> Secret {
        let bits = u128::from_le_bytes(octets);
        Secret([bits as u64, (bits >> 64) as u64])
    }

    /// The initial sequence number of a connection that begins now.
    pub fn initial_sequence_number(&self, now: Instant, flow: &Flow) -> Seq {
        let clock = super::clock::sequence_clock(now);
        Seq::new(clock.wrapping_add(self.hash(flow, 0, 0) as u32))
    }

    /// The connection's offset to the timestamp clock (RFC 7323 5.4).
    pub fn timestamp_offset(&self, flow: &Flow) -> u32 {
        self.hash(flow, 1, 0) as u32
    }

    /// A port in 49152..=65535 for the `attempt`-th try to reach the flow's remote end: a hash of the addresses
    /// and the remote port, plus the attempt (RFC 6056 3.3.3, the algorithm without its shared counter).
    pub fn ephemeral_port(&self, flow: &Flow, attempt: u16) -> u16 {
        let mut portless = *flow;
        portless.local.port = 0;
        49_152 | (self.hash(&portless, 2, 0) as u16).wrapping_add(attempt) & 0x3fff
    }

    /// The keyed hash of a four-tuple, for one purpose and, if that needs it, one time.
    pub(super) fn hash(&self, flow: &Flow, purpose: u8, time: u8) -> u64 {
        let mut hash = SipHash::new(self.0);
        hash.octets(flow.local.octets());
        hash.octets(flow.remote.octets());
        // Both ports as in a header, what the hash is for, and SipHash's last octet: the message's length, 37 octets.
        let [a, b] = flow.local.port.to_be_bytes();
        let [c, d] = flow.remote.port.to_be_bytes();
        hash.word(u64::from_le_bytes([a, b, c, d, purpose, time, 0, 37]));
        hash.finish()
    }
}

impl core::fmt::Debug for Secret {
    /// Never prints the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

struct SipHash([u64; 4]);

impl SipHash {
    fn new([k0, k1]: [u64; 2]) -> SipHash {
        SipHash([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    fn octets(&mut self, octets: &[u8; 16]) {
        let (words, _) = octets.as_chunks();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
    }

    #[inline(never)]
    fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.rounds(2);
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        self.rounds(4);
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }

    fn rounds(&mut self, count: u32) {
        let [mut a, mut b, mut c, mut d] = self.0;
        for _ in 0..count {
            a = a.wrapping_add(b);
            b = b.rotate_left(13) ^ a;
            a = a.rotate_left(32);
            c = c.wrapping_add(d);
            d = d.rotate_left(16) ^ c;
            a = a.wrapping_add(d);
            d = d.rotate_left(21) ^ a;
            c = c.wrapping_add(b);
            b = b.rotate_left(17) ^ c;
            c = c.rotate_left(32);
        }
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::tcp::Endpoint;
    use core::net::{IpAddr, Ipv6Addr};
    use std::vec::Vec;

    /// The test vector of the SipHash paper, appendix A: key 00..0f, message 00..0e.
    #[test]
    fn the_papers_test_vector() {
        let Secret(key) = Secret::new(core::array::from_fn(|i| i as u8));
        let mut hash = SipHash::new(key);
        hash.word(u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]));
        hash.word(u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]));
        assert_eq!(hash.finish(), 0xa129_ca61_49be_45e5);
    }

    fn flow(port: u16) -> Flow {
        let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        Flow::new(
            Endpoint::new(address(1), port),
            Endpoint::new(address(2), 80),
        )
    }

    /// T01: numbers of 100,000 connections look independent of each other: no more collisions of the top 24
    /// bits between neighbouring ports than chance allows, and every bit is set about half of the time.
    #[test]
    fn t01_initial_sequence_numbers_are_not_predictable_from_neighbours() {
        let secret = Secret::new([7; 16]);
        let numbers: Vec<u32> = (0..100_000u32)
            .map(|n| {
                let now = Instant::from_micros(u64::from(n));
                let mut flow = flow(n as u16);
                flow.remote.port = (n >> 16) as u16;
                secret.initial_sequence_number(now, &flow).bits()
            })
            .collect();
        let near = |pair: &&[u32]| pair[1].wrapping_sub(pair[0]) >> 8 == 0;
        assert!(numbers.windows(2).filter(near).count() <= 3);
        for bit in 0..32 {
            let set = numbers.iter().filter(|n| **n >> bit & 1 == 1).count();
            assert!((49_000..51_000).contains(&set), "bit {bit}: {set}");
        }
    }

    #[test]
    fn a_later_incarnation_starts_higher() {
        let secret = Secret::new([9; 16]);
        let first = secret.initial_sequence_number(Instant::from_millis(10), &flow(5));
        let second = secret.initial_sequence_number(Instant::from_millis(14), &flow(5));
        assert_eq!(second.since(first), 1000);
    }

    #[test]
    fn ephemeral_ports_stay_in_their_range_and_move_with_the_attempt() {
        let secret = Secret::new([1; 16]);
        for attempt in 0..100 {
            let port = secret.ephemeral_port(&flow(0), attempt);
            assert!(port >= 49_152);
            assert_ne!(port, secret.ephemeral_port(&flow(0), attempt + 1));
        }
    }
}
