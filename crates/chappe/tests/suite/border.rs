//! `chappe border` as users run it: the kernel's own programs fetch pages from simulated motes.
//!
//! Each test starts the command, which creates a namespace. Where the kernel forbids that, the command reports it with
//! exit code 4, and the test passes with that message. Lateness on a busy machine is not tested: `--late-ok`.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use chappe_tcplp::host::{BULK_LEN, octet};
use serde_json::Value;

const CORRIDOR: &str = "../../examples/lln-3-hops.toml";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chappe"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("border")
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The output, unless the environment forbids it.
fn run(arguments: &[&str]) -> Option<Output> {
    let output = command(arguments).output().unwrap();
    if output.status.code() != Some(4) {
        return Some(output);
    }
    let said = text(&output.stderr);
    assert!(
        said.starts_with("chappe: ") && said.lines().count() >= 2,
        "{said}"
    );
    chappe_testkit::skip(said);
    None
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn exists(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        chappe_testkit::skip(format!("there is no {program}"));
    }
    found.is_ok()
}

/// curl on this kernel fetches 50 kB from a mote three hops away, and every octet is right.
#[test]
fn curl_fetches_a_page_three_hops_away() {
    if !exists("curl") {
        return;
    }
    let fetch = "exec curl -sS --max-time 120 \"http://[$LLN_3]/50k\"";
    let arguments = [CORRIDOR, "--late-ok", "-q", "--", "sh", "-c", fetch];
    let started = Instant::now();
    let Some(output) = run(&arguments) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let right = (0..u64::from(BULK_LEN)).map(octet);
    assert_eq!(output.stdout.len(), BULK_LEN as usize);
    assert!(output.stdout.iter().copied().eq(right));
    println!("50 kB in {:.1} s", started.elapsed().as_secs_f64());
}

/// The JSON report is one document that lists every node; the program's exit code is passed on.
#[test]
fn the_report_lists_every_node() {
    let script = "echo out; test \"$LLN_NODES\" = 4 && exit 7";
    let arguments = [CORRIDOR, "--late-ok", "--json", "--", "sh", "-c", script];
    let Some(output) = run(&arguments) else {
        return;
    };
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "out\n");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["exit_code"], 7);
    assert_eq!(report["host_address"], "fd63:6861:7070:65::1");
    let nodes = report["nodes"].as_array().unwrap();
    let hops: Vec<u64> = nodes.iter().filter_map(|n| n["hops"].as_u64()).collect();
    assert_eq!(hops, [0, 1, 2, 3]);
    assert_eq!(nodes[3]["address"], "fd63:6861:7070:65:0:ff:fe00:3");
    assert!(report["lateness"]["p99_s"].as_f64().is_some());
}

/// `timeout` sends SIGTERM to the program and again to its group: the second one must not cut off the report.
#[test]
fn sigterm_prints_the_report() {
    let mut command = Command::new("timeout");
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["2", env!("CARGO_BIN_EXE_chappe")])
        .args(["border", CORRIDOR, "--late-ok", "--json"]);
    let Ok(output) = command.output() else {
        return chappe_testkit::skip("there is no timeout");
    };
    if output.status.code() == Some(4) {
        return chappe_testkit::skip(text(&output.stderr));
    }
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["nodes"].as_array().map(Vec::len), Some(4));
}

/// The packet blocks of a pcapng file.
fn packets(file: &[u8]) -> u64 {
    let word = |at: usize| {
        let octets = file.get(at..at + 4).and_then(|four| four.try_into().ok());
        u32::from_le_bytes(octets.expect("a whole file"))
    };
    let (mut at, mut count) = (0, 0);
    while at < file.len() {
        count += u64::from(word(at) == 6);
        at += word(at + 4) as usize;
    }
    count
}

