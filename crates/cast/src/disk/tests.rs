//! Sending and receiving files on a real disk.

mod keeping;
mod names;
mod trees;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;
use crate::error::Result;
use crate::key::SignKey;
use crate::manifest::{FOLDER, Manifest, Ticket, Validity};
use crate::reason::Withdrawal;
use crate::scratch::Scratch;
use chappe_core::{Purpose, Seed};
use chappe_pacifier::Object;

const K: u8 = 4;
const PAYLOAD: u16 = 100;

/// Three files in a folder, one of them empty, and what a sender makes of them.
fn sent(place: &Scratch) -> (Sent, Ticket) {
    let mut random = Seed(5).stream(Purpose::Trial(0));
    let mut paths = Vec::new();
    for (name, len) in [("one", 950), ("empty", 0), ("two", 3333)] {
        let mut octets = vec![0; len];
        random.fill(&mut octets);
        paths.push(place.path(name));
        fs::write(place.path(name), octets).unwrap();
    }
    let sent = Sent::open(&paths, K, PAYLOAD).unwrap();
    let ticket = sign(&sent);
    (sent, ticket)
}

/// A time in milliseconds since 1970.
const NOON: u64 = 1_800_000_000_000;

fn sign(sent: &Sent) -> Ticket {
    sign_at(sent, NOON)
}

fn sign_at(sent: &Sent, signed: u64) -> Ticket {
    let manifest = sent.manifest().encode().unwrap();
    let terms = (crate::manifest::Protocol::Improved, 8);
    let validity = Validity { signed, until: 0 };
    Ticket::sign(0, terms, sent.cut(), &manifest, validity, &signer())
}

fn signer() -> SignKey {
    SignKey::new(&[1; 32])
}

/// What a careful receiver allows.
fn careful() -> Policy {
    Policy {
        key: Some(signer().verify_key()),
        ..Policy::default()
    }
}

fn overwriting() -> Policy {
    Policy {
        overwrite: true,
        ..careful()
    }
}

/// Stores all batches that are lacking; returns their number.
fn fill(incoming: &mut Incoming, sent: &Sent) -> usize {
    let lacking = |number: &u32| !incoming.holds(*number);
    let lacking: Vec<u32> = (0..sent.cut().batches()).filter(lacking).collect();
    for &number in &lacking {
        assert_eq!(incoming.put(number, &batch(sent, number)), Ok(Put::Kept));
    }
    lacking.len()
}

/// Receives everything and gives the files their names.
fn receive(place: &Scratch, sent: &Sent, ticket: &Ticket, policy: &Policy) -> Result<Finished> {
    let mut incoming = open_with(place, sent, ticket, policy)?;
    fill(&mut incoming, sent);
    incoming.finish()
}

fn batch(sent: &Sent, batch: u32) -> Vec<u8> {
    let range = sent.cut().range(batch);
    let mut octets = vec![0; (range.end - range.start) as usize];
    assert!(sent.read(range.start as usize, &mut octets));
    octets
}

fn folder(place: &Scratch) -> PathBuf {
    let folder = place.path("received");
    let _ = fs::create_dir(&folder);
    folder
}

fn open(place: &Scratch, sent: &Sent, ticket: &Ticket) -> Result<Incoming> {
    open_with(place, sent, ticket, &careful())
}

fn open_with(place: &Scratch, sent: &Sent, ticket: &Ticket, policy: &Policy) -> Result<Incoming> {
    Incoming::open(&folder(place), ticket, sent.manifest().clone(), policy)
}

/// The names in our folder, without the memory of versions.
fn places(place: &Scratch) -> Vec<String> {
    let inside = fs::read_dir(folder(place).join(FOLDER))
        .into_iter()
        .flatten();
    let names = inside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "versions").collect()
}

