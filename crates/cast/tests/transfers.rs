//! Whole transfers between network namespaces.
//!
//! Goal: the behaviour that docs/cast.md describes, on real sockets. Method: a namespace and a thread for each member, a
//! bridge between them, losses injected from seeds. Skipped if the kernel forbids namespaces.

mod common;

use std::fs;
use std::thread;

use chappe_cast::event::{Event, Progress};
use chappe_cast::group::{Group, Seat};
use chappe_cast::key::SignKey;
use chappe_cast::session::{View, only_interface};
use chappe_cast::{Carrier, Ending, Options, Reason, Then, Watch, receive, relay, send};
use chappe_core::Duration;
use chappe_sys::Links;
use common::{Network, Notes, Place, same};

fn main() {
    common::run(&[
        ("two_files_to_three_receivers", two_files_to_three_receivers),
        ("over_two_relays", over_two_relays),
        (
            "a_sender_measures_no_longer_than_needed",
            a_sender_measures_no_longer_than_needed,
        ),
        ("late_and_leaving_receivers", late_and_leaving_receivers),
        (
            "a_sender_that_stood_still_goes_on",
            a_sender_that_stood_still_goes_on,
        ),
        ("two_senders_in_one_group", two_senders_in_one_group),
        ("senders_one_after_the_other", senders_one_after_the_other),
        (
            "an_interface_goes_down_and_up",
            an_interface_goes_down_and_up,
        ),
        ("the_only_interface_is_found", the_only_interface_is_found),
        ("small_mtus_are_reported", small_mtus_are_reported),
        ("mixed_mtus_are_bridged", mixed_mtus_are_bridged),
        (
            "a_transfer_resumes_after_days",
            a_transfer_resumes_after_days,
        ),
        ("a_fifth_sender_is_told", a_fifth_sender_is_told),
        ("another_group_is_ignored", another_group_is_ignored),
        (
            "a_sender_without_the_right_is_refused",
            a_sender_without_the_right_is_refused,
        ),
        ("a_revoked_member_is_shut_out", a_revoked_member_is_shut_out),
        ("commands_report_their_end", commands_report_their_end),
        (
            "two_members_of_one_number_are_told",
            two_members_of_one_number_are_told,
        ),
    ]);
}

/// One hop, 20 % lost, one file empty: all three get both, and present files are not sent again.
fn two_files_to_three_receivers() {
    let (network, place) = (Network::new(4), Place::new("three"));
    let files = [place.file("a.bin", 700_001), place.file("empty", 0)];
    let lose: Vec<(u16, f64)> = (0..4).map(|node| (node, 0.2)).collect();
    for round in 0..2 {
        let (frames, _) = thread::scope(|scope| {
            let receivers: Vec<_> = (1..4)
                .map(|node| {
                    let (network, place, lose) = (&network, &place, &lose);
                    scope.spawn(move || {
                        let folder = place.folder(&format!("r{node}"));
                        let options = place.options(node, 20_000_000, lose);
                        let receiving = place.receiving(&folder);
                        let mut notes = Notes::default();
                        let run = || receive(&options, &receiving, &mut notes);
                        let end = network.hosts[usize::from(node)].run(run).unwrap();
                        assert_eq!(end, Ok(Ending::Done));
                        notes.count(|event| matches!(event, Event::Present { .. }))
                    })
                })
                .collect();
            let options = place.options(0, 20_000_000, &lose);
            let sending = place.sending(&files, 3);
            let mut notes = Notes::default();
            let run = || send(&options, &sending, &mut notes);
            let (end, summary) = network.hosts[0].run(run).unwrap().unwrap();
            assert_eq!((end, &summary.complete[..]), (Ending::Done, &[1, 2, 3][..]));
            assert_eq!(summary.receipts, [1, 2, 3]);
            println!(
                "  {:.2} s, {:.2} times the file",
                summary.seconds, summary.redundancy
            );
            let present: usize = receivers
                .into_iter()
                .map(|receiver| receiver.join().unwrap())
                .sum();
            assert_eq!(present, round * 3);
            (summary.data_frames, present)
        });
        assert_eq!(frames > 0, round == 0);
    }
    for node in 1..4 {
        let folder = place.path(&format!("r{node}"));
        assert!(
            files
                .iter()
                .all(|file| same(file, &folder.join(file.file_name().unwrap())))
        );
        // The files, and our folder with nothing but the versions in it.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        let ours = fs::read_dir(folder.join(".chappe-cast")).unwrap();
        let names: Vec<_> = ours.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["versions"]);
    }
}

