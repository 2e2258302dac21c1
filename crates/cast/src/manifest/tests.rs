//! Manifests and tickets: what is encoded, and what is rejected.

use super::*;
use chappe_core::{Purpose, Seed};

const LONG_AGO: Validity = Validity {
    signed: 1_000_000_000_000,
    until: 0,
};

fn example() -> (Manifest, Cut) {
    let file = |name: &str, size| Entry {
        name: name.into(),
        kind: Kind::File,
        mode: 0o755,
        modified: -1,
        size,
        digest: [size as u8; 32],
    };
    let cut = Cut {
        len: 1000,
        k: 4,
        payload: 50,
    };
    let files = vec![file("a.bin", 150), file("empty", 0), file("ünïcode", 850)];
    let batches = vec![([9; 32], 7); 5];
    (Manifest::new(files, batches), cut)
}

#[test]
fn manifests_and_tickets_round_trip() {
    let (manifest, cut) = example();
    let octets = manifest.encode().unwrap();
    assert_eq!(Manifest::decode(&octets, &cut), Ok(manifest));
    let key = SignKey::new(&[3; 32]);
    let ticket = Ticket::sign(7, (Protocol::Improved, 4), cut, &octets, LONG_AGO, &key);
    assert_eq!(Ticket::decode(&ticket.encode()), Some(ticket));
    assert!(ticket.is_signed_by(&key.verify_key()) && ticket.names(&octets));
    assert!(!ticket.is_signed_by(&SignKey::new(&[4; 32]).verify_key()));
    for octet in 0..TICKET {
        let mut bent = ticket.encode();
        bent[octet] ^= 1;
        let taken = Ticket::decode(&bent);
        assert!(!taken.is_some_and(|ticket| ticket.is_signed_by(&key.verify_key())));
    }
}

/// A withdrawn ticket belongs to the same offer, and only the signer can make it. The same files offered later are
/// another offer of the same contents.
#[test]
fn a_withdrawn_ticket_is_signed_and_names_its_offer() {
    let (manifest, cut) = example();
    let (octets, key) = (manifest.encode().unwrap(), SignKey::new(&[3; 32]));
    let sign = |validity| {
        let terms = (Protocol::Improved, 4);
        Ticket::sign(7, terms, cut, &octets, validity, &key)
    };
    let ticket = sign(LONG_AGO);
    let gone = ticket.withdraw(Withdrawal::Changed, &key);
    assert_eq!(
        (gone.id(), gone.withdrawn),
        (ticket.id(), Some(Withdrawal::Changed))
    );
    assert!(gone.is_signed_by(&key.verify_key()) && gone.is_alike(&ticket));
    assert_eq!(Ticket::decode(&gone.encode()), Some(gone));
    let mut forged = ticket;
    forged.withdrawn = Some(Withdrawal::Changed);
    assert!(!forged.is_signed_by(&key.verify_key()));
    let again = sign(Validity {
        signed: LONG_AGO.signed + 1,
        until: 0,
    });
    assert!(again.id() != ticket.id() && again.is_alike(&ticket));
    assert_eq!(again.name(), ticket.name());
    assert_eq!(
        Ticket::decode(&again.encode()).map(|read| read.id()),
        Some(again.id())
    );
    // Another member's offer of the same files, signed in the same millisecond. (It had the same identifier.)
    let theirs = Ticket::sign(8, (Protocol::Improved, 4), cut, &octets, LONG_AGO, &key);
    assert_ne!(theirs.id(), ticket.id());
}

#[test]
fn a_batch_may_span_several_files() {
    let (manifest, cut) = example();
    let place = |file, offset, within| Place {
        file,
        offset,
        within,
    };
    let places = |batch| manifest.places(cut.range(batch)).collect::<Vec<_>>();
    assert_eq!(places(0), [place(0, 0, 0..150), place(2, 0, 150..200)]);
    assert_eq!(places(4), [place(2, 650, 0..200)]);
    assert_eq!((cut.batches(), places(5)), (5, vec![]));
}

/// Goal: a transfer may have 100,000 files. (10,001 were too many.) Method: their manifest, there and back.
#[test]
fn a_hundred_thousand_files_fit() {
    let (example, cut) = example();
    let entry = |number: usize| Entry {
        name: format!("folder-{:03}-f{number:06}", number % 100),
        size: 1,
        ..example.files[0].clone()
    };
    let files: Vec<Entry> = (0..100_000).map(entry).collect();
    let batches = files.len().div_ceil(cut.k as usize * cut.payload as usize);
    let manifest = Manifest::new(files, vec![([9; 32], 7); batches]);
    let octets = manifest.encode().unwrap();
    let cut = Cut {
        len: 100_000,
        ..cut
    };
    assert_eq!(Manifest::decode(&octets, &cut), Ok(manifest));
}

