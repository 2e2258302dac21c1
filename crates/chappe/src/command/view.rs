//! `chappe view`: recorded runs, running daemons and figures in a browser.

mod live;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chappe::systems::{self, SYSTEMS};
use chappe_lab::job::TraceKeeper;
use chappe_lab::run::{Meter, RunError};
use chappe_lab::session;
use chappe_scenario::InputError;
use chappe_scenario::plan::{Changes, Plan};
use chappe_store::{StoreError, trace, write_whole};
use chappe_trace::{RECEPTIONS, Tables, Trace};
use chappe_view::{Contents, Server, Source};
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Runs that one page holds: more of them would not fit in a browser's memory.
const RUNS: usize = 16;
/// Octets of a page at most. One of 231 MB was opened by Chromium with two cores and 15 million receptions in it
/// (docs/studies/view.md, "Speed"); larger ones were not tried.
const PAGE_MAX: usize = 240_000_000;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe sim examples/mesh-multicast.toml --seeds 1..2 --record trace
  chappe view trace                               serves it on this machine; Ctrl-C ends it
  chappe view trace --out run.html                one file that needs nothing else
  chappe view examples/p3-line.toml               simulates the first seed and shows it
  chappe view mesh-sweep                          the figures of a sweep
  chappe view --live                              daemons that run on this machine: cast, link, mesh, border
  chappe lab p3 --quick --out figures && chappe view figures")]
pub struct View {
    /// Folders that `sim --record`, `sweep` or `lab --out` filled, figures as JSON, or scenario files, which are simulated; without any,
    /// the current folder. With --live: sockets of daemons, and folders of sockets.
    pub paths: Vec<PathBuf>,
    /// Show the daemons that run on this machine, while they run. They are asked once a second while a page is open.
    #[arg(long, conflicts_with_all = ["out", "seed", "set"])]
    pub live: bool,
    /// Write one HTML file with page and data instead of serving it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Serve on this address. Beyond the loopback everyone needs the token in the printed address.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:0",
        conflicts_with = "out"
    )]
    pub listen: SocketAddr,
    /// Of scenario files: the seed to simulate; without it, the first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Of scenario files: change a key; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
}

pub fn run(options: &View) -> Result<u8, Failure> {
    if options.live {
        return serve(options, live::source(&options.paths)).map(|()| 0);
    }
    let here = [PathBuf::from(".")];
    let paths = match options.paths.as_slice() {
        [] => &here[..],
        paths => paths,
    };
    let mut contents = Contents::default();
    for path in paths {
        read(path, options, &mut contents)?;
    }
    if contents.runs.len() > RUNS {
        let message = format!("{} runs are too many for one page", contents.runs.len());
        let help = format!("name the folders of at most {RUNS} of them");
        return Err(InputError::new("", message).help(help).into());
    }
    contents.title = title(&contents);
    let packed = contents.pack();
    match &options.out {
        Some(file) => {
            bounded(chappe_view::size(&packed))?;
            let page = chappe_view::whole(&packed);
            write_whole(file, |to| to.write_all(page.as_bytes()))?;
            let size = page.len() as f64 / 1e6;
            terminal::remark(
                options.quiet,
                &format!(
                    "wrote {} ({size:.1} MB); any browser opens it",
                    file.display()
                ),
            );
        }
        None => {
            let packed = Arc::new(packed);
            serve(options, Arc::new(move || packed.clone()))?;
        }
    }
    Ok(0)
}

/// Refuses a page that a browser would not open.
fn bounded(octets: usize) -> Result<(), Failure> {
    if octets <= PAGE_MAX {
        return Ok(());
    }
    let [size, most] = [octets, PAGE_MAX].map(|octets| octets as f64 / 1e6);
    let message = format!("the page would have {size:.0} MB; browsers open up to {most:.0} MB");
    let help = "name fewer runs, or record less: without --record-all a ring keeps the end of a run, and `--seed 1` one run. Without --out the \
                same is served, which takes the browser less memory";
    Err(InputError::new("", message).help(help).into())
}

/// What the page is called: by its first run's scenario.
fn title(contents: &Contents) -> String {
    let first = contents.runs.first();
    first.map_or("Figures".into(), |(_, run)| run.about.scenario.clone())
}

/// Adds what a path holds.
fn read(path: &Path, options: &View, contents: &mut Contents) -> Result<(), Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("toml") => simulate(path, options, contents),
        Some("json") => figures(path, contents),
        _ if path.is_dir() => folder(path, contents),
        _ => Err(nothing(path).into()),
    }
}

/// The error about a path that is no folder, scenario or figures.
fn nothing(path: &Path) -> InputError {
    let name = path.display();
    let message = match path.try_exists() {
        Ok(false) => format!("there is no {name}"),
        _ => format!("{name} is no recording"),
    };
    let help = "`chappe view` takes folders (of `chappe sim FILE --record DIR`, `sweep`, `lab --out`), scenarios (.toml), and figures (.json)";
    InputError::new("", message).help(help)
}