/// A line of four, 15 % lost on each hop, no links beyond neighbours: relays forward manifest, batches and reports.
fn over_two_relays() {
    let (network, place) = (Network::new(4), Place::new("line"));
    let file = place.file("a.bin", 400_000);
    let lose = |me: u16| -> Vec<(u16, f64)> {
        let share = |other: u16| if me.abs_diff(other) == 1 { 0.15 } else { 1.0 };
        (0..4).map(|other| (other, share(other))).collect()
    };
    thread::scope(|scope| {
        let stop = Notes::default();
        for node in [1, 2] {
            let (network, place, mut notes) = (&network, &place, stop.clone());
            scope.spawn(move || {
                let options = place.options(node, 20_000_000, &lose(node));
                let run = || relay(&options, &mut notes);
                network.hosts[usize::from(node)].run(run).unwrap().unwrap()
            });
        }
        let folder = place.folder("r3");
        let (options, receiving) = (
            place.options(3, 20_000_000, &lose(3)),
            place.receiving(&folder),
        );
        let at = &network.hosts[3];
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut Notes::default()))
                .unwrap()
        });
        let options = place.options(0, 20_000_000, &lose(0));
        let sending = place.sending(std::slice::from_ref(&file), 1);
        let (_, summary) = network.hosts[0]
            .run(|| send(&options, &sending, &mut Notes::default()))
            .unwrap()
            .unwrap();
        assert_eq!(summary.complete, [3]);
        assert_eq!(receiver.join().unwrap(), Ok(Ending::Done));
        println!("  {:.2} s over three hops", summary.seconds);
        stop.stop();
        assert!(same(&file, &folder.join("a.bin")));
    });
}

/// One receiver joins late and one leaves: the others finish, and the sender does not wait for the one that left.
fn late_and_leaving_receivers() {
    let (network, place) = (Network::new(4), Place::new("late"));
    let file = place.file("a.bin", 1_500_000);
    thread::scope(|scope| {
        let notes: Vec<Notes> = (0..4).map(|_| Notes::default()).collect();
        let begin = |node: u16| {
            let (network, place, mut notes) = (&network, &place, notes[usize::from(node)].clone());
            scope.spawn(move || {
                let folder = place.folder(&format!("r{node}"));
                let options = place.options(node, 5_000_000, &[(0, 0.1)]);
                let receiving = place.receiving(&folder);
                network.hosts[usize::from(node)]
                    .run(|| receive(&options, &receiving, &mut notes))
                    .unwrap()
            })
        };
        let (first, leaver) = (begin(1), begin(2));
        let (at, mut watch) = (&network.hosts[0], notes[0].clone());
        let (options, sending) = (
            place.options(0, 5_000_000, &[]),
            place.sending(std::slice::from_ref(&file), 2),
        );
        let sender = scope.spawn(move || at.run(|| send(&options, &sending, &mut watch)).unwrap());
        let part = |event: &Event| match event {
            Event::Progress { receivers, .. } => {
                receivers.iter().any(|receiver| receiver.batches_done > 0)
            }
            _ => false,
        };
        notes[0].wait_for("a part", part);
        let late = begin(3);
        notes[2].stop();
        assert_eq!(leaver.join().unwrap(), Ok(Ending::Stopped));
        let (_, summary) = sender.join().unwrap().unwrap();
        assert_eq!(
            (&summary.complete[..], &summary.incomplete[..]),
            (&[1, 3][..], &[2][..])
        );
        assert_eq!(
            (first.join().unwrap(), late.join().unwrap()),
            (Ok(Ending::Done), Ok(Ending::Done))
        );
    });
    assert!(same(&file, &place.path("r1/a.bin")) && same(&file, &place.path("r3/a.bin")));
    assert!(!place.path("r2/a.bin").exists());
    // What it had is still there, and used when it comes back.
    assert!(place.path("r2/.chappe-cast").exists());
}

