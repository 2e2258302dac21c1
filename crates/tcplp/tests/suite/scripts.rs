//! Every script under `tests/scripts`, played to this crate's TCP.
//!
//! A failure names the script, the line and what was sent instead. To run the scripts whose path contains a word:
//! `SCRIPT=word cargo test --release -p chappe-tcplp --test suite scripts::`.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chappe_packet_script::{Shortfall, run, run_packetdrill};

use support::ours::Ours;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn include(name: &str) -> Option<String> {
    fs::read_to_string(folder().join("common").join(name).with_extension("pkt")).ok()
}

#[test]
#[allow(clippy::disallowed_methods)] // Reads which scripts to run from the environment.
fn every_script_passes() {
    let mut scripts = chappe_testkit::script::files(folder(), "pkt");
    let wanted = std::env::var("SCRIPT").unwrap_or_default();
    scripts.retain(|path| path.to_string_lossy().contains(&wanted));
    let mut failed = 0;
    for path in &scripts {
        let text = fs::read_to_string(path).expect("a script can be read");
        let outcome = run(&text, &mut Ours::default(), &include);
        if let Err(why) = outcome {
            failed += 1;
            let name = path.strip_prefix(folder()).unwrap_or(path).display();
            println!("{name}: {why}\n");
        }
    }
    println!("{} scripts, {failed} failed", scripts.len());
    assert_eq!(failed, 0);
    assert!(
        !wanted.is_empty() || scripts.len() >= 150,
        "{} scripts",
        scripts.len()
    );
}

/// Plays packetdrill scripts of others, which are not part of this project: `PACKETDRILL` names their folder. Prints why each
/// one fails or cannot be played, and how many for each reason.
#[test]
#[ignore = "needs a folder of packetdrill scripts in PACKETDRILL"]
#[allow(clippy::disallowed_methods)] // Reads where the scripts are from the environment.
fn packetdrill() {
    let folder = PathBuf::from(std::env::var("PACKETDRILL").expect("PACKETDRILL names a folder"));
    let scripts = chappe_testkit::script::files(folder.clone(), "pkt");
    let (mut passed, mut reasons) = (0, BTreeMap::<String, usize>::new());
    for path in &scripts {
        let text =
            String::from_utf8_lossy(&fs::read(path).expect("a script can be read")).into_owned();
        let (kind, why) = match run_packetdrill(&text, &mut Ours::default()) {
            Ok(()) => {
                passed += 1;
                continue;
            }
            Err(Shortfall::Failed(why)) => ("failed", why),
            Err(Shortfall::Unplayable(why)) => ("cannot be played", why),
        };
        println!(
            "{}: {kind}: {why}\n",
            path.strip_prefix(&folder).unwrap_or(path).display()
        );
        // Without the place: `line 9 at 0.1 s: length: 5 instead of 0`.
        let first = why.lines().next().unwrap_or_default();
        let reason = first.split_once(": ").map_or(first, |(_, reason)| reason);
        let reason: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        *reasons.entry(format!("{kind}: {reason}")).or_default() += 1;
    }
    println!("{} scripts, {passed} passed", scripts.len());
    for (reason, count) in reasons {
        println!("{count:6}  {reason}");
    }
    assert!(!scripts.is_empty(), "no script in {}", folder.display());
}