/// Every batch of many files lies where the sum of the sizes before it says. Method: the place of each octet, counted.
#[test]
fn places_are_those_of_a_count() {
    let sizes = [0u64, 3, 0, 0, 50, 1, 199, 0, 200, 201, 0];
    let (example, _) = example();
    let entry = |(number, size): (usize, &u64)| Entry {
        name: format!("f{number}"),
        size: *size,
        ..example.files[0].clone()
    };
    let files: Vec<Entry> = sizes.iter().enumerate().map(entry).collect();
    let manifest = Manifest::new(files, Vec::new());
    let of_octet: Vec<(usize, u64)> = (0..sizes.len())
        .flat_map(|file| (0..sizes[file]).map(move |offset| (file, offset)))
        .collect();
    for from in 0..of_octet.len() {
        for to in [from + 1, from + 7, of_octet.len()] {
            let to = to.min(of_octet.len());
            let places = manifest.places(from as u64..to as u64);
            let octets = places.flat_map(|place| {
                let offsets = (0..place.within.len() as u64).map(move |at| place.offset + at);
                offsets.map(move |offset| (place.file, offset))
            });
            assert!(
                octets.eq(of_octet[from..to].iter().copied()),
                "{from}..{to}"
            );
        }
    }
}

#[test]
fn names_outside_the_folder_are_rejected() {
    let long = "x".repeat(256);
    let wrong = [
        "",
        ".",
        "..",
        "/etc/passwd",
        "../x",
        "a//b",
        "a/../b",
        "a/.",
        "a/",
        "a\nb",
        "a\0b",
        ".chappe-cast",
        ".chappe-cast/versions",
        "a/.chappe-cast",
        &long,
    ];
    for name in wrong {
        let (mut manifest, cut) = example();
        assert!(check_path(name).is_err(), "{name:?}");
        // Also when the sender does not check.
        manifest.files[0].name = "12345".into();
        let octets = manifest.encode().unwrap();
        let mut forged = octets[..12 + 10].to_vec();
        forged.extend_from_slice(&(name.len() as u16).to_be_bytes());
        forged.extend_from_slice(name.as_bytes());
        forged.extend_from_slice(&octets[12 + 12 + 5..]);
        assert!(Manifest::decode(&forged, &cut).is_err(), "{name:?}");
    }
    for name in ["a", "..a", "a b", "ünïcode", "-rf"] {
        assert_eq!(check_name(name), Ok(()));
    }
    assert!(check_name("a/b").is_err() && check_path("a/b").is_ok());
    assert!(check_path(&"a/".repeat(2047)).is_err() && check_path(&["a"; 2048].join("/")).is_ok());
    assert!(check_path(&["a"; 2049].join("/")).is_err());
}

/// A folder stands before what is in it, and a file is no folder; other bits of a mode are cut off.
#[test]
fn a_tree_hangs_together() {
    let decoded = |names: &[(&str, Kind)]| {
        let (example, _) = example();
        let entry = |&(name, kind): &(&str, Kind)| Entry {
            name: name.into(),
            kind,
            mode: 0o7777,
            size: 0,
            digest: [0; 32],
            ..example.files[0].clone()
        };
        let files = names.iter().map(entry).collect();
        let octets = Manifest::new(files, Vec::new()).encode().unwrap();
        let cut = Cut {
            len: 0,
            k: 4,
            payload: 50,
        };
        Manifest::decode(&octets, &cut)
    };
    let (file, folder) = (Kind::File, Kind::Folder);
    let tree = decoded(&[("a", folder), ("a/b", folder), ("a/b/c", file), ("d", file)]).unwrap();
    assert!(tree.files().iter().all(|entry| entry.mode == 0o777));
    assert_eq!(tree.files()[2].split(), ("a/b", "c"));
    assert_eq!((tree.files()[2].top(), tree.files()[3].top()), ("a", "d"));
    for wrong in [
        &[("a/b", file)][..],
        &[("a", file), ("a/b", file)],
        &[("a/b", file), ("a", folder)],
        &[("a", folder), ("a", file)],
    ] {
        assert!(decoded(wrong).is_err(), "{wrong:?}");
    }
}

/// Cut, bent and random octets are errors; whatever they claim, they reserve no memory.
#[test]
fn damaged_manifests_are_rejected() {
    let (manifest, cut) = example();
    let octets = manifest.encode().unwrap();
    for len in 0..octets.len() {
        assert!(Manifest::decode(&octets[..len], &cut).is_err());
    }
    let mut twice = manifest.clone();
    twice.files[1].name = "a.bin".into();
    let error = Manifest::decode(&twice.encode().unwrap(), &cut).unwrap_err();
    assert!(error.what.contains("twice"));
    let mut random = Seed(1).stream(Purpose::Trial(0));
    for _ in 0..2000 {
        let mut noise = [0; 300];
        random.fill(&mut noise);
        noise[..8].copy_from_slice(MANIFEST_MAGIC);
        assert!(Manifest::decode(&noise, &cut).is_err());
        noise[..8].copy_from_slice(TICKET_MAGIC);
        if let Some(ticket) = Ticket::decode(&noise) {
            assert!(ticket.manifest_len <= MANIFEST_MAX);
        }
    }
}