/// Both send at once; two receivers get both files.
fn two_senders_in_one_group() {
    let (network, place) = (Network::new(4), Place::new("senders"));
    let files = [place.file("a.bin", 300_000), place.file("b.bin", 400_000)];
    thread::scope(|scope| {
        let notes = Notes::default();
        let receivers: Vec<_> = [2, 3]
            .map(|node| {
                let (network, place, mut notes) = (&network, &place, notes.clone());
                scope.spawn(move || {
                    let folder = place.folder(&format!("r{node}"));
                    let options = place.options(node, 10_000_000, &[(0, 0.1), (1, 0.2)]);
                    let mut receiving = place.receiving(&folder);
                    receiving.keep = true;
                    network.hosts[usize::from(node)]
                        .run(|| receive(&options, &receiving, &mut notes))
                        .unwrap()
                })
            })
            .into();
        let senders: Vec<_> = [0u16, 1]
            .map(|node| {
                let (network, place, file) = (&network, &place, files[usize::from(node)].clone());
                scope.spawn(move || {
                    let options = place.options(node, 10_000_000, &[]);
                    let sending = place.sending(&[file], 2);
                    let run = || send(&options, &sending, &mut Notes::default());
                    network.hosts[usize::from(node)]
                        .run(run)
                        .unwrap()
                        .unwrap()
                        .1
                })
            })
            .into();
        for sender in senders {
            assert_eq!(sender.join().unwrap().complete, [2, 3]);
        }
        notes.stop();
        receivers
            .into_iter()
            .for_each(|receiver| drop(receiver.join().unwrap()));
    });
    for node in [2, 3] {
        for (file, name) in files.iter().zip(["a.bin", "b.bin"]) {
            assert!(same(file, &place.path(&format!("r{node}")).join(name)));
        }
    }
}

/// Goal: a sender that stood still for longer than a record lives (a stopped process, a busy host) does not take living
/// receivers for gone. Method: its thread sleeps for 12 s during the transfer. (It once gave up at once, with both receivers
/// waiting for the rest.)
fn a_sender_that_stood_still_goes_on() {
    let (network, place) = (Network::new(3), Place::new("still"));
    let file = place.file("a.bin", 1_500_000);
    thread::scope(|scope| {
        let receivers = [1, 2].map(|node| {
            let (network, place) = (&network, &place);
            scope.spawn(move || {
                let folder = place.folder(&format!("r{node}"));
                let (options, receiving) = (
                    place.options(node, 5_000_000, &[]),
                    place.receiving(&folder),
                );
                network.hosts[usize::from(node)]
                    .run(|| receive(&options, &receiving, &mut Notes::default()))
                    .unwrap()
            })
        });
        let (options, sending) = (
            place.options(0, 5_000_000, &[]),
            place.sending(std::slice::from_ref(&file), 2),
        );
        let mut watch = Standstill::default();
        let (_, summary) = network.hosts[0]
            .run(|| send(&options, &sending, &mut watch))
            .unwrap()
            .unwrap();
        assert!(watch.stood, "it stood still during the transfer");
        assert_eq!(
            (&summary.complete[..], watch.notes.count(is_left)),
            (&[1, 2][..], 0)
        );
        assert!(
            summary.seconds > 12.0,
            "the time on the clock counts: {} s",
            summary.seconds
        );
        for receiver in receivers {
            assert_eq!(receiver.join().unwrap(), Ok(Ending::Done));
        }
    });
}

fn is_left(event: &Event) -> bool {
    matches!(event, Event::Left { .. })
}

/// Stops the member for 12 s, 200 ms after it has begun to send.
#[derive(Default)]
struct Standstill {
    notes: Notes,
    stood: bool,
    began: bool,
}

impl Watch for Standstill {
    fn event(&mut self, event: Event) {
        self.notes.event(event);
    }

    fn look(&mut self, _: &View<'_>) {
        let begun = |event: &Event| matches!(event, Event::Begun { .. });
        if self.began && !self.stood {
            self.stood = true;
            thread::sleep(std::time::Duration::from_secs(12));
        }
        self.began = self.notes.count(begun) > 0;
    }
}

/// The receiver's interface goes down during the transfer and comes up again.
fn an_interface_goes_down_and_up() {
    let (network, place) = (Network::new(2), Place::new("down"));
    let file = place.file("a.bin", 1_000_000);
    thread::scope(|scope| {
        let (notes, folder) = (Notes::default(), place.folder("r1"));
        let (options, receiving) = (place.options(1, 5_000_000, &[]), place.receiving(&folder));
        let at = &network.hosts[1];
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut Notes::default()))
                .unwrap()
        });
        let (at, mut watch) = (&network.hosts[0], notes.clone());
        let (options, sending) = (
            place.options(0, 5_000_000, &[]),
            place.sending(std::slice::from_ref(&file), 1),
        );
        let sender = scope.spawn(move || at.run(|| send(&options, &sending, &mut watch)).unwrap());
        notes.wait_for("the beginning", |event| {
            matches!(event, Event::Begun { .. })
        });
        thread::sleep(std::time::Duration::from_millis(300));
        network.switch(1, false);
        thread::sleep(std::time::Duration::from_millis(700));
        network.switch(1, true);
        assert_eq!(sender.join().unwrap().unwrap().1.complete, [1]);
        assert_eq!(receiver.join().unwrap(), Ok(Ending::Done));
    });
    assert!(same(&file, &place.path("r1/a.bin")));
}

