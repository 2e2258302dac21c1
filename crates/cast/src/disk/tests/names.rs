//! How files get their names: never over others unasked, and again after a crash.

use super::*;
use crate::reason::Reason;

/// A file that appears while the transfer runs stays as it is. Its data wait for the next attempt.
#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let place = Scratch::new("appears");
    let (sent, ticket) = sent(&place);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    fill(&mut incoming, &sent);
    fs::write(folder(&place).join("two"), "precious").unwrap();
    let finished = incoming.finish().unwrap();
    let error = finished.refused.unwrap();
    assert_eq!(
        (finished.installed.len(), error.reason),
        (2, Reason::NameTaken)
    );
    assert!(
        error.what.contains("two exists with other contents"),
        "{error}"
    );
    assert_eq!(fs::read(folder(&place).join("two")).unwrap(), b"precious");
    // The others are there, and nothing is fetched again once the name is free.
    assert!(open(&place, &sent, &ticket).is_err());
    fs::rename(folder(&place).join("two"), place.path("saved")).unwrap();
    let incoming = open(&place, &sent, &ticket).unwrap();
    assert!(incoming.is_whole());
    assert_eq!(
        incoming.finish().unwrap().installed,
        [folder(&place).join("two")]
    );
    assert!(places(&place).is_empty());
}

/// The same with a folder, which is not even replaced with `overwrite`.
#[test]
fn a_folder_that_appears_meanwhile_is_not_replaced() {
    let place = Scratch::new("folder-appears");
    let (sent, ticket) = sent(&place);
    let mut incoming = open_with(&place, &sent, &ticket, &overwriting()).unwrap();
    fill(&mut incoming, &sent);
    fs::create_dir(folder(&place).join("two")).unwrap();
    let finished = incoming.finish().unwrap();
    assert!(finished.refused.unwrap().what.contains("is a folder"));
    assert_eq!(finished.installed.len(), 2);
}

/// Two transfers with one name at a time: the second finds the name taken.
#[test]
fn of_two_transfers_with_one_name_the_first_wins() {
    let (place, other) = (Scratch::new("first"), Scratch::new("second"));
    let (sent, ticket) = sent(&place);
    fs::write(other.path("two"), "others").unwrap();
    let second = Sent::open(&[other.path("two")], K, PAYLOAD).unwrap();
    let mut both = [
        open(&place, &sent, &ticket).unwrap(),
        open(&place, &second, &sign(&second)).unwrap(),
    ];
    fill(&mut both[0], &sent);
    fill(&mut both[1], &second);
    let [first, second] = both.map(|incoming| incoming.finish().unwrap());
    assert_eq!((first.refused, first.installed.len()), (None, 3));
    assert_eq!(second.refused.unwrap().reason, Reason::NameTaken);
    let two = fs::read(folder(&place).join("two")).unwrap();
    assert_eq!(two, fs::read(place.path("two")).unwrap());
}

/// A crash after any number of names: the next attempt gives the others, and fetches nothing. Method: a crash leaves just
/// this, some parts with their final names.
#[test]
fn a_crash_while_names_are_given_is_nothing_special() {
    for named in 0..=3 {
        let place = Scratch::new(&format!("naming{named}"));
        let (sent, ticket) = sent(&place);
        let mut incoming = open(&place, &sent, &ticket).unwrap();
        fill(&mut incoming, &sent);
        drop(incoming);
        let parts = folder(&place).join(FOLDER).join(ticket.name());
        fs::write(parts.join("1.part"), "").unwrap();
        for (number, name) in ["one", "empty", "two"].iter().enumerate().take(named) {
            let part = parts.join(format!("{number}.part"));
            fs::rename(part, folder(&place).join(name)).unwrap();
        }
        let incoming = open(&place, &sent, &ticket).unwrap();
        assert!(incoming.is_whole(), "after {named} names");
        let installed = incoming.finish().unwrap().installed.len();
        assert_eq!(installed, 3 - named);
        for name in ["one", "empty", "two"] {
            let read = |path: PathBuf| fs::read(path).unwrap();
            assert_eq!(read(folder(&place).join(name)), read(place.path(name)));
        }
        assert!(places(&place).is_empty());
    }
}

/// One of several files has changed: only its batches are lacking, and without `overwrite` only it is refused.
#[test]
fn what_is_there_unchanged_counts_as_received() {
    let place = Scratch::new("unchanged");
    let (sent, ticket) = sent(&place);
    fs::copy(place.path("two"), folder(&place).join("two")).unwrap();
    fs::write(folder(&place).join("one"), "old").unwrap();
    let mut incoming = open_with(&place, &sent, &ticket, &overwriting()).unwrap();
    // 950 octets in batches of 400: three of eleven batches.
    assert_eq!(fill(&mut incoming, &sent), 3);
    let names = [folder(&place).join("one"), folder(&place).join("empty")];
    assert_eq!(incoming.finish().unwrap().installed, names);

    fs::write(folder(&place).join("one"), "old").unwrap();
    fs::remove_file(folder(&place).join("two")).unwrap();
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    assert!(incoming.refused().unwrap().what.contains("one exists"));
    assert_eq!(fill(&mut incoming, &sent), 9);
    // A restart loses nothing, not even batches that belong to a refused file in part.
    drop(incoming);
    let incoming = open(&place, &sent, &ticket).unwrap();
    assert!(incoming.is_whole());
    let finished = incoming.finish().unwrap();
    assert_eq!(finished.installed, [folder(&place).join("two")]);
    assert_eq!(finished.refused.unwrap().reason, Reason::NameTaken);
    assert_eq!(fs::read(folder(&place).join("one")).unwrap(), b"old");
}

/// Of a file that has changed in one place and grown in another, only the changed batches are fetched. Method: an insertion
/// near the begin and other octets near the end of an old version of 100 batches.
#[test]
fn parts_of_an_old_version_are_used() {
    let place = Scratch::new("reuse");
    let mut octets = vec![0; 40_000];
    Seed(9).stream(Purpose::Trial(0)).fill(&mut octets);
    fs::write(folder(&place).join("data"), &octets).unwrap();
    octets.splice(1000..1000, *b"inserted");
    octets[35_000..35_010].fill(0);
    fs::write(place.path("data"), &octets).unwrap();
    let sent = Sent::open(&[place.path("data")], K, PAYLOAD).unwrap();
    let ticket = sign(&sent);
    let mut incoming = open_with(&place, &sent, &ticket, &overwriting()).unwrap();
    // The batch of the insertion, one or two of the other change, and the short one at the end.
    let fetched = fill(&mut incoming, &sent);
    assert!((3..=4).contains(&fetched), "{fetched} of 101");
    assert_eq!(incoming.finish().unwrap().installed.len(), 1);
    assert_eq!(fs::read(folder(&place).join("data")).unwrap(), octets);
}

/// A transfer whose place another receiver uses is not joined.
#[test]
fn a_place_has_one_receiver() {
    let place = Scratch::new("lock");
    let (sent, ticket) = sent(&place);
    let first = open(&place, &sent, &ticket).unwrap();
    let error = open(&place, &sent, &ticket).unwrap_err();
    assert!(error.what.contains("another process"), "{error}");
    drop(first);
    assert!(open(&place, &sent, &ticket).is_ok());
}
