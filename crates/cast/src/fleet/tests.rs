use std::fs;
use std::path::PathBuf;

use chappe_core::Instant;

use super::*;
use crate::disk::Sent;
use crate::event::Progress;
use crate::group::Seat;
use crate::manifest::{Manifest, Protocol, Ticket, Validity};
use crate::receipt::{Command, Receipt};
use crate::scratch::Scratch;

/// A sender with its file, in a group of six.
struct Base {
    place: Scratch,
    seat: Seat,
    clock: u64,
}

impl Base {
    fn new(name: &str) -> Base {
        Base {
            place: Scratch::new(name),
            seat: Seat::example(0, 6, 1),
            clock: 1_800_000_000_000,
        }
    }

    fn folder(&self) -> PathBuf {
        self.place.path("lab.fleet")
    }

    /// Offers `image` with these contents, in packets of `payload` octets.
    fn offer(&mut self, contents: &[u8], payload: u16) -> (Ticket, Manifest, Keeper) {
        let path = self.place.path("image");
        fs::write(&path, contents).unwrap();
        let sent = Sent::open(&[path], 4, payload).unwrap();
        self.clock += 1000;
        let validity = Validity {
            signed: self.clock,
            until: 0,
        };
        let (terms, octets) = ((Protocol::Improved, 8), sent.manifest().encode().unwrap());
        let key = self.seat.key.sign();
        let node = self.seat.node;
        let ticket = Ticket::sign(node, terms, sent.cut(), &octets, validity, key);
        let manifest = sent.manifest().clone();
        let keeper = Keeper::open(&self.folder(), &self.seat, &ticket, &manifest).unwrap();
        (ticket, manifest, keeper)
    }

    fn fleet(&self) -> Fleet {
        Fleet::read(&self.folder(), &self.seat.group).unwrap()
    }

    fn only_file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.folder()).unwrap().flatten();
        let only = files.next().unwrap().path();
        assert!(files.next().is_none());
        only
    }
}

fn receipt(node: u16, ticket: &Ticket, command: Command) -> Receipt {
    let seat = Seat::example(node, 6, 1);
    let who = (node, seat.key.sign());
    Receipt::sign(&seat.group, ticket, who, 77, (false, command))
}

fn progress(node: u16, state: &'static str, why: Option<&str>, done: u32) -> Progress {
    Progress {
        node,
        name: format!("host{node}"),
        state,
        why: why.map(str::to_owned),
        batches_done: done,
        batches: 10,
    }
}

/// Goal: the table says who has which version and why not. Method: one version reaches three members, the next one only one.
#[test]
fn standings_follow_the_receipts() {
    let mut base = Base::new("standings");
    let (first, _, mut keeper) = base.offer(b"version 1", 100);
    for node in [1, 2, 3] {
        keeper.receipt(receipt(node, &first, Command::None));
    }
    keeper.finish([].iter()).unwrap();
    let (second, _, mut keeper) = base.offer(b"version 2", 100);
    keeper.receipt(receipt(1, &second, Command::Ended(3)));
    let seen = [
        progress(1, "complete", None, 10),
        progress(2, "failed", Some("no room on its disk"), 0),
        progress(4, "gone", None, 6),
    ];
    keeper.finish(seen.iter()).unwrap();
    let fleet = base.fleet();
    assert!(fleet.problems.is_empty(), "{fleet:?}");
    let [set] = &fleet.sets[..] else {
        panic!("{fleet:?}")
    };
    assert_eq!((set.title(), set.files, set.bytes), ("image".into(), 1, 9));
    assert_eq!((&set.version, set.signed_ms), (&second.name(), base.clock));
    let rows: Vec<_> = set
        .members
        .iter()
        .map(|row| (row.node, row.standing, row.why.as_str()))
        .collect();
    let expected = [
        (1, Standing::Current, "its command failed with code 3"),
        (2, Standing::Behind, "no room on its disk"),
        (
            3,
            Standing::Behind,
            "it was not there when the last version was sent",
        ),
        (4, Standing::Lacking, "it left with 60 %"),
        (5, Standing::Unseen, ""),
    ];
    assert_eq!(rows, expected);
    assert_eq!(set.members[0].command_ok, Some(false));
    assert_eq!(set.members[1].version, Some(first.name()));
    assert_eq!(set.members[1].version_signed_ms, Some(base.clock - 1000));
}