/// Goal: a host with one usable interface needs no `--interface`, and the error names what there is otherwise. Method: a host with one,
/// and a bridge whose ports have no address.
fn the_only_interface_is_found() {
    let network = Network::new(2);
    let find = |carrier| move || only_interface(carrier);
    let ethernet = Carrier::PACKET;
    for carrier in [Carrier::UDP, ethernet] {
        let found = network.hosts[0].run(find(carrier)).unwrap();
        assert_eq!(found.as_deref(), Ok("eth0"));
    }
    let none = network.hub.run(find(Carrier::UDP)).unwrap().unwrap_err();
    assert!(none.what.contains("has an IPv4 address"), "{none}");
    let several = network.hub.run(find(ethernet)).unwrap().unwrap_err();
    assert!(
        several.what.contains("several interfaces are up"),
        "{several}"
    );
    assert!(several.todo.contains("--interface"), "{several}");
}

/// A link whose frames are too short is rejected. A receiver whose link is too small for the sender's frames, and that comes when data
/// have been sent already, reports it, also to the sender.
fn small_mtus_are_reported() {
    let (network, place) = (Network::new(3), Place::new("mtu"));
    let file = place.file("a.bin", 10_000);
    let mtu = |octets| {
        network.hosts[1]
            .run(|| Links::open().unwrap().set_mtu("eth0", octets).unwrap())
            .unwrap()
    };
    let folder = place.folder("r1");
    let (options, receiving) = (place.options(1, 5_000_000, &[]), place.receiving(&folder));
    mtu(300);
    let open = || receive(&options, &receiving, &mut Notes::default());
    let error = network.hosts[1].run(open).unwrap().unwrap_err();
    assert!(
        error.to_string().contains("300 octets") && error.todo.contains("mtu 1500"),
        "{error}"
    );
    // Larger frames than an interface's MTU get through a virtual one in this direction; the ticket tells.
    mtu(1000);
    thread::scope(|scope| {
        let notes = Notes::default();
        let mut watch = notes.clone();
        let (options, mut sending) = (place.options(0, 5_000_000, &[]), place.sending(&[file], 1));
        sending.keep = true;
        let host = &network.hosts[0];
        let sender =
            scope.spawn(move || host.run(|| send(&options, &sending, &mut watch)).unwrap());
        let (first, folder) = (place.options(2, 5_000_000, &[]), place.folder("r2"));
        let (there, first_receiving) = (Notes::default(), place.receiving(&folder));
        let (mut there_watch, host) = (there.clone(), &network.hosts[2]);
        let early = scope.spawn(move || {
            let run = || receive(&first, &first_receiving, &mut there_watch);
            host.run(run).unwrap()
        });
        there.wait_for("the files", |event| {
            matches!(event, Event::Installed { .. })
        });
        let error = network.hosts[1].run(open).unwrap().unwrap_err();
        assert!(
            error.what.contains("more than this link carries"),
            "{error}"
        );
        let why = Reason::FrameTooLong.to_string();
        let says = |receiver: &Progress| receiver.why.as_ref() == Some(&why);
        notes.wait_for("the reason", |event| match event {
            Event::Progress { receivers, .. } => receivers.iter().any(says),
            _ => false,
        });
        notes.stop();
        there.stop();
        let (_, summary) = sender.join().unwrap().unwrap();
        early.join().unwrap().unwrap();
        assert_eq!((summary.complete, summary.incomplete), (vec![2], vec![1]));
    });
}

