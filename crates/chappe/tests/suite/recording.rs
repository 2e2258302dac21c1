//! `chappe sim --record`: what frames are called, and who destroyed them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use chappe_trace::{Data, NONE, Tables};

use crate::scratch::Scratch;

/// Records one seed of a scenario and reads it.
pub fn recorded(scenario: &Path, more: &[&str], to: &Path) -> Tables {
    let mut sim = Command::new(env!("CARGO_BIN_EXE_chappe"));
    sim.args(["sim", "--quiet", "--seed", "1"]).arg(scenario);
    let done = sim.args(more).arg("--record").arg(to).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    // A transfer may fail; a recording is there all the same.
    assert!(matches!(done.status.code(), Some(0 | 1)), "{said}");
    chappe_store::trace::read(&to.join("seed-1")).unwrap()
}

pub fn example(name: &str) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(format!("{name}.toml"))
}

pub fn whole<'t>(run: &'t Tables, table: &str, column: &str) -> &'t [i64] {
    match run.table(table).and_then(|table| table.column(column)) {
        Some(Data::Whole(values)) => values,
        other => panic!("{table}.{column}: {other:?}"),
    }
}

pub fn words<'t>(run: &'t Tables, table: &str, column: &str) -> Vec<&'t str> {
    match run.table(table).and_then(|table| table.column(column)) {
        Some(Data::Word { codes, words }) => {
            let word = |&code: &u32| words[code as usize].as_str();
            codes.iter().map(word).collect()
        }
        other => panic!("{table}.{column}: {other:?}"),
    }
}

/// How many frames there are of each kind, and how many of those that are addressed to one node have no part.
fn kinds(run: &Tables) -> BTreeMap<String, (usize, usize)> {
    let mut kinds = BTreeMap::new();
    let (parts, to) = (whole(run, "frames", "part"), whole(run, "frames", "to"));
    for (row, kind) in words(run, "frames", "kind").into_iter().enumerate() {
        let (all, bare) = kinds.entry(kind.to_owned()).or_insert((0, 0));
        *all += 1;
        *bare += usize::from(parts[row] == NONE && to[row] != NONE);
    }
    kinds
}

/// Goal: a jammer is to blame for what it destroys. Method: a jammer of 300 ms in the middle of a transfer; every collision then has a
/// culprit, most of them the jammer, which stands where its node stands.
#[test]
fn a_jammer_is_to_blame() {
    let scratch = Scratch::new("jammer");
    let text = fs::read_to_string(example("mesh-multicast")).unwrap()
        + "[[fault]]\nat = \"0.2 s\"\nkind = \"jammer\"\nnode = 5\npower = \"15 dBm\"\nlasts = \"300 ms\"\n";
    let file = scratch.0.join("jammed.toml");
    fs::write(&file, text).unwrap();
    let run = recorded(&file, &["--record-all"], &scratch.0.join("trace"));
    let about = &run.about;
    assert_eq!((about.nodes, about.interferers), (50, 1));
    assert_eq!(about.positions[50], about.positions[5]);
    let (kind, node) = (words(&run, "frames", "kind"), whole(&run, "frames", "node"));
    let noise: Vec<usize> = (0..kind.len())
        .filter(|&row| kind[row] == "noise")
        .collect();
    assert!(noise.len() == 1 && node[noise[0]] == 50, "{noise:?}");
    assert_eq!(whole(&run, "frames", "airtime_ns")[noise[0]], 300_000_000);
    let (begin, end) = {
        let begin = whole(&run, "frames", "start_ns")[noise[0]];
        (begin, begin + 300_000_000)
    };
    let outcomes = words(&run, "receptions", "outcome");
    let culprits = whole(&run, "receptions", "culprit");
    let starts = whole(&run, "receptions", "start_ns");
    let collisions = || (0..outcomes.len()).filter(|&row| outcomes[row] == "collision");
    let unknown = collisions().filter(|&row| culprits[row] == NONE).count();
    let jammed = collisions().filter(|&row| culprits[row] == noise[0] as i64);
    let jammed: Vec<i64> = jammed.map(|row| starts[row]).collect();
    // Those near it defer to it, so few frames are in its way.
    assert!(jammed.len() >= 5, "{}", jammed.len());
    assert!(
        jammed
            .iter()
            .all(|at| (begin - 20_000_000..end).contains(at))
    );
    assert_eq!(unknown, 0, "of {} collisions", collisions().count());
}

