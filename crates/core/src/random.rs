//! Seeded, independent random streams that can be read at any position.
//!
//! A run has one [`Seed`]. Each [`Purpose`] has a separate stream, so two protocols compared on one seed meet the same
//! fading, placement and faults, however many numbers each of them draws. [`Stream::at`] gives the number at any
//! position, so the fade of link (a, b) in its n-th block does not depend on earlier draws.
//!
//! The generator is Squares-64 (B. Widynski, "Squares: A Fast Counter-Based RNG", arXiv:2004.06278), five
//! rounds of squaring a counter that was multiplied by a key. Its keys need irregular digits; [`Seed::stream`]
//! makes them as the author's key program does: hexadecimal digits that differ from their neighbours, the
//! last one odd.

/// The number that determines every random value in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed(pub u64);

/// The purpose of a stream of random numbers. Two purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Node positions, and the choice of sources and receivers.
    Topology,
    /// Slow, static gain of each link.
    Shadowing,
    /// Fast gain of each link in each coherence block.
    Fading,
    /// Whether a frame with a given success probability survived.
    Reception,
    /// External interferers: when and where they transmit.
    Interference,
    /// Crystal errors and the phase of node clocks.
    Clock,
    /// Faults: when, where, how long; which bits are corrupted.
    Fault,
    /// Arrivals and contents of traffic flow `n`.
    Traffic(u32),
    /// The node's own choices (back-off, coding coefficients): node `n`.
    Node(u32),
    /// Numbers for tests and for statistics such as bootstrap resampling.
    Trial(u32),
    /// Where node `n` goes, how fast, and how long it stays.
    Motion(u32),
}

/// An independent sequence of 64-bit numbers with random access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    next: u64,
}

impl Seed {
    /// The stream for one purpose under this seed.
    pub fn stream(self, purpose: Purpose) -> Stream {
        let (kind, index) = purpose.words();
        // Without the constant, kind 8 with index 9 would have the stream of kind 9 with index 8: a sum has no order.
        let mixed = mix(self
            .0
            .wrapping_add(mix(kind))
            .wrapping_add(mix(index ^ 0x5bd1_e995)));
        Stream {
            key: irregular_key(mixed),
            next: 0,
        }
    }

    /// An independent seed for part `index` of a run, such as one scenario out of ten.
    pub fn child(self, index: u64) -> Seed {
        Seed(mix(self.0 ^ mix(index.wrapping_add(1))))
    }
}

impl Purpose {
    fn words(self) -> (u64, u64) {
        // Part of every stream's key: a number that changes, changes the digests of all runs.
        match self {
            Purpose::Topology => (1, 0),
            Purpose::Shadowing => (2, 0),
            Purpose::Fading => (3, 0),
            Purpose::Reception => (4, 0),
            Purpose::Interference => (5, 0),
            Purpose::Clock => (6, 0),
            Purpose::Fault => (7, 0),
            Purpose::Traffic(flow) => (8, u64::from(flow)),
            Purpose::Node(node) => (9, u64::from(node)),
            Purpose::Trial(trial) => (10, u64::from(trial)),
            Purpose::Motion(node) => (11, u64::from(node)),
        }
    }
}

impl Stream {
    /// The number at `position`; reading it changes nothing.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        squares(position, self.key)
    }

    /// The number at `position` as a fraction in (0, 1]: safe to take the logarithm of.
    #[inline]
    pub fn fraction_at(&self, position: u64) -> f64 {
        open_fraction(self.at(position))
    }

    /// The next number, uniform over all 64-bit values.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let value = squares(self.next, self.key);
        self.next = self.next.wrapping_add(1);
        value
    }

    /// The next number as a fraction in (0, 1].
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        open_fraction(self.next_u64())
    }

    /// A whole number in `0..limit`, all equally likely; zero if `limit` is zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // Numbers past the last whole multiple of `limit` would favour small results: draw again.
        let usable = u64::MAX - u64::MAX % limit;
        loop {
            let value = self.next_u64();
            if value < usable {
                return value % limit;
            }
        }
    }

    /// True with the given probability: never at 0 and below, always at 1 and above.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() <= probability
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        // Finite: a fraction is never zero.
        -libm::log(self.fraction())
    }

    /// A normally distributed number with mean 0 and deviation 1 (Box and Muller, 1958). Draws two numbers.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.fraction()));
        // The sine would give a second number. It is not kept: a stream has no state but its position.
        radius * libm::cos(2.0 * core::f64::consts::PI * self.fraction())
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            // In one order of octets on every machine: what is drawn here stands in digests.
            let random = self.next_u64().to_le_bytes();
            for (byte, random) in chunk.iter_mut().zip(random) {
                *byte = random;
            }
        }
    }

    /// Shuffles `items`, all orders equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// Maps 64 random bits to a multiple of 2^-53 in (0, 1].
