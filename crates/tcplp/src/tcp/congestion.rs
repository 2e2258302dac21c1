//! Congestion control: a small trait, and the algorithms that implement it.
//!
//! The socket does what all algorithms share: it tracks the flight, detects losses, runs recovery, and undoes
//! spurious reductions. The algorithm only decides by how much the window changes.
//!
//! | type | for |
//! |---|---|
//! | [`NewReno`] | the default: additive increase, multiplicative decrease |
//! | [`Few`] | chains of radios with windows of a few segments |
//! | [`Unlimited`] | a link that no other flow shares |
//! | [`Any`] | programs that choose at run time |

mod few;
mod newreno;

pub use few::Few;
pub use newreno::NewReno;

/// The congestion window and the slow-start threshold, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The congestion window: how much may be in flight.
    pub cwnd: u32,
    /// Below this the window grows exponentially; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Octets acknowledged towards the next increase (RFC 3465 2.1).
    pub acked: u32,
}

/// An acknowledgement of new data, outside of fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Octets newly acknowledged: by how much SND.UNA advanced.
    pub octets: u32,
    /// SMSS, the sender's segment size, in octets.
    pub mss: u32,
    /// The window is being rebuilt after a timeout: one segment an acknowledgement in slow start (RFC 3465 2.3).
    pub after_timeout: bool,
}

/// A congestion control algorithm.
///
/// [`Socket`](super::Socket) is generic over it, so firmware carries the code of one algorithm only.
pub trait Congestion: Default {
    /// A new connection begins: resets the state of the previous one, keeps the parameters.
    fn started(&mut self) {}

    /// Grows the window. Called only while the window is what limits the sender (RFC 9743 3, RFC 7661).
    fn acked(&mut self, window: &mut Window, acked: &Acked);

    /// Returns the new slow-start threshold after a loss, an ECN mark or a timeout. `flight` is FlightSize in octets,
    /// never more than the window; `mss` is SMSS. `u32::MAX` means that the algorithm has no window at all.
    fn reduced(&mut self, flight: u32, mss: u32) -> u32;

    /// The initial window in octets; `None` for the standard's (RFC 5681 3.1).
    fn initial_window(&self) -> Option<u32> {
        None
    }
}

/// No congestion control: only the peer's window limits the sender, as in several small stacks. For a link that no
/// other flow shares, and as a baseline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Congestion for Unlimited {
    fn acked(&mut self, _: &mut Window, _: &Acked) {}

    fn reduced(&mut self, _: u32, _: u32) -> u32 {
        u32::MAX
    }

    fn initial_window(&self) -> Option<u32> {
        Some(u32::MAX)
    }
}

/// Any of the algorithms, chosen at run time: for programs that compare them. Firmware names one type instead
/// and carries no code of the others.
#[derive(Clone, Copy, Debug)]
pub enum Any {
    /// RFC 5681 and RFC 6582: see [`NewReno`].
    NewReno(NewReno),
    /// TCP-FeW, fractional increments: see [`Few`].
    Few(Few),
    /// No congestion control: see [`Unlimited`].
    Unlimited(Unlimited),
}

impl Default for Any {
    fn default() -> Any {
        Any::NewReno(NewReno)
    }
}

impl Congestion for Any {
    fn started(&mut self) {
        match self {
            Any::Few(algorithm) => algorithm.started(),
            Any::NewReno(_) | Any::Unlimited(_) => {}
        }
    }

    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        match self {
            Any::NewReno(algorithm) => algorithm.acked(window, acked),
            Any::Few(algorithm) => algorithm.acked(window, acked),
            Any::Unlimited(algorithm) => algorithm.acked(window, acked),
        }
    }

    fn reduced(&mut self, flight: u32, mss: u32) -> u32 {
        match self {
            Any::NewReno(algorithm) => algorithm.reduced(flight, mss),
            Any::Few(algorithm) => algorithm.reduced(flight, mss),
            Any::Unlimited(algorithm) => algorithm.reduced(flight, mss),
        }
    }

    fn initial_window(&self) -> Option<u32> {
        match self {
            Any::Unlimited(algorithm) => algorithm.initial_window(),
            Any::NewReno(_) | Any::Few(_) => None,
        }
    }
}

/// Slow start with appropriate byte counting (RFC 3465 2.2, L = 2). Returns the octets left over once the
/// threshold is reached.
fn slow_start(window: &mut Window, acked: &Acked) -> u32 {
    if window.cwnd >= window.ssthresh {
        return acked.octets;
    }
    let limit = if acked.after_timeout { 1 } else { 2 };
    let step = acked.octets.min(acked.mss.saturating_mul(limit));
    window.cwnd = window.cwnd.saturating_add(step);
    window.acked = 0;
    0
}

/// Half of what is in flight, at least two segments (RFC 5681 3.1, equation 4).
fn halved(flight: u32, mss: u32) -> u32 {
    (flight / 2).max(mss.saturating_mul(2))
}

/// `part * of / whole`, rounded up. Numbers of more than 16 bits lose their lowest bits, so that all of it is 32-bit
/// arithmetic: the window of a large buffer shrinks by a few octets more or less.
pub(super) fn share(part: u32, of: u32, whole: u32) -> u32 {
    let bits = 32 - part.max(of).max(whole).leading_zeros();
    let shift = bits.saturating_sub(16);
    let product = (part >> shift).saturating_mul(of >> shift);
    product.div_ceil((whole >> shift).max(1)) << shift
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_exact_in_small_windows_and_close_in_large_ones() {
        let exact = |part: u64, of: u64, whole: u64| (part * of).div_ceil(whole);
        let mut random = chappe_core::Seed(1).stream(chappe_core::Purpose::Trial(0));
        for round in 0..20_000u32 {
            let max = [1 << 10, 1 << 16, 1 << 20, 1 << 30][round as usize % 4];
            let mut draw = || 1 + random.below(max - 1);
            let whole = draw();
            let (part, of) = (1 + draw() % whole, 1 + draw() % whole);
            let got = u64::from(share(part as u32, of as u32, whole as u32));
            let want = exact(part, of, whole);
            let off = got.abs_diff(want);
            assert!(
                off <= if max <= 1 << 16 { 0 } else { whole >> 13 },
                "{part} {of} {whole}"
            );
        }
    }
}
