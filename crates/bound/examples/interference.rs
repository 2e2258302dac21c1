//! The multicast bound under interference beside the one that knows carrier sense only, on random 50-node networks.
//!
//! ```text
//! cargo run --release -p chappe-bound --example interference [-- FIRST_SEED [NETWORKS [NODES]]]
//! ```
//!
//! The model: nodes uniform in 1 km by 1 km (or the same density), two-ray loss at 1.5 m, Rayleigh fading drawn for each frame, a frame
//! needs -81 dBm and 10 dB over noise (-101 dBm) and interference, nodes sense from -91 dBm on, 7.87 dBm of power,
//! 6.98 ms for 1500 octets of payload. Node 0 sends to nodes 1 to 9.
//!
//! Columns: the bound by carrier sense; the bound under interference, the schedule that reaches the gap of it, frames on the air at once
//! in that schedule, sets in it, programs, seconds of processor; the best schedule of one frame at a time. All rates in kbit/s.

use chappe_bound::{
    Error, Interference, Network, Options, Rayleigh, ScheduleOptions, multicast, schedule,
};
use chappe_testkit::processor::thread_time;
use chappe_testkit::{SplitMix64, Words};

const AIRTIME_S: f64 = 6.98e-3;
const PAYLOAD: u32 = 1500;

fn main() -> Result<(), Error> {
    let mut words = Words::of_process("interference [FIRST_SEED [NETWORKS [NODES]]]");
    let mut number = |usual: u64| words.next("number").unwrap_or(usual);
    let (first, networks, nodes) = (number(0), number(5), number(50) as usize);
    words.end();
    println!("seed  sensing    bound schedule    gap  at once  sets  programs      s   serial");
    for seed in first..first + networks {
        row(seed, nodes)?;
    }
    Ok(())
}

fn row(seed: u64, nodes: usize) -> Result<(), Error> {
    let power = powers(seed, nodes);
    let radio = Rayleigh {
        power: &power,
        noise: milliwatt(-101.0),
        ratio: 10.0,
        least: milliwatt(-81.0),
    };
    let model = Interference::rayleigh(nodes, &radio, AIRTIME_S, PAYLOAD)?;
    let delivery: Vec<f64> = (0..nodes * nodes)
        .map(|pair| model.received(pair / nodes, pair % nodes, &[pair / nodes]))
        .collect();
    let sensing = power.iter().map(|power| match *power > 0.0 {
        true => (-milliwatt(-91.0) / power).exp(),
        false => 0.0,
    });
    let sensing: Vec<f64> = sensing.collect();
    let receivers: Vec<usize> = (1..10).collect();
    let rough = Options {
        gap: 1e-2,
        work_max: 100_000,
        ..Options::default()
    };
    let airtimes = vec![AIRTIME_S; nodes];
    let network = Network::new(delivery.clone(), airtimes.clone(), PAYLOAD, sensing)?;
    let fast = multicast(&network, 0, &receivers, &rough)?;
    let one = Network::new(delivery, airtimes, PAYLOAD, vec![1.0; nodes * nodes])?;
    let serial = multicast(&one, 0, &receivers, &rough)?;
    let before = thread_time();
    let found = schedule(&model, 0, &receivers, &ScheduleOptions::default())?;
    let spent = thread_time()
        .zip(before)
        .map(|(now, then)| (now - then).as_secs_f64());
    println!(
        "{seed:4} {:8.1} {:8.1} {:8.1} {:5.1}% {:8.2} {:5} {:9} {:6.1} {:8.1}",
        fast.goodput_bps() / 1e3,
        found.goodput_bps() / 1e3,
        found.rate_fps * found.payload_bits / 1e3,
        found.gap() * 100.0,
        found.at_once(),
        found.sets.len(),
        found.rounds,
        spent.unwrap_or(f64::NAN),
        serial.goodput_bps() / 1e3,
    );
    Ok(())
}

fn milliwatt(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

/// Mean powers in milliwatt, of a network whose links of a fifth or more connect it.
fn powers(seed: u64, nodes: usize) -> Vec<f64> {
    let mut random = SplitMix64(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let side = 1000.0 * (nodes as f64 / 50.0).sqrt();
    // Two-ray: free space up to the crossover, then the fourth power.
    let (wave, height) = (299_792_458.0 / 2.4e9, 1.5f64);
    let crossover = 4.0 * std::f64::consts::PI * height * height / wave;
    loop {
        let places: Vec<(f64, f64)> = (0..nodes)
            .map(|_| (random.unit() * side, random.unit() * side))
            .collect();
        let power = |pair: usize| {
            let (a, b) = (places[pair / nodes], places[pair % nodes]);
            let metres = f64::hypot(a.0 - b.0, a.1 - b.1);
            let gain = match metres {
                0.0 => 0.0,
                near if near < crossover => (wave / (4.0 * std::f64::consts::PI * near)).powi(2),
                far => (height * height / (far * far)).powi(2),
            };
            milliwatt(7.87) * gain
        };
        let power: Vec<f64> = (0..nodes * nodes).map(power).collect();
        let good = |a: usize, b: usize| (-milliwatt(-81.0) / power[a * nodes + b]).exp() >= 0.2;
        let mut seen = vec![false; nodes];
        let mut open = vec![0];
        seen[0] = true;
        while let Some(a) = open.pop() {
            for (b, seen) in seen.iter_mut().enumerate() {
                if !*seen && good(a, b) {
                    *seen = true;
                    open.push(b);
                }
            }
        }
        if seen.iter().all(|&seen| seen) {
            return power;
        }
    }
}
