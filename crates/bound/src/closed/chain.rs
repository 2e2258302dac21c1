//! A line of hops, each heard only by the next: the rate at its end.

/// Packets/s over a chain whose hops all share one collision domain, with repetition or recoding at
/// every hop: 1 / sum of a_h / p_h.
///
/// `hops` are (airtime of a frame in seconds, delivery probability). Every packet must cross every
/// hop, and crossing takes a_h / p_h of the common airtime on average. Exact for this network (it is
/// the value of the multicast program); where a frame can skip a hop, [`crate::anypath::anypath`]
/// gives the larger right value. Zero if a hop is dead.
pub fn shared_domain_fps(hops: &[(f64, f64)]) -> f64 {
    1.0 / hops.iter().map(|(airtime_s, p)| airtime_s / p).sum::<f64>()
}

/// Packets/s over a chain in which any `together` consecutive transmitters silence each other and
/// others may send at once: the tightest window of that many hops, 1 / max of sum a_h / p_h.
///
/// Reachable as well: windows are the maximal cliques of an interval graph, which is perfect (Jain,
/// Padhye, Padmanabhan, Qiu, MobiCom 2003, on when clique constraints are exact). Transmitters 2
/// hops apart interfere with each other's receivers, so `together` is at least 3 in most radios.
pub fn with_reuse_fps(hops: &[(f64, f64)], together: usize) -> f64 {
    let window = together.clamp(1, hops.len().max(1));
    hops.windows(window)
        .map(shared_domain_fps)
        .fold(f64::INFINITY, f64::min)
}

/// Packets/s if only the ends code or repeat and relays forward what they happen to hear, in one
/// collision domain: the last node hears prod p_h of the packets, and hop h carries the part that
/// survived to it.
///
/// Rate = prod p / sum over h of a_h * prod of p before h.
pub fn end_to_end_fps(hops: &[(f64, f64)]) -> f64 {
    let mut survived = 1.0;
    let mut airtime_per_sent = 0.0;
    for (airtime_s, p) in hops {
        airtime_per_sent += airtime_s * survived;
        survived *= p;
    }
    survived / airtime_per_sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_by_hand() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let hops = [(0.01, 0.5), (0.01, 1.0), (0.02, 1.0), (0.01, 0.25)];
        near(shared_domain_fps(&hops), 1.0 / 0.09);
        near(with_reuse_fps(&hops, 1), 1.0 / 0.04);
        near(with_reuse_fps(&hops, 2), 1.0 / 0.06);
        near(with_reuse_fps(&hops, 9), 1.0 / 0.09);
        // 1 packet in 2 survives hop 1, all survive hop 2.
        near(end_to_end_fps(&hops[..2]), 0.5 / 0.015);
        // On one hop there is nothing between the ends.
        near(end_to_end_fps(&hops[3..]), shared_domain_fps(&hops[3..]));
    }
}
