//! Folders, modes and times.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::reason::Reason;

/// A tree with an empty folder, a program and a file deep down; and what a sender makes of it.
fn tree(place: &Scratch) -> (Sent, Ticket) {
    let make = |name: &str, octets: &str, mode| {
        let path = place.path("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, octets).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let file = File::options().append(true).open(path);
        // A file without write permission is dated by its owner all the same, if that is root.
        if let Ok(file) = file {
            file.set_modified(UNIX_EPOCH + Duration::new(1_000_000_000, 5))
                .unwrap();
        }
    };
    fs::create_dir_all(place.path("tree/empty")).unwrap();
    make("run.sh", "#!/bin/sh", 0o6755);
    make("a/b/c/deep", &"deep".repeat(500), 0o640);
    let sent = Sent::open(&[place.path("tree")], K, PAYLOAD).unwrap();
    let ticket = sign(&sent);
    (sent, ticket)
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A tree arrives with its folders, modes and times, but without the bits that give rights.
#[test]
fn a_tree_arrives() {
    let place = Scratch::new("tree");
    let (sent, ticket) = tree(&place);
    let finished = receive(&place, &sent, &ticket, &careful()).unwrap();
    assert_eq!((finished.installed.len(), finished.refused), (2, None));
    let there = folder(&place).join("tree");
    assert_eq!(fs::read(there.join("run.sh")).unwrap(), b"#!/bin/sh");
    assert_eq!(fs::read(there.join("a/b/c/deep")).unwrap().len(), 2000);
    assert_eq!(fs::read_dir(there.join("empty")).unwrap().count(), 0);
    // The umask of the tests takes no right from the owner.
    assert_eq!(mode(there.join("run.sh")) & 0o7700, 0o700);
    assert_eq!(mode(there.join("a/b/c/deep")) & 0o7711, 0o600);
    let about = fs::metadata(there.join("run.sh")).unwrap();
    assert_eq!((about.mtime(), about.mtime_nsec()), (1_000_000_000, 5));
    assert!(open(&place, &sent, &ticket).unwrap().was_present());
}

/// What is not a folder has the name of one: nothing is received through it, whatever may be overwritten.
#[test]
fn links_in_the_place_of_folders_are_not_followed() {
    for policy in [careful(), overwriting()] {
        let place = Scratch::new(&format!("through{}", policy.overwrite));
        let (sent, ticket) = tree(&place);
        let elsewhere = place.path("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir(folder(&place).join("tree")).unwrap();
        symlink(&elsewhere, folder(&place).join("tree/a")).unwrap();
        let finished = receive(&place, &sent, &ticket, &policy).unwrap();
        assert_eq!(finished.refused.unwrap().reason, Reason::NameTaken);
        assert_eq!(finished.installed, [folder(&place).join("tree/run.sh")]);
        assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
    }
    // Also if the link appears while the transfer runs.
    let place = Scratch::new("through-late");
    let (sent, ticket) = tree(&place);
    let mut incoming = open_with(&place, &sent, &ticket, &overwriting()).unwrap();
    fill(&mut incoming, &sent);
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(folder(&place).join("tree")).unwrap();
    symlink(&elsewhere, folder(&place).join("tree/a")).unwrap();
    assert!(incoming.finish().unwrap().refused.is_some());
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

/// A user moves the old folder aside while the new version is on its way. What was moved stays as it is, whatever may be overwritten,
/// and the new version is where it should be.
#[test]
fn a_folder_that_is_moved_aside_stays_as_it_is() {
    for whole in [false, true] {
        let place = Scratch::new(&format!("aside{whole}"));
        let make = |octets: &str| {
            fs::create_dir_all(place.path("tree/a")).unwrap();
            fs::write(place.path("tree/a/deep"), octets).unwrap();
            Sent::open(&[place.path("tree")], K, PAYLOAD).unwrap()
        };
        let policy = Policy {
            whole,
            ..overwriting()
        };
        let old = make("old");
        receive(&place, &old, &sign(&old), &policy).unwrap();
        let new = make("new version");
        let ticket = sign_at(&new, NOON + 1);
        let mut incoming = open_with(&place, &new, &ticket, &policy).unwrap();
        fill(&mut incoming, &new);
        let here = |name: &str| folder(&place).join(name);
        fs::rename(here("tree"), here("kept")).unwrap();
        let finished = incoming.finish();
        assert_eq!(fs::read(here("kept/a/deep")).unwrap(), b"old");
        assert_eq!(finished.unwrap().refused, None);
        assert_eq!(fs::read(here("tree/a/deep")).unwrap(), b"new version");
    }
}

/// With `whole`, a folder is there with everything in it or not at all, and what the new one lacks vanishes.
#[test]
fn a_folder_is_replaced_as_a_whole() {
    let place = Scratch::new("whole");
    let (sent, ticket) = tree(&place);
    let whole = Policy {
        whole: true,
        ..careful()
    };
    assert_eq!(
        receive(&place, &sent, &ticket, &whole)
            .unwrap()
            .installed
            .len(),
        2
    );
    let there = folder(&place).join("tree");
    assert_eq!(
        (
            mode(there.join("run.sh")) & 0o7700,
            mode(there.join("a")) & 0o700
        ),
        (0o700, 0o700)
    );
    fs::write(there.join("old"), "of the user").unwrap();
    fs::write(place.path("tree/run.sh"), "#!/bin/bash").unwrap();
    let sent = Sent::open(&[place.path("tree")], K, PAYLOAD).unwrap();
    let ticket = sign_at(&sent, NOON + 1);
    let error = receive(&place, &sent, &ticket, &whole).unwrap_err();
    assert_eq!(error.reason, Reason::NameTaken, "{error}");
    assert!(
        error.what.contains("tree exists with other contents"),
        "{error}"
    );
    assert!(there.join("old").exists());
    let whole = Policy {
        overwrite: true,
        ..whole
    };
    let mut incoming = open_with(&place, &sent, &ticket, &whole).unwrap();
    // 2000 octets of the unchanged file come first.
    assert_eq!(fill(&mut incoming, &sent), 1);
    assert_eq!(incoming.finish().unwrap().installed, [there.join("run.sh")]);
    assert_eq!(fs::read(there.join("run.sh")).unwrap(), b"#!/bin/bash");
    assert_eq!(fs::read(there.join("a/b/c/deep")).unwrap().len(), 2000);
    assert!(!there.join("old").exists() && there.join("empty").exists());
    assert!(places(&place).is_empty());
}

/// A folder that appears while the transfer runs stays as it is.
#[test]
fn a_whole_folder_replaces_nothing_unasked() {
    let place = Scratch::new("whole-late");
    let (sent, ticket) = tree(&place);
    let whole = Policy {
        whole: true,
        ..careful()
    };
    let mut incoming = open_with(&place, &sent, &ticket, &whole).unwrap();
    fill(&mut incoming, &sent);
    fs::create_dir(folder(&place).join("tree")).unwrap();
    fs::write(folder(&place).join("tree/run.sh"), "precious").unwrap();
    let finished = incoming.finish().unwrap();
    assert_eq!(finished.installed, [] as [PathBuf; 0]);
    assert_eq!(finished.refused.unwrap().reason, Reason::NameTaken);
    assert_eq!(
        fs::read(folder(&place).join("tree/run.sh")).unwrap(),
        b"precious"
    );
    assert!(!folder(&place).join("tree/a").exists());
}

/// A sender names what it cannot send, and leaves out a receiver's own folder.
#[test]
fn links_are_not_sent() {
    let place = Scratch::new("sent-links");
    tree(&place);
    fs::create_dir(place.path("tree").join(FOLDER)).unwrap();
    let sent = Sent::open(&[place.path("tree/.")], K, PAYLOAD).unwrap();
    let names: Vec<&str> = sent
        .manifest()
        .files()
        .iter()
        .map(|entry| &entry.name[..])
        .collect();
    let expected = [
        "tree",
        "tree/a",
        "tree/a/b",
        "tree/a/b/c",
        "tree/a/b/c/deep",
        "tree/empty",
        "tree/run.sh",
    ];
    assert_eq!(names, expected);
    symlink("run.sh", place.path("tree/link")).unwrap();
    let error = Sent::open(&[place.path("tree")], K, PAYLOAD).unwrap_err();
    assert!(
        error.what.contains("tree/link is a symbolic link"),
        "{error}"
    );
}

/// Holes stay holes: zeros are not written, and the file has its size.
#[test]
fn zeros_take_no_room() {
    let place = Scratch::new("holes");
    let path = place.path("sparse");
    let file = File::create(&path).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.set_len(4 << 20).unwrap();
    let sent = Sent::open(&[path], 64, 1000).unwrap();
    let ticket = sign(&sent);
    let mut incoming = open(&place, &sent, &ticket).unwrap();
    // The batch with octets, and the short one at the end.
    assert_eq!(fill(&mut incoming, &sent), 2);
    drop(incoming);
    let incoming = open(&place, &sent, &ticket).unwrap();
    assert!(
        incoming.is_whole(),
        "holes count as received after a restart"
    );
    incoming.finish().unwrap();
    let about = fs::metadata(folder(&place).join("sparse")).unwrap();
    assert_eq!(about.len(), 4 << 20);
    assert!(about.blocks() * 512 < 1 << 20, "{} blocks", about.blocks());
}
