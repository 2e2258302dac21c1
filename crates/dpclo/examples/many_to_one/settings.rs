//! Schemes by name, and settings that a word of the command line changes.

use chappe_core::Duration;
use chappe_dpclo::{FirstProbes, KMax, PriceLaw, RateLaw, Settings};

/// The schemes by name.
pub fn schemes() -> [(&'static str, Settings); 6] {
    let mut single = Settings::paper();
    single.next_hops.limit = KMax::Fixed(1);
    [
        ("dpclo", Settings::paper()),
        ("single", single),
        ("improved", Settings::improved()),
        ("fusion", Settings::fusion()),
        ("dclo", Settings::dclo()),
        ("shortest", Settings::shortest_path()),
    ]
}

/// Changes one value of the settings.
pub fn set(settings: &mut Settings, change: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (name, value) = change.split_once('=').ok_or("want SETTING=VALUE")?;
    let value: f64 = value.parse()?;
    match name {
        "limit" => settings.queues.limit = value as u16,
        "reserve" => settings.queues.reserve = value as u16,
        "credits" => settings.extras.credits = value as u8,
        "reports" => {
            let reports = settings.extras.reports.as_mut();
            reports.ok_or("this scheme has no reports")?.share = value;
        }
        "gain" => {
            settings.rate = RateLaw::Price(PriceLaw {
                gain: value,
                interval: Duration::from_millis(100),
            });
        }
        "load" | "rise" | "fall" | "queue" | "queue-gain" | "gain-of-load" | "floor" | "start"
        | "double" | "around" | "fairness" | "life" | "ceiling" | "at-once" | "early" | "ahead"
        | "repeats" => {
            let RateLaw::Airtime(law) = &mut settings.rate else {
                return Err("this scheme has no prices of airtime".into());
            };
            match name {
                "load" => law.load = value,
                "repeats" => law.repeats = value > 0.0,
                "start" => law.start = value,
                "at-once" => law.at_once = value,
                "rise" => law.rise = value,
                "fall" => law.fall = value,
                "queue" => law.queue = value,
                "queue-gain" => law.queue_gain = value,
                "ceiling" => law.ceiling = value,
                "floor" => law.floor = value,
                // In microseconds.
                "around" => law.around = Duration::from_secs_f64(value * 1e-6),
                "fairness" => law.fairness = value,
                // In seconds.
                "life" => law.life = Duration::from_secs_f64(value),
                "early" => law.early = Duration::from_secs_f64(value),
                "ahead" => law.ahead = Duration::from_secs_f64(value),
                "double" => law.double = Duration::from_secs_f64(value),
                _ => law.gain = value,
            }
        }
        "age" => {
            settings.extras.age_weight =
                Some(Duration::from_millis(value as u64)).filter(|age| *age > Duration::ZERO)
        }
        "count" => settings.extras.count_sent = value > 0.0,
        "renews" => settings.routing.renews = value > 0.0,
        "feasible" => settings.next_hops.feasible_only = value > 0.0,
        "attempts" => {
            settings.probes.attempts = Settings::improved().probes.attempts.filter(|_| value > 0.0)
        }
        // In seconds: how long probes are a second apart at first, and after a node began to send.
        "first" => {
            let lasts = Duration::from_secs_f64(value);
            let usual = Settings::improved().probes.first;
            settings.probes.first = usual.map(|first| FirstProbes { lasts, ..first });
        }
        "again" => settings.probes.first_again = value > 0.0,
        // In seconds: the mean time between probes, the period of updates, the waits of a request that no packet needs and of a newer
        // sequence number, the gap between updates.
        "probe" => settings.probes.interval = Duration::from_secs_f64(value),
        "period" => settings.routing.period = Duration::from_secs_f64(value),
        "patience" => settings.routing.patience = Duration::from_secs_f64(value),
        "settle" => settings.routing.settle = Duration::from_secs_f64(value),
        "gap" => settings.routing.gap = Duration::from_secs_f64(value),
        "backlog-life" => settings.queues.backlog_life = Duration::from_secs_f64(value),
        "octets" => settings.probes.octets = value as usize,
        "high" => settings.next_hops.high = value,
        "by-queue" => settings.priorities.by_queue = value > 0.0,
        "urgent" => settings.priorities.high = value,
        "medium" => settings.priorities.medium = value,
        "hasty" => settings.priorities.hasty = Some(value).filter(|value| *value > 0.0),
        "k" => settings.next_hops.limit = KMax::Fixed(value as u8),
        "bias" => settings.extras.bias = value,
        "smoothing" => settings.extras.smoothing = value,
        _ => {
            return Err("those of protocols are age, attempts, bias, count, credits, feasible, gain, high, k, limit, reports, reserve, smoothing".into());
        }
    }
    Ok(())
}
