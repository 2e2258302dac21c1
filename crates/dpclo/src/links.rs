//! Neighbours, and the ETX of the link to each of them.

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use crate::config::Probes;
use crate::header::{Count, Metric};

/// The neighbours of a node. A neighbour keeps its place in the table as long as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    links: Vec<Option<Link>>,
    /// The number of each place's neighbour, [`FREE`] if there is none: every frame that is heard looks one up.
    numbers: Vec<u32>,
    /// The ETX of each place's link as a metric, [`Metric::NONE`] if it is not usable: ranking reads all of them for each
    /// destination, and they are next to each other in memory.
    metrics: Vec<Metric>,
    /// Counts the changes of metrics: what was ranked by one version holds as long as it is the same.
    version: u32,
    settings: Probes,
}

/// One neighbour and the statistics of its probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub node: u16,
    epoch: u8,
    /// The last probe's number.
    last: u16,
    /// The probes received, one bit each, the last one in bit 0.
    came: u64,
    /// Number of valid bits in `came`.
    span: u8,
    heard: Instant,
    /// Our probes that the neighbour received, and of how many.
    report: Option<(u8, u8)>,
    etx: Option<f64>,
    data: DataWindow,
    /// The first full window has passed: from here on eq. 6 damps.
    settled: bool,
    /// Not used until then, and how often that was so since a frame was last acknowledged.
    barred: (Instant, u8),
}

/// Transmissions of data frames since the last sample of ETX.
#[derive(Clone, Copy, Debug, Default)]
struct DataWindow {
    sent: u16,
    acknowledged: u16,
    /// Transmissions since the last acknowledged one, over all windows.
    in_vain: u16,
    /// When the last sample was taken.
    sampled: Option<Instant>,
}

/// The effect of an update on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that routes depend on.
    None,
    /// The link's ETX changed.
    Etx,
    /// The link became usable.
    Up,
    /// The link became unusable.
    Down,
    /// The neighbour was silent for a whole window; its place is free again.
    Gone,
}

/// How long a neighbour that acknowledges nothing is not used, the first time (ours: so that it costs a part of the time only, and a
/// link that was jammed comes back).
pub(crate) const BARRED: Duration = Duration::from_secs(8);
/// How often this time doubles.
pub(crate) const BARRED_TWICE_MAX: u8 = 4;

/// The number of no node.
const FREE: u32 = u32::MAX;

impl Links {
    pub fn new(settings: Probes, places: u8) -> Links {
        let places = usize::from(places);
        Links {
            links: vec![None; places],
            numbers: vec![FREE; places],
            metrics: vec![Metric::NONE; places],
            version: 0,
            settings,
        }
    }

    /// The place of a known neighbour.
    pub fn find(&self, node: u16) -> Option<u8> {
        let mut numbers = self.numbers.iter();
        let place = numbers.position(|&number| number == u32::from(node))?;
        Some(place as u8)
    }

    /// The place of a neighbour, which is entered if new. `None` if the table is full.
    pub fn enter(&mut self, now: Instant, node: u16) -> Option<u8> {
        if let Some(place) = self.find(node) {
            return Some(place);
        }
        let place = self.numbers.iter().position(|&number| number == FREE)?;
        *self.links.get_mut(place)? = Some(Link::new(now, node));
        *self.numbers.get_mut(place)? = node.into();
        Some(place as u8)
    }

    pub fn get(&self, place: u8) -> Option<&Link> {
        self.links.get(usize::from(place))?.as_ref()
    }

    /// The ETX of the link to the neighbour at `place`, if the link is usable.
    pub fn etx(&self, place: u8) -> Option<f64> {
        self.get(place)?.etx
    }

