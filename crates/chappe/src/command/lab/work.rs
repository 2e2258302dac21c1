//! Makes the figures of several papers at the same time: keeps each, shows how far it is, and answers Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use chappe_lab::cores::Cores;
use chappe_lab::paper::{FigureSet, Order};
use chappe_lab::run::{Meter, RunError};
use chappe_lab::sweep::PATIENCE;
use chappe_results::figure::Figure;
use chappe_sys::thread_time;

use super::done::{Done, Work};
use super::kept::{Found, Kept};
use super::record::Record;
use super::runs::KeptRuns;
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

/// A paper whose figures are being made, on a thread of its own.
struct Making {
    done: Done,
    /// Figures that are not made yet, in the order in which they will be.
    left: Vec<&'static str>,
    meter: Arc<Meter>,
    /// Its finished runs, and how many were there at the start.
    runs: Option<Arc<KeptRuns>>,
    found: usize,
    /// What the meter showed when the current figure began.
    since: (u64, u64),
    ended: bool,
}

/// What the thread of a paper, known by its place, tells.
enum News {
    /// A figure, and the processor time that it took.
    Figure(usize, Box<Figure>, Duration),
    Ended(usize, Result<FigureSet, RunError>),
}

/// How far the whole is, in processor seconds of the recorded run.
struct Ahead {
    begun: Instant,
    done: f64,
    total: f64,
    /// Processor seconds of this run.
    worked: f64,
    figures: (usize, usize),
}

