//! The most that this core could do: multiply and add in registers, nothing else.

use std::fmt;

/// What was measured before anything else.
#[derive(Debug, Clone, Copy)]
pub struct Roof {
    /// Core clock in GHz, from a chain of dependent additions.
    clock: f64,
    /// Multiply-adds of bytes in 10^9/s with 64-byte registers, if there are any.
    wide: Option<f64>,
    /// The same with 32-byte registers.
    narrow: Option<f64>,
}

impl Roof {
    /// The roof of a kernel; those without GFNI are measured against the widest one there is.
    pub fn of(&self, kernel: &str) -> Option<f64> {
        if kernel == "gfni256" {
            self.narrow
        } else {
            self.wide.or(self.narrow)
        }
    }
}

impl fmt::Display for Roof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core clock {:.2} GHz", self.clock)?;
        for (bits, roof) in [(512, self.wide), (256, self.narrow)] {
            if let Some(roof) = roof {
                let per_cycle = roof / self.clock;
                write!(
                    f,
                    "; roof at {bits} bit {roof:.0} G MAC/s = {per_cycle:.0} MAC/cycle"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn measure() -> Roof {
    Roof {
        clock: f64::NAN,
        wide: None,
        narrow: None,
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::measure;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::time::Instant;

    use super::Roof;

    const LOOPS: u64 = 200_000;
    const SAMPLES: usize = 101;

    pub fn measure() -> Roof {
        let gfni = is_x86_feature_detected!("gfni");
        let wide = gfni && is_x86_feature_detected!("avx512bw");
        let narrow = gfni && is_x86_feature_detected!("avx2");
        // Two affine products and their sum in six independent chains: 12 products a turn.
        Roof {
            clock: best(8.0, clock),
            wide: wide.then(|| best(12.0 * 64.0, wide_turns)),
            narrow: narrow.then(|| best(12.0 * 32.0, narrow_turns)),
        }
    }

    /// The best rate of many runs of `LOOPS` turns, in units per ns.
    fn best(units_per_turn: f64, run: impl Fn()) -> f64 {
        let rate = |_| {
            let start = Instant::now();
            run();
            units_per_turn * LOOPS as f64 / start.elapsed().as_nanos() as f64
        };
        (0..SAMPLES).map(rate).fold(0.0, f64::max)
    }

    /// Eight additions, each of which waits for the one before: one cycle each.
    fn clock() {
        // SAFETY: the block changes only the registers named.
        unsafe {
            asm!(
                "2:",
                "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
                "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
                "dec {turns}", "jnz 2b",
                sum = inout(reg) 0u64 => _, turns = inout(reg) LOOPS => _,
            );
        }
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
}
