//! The page of `chappe view`: built from `web/`, compared with the one in the repository, and driven in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process;
use crate::report::Outcome;
use crate::terminal;
use crate::workspace::{self, Workspace};

/// The built page that the program carries.
const PAGE: &str = "crates/view/page/view.html";
/// The picture of the page in the README.
const PICTURE: &str = "docs/view.png";
/// The scenario whose runs the browser shows: collisions, sleep and readings in a second.
const SCENARIO: &str = "examples/mesh-multicast.toml";
/// The scenario of a daemon that the browser shows while it runs.
const DAEMON: &str = "examples/lln-3-hops.toml";
/// The exit code of a test that cannot run on this machine.
const CANNOT: i32 = 77;
/// Figures that take seconds.
const FIGURES: [&str; 5] = ["lab", "p3", "table2", "--quick", "--quiet"];
/// The browser of Debian, unless `CHAPPE_CHROMIUM` names another.
const CHROMIUM: &str = "/usr/bin/chromium";

/// `cargo xtask page`: writes the page, or with `check` compares it.
pub fn alone(check: bool) -> Result<(), String> {
    match made(&workspace::root()?, check) {
        Outcome::Failed(why) | Outcome::Skipped(why) => Err(why),
        Outcome::Passed(what) => {
            terminal::say(&format!("{what}\n"));
            Ok(())
        }
    }
}

/// The page in the repository must be the one that its sources make.
pub fn current(workspace: &Workspace) -> Outcome {
    made(&workspace.root, true)
}

fn made(root: &Path, check: bool) -> Outcome {
    let folder = match prepared(root) {
        Ok(folder) => folder,
        Err(outcome) => return outcome,
    };
    let types = folder.join("node_modules/.bin/tsc");
    if let Err(why) = process::show(Command::new(types).arg("-p").arg(".").current_dir(&folder)) {
        return Outcome::Failed(format!("types of web/src: {why}"));
    }
    let built = folder.join("view.html");
    let mut build = Command::new("node");
    build.arg("build.mjs").arg(&built).current_dir(&folder);
    if let Err(why) = process::show(&mut build) {
        return Outcome::Failed(format!("web/build.mjs: {why}"));
    }
    let Ok(page) = fs::read(&built) else {
        return Outcome::Failed("web/build.mjs wrote nothing".to_owned());
    };
    let kept = root.join(PAGE);
    if check {
        return match fs::read(&kept) {
            Ok(old) if old == page => Outcome::Passed(format!("{} octets", page.len())),
            _ => Outcome::Failed(format!(
                "{PAGE} is not what web/ makes: run `cargo xtask page`"
            )),
        };
    }
    match fs::write(&kept, &page) {
        Ok(()) => Outcome::Passed(format!("wrote {PAGE}, {} octets", page.len())),
        Err(error) => Outcome::Failed(format!("{PAGE}: {error}")),
    }
}

/// A copy of `web/` under `target/`, with its packages.
fn prepared(root: &Path) -> Result<PathBuf, Outcome> {
    if !process::exists("node") || !process::exists("npm") {
        let why = "Node 20 with npm is missing; the built page in the repository is used as it is";
        return Err(Outcome::Skipped(why.to_owned()));
    }
    let folder = root.join("target/web");
    let failed = |error: std::io::Error| Outcome::Failed(format!("target/web: {error}"));
    fs::create_dir_all(folder.join("src")).map_err(failed)?;
    for from in ["", "src"] {
        // Files of an older version must not be compiled.
        let old = fs::read_dir(folder.join(from)).map_err(failed)?.flatten();
        let kept = ["package-lock.json"];
        for file in old.filter(|entry| entry.path().is_file()) {
            if !kept.iter().any(|name| file.file_name() == *name) {
                fs::remove_file(file.path()).map_err(failed)?;
            }
        }
        let files = fs::read_dir(root.join("web").join(from)).map_err(failed)?;
        for file in files.flatten().filter(|entry| entry.path().is_file()) {
            // npm installs anew only if this file is another one.
            let to = folder.join(from).join(file.file_name());
            fs::copy(file.path(), to).map_err(failed)?;
        }
    }
    if folder.join("node_modules/.bin/esbuild").exists() {
        return Ok(folder);
    }
    let mut install = Command::new("npm");
    install
        .args(["ci", "--no-audit", "--no-fund", "--silent"])
        .current_dir(&folder);
    match process::show(&mut install) {
        Ok(()) => Ok(folder),
        // A registry that is away is not a defect of the code under test.
        Err(why) => Err(Outcome::Skipped(format!("npm ci in web/: {why}"))),
    }
}