impl Shop<'_> {
    /// Makes what is not kept yet, all papers at the same time.
    ///
    /// They share the cores. The longest paper is first in the queue for them, and the others fill the gaps at the ends of its
    /// figures.
    pub fn make(&self, works: Vec<Work>) -> Result<Vec<Done>, Failure> {
        let all = self.missing(works);
        let expected: Vec<f64> = all.iter().map(|own| self.expected(own)).collect();
        let mut ahead = Ahead {
            begun: Instant::now(),
            done: 0.0,
            total: expected.iter().sum(),
            worked: 0.0,
            figures: (0, all.iter().map(|(_, names)| names.len()).sum()),
        };
        let found: usize = all.iter().map(|(done, _)| done.seconds.len()).sum();
        if found > 0 {
            self.remark(&format!("{found} figures are in the folder already"));
        }
        // How many papers are longer; of equal ones the first is first.
        let rank = |place: usize| {
            let before = |other: &usize| {
                let by_length = expected[*other].total_cmp(&expected[place]);
                by_length.then(place.cmp(other)).is_gt()
            };
            (0..expected.len()).filter(before).count()
        };
        let cores = Cores::new(self.options.shared.threads(), all.len());
        let (sender, news) = mpsc::channel();
        let mut makings = Vec::new();
        for (place, (done, names)) in all.into_iter().enumerate() {
            let meter = Meter::stopped_by(self.stop.clone()).sharing(cores.clone(), rank(place));
            makings.push(self.begin((place, done, names), meter, &sender));
        }
        drop(sender);
        let found: usize = makings.iter().map(|making| making.found).sum();
        if found > 0 {
            self.remark(&format!(
                "{found} runs of unfinished figures are in the folder too"
            ));
        }
        self.follow(&mut makings, &news, &mut ahead)?;
        if ahead.figures.1 > 1 {
            let (minutes, worked) = (ahead.begun.elapsed().as_secs_f64() / 60.0, ahead.worked);
            let made = ahead.figures.0;
            self.remark(&format!(
                "{made} figures in {minutes:.1} min, {worked:.0} s of processor"
            ));
        }
        Ok(makings.into_iter().map(Making::close).collect())
    }

    /// What is kept of each paper, and the names of what is missing.
    fn missing(&self, works: Vec<Work>) -> Vec<(Done, Vec<&'static str>)> {
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
        all
    }

    /// The processor seconds that these figures took in the recorded run.
    fn expected(&self, (done, names): &(Done, Vec<&'static str>)) -> f64 {
        let of = |name: &&'static str| self.record.seconds(done.paper.name, name);
        names.iter().map(of).sum()
    }

    fn remark(&self, text: &str) {
        terminal::remark(self.options.shared.quiet, text);
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

    /// Begins a paper's missing figures on a thread of its own, which is left behind if it does not end in time after Ctrl-C.
    fn begin(
        &self,
        (place, done, names): (usize, Done, Vec<&'static str>),
        meter: Meter,
        sender: &mpsc::Sender<News>,
    ) -> Making {
        let figures = std::sync::Mutex::new(sender.clone());
        let tell = move |figure: &Figure, worked| {
            // The receiver is gone only after Ctrl-C.
            let news = News::Figure(place, Box::new(figure.clone()), worked);
            let _ = figures.lock().map(|sender| sender.send(news));
        };
        let mut meter = meter.timed_by(thread_time).telling(Box::new(tell));
        let runs = self.kept.as_ref().filter(|_| !names.is_empty());
        let runs = runs.map(|kept| Arc::new(kept.runs(done.paper)));
        if let Some(runs) = &runs {
            meter = meter.keeping(runs.clone());
        }
        let meter = Arc::new(meter);
        let making = Making {
            found: runs.as_ref().map_or(0, |runs| runs.count()),
            runs,
            since: meter.read(),
            ended: names.is_empty(),
            left: names.clone(),
            meter: meter.clone(),
            done,
        };
        if making.ended {
            return making;
        }
        let (quick, seed) = (self.options.quick, self.options.seed);
        let threads = self.options.shared.threads();
        let (paper, sender) = (making.done.paper, sender.clone());
        std::thread::spawn(move || {
            let order = Order {
                names: &names,
                quick,
                seed,
                threads,
                meter: &meter,
            };
            let made = catch_unwind(AssertUnwindSafe(|| (paper.make)(&order)));
            let made = made.unwrap_or_else(|_| {
                let message = format!("{} ended without a result", paper.name);
                Err(RunError::Defect(message))
            });
            let _ = sender.send(News::Ended(place, made));
        });
        making
    }

    /// Keeps what the papers tell until all have ended, or for a moment after Ctrl-C.
    fn follow(
        &self,
        makings: &mut [Making],
        news: &mpsc::Receiver<News>,
        ahead: &mut Ahead,
    ) -> Result<(), Failure> {
        let bar = Bar::new(self.options.shared.quiet);
        let mut asked = None::<Instant>;
        while makings.iter().any(|making| !making.ended) {
            match news.recv_timeout(Duration::from_millis(50)) {
                Ok(News::Figure(place, figure, worked)) => {
                    let now = self.now(makings, ahead);
                    self.keep(&mut makings[place], *figure, worked, (ahead, now))?;
                }
                Ok(News::Ended(place, made)) => {
                    ahead.figures.0 += self.end(&mut makings[place], made?)?;
                }
                Err(_) => {}
            }
            let (number, of) = ahead.figures;
            let label = format!("{number} of {of} figures");
            bar.set(&label, self.now(makings, ahead), ahead.total);
            let stopped = self.stop.load(Ordering::Relaxed);
            if stopped && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
        }
        Ok(())
    }

    /// How much of the recorded run is done, with the begun parts of figures.
    fn now(&self, makings: &[Making], ahead: &Ahead) -> f64 {
        let begun = |making: &Making| {
            let next = making.left.first().filter(|_| !making.ended);
            let seconds = |name: &&'static str| self.record.seconds(making.done.paper.name, name);
            next.map_or(0.0, seconds) * share(making.since, making.meter.read())
        };
        ahead.done + makings.iter().map(begun).sum::<f64>()
    }

    fn keep(
        &self,
        making: &mut Making,
        figure: Figure,
        worked: Duration,
        (ahead, now): (&mut Ahead, f64),
    ) -> Result<(), Failure> {
        let (paper, seconds) = (making.done.paper.name, worked.as_secs_f64());
        if let Some(kept) = &self.kept {
            kept.figure(paper, &figure, seconds)?;
        }
        making.since = making.meter.read();
        making.left.retain(|name| *name != figure.id);
        ahead.done += self.record.seconds(paper, figure.id);
        ahead.worked += seconds;
        ahead.figures.0 += 1;
        let (number, of) = ahead.figures;
        if of > 1 {
            let left = ahead.left(now.max(ahead.done));
            let id = figure.id;
            let text = format!("{number} of {of}: {paper} {id}, {seconds:.1} s of processor{left}");
            terminal::line(self.options.shared.quiet, &text);
        }
        making.done.seconds.push((figure.id, seconds));
        making.done.made.figures.push(figure);
        Ok(())
    }

    /// Takes over what a paper gives beside its figures. Returns the number of its drawings.
    fn end(&self, making: &mut Making, made: FigureSet) -> Result<usize, Failure> {
        making.ended = true;
        let drawings = made.drawings.len();
        let done = &mut making.done;
        for drawing in made.drawings {
            making.left.retain(|name| *name != drawing.name);
            if let Some(kept) = &self.kept {
                kept.drawing(done.paper.name, &drawing)?;
            }
            done.seconds.push((drawing.name, 0.0));
            done.made.drawings.push(drawing);
        }
        done.made.runs += made.runs;
        done.made.scale = made.scale;
        // Another part of an array job may need the runs.
        if let Some(runs) = making
            .runs
            .as_ref()
            .filter(|_| making.left.is_empty() && done.others.is_empty())
        {
            let made = done.made.figures.len() + done.made.drawings.len();
            runs.clear(made == done.paper.figures.len());
        }
        Ok(drawings)
    }
}

impl Making {
    /// What became of the paper.
    fn close(mut self) -> Done {
        self.done.made.unfinished = self.left;
        // Kept figures came first; the page has the paper's order.
        let items = self.done.paper.figures;
        let place = |figure: &Figure| items.iter().position(|item| item.name == figure.id);
        self.done.made.figures.sort_by_key(place);
        self.done
    }
}

impl Ahead {
    /// The time that is left, from the recorded times of the figures and this machine's speed so far.
    fn left(&self, now: f64) -> String {
        let elapsed = self.begun.elapsed().as_secs_f64();
        if now <= 0.0 || self.figures.0 == self.figures.1 {
            return String::new();
        }
        let left = (self.total - now).max(0.0) * elapsed / now;
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

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_lab::paper::{Item, Paper};
    use clap::Parser as _;
    use std::sync::{Condvar, Mutex};

    /// How many of the two papers below have begun.
    static BEGUN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

    fn figure() -> Figure {
        Figure {
            id: "figure1",
            title: "t".into(),
            panels: Vec::new(),
            claims: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A figure that is finished once the other paper has begun its own.
    fn make(order: &Order<'_>) -> Result<FigureSet, RunError> {
        let (begun, changed) = &BEGUN;
        *begun.lock().unwrap() += 1;
        changed.notify_all();
        let alone = |begun: &mut usize| *begun < 2;
        let minutes = Duration::from_secs(180);
        let waited = changed.wait_timeout_while(begun.lock().unwrap(), minutes, alone);
        if waited.unwrap().1.timed_out() {
            return Err(RunError::Defect("the other paper never began".into()));
        }
        let spin = |until: Duration| while thread_time() < until {};
        order
            .meter
            .work(|| spin(thread_time() + Duration::from_millis(20)));
        FigureSet::each(order, &ITEMS, Vec::new(), |_| Ok(figure()))
    }

    const ITEMS: [Item; 1] = [Item {
        name: "figure1",
        about: "one figure",
    }];

    const fn paper(name: &'static str) -> Paper {
        Paper {
            name,
            about: "a paper",
            figures: &ITEMS,
            quick: "nothing",
            make,
        }
    }

    static PAPERS: [Paper; 2] = [paper("one"), paper("two")];

    /// Goal: papers are made at the same time, also on one thread, and each figure has its processor time.
    #[test]
    fn papers_overlap() {
        let line = ["chappe", "lab", "--threads", "1", "--quiet"];
        let crate::cli::Command::Lab(options) = crate::cli::Cli::parse_from(line).command else {
            panic!("no lab");
        };
        let shop = Shop {
            options: &options,
            kept: None,
            stop: Arc::default(),
            record: &Record::default(),
        };
        let of = |paper: &'static Paper| Work {
            paper,
            names: vec!["figure1"],
        };
        let all = shop.make(PAPERS.iter().map(of).collect()).unwrap();
        for done in &all {
            assert_eq!(done.made.figures.len(), 1);
            assert!(done.made.unfinished.is_empty());
            assert!(done.seconds[0].1 >= 0.02, "{:?}", done.seconds);
        }
    }
}
