//! What happens to users' files while transfers run.
//!
//! Goal: a receiver's own files stay as they are, every sender learns what became of its files, and no receiver waits for
//! data that never come. Method: members in namespaces, as in `transfers.rs`.

mod common;

use std::fs;
use std::thread;

use chappe_cast::event::{Event, Progress, Summary};
use chappe_cast::{Ending, Error, Reason, Receiving, receive, relay, send};
use chappe_core::Duration;
use common::{Network, Notes, Place, same};

fn main() {
    common::run(&[
        (
            "a_file_that_appears_is_not_replaced",
            a_file_that_appears_is_not_replaced,
        ),
        (
            "of_two_senders_one_is_refused",
            of_two_senders_one_is_refused,
        ),
        ("a_changed_file_is_withdrawn", a_changed_file_is_withdrawn),
        ("the_same_file_is_sent_again", the_same_file_is_sent_again),
        (
            "two_senders_have_the_same_file",
            two_senders_have_the_same_file,
        ),
        ("a_thousand_files_in_folders", a_thousand_files_in_folders),
    ]);
}

/// Sends files from host 0 to `receivers` receivers.
fn sent(network: &Network, place: &Place, node: u16, file: &str, rate: u64) -> Summary {
    let mut options = place.options(node, rate, &[]);
    options.measuring = Duration::from_millis(300);
    let sending = place.sending(&[place.path(file)], 1);
    let run = || send(&options, &sending, &mut Notes::default());
    network.hosts[usize::from(node)]
        .run(run)
        .unwrap()
        .unwrap()
        .1
}

/// Receives on host `node` until the transfer ends.
fn received(
    network: &Network,
    place: &Place,
    node: u16,
    receiving: &Receiving,
    mut notes: Notes,
) -> Result<Ending, Error> {
    let options = place.options(node, 8_000_000, &[]);
    let run = || receive(&options, receiving, &mut notes);
    network.hosts[usize::from(node)].run(run).unwrap()
}

fn has_begun(event: &Event) -> bool {
    matches!(event, Event::Progress { receivers, .. } if receivers[0].batches_done > 0)
}

/// A user writes a file of the same name while the transfer runs. It stays, and both sides say that it is in the way.
fn a_file_that_appears_is_not_replaced() {
    let (network, place) = (Network::new(2), Place::new("appears"));
    place.file("a.bin", 1_500_000);
    let folder = place.folder("r1");
    thread::scope(|scope| {
        let notes = Notes::default();
        let (receiving, watch) = (place.receiving(&folder), notes.clone());
        let (net, here) = (&network, &place);
        let receiver = scope.spawn(move || received(net, here, 1, &receiving, watch));
        let sender = scope.spawn(|| sent(&network, &place, 0, "a.bin", 4_000_000));
        notes.wait_for("some data", has_begun);
        fs::write(folder.join("a.bin"), "precious work of a user").unwrap();
        let error = receiver.join().unwrap().unwrap_err();
        assert_eq!(error.reason, Reason::NameTaken, "{error}");
        assert_eq!(error.kind, chappe_cast::Kind::Failed, "exit code 1");
        let summary = sender.join().unwrap();
        assert_eq!(
            (&summary.complete[..], &summary.incomplete[..]),
            (&[][..], &[1][..])
        );
    });
    let left = fs::read(folder.join("a.bin")).unwrap();
    assert_eq!(left, b"precious work of a user");
}

/// Two senders with one name and different contents: one wins, and the other learns that its file is not there.
fn of_two_senders_one_is_refused() {
    let (network, place) = (Network::new(3), Place::new("one-name"));
    for (folder, len) in [("s0", 300_000), ("s1", 300_001)] {
        place.folder(folder);
        place.file(&format!("{folder}/a.bin"), len);
    }
    let folder = place.folder("r2");
    thread::scope(|scope| {
        let notes = Notes::default();
        let (mut receiving, watch) = (place.receiving(&folder), notes.clone());
        receiving.keep = true;
        let (net, here) = (&network, &place);
        let receiver = scope.spawn(move || received(net, here, 2, &receiving, watch));
        let senders = [0u16, 1].map(|node| {
            let file = format!("s{node}/a.bin");
            scope.spawn(move || sent(net, here, node, &file, 8_000_000))
        });
        let summaries = senders.map(|sender| sender.join().unwrap());
        notes.stop();
        receiver.join().unwrap().unwrap();
        let complete = summaries.each_ref().map(|summary| summary.complete.len());
        assert_eq!(complete.iter().sum::<usize>(), 1, "{summaries:?}");
        let winner = complete.iter().position(|complete| *complete == 1).unwrap();
        assert_eq!(summaries[1 - winner].incomplete, [2]);
        let file = place.path(&format!("s{winner}/a.bin"));
        assert!(same(&file, &folder.join("a.bin")));
    });
}

