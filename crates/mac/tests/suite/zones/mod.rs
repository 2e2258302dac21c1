//! Bianchi's model for two classes of stations in one EDCA cell.
//!
//! A class has its own window and its own interframe space, longer by whole slots. After each busy period the first
//! `later` slots belong to the patient class's rivals alone; after those, both classes contend. In every slot that a
//! class counts, idle or not, each of its back-offs loses one, which is Bianchi's chain exactly. The collision
//! probability of a class averages over the slots in which it attempts (the "contention zones" of Robinson and
//! Randhawa, IEEE JSAC 22(5), 2004, for two zones).

/// One class of equal stations.
#[derive(Clone, Copy)]
pub struct Class {
    pub stations: usize,
    pub cw_min: u16,
    pub cw_max: u16,
    /// Slots by which its interframe space is longer than the shorter one.
    pub later: usize,
}

/// What the air is worth, in seconds.
#[derive(Clone, Copy)]
pub struct Spans {
    pub slot: f64,
    /// A success and a collision, each to the first boundary of the class with the shorter interframe space.
    pub success: f64,
    pub collision: f64,
}

/// Successes per second and collision probability, per class.
pub fn saturation(classes: [Class; 2], spans: Spans) -> [(f64, f64); 2] {
    let mut p = [0.1, 0.1];
    let mut zones = Zones::new(classes, [0.01; 2]);
    // Damped iteration: each step moves a tenth of the way.
    for _ in 0..2000 {
        let tau = [attempt(classes[0], p[0]), attempt(classes[1], p[1])];
        zones = Zones::new(classes, tau);
        for (class, p) in p.iter_mut().enumerate() {
            *p += 0.1 * (zones.collision(class) - *p);
        }
    }
    let per_slot: f64 = (0..zones.slots.len())
        .map(|zone| zones.slots[zone] * zones.mean(zone, spans))
        .sum();
    [0, 1].map(|class| {
        let wins = |zone| zones.slots[zone] * zones.success(zone, class);
        let rate = (0..zones.slots.len()).map(wins).sum::<f64>() / per_slot;
        (rate, p[class])
    })
}

/// Bianchi's (7): the attempt probability of a station whose attempts collide with probability `p`.
fn attempt(class: Class, p: f64) -> f64 {
    let window = f64::from(class.cw_min) + 1.0;
    let stages = ((f64::from(class.cw_max) + 1.0) / window).log2().round() as i32;
    let sum: f64 = (0..stages).map(|stage| (2.0 * p).powi(stage)).sum();
    2.0 / (1.0 + window + p * window * sum)
}

/// Zone 0: only the class that is not later attempts. Zone 1: both.
struct Zones {
    classes: [Class; 2],
    tau: [f64; 2],
    /// Mean number of slots of each zone between two busy periods.
    slots: [f64; 2],
}

impl Zones {
    fn new(classes: [Class; 2], tau: [f64; 2]) -> Zones {
        let mut zones = Zones {
            classes,
            tau,
            slots: [0.0; 2],
        };
        let later = classes[0].later.max(classes[1].later);
        let (alone, both) = (zones.idle(0), zones.idle(1));
        zones.slots[0] = (0..later).map(|slot| alone.powi(slot as i32)).sum();
        zones.slots[1] = alone.powi(later as i32) / (1.0 - both);
        zones
    }

    fn attempts(&self, zone: usize, class: usize) -> bool {
        zone == 1 || self.classes[class].later == 0
    }

    /// Probability that no station attempts in a slot of the zone.
    fn idle(&self, zone: usize) -> f64 {
        let of = |class: usize| match self.attempts(zone, class) {
            true => (1.0 - self.tau[class]).powi(self.classes[class].stations as i32),
            false => 1.0,
        };
        of(0) * of(1)
    }

    /// Probability that exactly one station attempts in a slot of the zone, and it is of this class.
    fn success(&self, zone: usize, class: usize) -> f64 {
        if !self.attempts(zone, class) {
            return 0.0;
        }
        let tau = self.tau[class];
        self.classes[class].stations as f64 * tau * self.idle(zone) / (1.0 - tau)
    }

    /// Probability that an attempt of this class meets another one.
    fn collision(&self, class: usize) -> f64 {
        let (mut met, mut all) = (0.0, 0.0);
        for zone in (0..2).filter(|&zone| self.attempts(zone, class)) {
            all += self.slots[zone];
            met += self.slots[zone] * (1.0 - self.idle(zone) / (1.0 - self.tau[class]));
        }
        met / all
    }

    /// Mean length of a slot of the zone.
    fn mean(&self, zone: usize, spans: Spans) -> f64 {
        let idle = self.idle(zone);
        let won = self.success(zone, 0) + self.success(zone, 1);
        idle * spans.slot + won * spans.success + (1.0 - idle - won) * spans.collision
    }
}
