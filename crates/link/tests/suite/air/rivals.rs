//! What TCP would get through other tunnels, computed as plain TCP is (`cells.rs`), and as generously.
//!
//! WireGuard repeats nothing: TCP through it is plain TCP with shorter segments, since its header and the one around it take 80 octets of
//! 1500 (wg-quick's MTU of 1420). UDPspeeder sends ten repairs after each twenty packets (`-f 20:10`, its own example), whatever the
//! losses: TCP keeps two thirds of the rate, less what is lost of blocks that lose more than ten of thirty. Its header and its wait for
//! a block are not counted.

use super::PAYLOAD;
use super::cells::{Cell, plain_at};

/// Octets of a segment's payload through WireGuard: an MTU of 1420 less 52.
const WIREGUARD_PAYLOAD: usize = 1368;
/// Packets and repairs of a block of UDPspeeder.
const BLOCK: (usize, usize) = (20, 10);

/// What a tunnel would get at most, bit/s: the better of cubic and BBR.
pub fn wireguard(cell: &Cell) -> f64 {
    let (cubic, bbr) = cell.plain();
    cubic.max(bbr) * WIREGUARD_PAYLOAD as f64 / PAYLOAD as f64
}

/// The same with UDPspeeder's blocks.
pub fn udpspeeder(cell: &Cell) -> f64 {
    let air = &cell.air;
    let left = left_by_blocks(air.loss, air.burst);
    let rate = BLOCK.0 as f64 / (BLOCK.0 + BLOCK.1) as f64;
    // The cell's bound has what the medium leaves; blocks leave something else of two thirds.
    let bound = cell.bound / (1.0 - air.loss) * rate * (1.0 - left);
    let (cubic, bbr) = plain_at(bound, air.delay * 2, left);
    cubic.max(bbr)
}

/// The share of packets that blocks leave lost: those of blocks that lose more than they have repairs. The medium loses independently, or
/// in runs of a mean length (`medium.rs`), and the state at the begin of a block is that of any frame.
fn left_by_blocks(loss: f64, burst: f64) -> f64 {
    let after = match burst {
        0.0 => [loss, loss],
        burst => [loss / (burst * (1.0 - loss)), 1.0 - 1.0 / burst],
    };
    let (packets, all) = (BLOCK.0, BLOCK.0 + BLOCK.1);
    // The probability of so many losses among packets and among all so far, by whether the last frame was lost.
    let mut now = vec![[0.0f64; 2]; (packets + 1) * (all + 1)];
    let place = |of_packets: usize, of_all: usize| of_packets * (all + 1) + of_all;
    now[place(0, 0)] = [1.0 - loss, loss];
    for frame in 0..all {
        let mut next = vec![[0.0; 2]; now.len()];
        for of_packets in 0..=packets.min(frame) {
            for of_all in of_packets..=frame {
                for (last, chance) in after.into_iter().enumerate() {
                    let p = now[place(of_packets, of_all)][last];
                    let own = usize::from(frame < packets);
                    next[place(of_packets, of_all)][0] += p * (1.0 - chance);
                    if of_packets + own <= packets {
                        next[place(of_packets + own, of_all + 1)][1] += p * chance;
                    }
                }
            }
        }
        now = next;
    }
    let mut left = 0.0;
    for of_packets in 0..=packets {
        for of_all in BLOCK.1 + 1..=all {
            let p: f64 = now[place(of_packets, of_all)].iter().sum();
            left += p * of_packets as f64;
        }
    }
    left / packets as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the computed share agrees with blocks that are drawn, for independent losses and for bursts, and is nothing without losses.
    #[test]
    fn blocks_leave_what_a_draw_leaves() {
        use chappe_core::{Purpose, Seed};
        assert_eq!(left_by_blocks(0.0, 0.0), 0.0);
        for (loss, burst) in [(0.3, 0.0), (0.15, 4.0), (0.3, 4.0), (0.45, 0.0)] {
            let mut random = Seed(7).stream(Purpose::Reception);
            let (mut bad, mut left, blocks) = (false, 0, 40_000);
            for _ in 0..blocks {
                let mut lost = [false; BLOCK.0 + BLOCK.1];
                for cell in &mut lost {
                    let chance = match burst {
                        0.0 => loss,
                        burst if bad => 1.0 - 1.0 / burst,
                        burst => loss / (burst * (1.0 - loss)),
                    };
                    bad = random.chance(chance);
                    *cell = bad;
                }
                if lost.iter().filter(|lost| **lost).count() > BLOCK.1 {
                    left += lost[..BLOCK.0].iter().filter(|lost| **lost).count();
                }
            }
            let drawn = left as f64 / (blocks * BLOCK.0) as f64;
            let computed = left_by_blocks(loss, burst);
            println!("{loss} {burst}: {computed:.4} {drawn:.4}");
            assert!(
                (computed - drawn).abs() < 0.005,
                "{loss} {burst}: {computed} {drawn}"
            );
        }
    }
}
