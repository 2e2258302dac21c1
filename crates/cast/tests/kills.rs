//! `kill -9` at any moment, of transfers of many files.
//!
//! Goal: no file ever has its final name with other contents than the sender's, no file of the user changes, and every
//! transfer ends. Method: a sender, a relay and three receivers are processes of their own, killed at random and when the
//! first names appear. A watcher reads every file that appears under a final name, fifty times a second. One receiver has a
//! file of its own under a name of the transfer, and gets a second one meanwhile; another wants the folder as a whole. The sender
//! stores receipts, whose file is whole at any time.
//!
//! `CAST_KILLS=1000 cargo test --release -p chappe-cast --test kills` is the long form; `CAST_SEED` selects another course.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as Pause, Instant as Moment};

use chappe_cast::event::Event;
use chappe_cast::fleet::{self, Fleet, Standing};
use chappe_cast::{Options, receive, relay, send};
use chappe_core::{Duration, Purpose, Seed, Stream};
use common::{Network, Place};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, node, place] = &words[..]
        && flag == "--member"
    {
        return member(node.parse().unwrap(), &Place::at(place));
    }
    common::run(&[("kills_of_many_files", kills_of_many_files)]);
}

/// The members: a sender, a relay, and receivers of which the last hears the relay only.
const MEMBERS: usize = 5;
const RECEIVERS: [usize; 3] = [2, 3, 4];
/// The receiver that has a file of its own.
const OWNER: usize = 3;
/// The receiver that wants the folder as a whole.
const WHOLE: usize = 4;
/// The user's own file, and its contents.
const OWN: &str = "tree/2/f2";
const PRECIOUS: &[u8] = b"precious work of a user";
/// Another file of the user, which appears while the transfer runs.
const LATE: &str = "tree/5/f5";
/// Kills in a transfer before it may end in peace.
const KILLS_EACH: u32 = 12;

fn options(place: &Place, node: u16) -> Options {
    let share = |other: u16| match (node.min(other), node.max(other)) {
        (0, 4) => 1.0,
        _ => 0.1,
    };
    let lose: Vec<(u16, f64)> = (0..MEMBERS as u16)
        .map(|other| (other, share(other)))
        .collect();
    Options {
        measuring: Duration::from_millis(200),
        ..place.options(node, 10_000_000, &lose)
    }
}

/// A process that is going to be killed.
fn member(node: usize, place: &Place) {
    let options = options(place, node as u16);
    let ended = match node {
        0 => {
            let mut sending = place.sending(&[place.path("tree")], 1);
            sending.fleet = Some(place.path("lab.fleet"));
            send(&options, &sending, &mut Quiet).map(drop)
        }
        1 => relay(&options, &mut Quiet).map(drop),
        _ => {
            let mut receiving = place.receiving(&place.path(&format!("r{node}")));
            receiving.whole = node == WHOLE;
            receive(&options, &receiving, &mut Quiet).map(drop)
        }
    };
    if let (Err(error), true) = (ended, std::env::var_os("CAST_LOUD").is_some()) {
        eprintln!("member {node}: {error}");
    }
}

struct Quiet;

impl chappe_cast::Watch for Quiet {
    fn event(&mut self, event: Event) {
        if std::env::var_os("CAST_LOUD").is_some() {
            eprintln!("{event:?}");
        }
    }
}

fn kills_of_many_files() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let wanted: u32 = number("CAST_KILLS").unwrap_or(12);
    let seed = number("CAST_SEED").unwrap_or(1);
    let mut random = Seed(seed.into()).stream(Purpose::Fault);
    let network = Network::new(MEMBERS as u8);
    let (mut kills, mut named, mut files, mut transfers) = (0, 0, 0, 0);
    let mut receipts = 0;
    while kills < wanted {
        let trial = Trial::new(transfers, &mut random);
        let (killed, while_named) =
            trial.run(&network, (wanted - kills).min(KILLS_EACH), &mut random);
        files += trial.check();
        receipts += trial.look_at_receipts();
        (kills, named, transfers) = (kills + killed, named + while_named, transfers + 1);
        if transfers.is_multiple_of(10) {
            println!("  {kills} kills in {transfers} transfers, all files right");
        }
    }
    println!(
        "  {kills} kills in {transfers} transfers, {named} of them while names were given; {files} files looked at, all right; receipts of {receipts} of {} receivers stored",
        transfers as usize * RECEIVERS.len()
    );
}