/// Goal: members whose interfaces have different MTUs make their frames for the smallest, unasked, and say so where it is too late.
/// Method: a sender and a receiver of MTU 1500, a relay of 700 and a receiver behind it of 520, a manifest of several kilobytes; then
/// such a relay that comes after the beginning. (All members had to be started with the smallest MTU.)
fn mixed_mtus_are_bridged() {
    let (network, place) = (Network::new(4), Place::new("mixed"));
    let file = place.file("a.bin", 1_500_000);
    for (host, octets) in [(2, 700), (3, 520)] {
        let set = || Links::open().unwrap().set_mtu("eth0", octets).unwrap();
        network.hosts[host].run(set).unwrap();
    }
    let options = |node: u16, mtu: Option<usize>| {
        let lose: &[(u16, f64)] = match node {
            0 => &[(3, 1.0)],
            3 => &[(0, 1.0), (1, 1.0)],
            _ => &[(1, 0.1), (2, 0.1)],
        };
        Options {
            mtu,
            ..place.options(node, 8_000_000, lose)
        }
    };
    let asked = |mtu: usize| {
        let (options, receiving) = (options(1, Some(mtu)), place.receiving(&place.path("")));
        let open = || receive(&options, &receiving, &mut Notes::default());
        network.hosts[1].run(open).unwrap().unwrap_err()
    };
    let error = asked(300);
    assert!(error.what.contains("--mtu 300 leaves"), "{error}");
    assert!(error.todo.contains("use --mtu 4"), "{error}");
    let error = asked(1600);
    assert!(
        error.what.contains("more than the MTU of eth0, 1500"),
        "{error}"
    );
    thread::scope(|scope| {
        let relay_notes = Notes::default();
        let mut watch = relay_notes.clone();
        let relaying = options(2, None);
        let net = &network;
        let relay = scope.spawn(move || net.hosts[2].run(|| relay(&relaying, &mut watch)).unwrap());
        let receivers = [1, 3].map(|node: u16| {
            let (options, folder) = (options(node, None), place.folder(&format!("r{node}")));
            let receiving = place.receiving(&folder);
            scope.spawn(move || {
                let run = || receive(&options, &receiving, &mut Notes::default());
                net.hosts[usize::from(node)].run(run).unwrap()
            })
        });
        let (options, sending) = (
            options(0, None),
            place.sending(std::slice::from_ref(&file), 2),
        );
        let run = || send(&options, &sending, &mut Notes::default());
        let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
        assert_eq!(summary.complete, [1, 3]);
        for receiver in receivers {
            receiver.join().unwrap().unwrap();
        }
        relay_notes.stop();
        relay.join().unwrap().unwrap();
    });
    assert!(same(&file, &place.path("r1/a.bin")) && same(&file, &place.path("r3/a.bin")));
    thread::scope(|scope| {
        let (notes, sends) = (Notes::default(), Notes::default());
        let (mut watch, mut sends_watch) = (notes.clone(), sends.clone());
        let (relaying, sending_options) = (options(2, None), options(0, None));
        let mut sending = place.sending(std::slice::from_ref(&file), 1);
        sending.keep = true;
        let net = &network;
        let sender = scope.spawn(move || {
            net.hosts[0]
                .run(|| send(&sending_options, &sending, &mut sends_watch))
                .unwrap()
        });
        let (first, folder) = (options(1, None), place.folder("again"));
        let (there, receiving) = (Notes::default(), place.receiving(&folder));
        let mut there_watch = there.clone();
        let early = scope.spawn(move || {
            let run = || receive(&first, &receiving, &mut there_watch);
            net.hosts[1].run(run).unwrap()
        });
        there.wait_for("the files", |event| {
            matches!(event, Event::Installed { .. })
        });
        let relay = scope.spawn(move || net.hosts[2].run(|| relay(&relaying, &mut watch)).unwrap());
        let says = |event: &Event| matches!(event, Event::Warning { what } if what.contains("smaller --mtu"));
        notes.wait_for("the warning", says);
        sends.stop();
        there.stop();
        let _ = sender.join().unwrap();
        let _ = early.join().unwrap();
        notes.stop();
        relay.join().unwrap().unwrap();
    });
}