    /// The places of all usable links, with their ETX. One of 256 and more, which no path can contain, is left out.
    pub fn usable(&self) -> impl Iterator<Item = (u8, Metric)> + Clone + '_ {
        let usable =
            |(place, &metric): (usize, &Metric)| metric.exists().then_some((place as u8, metric));
        self.metrics.iter().enumerate().filter_map(usable)
    }

    /// The ETX of the link to the neighbour at `place`, [`Metric::NONE`] if it is not usable.
    pub fn metric(&self, place: u8) -> Metric {
        let metric = self.metrics.get(usize::from(place));
        metric.copied().unwrap_or(Metric::NONE)
    }

    /// Must follow each change of the ETX of the link at `place`.
    fn set_metric(&mut self, place: u8) {
        let etx = self.etx(place);
        let new = etx.map_or(Metric::NONE, Metric::from_etx);
        if let Some(metric) = self.metrics.get_mut(usize::from(place))
            && *metric != new
        {
            *metric = new;
            self.version = self.version.wrapping_add(1);
        }
    }

    /// Another one as soon as [`usable`](Self::usable) gives other links or metrics.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The counts of all neighbours for a probe.
    pub fn counts(&self, now: Instant) -> impl Iterator<Item = Count> + '_ {
        self.links.iter().flatten().filter_map(move |link| {
            let (received, of) = link.received(now, &self.settings);
            let node = link.node;
            (of > 0).then_some(Count { node, received, of })
        })
    }

    /// A frame of a neighbour was received, under a scheme without probes.
    pub fn on_heard(&mut self, now: Instant, place: u8) {
        if let Some(Some(link)) = self.links.get_mut(usize::from(place)) {
            link.heard = now;
        }
    }

    /// Probes are that far apart from now on.
    pub fn set_interval(&mut self, interval: Duration) {
        self.settings.interval = interval;
    }

    /// All neighbours, with usable links or not.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Link)> + Clone {
        self.links
            .iter()
            .enumerate()
            .filter_map(|(place, link)| Some((place as u8, link.as_ref()?)))
    }

    /// A probe was received; `report` is its count of our probes.
    pub fn on_probe(
        &mut self,
        now: Instant,
        place: u8,
        (epoch, number): (u8, u16),
        report: Option<(u8, u8)>,
    ) {
        let window = self.settings.window;
        let Some(Some(link)) = self.links.get_mut(usize::from(place)) else {
            return;
        };
        link.on_probe(now, epoch, number, window);
        // A neighbour that does not list us has received none of as many probes as we have of its.
        link.report = report.or(Some((0, link.span)));
    }

    //= dpclo IV-A: ETX from the delivery ratios in both directions, damped (eq. 6)
    /// Updates a link, once in every probe interval.
    pub fn update(&mut self, now: Instant, place: u8) -> Change {
        let change = self.estimate(now, place);
        if change == Change::Gone {
            self.remove(place);
        } else {
            self.set_metric(place);
        }
        change
    }

    fn estimate(&mut self, now: Instant, place: u8) -> Change {
        let settings = self.settings;
        let Some(slot) = self.links.get_mut(usize::from(place)) else {
            return Change::None;
        };
        let Some(link) = slot else {
            return Change::None;
        };
        let before = link.etx;
        if now < link.barred.0 {
            return Change::None;
        }
        let (received, of) = link.received(now, &settings);
        if received == 0 && link.silent(now, &settings) >= u64::from(settings.window) {
            return Change::Gone;
        }
        let ratios = link.ratios(received, of, &settings);
        let by_data = settings.attempts.is_some_and(|law| {
            let recent = |at| now.saturating_since(at) < law.instead_of_probes;
            link.data.sampled.is_some_and(recent)
        });
        link.etx = match ratios {
            _ if by_data && link.etx.is_some() => link.etx,
            Some((there, back)) if there.min(back) < settings.ratio_min => None,
            Some((there, back)) => {
                let sample = (1.0 / (there * back)).clamp(1.0, settings.etx_max);
                let damped = link.settled.then_some(link.etx).flatten();
                link.settled |= of >= settings.window;
                Some(damped.map_or(sample, |old| damp(settings.damping, old, sample)))
            }
            // Too few probes: the last estimate stays.
            None => link.etx,
        };
        link.settled &= link.etx.is_some();
        match (before, link.etx) {
            (None, Some(_)) => Change::Up,
            (Some(_), None) => Change::Down,
            (Some(old), Some(new)) if old != new => Change::Etx,
            _ => Change::None,
        }
    }

    /// A data frame took so many transmissions, and was acknowledged or given up.
    pub fn on_attempts(&mut self, now: Instant, place: u8, attempts: u8, acknowledged: bool) {
        let settings = self.settings;
        let (Some(law), Some(Some(link))) =
            (settings.attempts, self.links.get_mut(usize::from(place)))
        else {
            return;
        };
        if acknowledged {
            link.barred.1 = 0;
        }
        if let Some(sample) = link.data.count(attempts, acknowledged, law.window) {
            let sample = sample.clamp(1.0, settings.etx_max);
            let weight = link.weight(now, settings.damping, law.time_constant);
            link.etx = link.etx.map(|old| damp(weight, old, sample));
            link.data.sampled = Some(now);
            self.set_metric(place);
        }
    }

    /// The link gave a packet up: counts as a sample of the largest ETX, unless transmissions are samples themselves.
    pub fn on_failure(&mut self, place: u8) {
        let settings = self.settings;
        if settings.attempts.is_some() {
            return;
        }
        if let Some(Some(link)) = self.links.get_mut(usize::from(place)) {
            link.etx = link
                .etx
                .map(|old| damp(settings.damping, old, settings.etx_max));
            self.set_metric(place);
        }
    }

    /// A neighbour is heard and acknowledges nothing: its link is not used for a while, each time twice as long.
    pub fn bar(&mut self, now: Instant, place: u8) {
        if let Some(Some(link)) = self.links.get_mut(usize::from(place)) {
            let times = link.barred.1.min(BARRED_TWICE_MAX);
            link.barred = (now + BARRED * (1 << times), times + 1);
            (link.etx, link.settled) = (None, false);
            self.set_metric(place);
        }
    }

    /// Forgets the neighbour at a place.
    pub fn remove(&mut self, place: u8) {
        if let Some(slot) = self.links.get_mut(usize::from(place)) {
            *slot = None;
        }
        if let Some(number) = self.numbers.get_mut(usize::from(place)) {
            *number = FREE;
        }
        self.set_metric(place);
    }

    pub fn places(&self) -> u8 {
        self.links.len() as u8
    }
}