/// A recording that cannot be read. Elsewhere files of the store are written.
fn unreadable(error: StoreError) -> Failure {
    match error {
        StoreError::Io { .. } => InputError::new("", format!("cannot read {error}")).into(),
        other => other.into(),
    }
}

fn folder(path: &Path, contents: &mut Contents) -> Result<(), Failure> {
    let traces = trace::find(path).map_err(unreadable)?;
    let mut found = !traces.is_empty();
    for folder in traces.iter().take(RUNS + 1) {
        add(
            &folder.display().to_string(),
            trace::read(folder).map_err(unreadable)?,
            contents,
        );
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    for file in files {
        // Other JSON files may lie there; only figures are taken.
        found |= figures(&file, contents).is_ok();
    }
    if found {
        return Ok(());
    }
    let message = format!("{} holds no recorded run and no figures", path.display());
    let help =
        "`chappe sim FILE --record DIR` records runs, `chappe lab NAME --out DIR` makes figures";
    Err(InputError::new("", message).help(help).into())
}

fn figures(path: &Path, contents: &mut Contents) -> Result<(), Failure> {
    let wrong = |why: String| InputError::new(path.display().to_string(), why);
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let figures = json.get("figures").and_then(|figures| figures.as_array());
    // The page relies on these keys, so a file that lacks them is refused here.
    let whole = |figure: &&serde_json::Value| {
        let has = |key: &str| figure.get(key).is_some_and(serde_json::Value::is_array);
        figure.get("title").is_some() && has("rows") && has("claims")
    };
    match figures {
        Some(figures) if figures.iter().all(|figure| whole(&figure)) => {
            contents.figures.extend(figures.iter().cloned());
            Ok(())
        }
        _ => Err(wrong("these are no figures of `chappe lab`".into()).into()),
    }
}

fn add(from: &str, run: Tables, contents: &mut Contents) {
    let about = &run.about;
    let name = format!("{from}: {}, seed {}", about.variant, about.seed);
    contents.runs.push((name, run));
}

/// Keeps the one run of a scenario in memory.
#[derive(Debug, Default)]
struct Memory(Mutex<Option<Tables>>);

impl TraceKeeper for Memory {
    fn limit(&self) -> usize {
        RECEPTIONS
    }

    fn keep(&self, trace: &Trace) -> Result<(), RunError> {
        let mut kept = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        *kept = Some(trace.tables());
        Ok(())
    }
}

fn simulate(path: &Path, options: &View, contents: &mut Contents) -> Result<(), Failure> {
    let changes = Changes {
        seeds: options.seed.map(|seed| vec![seed]),
        ..Changes::default()
    };
    let mut plan = Plan::read(&systems::scenarios(), path, &options.set, &changes)?;
    plan.seeds.truncate(1);
    let (memory, meter) = (Memory::default(), Meter::stopped_by(terminal::interrupt()));
    let how = session::Options {
        threads: 1,
        traces: Some(&memory),
        ..session::Options::default()
    };
    let command = terminal::command_line();
    terminal::watched("simulating", options.quiet, &meter, || {
        session::run(SYSTEMS, &plan, terminal::program(&command), how, &meter)
    })?;
    let kept = memory
        .0
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    let Some(run) = kept else {
        let message = format!("{}: the run ended before anything was sent", path.display());
        return Err(InputError::new("", message).into());
    };
    add(&path.display().to_string(), run, contents);
    Ok(())
}

fn serve(options: &View, data: Source) -> Result<(), Failure> {
    let stop = terminal::interrupt();
    let token = match options.listen.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => None,
        IpAddr::V6(ip) if ip.is_loopback() => None,
        _ => Some(token()?),
    };
    let failed = |error: std::io::Error| {
        let what = format!("cannot serve on {}: {error}", options.listen);
        Failure::Environment(what, "choose another address with --listen".into())
    };
    let server = Server::bind(options.listen, token, data).map_err(failed)?;
    terminal::print(&format!("{}\n", server.url()))?;
    terminal::remark(options.quiet, "open this in a browser; Ctrl-C ends it");
    server
        .run(|| stop.load(std::sync::atomic::Ordering::SeqCst))
        .map_err(failed)
}

/// The word that each request must bring: 128 random bits in hexadecimal.
fn token() -> Result<String, Failure> {
    let word = || {
        chappe_sys::random_u64().map_err(|error| {
            let what = format!("the system gives no random numbers: {error}");
            Failure::Environment(what, "see random(7)".into())
        })
    };
    Ok(format!("{:016x}{:016x}", word()?, word()?))
}