/// Goal: what has arrived is kept for days, and no longer than asked. Method: both ends stop in the middle, the times of the data
/// are set back, and both start again: the sender with a new ticket for the same file.
fn a_transfer_resumes_after_days() {
    let (network, place) = (Network::new(2), Place::new("days"));
    let (file, folder) = (place.file("a.bin", 1_500_000), place.folder("r1"));
    let mut receiving = place.receiving(&folder);
    receiving.keep_parts = Duration::from_secs(7 * 86_400);
    let attempt = |until: fn(&Event) -> bool, rate: u64| {
        let (watch, sends) = (Notes::default(), Notes::default());
        thread::scope(|scope| {
            let (mut notes, mut others) = (watch.clone(), sends.clone());
            let (options, receiving) = (place.options(1, rate, &[]), receiving.clone());
            let (net, file) = (&network, file.clone());
            let receiver = scope.spawn(move || {
                net.hosts[1]
                    .run(|| receive(&options, &receiving, &mut notes))
                    .unwrap()
            });
            let (options, sending) = (place.options(0, rate, &[]), place.sending(&[file], 1));
            let sender = scope.spawn(move || {
                net.hosts[0]
                    .run(|| send(&options, &sending, &mut others))
                    .unwrap()
            });
            watch.wait_for("the end of the attempt", until);
            sends.stop();
            watch.stop();
            receiver.join().unwrap().unwrap();
            let _ = sender.join().unwrap();
        });
        let events = watch.events.lock().unwrap();
        let held = events.iter().find_map(|event| match event {
            Event::Offered { held, .. } => Some(*held),
            _ => None,
        });
        held.unwrap()
    };
    let age = |days: u64| {
        let places = fs::read_dir(folder.join(".chappe-cast")).unwrap().flatten();
        let map = places
            .map(|place| place.path().join("batches"))
            .find(|map| map.exists());
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        let map = fs::File::options().write(true).open(map.unwrap()).unwrap();
        map.set_modified(then).unwrap();
    };
    let half: fn(&Event) -> bool =
        |event| matches!(event, Event::Progress { receivers, .. } if receivers[0].batches_done > 8);
    assert_eq!(attempt(half, 3_000_000), 0);
    age(8);
    assert_eq!(
        attempt(half, 3_000_000),
        0,
        "after eight days they are gone"
    );
    age(6);
    let done: fn(&Event) -> bool = |event| matches!(event, Event::Installed { .. });
    let held = attempt(done, 8_000_000);
    assert!(held > 8, "after six days they are there: {held}");
    assert!(same(&file, &folder.join("a.bin")));
}

/// A receiver takes part in four transfers at a time. Who is the fifth to send gets to know that, and not something else.
fn a_fifth_sender_is_told() {
    let (network, place) = (Network::new(6), Place::new("fifth"));
    let folder = place.folder("r5");
    thread::scope(|scope| {
        let (notes, net) = (Notes::default(), &network);
        let mut watch = notes.clone();
        let (options, mut receiving) = (place.options(5, 2_000_000, &[]), place.receiving(&folder));
        receiving.keep = true;
        let receiver = scope.spawn(move || {
            net.hosts[5]
                .run(|| receive(&options, &receiving, &mut watch))
                .unwrap()
        });
        let quiet = Notes::default();
        let senders = [0u16, 1, 2, 3].map(|node| {
            let (options, mut watch) = (place.options(node, 300_000, &[]), quiet.clone());
            let file = place.file(&format!("{node}.bin"), 2_000_000 + usize::from(node));
            let sending = place.sending(&[file], 1);
            let at = &network.hosts[usize::from(node)];
            scope.spawn(move || at.run(|| send(&options, &sending, &mut watch)).unwrap())
        });
        for place in 0..4 {
            let offered =
                |event: &Event| matches!(event, Event::Offered { source, .. } if *source == place);
            notes.wait_for("four transfers", offered);
        }
        let mut sending = place.sending(&[place.file("4.bin", 1000)], 1);
        sending.wait = Duration::from_secs(4);
        let options = place.options(4, 2_000_000, &[]);
        let run = || send(&options, &sending, &mut Notes::default());
        let error = network.hosts[4].run(run).unwrap().unwrap_err();
        assert!(error.todo.contains("at most 4 transfers"), "{error}");
        let waits = |event: &Event| matches!(event, Event::Warning { what } if what.contains("has to wait"));
        notes.wait_for("the receiver's warning", waits);
        quiet.stop();
        notes.stop();
        for sender in senders {
            let _ = sender.join().unwrap();
        }
        receiver.join().unwrap().unwrap();
    });
}

/// A receiver with another group's key receives nothing, and the sender reports why it finds no receiver.
fn another_group_is_ignored() {
    let (network, place, other) = (
        Network::new(2),
        Place::new("ours"),
        Place::new("theirs").of_group(2),
    );
    let file = place.file("a.bin", 10_000);
    thread::scope(|scope| {
        let notes = Notes::default();
        let folder = other.folder("r1");
        let (options, receiving) = (other.options(1, 5_000_000, &[]), other.receiving(&folder));
        let (at, mut watch) = (&network.hosts[1], notes.clone());
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut watch))
                .unwrap()
        });
        let options = place.options(0, 5_000_000, &[]);
        let mut sending = place.sending(&[file], 1);
        sending.wait = chappe_core::Duration::from_millis(1500);
        let error = network.hosts[0]
            .run(|| send(&options, &sending, &mut Notes::default()))
            .unwrap()
            .unwrap_err();
        assert!(
            error.what.contains("no receiver") && error.todo.contains("another key"),
            "{error}"
        );
        notes.stop();
        assert_eq!(receiver.join().unwrap(), Ok(Ending::Stopped));
        assert_eq!(
            notes.count(|event| matches!(event, Event::Joined { .. })),
            0
        );
    });
}

