//! Time, as tasks wait for it.

use chappe_core::Instant;

/// A clock that never goes back, and can wait.
#[allow(
    async_fn_in_trait,
    reason = "firmware runs its tasks on one executor, without Send"
)]
pub trait Clock: Copy {
    /// The present time, counted from any fixed moment.
    fn now(&self) -> Instant;

    /// Returns at `at`, or soon after. Dropping the future must be harmless.
    async fn sleep_until(&self, at: Instant);
}

/// Embassy's clock. Its resolution is that of the time driver; choose at least 32768 Hz (`tick-hz-32_768`), and 1 MHz
/// where the MAC runs on it.
#[cfg(feature = "embassy-time")]
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyClock;

#[cfg(feature = "embassy-time")]
impl Clock for EmbassyClock {
    fn now(&self) -> Instant {
        let ticks = u128::from(embassy_time::Instant::now().as_ticks());
        let nanos = ticks * 1_000_000_000 / u128::from(embassy_time::TICK_HZ);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, at: Instant) {
        // Rounded up: a timer that ends early would only be started again.
        let ticks =
            (u128::from(at.nanos()) * u128::from(embassy_time::TICK_HZ)).div_ceil(1_000_000_000);
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        embassy_time::Timer::at(embassy_time::Instant::from_ticks(ticks)).await;
    }
}
