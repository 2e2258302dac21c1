//! How fast 802.15.4 is, on the scenario that ns-3 was measured with.
//!
//! Scenario (b): 139 nodes at random in 465 x 465 m, each broadcasts 100 octets once a second at a random phase, exponent
//! 3, 0 dBm, ns-3's noise and error curve. Nodes send without carrier sense: there is no 802.15.4 MAC here, and with a
//! third of the channel in use some more frames collide than with one.
//! ```text
//! cargo bench -p chappe-sim --bench dot15d4
//! ```

use std::time::Instant as Wall;

use chappe_core::{
    Duration, Instant, Mode, Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Seed, Transmit,
    Wake,
};
use chappe_sim::{AirTime, Medium, Profile, Simulator, World, topology};
use chappe_testkit::processor::thread_time;

/// Sends `octets` at `next` and every `period` after.
struct Beacon {
    next: Instant,
    period: Duration,
    fill: u8,
    octets: usize,
    due: bool,
}

impl RadioNode for Beacon {
    fn handle_radio(&mut self, _: Instant, _: RadioEvent<'_>) {}
    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        if !std::mem::replace(&mut self.due, false) {
            return None;
        }
        psdu.get_mut(..self.octets)?.fill(self.fill);
        Some(RadioRequest::Transmit(Transmit {
            at: now,
            len: self.octets,
            mode: Mode::long(Rate::Oqpsk250),
            power: None,
        }))
    }
    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.next += self.period;
            self.due = true;
        }
    }
    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "beacon",
        })
    }
}

/// Runs `seconds` and prints a row.
fn run(name: &str, nodes: usize, seconds: u64, seed: u64, in_unison: bool) {
    let seed = Seed(seed);
    let positions = topology::random(nodes, 465.0, 465.0, seed);
    let Some(profile) = Profile::named(name) else {
        return;
    };
    let Ok(medium) = Medium::geometric(&positions, &profile, seed) else {
        return;
    };
    let node = |i: usize| {
        let phase = seed.stream(Purpose::Node(i as u32)).below(1_000_000_000);
        Box::new(Beacon {
            next: match (in_unison, i % 14) {
                (false, _) => Instant::from_nanos(phase),
                (true, 0) => Instant::from_millis(1),
                (true, _) => Instant::MAX,
            },
            period: match in_unison {
                true => Duration::from_millis(5),
                false => Duration::from_secs(1),
            },
            fill: if in_unison { 7 } else { i as u8 },
            octets: if in_unison { 125 } else { 98 },
            due: false,
        })
    };
    let Ok(mut simulator) =
        Simulator::new(World::new(medium), (0..nodes).map(node).collect(), seed, ())
    else {
        return;
    };
    let (wall, cpu) = (Wall::now(), thread_time());
    simulator.run_until(AirTime::from_millis(seconds * 1000));
    let cpu = thread_time().zip(cpu).map(|(now, then)| now - then);
    let spent = cpu.unwrap_or(wall.elapsed()).as_secs_f64();
    let counters = simulator.counters();
    println!(
        "{name:>16} {nodes:>4} nodes seed {} | {:>8.1} sim s / CPU s | {:>7} frames {:>9.0} frames/s | {:.2} rx/frame | {:016x}",
        seed.0,
        seconds as f64 / spent,
        counters.frames,
        counters.frames as f64 / spent,
        counters.receptions as f64 / counters.frames as f64,
        simulator.digest(),
    );
}

fn main() {
    for seed in 1..=3 {
        run("ieee-e418", 139, 600, seed, false);
        run("ieee-e418-gate", 139, 600, seed, false);
    }
    run("cc2420-indoor", 139, 600, 1, false);
    println!("every 14th node sends the same 127 octets each 5 ms, at the same instant:");
    run("cc2420-indoor", 139, 20, 1, true);
}