/// Goal: a member that may not send is refused by receivers, and gets to know why. Method: its own list, a wrong one, lets it send.
fn a_sender_without_the_right_is_refused() {
    let (network, place) = (Network::new(2), Place::new("rights"));
    let file = place.file("a.bin", 10_000);
    thread::scope(|scope| {
        let notes = Notes::default();
        let folder = place.folder("r1");
        let (mut options, receiving) = (place.options(1, 5_000_000, &[]), place.receiving(&folder));
        options.seat = Seat::example_of(1, 24, 1, |node| node != 0);
        let (at, mut watch) = (&network.hosts[1], notes.clone());
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut watch))
                .unwrap()
        });
        let (options, sending) = (place.options(0, 5_000_000, &[]), place.sending(&[file], 1));
        let mut seen = Notes::default();
        let (_, summary) = network.hosts[0]
            .run(|| send(&options, &sending, &mut seen))
            .unwrap()
            .unwrap();
        assert_eq!(summary.incomplete, [1]);
        let why = Reason::Unsigned.to_string();
        let says = |receiver: &Progress| receiver.why.as_ref() == Some(&why);
        let told = seen.count(|event| match event {
            Event::Progress { receivers, .. } => receivers.iter().any(says),
            _ => false,
        });
        assert!(told > 0, "the sender gets the reason");
        let warned = |event: &Event| matches!(event, Event::Warning { what } if what.contains("may not send"));
        assert_eq!(notes.count(warned), 1);
        notes.stop();
        assert_eq!(receiver.join().unwrap(), Ok(Ending::Stopped));
    });
}

/// Goal: a new list reaches running members from the sender; a revoked one reports it, and gets nothing. Method: receivers 1 and 2 run
/// with the first list, and the sender starts with a second one without 2.
fn a_revoked_member_is_shut_out() {
    let (network, place) = (Network::new(3), Place::new("revoked"));
    let file = place.file("a.bin", 100_000);
    thread::scope(|scope| {
        let start = |node: u16| {
            let (network, place, notes) = (&network, &place, Notes::default());
            let mut watch = notes.clone();
            let thread = scope.spawn(move || {
                let folder = place.folder(&format!("r{node}"));
                let (options, receiving) = (
                    place.options(node, 5_000_000, &[]),
                    place.receiving(&folder),
                );
                let run = || receive(&options, &receiving, &mut watch);
                network.hosts[usize::from(node)].run(run).unwrap()
            });
            (thread, notes)
        };
        let (stays, goes) = (start(1), start(2));
        for (_, notes) in [&stays, &goes] {
            notes.wait_for("the other", |event| matches!(event, Event::Joined { .. }));
        }
        let mut options = place.options(0, 5_000_000, &[]);
        let mut members = options.seat.group.candidates();
        members.retain(|member| member.node != 2);
        let list = Group::sign("example", 2, &members, &SignKey::new(&[1; 32])).unwrap();
        options.seat = Seat::new(list, (*options.seat.key).clone()).unwrap();
        let sending = place.sending(std::slice::from_ref(&file), 1);
        let run = || send(&options, &sending, &mut Notes::default());
        let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
        assert_eq!(
            (&summary.complete[..], &summary.receipts[..]),
            (&[1][..], &[1][..])
        );
        assert_eq!(stays.0.join().unwrap(), Ok(Ending::Done));
        let renewed = |event: &Event| matches!(event, Event::List { serial: 2, .. });
        assert_eq!(stays.1.count(renewed), 1);
        let error = goes.0.join().unwrap().unwrap_err();
        assert!(error.what.contains("has revoked this member"), "{error}");
    });
    assert!(same(&file, &place.path("r1/a.bin")) && !place.path("r2/a.bin").exists());
}

