//! What a stream gets through kcptun, simulated: KCP by the rules of kcp-go with its static parity (`chappe_rivals`), over the same medium
//! with the same seeds as the link.
//!
//! kcptun ends TCP at both of its ends, so KCP's window and timeouts count instead of TCP's. Its encryption and multiplexing are not
//! counted. [`defaults`] is the program as it starts without options; [`fitted`] is for those who know their path: the faster mode, and the
//! largest window with which the path's queue does not overflow, since KCP has no congestion control.

use chappe_core::{Duration, Instant};
use chappe_rivals::{Kcp, KcpConfig, KcpRules};

use super::cells::Cell;
use super::medium::Medium;

/// kcptun's parity: three datagrams for each ten (`-datashard 10 -parityshard 3`, its defaults).
const PARITY: (u8, u8) = (10, 3);
/// Octets of UDP, IP and Ethernet.
const BELOW: usize = 42;
/// Seconds that are measured.
const SECS: u64 = 6;

/// kcptun without options: mode `fast`, 10:3, 128 segments.
pub fn defaults(cell: &Cell) -> f64 {
    goodput(cell, KcpConfig::fast())
}

/// Mode `fast3`, 10:3, and a window of what path and queue hold beside the parity.
pub fn fitted(cell: &Cell) -> f64 {
    let air = &cell.air;
    let config = KcpConfig::fast3();
    let held = air.rate.0 as f64 / 8.0 * (air.delay * 2).as_secs_f64();
    let frames = held / (config.mtu + BELOW) as f64 + air.queue as f64;
    let data = f64::from(PARITY.0) / f64::from(PARITY.0 + PARITY.1);
    let window = (frames * data).min(f64::from(1 << 14)) as u16;
    goodput(
        cell,
        KcpConfig {
            send_window: window,
            receive_window: window.max(config.receive_window),
            ..config
        },
    )
}

/// Bits a second that a stream gets after the start.
fn goodput(cell: &Cell, config: KcpConfig) -> f64 {
    let config = KcpConfig {
        rules: KcpRules::Go,
        parity: Some(PARITY),
        // What waits does so on the path.
        queue: usize::from(config.send_window) * 4 + 256,
        ..config
    };
    let end = || Kcp::new(config).unwrap_or_else(|why| panic!("{why}"));
    let (mut ends, mut medium) = ([end(), end()], Medium::new(cell.air, 1));
    let begun = Instant::from_millis(2_000) + cell.air.delay * 20;
    let until = begun + Duration::from_secs(SECS);
    let (mut now, mut received, mut datagram) = (Instant::from_millis(1), 0u64, vec![0; 2048]);
    let data = [7; 4096];
    while now < until {
        for from in 0..2 {
            while let Some((_, frame)) = medium.land(from, now) {
                let end = &mut ends[1 - from];
                end.handle(now, &frame[..frame.len() - BELOW]);
                loop {
                    let read = end.read(&mut datagram);
                    if read == 0 {
                        break;
                    }
                    received += if now >= begun { read as u64 } else { 0 };
                }
            }
        }
        while ends[0].write(now, &data) > 0 {}
        for (from, end) in ends.iter_mut().enumerate() {
            end.handle_timeout(now);
            while let Some(len) = end.poll(&mut datagram) {
                let mut frame = datagram[..len].to_vec();
                frame.resize(len + BELOW, 0);
                medium.offer(now, from, frame);
            }
        }
        medium.serve(now);
        let wakes = ends.iter().filter_map(|end| end.poll_timeout());
        let next = wakes.map(|wake| wake.at).chain(medium.next_at()).min();
        let soon = now + Duration::from_micros(20);
        now = next.map_or(soon, |next| next.max(soon)).min(until);
    }
    received as f64 * 8.0 / SECS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the model has the traits that were measured of kcptun (docs/wildnet.md): the parity costs its share of a clean path, the
    /// default window a long one, and losses what the window waits for.
    #[test]
    fn parity_and_window_limit_kcptun() {
        let share = |gets: fn(&Cell) -> f64, cell: Cell| {
            let share = gets(&cell) / cell.bound;
            println!("{}: {share:.3}", cell.name);
            share
        };
        let clean = share(fitted, Cell::new(6, 20, 0));
        assert!((0.6..0.78).contains(&clean), "{clean}");
        // 128 segments of some 1318 octets in each 600 ms.
        let long = share(defaults, Cell::new(6, 600, 0));
        assert!((0.2..0.4).contains(&long), "{long}");
        let lossy = share(defaults, Cell::new(6, 100, 30));
        assert!(lossy < 0.6, "{lossy}");
    }
}
