//! A flow of the kernel's TCP beside a cast, over one bottleneck: how much it keeps of what it gets beside its like.
//!
//! ```sh
//! cargo run --release -p chappe-cast --example beside                    # nine paths with CUBIC, a minute each
//! cargo run --release -p chappe-cast --example beside -- reno 20 50      # one of them: control, Mbit/s, ms of queue
//! ```
//!
//! Hosts are network namespaces on a bridge, without root where the kernel allows that. The port that leads to the receiver of both is
//! limited by `tc` (tbf), so that they share its queue. There is no other delay: the round trip is the wait in the queue. Each path is
//! run twice, with two flows of TCP and with one beside a cast without `--rate`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration as Pause, Instant as Moment};

use chappe_cast::event::Event;
use chappe_cast::session::{CEILING, View};
use chappe_cast::{Watch, receive, send};
use chappe_sys::namespace::isolate;
use chappe_testkit::Words;
use common::{Network, Place};

/// For how long flows share the path before it counts, and then.
const BEFORE: Pause = Pause::from_secs(8);
const COUNTED: Pause = Pause::from_secs(20);
/// The host that receives everything; 0 casts, 1 and 2 send by TCP.
const SINK: usize = 3;
const PORT: u16 = 5001;

/// A path: its bottleneck in Mbit/s, its queue in ms.
#[derive(Clone, Copy)]
struct Cell {
    rate: u32,
    queue: u32,
}

fn main() {
    let mut words = Words::of_process("beside [CONTROL [MBIT_PER_S MS_OF_QUEUE]]");
    let control = words
        .next("congestion control")
        .unwrap_or("cubic".to_owned());
    let rate = words.next("rate in Mbit/s");
    let path = rate.map(|rate| (rate, words.need("queue in ms")));
    words.end();
    if let Err(error) = isolate() {
        return chappe_testkit::skip(error.to_string());
    }
    let cells: Vec<Cell> = match path {
        Some((rate, queue)) => vec![Cell { rate, queue }],
        _ => [5, 20, 50]
            .into_iter()
            .flat_map(|rate| [10, 50, 200].map(|queue| Cell { rate, queue }))
            .collect(),
    };
    let mut worst = f64::MAX;
    for cell in &cells {
        let Some(ratio) = compare(&control, *cell) else {
            return;
        };
        worst = worst.min(ratio);
    }
    println!(
        "worst of {}: a flow of {control} keeps {worst:.2} of what it gets beside its like (goal 0.5){}",
        cells.len(),
        if worst < 0.5 { ": MISSED" } else { "" },
    );
}

/// Runs a path both ways; `None` if this machine cannot.
fn compare(control: &str, cell: Cell) -> Option<f64> {
    let (like, other, _) = run(control, cell, false)?;
    let (beside, _, cast) = run(control, cell, true)?;
    let usual = (like + other) / 2.0;
    println!(
        "{} Mbit/s, queue of {} ms: {beside:.2} Mbit/s beside a cast ({cast:.2}), {usual:.2} beside its like ({like:.2} and {other:.2}): {:.2} times",
        cell.rate,
        cell.queue,
        beside / usual
    );
    Some(beside / usual)
}

