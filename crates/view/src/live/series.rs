//! One value of one node over time.

use std::collections::VecDeque;

use chappe_sim::AirTime;

use super::Amount;

/// Changes that are kept: ten minutes of a value that changes each second.
pub const POINTS: usize = 600;

/// The newest changes of a value.
#[derive(Debug, Default)]
pub struct Series {
    rows: VecDeque<Row>,
    /// The last state of a counter, from which its rate is worked out.
    count: Option<(AirTime, f64)>,
}

/// A value from a moment on.
#[derive(Clone, Debug)]
pub struct Row {
    pub at: AirTime,
    /// NaN for a word.
    pub number: f64,
    pub word: String,
}

impl Series {
    /// Adds a value; one that has not changed takes no room.
    pub fn add(&mut self, at: AirTime, amount: Amount) {
        let (number, word) = match amount {
            Amount::Gauge(value) => (value, String::new()),
            Amount::Word(word) => (f64::NAN, word),
            Amount::Counter(value) => match self.rate(at, value) {
                Some(rate) => (rate, String::new()),
                None => return,
            },
        };
        let same = |row: &Row| row.number.to_bits() == number.to_bits() && row.word == word;
        if self.rows.back().is_some_and(same) {
            return;
        }
        if self.rows.len() >= POINTS {
            self.rows.pop_front();
        }
        self.rows.push_back(Row { at, number, word });
    }

    /// Changes per second since the counter was last read; `None` at first, and after a daemon's restart.
    fn rate(&mut self, at: AirTime, value: f64) -> Option<f64> {
        let (before, least) = self.count.replace((at, value))?;
        let seconds = at.saturating_since(before).as_secs_f64();
        (value >= least && seconds > 0.0).then(|| (value - least) / seconds)
    }

    /// The daemon does not answer: the next rate is not one over the gap.
    pub fn pause(&mut self) {
        self.count = None;
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}
