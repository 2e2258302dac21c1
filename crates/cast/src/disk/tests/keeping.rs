//! What is kept in a receiver's folder, how long, and what old tickets can do.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use super::*;
use crate::reason::Reason;

/// Makes a place look as if its last data had arrived a while ago.
fn make_old(place: &Scratch, ticket: &Ticket, age: Duration) {
    let map = folder(place)
        .join(FOLDER)
        .join(ticket.name())
        .join("batches");
    let map = File::options().write(true).open(map).unwrap();
    map.set_modified(SystemTime::now() - age).unwrap();
}

const DAY: Duration = Duration::from_secs(86_400);

/// Data of unfinished transfers go after a while, but not those of a transfer in progress.
#[test]
fn abandoned_data_are_removed() {
    let place = Scratch::new("abandoned");
    let (sent, ticket) = sent(&place);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    incoming.put(0, &batch(&sent, 0)).unwrap();
    assert_eq!(remove_abandoned(&folder(&place), DAY), 0);
    make_old(&place, &ticket, 2 * DAY);
    assert_eq!(
        remove_abandoned(&folder(&place), DAY),
        0,
        "a receiver uses it"
    );
    drop(incoming);
    assert_eq!(remove_abandoned(&folder(&place), 3 * DAY), 0);
    assert_eq!(remove_abandoned(&folder(&place), DAY), 1);
    assert!(places(&place).is_empty());
}

/// Data of a version that a later one replaces go at once; those of other files stay.
#[test]
fn superseded_data_are_removed() {
    let place = Scratch::new("superseded");
    let (sent, ticket) = sent(&place);
    drop(open(&place, &sent, &ticket).unwrap());
    fs::write(place.path("other"), "something else").unwrap();
    let other = Sent::open(&[place.path("other")], K, PAYLOAD).unwrap();
    drop(open(&place, &other, &sign(&other)).unwrap());
    fs::write(place.path("two"), "version two").unwrap();
    let paths = ["one", "empty", "two"].map(|name| place.path(name));
    let newer = Sent::open(&paths, K, PAYLOAD).unwrap();
    // Signed before, it replaces nothing.
    drop(open(&place, &newer, &sign_at(&newer, NOON - 1)).unwrap());
    assert_eq!(places(&place).len(), 3);
    let later = sign_at(&newer, NOON + 1);
    drop(open(&place, &newer, &later).unwrap());
    let mut left = places(&place);
    left.sort();
    let mut expected = [later.name(), sign(&other).name()];
    expected.sort();
    assert_eq!(left, expected);
}

/// Goal: a member whose disk is slow stays audible. Method: what makes files, which waits for the disk's journal, happens before data
/// arrive, on the thread that opens the transfer. (A receiver of a thousand files was silent for ten seconds, and counted as gone.)
#[test]
fn parts_are_made_before_data_arrive() {
    let place = Scratch::new("parts-made");
    let (sent, ticket) = sent(&place);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    let parts = folder(&place).join(FOLDER).join(ticket.name());
    let count = || fs::read_dir(&parts).unwrap().count();
    let before = count();
    for number in 0..ticket.cut.batches() {
        incoming.put(number, &batch(&sent, number)).unwrap();
    }
    assert_eq!(count(), before);
}

/// Parts take the room of what was received, not of the whole files.
#[test]
fn parts_have_holes() {
    let place = Scratch::new("sparse-parts");
    let path = place.path("large");
    let mut octets = vec![0; 4 << 20];
    Seed(6).stream(Purpose::Trial(0)).fill(&mut octets);
    fs::write(&path, octets).unwrap();
    let sent = Sent::open(&[path], 64, 1000).unwrap();
    let ticket = sign(&sent);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    let last = ticket.cut.batches() - 1;
    incoming.put(last, &batch(&sent, last)).unwrap();
    incoming.put(0, &batch(&sent, 0)).unwrap();
    let part = folder(&place)
        .join(FOLDER)
        .join(ticket.name())
        .join("0.part");
    let about = fs::metadata(part).unwrap();
    assert!(about.len() == 4 << 20 && about.blocks() * 512 < 1 << 20);
}