/// Mbit/s of the first flow, of the second, and of the cast.
fn run(control: &str, cell: Cell, cast: bool) -> Option<(f64, f64, f64)> {
    let (network, place) = (Network::new(4), Place::new("beside"));
    let limit = format!(
        "qdisc add dev p{SINK} root tbf rate {}mbit burst 5kb latency {}ms",
        cell.rate, cell.queue
    );
    let mut tc = Command::new("tc");
    tc.args(limit.split(' ')).stderr(Stdio::inherit());
    let limited = chappe_sys::process::spawn_in(&network.hub, &mut tc);
    if !limited.is_ok_and(|mut child| child.wait().is_ok_and(|status| status.success())) {
        chappe_testkit::skip("`tc` with tbf is needed");
        return None;
    }
    let over = Arc::new(AtomicBool::new(false));
    let counts = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    // More than the path carries until the end.
    let octets = u64::from(cell.rate) * 1_000_000 / 8 * (BEFORE + COUNTED).as_secs() * 3 / 2;
    let file = place.file("image.bin", if cast { octets as usize } else { 0 });
    let figures = thread::scope(|scope| {
        let net = &network;
        for flow in [1, 2].into_iter().filter(|flow| *flow == 1 || !cast) {
            let control = control.to_owned();
            let (count, sink_over, source_over) =
                (counts[flow - 1].clone(), over.clone(), over.clone());
            let listener = net.hosts[SINK]
                .run(move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT + flow as u16)));
            let listener = listener.unwrap().unwrap();
            scope.spawn(move || sink(&listener, &count, &sink_over));
            scope.spawn(move || {
                net.hosts[flow]
                    .run(|| source(flow, &control, &source_over))
                    .unwrap()
            });
        }
        if cast {
            let watch = |count: usize| Ends(over.clone(), counts[count].clone());
            let (mut ours, mut theirs) = (watch(1), watch(2));
            let mut options = [0, SINK as u16].map(|node| place.options(node, CEILING.0, &[]));
            options
                .iter_mut()
                .for_each(|options| options.memory = 48_000_000);
            let [sender, receiver] = options;
            let sending = place.sending(&[file], 1);
            let receiving = place.receiving(&place.folder("r"));
            scope.spawn(move || net.hosts[0].run(|| send(&sender, &sending, &mut ours).map(drop)));
            scope.spawn(move || {
                let run = || receive(&receiver, &receiving, &mut theirs).map(drop);
                net.hosts[SINK].run(run)
            });
        }
        thread::sleep(BEFORE);
        let (begun, before) = (
            Moment::now(),
            counts.each_ref().map(|count| count.load(SeqCst)),
        );
        thread::sleep(COUNTED);
        let seconds = begun.elapsed().as_secs_f64();
        let after = counts.each_ref().map(|count| count.load(SeqCst));
        over.store(true, SeqCst);
        let mbits = |at: usize| (after[at] - before[at]) as f64 * 8.0 / 1e6 / seconds;
        (mbits(0), mbits(1), mbits(2))
    });
    Some(match cast {
        true => (figures.0, 0.0, figures.2),
        false => (figures.0, figures.1, 0.0),
    })
}

/// Sends by TCP until it is over.
fn source(flow: usize, control: &str, over: &AtomicBool) {
    let mut stream =
        TcpStream::connect((Ipv4Addr::new(10, 0, 0, SINK as u8), PORT + flow as u16)).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&stream, control).unwrap();
    stream
        .set_write_timeout(Some(Pause::from_millis(500)))
        .unwrap();
    let octets = vec![0; 1 << 16];
    while !over.load(SeqCst) {
        let _ = stream.write(&octets);
    }
}

/// Counts what arrives of one flow.
fn sink(listener: &TcpListener, count: &AtomicU64, over: &AtomicBool) {
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .set_read_timeout(Some(Pause::from_millis(500)))
        .unwrap();
    let mut octets = vec![0; 1 << 16];
    while !over.load(SeqCst) {
        if let Ok(len) = stream.read(&mut octets) {
            count.fetch_add(len as u64, SeqCst);
        }
    }
}

/// Ends a member with the others, and notes what it has received.
struct Ends(Arc<AtomicBool>, Arc<AtomicU64>);

impl Watch for Ends {
    fn event(&mut self, event: Event) {
        if std::env::var_os("CAST_LOUD").is_some() {
            eprintln!("{event:?}");
        }
    }

    fn look(&mut self, view: &View<'_>) {
        self.1.store(view.statistics.octets_received, SeqCst);
    }

    fn is_over(&mut self) -> bool {
        self.0.load(SeqCst)
    }
}
