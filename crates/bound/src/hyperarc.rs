//! One transmission received by many nodes: the polymatroid of a broadcast, its violated rows and its prices.
//!
//! A frame of a node is received by at least one member of a set K with probability
//! b(K) = 1 - prod over j in K of (1 - p_j). What the node hands to its neighbours, x_j, must keep
//! x(K) <= z b(K) for every set K. There are exponentially many sets; the three functions here
//! need none but *prefixes* of one sorted order, so each costs O(d log d) for d neighbours.
//!
//! Why prefixes are enough: with w_j = -ln(1 - p_j), a violated set maximises X + z exp(-W), where
//! X = x(K) and W = w(K). That is convex in (X, W), so it is largest at a vertex of the zonogon of
//! all (X, W), and the vertices that matter are the prefixes of the order by falling x_j / w_j.

/// A neighbour's share of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Probability that the neighbour receives a frame, above 0.
    pub p: f64,
    /// A flow x_j in frames/s, or a level (see [`expected_best`]).
    pub value: f64,
}

/// The neighbour set K with the largest excess x(K) - z b(K), and that excess; `None` if no excess
/// is above `tolerance`. Members are indices into `flows`, in falling order of x_j / w_j.
///
/// Exact: no subset has a larger excess, up to rounding.
pub fn most_violated_set(flows: &[Share], z: f64, tolerance: f64) -> Option<(Vec<usize>, f64)> {
    let order = by_density(flows);
    let mut best = (0, tolerance);
    walk(flows, &order, |length, flow, reach| {
        let excess = flow - z * reach;
        if excess > best.1 {
            best = (length, excess);
        }
    });
    (best.0 > 0).then(|| (order[..best.0].to_vec(), best.1))
}

/// The fewest transmissions per second that carry the flows: the largest x(K) / b(K) over all sets.
pub fn transmissions_needed(flows: &[Share]) -> f64 {
    let mut needed: f64 = 0.0;
    walk(flows, &by_density(flows), |_, flow, reach| {
        needed = needed.max(flow / reach)
    });
    needed
}

/// Expected value of the best level among the neighbours that receive one frame, and 0 if none does.
///
/// This is the Lovász extension of b at the levels: the largest sum of level_j * x_j that one
/// transmission can buy, hence also the least dual price of all the rows x(K) <= z b(K) together.
/// Levels at or below 0 count as 0. Only sums and products of non-negative numbers: the relative
/// rounding error is at most a few times the number of neighbours times 2^-53.
pub fn expected_best(levels: &[Share]) -> f64 {
    let mut order: Vec<&Share> = levels.iter().filter(|share| share.value > 0.0).collect();
    order.sort_by(|a, b| b.value.total_cmp(&a.value));
    let mut missed = 1.0;
    let mut total = 0.0;
    for share in order {
        total += missed * share.p * share.value;
        missed *= 1.0 - share.p;
    }
    total
}

/// Neighbours with flow, by falling x_j / w_j. A certain link (w infinite) comes last: once it is
/// in K, b(K) = 1 and every other member is free.
fn by_density(flows: &[Share]) -> Vec<usize> {
    let density = |index: usize| flows[index].value / -(-flows[index].p).ln_1p();
    let mut order: Vec<usize> = (0..flows.len()).filter(|&i| flows[i].value > 0.0).collect();
    order.sort_by(|&a, &b| density(b).total_cmp(&density(a)).then(a.cmp(&b)));
    order
}

fn walk(flows: &[Share], order: &[usize], mut visit: impl FnMut(usize, f64, f64)) {
    let (mut flow, mut log_missed) = (0.0, 0.0);
    for (index, &neighbour) in order.iter().enumerate() {
        flow += flows[neighbour].value;
        log_missed += (-flows[neighbour].p).ln_1p();
        visit(index + 1, flow, -log_missed.exp_m1());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_testkit::SplitMix64;

    fn instance(random: &mut SplitMix64) -> Vec<Share> {
        let neighbours = 1 + (random.unit() * 9.0) as usize;
        (0..neighbours)
            .map(|_| Share {
                p: match (random.unit() * 10.0) as u32 {
                    0 => 1.0,
                    1 => 1e-6,
                    2 => 0.5,
                    _ => random.unit().max(1e-3),
                },
                value: if random.unit() < 0.15 {
                    0.0
                } else {
                    random.unit()
                },
            })
            .collect()
    }

    fn subsets(shares: &[Share]) -> impl Iterator<Item = (f64, f64)> + '_ {
        (1u32..1 << shares.len()).map(|mask| {
            let members = (0..shares.len()).filter(|&j| mask >> j & 1 == 1);
            let missed: f64 = members.clone().map(|j| 1.0 - shares[j].p).product();
            (members.map(|j| shares[j].value).sum(), 1.0 - missed)
        })
    }

    /// 4000 random broadcasts with certain, nearly dead and equal links, against all subsets.
    #[test]
    fn separation_matches_all_subsets() {
        let mut random = SplitMix64(7);
        let mut violated = 0;
        for _ in 0..4000 {
            let flows = instance(&mut random);
            let z = random.unit() * 4.0;
            let brute = subsets(&flows)
                .map(|(x, b)| x - z * b)
                .fold(f64::MIN, f64::max);
            match most_violated_set(&flows, z, 1e-9) {
                Some((set, excess)) => {
                    violated += 1;
                    assert!((excess - brute).abs() < 1e-9, "{excess} against {brute}");
                    let flow: f64 = set.iter().map(|&j| flows[j].value).sum();
                    let missed: f64 = set.iter().map(|&j| 1.0 - flows[j].p).product();
                    assert!((flow - z * (1.0 - missed) - excess).abs() < 1e-9);
                }
                None => assert!(brute <= 2e-9, "missed a violation of {brute}"),
            }
        }
        assert!(
            (500..3500).contains(&violated),
            "{violated} violated: instances too one-sided"
        );
    }

    #[test]
    fn transmissions_needed_matches_all_subsets() {
        let mut random = SplitMix64(8);
        for _ in 0..2000 {
            let flows = instance(&mut random);
            let brute = subsets(&flows)
                .filter(|&(x, _)| x > 0.0)
                .map(|(x, b)| x / b)
                .fold(0.0, f64::max);
            let needed = transmissions_needed(&flows);
            assert!(
                (needed - brute).abs() <= 1e-9 * brute.max(1.0),
                "{needed} against {brute}"
            );
        }
    }

    /// The expectation over all 2^d outcomes of one frame.
    #[test]
    fn expected_best_matches_all_outcomes() {
        let mut random = SplitMix64(9);
        for _ in 0..1000 {
            let levels = instance(&mut random);
            let brute: f64 = (0u32..1 << levels.len())
                .map(|received| {
                    let (mut chance, mut best) = (1.0, 0.0f64);
                    for (j, share) in levels.iter().enumerate() {
                        if received >> j & 1 == 1 {
                            chance *= share.p;
                            best = best.max(share.value);
                        } else {
                            chance *= 1.0 - share.p;
                        }
                    }
                    chance * best
                })
                .sum();
            assert!((expected_best(&levels) - brute).abs() < 1e-12);
        }
    }
}
