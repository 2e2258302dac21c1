//! Times a kernel, and prints its best and median time with the rates of the median.

use std::time::{Duration, Instant};

use chappe_testkit::SplitMix64;

use crate::roof::Roof;

const SAMPLES: usize = 51;
const SAMPLE: Duration = Duration::from_micros(500);

/// Bytes that start at a multiple of 64.
pub struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub fn random(len: usize) -> Self {
        let bytes = random_bytes(len + 64);
        let start = bytes.as_ptr().align_offset(64);
        Self { bytes, start, len }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsMut<[u8]> for Aligned {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

/// A generator that costs next to nothing: it copies from bytes made before.
pub struct Pool {
    bytes: Vec<u8>,
    next: usize,
}

impl Pool {
    pub fn new() -> Self {
        Self {
            bytes: random_bytes(1 << 12),
            next: 0,
        }
    }

    pub fn fill(&mut self, into: &mut [u8]) {
        if self.next + into.len() > self.bytes.len() {
            self.next = 0;
        }
        into.copy_from_slice(&self.bytes[self.next..][..into.len()]);
        self.next += into.len();
    }
}

/// The same random octets every time.
pub fn random_bytes(count: usize) -> Vec<u8> {
    SplitMix64(0).bytes(count)
}

/// Prints a line for each operation.
pub struct Report {
    roof: Roof,
    filter: Option<String>,
    section: String,
}

impl Report {
    pub fn new(roof: Roof, filter: Option<String>) -> Self {
        println!("{roof}\n");
        println!("| kernel | operation | best us | median us | MB/s | G MAC/s | of the roof |");
        println!("|---|---|---|---|---|---|---|");
        Self {
            roof,
            filter,
            section: String::new(),
        }
    }

    pub fn section(&mut self, name: &str) {
        self.section = name.to_owned();
    }

    /// Times an operation of n multiply-adds on a number of bytes of source data. The
    /// rates are those of the median. `false`: filtered out.
    pub fn rate(&self, name: &str, macs: usize, bytes: usize, operation: impl FnMut()) -> bool {
        let Some((best, median)) = self.measure(name, operation) else {
            return false;
        };
        let share = |roof: f64| format!("{:.0} %", 100.0 * macs as f64 / median / roof);
        println!(
            "| {} | {name} | {:.2} | {:.2} | {:.0} | {:.1} | {} |",
            self.section,
            best / 1e3,
            median / 1e3,
            bytes as f64 / median * 1e3,
            macs as f64 / median,
            self.roof.of(&self.section).map_or("-".to_owned(), share),
        );
        true
    }

    /// Times an operation that has no rate.
    pub fn time(&self, name: &str, operation: impl FnMut()) {
        let Some((best, median)) = self.measure(name, operation) else {
            return;
        };
        let (best, median) = (best / 1e3, median / 1e3);
        println!(
            "| {} | {name} | {best:.4} | {median:.4} | | | |",
            self.section
        );
    }

    /// Best and median time in ns.
    fn measure(&self, name: &str, mut operation: impl FnMut()) -> Option<(f64, f64)> {
        let line = format!("{} {name}", self.section);
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !line.contains(filter.as_str()))
        {
            return None;
        }
        let mut repeat = |count: u32| {
            let start = Instant::now();
            for _ in 0..count {
                operation();
            }
            start.elapsed()
        };
        let mut count = 1;
        while repeat(count) < SAMPLE {
            count *= 2;
        }
        let mut samples: Vec<f64> = (0..SAMPLES)
            .map(|_| repeat(count).as_nanos() as f64 / f64::from(count))
            .collect();
        samples.sort_by(f64::total_cmp);
        Some((samples[0], samples[SAMPLES / 2]))
    }
}