/// Whether the map of batches of the transfer in `folder` has more than half of its bits.
fn has_most(folder: &Path) -> bool {
    let places = fs::read_dir(folder.join(".chappe-cast"));
    let maps = places.into_iter().flatten().flatten();
    let mut maps = maps.filter_map(|place| fs::read(place.path().join("batches")).ok());
    maps.any(|map| map.iter().map(|octet| octet.count_ones()).sum::<u32>() > 10)
}

/// One transfer whose processes are killed, and what was seen of it.
struct Trial {
    place: Place,
    /// The right contents' digest of each file below the sender's folder.
    right: BTreeMap<String, blake3::Hash>,
    /// Whether the user's second file was there before the one of the transfer.
    late: AtomicBool,
    faults: Mutex<Vec<String>>,
    looked_at: Mutex<usize>,
}

impl Trial {
    /// A tree of 400 files in eight folders, of up to 4.5 kB: some 20 batches.
    fn new(number: u32, random: &mut Stream) -> Trial {
        let place = Place::new(&format!("trial{number}"));
        let mut right = BTreeMap::new();
        for file in 0..400 {
            let name = format!("tree/{}/f{file}", file % 8);
            place.folder(&format!("tree/{}", file % 8));
            let mut octets = vec![0; random.below(4_500) as usize];
            random.fill(&mut octets);
            fs::write(place.path(&name), &octets).unwrap();
            right.insert(name, blake3::hash(&octets));
        }
        for node in RECEIVERS {
            place.folder(&format!("r{node}"));
        }
        let own = place.path(&format!("r{OWNER}")).join(OWN);
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(own, PRECIOUS).unwrap();
        Trial {
            place,
            right,
            late: AtomicBool::new(false),
            faults: Mutex::default(),
            looked_at: Mutex::default(),
        }
    }

