//! A number that the radios of a site share.

#[cfg(not(target_has_atomic = "64"))]
use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// 64 bits that several owners read and write.
#[derive(Debug, Default)]
pub(crate) struct Shared64 {
    #[cfg(target_has_atomic = "64")]
    whole: AtomicU64,
    /// Small processors have no atomic access to 64 bits. One driver runs all radios of a site one after the other, so a
    /// reader never sees halves of two numbers.
    #[cfg(not(target_has_atomic = "64"))]
    halves: [AtomicU32; 2],
}

#[cfg(target_has_atomic = "64")]
impl Shared64 {
    pub fn get(&self) -> u64 {
        self.whole.load(Relaxed)
    }

    pub fn set(&self, value: u64) {
        self.whole.store(value, Relaxed);
    }
}

#[cfg(not(target_has_atomic = "64"))]
impl Shared64 {
    pub fn get(&self) -> u64 {
        let [high, low] = &self.halves;
        u64::from(high.load(Relaxed)) << 32 | u64::from(low.load(Relaxed))
    }

    pub fn set(&self, value: u64) {
        let [high, low] = &self.halves;
        high.store((value >> 32) as u32, Relaxed);
        low.store(value as u32, Relaxed);
    }
}

impl From<u64> for Shared64 {
    fn from(value: u64) -> Shared64 {
        let shared = Shared64::default();
        shared.set(value);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bits_are_kept() {
        for value in [0, 1, u64::from(u32::MAX) + 1, u64::MAX] {
            assert_eq!(Shared64::from(value).get(), value);
        }
    }
}