impl DataWindow {
    /// Counts a frame. Returns the window's ETX once it is full: transmissions for each acknowledged one; without any, those
    /// since the last acknowledged one.
    fn count(&mut self, attempts: u8, acknowledged: bool, window: u8) -> Option<f64> {
        self.sent = self.sent.saturating_add(attempts.into());
        self.in_vain = match acknowledged {
            true => 0,
            false => self.in_vain.saturating_add(attempts.into()),
        };
        self.acknowledged += u16::from(acknowledged);
        if self.sent < u16::from(window) {
            return None;
        }
        let sample = match self.acknowledged {
            0 => f64::from(self.in_vain),
            some => f64::from(self.sent) / f64::from(some),
        };
        (self.sent, self.acknowledged) = (0, 0);
        Some(sample)
    }
}

impl Link {
    /// The weight of the old estimate beside a sample of data frames, `least` if samples are rare.
    fn weight(&self, now: Instant, least: f64, time_constant: Duration) -> f64 {
        let Some(sampled) = self.data.sampled.filter(|_| time_constant > Duration::ZERO) else {
            return least;
        };
        let since = now.saturating_since(sampled).as_secs_f64();
        libm::exp(-since / time_constant.as_secs_f64()).max(least)
    }

    fn new(now: Instant, node: u16) -> Link {
        Link {
            node,
            epoch: 0,
            last: 0,
            came: 0,
            span: 0,
            heard: now,
            report: None,
            etx: None,
            data: DataWindow::default(),
            settled: false,
            barred: (now, 0),
        }
    }

    fn on_probe(&mut self, now: Instant, epoch: u8, number: u16, window: u8) {
        let ahead = number.wrapping_sub(self.last);
        if self.span == 0 || self.epoch != epoch {
            (self.epoch, self.last, self.came, self.span) = (epoch, number, 1, 1);
        // A repeated or old probe.
        } else if ahead == 0 || ahead > u16::MAX / 2 {
            return;
        } else {
            self.came = self.came.checked_shl(u32::from(ahead)).unwrap_or(0) | 1;
            let span = u32::from(self.span) + u32::from(ahead);
            self.span = span.min(u32::from(window)) as u8;
            self.last = number;
        }
        self.heard = now;
    }

    /// Probes missed since the last one. One that is half an interval late counts as lost.
    fn silent(&self, now: Instant, settings: &Probes) -> u64 {
        let since = now.saturating_since(self.heard) + settings.interval / 2;
        since.steps(settings.interval).saturating_sub(1)
    }