/// The sender's file changes during the transfer: a receiver next to it and one behind a relay give up at once.
fn a_changed_file_is_withdrawn() {
    let (network, place) = (Network::new(4), Place::new("changes"));
    let file = place.file("a.bin", 3_000_000);
    thread::scope(|scope| {
        let (notes, stop) = (Notes::default(), Notes::default());
        let (net, here) = (&network, &place);
        // Receiver 3 hears only relay 2, at a loss of 30 %.
        let lose = |node: u16| match node {
            0 => vec![(3, 1.0)],
            3 => vec![(0, 1.0), (1, 1.0), (2, 0.3)],
            _ => vec![(3, if node == 1 { 1.0 } else { 0.3 })],
        };
        let mut watch = stop.clone();
        scope.spawn(move || {
            let options = here.options(2, 8_000_000, &lose(2));
            net.hosts[2]
                .run(|| relay(&options, &mut watch))
                .unwrap()
                .unwrap()
        });
        let receivers = [1u16, 3].map(|node| {
            let mut watch = notes.clone();
            scope.spawn(move || {
                let receiving = here.receiving(&here.folder(&format!("r{node}")));
                let options = here.options(node, 8_000_000, &lose(node));
                let run = || receive(&options, &receiving, &mut watch);
                net.hosts[usize::from(node)].run(run).unwrap()
            })
        });
        let path = file.clone();
        let sender = scope.spawn(move || {
            let options = here.options(0, 4_000_000, &lose(0));
            let sending = here.sending(&[path], 2);
            let run = || send(&options, &sending, &mut Notes::default());
            net.hosts[0].run(run).unwrap()
        });
        notes.wait_for("some data", has_begun);
        let mut octets = fs::read(&file).unwrap();
        octets.reverse();
        fs::write(&file, octets).unwrap();
        let error = sender.join().unwrap().unwrap_err();
        assert!(
            error.what.contains("a.bin changed while it was being sent"),
            "{error}"
        );
        let told = std::time::Instant::now();
        for receiver in receivers {
            let error = receiver.join().unwrap().unwrap_err();
            assert_eq!(error.reason, Reason::Withdrawn, "{error}");
            assert!(error.what.contains("a file changed"), "{error}");
        }
        println!(
            "  receivers gave up {:.1} s after the sender",
            told.elapsed().as_secs_f64()
        );
        stop.stop();
    });
}

/// The first version of a file, the second, and the first again: the receiver has each in turn, although it had the first
/// before. (It once reported it as complete because it had received it an hour ago.)
fn the_same_file_is_sent_again() {
    let (network, place) = (Network::new(2), Place::new("again"));
    for (folder, len) in [("v1", 100_000), ("v2", 100_001)] {
        place.folder(folder);
        place.file(&format!("{folder}/a.bin"), len);
    }
    let folder = place.folder("r1");
    thread::scope(|scope| {
        let notes = Notes::default();
        let (mut receiving, watch) = (place.receiving(&folder), notes.clone());
        (receiving.keep, receiving.overwrite) = (true, true);
        let (net, here) = (&network, &place);
        scope.spawn(move || received(net, here, 1, &receiving, watch));
        for version in ["v1/a.bin", "v2/a.bin", "v1/a.bin", "v1/a.bin"] {
            let summary = sent(net, here, 0, version, 8_000_000);
            assert_eq!(summary.complete, [1], "{version}");
            assert!(
                same(&place.path(version), &folder.join("a.bin")),
                "{version}"
            );
        }
        notes.stop();
    });
}

/// Two senders offer the same file at a time: the receiver takes it from one and tells both that it has it.
fn two_senders_have_the_same_file() {
    let (network, place) = (Network::new(3), Place::new("twice"));
    place.file("a.bin", 400_000);
    let folder = place.folder("r2");
    thread::scope(|scope| {
        let notes = Notes::default();
        let (mut receiving, watch) = (place.receiving(&folder), notes.clone());
        receiving.keep = true;
        let (net, here) = (&network, &place);
        scope.spawn(move || received(net, here, 2, &receiving, watch));
        let senders =
            [0u16, 1].map(|node| scope.spawn(move || sent(net, here, node, "a.bin", 8_000_000)));
        for sender in senders {
            assert_eq!(sender.join().unwrap().complete, [2]);
        }
        let refused = |event: &Event| matches!(event, Event::Refused { .. });
        assert_eq!(notes.count(refused), 0);
        notes.stop();
    });
    assert!(same(&place.path("a.bin"), &folder.join("a.bin")));
}

/// A tree of a thousand files arrives; a second receiver has other contents under one of its names, and keeps them.
fn a_thousand_files_in_folders() {
    let (network, place) = (Network::new(3), Place::new("thousand"));
    for number in 0..1000 {
        place.folder(&format!("tree/{}", number % 7));
        let name = format!("tree/{}/f{number}", number % 7);
        fs::write(place.path(&name), number.to_string().repeat(number % 50)).unwrap();
    }
    place.folder("r2/tree/3");
    fs::write(place.path("r2/tree/3/f3"), "mine").unwrap();
    thread::scope(|scope| {
        let (net, here) = (&network, &place);
        let receivers = [1u16, 2].map(|node| {
            scope.spawn(move || {
                let receiving = here.receiving(&here.folder(&format!("r{node}")));
                received(net, here, node, &receiving, Notes::default())
            })
        });
        let (options, sending) = (
            place.options(0, 8_000_000, &[]),
            place.sending(&[place.path("tree")], 2),
        );
        let mut notes = Notes::default();
        let run = || send(&options, &sending, &mut notes);
        let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
        assert_eq!(
            (&summary.complete[..], &summary.incomplete[..]),
            (&[1][..], &[2][..])
        );
        let why = Reason::NameTaken.to_string();
        let says = |receiver: &Progress| receiver.why.as_ref() == Some(&why);
        let told = |event: &Event| match event {
            Event::Progress { receivers, .. } => receivers.iter().any(says),
            _ => false,
        };
        assert!(notes.count(told) > 0);
        let [first, second] = receivers.map(|receiver| receiver.join().unwrap());
        assert_eq!(first, Ok(Ending::Done));
        assert_eq!(second.unwrap_err().reason, Reason::NameTaken);
    });
    for number in 0..1000 {
        let name = format!("tree/{}/f{number}", number % 7);
        let there = |node: u8| place.path(&format!("r{node}/{name}"));
        assert!(same(&place.path(&name), &there(1)), "{name}");
        assert!(number == 3 || same(&place.path(&name), &there(2)), "{name}");
    }
    assert_eq!(fs::read(place.path("r2/tree/3/f3")).unwrap(), b"mine");
}
