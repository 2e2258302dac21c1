//! The core's clock, times counted by it, and the most that the core could do: multiply and add in registers, nothing else.

use std::fmt;
use std::time::{Duration, Instant};

/// What was measured before anything else.
#[derive(Debug, Clone)]
pub struct Roof {
    /// Core clock in GHz, from a chain of dependent additions.
    clock: f64,
    /// Multiply-adds of bytes in a cycle by the instructions of each kernel that works here, with the kernel's name.
    kernels: Vec<(&'static str, f64)>,
}

impl Roof {
    /// The roof of a kernel's own instructions, in multiply-adds a cycle, for a section that ends with its name; `None` for
    /// plain Rust and other libraries.
    pub fn of(&self, section: &str) -> Option<f64> {
        let found = self
            .kernels
            .iter()
            .find(|(name, _)| section.ends_with(name));
        found.map(|&(_, roof)| roof)
    }
}

impl fmt::Display for Roof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core clock {:.2} GHz", self.clock)?;
        for (kernel, roof) in &self.kernels {
            write!(f, "; roof of {kernel} {roof:.1} MAC/cycle")?;
        }
        Ok(())
    }
}

const SAMPLES: usize = 201;
const SAMPLE: Duration = Duration::from_micros(60);
/// Turns of the chain that shows the clock, beside each sample: some 10 us.
const CLOCK_TURNS: u64 = 5000;

/// How long an operation takes.
#[derive(Clone, Copy)]
pub struct Times {
    /// Time of the fastest sample.
    pub best_ns: f64,
    /// The median of all samples.
    pub median_ns: f64,
    /// Lower quartile of the core's cycles, each sample counted by the clock at its time. `NaN` where the clock is not known.
    pub cycles: f64,
}

/// Times an operation in many short samples. A busy machine spoils some of them, and its clock changes with the work of other
/// cores, so each sample is counted in cycles as well: by a chain of additions right before and after.
pub fn times(mut operation: impl FnMut()) -> Times {
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
    let (mut ns, mut cycles) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let before = clock_ghz(CLOCK_TURNS);
        let sample = repeat(count).as_nanos() as f64 / f64::from(count);
        ns.push(sample);
        // The greater of the two: the other one may have been interrupted.
        cycles.push(sample * before.max(clock_ghz(CLOCK_TURNS)));
    }
    ns.sort_by(f64::total_cmp);
    cycles.sort_by(f64::total_cmp);
    Times {
        best_ns: ns[0],
        median_ns: ns[SAMPLES / 2],
        cycles: cycles[SAMPLES / 4],
    }
}

/// Units a cycle of an operation of `units`.
pub fn per_cycle(units: f64, operation: impl FnMut()) -> f64 {
    units / times(operation).cycles
}

/// The core's clock is not known here.
#[cfg(not(target_arch = "x86_64"))]
pub fn clock_ghz(_turns: u64) -> f64 {
    f64::NAN
}

#[cfg(not(target_arch = "x86_64"))]
pub fn measure() -> Roof {
    Roof {
        clock: f64::NAN,
        kernels: Vec::new(),
    }
}