/// Batches in any order, with a crash after every one of them: the files are right, and only then there.
#[test]
fn a_transfer_survives_a_crash_after_every_batch() {
    let place = Scratch::new("crash");
    let (sent, ticket) = sent(&place);
    let batches = ticket.cut.batches();
    for (count, number) in (0..batches).rev().enumerate() {
        let mut incoming = open(&place, &sent, &ticket).unwrap();
        let held = incoming.held().iter().filter(|held| **held).count();
        assert_eq!((held, incoming.is_whole()), (count, false));
        assert_eq!(incoming.put(number, &batch(&sent, number)), Ok(Put::Kept));
        assert!(!folder(&place).join("two").exists());
    }
    let incoming = open(&place, &sent, &ticket).unwrap();
    assert!(incoming.is_whole());
    assert_eq!(incoming.octets(), 950 + 3333);
    assert_eq!(incoming.finish().unwrap().installed.len(), 3);
    for name in ["one", "empty", "two"] {
        let read = |path: PathBuf| fs::read(path).unwrap();
        assert_eq!(read(folder(&place).join(name)), read(place.path(name)));
    }
    assert!(open(&place, &sent, &ticket).unwrap().was_present());
    assert!(places(&place).is_empty());
}

#[test]
fn polluted_and_rotten_batches_are_fetched_again() {
    let place = Scratch::new("rot");
    let (sent, ticket) = sent(&place);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    let right = batch(&sent, 3);
    let mut wrong = right.clone();
    wrong[7] ^= 1;
    assert_eq!(incoming.put(3, &wrong), Ok(Put::Polluted));
    assert_eq!(incoming.put(99, &right), Ok(Put::Polluted));
    assert_eq!(incoming.put(3, &right), Ok(Put::Kept));
    assert!(incoming.holds(3));
    drop(incoming);
    // The disk forgets some octets of the batch.
    let part = folder(&place)
        .join(FOLDER)
        .join(ticket.name())
        .join("2.part");
    let part = File::options().write(true).open(part).unwrap();
    part.write_all_at(&[0; 50], 400).unwrap();
    assert!(!open(&place, &sent, &ticket).unwrap().holds(3));
}

#[test]
fn what_is_there_is_not_replaced_unasked() {
    let place = Scratch::new("there");
    let (sent, ticket) = sent(&place);
    for name in ["one", "empty", "two"] {
        fs::write(folder(&place).join(name), "mine").unwrap();
    }
    let error = open(&place, &sent, &ticket).unwrap_err();
    assert!(error.todo.contains("--overwrite"), "{error}");
    assert!(open_with(&place, &sent, &ticket, &overwriting()).is_ok());
    fs::remove_file(folder(&place).join("two")).unwrap();
    fs::create_dir(folder(&place).join("two")).unwrap();
    for name in ["one", "empty"] {
        fs::copy(place.path(name), folder(&place).join(name)).unwrap();
    }
    let again = open_with(&place, &sent, &ticket, &overwriting());
    assert!(again.unwrap_err().what.contains("is a folder"));
}