/// Files that are only cut otherwise, as for another MTU, are the same version.
#[test]
fn another_cut_is_no_other_version() {
    let mut base = Base::new("recut");
    let (first, _, mut keeper) = base.offer(&[7; 5000], 100);
    keeper.receipt(receipt(1, &first, Command::None));
    keeper.finish([].iter()).unwrap();
    let (second, _, keeper) = base.offer(&[7; 5000], 200);
    assert_ne!(first.manifest, second.manifest);
    keeper.finish([].iter()).unwrap();
    assert_eq!(base.fleet().sets[0].members[0].standing, Standing::Current);
    let (_, _, keeper) = base.offer(&[8; 5000], 200);
    keeper.finish([].iter()).unwrap();
    assert_eq!(base.fleet().sets[0].members[0].standing, Standing::Behind);
}

/// The sender, the newest version, and each member's standing with the sender that got its receipt.
type Standings = (u16, String, Vec<(u16, Standing, Option<u16>)>);

fn standings_of(folders: &[PathBuf], base: &Base) -> Standings {
    let fleet = Fleet::read_all(folders, &base.seat.group).unwrap();
    assert!(fleet.problems.is_empty(), "{fleet:?}");
    let [set] = &fleet.sets[..] else {
        panic!("{fleet:?}")
    };
    let rows = set.members.iter();
    let rows = rows.map(|row| (row.node, row.standing, row.receipt_sender));
    (set.sender, set.version.clone(), rows.collect())
}

/// Goal: where several members send the same files, the newest version counts, and of each member its receipt for that, whoever got it;
/// an older copy of a folder takes nothing away. Method: members 0 and 5 send in turn into folders of their own; one of them is copied
/// in between.
#[test]
fn folders_of_several_senders_are_one_fleet() {
    let (mut base, mut other) = (Base::new("joined-0"), Base::new("joined-5"));
    other.seat = Seat::example(5, 6, 1);
    let (first, _, mut keeper) = base.offer(b"version 1", 100);
    for node in [1, 2, 3] {
        keeper.receipt(receipt(node, &first, Command::None));
    }
    keeper.finish([].iter()).unwrap();
    let copy = base.place.path("copy");
    fs::create_dir(&copy).unwrap();
    let file = base.only_file();
    fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    other.clock = base.clock;
    let (second, _, mut keeper) = other.offer(b"version 2", 100);
    keeper.receipt(receipt(2, &second, Command::None));
    keeper.finish([].iter()).unwrap();
    let folders = [base.folder(), other.folder()];
    let expected = [
        (0, Standing::Unseen, None),
        (1, Standing::Behind, Some(0)),
        (2, Standing::Current, Some(5)),
        (3, Standing::Behind, Some(0)),
        (4, Standing::Unseen, None),
    ];
    let standings = standings_of(&folders, &base);
    assert_eq!(standings, (5, second.name(), expected.to_vec()));
    // The first sender goes on: it is newer now, and the copy from before is given first.
    base.clock = other.clock;
    let (third, _, mut keeper) = base.offer(b"version 3", 100);
    keeper.receipt(receipt(1, &third, Command::None));
    keeper.finish([].iter()).unwrap();
    let standings = standings_of(&[copy, other.folder(), base.folder()], &base);
    let expected = [
        (1, Standing::Current, Some(0)),
        (2, Standing::Behind, Some(5)),
        (3, Standing::Behind, Some(0)),
        (4, Standing::Unseen, None),
        (5, Standing::Unseen, None),
    ];
    assert_eq!(standings, (0, third.name(), expected.to_vec()));
}

/// Goal: no one without the sender's key changes the state, and the sender cannot make up a receipt. Method: every octet of an
/// account is changed; another member's receipt is given out as the receiver's.
#[test]
fn a_changed_account_is_refused() {
    let mut base = Base::new("bent");
    let (ticket, _, mut keeper) = base.offer(b"version 1", 100);
    keeper.receipt(receipt(1, &ticket, Command::None));
    let mut made_up = receipt(2, &ticket, Command::None);
    made_up.receiver = 3;
    keeper.receipt(made_up);
    keeper.finish([].iter()).unwrap();
    let standings: Vec<_> = base.fleet().sets[0]
        .members
        .iter()
        .map(|row| row.standing)
        .collect();
    assert_eq!(
        standings[..3],
        [Standing::Current, Standing::Unseen, Standing::Unproven]
    );
    let (path, text) = (base.only_file(), fs::read(base.only_file()).unwrap());
    for at in 0..text.len() - 1 {
        let mut bent = text.clone();
        bent[at] ^= 1;
        let bent = String::from_utf8(bent).unwrap();
        assert!(
            Account::parse(&bent, &base.seat.group).is_none(),
            "octet {at}"
        );
    }
    assert!(
        Account::parse(
            &String::from_utf8(text.clone()).unwrap(),
            &Seat::example(0, 6, 9).group
        )
        .is_none()
    );
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let fleet = base.fleet();
    assert_eq!((fleet.sets.len(), fleet.problems.len()), (0, 1));
    // The sender does not replace what it has not written.
    let manifest = Sent::open(&[base.place.path("image")], 4, 100).unwrap();
    let error = Keeper::open(&base.folder(), &base.seat, &ticket, manifest.manifest())
        .err()
        .unwrap();
    assert!(error.what.contains("not signed by this member"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), &text[..text.len() / 2]);
}