/// Goal: the sender learns how the commands of its receivers have ended, also over losses. Method: one succeeds, one fails; half of all
/// frames are lost.
fn commands_report_their_end() {
    let (network, place) = (Network::new(3), Place::new("then"));
    let file = place.file("a.bin", 50_000);
    let lose: Vec<(u16, f64)> = (0..3).map(|node| (node, 0.5)).collect();
    thread::scope(|scope| {
        let receivers = [1u16, 2].map(|node| {
            let (network, place, lose) = (&network, &place, &lose);
            scope.spawn(move || {
                let folder = place.folder(&format!("r{node}"));
                let options = place.options(node, 5_000_000, lose);
                let mut receiving = place.receiving(&folder);
                let script = format!("cp \"$CHAPPE_FILES\" copy{node} && test {node} = 1");
                let words = ["sh", "-c", &script];
                receiving.then = Some(Then {
                    command: words.iter().map(Into::into).collect(),
                    limit: std::time::Duration::from_secs(5),
                });
                let run = || receive(&options, &receiving, &mut Notes::default());
                let end = network.hosts[usize::from(node)].run(run).unwrap();
                assert!(same(
                    &place.path("a.bin"),
                    std::path::Path::new(&format!("copy{node}"))
                ));
                std::fs::remove_file(format!("copy{node}")).unwrap();
                end
            })
        });
        let (options, sending) = (
            place.options(0, 5_000_000, &lose),
            place.sending(std::slice::from_ref(&file), 2),
        );
        let run = || send(&options, &sending, &mut Notes::default());
        let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
        assert_eq!(summary.complete, [1, 2]);
        assert_eq!(
            (&summary.receipts[..], &summary.commands_failed[..]),
            (&[1, 2][..], &[2][..])
        );
        let [good, bad] = receivers.map(|receiver| receiver.join().unwrap());
        assert_eq!(good, Ok(Ending::Done));
        assert!(
            bad.unwrap_err()
                .what
                .contains("its command failed with code 1")
        );
    });
}

/// Goal: two members of one number are both told, also when there are no others. (Each waited for a receiver, or a sender.)
fn two_members_of_one_number_are_told() {
    let (network, place) = (Network::new(2), Place::new("number"));
    let file = place.file("a.bin", 10_000);
    thread::scope(|scope| {
        let folder = place.folder("r1");
        let (options, receiving) = (place.options(5, 5_000_000, &[]), place.receiving(&folder));
        let at = &network.hosts[1];
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut Notes::default()))
                .unwrap()
        });
        let (options, sending) = (place.options(5, 5_000_000, &[]), place.sending(&[file], 1));
        let sent = network.hosts[0].run(|| send(&options, &sending, &mut Notes::default()));
        for error in [
            sent.unwrap().unwrap_err(),
            receiver.join().unwrap().unwrap_err(),
        ] {
            assert!(error.what.contains("key of member 5 (host5)"), "{error}");
        }
    });
}

/// Goal: where the group is known and nothing is lost, a sender begins long before the time is over that it may measure. Method: it may
/// measure for an hour, and a session that takes a minute fails. (It waited for the whole time.)
fn a_sender_measures_no_longer_than_needed() {
    let (network, place) = (Network::new(2), Place::new("measures"));
    let file = place.file("small", 20_000);
    thread::scope(|scope| {
        let (host, folder) = (&network.hosts[1], place.folder("r1"));
        let (options, receiving) = (place.options(1, 50_000_000, &[]), place.receiving(&folder));
        scope.spawn(move || {
            host.run(|| receive(&options, &receiving, &mut Notes::default()))
                .unwrap()
        });
        let mut options = place.options(0, 50_000_000, &[]);
        options.measuring = Duration::from_secs(3600);
        let sending = place.sending(std::slice::from_ref(&file), 1);
        let sent = network.hosts[0].run(|| send(&options, &sending, &mut Notes::default()));
        let (_, summary) = sent.unwrap().unwrap();
        println!("  {:.2} s in all", summary.wall_seconds);
        assert_eq!(summary.complete, [1]);
        assert!(same(&file, &folder.join("small")));
    });
}

/// A receiver with `keep` receives from one sender after the other, beyond the number that it can serve at a time.
fn senders_one_after_the_other() {
    let (network, place) = (Network::new(2), Place::new("succession"));
    let folder = place.folder("r1");
    thread::scope(|scope| {
        let stop = Notes::default();
        let (options, mut receiving) =
            (place.options(1, 50_000_000, &[]), place.receiving(&folder));
        receiving.keep = true;
        let (at, mut notes) = (&network.hosts[1], stop.clone());
        scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut notes))
                .unwrap()
        });
        for node in 10..16 {
            let file = place.file(&format!("of{node}"), 20_000 + usize::from(node));
            let mut options = place.options(node, 50_000_000, &[]);
            options.measuring = Duration::from_millis(300);
            let sending = place.sending(std::slice::from_ref(&file), 1);
            let sent = network.hosts[0].run(|| send(&options, &sending, &mut Notes::default()));
            let (_, summary) = sent.unwrap().unwrap();
            assert_eq!(summary.complete, [1], "of {node}");
            assert!(same(&file, &folder.join(file.file_name().unwrap())));
        }
        stop.stop();
    });
}
