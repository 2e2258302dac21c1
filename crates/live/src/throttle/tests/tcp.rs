//! A competing flow of TCP, without what depends on segments: its window is that of the model of its congestion control.

use std::collections::VecDeque;

use chappe_core::Stream;

use super::Bottleneck;

/// The congestion control of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// RFC 5681: adds one segment a round trip, halves on loss.
    Reno,
    /// RFC 9438, Linux's default.
    Cubic,
}

/// The window in frames.
#[derive(Clone, Copy, Debug)]
struct Window {
    control: Control,
    frames: f64,
    starting: bool,
    /// The window before the last loss, when that was, and what Reno's would be.
    before: f64,
    lost_at: f64,
    reno: f64,
}

/// RFC 9438: C in frames/s³, and what a loss leaves.
const CUBE: f64 = 0.4;
const LEFT: f64 = 0.7;

impl Window {
    fn acknowledge(&mut self, now: f64) {
        if self.starting {
            self.frames += 1.0;
            return;
        }
        match self.control {
            Control::Reno => self.frames += 1.0 / self.frames,
            Control::Cubic => {
                let back = (self.before * (1.0 - LEFT) / CUBE).cbrt();
                let cubic = CUBE * ((now - self.lost_at) / 1e3 - back).powi(3) + self.before;
                // RFC 9438, 4.3.
                self.reno += 3.0 * (1.0 - LEFT) / (1.0 + LEFT) / self.frames;
                let goal = cubic.max(self.reno).min(1.5 * self.frames);
                self.frames += ((goal - self.frames) / self.frames).max(0.0);
            }
        }
    }

    fn lose(&mut self, now: f64) {
        let left = match self.control {
            Control::Reno => 0.5,
            Control::Cubic => LEFT,
        };
        // RFC 9438, 4.7: who could not return leaves room.
        self.before = match self.frames < self.before {
            true => self.frames * (1.0 + LEFT) / 2.0,
            false => self.frames,
        };
        self.frames = (self.frames * left).max(2.0);
        (self.starting, self.lost_at, self.reno) = (false, now, self.frames);
    }
}

/// A flow that always has something to send.
pub(super) struct Flow {
    window: Window,
    next: f64,
    /// When losses are noticed.
    lost: VecDeque<f64>,
    deaf_until: f64,
    /// The number of its frames that arrived.
    pub sent: f64,
}

impl Flow {
    pub fn new(control: Control) -> Flow {
        let window = Window {
            control,
            frames: 10.0,
            starting: true,
            before: 0.0,
            lost_at: 0.0,
            reno: 0.0,
        };
        Flow {
            window,
            next: 0.0,
            lost: VecDeque::new(),
            deaf_until: 0.0,
            sent: 0.0,
        }
    }

    /// Sends what is due in this ms. `loss` is the share of frames that is lost behind the bottleneck.
    pub fn turn(
        &mut self,
        now: f64,
        round: f64,
        bottleneck: &mut Bottleneck,
        random: &mut Stream,
        loss: f64,
    ) {
        while self.lost.front().is_some_and(|at| *at <= now) {
            self.lost.pop_front();
            if now >= self.deaf_until {
                self.window.lose(now);
                self.deaf_until = now + round;
            }
        }
        self.next = self.next.max(now - 2.0);
        while self.next <= now {
            if bottleneck.pass(self.next).is_some() && !random.chance(loss) {
                self.sent += 1.0;
                self.window.acknowledge(now);
            } else {
                self.lost.push_back(self.next + round);
            }
            // Frames of two flows do not keep step (Floyd and Jacobson, 1992).
            self.next += round / self.window.frames * (0.5 + random.fraction());
        }
    }
}