/// Versions are bounded, and the receipt for one that is forgotten still says that its member is behind.
#[test]
fn old_versions_are_forgotten() {
    let mut base = Base::new("bounded");
    let (first, _, mut keeper) = base.offer(b"version 0", 100);
    keeper.receipt(receipt(1, &first, Command::None));
    keeper.finish([].iter()).unwrap();
    for version in 1..30 {
        let (_, _, keeper) = base.offer(format!("version {version}").as_bytes(), 100);
        keeper.finish([].iter()).unwrap();
    }
    let fleet = base.fleet();
    let member = &fleet.sets[0].members[0];
    assert_eq!(
        (member.standing, member.version_signed_ms),
        (Standing::Behind, None)
    );
    assert_eq!(member.version, Some(first.name()));
    let text = fs::read_to_string(base.only_file()).unwrap();
    let account = Account::parse(&text, &base.seat.group).unwrap();
    assert_eq!(account.versions.len(), account::VERSIONS_MAX);
}

/// The largest account that a sender can write can be read again.
#[test]
fn the_largest_account_is_readable() {
    let mut base = Base::new("largest");
    base.seat = Seat::example(0, 256, 1);
    let (ticket, manifest, keeper) = base.offer(b"version 0", 100);
    drop(keeper);
    let mut account = Account::new(&base.seat, &manifest);
    account.names = vec!["n".repeat(255); account::NAMES_MAX];
    account.count = u32::MAX;
    for signed_ms in 0..40 {
        let manifest = *blake3::hash(&[signed_ms as u8]).as_bytes();
        account.add(Version {
            manifest,
            signed_ms: u64::MAX - signed_ms,
            bytes: u64::MAX,
            ..Version::of(
                &ticket,
                &Manifest::decode(&manifest_octets(&base), &ticket.cut).unwrap(),
            )
        });
    }
    for node in 0..256 {
        account.receipts.insert(
            node,
            (u64::MAX, receipt(1, &ticket, Command::Ended(i32::MIN))),
        );
        let why = crate::reason::Reason::Unsigned.to_string();
        let seen = Seen {
            signed_ms: u64::MAX,
            at_ms: u64::MAX,
            state: "receiving".into(),
            done: u32::MAX,
            batches: u32::MAX,
            why,
        };
        account.seen.insert(node, seen);
    }
    let text = account.text(&base.seat);
    assert!(text.len() as u64 <= account::ACCOUNT_MAX, "{}", text.len());
    let read = Account::parse(&text, &base.seat.group).unwrap();
    assert_eq!(
        (read.seen.len(), read.names.len()),
        (256, account::NAMES_MAX)
    );
}

fn manifest_octets(base: &Base) -> Vec<u8> {
    let sent = Sent::open(&[base.place.path("image")], 4, 100).unwrap();
    sent.manifest().encode().unwrap()
}

/// Receipts are on the disk while the transfer still runs, and a folder that cannot be written is reported once.
#[test]
fn receipts_are_written_meanwhile() {
    let mut base = Base::new("meanwhile");
    let (ticket, _, mut keeper) = base.offer(b"version 1", 100);
    let at = |ms| Instant::ZERO + chappe_core::Duration::from_millis(ms);
    keeper.note(at(0), [].iter()).unwrap();
    keeper.receipt(receipt(1, &ticket, Command::None));
    let begun = std::time::Instant::now();
    let mut now = 1000;
    let is_current = |fleet: Fleet| {
        let set = fleet.sets.first();
        set.is_some_and(|set| set.members[0].standing == Standing::Current)
    };
    while !is_current(base.fleet()) {
        assert!(begun.elapsed().as_secs() < 20, "not written");
        keeper.note(at(now), [].iter()).unwrap();
        now += 1000;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    keeper.finish([].iter()).unwrap();
    let (_, _, mut keeper) = base.offer(b"version 2", 100);
    fs::remove_dir_all(base.folder()).unwrap();
    keeper.note(at(0), [].iter()).unwrap();
    let mut faults = 0;
    for step in 1..200 {
        let states = [progress(
            1,
            if step % 2 == 0 {
                "receiving"
            } else {
                "preparing"
            },
            None,
            0,
        )];
        faults += usize::from(keeper.note(at(step * 1000), states.iter()).is_err());
        std::thread::sleep(std::time::Duration::from_millis(2));
        if faults > 0 {
            break;
        }
    }
    assert_eq!(faults, 1);
    assert!(keeper.finish([].iter()).is_err());
}
