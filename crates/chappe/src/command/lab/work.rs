//! Makes the figures of several papers one after the other: keeps each, shows how far it is, and answers Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use chappe_lab::paper::{FigureSet, Order};
use chappe_lab::run::{Meter, RunError};
use chappe_lab::sweep::PATIENCE;
use chappe_results::figure::Figure;

use super::done::{Done, Work};
use super::kept::{Found, Kept};
use super::record::Record;
use crate::cli::Lab;
use crate::failure::Failure;
use crate::terminal::{self, Bar};

/// Everything that the papers share.
pub struct Shop<'a> {
    pub options: &'a Lab,
    pub kept: Option<Kept>,
    pub stop: Arc<AtomicBool>,
    pub record: &'a Record,
}

/// How far the whole is, in seconds of the recorded run.
struct Ahead {
    begun: Instant,
    done: f64,
    total: f64,
    figures: (usize, usize),
}

impl Shop<'_> {
    /// Makes what is not kept yet.
    pub fn make(&self, works: Vec<Work>) -> Result<Vec<Done>, Failure> {
        let mut all = Vec::new();
        let mut number = 0;
        for work in works {
            let mut done = self.find(&work);
            let found: Vec<&str> = done.seconds.iter().map(|(name, _)| *name).collect();
            let mut missing: Vec<&'static str> = Vec::new();
            for name in work.names {
                // Counted over everything that was ordered, so that parts do not depend on what is kept.
                let own = self
                    .options
                    .shard
                    .is_none_or(|part| number % part.count == part.index - 1);
                number += 1;
                match (found.contains(&name), own) {
                    (true, _) => {}
                    (false, true) => missing.push(name),
                    (false, false) => done.others.push(name),
                }
            }
            all.push((done, missing));
        }
        let expected = |(done, names): &(Done, Vec<&'static str>)| -> f64 {
            names
                .iter()
                .map(|name| self.record.seconds(done.paper.name, name))
                .sum()
        };
        let mut ahead = Ahead {
            begun: Instant::now(),
            done: 0.0,
            total: all.iter().map(expected).sum(),
            figures: (0, all.iter().map(|(_, names)| names.len()).sum()),
        };
        let found: usize = all.iter().map(|(done, _)| done.seconds.len()).sum();
        if found > 0 {
            terminal::remark(
                self.options.shared.quiet,
                &format!("{found} figures are in the folder already"),
            );
        }
        let bar = Bar::new(self.options.shared.quiet);
        let mut finished = Vec::new();
        for (mut done, missing) in all {
            if !missing.is_empty() {
                self.paper(&mut done, missing, &mut ahead, &bar)?;
            }
            finished.push(done);
        }
        Ok(finished)
    }

    fn find(&self, work: &Work) -> Done {
        let made = FigureSet {
            figures: Vec::new(),
            unfinished: Vec::new(),
            runs: 0,
            drawings: Vec::new(),
            scale: Vec::new(),
        };
        let mut done = Done {
            paper: work.paper,
            made,
            seconds: Vec::new(),
            others: Vec::new(),
        };
        for &name in &work.names {
            match self
                .kept
                .as_ref()
                .and_then(|kept| kept.find(work.paper, name))
            {
                None => continue,
                Some((Found::Figure(figure), seconds)) => {
                    done.made.figures.push(*figure);
                    done.seconds.push((name, seconds));
                }
                Some((Found::Drawing(drawing), seconds)) => {
                    done.made.drawings.push(drawing);
                    done.seconds.push((name, seconds));
                }
            }
        }
        done
    }

    /// Makes figures of one paper on a thread of its own, which is left behind if it does not end in time after Ctrl-C.
    fn paper(
        &self,
        done: &mut Done,
        names: Vec<&'static str>,
        ahead: &mut Ahead,
        bar: &Bar,
    ) -> Result<(), Failure> {
        let (sender, figures) = mpsc::channel::<Figure>();
        let sender = std::sync::Mutex::new(sender);
        let tell = move |figure: &Figure| {
            // The receiver is gone only after Ctrl-C.
            let _ = sender.lock().map(|sender| sender.send(figure.clone()));
        };
        let meter = Arc::new(Meter::stopped_by(self.stop.clone()).telling(Box::new(tell)));
        let (quick, seed, threads) = (
            self.options.quick,
            self.options.seed,
            self.options.shared.threads(),
        );
        let (paper, own, ordered) = (done.paper, meter.clone(), names.clone());
        let (result_sender, result) = mpsc::channel();
        std::thread::spawn(move || {
            let order = Order {
                names: &ordered,
                quick,
                seed,
                threads,
                meter: &own,
            };
            let _ = result_sender.send((paper.make)(&order));
        });
        let mut left = names.clone();
        let mut since = (Instant::now(), meter.read());
        let mut asked = None::<Instant>;
        let made = loop {
            // Figures come before the result of the thread, so the last look is after it.
            let ended = match result.recv_timeout(Duration::from_millis(50)) {
                Ok(made) => Some(made?),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(
                        RunError::Defect(format!("{} ended without a result", paper.name)).into(),
                    );
                }
            };
            for figure in figures.try_iter() {
                let seconds = since.0.elapsed().as_secs_f64();
                since = (Instant::now(), meter.read());
                left.retain(|name| *name != figure.id);
                ahead.done += self.record.seconds(paper.name, figure.id);
                ahead.figures.0 += 1;
                self.keep(done, figure, seconds, ahead)?;
            }
            let next = left
                .first()
                .map_or(0.0, |name| self.record.seconds(paper.name, name));
            let label = format!("{} {}", paper.name, left.first().unwrap_or(&""));
            bar.set(
                &label,
                ahead.done + next * share(since.1, meter.read()),
                ahead.total,
            );
            if let Some(made) = ended {
                break Some(made);
            }
            let stopped = self.stop.load(Ordering::Relaxed);
            if stopped && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break None;
            }
        };
        if let Some(made) = made {
            for drawing in made.drawings {
                left.retain(|name| *name != drawing.name);
                if let Some(kept) = &self.kept {
                    kept.drawing(paper.name, &drawing)?;
                }
                done.seconds.push((drawing.name, 0.0));
                done.made.drawings.push(drawing);
            }
            done.made.runs += made.runs;
            done.made.scale = made.scale;
        }
        done.made.unfinished = left;
        // Kept figures came first; the page has the paper's order.
        let place = |figure: &Figure| paper.figures.iter().position(|item| item.name == figure.id);
        done.made.figures.sort_by_key(place);
        Ok(())
    }

    fn keep(
        &self,
        done: &mut Done,
        figure: Figure,
        seconds: f64,
        ahead: &Ahead,
    ) -> Result<(), Failure> {
        if let Some(kept) = &self.kept {
            kept.figure(done.paper.name, &figure, seconds)?;
        }
        let (number, of) = ahead.figures;
        if of > 1 {
            terminal::line(
                self.options.shared.quiet,
                &format!(
                    "{number} of {of}: {} {}, {seconds:.1} s{}",
                    done.paper.name,
                    figure.id,
                    ahead.left()
                ),
            );
        }
        done.seconds.push((figure.id, seconds));
        done.made.figures.push(figure);
        Ok(())
    }
}

impl Ahead {
    /// The time that is left, from the recorded times of the figures and this machine's speed so far.
    fn left(&self) -> String {
        let elapsed = self.begun.elapsed().as_secs_f64();
        if self.done <= 0.0 || self.figures.0 == self.figures.1 {
            return String::new();
        }
        let left = (self.total - self.done).max(0.0) * elapsed / self.done;
        match left {
            s if s >= 90.0 => format!("; about {:.0} min left", s / 60.0),
            s => format!("; about {s:.0} s left"),
        }
    }
}

/// The share of the work that became known since a figure began and is done.
fn share((done, total): (u64, u64), (now, known): (u64, u64)) -> f64 {
    let (made, all) = (
        now.saturating_sub(done),
        known.saturating_sub(total.min(done)),
    );
    if all == 0 {
        0.0
    } else {
        (made as f64 / all as f64).min(1.0)
    }
}