/// A capture has each frame on the air once; on request, once more for each node that heard it.
#[test]
fn a_capture_has_each_frame_once() {
    let file = std::env::temp_dir().join(format!("chappe-border-{}.pcapng", std::process::id()));
    let path = file.to_string_lossy().into_owned();
    for hearers in [false, true] {
        let mut arguments = vec![CORRIDOR, "--late-ok", "--json", "--pcap", &path];
        arguments.extend(hearers.then_some("--pcap-hearers"));
        arguments.extend(["--", "sh", "-c", "ping -c 2 $LLN_3 >&2; true"]);
        let Some(output) = run(&arguments) else {
            return;
        };
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let frames = report["frames"].as_u64().unwrap();
        let written = packets(&std::fs::read(&file).unwrap());
        std::fs::remove_file(&file).unwrap();
        assert!(frames > 0 || !exists("ping"), "nothing was sent");
        match hearers {
            false => assert_eq!(written, frames),
            true => assert!(written > frames || frames == 0, "{written} {frames}"),
        }
    }
}

/// A border router without a program, ended by a signal.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Without a program it serves until SIGINT, lists the nodes, admits other programs, and leaves nothing behind.
#[test]
fn it_serves_until_sigint() {
    let mut serving = Serving(command(&[CORRIDOR, "--late-ok"]).spawn().unwrap());
    let mut lines = BufReader::new(serving.0.stdout.take().unwrap()).lines();
    let said: Vec<String> = (&mut lines).map_while(Result::ok).take(10).collect();
    if said.len() < 10 {
        assert_eq!(serving.0.wait().unwrap().code(), Some(4), "{said:?}");
        return chappe_testkit::skip("the kernel allows no namespace");
    }
    let all = said.join("\n");
    assert!(all.contains("n3 - n2 - n1 - n0"), "{all}");
    let pid = serving.0.id().to_string();
    let inside = ["exec", &pid, "--", "sh", "-c", "cat /proc/net/if_inet6"];
    let output = command(&inside).output().unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("lln0"), "{out} {error}");
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let end = Instant::now() + Duration::from_secs(180);
    while serving.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    let gone = command(&inside).output().unwrap();
    assert_eq!(gone.status.code(), Some(4), "{}", text(&gone.stderr));
}

/// Without permission to create an interface it reports that, with a remedy. Method: the capability is taken from root.
#[test]
fn a_forbidden_interface_is_explained() {
    let mut command = Command::new("setpriv");
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["--bounding-set", "-net_admin"])
        .arg(env!("CARGO_BIN_EXE_chappe"))
        .args(["border", CORRIDOR, "--host", "--", "true"]);
    let Ok(output) = command.output() else {
        return chappe_testkit::skip("there is no setpriv");
    };
    let said = text(&output.stderr);
    if said.starts_with("setpriv") {
        return chappe_testkit::skip(said);
    }
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.starts_with("chappe: ") && said.contains("TUN"),
        "{said}"
    );
    assert!(said.contains("root"), "{said}");
}

/// Mistakes are reported with their place and the right form.
#[test]
fn mistakes_are_explained() {
    let told = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = command(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    };
    told(
        &["../../examples/line.toml"],
        3,
        &["line.toml:", "has no border router", "system = \"tcplp\""],
    );
    told(
        &[CORRIDOR, "--set", "protocol.window=0"],
        3,
        &["protocol.window=0", "0 segments of buffer", "1 to 48"],
    );
    told(
        &[CORRIDOR, "--set", "protocol.knob=0.5"],
        3,
        &["`knob` means nothing", "pacifier"],
    );
    told(
        &[CORRIDOR, "--set", "protocol.headers='brief'"],
        3,
        &["in-line", "contexts"],
    );
    told(&[CORRIDOR, "--prefix", "fd00::1"], 2, &["64 bits"]);
    told(&["nothing.toml"], 3, &["nothing.toml"]);
    told(
        &["exec", "1", "--", "true"],
        4,
        &["process 1 is not a border router"],
    );
}

/// A mote that cannot be a thermometer is named with the reason, before anything starts.
#[test]
fn only_leaves_become_thermometers() {
    for (arguments, why) in [
        (&["--thermometer", "2"][..], "mote 2 forwards for mote 3"),
        (&["--thermometer", "0"], "no mote has the number 0"),
        (&["--thermometer", "9"], "the motes are 1 to 3"),
        (
            &["--thermometer", "3", "--report", "3=9000"],
            "mote 3 reports",
        ),
    ] {
        let arguments = [&[CORRIDOR][..], arguments, &["--", "true"]].concat();
        let output = command(&arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