/// Reads `rows` packets of `len` bytes, `stride` bytes apart, by registers of 16 bytes and in the order of the kernels that
/// make one packet. At least 64 bytes each.
#[cfg(not(target_arch = "x86_64"))]
pub fn read(_kernel: &str, packets: &[u8], (rows, len, stride): (usize, usize, usize)) {
    for row in 0..rows {
        let (chunks, _) = packets[row * stride..][..len].as_chunks::<16>();
        let fold = |sum, chunk: &[u8; 16]| sum ^ u128::from_ne_bytes(*chunk);
        std::hint::black_box(chunks.iter().fold(0, fold));
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{clock_ghz, measure, read};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;
    use std::time::Instant;

    use super::{Roof, per_cycle};

    const LOOPS: u64 = 1000;
    const CLOCKS: usize = 101;
    const CLOCK_TURNS: u64 = 20_000;

    /// A kernel, whether it works here, the products of one turn, and the turns.
    type Entry = (&'static str, bool, f64, fn());

    pub fn measure() -> Roof {
        let gfni = is_x86_feature_detected!("gfni");
        let avx2 = is_x86_feature_detected!("avx2");
        let avx512 = is_x86_feature_detected!("avx512bw");
        // Affine: two products and their sum in six independent chains, 12 products a turn. Shuffle: the products of both
        // halves of the bytes and their sum in four chains, four products a turn.
        let roofs: [Entry; 5] = [
            ("gfni512", gfni && avx512, 12.0 * 64.0, wide_turns),
            ("gfni256", gfni && avx2, 12.0 * 32.0, narrow_turns),
            ("avx512", avx512, 4.0 * 64.0, shuffle_wide_turns),
            ("avx2", avx2, 4.0 * 32.0, shuffle_turns),
            (
                "ssse3",
                is_x86_feature_detected!("ssse3"),
                4.0 * 16.0,
                shuffle_short_turns,
            ),
        ];
        let here = roofs.into_iter().filter(|&(_, here, ..)| here);
        Roof {
            clock: (0..CLOCKS)
                .map(|_| clock_ghz(CLOCK_TURNS))
                .fold(0.0, f64::max),
            kernels: here
                .map(|(kernel, _, products, run)| {
                    let products = products * LOOPS as f64;
                    (kernel, per_cycle(products, run))
                })
                .collect(),
        }
    }

    /// Reads `rows` packets of `len` bytes, `stride` bytes apart, by the registers of the kernel and in the order in which it
    /// reads them to make one packet. At least 64 bytes each.
    pub fn read(kernel: &str, packets: &[u8], (rows, len, stride): (usize, usize, usize)) {
        assert!(len >= 64 && packets.len() >= (rows - 1) * stride + len);
        let from = packets.as_ptr();
        // SAFETY: a kernel of that name exists here only with its instructions, SSE2 is always there, and the packets are
        // inside the slice.
        unsafe {
            match kernel {
                "gfni512" | "avx512" => read_wide(from, rows, len, stride),
                "gfni256" | "avx2" => read_narrow(from, rows, len, stride),
                _ => read_short(from, rows, len, stride),
            }
        }
    }

    /// Strips of some registers: each row's part of a strip, then the next strip. What is left at the end is read by one
    /// register that ends with the packet.
    macro_rules! reader {
        ($name:ident, $feature:literal, $bytes:literal, $strip:literal, $zero:expr, $load:expr, $xor:expr) => {
            #[target_feature(enable = $feature)]
            unsafe fn $name(from: *const u8, rows: usize, len: usize, stride: usize) {
                let last = len - $bytes;
                // SAFETY: each load ends within its packet.
                unsafe {
                    for strip in (0..len).step_by($strip * $bytes) {
                        let mut sums = [$zero; $strip];
                        let count = (len - strip).div_ceil($bytes).min($strip);
                        for row in 0..rows {
                            let packet = from.add(row * stride);
                            if count == $strip {
                                for (index, sum) in sums.iter_mut().enumerate() {
                                    let at = (strip + index * $bytes).min(last);
                                    *sum = $xor(*sum, $load(packet.add(at).cast()));
                                }
                            } else {
                                for (index, sum) in sums[..count].iter_mut().enumerate() {
                                    let at = (strip + index * $bytes).min(last);
                                    *sum = $xor(*sum, $load(packet.add(at).cast()));
                                }
                            }
                        }
                        std::hint::black_box(sums);
                    }
                }
            }
        };
    }
    reader!(
        read_wide,
        "avx512f",
        64,
        12,
        _mm512_setzero_si512(),
        _mm512_loadu_si512,
        _mm512_xor_si512
    );
    reader!(
        read_narrow,
        "avx2",
        32,
        8,
        _mm256_setzero_si256(),
        _mm256_loadu_si256,
        _mm256_xor_si256
    );
    reader!(
        read_short,
        "sse2",
        16,
        8,
        _mm_setzero_si128(),
        _mm_loadu_si128,
        _mm_xor_si128
    );

    /// The core's clock during so many turns of eight additions, each of which waits for the one before: one cycle each.
    pub fn clock_ghz(turns: u64) -> f64 {
        let start = Instant::now();
        // SAFETY: the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
                "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
                "dec {turns}", "jnz 2b",
                sum = inout(reg) 0u64 => _, turns = inout(reg) turns => _,
            );
        }
        8.0 * turns as f64 / start.elapsed().as_nanos() as f64
    }

    fn wide_turns() {
        // SAFETY: GFNI and AVX-512 are there; the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "vgf2p8affineqb zmm0, zmm30, zmm31, 0", "vgf2p8affineqb zmm1, zmm30, zmm31, 0",
                "vpternlogq zmm10, zmm0, zmm1, 0x96",
                "vgf2p8affineqb zmm2, zmm30, zmm31, 0", "vgf2p8affineqb zmm3, zmm30, zmm31, 0",
                "vpternlogq zmm11, zmm2, zmm3, 0x96",
                "vgf2p8affineqb zmm4, zmm30, zmm31, 0", "vgf2p8affineqb zmm5, zmm30, zmm31, 0",
                "vpternlogq zmm12, zmm4, zmm5, 0x96",
                "vgf2p8affineqb zmm0, zmm30, zmm31, 0", "vgf2p8affineqb zmm1, zmm30, zmm31, 0",
                "vpternlogq zmm13, zmm0, zmm1, 0x96",
                "vgf2p8affineqb zmm2, zmm30, zmm31, 0", "vgf2p8affineqb zmm3, zmm30, zmm31, 0",
                "vpternlogq zmm14, zmm2, zmm3, 0x96",
                "vgf2p8affineqb zmm4, zmm30, zmm31, 0", "vgf2p8affineqb zmm5, zmm30, zmm31, 0",
                "vpternlogq zmm15, zmm4, zmm5, 0x96",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) LOOPS => _,
                out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _,
                out("zmm5") _, out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _,
                out("zmm14") _, out("zmm15") _, out("zmm30") _, out("zmm31") _,
            );
        }
    }

    fn narrow_turns() {
        // SAFETY: GFNI and AVX2 are there; the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "vgf2p8affineqb ymm0, ymm14, ymm15, 0", "vgf2p8affineqb ymm1, ymm14, ymm15, 0",
                "vpxor ymm6, ymm6, ymm0", "vpxor ymm7, ymm7, ymm1",
                "vgf2p8affineqb ymm2, ymm14, ymm15, 0", "vgf2p8affineqb ymm3, ymm14, ymm15, 0",
                "vpxor ymm8, ymm8, ymm2", "vpxor ymm9, ymm9, ymm3",
                "vgf2p8affineqb ymm4, ymm14, ymm15, 0", "vgf2p8affineqb ymm5, ymm14, ymm15, 0",
                "vpxor ymm10, ymm10, ymm4", "vpxor ymm11, ymm11, ymm5",
                "vgf2p8affineqb ymm0, ymm14, ymm15, 0", "vgf2p8affineqb ymm1, ymm14, ymm15, 0",
                "vpxor ymm6, ymm6, ymm0", "vpxor ymm7, ymm7, ymm1",
                "vgf2p8affineqb ymm2, ymm14, ymm15, 0", "vgf2p8affineqb ymm3, ymm14, ymm15, 0",
                "vpxor ymm8, ymm8, ymm2", "vpxor ymm9, ymm9, ymm3",
                "vgf2p8affineqb ymm4, ymm14, ymm15, 0", "vgf2p8affineqb ymm5, ymm14, ymm15, 0",
                "vpxor ymm10, ymm10, ymm4", "vpxor ymm11, ymm11, ymm5",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) LOOPS => _,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
                out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
                out("ymm10") _, out("ymm11") _, out("ymm14") _, out("ymm15") _,
            );
        }
    }

    fn shuffle_wide_turns() {
        // SAFETY: AVX-512BW is there; the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "vpshufb zmm0, zmm14, zmm15", "vpshufb zmm1, zmm13, zmm15",
                "vpternlogq zmm6, zmm0, zmm1, 0x96",
                "vpshufb zmm0, zmm14, zmm15", "vpshufb zmm1, zmm13, zmm15",
                "vpternlogq zmm7, zmm0, zmm1, 0x96",
                "vpshufb zmm0, zmm14, zmm15", "vpshufb zmm1, zmm13, zmm15",
                "vpternlogq zmm8, zmm0, zmm1, 0x96",
                "vpshufb zmm0, zmm14, zmm15", "vpshufb zmm1, zmm13, zmm15",
                "vpternlogq zmm9, zmm0, zmm1, 0x96",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) LOOPS => _,
                out("zmm0") _, out("zmm1") _, out("zmm6") _, out("zmm7") _, out("zmm8") _,
                out("zmm9") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            );
        }
    }

    fn shuffle_turns() {
        // SAFETY: AVX2 is there; the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "vpshufb ymm0, ymm14, ymm15", "vpshufb ymm1, ymm13, ymm15",
                "vpxor ymm6, ymm6, ymm0", "vpxor ymm6, ymm6, ymm1",
                "vpshufb ymm0, ymm14, ymm15", "vpshufb ymm1, ymm13, ymm15",
                "vpxor ymm7, ymm7, ymm0", "vpxor ymm7, ymm7, ymm1",
                "vpshufb ymm0, ymm14, ymm15", "vpshufb ymm1, ymm13, ymm15",
                "vpxor ymm8, ymm8, ymm0", "vpxor ymm8, ymm8, ymm1",
                "vpshufb ymm0, ymm14, ymm15", "vpshufb ymm1, ymm13, ymm15",
                "vpxor ymm9, ymm9, ymm0", "vpxor ymm9, ymm9, ymm1",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) LOOPS => _,
                out("ymm0") _, out("ymm1") _, out("ymm6") _, out("ymm7") _, out("ymm8") _,
                out("ymm9") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            );
        }
    }

    fn shuffle_short_turns() {
        // SAFETY: SSSE3 is there; the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "movdqa xmm0, xmm14", "movdqa xmm1, xmm13", "pshufb xmm0, xmm15",
                "pshufb xmm1, xmm15", "pxor xmm6, xmm0", "pxor xmm6, xmm1",
                "movdqa xmm0, xmm14", "movdqa xmm1, xmm13", "pshufb xmm0, xmm15",
                "pshufb xmm1, xmm15", "pxor xmm7, xmm0", "pxor xmm7, xmm1",
                "movdqa xmm0, xmm14", "movdqa xmm1, xmm13", "pshufb xmm0, xmm15",
                "pshufb xmm1, xmm15", "pxor xmm8, xmm0", "pxor xmm8, xmm1",
                "movdqa xmm0, xmm14", "movdqa xmm1, xmm13", "pshufb xmm0, xmm15",
                "pshufb xmm1, xmm15", "pxor xmm9, xmm0", "pxor xmm9, xmm1",
                "dec {turns}", "jnz 2b",
                turns = inout(reg) LOOPS => _,
                out("xmm0") _, out("xmm1") _, out("xmm6") _, out("xmm7") _, out("xmm8") _,
                out("xmm9") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            );
        }
    }
}
