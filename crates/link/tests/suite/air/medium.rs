//! What lies between the two peers: rates, queues, delay, jitter and losses.

use std::collections::{BTreeMap, VecDeque};

use chappe_core::{Instant, Purpose, Seed, Stream};

use super::Air;

/// The frames that wait for the medium, and those on their way.
pub struct Medium {
    air: Air,
    /// With the moment since when each has waited.
    waiting: [VecDeque<(Instant, Vec<u8>)>; 2],
    flying: [BTreeMap<(Instant, u64), Vec<u8>>; 2],
    bad: [bool; 2],
    turn: usize,
    /// The second is used where the directions do not share the medium.
    free_at: [Instant; 2],
    random: Stream,
    steps: usize,
    count: u64,
    pub octets: [u64; 2],
    pub frames: [u64; 2],
    /// Of them, those that chance lost.
    pub lost: [u64; 2],
    /// Frames that found the queue full.
    pub overrun: u64,
    /// Directions in which nothing passes.
    pub cut: [bool; 2],
}

impl Medium {
    pub fn new(air: Air, seed: u64) -> Medium {
        Medium {
            air,
            waiting: Default::default(),
            flying: Default::default(),
            bad: [false; 2],
            turn: 0,
            free_at: [Instant::ZERO; 2],
            random: Seed(seed).stream(Purpose::Reception),
            steps: 0,
            count: 0,
            octets: [0; 2],
            frames: [0; 2],
            lost: [0; 2],
            overrun: 0,
            cut: [false; 2],
        }
    }

    /// Cuts the path, or mends it. With `flying`, what is on its way is lost too.
    pub fn cut(&mut self, directions: [bool; 2], flying: bool) {
        self.cut = directions;
        for from in (0..2).filter(|from| flying && directions[*from]) {
            self.flying[from].clear();
        }
    }

    /// A frame of host `from`, with the headers below.
    pub fn offer(&mut self, now: Instant, from: usize, frame: Vec<u8>) {
        match self.waiting[from].len() < self.air.queue {
            true => self.waiting[from].push_back((now, frame)),
            false => self.overrun += 1,
        }
    }

    /// Lets frames out, each for its time on the medium.
    pub fn serve(&mut self, now: Instant) {
        self.step(now);
        match self.air.back {
            None => while self.serve_turn(now) {},
            Some(_) => (0..2).for_each(|from| while self.serve_one(from, from, now) {}),
        }
    }

    fn step(&mut self, now: Instant) {
        let steps = self.air.steps;
        while let Some((at, rate, loss)) = steps.get(self.steps)
            && Instant::ZERO + *at <= now
        {
            (self.air.rate, self.air.loss) = (*rate, *loss);
            self.steps += 1;
        }
    }

    /// Both directions take turns.
    fn serve_turn(&mut self, now: Instant) -> bool {
        let from = match self.waiting[self.turn].is_empty() {
            true => 1 - self.turn,
            false => self.turn,
        };
        let served = self.serve_one(from, 0, now);
        if served {
            self.turn = 1 - from;
        }
        served
    }

    fn serve_one(&mut self, from: usize, place: usize, now: Instant) -> bool {
        let air = self.air;
        if self.free_at[place] > now {
            return false;
        }
        let Some((since, frame)) = self.waiting[from].pop_front() else {
            return false;
        };
        let rate = air.back.filter(|_| from == 1).unwrap_or(air.rate);
        // The medium does not wait for a host to look at it: a frame that waits follows the one before at once.
        let free_at = self.free_at[place].max(since) + rate.time_of(frame.len() as u64 * 8);
        self.free_at[place] = free_at;
        self.octets[from] += frame.len() as u64;
        self.frames[from] += 1;
        let chance = match air.burst {
            0.0 => air.loss,
            burst if self.bad[from] => 1.0 - 1.0 / burst,
            burst => air.loss / (burst * (1.0 - air.loss)),
        };
        self.bad[from] = self.random.chance(chance);
        self.lost[from] += u64::from(self.bad[from]);
        let narrow = air.narrower.filter(|(from, until, _)| {
            (Instant::ZERO + *from..Instant::ZERO + *until).contains(&now)
        });
        let largest = narrow.map_or(air.largest, |narrow| narrow.2);
        if !self.bad[from] && frame.len() <= largest && !self.cut[from] {
            let late = match air.jitter.nanos() {
                0 => chappe_core::Duration::ZERO,
                _ => air.jitter.mul_f64(self.random.fraction()),
            };
            self.count += 1;
            let at = (free_at + air.delay + late, self.count);
            self.flying[from].insert(at, frame);
        }
        true
    }

    /// When a frame arrives or leaves next.
    pub fn next_at(&self) -> Option<Instant> {
        let flights = self.flying.iter().filter_map(|queue| queue.keys().next());
        let waits = |from: &usize| !self.waiting[*from].is_empty();
        let free = |from: usize| self.free_at[if self.air.back.is_some() { from } else { 0 }];
        let queued = (0..2).filter(waits).map(free);
        flights.map(|key| key.0).chain(queued).min()
    }

    /// When the next frame of host `from` arrives, or did.
    pub fn arrives_at(&self, from: usize) -> Option<Instant> {
        self.flying[from].keys().next().map(|key| key.0)
    }

    /// The next frame of host `from` that has arrived, and when it did.
    pub fn land(&mut self, from: usize, now: Instant) -> Option<(Instant, Vec<u8>)> {
        let entry = self.flying[from].first_entry()?;
        let arrived = entry.key().0;
        (arrived <= now).then(|| (arrived, entry.remove()))
    }
}