/// Goal: the usual recording, which leaves out signals that are too weak to be heard, names the same frames as causes of collisions as one
/// that keeps all signals. Method: both of one run, collision by collision.
#[test]
fn signals_that_are_not_recorded_are_found_again() {
    let scratch = Scratch::new("unheard");
    let causes = |more: &[&str], to: &str| -> BTreeMap<(i64, i64), i64> {
        let run = recorded(&example("mesh-multicast"), more, &scratch.0.join(to));
        let outcomes = words(&run, "receptions", "outcome");
        let column = |name: &str| whole(&run, "receptions", name);
        let (node, frame, culprit) = (column("node"), column("frame"), column("culprit"));
        let collisions = (0..outcomes.len()).filter(|&row| outcomes[row] == "collision");
        collisions
            .map(|row| ((node[row], frame[row]), culprit[row]))
            .collect()
    };
    let usual = causes(&[], "usual");
    let all = causes(&["--record-all"], "all");
    assert!(usual.len() > 1000 && usual.len() == all.len());
    let unknown = usual.values().filter(|culprit| **culprit == NONE).count();
    assert_eq!(unknown, 0, "of {}", usual.len());
    // Where a signal was recorded, weaker ones that were not are not looked for: they were 1.2 % of the causes when this was written.
    let equal = usual.iter().filter(|(at, culprit)| all[at] == **culprit);
    let equal = equal.count();
    assert!(100 * equal >= 98 * all.len(), "{equal} of {}", all.len());
}

#[test]
fn frames_of_every_system_are_named() {
    let scratch = Scratch::new("kinds");
    let named =
        |name: &str, more: &[&str]| kinds(&recorded(&example(name), more, &scratch.0.join(name)));
    // Improved Pacifier: every data frame has its batch.
    let pacifier = named("mesh-multicast", &["--set", "protocol.variant=improved"]);
    assert!(
        pacifier["coded"].0 > 50 && pacifier["data"].0 > 50,
        "{pacifier:?}"
    );
    let dpclo = named("mesh-flows", &["--set", "run.limit=5 s"]);
    assert!(dpclo["probe"].0 > 10 && dpclo["routes"].0 > 2, "{dpclo:?}");
    // ZMAC+ has data frames of its own, to all.
    assert!(dpclo["data"].0 > 100 && dpclo["data"].1 == 0, "{dpclo:?}");
    let tcplp = named("lln-3-hops", &[]);
    let (first, rest) = (tcplp["tcp_first"], tcplp["fragment"]);
    assert!(first.0 > 20 && rest.0 > first.0 && rest.1 == 0, "{tcplp:?}");
    assert!(
        tcplp["tcp"].0 > 20,
        "acknowledgements fit one frame: {tcplp:?}"
    );
}

/// Goal: each data frame of improved Pacifier has its batch, though it stands behind sets and states of any length.
#[test]
fn batches_of_improved_pacifier_are_found() {
    let scratch = Scratch::new("batches");
    let more = ["--set", "protocol.variant=improved"];
    let run = recorded(&example("mesh-multicast"), &more, &scratch.0.join("trace"));
    let parts = whole(&run, "frames", "part");
    let kinds = words(&run, "frames", "kind");
    let data = (0..parts.len()).filter(|&row| ["coded", "data"].contains(&kinds[row]));
    let batches: Vec<i64> = data.map(|row| parts[row]).collect();
    assert!(
        batches.len() > 100 && batches.iter().all(|batch| (0..40).contains(batch)),
        "{batches:?}"
    );
    // They come in order, so that the first and the last differ.
    assert!(batches[0] < batches[batches.len() - 1]);
}

/// What cannot be shown is reported as what it is, and not as a file that cannot be written.
#[test]
fn a_path_without_a_recording_is_refused() {
    let folder = Scratch::new("no-recording");
    let file = folder.path("sweep.svg");
    fs::write(&file, "<svg/>").unwrap();
    let missing = folder.path("nothing");
    for (path, says) in [(&file, "is no recording"), (&missing, "there is no ")] {
        let mut view = Command::new(env!("CARGO_BIN_EXE_chappe"));
        let out = folder.path("page.html");
        let done = view
            .arg("view")
            .arg(path)
            .arg("--out")
            .arg(out)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{said}");
        assert!(
            said.contains(says) && said.contains("chappe sim FILE --record DIR"),
            "{said}"
        );
    }
}