/// A link in the place of our folder, or of a part, is not followed.
#[test]
fn links_are_not_followed() {
    let place = Scratch::new("links");
    let (sent, ticket) = sent(&place);
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder(&place).join(FOLDER)).unwrap();
    assert!(open(&place, &sent, &ticket).is_err());
    fs::remove_file(folder(&place).join(FOLDER)).unwrap();
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    incoming.put(0, &batch(&sent, 0)).unwrap();
    drop(incoming);
    let part = folder(&place)
        .join(FOLDER)
        .join(ticket.name())
        .join("0.part");
    fs::remove_file(&part).unwrap();
    std::os::unix::fs::symlink(place.path("one"), &part).unwrap();
    let before = fs::read(place.path("one")).unwrap();
    assert!(open(&place, &sent, &ticket).is_err());
    assert_eq!(fs::read(place.path("one")).unwrap(), before);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn a_file_that_does_not_fit_is_refused_at_once() {
    let place = Scratch::new("room");
    let (sent, ticket) = sent(&place);
    let mut files = sent.manifest().files().to_vec();
    files[2].size = 1 << 50;
    let manifest = Manifest::new(
        files,
        sent.manifest()
            .batches()
            .iter()
            .map(|digest| (*digest, 0))
            .collect(),
    );
    let error = Incoming::open(&folder(&place), &ticket, manifest, &careful()).unwrap_err();
    assert_eq!(error.kind, crate::Kind::Environment, "{error}");
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_noticed() {
    let place = Scratch::new("change");
    let (sent, _) = sent(&place);
    batch(&sent, 5);
    let two = File::options().write(true).open(place.path("two")).unwrap();
    two.write_all_at(b"!", 1500).unwrap();
    let mut octets = vec![0; 400];
    assert_eq!(sent.fault(), None);
    assert!(!sent.read(6 * 400, &mut octets));
    let fault = sent.fault().unwrap();
    assert_eq!(fault.why, Withdrawal::Changed);
    assert!(fault.what.contains("two changed"), "{}", fault.what);
}

#[test]
fn only_files_are_sent() {
    let place = Scratch::new("only");
    let refused = |paths: &[PathBuf]| Sent::open(paths, K, PAYLOAD).unwrap_err().what;
    assert!(refused(&["/dev/null".into()]).contains("neither a file nor a folder"));
    assert!(refused(&[place.path("none")]).contains("No such file"));
    fs::write(place.path("x"), "1").unwrap();
    assert!(refused(&[place.path("x"), place.path("x")]).contains("two of the files"));
}

/// Goal: a transfer may have more files than a process descriptors. Method: 600 files of some octets each; what this
/// process has open is looked at while they are received.
#[test]
fn hundreds_of_files_need_few_descriptors() {
    let place = Scratch::new("thousand");
    let paths: Vec<PathBuf> = (0..600).map(|n| place.path(&format!("f{n}"))).collect();
    for (number, path) in paths.iter().enumerate() {
        fs::write(path, vec![number as u8; number % 40]).unwrap();
    }
    let open_now = || fs::read_dir("/proc/self/fd").map_or(0, |open| open.count());
    let before = open_now();
    let sent = Sent::open(&paths, K, PAYLOAD).unwrap();
    let ticket = sign(&sent);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    for number in 0..ticket.cut.batches() {
        assert_eq!(incoming.put(number, &batch(&sent, number)), Ok(Put::Kept));
    }
    incoming.flush();
    // Other tests run beside this one.
    let more = open_now().saturating_sub(before);
    assert!(more < 400, "{more} descriptors");
    let received = incoming.finish().unwrap().installed;
    assert_eq!(received.len(), 600);
    for (path, copy) in paths.iter().zip(received) {
        assert_eq!(fs::read(path).unwrap(), fs::read(copy).unwrap());
    }
}

/// Goal: the digest of a long file is computed while it arrives, and what a crash has left counts. Method: a file of two and a half
/// stretches, whose receiver stops in between; then the same with a part that another program changes at its end.
#[test]
fn a_long_file_is_digested_while_it_arrives() {
    use super::digests::STRETCH;
    let place = Scratch::new("long");
    let mut octets = vec![0; STRETCH as usize * 5 / 2];
    Seed(6).stream(Purpose::Trial(0)).fill(&mut octets);
    let paths = [place.path("short"), place.path("long")];
    fs::write(&paths[0], &octets[..1000]).unwrap();
    fs::write(&paths[1], &octets).unwrap();
    let sent = Sent::open(&paths, 32, 1400).unwrap();
    let ticket = sign(&sent);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    for number in 0..ticket.cut.batches() / 2 {
        assert_eq!(incoming.put(number, &batch(&sent, number)), Ok(Put::Kept));
    }
    drop(incoming);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    assert!(fill(&mut incoming, &sent) < ticket.cut.batches() as usize * 2 / 3);
    assert!(incoming.digested() >= STRETCH);
    let installed = incoming.finish().unwrap().installed;
    assert_eq!(fs::read(&installed[1]).unwrap(), octets);
    installed
        .iter()
        .for_each(|path| fs::remove_file(path).unwrap());

    let mut incoming = open(&place, &sent, &ticket).unwrap();
    fill(&mut incoming, &sent);
    let part = folder(&place)
        .join(FOLDER)
        .join(ticket.name())
        .join("1.part");
    let part = File::options().write(true).open(part).unwrap();
    part.write_all_at(b"changed", octets.len() as u64 - 7)
        .unwrap();
    let error = incoming.finish().unwrap_err();
    assert_eq!(error.reason, crate::reason::Reason::Changed);
}
