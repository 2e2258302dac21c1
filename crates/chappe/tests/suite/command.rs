//! The command as users and scripts run it: exit codes, documents, files, and repeatable results.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::program::{chappe, text};
use crate::scratch::Scratch;

/// Four nodes in a line, 10 kB: a run takes milliseconds.
const SMALL: &str = "tests/mistakes/right.toml";

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// Files below a folder, as paths relative to it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(here).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path())
            } else {
                found.push(entry.path())
            }
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|path| path.strip_prefix(folder).unwrap().to_path_buf())
        .collect()
}

#[test]
fn a_real_file_arrives_with_the_right_digest() {
    let output = chappe(&["sim", SMALL, "--object", "Cargo.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document = json(&output);
    let flow = &document["runs"][0]["flows"][0];
    assert_eq!(flow["complete"], true);
    assert_eq!(flow["digest_ok"], true);
    let octets = fs::metadata(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .unwrap()
        .len();
    assert_eq!(flow["delivered_bytes"], octets);
    assert!(flow["delay_s"]["p50"].as_f64().unwrap() > 0.0);
    let bound = &document["runs"][0]["bound"];
    assert!(bound["goodput_bps"].as_f64().unwrap() >= flow["goodput_bps"].as_f64().unwrap());
    for field in [
        "chappe", "commit", "scenario", "command", "machine", "summary",
    ] {
        assert!(!document[field].is_null(), "{field}");
    }
}

/// Runs of one seed have one digest for any number of threads; other seeds have other digests.
#[test]
fn results_do_not_depend_on_threads() {
    let digests = |threads: &str| -> Vec<Value> {
        let output = chappe(&[
            "sim",
            SMALL,
            "--seeds",
            "1..4",
            "--threads",
            threads,
            "--json",
        ]);
        let document = json(&output);
        let runs = document["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| serde_json::json!([run["seed"], run["digest"], run["flows"]]))
            .collect()
    };
    let one = digests("1");
    assert_eq!(one, digests("2"));
    assert_eq!(one, digests("7"));
    assert_ne!(one[0][1], one[1][1]);
}

#[test]
fn results_and_copies_are_kept_whole() {
    let scratch = Scratch::new("out");
    let out = scratch.path("results");
    let arguments = [
        "sim",
        SMALL,
        "--object",
        "Cargo.toml",
        "--seeds",
        "1..2",
        "--out",
        &out,
        "--json",
    ];
    let first = json(&chappe(&arguments));
    let kept = files(Path::new(&out));
    assert_eq!(kept.len(), 4, "{kept:?}");
    let copy = Path::new(&out).join("copies/seed-1/r3/Cargo.toml");
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(fs::read(copy).unwrap(), fs::read(original).unwrap());
    let again = json(&chappe(&arguments));
    assert_eq!(again["runs"][0]["digest"], first["runs"][0]["digest"]);
    assert_eq!(files(Path::new(&out)), kept);

    let compared = chappe(&["compare", &out, &out, "--json"]);
    assert_eq!(
        compared.status.code(),
        Some(0),
        "{}",
        text(&compared.stderr)
    );
    assert_eq!(json(&compared)["quantities"][0]["verdict"], "same");
}

#[test]
fn a_worse_result_is_called_worse() {
    let scratch = Scratch::new("compare");
    let keep = |name: &str, rate: &str| {
        let rate = format!("radio.rate={rate}");
        let output = chappe(&["sim", SMALL, "--seeds", "1..6", "--set", &rate, "--json"]);
        fs::write(scratch.path(name), &output.stdout).unwrap();
    };
    keep("fast.json", "2 Mbit/s");
    keep("slow.json", "1 Mbit/s");
    let (fast, slow) = (scratch.path("fast.json"), scratch.path("slow.json"));
    let worse = chappe(&["compare", &fast, &slow]);
    assert_eq!(worse.status.code(), Some(1), "{}", text(&worse.stdout));
    assert!(text(&worse.stdout).contains("worse"));
    assert_eq!(chappe(&["compare", &slow, &fast]).status.code(), Some(0));
    assert_eq!(
        chappe(&["compare", &slow, "nowhere.json"]).status.code(),
        Some(3)
    );
}

/// A receiver that crashes permanently is reported with its progress, and the run ends.
#[test]
fn a_receiver_that_cannot_finish_is_reported() {
    let scratch = Scratch::new("crash");
    let scenario = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SMALL)).unwrap();
    let crash =
        "\n[[fault]]\nat = \"200 ms\"\nkind = \"crash\"\nnode = 3\n[run]\nlimit = \"60 s\"\n";
    let file = scratch.path("crash.toml");
    fs::write(&file, scenario.replace("10 kB", "500 kB") + crash).unwrap();
    let output = chappe(&["sim", &file, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document = json(&output);
    let flow = &document["runs"][0]["flows"][0];
    assert_eq!(
        (&flow["complete"], &flow["completion_s"]),
        (&Value::Bool(false), &Value::Null)
    );
    assert!(flow["delivered_bytes"].as_u64().unwrap() < 500_000);
    let said = text(&chappe(&["sim", &file]).stdout);
    assert!(
        said.contains("unfinished") && said.contains("0 of 1 receivers"),
        "{said}"
    );
}

/// A node that starts again after a crash receives the whole object.
#[test]
fn a_restarted_receiver_finishes() {
    let scratch = Scratch::new("restart");
    let scenario = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SMALL)).unwrap();
    let faults = "\n[[fault]]\nat = \"200 ms\"\nkind = \"crash\"\nnode = 3\n[[fault]]\nat = \"1 s\"\nkind = \"restart\"\nnode = 3\n";
    let file = scratch.path("restart.toml");
    fs::write(&file, scenario.replace("10 kB", "200 kB") + faults).unwrap();
    let output = chappe(&["sim", &file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(json(&output)["runs"][0]["flows"][0]["digest_ok"], true);
}

#[test]
fn a_capture_is_written_and_repeats() {
    let scratch = Scratch::new("pcap");
    let capture = |name: &str, threads: &str| {
        let path = scratch.path(name);
        let output = chappe(&[
            "sim",
            SMALL,
            "--seeds",
            "1..2",
            "--threads",
            threads,
            "--pcap",
            &path,
            "--quiet",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        fs::read(path).unwrap()
    };
    let first = capture("a.pcapng", "1");
    assert_eq!(first[..4], 0x0a0d_0d0au32.to_le_bytes());
    assert!(first == capture("b.pcapng", "2"));
    assert_eq!(files(Path::new(&scratch.path(""))).len(), 2);
    let unwritable = chappe(&["sim", SMALL, "--pcap", "/nowhere/x.pcapng"]);
    assert_eq!(unwritable.status.code(), Some(4));
}

#[test]
fn new_writes_a_scenario_that_runs_and_never_overwrites() {
    let scratch = Scratch::new("new");
    let file = scratch.path("mesh.toml");
    assert_eq!(chappe(&["new", &file]).status.code(), Some(0));
    let before = fs::read(&file).unwrap();
    let again = chappe(&["new", &file]);
    assert_eq!(again.status.code(), Some(3));
    assert!(text(&again.stderr).contains("exists"));
    assert_eq!(fs::read(&file).unwrap(), before);
    let small = [
        "--set",
        "protocol.probing=30 s",
        "--set",
        "transfer.0.bytes=20 kB",
    ];
    let run = chappe(&[&["sim", &file], &small[..]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
}

#[test]
fn the_schema_knows_every_key_of_the_examples() {
    let schema = json(&chappe(&["sim", "--schema"]));
    assert_eq!(schema["title"], "Chappe scenario");
    let keys = |name: &str| {
        schema["$defs"][name]["properties"]
            .as_object()
            .unwrap()
            .len()
    };
    assert!(keys("NetworkTable") > 10 && keys("RadioTable") > 25);
    // `[protocol]` has a condition for each system; the first one is Pacifier's.
    let pacifier = &schema["$defs"]["ProtocolTable"]["allOf"][0]["then"]["properties"];
    assert!(pacifier.as_object().unwrap().len() > 8);
    assert_eq!(
        schema["$defs"]["NetworkTable"]["additionalProperties"],
        false
    );
    let resolve = |reference: &str| &schema["$defs"][reference.trim_start_matches("#/$defs/")];
    assert!(
        resolve("#/$defs/length")["pattern"]
            .as_str()
            .unwrap()
            .contains("km")
    );
}

#[test]
fn examples_run() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (name, small) in [
        ("line.toml", "transfer.0.bytes=100 kB"),
        ("mesh-multicast.toml", "transfer.0.bytes=100 kB"),
    ] {
        let file = examples.join(name).display().to_string();
        let output = chappe(&["sim", &file, "--set", small, "--json"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{name}: {}",
            text(&output.stderr)
        );
        let document = json(&output);
        let flows = document["runs"][0]["flows"].as_array().unwrap();
        assert!(
            flows
                .iter()
                .all(|flow| flow["complete"] == true && flow["digest_ok"] == true),
            "{name}"
        );
    }
}

#[test]
fn the_demo_moves_a_file_by_every_system() {
    let output = chappe(&["demo", "Cargo.toml", "--networks", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let demo = json(&output);
    let parts = demo["parts"].as_array().unwrap();
    assert_eq!(parts[0]["systems"].as_array().unwrap().len(), 4);
    for system in parts[0]["systems"].as_array().unwrap() {
        let flows = system["result"]["runs"][0]["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 9);
        assert!(
            flows.iter().all(|flow| flow["digest_ok"] == true),
            "{system}"
        );
    }
    // Where a part has a way back, the file goes both ways.
    let wildnet = parts.iter().find(|part| part["part"] == "wildnet").unwrap();
    for system in wildnet["systems"].as_array().unwrap() {
        let flows = system["result"]["runs"][0]["flows"].as_array().unwrap();
        let ends: Vec<_> = flows
            .iter()
            .map(|flow| (&flow["source"], &flow["sink"]))
            .collect();
        assert_eq!(ends, [(&0.into(), &1.into()), (&1.into(), &0.into())]);
        for flow in flows {
            let octets = std::fs::metadata("Cargo.toml").unwrap().len();
            assert_eq!(flow["delivered_bytes"], octets, "{system}");
            assert_eq!(flow["digest_ok"], true, "{system}");
        }
    }
    let table = text(&chappe(&["demo", "Cargo.toml", "--networks", "1"]).stdout);
    for word in ["Pacifier", "MORE", "bound", "n=1", "reproduce:", "next:"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

/// A scenario with a [sweep] is read twice, and a pipe gives its text only once.
#[test]
fn a_scenario_is_read_from_standard_input() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SMALL)).unwrap();
    let from_pipe = |text: String| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_chappe"))
            .args(["sim", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    };
    let digests = |output: &Output| json(output)["runs"][0]["digest"].clone();
    let of_file = chappe(&["sim", SMALL, "--json"]);
    assert!(digests(&of_file).is_string());
    let swept = text.clone() + "\n[sweep.grid]\nprotocol.variant = [\"paper\", \"more\"]\n";
    for text in [text, swept] {
        assert_eq!(digests(&from_pipe(text)), digests(&of_file));
    }
    let wrong = from_pipe("[network]\nshape = 3\n".into());
    assert_eq!(wrong.status.code(), Some(3));
}

#[test]
fn usage_errors_have_their_own_code() {
    for arguments in [
        &["sim"][..],
        &["simulate"],
        &["sim", "x.toml", "--seeds", "5..1"],
        &["demo", "--threads", "0"],
    ] {
        assert_eq!(chappe(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(chappe(&["--help"]).status.code(), Some(0));
    assert_eq!(chappe(&["lab", "pacifer"]).status.code(), Some(3));
}

#[test]
fn doctor_reports_findings() {
    let report = json(&chappe(&["doctor", "--json"]));
    assert_eq!(report["chappe"], env!("CARGO_PKG_VERSION"));
    assert!(report["findings"].as_array().unwrap().len() >= 5);
    assert!(text(&chappe(&["doctor"]).stdout).contains("user namespaces"));
}

/// The first Ctrl-C ends a long simulation soon, with 130 and the finished runs.
#[cfg(target_os = "linux")]
/// Goal: a key is never overwritten, and the exit code tells whether a plan can be met.
#[test]
fn link_plan_and_key_work() {
    let folder = Scratch::new("link");
    let key = folder.path("link.key");
    assert_eq!(chappe(&["link", "key", "new", &key]).status.code(), Some(0));
    let written = fs::read_to_string(&key).unwrap();
    let again = chappe(&["link", "key", "new", &key]);
    assert_eq!(again.status.code(), Some(4));
    assert!(text(&again.stderr).contains("choose another name"));
    assert_eq!(fs::read_to_string(&key).unwrap(), written);
    let plan =
        |more: &[&str]| chappe(&[&["link", "plan", "--loss", "30%", "--json"], more].concat());
    let slots = ["--slots", "--distance", "60 km", "--bandwidth", "1 Mbit/s"];
    let met = plan(&slots);
    assert_eq!(
        (met.status.code(), json(&met)["met"].as_bool()),
        (Some(0), Some(true))
    );
    assert_eq!(json(&met)["coverage_class_needed"].as_u64(), Some(134));
    let unmet = plan(&["--rate", "1 Mbit/s", "--bandwidth", "1 Mbit/s"]);
    assert_eq!(
        (unmet.status.code(), json(&unmet)["met"].as_bool()),
        (Some(1), Some(false))
    );
    assert_eq!(plan(&["--delay", "5"]).status.code(), Some(3));
}

#[test]
fn interrupting_keeps_finished_runs() {
    let scratch = Scratch::new("interrupt");
    let out = scratch.path("out");
    let child = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "sim",
            SMALL,
            "--seeds",
            "1..100000",
            "--threads",
            "1",
            "--out",
            &out,
            "--json",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let finished = || fs::read_dir(&out).is_ok_and(|entries| entries.count() >= 4);
    for _ in 0..600 {
        if finished() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted"));
    let document = json(&output);
    assert_eq!(document["interrupted"], true);
    let runs = document["runs"].as_array().unwrap().len();
    assert!(runs >= 3, "{runs} runs");
    let parts = files(Path::new(&out))
        .into_iter()
        .filter(|f| f.to_string_lossy().ends_with(".part"))
        .count();
    assert_eq!(parts, 0);
}

/// A full disk leaves no empty key or scenario behind that would block the second try.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = Scratch::new("full-disk");
    let script = format!(
        "mount -t tmpfs -o size=4k none {0} && head -c 4096 /dev/zero > {0}/full || exit 77; \
         for make in 'new' 'link key new' 'link new' 'cast key'; do {1} $make {0}/made && exit 1; done; \
         {1} cast keygen {0}/made base && exit 1; \
         ls -A {0}",
        folder.0.display(),
        env!("CARGO_BIN_EXE_chappe")
    );
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .output();
    match output {
        Ok(output) if output.status.code() != Some(77) && output.status.success() => {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "full\n");
        }
        Ok(output) if output.status.code() == Some(1) && !output.stdout.is_empty() => {
            panic!("{}", String::from_utf8_lossy(&output.stdout))
        }
        other => chappe_testkit::skip(format!("no tmpfs in a user namespace: {other:?}")),
    }
}

/// A folder that cannot be made is reported before the work, which would be lost: nothing has been printed yet.
#[test]
fn folders_are_tried_before_the_work() {
    let folder = Scratch::new("no-folder");
    let file = folder.path("file");
    fs::write(&file, "").unwrap();
    let out = format!("{file}/out");
    for arguments in [
        &["sim", SMALL][..],
        &["sweep", SMALL, "--grid", "protocol.variant=paper,more"],
        &["lab", "tcplp", "hops", "--quick"],
    ] {
        let output = chappe(&[arguments, &["--out", &out]].concat());
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(text(&output.stderr).contains(&out), "{arguments:?}");
    }
}

/// A scenario is read up to a limit only. A gigabyte once ended in a lack of memory.
#[test]
fn a_huge_scenario_is_refused() {
    let folder = Scratch::new("huge");
    let huge = folder.path("huge.toml");
    fs::File::create(&huge).unwrap().set_len(1 << 30).unwrap();
    let output = chappe(&["sim", &huge]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("33554432"));
}

/// Where no message can be written, the exit code still reports the failure. The program once aborted.
#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_error_is_no_crash() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_chappe"))
        .args(["sim", "no-such-file.toml"])
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
}

/// `examples/line.toml` shows a crash that costs time; of a crash of a node that relays nothing, a note says so.
#[test]
fn the_crash_of_the_example_strikes_a_relay() {
    let line = "../../examples/line.toml";
    let completed = |more: &[&str]| {
        let output = chappe(&[&["sim", line, "--json"], more].concat());
        let seconds = json(&output)["runs"][0]["flows"][0]["completion_s"].as_f64();
        (seconds.unwrap(), text(&output.stderr))
    };
    let (with, told) = completed(&[]);
    assert!(!told.contains("changed nothing"), "{told}");
    let (without, _) = completed(&["--set", "fault=[]"]);
    assert!(with > without + 1.0, "{with} s and {without} s");
    let (_, told) = completed(&["--set", "fault.0.node=3", "--set", "fault.1.node=3"]);
    assert!(told.contains("node 3 sent no frame"), "{told}");
}

/// A written configuration is never replaced and names the member's key, mistakes have a place, and a question without a router
/// says what to do.
#[test]
fn mesh_files_are_written_and_checked() {
    let scratch = Scratch::new("mesh-files");
    let (group, file) = (scratch.path("mesh"), scratch.path("mesh.toml"));
    let made = chappe(&["cast", "keygen", &group, "7=hill", "base"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let written = chappe(&["mesh", "new", &file, "--member", "hill"]);
    assert_eq!(written.status.code(), Some(0));
    assert_eq!(chappe(&["mesh", "new", &file]).status.code(), Some(4));
    let text = std::fs::read_to_string(&file).unwrap();
    let stranger = text.replace("hill.key", "none.key");
    std::fs::write(&file, stranger).unwrap();
    let refused = chappe(&["mesh", "run", &file]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("none.key"));
    let wrong = text.replace("10.77.0.0/16", "10.77.0.0/30");
    std::fs::write(&file, wrong).unwrap();
    let refused = chappe(&["mesh", "run", &file]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{message}");
    assert!(message.contains("node 7 has no address"), "{message}");
    let socket = scratch.path("none.sock");
    let silent = chappe(&["mesh", "why", "10.77.0.1", "--socket", &socket]);
    assert_eq!(silent.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&silent.stderr).contains("chappe mesh run"));
}