#[inline]
fn open_fraction(bits: u64) -> f64 {
    // 53 bits are all that a double's mantissa holds. The one added makes zero impossible, and one possible.
    ((bits >> 11) + 1) as i64 as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Squares-64: five rounds of Widynski's generator.
#[inline]
fn squares(counter: u64, key: u64) -> u64 {
    let y = counter.wrapping_mul(key);
    let z = y.wrapping_add(key);
    let mut x = y;
    x = x.wrapping_mul(x).wrapping_add(y).rotate_left(32);
    x = x.wrapping_mul(x).wrapping_add(z).rotate_left(32);
    x = x.wrapping_mul(x).wrapping_add(y).rotate_left(32);
    x = x.wrapping_mul(x).wrapping_add(z);
    let fourth = x;
    x = x.rotate_left(32);
    fourth ^ (x.wrapping_mul(x).wrapping_add(y) >> 32)
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sixteen hexadecimal digits, none zero, none equal to the one before, the last one odd.
fn irregular_key(random: u64) -> u64 {
    let (mut key, mut before, mut source) = (0u64, 0u64, random);
    for place in 0..16u64 {
        source = mix(source);
        // 15 non-zero digits, one of which stood just before: choose among the other 14.
        let choice = source % if before == 0 { 15 } else { 14 } + 1;
        let mut digit = if before != 0 && choice >= before {
            choice + 1
        } else {
            choice
        };
        if place == 15 && digit % 2 == 0 {
            // An even digit's upper neighbour is odd and at most 15; step past it if it stood before.
            digit = if digit + 1 == before {
                digit - 1
            } else {
                digit + 1
            };
        }
        key = key << 4 | digit;
        before = digit;
    }
    key
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Keys must meet the conditions of Squares-64, whatever the seed.
    #[test]
    fn keys_have_irregular_digits_and_are_odd() {
        for seed in 0..10_000 {
            let key = irregular_key(mix(seed));
            let digits: Vec<u64> = (0..16).map(|place| key >> (60 - 4 * place) & 15).collect();
            assert!(digits.iter().all(|&digit| digit != 0), "{key:x}");
            assert!(digits.windows(2).all(|pair| pair[0] != pair[1]), "{key:x}");
            assert_eq!(key % 2, 1, "{key:x}");
        }
    }

    /// The digest of a run must not change with a release of this crate: these values are fixed permanently.
    #[test]
    fn numbers_never_change() {
        let stream = Seed(1).stream(Purpose::Fading);
        assert_eq!(stream.key, 0xacf1_3879_1b4f_28e3);
        assert_eq!([stream.at(0), stream.at(1), stream.at(1 << 40)], FIXED);
    }
    const FIXED: [u64; 3] = [
        0xdd09_f1ac_29fb_f7a9,
        0xf5d0_4396_a884_5d07,
        0x668a_726b_480a_4218,
    ];

    #[test]
    fn purposes_and_seeds_do_not_share_numbers() {
        let mut first = Vec::new();
        for seed in 0..50 {
            for purpose in [
                Purpose::Topology,
                Purpose::Fading,
                Purpose::Node(0),
                Purpose::Node(1),
            ] {
                first.push(Seed(seed).stream(purpose).at(0));
                first.push(Seed(seed).child(3).stream(purpose).at(0));
            }
        }
        let all = first.len();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), all);
    }

    /// Mean, variance and neighbour correlation of 200,000 fractions within five standard errors.
    #[test]
    fn fractions_are_uniform() {
        let mut stream = Seed(7).stream(Purpose::Trial(0));
        let draws: Vec<f64> = (0..200_000).map(|_| stream.fraction()).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let pairs = draws
            .windows(2)
            .map(|w| (w[0] - mean) * (w[1] - mean))
            .sum::<f64>()
            / n;
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / n).sqrt(), "{mean}");
        assert!(
            (variance - 1.0 / 12.0).abs() < 5.0 * (1.0 / 180.0 / n).sqrt(),
            "{variance}"
        );
        assert!((pairs / variance).abs() < 5.0 / n.sqrt(), "{pairs}");
        assert!(draws.iter().all(|&x| x > 0.0 && x <= 1.0));
    }

    #[test]
    fn normal_and_exponential_have_their_moments() {
        let mut stream = Seed(9).stream(Purpose::Trial(1));
        let n = 100_000;
        let (mut sum, mut squares, mut exponential) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = stream.normal();
            sum += x;
            squares += x * x;
            exponential += stream.exponential();
        }
        let n = f64::from(n);
        assert!((sum / n).abs() < 5.0 / n.sqrt());
        assert!((squares / n - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert!((exponential / n - 1.0).abs() < 5.0 / n.sqrt());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut stream = Seed(3).stream(Purpose::Trial(2));
        let mut counts = [0u32; 32];
        for _ in 0..32_000 {
            counts[stream.below(32) as usize] += 1;
        }
        let chi2: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi2 < 61.1, "chi-squared of 31 degrees at 0.1 %: {chi2}");
        assert_eq!(stream.below(0), 0);
    }
}
