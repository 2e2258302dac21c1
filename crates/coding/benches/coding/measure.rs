//! Times a kernel, and prints its best and median time with the rates of the median.

use chappe_testkit::SplitMix64;

use crate::roof::{self, Roof, Times, times};

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
        println!(
            "| kernel | operation | best us | median us | MB/s | G MAC/s | of the roof | of the loads |"
        );
        println!("|---|---|---|---|---|---|---|---|");
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
    /// rates are those of the best time, the share is counted in cycles. `false`: filtered out.
    pub fn rate(&self, name: &str, macs: usize, bytes: usize, operation: impl FnMut()) -> bool {
        let measured = self.measure(name, operation);
        if let Some(times) = measured {
            self.line(name, (macs, bytes), times, "");
        }
        measured.is_some()
    }

    /// As [`rate`](Self::rate) for an operation that reads each byte of the sources once, so that loads may be its limit:
    /// the last column is its share of only reading them, which is timed before and after. `layout`: number, length and
    /// distance of the packets.
    pub fn rate_of_loads(
        &self,
        name: &str,
        (macs, bytes): (usize, usize),
        (packets, layout): (&[u8], (usize, usize, usize)),
        operation: impl FnMut(),
    ) {
        let read = || roof::read(&self.section, packets, layout);
        let Some(before) = self.measure(name, read) else {
            return;
        };
        let Some(times) = self.measure(name, operation) else {
            return;
        };
        let after = self.measure(name, read).unwrap_or(before);
        let reading = before.best_ns.min(after.best_ns);
        let rate = (layout.0 * layout.1) as f64 / reading;
        let share = format!("{:.0} % of {rate:.0} GB/s", 100.0 * reading / times.best_ns);
        self.line(name, (macs, bytes), times, &share);
    }

    fn line(&self, name: &str, (macs, bytes): (usize, usize), times: Times, loads: &str) {
        let share = |roof: f64| format!("{:.0} %", 100.0 * macs as f64 / times.cycles / roof);
        println!(
            "| {} | {name} | {:.2} | {:.2} | {:.0} | {:.1} | {} | {loads} |",
            self.section,
            times.best_ns / 1e3,
            times.median_ns / 1e3,
            bytes as f64 / times.best_ns * 1e3,
            macs as f64 / times.best_ns,
            self.roof.of(&self.section).map_or("-".to_owned(), share),
        );
    }

    /// Times an operation that has no rate.
    pub fn time(&self, name: &str, operation: impl FnMut()) {
        let Some(times) = self.measure(name, operation) else {
            return;
        };
        let (best, median) = (times.best_ns / 1e3, times.median_ns / 1e3);
        println!(
            "| {} | {name} | {best:.4} | {median:.4} | | | | |",
            self.section
        );
    }

    /// Times an operation, or gives `None` if it is filtered out.
    fn measure(&self, name: &str, operation: impl FnMut()) -> Option<Times> {
        let line = format!("{} {name}", self.section);
        let wanted = |filter: &String| line.contains(filter.as_str());
        self.filter
            .as_ref()
            .is_none_or(wanted)
            .then(|| times(operation))
    }
}