/// Drives the page in a browser: two runs and figures.
pub fn browser(workspace: &Workspace) -> Outcome {
    let browser = match Browser::ready(&workspace.root) {
        Ok(browser) => browser,
        Err(outcome) => return outcome,
    };
    let done = shown(workspace).and_then(|page| {
        let mut test = browser.node("test.mjs");
        test.arg(&page);
        process::show(test.arg(page.with_file_name("screenshots")))
    });
    match done.and_then(|()| live(workspace, &browser)) {
        Ok(what) => Outcome::Passed(format!("{what}; screenshots are in target/web-test")),
        Err(why) => Outcome::Failed(why),
    }
}

/// Drives the page of running daemons.
fn live(workspace: &Workspace, browser: &Browser) -> Result<&'static str, String> {
    let mut test = browser.node("live.mjs");
    test.arg(workspace.target.join("release/chappe"))
        .arg(workspace.root.join(DAEMON))
        .arg(workspace.root.join("target/web-test/screenshots"));
    let status = process::status(&mut test)?;
    match status.code() {
        Some(0) => Ok("runs, figures and running daemons"),
        Some(CANNOT) => Ok("runs and figures; no border router can run here"),
        _ => Err(format!("web/live.mjs: {status}")),
    }
}

/// `cargo xtask picture`: draws the README's picture of the page.
pub fn picture() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let browser = Browser::needed(&workspace.root)?;
    let page = shown(&workspace)?;
    let mut draw = browser.node("picture.mjs");
    process::show(draw.arg(page).arg(workspace.root.join(PICTURE)))
}

/// A run of a thousand nodes: two million receptions and a million readings, which the page must draw 60 times a second.
const LARGE: [&str; 14] = [
    "sim",
    "examples/mesh-flows.toml",
    "--seed",
    "1",
    "--quiet",
    "--record-all",
    "--set",
    "network.nodes=1000",
    "--set",
    "network.area=[\"3750 m\",\"3750 m\"]",
    "--set",
    "run.limit=4 s",
    "--set",
    "protocol.probing=2 s",
];

/// `cargo xtask frames`: measures how long the page takes for a frame of a large run.
pub fn frames() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let browser = Browser::needed(&workspace.root)?;
    let root = &workspace.root;
    process::show(&mut process::cargo(
        root,
        ["build", "--release", "-p", "chappe"],
    ))?;
    let chappe = workspace.target.join("release/chappe");
    let large = root.join("target/web-test/large");
    let page = large.with_extension("html");
    let mut record = Command::new(&chappe);
    record.args(LARGE).arg("--record").arg(&large);
    process::show(record.current_dir(root).stdout(Stdio::null()))?;
    let mut view = Command::new(&chappe);
    view.arg("view").arg(&large).args(["--quiet", "--out"]);
    process::show(view.arg(&page))?;
    process::show(browser.node("frames.mjs").arg(&page))
}

/// The folder with Node's packages, and the browser that its programs drive.
struct Browser {
    folder: PathBuf,
    chromium: String,
}

impl Browser {
    fn ready(root: &Path) -> Result<Browser, Outcome> {
        let chromium = std::env::var("CHAPPE_CHROMIUM").unwrap_or_else(|_| CHROMIUM.to_owned());
        if !Path::new(&chromium).exists() {
            let why = format!("no {chromium}: `apt-get install chromium`");
            return Err(Outcome::Skipped(why));
        }
        let folder = prepared(root)?;
        Ok(Browser { folder, chromium })
    }

    /// The same for a command that can do nothing without it.
    fn needed(root: &Path) -> Result<Browser, String> {
        Browser::ready(root).map_err(|outcome| match outcome {
            Outcome::Failed(why) | Outcome::Skipped(why) | Outcome::Passed(why) => why,
        })
    }

    /// A program of `web/`, to be run by Node.
    fn node(&self, program: &str) -> Command {
        let mut node = Command::new("node");
        node.arg(program)
            .env("CHAPPE_CHROMIUM", &self.chromium)
            .current_dir(&self.folder);
        node
    }
}

/// Records two runs, makes figures, and writes a page of them.
fn shown(workspace: &Workspace) -> Result<PathBuf, String> {
    let (root, chappe) = (&workspace.root, workspace.target.join("release/chappe"));
    let folder = root.join("target/web-test");
    let run = |command: &mut Command| {
        // What the runs print is of no interest here.
        process::show(command.current_dir(root).stdout(Stdio::null()))
    };
    for variant in ["paper", "improved"] {
        let mut record = Command::new(&chappe);
        record.args(["sim", SCENARIO, "--seed", "1", "--quiet", "--set"]);
        record.arg(format!("protocol.variant={variant}"));
        run(record.arg("--record").arg(folder.join(variant)))?;
    }
    let mut figures = Command::new(&chappe);
    figures.args(FIGURES).arg("--out");
    run(figures.arg(folder.join("figures")))?;
    let page = folder.join("page.html");
    let mut view = Command::new(&chappe);
    view.arg("view");
    // Names relative to the folder, so that no path of this machine is in the picture.
    view.args(["paper", "improved", "figures", "--quiet", "--out"]);
    process::show(view.arg(&page).current_dir(&folder))?;
    Ok(page)
}