    fn start(&self, network: &Network, node: usize) -> Child {
        let run = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--member", &node.to_string()]);
            command.arg(self.place.path("")).stdin(Stdio::null());
            command.spawn().unwrap()
        };
        network.hosts[node].run(run).unwrap()
    }

    /// Runs the transfer to its end; returns the number of kills, and of those while a receiver gave names.
    fn run(&self, network: &Network, wanted: u32, random: &mut Stream) -> (u32, u32) {
        let over = AtomicBool::new(false);
        let counted = thread::scope(|scope| {
            let watcher = scope.spawn(|| self.watch(&over));
            let mut members: Vec<Child> =
                (0..MEMBERS).map(|node| self.start(network, node)).collect();
            let counted = self.kill(network, &mut members, wanted, random);
            for mut child in members {
                let _ = child.kill();
                child.wait().unwrap();
            }
            over.store(true, Ordering::SeqCst);
            watcher.join().unwrap();
            counted
        });
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
        counted
    }

    fn kill(
        &self,
        network: &Network,
        members: &mut [Child],
        wanted: u32,
        random: &mut Stream,
    ) -> (u32, u32) {
        let (mut kills, mut while_named) = (0, 0);
        let kill = |node: usize, members: &mut [Child]| -> bool {
            let child = &mut members[node];
            let alive = child.try_wait().unwrap().is_none();
            if alive {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            *child = self.start(network, node);
            alive
        };
        let mut next = Moment::now() + Pause::from_millis(100);
        let begun = Moment::now();
        while !RECEIVERS.iter().all(|&node| self.is_done(node)) {
            assert!(
                begun.elapsed() < Pause::from_secs(120),
                "not done after two minutes"
            );
            thread::sleep(Pause::from_millis(1));
            self.write_late();
            // A receiver that gives names right now; a third of the kills is kept for that.
            let naming = RECEIVERS.into_iter().find(|&node| self.is_naming(node));
            if let Some(node) = naming.filter(|_| kills < wanted && random.chance(0.5)) {
                let hit = u32::from(kill(node, members));
                (kills, while_named) = (kills + hit, while_named + hit);
            } else if kills < wanted.div_ceil(3) * 2 && Moment::now() >= next {
                kills += u32::from(kill(random.below(MEMBERS as u64) as usize, members));
                next = Moment::now() + Pause::from_millis(50 + random.below(400));
            }
            // A member that has ended too early, as a sender whose receivers were all dead.
            for (node, child) in members.iter_mut().enumerate() {
                let ended = child.try_wait().unwrap().is_some();
                if ended && (node < 2 || !self.is_done(node)) {
                    *child = self.start(network, node);
                }
            }
        }
        (kills, while_named)
    }

    /// Writes the user's second file when most batches have arrived, so that most often no restart notices it before the
    /// names are given; unless the name is taken.
    fn write_late(&self) {
        let folder = self.place.path(&format!("r{OWNER}"));
        if self.late.load(Ordering::SeqCst) || !has_most(&folder) {
            return;
        }
        let (made, late) = (self.place.path("late"), folder.join(LATE));
        fs::write(&made, PRECIOUS).unwrap();
        fs::create_dir_all(late.parent().unwrap()).unwrap();
        // A link appears with all of its contents.
        if fs::hard_link(&made, late).is_ok() {
            self.late.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a receiver has a file.
    fn has(&self, node: usize, name: Option<&String>) -> bool {
        let folder = self.place.path(&format!("r{node}"));
        name.is_some_and(|name| folder.join(name).exists())
    }

    /// Whether the first file has its name, and the last one not. Names are given in the order of the manifest, which is this
    /// one.
    fn is_naming(&self, node: usize) -> bool {
        let (first, last) = (self.right.keys().next(), self.right.keys().next_back());
        self.has(node, first) && !self.has(node, last)
    }

    fn is_done(&self, node: usize) -> bool {
        // The last name first, since this is asked a thousand times a second.
        let last = self.right.keys().next_back();
        self.has(node, last) && self.right.keys().all(|name| self.has(node, Some(name)))
    }

    /// Reads what appears under final names until `over`, and notes what is wrong.
    fn watch(&self, over: &AtomicBool) {
        let mut known: BTreeMap<PathBuf, (u64, i64, i64)> = BTreeMap::new();
        while !over.load(Ordering::SeqCst) {
            for node in RECEIVERS {
                let whole_before = self.place.path(&format!("r{node}/tree")).exists();
                let found = self.look(node, &mut known);
                if node == WHOLE && whole_before && found != self.right.len() {
                    self.fault(format!("the whole folder has {found} files"));
                }
            }
            self.look_at_receipts();
            thread::sleep(Pause::from_millis(20));
        }
    }

    /// Reads the receipts that the sender has stored, which must be whole and signed by it at any time. Returns how many
    /// members have the files by them.
    fn look_at_receipts(&self) -> usize {
        let folder = self.place.path("lab.fleet");
        if !folder.exists() {
            return 0;
        }
        let group = self.place.options(0, 1, &[]).seat.group;
        let fleet = Fleet::read(&folder, &group).unwrap();
        if fleet.problems.is_empty() {
            let current = |set: &fleet::Set| set.count(Standing::Current);
            return fleet.sets.iter().map(current).sum();
        }
        self.fault(fleet.problems.join(", "));
        0
    }

    /// Reads the files of a receiver that are new or have changed; returns how many it has.
    fn look(&self, node: usize, known: &mut BTreeMap<PathBuf, (u64, i64, i64)>) -> usize {
        let folder = self.place.path(&format!("r{node}"));
        let mut count = 0;
        for name in self.right.keys() {
            let path = folder.join(name);
            let Ok(about) = path.symlink_metadata() else {
                continue;
            };
            count += 1;
            let mark = (about.ino(), about.mtime(), about.ctime_nsec());
            if known.insert(path.clone(), mark) != Some(mark) {
                self.compare(node, name, &path);
            }
        }
        count
    }

    fn compare(&self, node: usize, name: &str, path: &Path) {
        *self.looked_at.lock().unwrap() += 1;
        let octets = fs::read(path).unwrap_or_default();
        let right = match (node, name) {
            (OWNER, OWN) => octets == PRECIOUS,
            (OWNER, LATE) if self.late.load(Ordering::SeqCst) => octets == PRECIOUS,
            (OWNER, LATE) if octets == PRECIOUS => true,
            _ => blake3::hash(&octets) == self.right[name],
        };
        if !right {
            self.fault(format!(
                "{} has {} wrong octets",
                path.display(),
                octets.len()
            ));
        }
    }

    fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    /// Reads all files at the end; returns the number of files looked at.
    fn check(&self) -> usize {
        for node in RECEIVERS {
            assert_eq!(self.look(node, &mut BTreeMap::new()), self.right.len());
        }
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
        *self.looked_at.lock().unwrap()
    }
}