    /// Probes received in the window that ends now, and the number sent in it.
    fn received(&self, now: Instant, settings: &Probes) -> (u8, u8) {
        let silent = self.silent(now, settings).min(u64::from(settings.window));
        let of = (silent + u64::from(self.span)).min(u64::from(settings.window));
        let window = (1u64 << of.min(63)).wrapping_sub(1);
        let came = self.came.checked_shl(silent as u32).unwrap_or(0) & window;
        (came.count_ones() as u8, of as u8)
    }

    /// The delivery ratios to and from the neighbour, once both rest on enough probes.
    fn ratios(&self, received: u8, of: u8, settings: &Probes) -> Option<(f64, f64)> {
        let (theirs, of_ours) = self.report?;
        if of < settings.least || of_ours < settings.least {
            return None;
        }
        let ratio = |part: u8, whole: u8| f64::from(part) / f64::from(whole);
        Some((ratio(theirs, of_ours), ratio(received, of)))
    }
}

fn damp(weight: f64, old: f64, new: f64) -> f64 {
    weight * old + (1.0 - weight) * new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use alloc::vec::Vec;
    use chappe_core::{Purpose, Seed};

    fn links() -> Links {
        Links::new(Settings::paper().probes, 4)
    }

    fn second(n: u64) -> Instant {
        Instant::from_millis(1000 * n)
    }

    /// Goal: eq. 6 to the digit. Method: every second probe comes, the neighbour reports 8 of 10.
    #[test]
    fn etx_follows_the_formula() {
        let mut links = links();
        let place = links.enter(second(0), 7).unwrap();
        let mut etx = Vec::new();
        for n in 0..40u16 {
            let now = second(u64::from(n));
            if n.is_multiple_of(2) {
                links.on_probe(now, place, (1, n), Some((8, 10)));
            }
            links.update(now, place);
            etx.push(links.etx(place));
        }
        // In a full window 5 of 10 came: 1 / (0.8 * 0.5) = 2.5, whatever was before.
        assert!((etx[39].unwrap() - 2.5).abs() < 1e-9, "{:?}", etx[39]);
        assert_eq!(etx[0], None, "one probe says nothing");
        // From then on a sample weighs a tenth: 3 of 10 reported make 1 / (0.3 * 0.5).
        links.on_probe(second(40), place, (1, 40), Some((3, 10)));
        links.update(second(40), place);
        let want = 0.9 * 2.5 + 0.1 / 0.15;
        assert!((links.etx(place).unwrap() - want).abs() < 1e-9);
        links.on_failure(place);
        let want = 0.9 * want + 0.1 * 16.0;
        assert!((links.etx(place).unwrap() - want).abs() < 1e-9);
    }

    /// Defect: one frame that was given up moved ETX by (16 - ETX)/10. The window's sample moves it as far as its transmissions
    /// say, and probes of a link in use do not count.
    #[test]
    fn transmissions_are_samples_of_etx() {
        let mut links = Links::new(Settings::improved().probes, 4);
        let place = links.enter(second(0), 7).unwrap();
        for n in 0..12u16 {
            links.on_probe(second(u64::from(n)), place, (1, n), Some((10, 10)));
            links.update(second(u64::from(n)), place);
        }
        let now = second(12);
        let etx = |links: &Links| (links.etx(place).unwrap() * 1e4).round() / 1e4;
        assert_eq!(etx(&links), 1.0);
        // Seven transmissions in vain are a window.
        links.on_attempts(now, place, 7, false);
        links.on_failure(place);
        assert_eq!(etx(&links), 1.6);
        // Then three and two acknowledged ones: 5/2.
        links.on_attempts(now, place, 3, true);
        assert_eq!(etx(&links), 1.6);
        links.on_attempts(now, place, 2, true);
        assert_eq!(etx(&links), 1.69);
        // Lost probes change nothing while frames tell.
        links.on_probe(now, place, (1, 40), Some((2, 10)));
        links.update(now, place);
        assert_eq!(etx(&links), 1.69);
        links.on_probe(second(23), place, (1, 41), Some((2, 10)));
        links.update(second(23), place);
        assert!(etx(&links) > 2.5);
        // What is given up again and again counts all that was in vain, up to the largest ETX.
        for (frames, sample) in [(1, 7.0), (1, 14.0), (1, 16.0)] {
            let before = links.etx(place).unwrap();
            (0..frames).for_each(|_| links.on_attempts(now, place, 7, false));
            let want = 0.9 * before + 0.1 * sample;
            assert!((links.etx(place).unwrap() - want).abs() < 1e-9);
        }
    }

    /// Goal: random losses give the expected ETX. Method: many windows, loss rates of Fig. 4.
    #[test]
    fn etx_of_random_losses_is_near_its_mean() {
        let mut random = Seed(1).stream(Purpose::Trial(0));
        for loss in [0.0, 0.1, 0.3] {
            let mut links = links();
            let place = links.enter(second(0), 7).unwrap();
            let (mut sum, mut samples) = (0.0, 0);
            for n in 0..4000u16 {
                let now = second(u64::from(n));
                if random.chance(1.0 - loss) {
                    links.on_probe(now, place, (1, n), Some((10, 10)));
                }
                links.update(now, place);
                if n > 20 {
                    sum += links.etx(place).unwrap_or(16.0);
                    samples += 1;
                }
            }
            // The mean of 1/ratio over windows of 10 lies above 1/(mean ratio), by about loss / (10 (1-loss)^2).
            let want = 1.0 / (1.0 - loss) + loss / (10.0 * (1.0 - loss) * (1.0 - loss));
            let mean = sum / f64::from(samples);
            assert!((mean - want).abs() < 0.03 * want, "{loss}: {mean} {want}");
        }
    }

    #[test]
    fn silence_brings_a_link_down_and_frees_its_place() {
        let mut links = links();
        let place = links.enter(second(0), 7).unwrap();
        for n in 0..10 {
            links.on_probe(second(u64::from(n)), place, (1, n), Some((10, 10)));
            links.update(second(u64::from(n)), place);
        }
        assert_eq!(links.etx(place), Some(1.0));
        let changes: Vec<Change> = (10..21).map(|n| links.update(second(n), place)).collect();
        // The probe of this very second is not lost yet. 9 of 10 lost is a ratio of exactly 0.1: still in use; with the
        // tenth it is over.
        assert_eq!(changes[0], Change::None);
        assert_eq!(changes[9], Change::Etx);
        assert_eq!(changes[10], Change::Gone);
        assert_eq!(links.find(7), None);
    }

    #[test]
    fn restarted_and_deaf_neighbours_are_recognised() {
        let mut links = links();
        let place = links.enter(second(0), 7).unwrap();
        for n in 0..10 {
            links.on_probe(second(u64::from(n)), place, (1, 500 + n), Some((10, 10)));
            links.update(second(u64::from(n)), place);
        }
        // Numbers that jump back are old frames, unless the epoch is another one.
        links.on_probe(second(10), place, (1, 3), Some((10, 10)));
        assert_eq!(links.get(place).unwrap().last, 509);
        links.on_probe(second(10), place, (2, 0), None);
        assert_eq!(links.counts(second(10)).next().unwrap().of, 1);
        for n in 1..4 {
            links.on_probe(second(10 + u64::from(n)), place, (2, n), None);
        }
        assert_eq!(
            links.update(second(13), place),
            Change::Down,
            "it lists others, not us"
        );
    }

    /// Defect: routes were ranked by a barred link until its next probe was due.
    #[test]
    fn a_barred_link_has_no_metric_at_once() {
        let mut links = links();
        let place = links.enter(second(0), 7).unwrap();
        for n in 0..10u16 {
            links.on_probe(second(u64::from(n)), place, (1, n), Some((10, 10)));
            links.update(second(u64::from(n)), place);
        }
        let version = links.version();
        assert!(links.metric(place).exists());
        links.bar(second(10), place);
        assert!(!links.metric(place).exists() && links.usable().count() == 0);
        assert_ne!(
            links.version(),
            version,
            "what was ranked before holds no longer"
        );
    }

    #[test]
    fn a_full_table_takes_no_new_neighbour() {
        let mut links = links();
        assert!((0..4).all(|node| links.enter(second(0), node).is_some()));
        assert_eq!(links.enter(second(0), 9), None);
        assert_eq!(links.enter(second(0), 3), Some(3));
        assert_eq!(links.usable().count(), 0);
    }
}