/// A recording of an old, validly signed transfer does not bring the old version back. Method: the ticket and all batches
/// of the old transfer once more.
#[test]
fn an_old_signed_transfer_is_not_replayed() {
    let place = Scratch::new("replay");
    let (old, recorded) = sent(&place);
    let batches: Vec<_> = (0..recorded.cut.batches())
        .map(|number| batch(&old, number))
        .collect();
    receive(&place, &old, &recorded, &overwriting()).unwrap();
    fs::write(place.path("two"), "version two").unwrap();
    let paths = ["one", "empty", "two"].map(|name| place.path(name));
    let new = Sent::open(&paths, K, PAYLOAD).unwrap();
    receive(
        &place,
        &new,
        &sign_at(&new, NOON + 86_400_000),
        &overwriting(),
    )
    .unwrap();

    let error = open_with(&place, &old, &recorded, &overwriting()).unwrap_err();
    assert_eq!(error.reason, Reason::Older, "{error}");
    assert!(error.what.contains("was signed 24 h before"), "{error}");
    assert!(error.todo.contains("--allow-rollback"), "{error}");
    // Even after the file was moved away, as programs do that use what arrives.
    fs::remove_file(folder(&place).join("two")).unwrap();
    assert!(open_with(&place, &old, &recorded, &careful()).is_err());
    assert!(!folder(&place).join("two").exists());

    let back = Policy {
        rollback: true,
        ..overwriting()
    };
    let mut incoming = open_with(&place, &old, &recorded, &back).unwrap();
    for (number, octets) in (0..).zip(&batches) {
        assert_eq!(incoming.put(number, octets), Ok(Put::Kept));
    }
    assert_eq!(incoming.finish().unwrap().installed.len(), 1);
    // From now on the old version is the right one, until a later one comes.
    fs::remove_file(folder(&place).join("two")).unwrap();
    assert!(open_with(&place, &old, &recorded, &careful()).is_ok());
}

/// Files that were signed twice are one version, whichever ticket a relay still has.
#[test]
fn an_earlier_ticket_of_the_same_files_is_no_older_version() {
    let place = Scratch::new("twice");
    let (files, first) = sent(&place);
    let second = sign_at(&files, NOON + 86_400_000);
    receive(&place, &files, &second, &overwriting()).unwrap();
    fs::remove_file(folder(&place).join("two")).unwrap();
    receive(&place, &files, &first, &overwriting()).unwrap();
    assert!(folder(&place).join("two").exists());
}

/// An old transfer that began first does not end after a newer one.
#[test]
fn a_slow_old_transfer_does_not_win() {
    let place = Scratch::new("slow");
    let (old, ticket) = sent(&place);
    let mut slow = open_with(&place, &old, &ticket, &overwriting()).unwrap();
    fill(&mut slow, &old);
    fs::write(place.path("two"), "version two").unwrap();
    let new = Sent::open(&[place.path("two")], K, PAYLOAD).unwrap();
    receive(&place, &new, &sign_at(&new, NOON + 1), &overwriting()).unwrap();
    assert_eq!(slow.finish().unwrap_err().reason, Reason::Older);
    assert_eq!(
        fs::read(folder(&place).join("two")).unwrap(),
        b"version two"
    );
}

/// Another signer's times say nothing.
#[test]
fn versions_are_those_of_a_signer() {
    let place = Scratch::new("signers");
    let (sent, ticket) = sent(&place);
    fs::write(place.path("two"), "version two").unwrap();
    let new = Sent::open(&[place.path("two")], K, PAYLOAD).unwrap();
    receive(&place, &new, &sign_at(&new, NOON + 5), &overwriting()).unwrap();
    assert!(open_with(&place, &sent, &ticket, &overwriting()).is_err());
    let other = Policy {
        key: Some(SignKey::new(&[2; 32]).verify_key()),
        ..overwriting()
    };
    assert!(open_with(&place, &sent, &ticket, &other).is_ok());
}

#[test]
fn an_expired_offer_is_refused() {
    let place = Scratch::new("expired");
    let (sent, ticket) = sent(&place);
    let now = unix_ms();
    for (signed, until, valid) in [
        (now - 2000, now - 1000, false),
        (now - 2000, now + 60_000, true),
        // This host's clock is behind the sender's, so it is wrong.
        (now + 60_000, now + 50_000, true),
    ] {
        let mut ticket = ticket;
        ticket.validity = Validity { signed, until };
        let opened = open(&place, &sent, &ticket);
        let reason = opened.map_err(|error| error.reason).map(drop);
        assert_eq!(reason, if valid { Ok(()) } else { Err(Reason::Expired) });
    }
}
