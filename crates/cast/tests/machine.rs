//! Faults of the machine: disks that fill up, and clocks that disagree.
//!
//! Goal: a clear error, no loss of data, and the same command resumes once the fault is gone. Method: the receiver is a
//! separate process in a separate mount or time namespace; the sender stays and serves it each time it joins. A case
//! is skipped if the kernel or a tool does not allow it.

mod common;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;

use chappe_cast::event::Event;
use chappe_cast::{Options, Watch, receive, send};
use chappe_core::Duration;
use common::{Network, Notes, Place, same};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, folder, place] = &words[..]
        && flag == "--receive"
    {
        return member(folder, &Place::at(place));
    }
    common::run(&[
        (
            "a_full_disk_is_reported_and_the_transfer_resumes",
            a_full_disk_is_reported_and_the_transfer_resumes,
        ),
        ("clocks_may_disagree_and_jump", clocks_may_disagree_and_jump),
    ]);
}

fn options(place: &Place, node: u16) -> Options {
    Options {
        measuring: Duration::from_millis(300),
        ..place.options(node, 6_000_000, &[])
    }
}

/// A receiver that prints its events, one word first.
fn member(folder: &str, place: &Place) {
    let receiving = place.receiving(folder.as_ref());
    match receive(&options(place, 1), &receiving, &mut Told) {
        Ok(end) => println!("ended {end:?}"),
        Err(error) => println!("error {:?} {error}", error.kind),
    }
}

struct Told;

impl Watch for Told {
    fn event(&mut self, event: Event) {
        match event {
            Event::Offered { held, batches, .. } => println!("offered {held} of {batches}"),
            Event::Installed { .. } => println!("installed"),
            _ => {}
        }
    }
}

/// Runs `script` beside a sender that does not end before: `$1` is this program, `$2` the place.
fn beside_a_sender(name: &str, script: &str) -> (Output, Place) {
    let (network, place) = (Network::new(2), Place::new(name));
    let file = place.file("a.bin", 1_500_000);
    let notes = Notes::default();
    let output = thread::scope(|scope| {
        let (mut watch, at) = (notes.clone(), &network.hosts[0]);
        let (options, mut sending) = (options(&place, 0), place.sending(&[file], 1));
        sending.keep = true;
        let sender = scope.spawn(move || at.run(|| send(&options, &sending, &mut watch)).unwrap());
        let run = || {
            // A member that never ends must not hold up all other tests.
            let mut shell = Command::new("timeout");
            shell.args(["90", "sh", "-c", script, "sh"]);
            shell
                .arg(std::env::current_exe().unwrap())
                .arg(place.path(""));
            shell.stdin(Stdio::null()).output().unwrap()
        };
        let output = network.hosts[1].run(run).unwrap();
        notes.stop();
        sender.join().unwrap().unwrap();
        output
    });
    (output, place)
}

fn lacks(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    let lacks = !found.is_ok_and(|output| output.status.success());
    if lacks {
        chappe_testkit::skip(format!("{tool} is not installed"));
    }
    lacks
}

/// A disk of 4 MB. First it has no room for the file, which is reported before anything is fetched. Then the reserved
/// room vanishes during the transfer, as on an overcommitted disk: the error reports it, and received data count. With
/// room again, the third attempt fetches only the rest.
fn a_full_disk_is_reported_and_the_transfer_resumes() {
    const SCRIPT: &str = r#"
        exec unshare -m sh -c '
            program=$1 place=$2 disk=$2/disk
            mkdir $disk && mount -t tmpfs -o size=4m tmpfs $disk || exit 77
            head -c 3500000 /dev/zero > $disk/ballast
            echo first $($program --receive $disk $place)
            rm $disk/ballast
            $program --receive $disk $place > $place/second &
            n=0
            until [ "$(cat $disk/.chappe-cast/*/batches 2>/dev/null | tr -d "\000" | wc -c)" -gt 1 ]; do
                n=$((n + 1)); [ $n -lt 400 ] || break
                sleep 0.02
            done
            fallocate -p -o 1000000 -l 500000 $disk/.chappe-cast/*/0.part
            head -c 4000000 /dev/zero > $disk/ballast 2> /dev/null
            wait
            echo second $(cat $place/second)
            rm $disk/ballast
            $program --receive $disk $place > $place/third &
            n=0
            until [ -e $disk/a.bin ]; do n=$((n + 1)); [ $n -lt 1000 ] || break; sleep 0.02; done
            sleep 0.2
            echo third $(cat $place/third)
            cp $disk/a.bin $place/copy
            kill $!
        ' sh "$1" "$2"
    "#;
    if lacks("unshare") || lacks("fallocate") {
        return;
    }
    let (output, place) = beside_a_sender("full", SCRIPT);
    if output.status.code() == Some(77) {
        return chappe_testkit::skip(String::from_utf8_lossy(&output.stderr).trim());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    print!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}{wrong}");
    assert!(
        lines[0].contains("error Environment no room for 1500000 more bytes in "),
        "{said}"
    );
    assert!(
        !lines[0].contains("offered"),
        "a transfer without room must not begin: {said}"
    );
    assert!(
        lines[1].contains("error Environment cannot write received data"),
        "{said}{wrong}"
    );
    assert!(
        lines[1].contains("free some space and start again; received data are kept"),
        "{said}"
    );
    let held = lines[2]
        .strip_prefix("third offered ")
        .and_then(|rest| rest.split(' ').next());
    let held: u32 = held.and_then(|held| held.parse().ok()).unwrap_or(0);
    assert!(held >= 8, "received data are not fetched again: {said}");
    assert!(lines[2].ends_with(" installed"), "{said}");
    assert!(same(&place.path("a.bin"), &place.path("copy")));
}

/// A receiver whose clock is three years ahead of the sender's is stopped during the transfer, and returns with the clock
/// as it was at boot.
fn clocks_may_disagree_and_jump() {
    const SCRIPT: &str = r#"
        mkdir $2/r1
        unshare -T --monotonic 100000000 true || exit 77
        unshare -T --fork --kill-child --monotonic 100000000 "$1" --receive $2/r1 $2 > $2/first &
        first=$! n=0
        until [ "$(cat $2/r1/.chappe-cast/*/batches 2>/dev/null | tr -d "\000" | wc -c)" -gt 1 ]; do
            n=$((n + 1)); [ $n -lt 400 ] || break
            sleep 0.02
        done
        kill -9 $first
        cat $2/first
        "$1" --receive $2/r1 $2 > $2/second &
        n=0
        until [ -e $2/r1/a.bin ]; do n=$((n + 1)); [ $n -lt 1000 ] || break; sleep 0.02; done
        sleep 0.2
        cat $2/second
        kill $!
    "#;
    if lacks("unshare") {
        return;
    }
    let (output, place) = beside_a_sender("clocks", SCRIPT);
    if output.status.code() == Some(77) {
        return chappe_testkit::skip(String::from_utf8_lossy(&output.stderr).trim());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let offered: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("offered"))
        .collect();
    assert_eq!(
        offered.len(),
        2,
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        offered[0].starts_with("offered 0 of") && !offered[1].starts_with("offered 0 of"),
        "{said}"
    );
    assert!(said.contains("installed"), "{said}");
    assert_eq!(fs::read(place.path("r1/a.bin")).unwrap().len(), 1_500_000);
    assert!(same(&place.path("a.bin"), &place.path("r1/a.bin")));
}
