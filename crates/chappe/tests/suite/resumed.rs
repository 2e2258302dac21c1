//! Orders of the lab that are stopped in the middle of a figure and go on.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chappe_lab::keeper::Keeper;
use chappe_lab::paper::{FigureSet, Order};
use chappe_lab::run::Meter;
use chappe_paper_p3::campaign::{Receiver, Scale as RouteScale};
use chappe_paper_pacifier::runs::Scale as MeshScale;
use chappe_results::figure::Figure;

type Texts = Arc<Mutex<BTreeMap<String, String>>>;

/// Keeps in memory, and asks for a stop when so many pieces are kept.
struct Stopping {
    texts: Texts,
    left: AtomicUsize,
    stop: Arc<AtomicBool>,
    found: AtomicUsize,
}

impl Keeper for Stopping {
    fn find(&self, name: &str) -> Option<String> {
        let text = self.texts.lock().unwrap().get(name).cloned();
        self.found
            .fetch_add(usize::from(text.is_some()), Ordering::Relaxed);
        text
    }

    fn keep(&self, name: &str, text: &str) -> io::Result<()> {
        let older = self.texts.lock().unwrap().insert(name.into(), text.into());
        assert_eq!(older, None, "made twice: {name}");
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Makes one figure with a keeper that stops after `pieces` kept ones. Returns how many it found, too.
fn order(
    figure: &'static str,
    make: fn(&Order<'_>) -> FigureSet,
    texts: &Texts,
    pieces: usize,
) -> (FigureSet, usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let keeper = Arc::new(Stopping {
        texts: texts.clone(),
        left: AtomicUsize::new(pieces),
        stop: stop.clone(),
        found: AtomicUsize::new(0),
    });
    let meter = Meter::stopped_by(stop).keeping(keeper.clone());
    let made = make(&Order {
        names: &[figure],
        quick: true,
        seed: 1,
        threads: 1,
        meter: &meter,
    });
    (made, keeper.found.load(Ordering::Relaxed))
}

/// Stops a figure after two pieces of its work, and goes on with it.
fn goes_on(figure: &'static str, make: fn(&Order<'_>) -> FigureSet) {
    let texts = Texts::default();
    let (stopped, _) = order(figure, make, &texts, 2);
    assert_eq!(stopped.unfinished, [figure]);
    assert_eq!(texts.lock().unwrap().len(), 2);
    // The keeper fails if one of them is made again.
    let (made, found) = order(figure, make, &texts, usize::MAX);
    assert_eq!(found, 2);
    let (whole, _) = order(figure, make, &Texts::default(), usize::MAX);
    let rows = |made: &FigureSet| made.figures.iter().map(Figure::rows).collect::<String>();
    assert!(rows(&whole).contains('\n'));
    assert_eq!(rows(&made), rows(&whole));
}

/// Goal: the figures that take minutes lose no finished run when they are stopped. Method: an order is stopped after two pieces of its
/// work; the next one must make only the others, and the same figure as an order that was not stopped.
#[test]
fn figures_of_pacifier_go_on() {
    goes_on("figure5", |order| {
        let scale = MeshScale {
            scenarios: 2,
            outdoor_bytes: 50_000,
            ..MeshScale::quick(1)
        };
        chappe_paper_pacifier::make(order, &scale).unwrap()
    });
}

#[test]
fn figures_of_p3_go_on() {
    let make = |order: &Order<'_>| {
        let scale = RouteScale {
            routes: 3,
            few: 1,
            calibration: 1,
            packets: 200,
            data: None,
            seed: 1,
            receiver: Receiver::Comparing,
            goals: 2,
        };
        chappe_paper_p3::make(order, &scale).unwrap()
    };
    goes_on("table3", make);
    goes_on("goals", make);
}

#[test]
fn figures_of_dpclo_go_on() {
    goes_on("figure7", |order| {
        (chappe_paper_dpclo::PAPER.make)(order).unwrap()
    });
}