/// Goal: a packetdrill script passes where the stack does what it says, and fails where it does not. Method: a script with calls,
/// options, a D-SACK, a timestamp that comes back and a reset; then the same with one wrong word in it.
#[test]
fn packetdrill_scripts_pass_and_fail() {
    let right = "--ip_version=ipv6\n--tolerance_usecs=10000\n\
        0 `sysctl -w net.inet.tcp.rfc1323=1 net.inet.tcp.sack.enable=1 net.inet.tcp.delacktime=40`\n\
        +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
        +0 > S 0:0(0) win 65535 <mss 1440,nop,wscale 6,sackOK,TS val 700 ecr 0>\n\
        +.1 < S. 0:0(0) ack 1 win 9000 <mss 1440,sackOK,TS val 5 ecr 700>\n\
        +0 > . 1:1(0) ack 1 <nop,nop,TS val 800 ecr 5>\n\
        +0 < . 1:301(300) ack 1 win 9000 <nop,nop,TS val 6 ecr 800>\n\
        +.04 > . 1:1(0) ack 301 <nop,nop,TS val 840 ecr 6>\n\
        +0 recv(3, ..., 1024, MSG_PEEK) = 300\n\
        +0 < . 101:201(100) ack 1 win 9000 <nop,nop,TS val 6 ecr 840>\n\
        +0 > . 1:1(0) ack 301 win 9000 <nop,nop,TS val 840 ecr 6,nop,nop,sack 101:201>\n\
        +0 read(3, ..., 1024) = 300\n\
        +0 send(3, ..., 100, 0) = 100\n\
        +0 > P. 1:101(100) ack 301 <nop,nop,TS val 840 ecr 6>\n\
        +0 < R 301:301(0) win 0\n\
        +0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0\n";
    assert_eq!(run_packetdrill(right, &mut Ours::default()), Ok(()));
    // What is sent after the last line is nobody's business, as in packetdrill.
    let (cut, _) = right
        .split_once("+0 > . 1:1(0) ack 1 <nop")
        .expect("the acknowledgement of the SYN-ACK");
    assert_eq!(run_packetdrill(cut, &mut Ours::default()), Ok(()));
    for (from, to) in [
        ("sack 101:201", "sack 101:202"),
        ("ecr 6,nop", "ecr 5,nop"),
        ("mss 1440,nop,wscale", "mss 1400,nop,wscale"),
        ("nop,wscale 6,sackOK,", "nop,wscale 6,"),
        ("+.04 > .", "+.09 > ."),
        ("MSG_PEEK) = 300", "MSG_PEEK) = 299"),
        ("read(3, ..., 1024) = 300", "read(3, ..., 1024) = 299"),
        ("> P. 1:101(100)", "> P. 1:100(99)"),
        ("ack 301 win 9000 <nop", "ack 301 win 0 <nop"),
        ("[ECONNRESET]", "[0]"),
    ] {
        assert!(right.contains(from), "{from}");
        let outcome = run_packetdrill(&right.replacen(from, to, 1), &mut Ours::default());
        assert!(
            matches!(outcome, Err(Shortfall::Failed(_))),
            "{to}: {outcome:?}"
        );
    }
}

/// Goal: a script that switches RFC 5961 off passes where that makes no difference, and is no failure where it does. Method: a reset
/// at the left edge, where the connection ends either way, and one further right, where only a stack without RFC 5961 ends it.
#[test]
fn packetdrill_scripts_without_rfc_5961() {
    let script = |number: u32| {
        format!(
            "--ip_version=ipv6\n0 `sysctl -w net.inet.tcp.insecure_rst=1`\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
             +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
             +0 > S 0:0(0) win 65535 <...>\n+.1 < S. 0:0(0) ack 1 win 9000 <mss 1440>\n+0 > . 1:1(0) ack 1\n\
             +0 `sockstat -6 -P tcp -s | grep -c ESTABLISHED | grep 1`\n+.1 < R {number}:{number}(0) win 0\n\
             +0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0\n"
        )
    };
    assert_eq!(run_packetdrill(&script(1), &mut Ours::default()), Ok(()));
    let outcome = run_packetdrill(&script(2), &mut Ours::default());
    assert!(
        matches!(&outcome, Err(Shortfall::Unplayable(why)) if why.starts_with("without RFC 5961")),
        "{outcome:?}"
    );
}

/// The runner itself must be able to fail: each of these scripts expects something wrong.
#[test]
fn wrong_scripts_fail() {
    let open = "listen\n< S 0:0(0) win 9000 <mss 1000>\n";
    let wrong = [
        (
            "a packet that never comes",
            "+0 > S. 0:0(0) ack 1\n+0.1 > . 1:1(0) ack 1\n",
        ),
        ("an unexpected packet", "+0.5 quiet\n"),
        ("a wrong number", "> S. 0:0(0) ack 2\n"),
        ("a wrong flag", "> . 0:0(0) ack 1\n"),
        ("a wrong option", "> S. 0:0(0) ack 1 <mss 999>\n"),
        ("a wrong window", "> S. 0:0(0) ack 1 win 5\n"),
        ("a wrong time", "+0.2 > S. 0:0(0) ack 1\n"),
        (
            "a wrong state",
            "> S. 0:0(0) ack 1\naccept\nexpect state=ESTABLISHED\n",
        ),
        ("a leftover at the end", ""),
    ];
    for (what, rest) in wrong {
        let outcome = run(&format!("{open}{rest}"), &mut Ours::default(), &|_| None);
        assert!(outcome.is_err(), "{what} went unnoticed");
    }
}

/// Syntax errors in a script are reported before anything is played.
#[test]
fn mistakes_are_named_with_their_line() {
    for (text, part) in [
        ("listen\n< S 0:5(0)\n", "line 2"),
        ("fly\n", "not an event"),
        ("config mss\n", "key=value"),
        ("use nothing\n", "no such file"),
        ("+1x quiet\n", "not a time"),
        ("< S 0:0(0) <mss 5\n", "missing"),
    ] {
        let why = run(text, &mut Ours::default(), &|_| None).expect_err(text);
        assert!(why.contains(part), "{why}");
    }
}
