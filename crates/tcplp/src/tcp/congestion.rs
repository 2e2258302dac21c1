//! How the congestion window grows and shrinks: a small trait, and five answers.
//!
//! The socket does what all of them share: it counts what is in flight, decides that something was lost, runs
//! recovery, and undoes what proves wrong. The trait says by how much.

mod cubic;
mod few;
mod newreno;
mod westwood;

pub use cubic::Cubic;
pub use few::Few;
pub use newreno::NewReno;
pub use westwood::Westwood;

use chappe_core::Instant;

/// The congestion window and the slow-start threshold, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How much may be in flight.
    pub cwnd: u32,
    /// Below this the window grows exponentially; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Octets acknowledged towards the next increase.
    pub acked: u32,
}

/// An acknowledgement of new data, outside of fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When.
    pub now: Instant,
    /// Octets newly acknowledged.
    pub octets: u32,
    /// The sender's segment size.
    pub mss: u32,
    /// Smoothed round-trip time, µs; 0 if unknown.
    pub srtt: u32,
    /// The window is being rebuilt after a timeout: one segment an acknowledgement in slow start (RFC 3465 2.3).
    pub after_timeout: bool,
}

/// What says that the path is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Segments were lost, and others came through.
    Loss,
    /// A router marked a packet (RFC 3168).
    Mark,
    /// Nothing came back within the retransmission timeout.
    Timeout,
}

/// The path has given a sign of congestion.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The window as it was.
    pub window: Window,
    /// Octets in flight, never more than the window.
    pub flight: u32,
    /// The sender's segment size.
    pub mss: u32,
    /// What the sign was.
    pub signal: Signal,
    /// The last round-trip time measured, µs; 0 if unknown.
    pub rtt: u32,
    /// Smallest round-trip time of the connection, µs; 0 if unknown.
    pub min_rtt: u32,
}

#[cfg(test)]
impl Reduction {
    /// With this much in flight, the whole window, and no round trip measured.
    fn of(flight: u32, mss: u32, signal: Signal) -> Reduction {
        let window = Window {
            cwnd: flight,
            ssthresh: u32::MAX,
            acked: 0,
        };
        Reduction {
            window,
            flight,
            mss,
            signal,
            rtt: 0,
            min_rtt: 0,
        }
    }
}

/// A congestion control algorithm.
pub trait Congestion: Default {
    /// A new connection begins: forgets the one before, keeps its parameters.
    fn started(&mut self) {}

    /// Grows the window. Called only while the window is what holds the sender back (RFC 9743 3, RFC 7661).
    fn acked(&mut self, window: &mut Window, acked: &Acked);

    /// The new slow-start threshold. `u32::MAX` means that the algorithm has no window at all.
    fn reduced(&mut self, reduction: &Reduction) -> u32;

    /// The last reduction was a mistake, and window and threshold have been put back.
    fn undone(&mut self) {}

    /// The window to start with, if not the standard's.
    fn initial_window(&self) -> Option<u32> {
        None
    }
}

/// No congestion control: only the peer's window limits the sender, as in several small stacks. Fit for a link
/// that nobody shares, and as a baseline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Congestion for Unlimited {
    fn acked(&mut self, _: &mut Window, _: &Acked) {}

    fn reduced(&mut self, _: &Reduction) -> u32 {
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
    /// [`NewReno`].
    NewReno(NewReno),
    /// [`Few`].
    Few(Few),
    /// [`Cubic`].
    Cubic(Cubic),
    /// [`Westwood`].
    Westwood(Westwood),
    /// [`Unlimited`].
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
            Any::Cubic(algorithm) => algorithm.started(),
            Any::NewReno(_) | Any::Westwood(_) | Any::Unlimited(_) => {}
        }
    }

    fn acked(&mut self, window: &mut Window, acked: &Acked) {
        match self {
            Any::NewReno(algorithm) => algorithm.acked(window, acked),
            Any::Few(algorithm) => algorithm.acked(window, acked),
            Any::Cubic(algorithm) => algorithm.acked(window, acked),
            Any::Westwood(algorithm) => algorithm.acked(window, acked),
            Any::Unlimited(algorithm) => algorithm.acked(window, acked),
        }
    }

    fn reduced(&mut self, reduction: &Reduction) -> u32 {
        match self {
            Any::NewReno(algorithm) => algorithm.reduced(reduction),
            Any::Few(algorithm) => algorithm.reduced(reduction),
            Any::Cubic(algorithm) => algorithm.reduced(reduction),
            Any::Westwood(algorithm) => algorithm.reduced(reduction),
            Any::Unlimited(algorithm) => algorithm.reduced(reduction),
        }
    }

    fn undone(&mut self) {
        if let Any::Cubic(algorithm) = self {
            algorithm.undone();
        }
    }

    fn initial_window(&self) -> Option<u32> {
        match self {
            Any::Unlimited(algorithm) => algorithm.initial_window(),
            _ => None,
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
